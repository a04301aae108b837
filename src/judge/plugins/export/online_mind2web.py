"""The Online-Mind2Web submission schema v2: converts our trajectories to it, and checks its rules. Pure.

Source: `data/schema_v2` of the Online-Mind2Web repository: its JSON schema, its action dictionary and the nine rules
that consumers enforce. Rules 8 and 9 can be checked only as far as a document and the dataset allow. A step names its
own screenshot, which shows the page right before the action, as in our records. Actions are written in grammar A::

    CLICK role=link[name="Help"] -> click the Help link | SUCCESS
    page -> NAVIGATE -> go to example.com | SUCCESS
    TASK_COMPLETE -> ANSWER: 42

Only executed actions are written. Unreadable replies and failed actions are left out; the last screenshot before them
goes to the step that follows.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge.records.steps import Step
from judge.records.tools import verb_of
from judge.trajectory.foreign import IMAGE_SUFFIXES, V2_SCHEMA
from judge.trajectory.formats import ExportedTask, FolderCheck, Format, FormatWriter, Source, json_text
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_json, reason_of
from shared.models import Record
from shared.replies import ENDING_TOOLS
from shared.settings import Settings
from shared.text import counted, split_line, without_surrogates

_COMPLETE = "TASK_COMPLETE -> ANSWER:"
_NO_ANSWER = "(none given)"
# The grammar's separator must not appear in an action's text.
_MARKS = str.maketrans({"|": "¦"})
_STATUS = re.compile(r"(.*) \| (SUCCESS|FAILED)", re.DOTALL)
_VERBS = "NAVIGATE|GO_BACK|GO_FORWARD|REFRESH|SCROLL|WAIT|CLICK|TYPE|HOVER|PRESS_KEY|SELECT"
_GRAMMAR_A = re.compile(rf"(?:(?P<lead>{_VERBS}) .+? -> .+|.+? -> (?P<inner>{_VERBS}) -> .+)", re.DOTALL)
_GRAMMAR_B = re.compile(
    r"(?:click_at|type_at|scroll|hover|wait|press_key|select_option|navigate|go_back|go_forward)\(.*\)", re.DOTALL
)
_PARALLEL_URL = re.compile(r"\bURL: \S* ?-> ")
# The rule that an invalid key violates; all others violate the JSON schema.
_RULE_OF_KEY = MappingProxyType({"schema_version": "1", "task_id": "2", "step": "3", "thought": "5"})


class TaskSubmission(Record):
    """One task's `result.json` and, for each step, its recorded screenshot and the file name in `trajectory/`."""

    document: dict[str, Any]
    screenshots: tuple[tuple[str, str], ...]


class RuleViolation(Record):
    """One violated rule. `rule` is `schema`, `grammar`, or the number of the rule; a `note` is only advice."""

    rule: str
    text: str
    note: bool = False

    def __str__(self) -> str:
        return f"{'note' if self.note else f'rule {self.rule}'}: {self.text}"


class _StepDocument(BaseModel):
    """One step of a document."""

    model_config = ConfigDict(extra="forbid", strict=True)

    step: int
    screenshot: str = Field(pattern=r"^(?:\d{4}|\d+_full_screenshot_\d+)\.(?:png|jpg|jpeg|webp)$")
    url: str | None = None
    action: str = Field(pattern=r"\S")
    action_status: Literal["SUCCESS", "FAILED"] | None = None
    thought: str | None

    @property
    def is_end(self) -> bool:
        return self.action.startswith("TASK_COMPLETE")

    @property
    def parts(self) -> tuple[str, str | None]:
        """The action without its status, and the status."""
        match = _STATUS.fullmatch(self.action)
        return (match[1], match[2]) if match else (self.action, None)

    @property
    def verb(self) -> str | None:
        """The verb of grammar A, if the action follows it."""
        match = _GRAMMAR_A.fullmatch(self.parts[0])
        return (match["lead"] or match["inner"]) if match else None

    @property
    def is_grammar_b(self) -> bool:
        return self.verb is None and _GRAMMAR_B.fullmatch(self.parts[0]) is not None


class _ResultDocument(BaseModel):
    """A `result.json` of the schema."""

    model_config = ConfigDict(extra="forbid", strict=True)

    schema_version: Literal["online-mind2web-v2"]
    task: str = Field(min_length=1)
    task_id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    agent_final_answer: str | None
    reference_length: int = Field(ge=1)
    action_history: list[_StepDocument] = Field(min_length=1)


def submission(trajectory: Trajectory, reference_length: int | None = None) -> TaskSubmission:
    """The submission of one of our own trajectories. `reference_length` (the human's) overrides the task's.

    Raises `TrajectoryError` if the schema cannot represent it: aborted, no reference length, missing screenshot.
    """
    task, folder = trajectory.task, trajectory.folder
    steps = trajectory.attempt.steps
    length = reference_length or task.reference_length
    if trajectory.is_aborted:
        raise TrajectoryError("the attempt was aborted", location=str(folder), remedy="run the task again")
    if length is None:
        raise TrajectoryError(
            "unknown human reference length",
            location=str(folder),
            remedy="give reference_length in the scenario, or --dataset with the dataset's file",
        )
    if not steps:
        raise TrajectoryError("no step to submit", location=str(folder), remedy="run the task again")
    last = steps[-1]
    answer = None if trajectory.final_answer is None else without_surrogates(trajectory.final_answer)
    answer_text = _NO_ANSWER if answer is None else " ".join(answer.split())
    rows: list[tuple[Step, str | None, str, str | None, str | None]] = [
        (step, _url(step), action_v2(step.outcome.line), "SUCCESS", _thought(step))
        for step in steps
        if step.outcome and step.outcome.line and not _is_ending(step)
    ]
    rows.append(
        (last, last.url, f"{_COMPLETE} {answer_text}".rstrip(), None, _thought(last) if _is_ending(last) else None)
    )
    history, screenshots = [], []
    for index, (step, url, action, status, thought) in enumerate(rows):
        recorded = _screenshot(steps, step, str(folder))
        name = f"{index:04d}{PurePosixPath(recorded).suffix.lower()}"
        screenshots.append((recorded, name))
        entry = {"url": url, "action": action, "action_status": status, "thought": thought}
        history.append({"step": index, "screenshot": name, **entry})
    document = {
        "schema_version": V2_SCHEMA,
        "task": task.task,
        "task_id": task.task_id,
        "agent_final_answer": answer,
        "reference_length": length,
        "action_history": history,
    }
    return TaskSubmission(document=document, screenshots=tuple(screenshots))


def action_v2(line: str) -> str:
    """One of our action lines in grammar A. Its status is always `SUCCESS`: only executed actions have a line.

    Text of a foreign layout that already follows one of the grammars is accepted. Raises `TrajectoryError` otherwise.
    """
    parts = split_line(line)
    if parts is None and (_GRAMMAR_A.fullmatch(line) or _GRAMMAR_B.fullmatch(line)):
        return line
    if parts is None:
        raise TrajectoryError(f"{line[:100]!r} is not an action line")
    subject, verb, value = _plain(parts[0]), parts[1], _plain(parts[2] or "")
    # Verbs that the schema's dictionary lacks become its nearest one; the description says what was done.
    template = verb_of(verb).grammar
    if not template:
        raise TrajectoryError(f"{line[:100]!r}: the schema has no verb for {verb}")
    action, _, rest = value.partition(" ")
    opened = f" at {_host(rest)}" if action == "new" and rest else f" {rest}" if rest else ""
    action_text = template.format(
        subject=subject,
        target=_target(subject),
        verb=verb.lower(),
        value=value,
        more=f" {value}" if value else "",
        value_or_subject=value or subject,
        host=_host(value),
        tab=action + opened,
    )
    return f"{action_text} | SUCCESS"


def _target(subject: str) -> str:
    """The subject of an action line as a selector: `role=textbox[name="Search"]`, or `page`."""
    if subject in ("page", "element", "form"):
        return "*" if subject == "element" else subject
    name, _, role = subject.rpartition(" ")
    quoted = name.replace('"', "'")
    return f'role={role}[name="{quoted}"]' if name else f"role={role}"


def _url(step: Step) -> str | None:
    """The page's address; for a navigation the schema requires its destination."""
    parts = split_line(step.outcome.line) if step.outcome and step.outcome.line else None
    if parts is None or parts[0] != "navigation" or parts[1] == "BACK":
        return step.url
    address = (parts[2] or "").removeprefix("new ")
    return address if "://" in address else None


def _thought(step: Step) -> str | None:
    return without_surrogates(step.action.thought) or None if step.action else None


def _is_ending(step: Step) -> bool:
    return step.action is not None and step.action.tool in ENDING_TOOLS and bool(step.outcome and step.outcome.ok)


def _screenshot(steps: tuple[Step, ...], step: Step, where: str) -> str:
    """The recorded screenshot of a step.

    While a dialog is open no screenshot can be taken, so the previous step's is used, which shows the same page.
    """
    earlier = steps[: steps.index(step)]
    image = step.screenshot
    while image is None and step.dialog is not None and earlier:
        step, earlier = earlier[-1], earlier[:-1]
        image = step.screenshot
    if image is None:
        raise TrajectoryError(f"step {step.index} has no screenshot", location=where, remedy="run the task again")
    suffix = PurePosixPath(image).suffix
    if suffix.lower() not in IMAGE_SUFFIXES:
        problem = f"step {step.index}: {suffix[:20]!r} is not an image format of the schema"
        raise TrajectoryError(problem, location=where)
    return image


def _plain(text: str) -> str:
    return text.replace("->", "→").translate(_MARKS)


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or address
    except ValueError:
        return address


def check_document(
    document: Any, files: Collection[str], *, folder_name: str | None = None, reference_length: int | None = None
) -> list[RuleViolation]:
    """The problems of a `result.json` with `files` in its `trajectory/`. It is valid if there are none but notes.

    Rules are checked only if the document follows the JSON schema. `reference_length` is the dataset's, if known.
    """
    try:
        parsed = _ResultDocument.model_validate(document)
    except ValidationError as error:
        return [_schema_problem(detail["loc"], detail["msg"]) for detail in error.errors(include_url=False)]
    steps = parsed.action_history
    problems = []
    if folder_name is not None and parsed.task_id != folder_name:
        problems.append(
            RuleViolation(rule="2", text=f"the folder {folder_name!r} should be named by the task_id", note=True)
        )
    if reference_length not in (None, parsed.reference_length):
        text = f"reference_length is {parsed.reference_length}, but {reference_length} in the dataset"
        problems.append(RuleViolation(rule="9", text=text))
    for index, step in enumerate(steps):
        problems.extend(_check_step(index, step, files, is_last=step is steps[-1]))
    return [*problems, *_check_end(steps[-1].action, parsed.agent_final_answer), *_check_whole(steps, files)]


def _schema_problem(place: tuple[int | str, ...], message: str) -> RuleViolation:
    where = ".".join(map(str, place)) or "result.json"
    return RuleViolation(rule=_RULE_OF_KEY.get(str(place[-1]) if place else "", "schema"), text=f"{where}: {message}")


def _check_step(index: int, step: _StepDocument, files: Collection[str], *, is_last: bool) -> Iterator[RuleViolation]:
    where = f"step {index}"
    if step.step != index:
        yield RuleViolation(rule="3", text=f"{where}: its number is {step.step}, its place is {index}")
    if step.screenshot not in files:
        yield RuleViolation(rule="4", text=f"{where}: trajectory/{step.screenshot} does not exist")
    if step.url is None:
        yield RuleViolation(rule="8", text=f"{where}: url should be given", note=True)
    if step.is_end:
        if not is_last:
            yield RuleViolation(rule="6", text=f"{where}: TASK_COMPLETE before the end")
        if step.action_status is not None:
            yield RuleViolation(rule="grammar", text=f"{where}: TASK_COMPLETE takes no status")
        return
    body, status = step.parts
    if step.action_status not in (None, status):
        ends = f"ends in {status}" if status else "has no status at its end"
        yield RuleViolation(rule="7", text=f"{where}: action_status {step.action_status} but the action {ends}")
    if step.verb is None and not step.is_grammar_b:
        yield RuleViolation(rule="grammar", text=f"{where}: {step.action!r:.100} follows neither grammar of actions")
    if step.verb not in (None, "WAIT") and status is None:
        yield RuleViolation(rule="grammar", text=f"{where}: {step.verb} should end in | SUCCESS or | FAILED", note=True)
    if step.verb == "NAVIGATE" and _PARALLEL_URL.search(body):
        yield RuleViolation(rule="8", text=f"{where}: the address belongs in url, not in the action")


def _check_end(action: str, answer: str | None) -> Iterator[RuleViolation]:
    if not action.startswith("TASK_COMPLETE"):
        yield RuleViolation(rule="6", text="the last action must be TASK_COMPLETE -> ANSWER: …")
        return
    is_other = not action.startswith(_COMPLETE) or action.removeprefix(_COMPLETE).split() != (answer or "").split()
    if answer is not None and is_other:
        yield RuleViolation(rule="6", text="agent_final_answer is not the answer of the last action")


def _check_whole(steps: list[_StepDocument], files: Collection[str]) -> Iterator[RuleViolation]:
    names = [step.screenshot for step in steps]
    if names != sorted(names):
        yield RuleViolation(rule="4", text="the screenshots' names do not sort into the order of the steps")
    if len(set(names)) != len(names):
        yield RuleViolation(rule="4", text="two steps name the same screenshot", note=True)
    if extra := set(files) - set(names):
        yield RuleViolation(
            rule="4", text=f"trajectory/ holds {counted(len(extra), 'file')} that no step names", note=True
        )
    acted = [step for step in steps[:-1] if step.verb or step.is_grammar_b]
    if len({step.is_grammar_b for step in acted}) > 1:
        yield RuleViolation(rule="grammar", text="both grammars of actions are used: choose one")


def write(source: Source) -> ExportedTask:
    """The submission of a task. Raises `TrajectoryError`."""
    document = submission(source.trajectory, source.reference_length)
    images = [(recorded, f"trajectory/{name}") for recorded, name in document.screenshots]
    return ExportedTask({"result.json": json_text(document.document)}, images)


def validate_folder(folder: Path, reference_lengths: Mapping[str, int] | None = None) -> dict[str, list[RuleViolation]]:
    """The problems of each submission in `folder`: one task's folder, or a folder of them.

    Raises `ConfigError` when there is no submission in it.
    """
    is_task, is_folder = (folder / "result.json").is_file(), folder.is_dir()
    folders = [folder] if is_task else sorted(path for path in folder.iterdir() if path.is_dir()) if is_folder else []
    if not folders:
        raise ConfigError(f"{folder}: no <task_id>/result.json in it", remedy="give the folder of a submission")
    return {path.name: _validate(path, reference_lengths or {}) for path in folders}


def check(folder: Path, reference_lengths: Mapping[str, int], _settings: Settings) -> FolderCheck:
    """Check a folder of submissions, as a `FormatWriter` does."""
    problems_by_name = validate_folder(folder, reference_lengths)
    messages = [f"{name}: {problem}" for name, problems in problems_by_name.items() for problem in problems]
    bad = sum(any(not problem.note for problem in problems) for problems in problems_by_name.values())
    return FolderCheck(messages, len(problems_by_name) - bad, len(problems_by_name))


def _validate(folder: Path, reference_lengths: Mapping[str, int]) -> list[RuleViolation]:
    try:
        document = read_json(folder / "result.json")
    except FileNotFoundError:
        return [RuleViolation(rule="schema", text="result.json is missing")]
    except (OSError, ValueError) as error:
        return [RuleViolation(rule="schema", text=f"result.json cannot be read: {reason_of(error)}")]
    images = folder / "trajectory"
    files = {path.name for path in images.iterdir() if path.is_file()} if images.is_dir() else set()
    known = reference_lengths.get(folder.name)
    return check_document(document, files, folder_name=folder.resolve().name, reference_length=known)


WRITER = FormatWriter(write=write, check=check)
FORMAT = Format(writer=WRITER)

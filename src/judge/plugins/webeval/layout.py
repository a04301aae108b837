"""Reads and writes the trajectory folders of webeval, Fara's evaluation framework.

Source: `webeval/README.md`, `webeval/trajectory.py` and `fara_agent.py` of microsoft/fara. A folder contains
`web_surfer.log` (one JSON object per line), `<task_id>_final_answer.json`, the screenshots that it lists, `times.json`,
`core.log` and `scores/*.json`.

The log has two dialects: events with `action` and `arguments`, or only messages `Thought #1: …` and `Action #1:
executing tool … with arguments {…}`. The tool's loader reads the first in two modes, one of which keeps only events
of the source `WebSurfer`; our output works with both. Screenshots are numbered from 0, with one more file than there
are actions, or from 1, so the answer file's list is used, not the names. An answer `<no_answer>` of a run not
aborted means that the step budget was exceeded.

A run without any action failed; so did one of WebTailBench whose last action was not `terminate`. Older logs have
events of other components: messages, which become thoughts, and the tokens of each call.

Its analysis (`post_eval_analysis.py`) reads one score per folder, counts actions and their times in `core.log`, and
counts steps in `web_surfer.log`. Our output has all three, below `runs/<system>/<model>/<user>/<benchmark>/<run>/traj`.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from judge.plugins.webeval.recorded import read_lines, usage_of
from judge.plugins.webeval.scores import score_files, score_texts, verdicts
from judge.records.steps import Outcome, Step, StopReason
from judge.records.verdicts import Verdict
from judge.results.categories import failure_categories
from judge.trajectory.foreign import (
    MAX_FOREIGN_STEPS,
    foreign_task,
    from_steps,
    local_name,
    plain,
    read_document,
    read_object,
)
from judge.trajectory.formats import ExportedTask, Format, FormatReader, FormatWriter, Source, turns
from judge.trajectory.paths import inside, usable_id
from judge.trajectory.record import JUDGED_ENDS, Attempt, Trajectory
from shared.claims import ClaimedUsage
from shared.errors import TrajectoryError
from shared.fields import as_mapping, without_none
from shared.files import MAX_FILE_BYTES, read_errors, read_file
from shared.models import Action, Record
from shared.strict_json import parse_json
from shared.text import clip, one_line, split_line, without_surrogates

NO_ANSWER = "<no_answer>"
_NONE = (NO_ANSWER, None, "")
_ANSWER = "_answer.json"
_LOG = "web_surfer.log"
_TASK_DATA = "task_data.json"
_CORE_LOG = "core.log"
# What the verifier notes of a recording, and our category of failures for it.
_FLAGS = MappingProxyType({"encountered_captcha": "blocked", "web_surfing_stalled": "loop"})
# The environment failed; without an answer, the attempt was aborted.
_FAILED = "did_web_surfing_fail"
_SOURCE = "WebSurfer"
_ERROR = "[ERROR]"
# Keys of `arguments` besides the tool's parameters; a parameter of that name gets an underscore.
_NOT_PARAMS = ("action", "thoughts")
_ENDING = "terminate"
ENDINGS = (_ENDING, "stop", "stop_execution", "stop_and_answer_question")
_MAX_TEXT_CHARS = 20_000
_CALL = "LLMCallEvent"
_MESSAGES = ("OrchestrationEvent", "AgentEvent")
_WEBTAILBENCH = "webtailbench"


class _AnswerFile(BaseModel):
    """The fields read from an answer file."""

    final_answer: str | None = NO_ANSWER
    env_state_json: str | None = NO_ANSWER
    env_state_raw: str | None = NO_ANSWER
    screenshots: tuple[str, ...] = Field(default=(), max_length=MAX_FOREIGN_STEPS)
    is_aborted: bool = False
    token_usage: dict[str, Any] | None = None


class _Event(NamedTuple):
    """One event of the log as a step without an index, and the text that webeval's evaluators read for it.

    In our exports, actions that were not executed are events as well; their outcome is not `ok`.
    """

    step: Step
    text: str


class Export(Record):
    """One task's folder. `texts` are all files but the images, which are copied: `screenshots` has (recorded, name)."""

    texts: dict[str, str]
    screenshots: tuple[tuple[str, str], ...]


def answer_files(folder: Path) -> list[Path]:
    """The answer files in a folder; a folder that has any is a trajectory of this layout."""
    paths = sorted(folder.glob(f"*{_ANSWER}"))
    # Datasets have files with such names as well.
    return paths if any(path.name.endswith(f"_final{_ANSWER}") for path in paths) or (folder / _LOG).exists() else []


def _files(folder: Path) -> list[Path]:
    """What identifies a folder. A log alone is enough, so that the error can name the missing answer file."""
    return answer_files(folder) or [path for path in (folder / _LOG,) if path.is_file()]


def task_id_of(folder: Path) -> str:
    """The task's id from the answer file's name, unchanged."""
    answers = answer_files(folder)
    return answers[0].name.removesuffix(_ANSWER).removesuffix("_final") if answers else folder.name


def load(folder: Path) -> Trajectory:
    """Read a task's folder. Raises `TrajectoryError`, which names the file and what is wrong with it."""
    paths = answer_files(folder)
    if len(paths) != 1:
        raise TrajectoryError(f"{len(paths)} answer files (*{_ANSWER}), expected one", location=str(folder))
    answer = read_document(folder, paths[0].name, _AnswerFile)
    # webeval's rubric verifier writes a file with the task's text.
    data = read_object(folder, _TASK_DATA) if (folder / _TASK_DATA).exists() else {}
    known = {"task_id": usable_id(task_id_of(folder)), "task": data.get("task_summary")}
    task = foreign_task(folder, known, source=paths[0])
    names = list(map(local_name, answer.screenshots))
    screenshots = [inside(folder, name, source=paths[0]) for name in names]
    log_entries = list(read_lines(folder, _LOG))
    events = _events(log_entries)
    stop_reason = _stop_reason(answer, data)
    problem = _participants_fault(folder, events) if stop_reason == "finished" else None
    error = None if stop_reason == "finished" else _last_error(folder)
    return from_steps(
        folder,
        task,
        _steps(events, names) if events else (),
        screenshots=screenshots,
        actions=[text for step, text in events if step.outcome and step.outcome.ok],
        state=next((each for each in (answer.env_state_json, answer.env_state_raw) if each not in _NONE), None),
        period=_times(folder),
        # Without actions there are no steps, and the last page is all that can be shown.
        final_look=None if events or not names else Step(index=0, url="", title="", screenshot=names[-1]),
        stop_reason="participant_error" if problem else stop_reason,
        final_answer=None if answer.final_answer in _NONE else answer.final_answer,
        error=problem or error,
        blame="participant" if problem else None,
        claimed_usage=_usage(answer, log_entries),
        recorded_flags={
            category: f"{flag}, as its own program recorded it"
            for flag, category in _FLAGS.items()
            if data.get(flag) is True
        },
    )


def _times(folder: Path) -> tuple[float, float]:
    """Start and end in seconds since 1970; zeros if unknown."""
    value = read_object(folder, "times.json") if (folder / "times.json").exists() else {}
    start, end = (value.get(key) for key in ("start_time", "end_time"))
    # Larger numbers would be milliseconds.
    is_known = all(isinstance(moment, int | float) and 0 <= moment < 1e11 for moment in (start, end))
    return (float(start or 0), float(end or 0)) if is_known else (0.0, 0.0)


def _stop_reason(answer: _AnswerFile, data: Mapping[str, Any]) -> StopReason:
    is_failed = data.get(_FAILED) is True and answer.final_answer in _NONE
    if answer.is_aborted or is_failed:
        return "environment_fault"
    return "max_steps" if answer.final_answer in (NO_ANSWER, None) else "finished"


def _participants_fault(folder: Path, events: list[_Event]) -> str | None:
    """Why the tool scores an attempt 0 without asking its verifier."""
    if not events:
        return "no action in the trajectory"
    last = events[-1].step.action
    if _is_webtailbench(folder) and (last is None or last.tool not in ENDINGS):
        return f'the last action must be "{_ENDING}"'
    return None


def _is_webtailbench(folder: Path) -> bool:
    """By the benchmark's part of the path, or by its verifier's files, which no other benchmark has."""
    is_named = any(part.lower().startswith(_WEBTAILBENCH) for part in folder.resolve().parts)
    return is_named or any(path.name.startswith("mmrubric_") for path in score_files(folder))


def _usage(answer: _AnswerFile, log_entries: list[dict[str, Any]]) -> ClaimedUsage | None:
    """The agent's tokens; in older logs, each call has its own."""
    calls = {str(number): entry for number, entry in enumerate(log_entries) if entry.get("type") == _CALL}
    return usage_of(answer.token_usage or calls)


def _last_error(folder: Path) -> str | None:
    """The last error in `core.log`, in which tracebacks and other lines follow an error's first line."""
    try:
        path = inside(folder, _CORE_LOG, max_bytes=MAX_FILE_BYTES)
        lines = read_file(path).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError, TrajectoryError):
        return None
    error_line = next((line for line in reversed(lines) if _ERROR in line), None)
    return error_line and one_line(error_line.partition(_ERROR)[2].partition(" - ")[2] or error_line, 2000)


def _events(log_entries: list[dict[str, Any]]) -> list[_Event]:
    if any(event.get("action") is not None for event in log_entries):
        # Events of other sources only comment on the agent's actions.
        acting = [event for event in _with_messages(log_entries) if event.get("action") is not None or "tool" in event]
        of_surfer = [event for event in acting if event.get("source") == _SOURCE]
        events = [_structured(event) for event in of_surfer or acting]
    else:
        message_events = [_event_in_message(str(event.get("message") or "")) for event in log_entries]
        events = [event for event in message_events if event is not None] or [
            _structured(e) for e in log_entries if "tool" in e
        ]
    return events


def _with_messages(log_entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The log's objects; an action without a thought has what another component said before it."""
    said: list[str] = []
    for entry in log_entries:
        arguments = as_mapping(entry.get("arguments"))
        if entry.get("type") in _MESSAGES:
            said.append(str(entry.get("message") or ""))
        elif entry.get("action") is not None and said:
            thought = arguments.get("thoughts") or clip("\n".join(said), _MAX_TEXT_CHARS)
            entry, said = {**entry, "arguments": {**arguments, "thoughts": thought}}, []
        yield entry


def _structured(event: Mapping[str, Any]) -> _Event:
    """An event with `action` and `arguments`, or one that our export wrote for an action not executed."""
    call_arguments, message = event.get("arguments"), str(event.get("message") or "")
    arguments = dict(call_arguments) if isinstance(call_arguments, dict) else {}
    if (action := event.get("action")) is not None:
        # If a function call wraps the action, `arguments` names the actual one.
        arguments.setdefault("action", str(action))
    event_made = _event(arguments, message if split_line(message) else None)
    url, tool, screenshot = (
        value if isinstance(value := event.get(key), str) else None for key in ("url", "tool", "screenshot")
    )
    changes: dict[str, Any] = {"url": url or "", "screenshot": screenshot}
    if tool is not None and event_made.step.action is not None:
        # An unreadable reply named no tool.
        changes["action"] = event_made.step.action.model_copy(update={"tool": tool}) if tool else None
    if action is None:
        changes["outcome"] = Outcome(ok=False, message=message)
    return event_made._replace(step=event_made.step.model_copy(update=changes))


def _event_in_message(message: str) -> _Event | None:
    """An action in the messages-only dialect; `None` for any other message."""
    thought, mark, rest = message.partition("\nAction #")
    thought, text = thought.partition("Thought #")[2], rest.partition("with arguments")[2]
    if not mark or not thought:
        return None
    try:
        arguments = parse_json(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        # webeval's loader drops such an action, but it was executed.
        arguments = {
            "action": rest.partition("executing tool '")[2].partition("'")[0] or "unknown",
            "text": text.strip(),
        }
    return _event(arguments | {"thoughts": thought.partition(":")[2].strip()}, None)


def _event(arguments: Mapping[str, Any], line: str | None) -> _Event:
    """An action by its arguments. Its text is our action line, or the text that webeval gives to its evaluators."""
    tool, thought = str(arguments.get("action", "unknown")), arguments.get("thoughts")
    rest = {key: value for key, value in arguments.items() if key != "thoughts"}
    action = Action(
        tool=tool,
        params={_param(key): value for key, value in rest.items() if key != "action"},
        thought=thought if isinstance(thought, str) else "",
    )
    done = line or action_line(tool, arguments) or one_line(json.dumps(rest, ensure_ascii=False), 500)
    step = Step(index=0, url="", title="", action=action, outcome=Outcome(ok=True, line=done))
    return _Event(step, line or json.dumps(rest))


def _param(key: str) -> str:
    return key[:-1] if key[:-1] in _NOT_PARAMS and key.endswith("_") else key


def action_line(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """A known action as one of our action lines."""

    def first_text(*keys: str) -> str:
        return plain(next((arguments[key] for key in keys if key in arguments), ""))

    match arguments.get("coordinate"):
        case [int() | float() as x, int() | float() as y] if max(abs(x), abs(y)) < 1e6:
            point = f" ({x:.0f}, {y:.0f})"
        case _:
            point = ""
    match tool:
        case "left_click" | "click":
            return f"<page> -> CLICK{point}"
        case "mouse_move" | "hover":
            return f"<page> -> HOVER{point}"
        case "type" | "input_text":
            return f"<page> -> TYPE{point}: {first_text('text', 'text_value')}"
        case "key" | "keypress":
            return f"<page> -> PRESS: {first_text('keys')}"
        case "scroll":
            return f"<page> -> SCROLL: {first_text('pixels')}"
        case "visit_url":
            return f"<navigation> -> GOTO: {first_text('url')}"
        case "history_back":
            return "<navigation> -> BACK"
        case "wait" | "sleep":
            return f"<page> -> WAIT: {first_text('time', 'duration')} s"
    return "<page> -> FINISH" if tool in ENDINGS else None


def _steps(events: list[_Event], names: list[str]) -> tuple[Step, ...]:
    """Each event's step, with the screenshot that it names or the one at its index; then the other screenshots."""
    image_names = {event.step.screenshot for event in events} & set(names)
    free = [] if image_names else names
    rest = [name for name in names if name not in image_names] if image_names else names[len(events) :]
    steps = []
    for place, (step, _) in enumerate(events):
        screenshot = step.screenshot if step.screenshot in image_names else free[place] if place < len(free) else None
        steps.append(step.model_copy(update={"index": place, "screenshot": screenshot}))
    steps += [Step(index=place, url="", title="", screenshot=name) for place, name in enumerate(rest, len(steps))]
    return tuple(steps)


def export(trajectory: Trajectory, verdicts: Mapping[str, Verdict], counted: Verdict | None = None) -> Export:
    """The folder of one trajectory, with `verdicts` by judge id as its scores. Raises `TrajectoryError`.

    `counted` is the verdict that counts; its score gets a name that webeval's analysis reads. webeval's loader refuses
    unknown keys in the answer file, but accepts any in the log. A step whose action was not executed becomes an event
    without `action`, which both of its modes skip. A folder recorded in this layout keeps its names, scores
    and logs.
    """
    attempt = trajectory.attempt
    recorded = trajectory.folder if trajectory.is_foreign and answer_files(trajectory.folder) else None
    pages = [str(page.screenshot) for page in attempt.observations if page.screenshot]
    if recorded:
        pages = [shot.relative_to(trajectory.folder).as_posix() for shot in trajectory.screenshots]
    screenshots = [
        (name, name if recorded else f"screenshot{place}{PurePosixPath(name).suffix.lower()}")
        for place, name in enumerate(pages)
    ]
    names = dict(screenshots)
    times = {
        "start_time": attempt.started_at,
        "end_time": attempt.ended_at,
        "duration": attempt.ended_at - attempt.started_at,
    }
    texts = {
        _LOG: "".join(
            f"{json.dumps(event)}\n" for event in _log_events(attempt, names, keeps_names=recorded is not None)
        ),
        "times.json": json.dumps(times),
        _CORE_LOG: _core_log(attempt, counted),
    }
    if recorded:
        texts |= _kept_texts(recorded, list(names.values()))
    else:
        answer = _answer(trajectory, attempt, names)
        texts[f"{trajectory.task.task_id}_final{_ANSWER}"] = json.dumps(answer, indent=2)
        texts[_TASK_DATA] = json.dumps(_task_data(trajectory, counted), indent=2)
    texts |= score_texts(verdicts, counted, attempt.final_answer, names=texts.keys())
    return Export(
        texts={name: without_surrogates(text) for name, text in texts.items()}, screenshots=tuple(screenshots)
    )


def _answer(trajectory: Trajectory, attempt: Attempt, names: Mapping[str, str]) -> dict[str, Any]:
    usage = attempt.claimed_usage
    return {
        "final_answer": (attempt.final_answer or "") if attempt.stop_reason in JUDGED_ENDS else NO_ANSWER,
        **dict.fromkeys(
            ("env_state_json", "env_state_raw"), (trajectory.texts and trajectory.texts.state) or NO_ANSWER
        ),
        "screenshots": list(names.values()),
        "is_aborted": trajectory.is_aborted,
        "is_rel_paths": True,
        "token_usage": {"agent": {"prompt_tokens": usage.input, "completion_tokens": usage.output}} if usage else {},
    }


def _task_data(trajectory: Trajectory, counted: Verdict | None) -> dict[str, Any]:
    attempt = trajectory.attempt.model_copy(update={"verdict": counted})
    found = {category for category, _ in failure_categories(attempt, counted)}
    flags = {flag: category in found for flag, category in _FLAGS.items()}
    return {"task_summary": trajectory.task.task, **flags, _FAILED: attempt.is_aborted}


def _kept_texts(folder: Path, screenshots: list[str]) -> dict[str, str]:
    """The files of a folder in this layout written again under their names, except the log."""
    (path,) = answer_files(folder)
    # Absolute paths named files of the recording machine.
    answer = read_object(folder, path.name) | {"screenshots": screenshots, "is_rel_paths": True}
    texts = {path.name: json.dumps(answer, indent=2)}
    scores = [f"scores/{score.name}" for score in score_files(folder)]
    for name in ("times.json", _CORE_LOG, _TASK_DATA, *scores):
        if (folder / name).exists():
            file = inside(folder, name, source=folder / name, max_bytes=MAX_FILE_BYTES)
            with read_errors(file, kind=TrajectoryError):
                texts[name] = read_file(file).decode("utf-8", "replace")
    return texts


def _log_events(attempt: Attempt, names: Mapping[str, str], *, keeps_names: bool) -> Iterator[dict[str, Any]]:
    """The log's events; `keeps_names`: the actions have webeval's names already."""
    for step, began, line, text, _ in turns(attempt):
        action = step.action or Action(tool="")
        is_end = line is not None and line.endswith(("-> FINISH", "-> CLOSE")) and not keeps_names
        tool = _ENDING if is_end else action.tool
        params = {f"{key}_" if key in _NOT_PARAMS else key: value for key, value in action.params.items()}
        yield {
            "timestamp": datetime.fromtimestamp(began, UTC).isoformat(),
            "type": "OtherEvent" if line is None else "WebSurferEvent",
            "source": _SOURCE,
            "message": text,
            "url": step.url,
            **without_none(action=None if line is None else tool),
            "arguments": {**params, "action": tool, "thoughts": action.thought},
            # Our keys, for facts that cannot be derived from the order of the events.
            "tool": action.tool,
            **without_none(screenshot=names[step.screenshot] if step.screenshot else None),
        }


def _core_log(attempt: Attempt, counted: Verdict | None) -> str:
    """Start, executed actions, cause, end and evaluation.

    Without texts of participants or pages, which could look like errors.
    """
    task_id = attempt.task.task_id
    actions = [
        f"{_stamp(began)} [INFO] wabe - WebSurferEvent(source='{_SOURCE}', action='{usable_id(step.action.tool)}')"
        for step, began, line, *_ in turns(attempt)
        if step.action is not None and line is not None
    ]
    cause = one_line(attempt.cause or "", 2000) if attempt.stop_reason not in JUDGED_ENDS else ""
    error = [f"{_stamp(attempt.ended_at)} {_ERROR} wabe - {cause}"] if cause else []
    return "\n".join(
        [
            f"{_stamp(attempt.started_at)} [INFO] wabe - [Execution {task_id}] Start",
            *actions,
            *error,
            f"{_stamp(attempt.ended_at)} [INFO] wabe - [Execution {task_id}] Completed",
            *_evaluation(attempt, counted),
            "",
        ]
    )


def _evaluation(attempt: Attempt, counted: Verdict | None) -> Iterator[str]:
    if counted is not None:
        judged_at = attempt.ended_at + (attempt.judge_s or 0.0)
        scored = f"score={int(counted.outcome == 'success')}, duration={attempt.ended_at - attempt.started_at}"
        prefix = f"[INFO] wabe - [Evaluation {attempt.task.task_id}]"
        yield f"{_stamp(attempt.ended_at)} {prefix} Start"
        yield f"{_stamp(judged_at)} {prefix} Completed: {scored}"


def _stamp(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S},{int(moment * 1000) % 1000:03d}"


def write(source: Source) -> ExportedTask:
    """A task of a run as a folder of this layout. Raises `TrajectoryError`."""
    trajectory = source.trajectory
    task = trajectory.task.model_copy(update={"task_id": source.name})
    document = export(trajectory.as_task(task), source.verdicts(), source.counted)
    folder = trajectory.folder.resolve().name
    # A folder of another tool keeps its name, unless it had to be changed to be unique.
    keeps_name = trajectory.is_foreign and usable_id(folder) == source.name
    return ExportedTask(document.texts, document.screenshots, name=folder if keeps_name else "")


def folder_in(run: Mapping[str, Any]) -> str:
    """Where the tool's analysis expects the tasks of a run, below the output."""
    participants = as_mapping(run.get("participants"))
    scenario = as_mapping(run.get("scenario")).get("name")
    names = ("wabe", next(iter(participants), "participant"), "wabe", scenario or "tasks", run.get("run_id") or "0")
    return "/".join(("runs", *(usable_id(str(name)) for name in names), "traj"))


# webeval stores the tasks' texts separately.
WRITER = FormatWriter(write=write, with_tasks=True, folder_in=folder_in)
FORMAT = Format(reader=FormatReader(files=_files, load=load, verdicts=verdicts, task_id=task_id_of), writer=WRITER)

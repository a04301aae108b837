"""The rules of the Online-Mind2Web submission schema v2, as checks on a document. Pure.

Source: `data/schema_v2` of the Online-Mind2Web repository: its JSON schema, its action dictionary and the nine rules
that consumers enforce. Rules 8 and 9 can be checked only as far as a document and the dataset tell.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from judge.trajectory.formats.mind2web_v2 import COMPLETE, SCHEMA_VERSION
from shared.models import Record

_TASK_ID = re.compile(r"[A-Za-z0-9_-]+")
_SCREENSHOT = re.compile(r"(?:\d{4}|\d+_full_screenshot_\d+)\.(?:png|jpg|jpeg|webp)")
_DOCUMENT_KEYS = ("schema_version", "task", "task_id", "agent_final_answer", "reference_length", "action_history")
_STEP_KEYS = ("step", "screenshot", "url", "action", "action_status", "thought")
_REQUIRED_STEP_KEYS = ("step", "screenshot", "action", "thought")
_STATUS = re.compile(r"(.*) \| (SUCCESS|FAILED)", re.DOTALL)
_PAGE_VERBS = "NAVIGATE|GO_BACK|GO_FORWARD|REFRESH|SCROLL|WAIT"
_VERBS = f"{_PAGE_VERBS}|CLICK|TYPE|HOVER|PRESS_KEY|SELECT"
_GRAMMAR_A = re.compile(rf"(?:(?P<lead>{_VERBS}) .+? -> .+|.+? -> (?P<inner>{_VERBS}) -> .+)", re.DOTALL)
_GRAMMAR_B = re.compile(
    r"(?:click_at|type_at|scroll|hover|wait|press_key|select_option|navigate|go_back|go_forward)\(.*\)", re.DOTALL
)
_NO_STATUS_NEEDED = ("WAIT",)
_PARALLEL_URL = re.compile(r"\bURL: \S* ?-> ")


class Problem(Record):
    """One broken rule. `rule` is `schema`, `grammar`, or the number of the rule; `note` marks mere advice."""

    rule: str
    text: str
    note: bool = False

    def __str__(self) -> str:
        return f"{'note' if self.note else f'rule {self.rule}'}: {self.text}"


def check_document(
    document: Any,
    files: Collection[str],
    *,
    folder_name: str | None = None,
    reference_length: int | None = None,
) -> list[Problem]:
    """Every problem of a `result.json` with `files` in its `trajectory/`; only notes, or nothing: it is valid.

    `reference_length` is the dataset's, when it is known.
    """
    if not isinstance(document, Mapping):
        return [Problem(rule="schema", text=f"a JSON object is expected, not {type(document).__name__}")]
    problems = list(_check_top(document, reference_length))
    if folder_name is not None and document.get("task_id") != folder_name:
        problems.append(Problem(rule="2", text=f"the folder {folder_name!r} should bear the task_id", note=True))
    history = document.get("action_history")
    if not isinstance(history, list) or not history:
        return [*problems, Problem(rule="schema", text="action_history must be a list with at least one step")]
    steps = [step if isinstance(step, Mapping) else {} for step in history]
    for index, step in enumerate(history):
        if not isinstance(step, Mapping):
            problems.append(Problem(rule="schema", text=f"step {index} is no object"))
        else:
            problems.extend(_check_step(index, step, files, is_last=index == len(history) - 1))
    return [*problems, *_check_end(document, steps), *_check_whole(steps, files)]


def _check_top(document: Mapping[str, Any], reference_length: int | None) -> Iterator[Problem]:
    yield from _check_keys("result.json", document, _DOCUMENT_KEYS, _DOCUMENT_KEYS)
    if document.get("schema_version") != SCHEMA_VERSION:
        yield Problem(rule="1", text=f"schema_version must be {SCHEMA_VERSION!r}")
    if not isinstance(document.get("task"), str) or not document["task"]:
        yield Problem(rule="schema", text="task must be a text that is not empty")
    task_id = document.get("task_id")
    if not isinstance(task_id, str) or not _TASK_ID.fullmatch(task_id):
        yield Problem(rule="2", text="task_id must hold letters, digits, '_' and '-' only, with no folder before it")
    if not isinstance(document.get("agent_final_answer"), str | None):
        yield Problem(rule="schema", text="agent_final_answer must be a text or null")
    length = document.get("reference_length")
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        yield Problem(rule="schema", text="reference_length must be a whole number from 1 on")
    elif reference_length is not None and length != reference_length:
        yield Problem(rule="9", text=f"reference_length is {length}, the human's in the dataset is {reference_length}")


def _check_step(index: int, step: Mapping[str, Any], files: Collection[str], *, is_last: bool) -> Iterator[Problem]:
    where = f"step {index}"
    yield from _check_keys(where, step, _STEP_KEYS, _REQUIRED_STEP_KEYS)
    number = step.get("step")
    if number != index or isinstance(number, bool | float):
        yield Problem(rule="3", text=f"{where}: its number is {number!r:.40}, its place is {index}")
    name = step.get("screenshot")
    if not isinstance(name, str) or not _SCREENSHOT.fullmatch(name):
        yield Problem(rule="schema", text=f"{where}: screenshot {name!r:.80} is no name such as 0000.png")
    elif name not in files:
        yield Problem(rule="4", text=f"{where}: trajectory/{name} does not exist")
    if not isinstance(step.get("thought"), str | None):
        yield Problem(rule="5", text=f"{where}: thought must be a text or null")
    if not isinstance(step.get("url"), str | None):
        yield Problem(rule="schema", text=f"{where}: url must be a text or null")
    elif step.get("url") is None:
        yield Problem(rule="8", text=f"{where}: url should be given", note=True)
    action = step.get("action")
    if not isinstance(action, str) or not action.strip():
        yield Problem(rule="schema", text=f"{where}: action must be a text that is not empty")
        return
    yield from _check_action(where, action, step, is_last=is_last)


def _check_action(where: str, action: str, step: Mapping[str, Any], *, is_last: bool) -> Iterator[Problem]:
    status = step.get("action_status")
    if status not in (None, "SUCCESS", "FAILED"):
        yield Problem(rule="schema", text=f"{where}: action_status must be SUCCESS, FAILED or null")
    if action.startswith("TASK_COMPLETE"):
        if not is_last:
            yield Problem(rule="6", text=f"{where}: TASK_COMPLETE stands before the end")
        if status is not None:
            yield Problem(rule="grammar", text=f"{where}: TASK_COMPLETE takes no status")
        return
    match = _STATUS.fullmatch(action)
    body, suffix = (match[1], match[2]) if match else (action, None)
    if status in ("SUCCESS", "FAILED") and status != suffix:
        ends = f"ends in {suffix}" if suffix else "has no status at its end"
        yield Problem(rule="7", text=f"{where}: action_status {status} but the action {ends}")
    verb = _verb(body)
    if verb is None and not _GRAMMAR_B.fullmatch(body):
        yield Problem(rule="grammar", text=f"{where}: {action!r:.100} follows neither grammar of actions")
    if verb is not None and suffix is None and verb not in _NO_STATUS_NEEDED:
        yield Problem(rule="grammar", text=f"{where}: {verb} should end in | SUCCESS or | FAILED", note=True)
    if verb == "NAVIGATE" and _PARALLEL_URL.search(body):
        yield Problem(rule="8", text=f"{where}: the address belongs into url, not into the action")


def _check_end(document: Mapping[str, Any], steps: list[Mapping[str, Any]]) -> Iterator[Problem]:
    action = steps[-1].get("action")
    if not isinstance(action, str) or not action.startswith("TASK_COMPLETE"):
        yield Problem(rule="6", text="the last action must be TASK_COMPLETE -> ANSWER: …")
        return
    answer = document.get("agent_final_answer")
    if isinstance(answer, str):
        said = action.removeprefix(COMPLETE) if action.startswith(COMPLETE) else None
        if said is None or said.split() != answer.split():
            yield Problem(rule="6", text="agent_final_answer is not the answer of the last action")


def _check_whole(steps: list[Mapping[str, Any]], files: Collection[str]) -> Iterator[Problem]:
    names = [name for step in steps if isinstance(name := step.get("screenshot"), str)]
    if names != sorted(names):
        yield Problem(rule="4", text="the screenshots' names do not sort into the order of the steps")
    if len(set(names)) != len(names):
        yield Problem(rule="4", text="two steps name the same screenshot", note=True)
    if extra := sorted(set(files) - set(names)):
        yield Problem(rule="4", text=f"trajectory/ holds {len(extra)} files that no step names", note=True)
    bodies = [_body(step["action"]) for step in steps[:-1] if isinstance(step.get("action"), str)]
    grammars = {is_b for body in bodies if (is_b := _grammar_is_b(body)) is not None}
    if len(grammars) > 1:
        yield Problem(rule="grammar", text="both grammars of actions are used: choose one")


def _check_keys(
    where: str, value: Mapping[str, Any], known: Collection[str], required: Collection[str]
) -> Iterator[Problem]:
    for key in required:
        if key not in value:
            yield Problem(rule="5" if key == "thought" else "schema", text=f"{where}: the key {key} is missing")
    for key in value:
        if key not in known:
            yield Problem(rule="schema", text=f"{where}: the key {key!r:.60} is not known")


def _body(action: str) -> str:
    match = _STATUS.fullmatch(action)
    return match[1] if match else action


def _verb(body: str) -> str | None:
    match = _GRAMMAR_A.fullmatch(body)
    return (match["lead"] or match["inner"]) if match else None


def _grammar_is_b(body: str) -> bool | None:
    """Whether the action is of grammar B; `None` when it is of neither."""
    if _verb(body) is not None:
        return False
    return True if _GRAMMAR_B.fullmatch(body) else None

"""Our trajectories as documents of the Online-Mind2Web submission schema v2. Pure.

Source: `data/schema_v2` of the Online-Mind2Web repository. A step names its own screenshot, which shows the page right
before the action, as ours do. Actions are written in that schema's grammar A::

    CLICK role=link[name="Help"] -> click the Help link | SUCCESS
    page -> NAVIGATE -> go to example.com | SUCCESS
    TASK_COMPLETE -> ANSWER: 42

Only facts are written: what the judge recorded as carried out. Replies that could not be read and actions that failed
left no fact, so they are left out; the last screenshot before them stays with the step that follows.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.models import Record, Step
from shared.protocol import ENDING_TOOLS
from shared.text import split_line, without_surrogates

SCHEMA_VERSION = "online-mind2web-v2"
COMPLETE = "TASK_COMPLETE -> ANSWER:"
NO_ANSWER = "(none given)"
# What stands in an action must not pass for one of the grammar's own marks.
_MARKS = str.maketrans({"|": "¦"})
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".webp"})


class Submission(Record):
    """One task's `result.json` and, for each step, which recorded screenshot becomes which file of `trajectory/`."""

    document: dict[str, Any]
    screenshots: tuple[tuple[str, str], ...]


def submission(trajectory: Trajectory, reference_length: int | None = None) -> Submission:
    """The submission of one of our own trajectories. `reference_length` (the human's) goes before the task's own.

    Raises `TrajectoryError` when the schema cannot hold it: aborted, no reference length, a step without a screenshot.
    """
    task, folder = trajectory.task, trajectory.folder
    length = reference_length or task.reference_length
    if trajectory.is_aborted:
        raise TrajectoryError(f"{folder}: the episode was aborted", remedy="run the task again")
    if length is None:
        raise TrajectoryError(
            f"{folder}: the human reference length is not known",
            remedy="give reference_length in the scenario, or --dataset with the dataset's file",
        )
    if not trajectory.steps:
        raise TrajectoryError(f"{folder}: there is no step to submit", remedy="run the task again")
    acted = [(step, action_v2(step.outcome.line)) for step in trajectory.steps if step.outcome and step.outcome.line]
    history = [_step(step, action) for step, action in acted if not _is_ending(step)]
    last = trajectory.steps[-1]
    answer = None if trajectory.final_answer is None else without_surrogates(trajectory.final_answer)
    history.append(
        {
            "url": last.url,
            "action": f"{COMPLETE} {NO_ANSWER if answer is None else ' '.join(answer.split())}".rstrip(),
            "action_status": None,
            "thought": _thought(last) if _is_ending(last) else None,
        }
    )
    sources = [step for step, _ in acted if not _is_ending(step)] + [last]
    names = [_screenshot(trajectory.steps, step, index, str(folder)) for index, step in enumerate(sources)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "task": task.task,
        "task_id": task.task_id,
        "agent_final_answer": answer,
        "reference_length": length,
        "action_history": [
            {"step": index, "screenshot": name, **entry}
            for index, (entry, (_, name)) in enumerate(zip(history, names, strict=True))
        ],
    }
    return Submission(document=document, screenshots=tuple(names))


def action_v2(line: str) -> str:
    """One of our action lines in grammar A, with its status. Only what was carried out has a line: `SUCCESS`.

    Raises `TrajectoryError` for a text that is no action line.
    """
    parts = split_line(line)
    if parts is None:
        raise TrajectoryError(f"{line[:100]!r} is no action line")
    subject, verb, value = parts
    words = _plain(value or "")
    base = verb.rpartition(" ")[2] if verb.endswith("CLICK") else verb
    write = _VERBS.get(base)
    if write is None:
        raise TrajectoryError(f"{line[:100]!r}: no verb of the schema stands for {verb}")
    return f"{write(_plain(subject), verb.lower(), words)} | SUCCESS"


def target_v2(subject: str) -> str:
    """The subject of an action line as a selector: `role=textbox[name="Search"]`, or `page`."""
    if subject in ("page", "element", "form"):
        return {"element": "*"}.get(subject, subject)
    name, _, role = subject.rpartition(" ")
    quoted = name.replace('"', "'")
    return f'role={role}[name="{quoted}"]' if name else f"role={role}"


def _click(subject: str, verb: str, words: str) -> str:
    return f"CLICK {target_v2(subject)} -> {verb} the {subject}{f' {words}' if words else ''}"


def _type(subject: str, verb: str, words: str) -> str:
    return f"TYPE {target_v2(subject)} -> type '{words}'" + (" and press Enter" if verb.endswith("enter") else "")


def _navigate(_subject: str, _verb: str, words: str) -> str:
    return f"page -> NAVIGATE -> go to {_host(words)}"


def _tab(_subject: str, _verb: str, words: str) -> str:
    action, _, rest = words.partition(" ")
    what = f" at {_host(rest)}" if action == "new" and rest else f" {rest}" if rest else ""
    return f"page -> NAVIGATE -> tab: {action}{what}"


def _key_for_dialog(_subject: str, _verb: str, words: str) -> str:
    return f"PRESS_KEY page -> answer the dialog: {words}"


def _observe(subject: str, verb: str, words: str) -> str:
    return f"WAIT page -> {verb} {words or subject}"


# Verbs that the schema's dictionary lacks are written as the nearest one; the description says what was done.
_VERBS: Mapping[str, Callable[[str, str, str], str]] = MappingProxyType(
    {
        "GOTO": _navigate,
        "TAB": _tab,
        "BACK": lambda _s, _v, _w: "page -> GO_BACK -> return to the previous page",
        "CLICK": _click,
        "DRAG": lambda subject, _v, words: f"CLICK {target_v2(subject)} -> drag the {subject} {words}",
        "TYPE": _type,
        "TYPE AND ENTER": _type,
        "FILL": lambda subject, _v, words: f"TYPE {target_v2(subject)} -> fill in {words}",
        "SELECT": lambda subject, _v, words: f"SELECT {target_v2(subject)} -> select '{words}'",
        "PRESS": lambda _s, _v, words: f"PRESS_KEY page -> press {words}",
        "HOVER": lambda subject, _v, _w: f"HOVER {target_v2(subject)} -> hover over the {subject}",
        "SCROLL": lambda subject, _v, words: f"SCROLL {target_v2(subject)} -> scroll {words}",
        "DIALOG": _key_for_dialog,
        "WAIT": _observe,
        "SNAPSHOT": _observe,
        "FIND": _observe,
        "FINISH": _observe,
        "CLOSE": _observe,
    }
)


def _step(step: Step, action: str) -> dict[str, Any]:
    return {"url": _url(step), "action": action, "action_status": "SUCCESS", "thought": _thought(step)}


def _url(step: Step) -> str | None:
    """The page's address; for a navigation the schema wants the address it goes to."""
    parts = split_line(step.outcome.line) if step.outcome and step.outcome.line else None
    if parts is None or parts[0] != "navigation" or parts[1] == "BACK":
        return step.url
    address = (parts[2] or "").removeprefix("new ")
    return address if "://" in address else None


def _thought(step: Step) -> str | None:
    return without_surrogates(step.action.thought) or None if step.action else None


def _is_ending(step: Step) -> bool:
    return step.action is not None and step.action.tool in ENDING_TOOLS and bool(step.outcome and step.outcome.ok)


def _screenshot(steps: tuple[Step, ...], step: Step, index: int, where: str) -> tuple[str, str]:
    """The recorded screenshot of a step and its new name.

    While a dialog is open no picture can be taken; the page behind it is the one of the step before.
    """
    earlier = steps[: steps.index(step)]
    taken = step.screenshot
    while taken is None and step.dialog is not None and earlier:
        step, earlier = earlier[-1], earlier[:-1]
        taken = step.screenshot
    if taken is None:
        raise TrajectoryError(f"{where}: step {step.index} has no screenshot", remedy="run the task again")
    suffix = PurePosixPath(taken).suffix.lower()
    if suffix not in _IMAGES:
        raise TrajectoryError(f"{where}: step {step.index}: {suffix[:20]!r} is no image format of the schema")
    return taken, f"{index:04d}{suffix}"


def _plain(text: str) -> str:
    return text.replace("->", "→").translate(_MARKS)


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or address
    except ValueError:
        return address

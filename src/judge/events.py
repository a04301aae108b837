"""What happens in an assessment, as data, and the prose in which it crosses A2A.

`describe` and `parse` are inverses for the events a terminal needs, so progress of a judge anywhere can be shown.
The prose is never JSON: clients take every text that parses as JSON for a result.
"""

import re
from collections.abc import Callable
from typing import Literal

from shared.models import Record, TaskOutcome
from shared.text import one_line

RUN_ID_KEY = "wabe_run_id"
"""Where the metadata of an assessment's A2A task names its run."""
NO_ACTION = "no action"


class RunStarted(Record):
    """The assessment begins; `kept` tasks of an earlier, interrupted run stand already."""

    kind: Literal["run_started"] = "run_started"
    run_id: str
    total: int
    kept: int = 0


class Noted(Record):
    """Something about the request that its sender should know, such as an ignored key."""

    kind: Literal["noted"] = "noted"
    text: str


class TaskStarted(Record):
    """An attempt at a task begins."""

    kind: Literal["task_started"] = "task_started"
    task_id: str
    attempt: int
    max_steps: int


class StepDone(Record):
    """One step is over and on disk; `action` is the factual line or why there is none."""

    kind: Literal["step_done"] = "step_done"
    task_id: str
    step: int
    max_steps: int
    action: str


class TaskRetried(Record):
    """An attempt was aborted by a fault around the participant; another follows."""

    kind: Literal["task_retried"] = "task_retried"
    task_id: str
    attempt: int
    cause: str


class TaskJudging(Record):
    """The episode is over, the judge decides."""

    kind: Literal["task_judging"] = "task_judging"
    task_id: str
    steps: int


class TaskDone(Record):
    """A task is settled: success, failure, unscored or aborted, and why."""

    kind: Literal["task_done"] = "task_done"
    task_id: str
    outcome: TaskOutcome
    steps: int
    reason: str


class RunDone(Record):
    """The assessment is over."""

    kind: Literal["run_done"] = "run_done"
    successes: int
    scored: int
    total: int


Event = RunStarted | Noted | TaskStarted | StepDone | TaskRetried | TaskJudging | TaskDone | RunDone
Sink = Callable[[Event], None]


def describe(event: Event) -> str:
    """One line of prose for an event."""
    match event:
        case RunStarted():
            kept = f", {event.kept} kept from before" if event.kept else ""
            return f"Assessment {event.run_id}: {event.total} tasks{kept}."
        case Noted():
            return f"Note: {one_line(event.text, 500)}"
        case TaskStarted():
            return f"Task {event.task_id}, attempt {event.attempt}: started, up to {event.max_steps} steps."
        case StepDone():
            return f"Task {event.task_id}, step {event.step} of {event.max_steps}: {one_line(event.action)}"
        case TaskRetried():
            return f"Task {event.task_id}, attempt {event.attempt}: aborted, trying again: {one_line(event.cause)}"
        case TaskJudging():
            return f"Task {event.task_id}: {event.steps} steps done, judging."
        case TaskDone():
            return f"Task {event.task_id}: {event.outcome} after {event.steps} steps: {one_line(event.reason)}"
        case RunDone():
            return f"Done: {event.successes} of {event.scored} scored tasks succeeded, {event.total} in all."


_RUN = r"Assessment (?P<run_id>\S+)"
_TASK = r"Task (?P<task_id>[A-Za-z0-9_-]{1,128})"
_END = r"(?P<outcome>success|failure|unscored|aborted) after (?P<steps>[0-9]{1,9}) steps"
_FORMS: tuple[tuple[re.Pattern[str], type[Event]], ...] = (
    (
        re.compile(_RUN + r": (?P<total>[0-9]{1,9}) tasks(?:, (?P<kept>[0-9]{1,9}) kept from before)?\."),
        RunStarted,
    ),
    (re.compile(r"Note: (?P<text>.*)"), Noted),
    (
        re.compile(_TASK + r", attempt (?P<attempt>[0-9]{1,9}): started, up to (?P<max_steps>[0-9]{1,9}) steps\."),
        TaskStarted,
    ),
    (re.compile(_TASK + r", step (?P<step>[0-9]{1,9}) of (?P<max_steps>[0-9]{1,9}): (?P<action>.*)"), StepDone),
    (re.compile(_TASK + r", attempt (?P<attempt>[0-9]{1,9}): aborted, trying again: (?P<cause>.*)"), TaskRetried),
    (re.compile(_TASK + r": (?P<steps>[0-9]{1,9}) steps done, judging\."), TaskJudging),
    (
        re.compile(
            _TASK + r": (?P<outcome>success|failure|unscored|aborted) after (?P<steps>[0-9]{1,9}) steps: (?P<reason>.*)"
        ),
        TaskDone,
    ),
    (
        re.compile(
            r"Done: (?P<successes>[0-9]{1,9}) of (?P<scored>[0-9]{1,9}) scored tasks succeeded,"
            r" (?P<total>[0-9]{1,9}) in all\."
        ),
        RunDone,
    ),
)


def parse(line: str) -> Event | None:
    """The event a line of `describe` tells of, or `None` for any other text."""
    for pattern, kind in _FORMS:
        found = pattern.fullmatch(line[:4000])
        if found:
            return kind.model_validate({key: value for key, value in found.groupdict().items() if value is not None})
    return None

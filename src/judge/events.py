"""The events of an assessment as data, and as the prose that is sent over A2A.

`describe` and `parse` are inverses, so that a terminal can show the progress of a remote judge. The prose is never
JSON, because clients treat every text that parses as JSON as a result.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pydantic import Field

from judge.records.steps import Step
from judge.records.tasks import TASK_ID, key_of
from judge.records.verdicts import TaskOutcome
from shared.models import Record
from shared.text import one_line

# The metadata key of an assessment's A2A task that names its run.
RUN_ID_KEY = "wabe_run_id"
NO_ACTION = "no action"


class RunStarted(Record):
    """The assessment begins: `total` tasks, each played in every epoch. `kept` attempts were settled by an earlier,
    interrupted run.
    """

    run_id: str
    total: int
    kept: int = 0
    epochs: int = 1

    @property
    def attempts(self) -> int:
        """How many attempts will be settled, including those that are kept."""
        return self.total * self.epochs


class Noted(Record):
    """A warning about the request for its sender, such as an ignored key."""

    text: str


class TaskEvent(Record):
    """Base of events about a task in one epoch."""

    task_id: str
    epoch: int = 1

    @property
    def key(self) -> str:
        """The name of the task in this epoch, unique in the run."""
        return key_of(self.task_id, self.epoch)


class TaskStarted(TaskEvent):
    """An attempt at a task begins."""

    attempt: int
    max_steps: int


class StepBegun(TaskEvent):
    """A step begins: its observation is on disk; `task` is the task's description.

    For displays on the judge's own machine; it has no prose and is not sent over A2A.
    """

    step: int
    task: str
    url: str


class StepDone(TaskEvent):
    """One step is over and on disk; `action` is the factual line, or why there is none.

    `recorded` exists only in the judge's own process: it is excluded from dumps and not sent over A2A.
    """

    step: int
    max_steps: int
    action: str
    recorded: Step | None = Field(default=None, exclude=True, repr=False)


class TaskRetried(TaskEvent):
    """An attempt was aborted by a fault outside the participant; another follows."""

    attempt: int
    cause: str


class TaskJudging(TaskEvent):
    """The attempt is over and is being judged."""

    steps: int


class TaskDone(TaskEvent):
    """A task is settled, with the reason."""

    outcome: TaskOutcome
    steps: int
    reason: str


class RunDone(Record):
    """The assessment is over. With several epochs the counts are those of attempts."""

    successes: int
    scored: int
    total: int
    epochs: int = 1


Event = RunStarted | Noted | TaskStarted | StepBegun | StepDone | TaskRetried | TaskJudging | TaskDone | RunDone
Sink = Callable[[Event], None]

_PROSE: Mapping[type[Event], str] = MappingProxyType(
    {
        RunStarted: "Assessment {run_id}: {total} tasks{epochs}{kept}.",
        Noted: "Note: {text}",
        TaskStarted: "Task {task_id}{epoch}, attempt {attempt}: started, up to {max_steps} steps.",
        StepDone: "Task {task_id}{epoch}, step {step} of {max_steps}: {action}",
        TaskRetried: "Task {task_id}{epoch}, attempt {attempt}: aborted, trying again: {cause}",
        TaskJudging: "Task {task_id}{epoch}: {steps} steps done, judging.",
        TaskDone: "Task {task_id}{epoch}: {outcome} after {steps} steps: {reason}",
        RunDone: "Done: {successes} of {scored} scored tasks succeeded, {total} in all{epochs}.",
    }
)
# Included only if not the default, so that a run with one epoch reads as in older versions.
_IF_UNUSUAL = {"epoch": ", epoch {}", "epochs": ", in {} epochs", "kept": ", {} kept from before"}
_MAX_TEXT_CHARS = 200
_MAX_NOTE_CHARS = 500
_MAX_LINE_CHARS = 4000
_TEXTS = {"action", "cause", "reason", "text"}
# The patterns of fields; all others are integers.
_PATTERNS = {
    "run_id": r"\S+",
    "task_id": TASK_ID.pattern,
    "outcome": "success|failure|unscored|aborted",
    **dict.fromkeys(_TEXTS, ".*"),
}


_COUNTED = re.compile(r"\{(\w+)\} ((?:scored )?(?:task|step))s")


def _pattern(prose: str) -> re.Pattern[str]:
    """The pattern that parses a prose template: every `{field}` is a group of that name; plurals may be singular."""
    escaped = re.sub(r"(?<=\\ )(task|step)s\b", r"\1s?", re.escape(prose))

    def group(field: re.Match[str]) -> str:
        named = f"(?P<{field[1]}>{_PATTERNS.get(field[1], '[0-9]{1,9}')})"
        return f"(?:{_IF_UNUSUAL[field[1]].format(named)})?" if field[1] in _IF_UNUSUAL else named

    return re.compile(re.sub(r"\\{(\w+)\\}", group, escaped))


_READERS = tuple((_pattern(prose), kind) for kind, prose in _PROSE.items())


def describe(event: Event) -> str:
    """One line of prose for an event, empty for `StepBegun`."""
    limit = _MAX_NOTE_CHARS if isinstance(event, Noted | TaskDone) else _MAX_TEXT_CHARS
    fields = event.model_dump()
    prose = _PROSE.get(type(event), "")
    prose = _COUNTED.sub(lambda found: f"{{{found[1]}}} {found[2]}{'' if fields[found[1]] == 1 else 's'}", prose)
    fields |= {name: one_line(fields[name], limit) for name in _TEXTS & fields.keys()}
    for name in _IF_UNUSUAL.keys() & fields.keys():
        is_usual = fields[name] == type(event).model_fields[name].default
        fields[name] = "" if is_usual else _IF_UNUSUAL[name].format(fields[name])
    return prose.format(**fields)


def parse(line: str) -> Event | None:
    """The event that a line of `describe` represents, or `None` for any other text."""
    for pattern, kind in _READERS:
        if found := pattern.fullmatch(line[:_MAX_LINE_CHARS]):
            return kind.model_validate({name: text for name, text in found.groupdict().items() if text is not None})
    return None

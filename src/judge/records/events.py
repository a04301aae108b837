"""The events of an assessment, and the two forms in which they are sent over A2A.

`to_wire` is for programs and travels as metadata, `describe` is prose for people and is never parsed. The prose is
never JSON, because clients treat every text that parses as JSON as a result.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, ValidationError

from judge.records.steps import Step
from judge.records.tasks import TaskId, key_of
from judge.records.verdicts import TaskOutcome
from shared.models import Record, omit_default
from shared.text import one_line, without_surrogates

# The metadata key of an assessment's A2A task that names its run.
RUN_ID_KEY = "wabe_run_id"
# The key of the token with which its client can continue it, and of how a stopped run continues: see `Continues`.
RESUME_TOKEN_KEY = "wabe_resume_token"
CONTINUES_KEY = "wabe_continues"
# That of a request which is rejected only because of what the judge is doing at the moment.
BUSY_KEY = "wabe_busy"
# `itself`: the judge continues it as soon as it runs again. `on request`: when its client sends the request again.
Continues = Literal["itself", "on request"]
# The metadata key for a status update's events.
EVENT_KEY = "wabe_event"
# Stands where a text of a sealed task is withheld.
WITHHELD = "sealed"
# The name of the line with which a shard begins, beside its events.
SHARD_STARTED = "shard_started"
# More than any update of this judge has (`shared.a2a.tasks`).
_MAX_EVENTS = 1_000

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class RunStarted(Record):
    """The assessment begins: `total` tasks, each played in every epoch. `kept` attempts were settled by an earlier,
    interrupted run. `attacked` of the tasks are under attack, and count in no success rate.
    """

    run_id: Annotated[str, Field(pattern=r"^\S{1,200}$")]
    total: Count
    kept: Count = 0
    epochs: Count = 1
    attacked: Count = omit_default(0)

    @property
    def attempts(self) -> int:
        """How many attempts will be settled, including those kept."""
        return self.total * self.epochs


class RequestWarning(Record):
    """A warning about the request for its sender, such as an ignored key."""

    text: str


class TaskEvent(Record):
    """Base of events about a task in one epoch."""

    task_id: TaskId
    epoch: Count = 1

    @property
    def key(self) -> str:
        """The name of the task in this epoch, unique in the run."""
        return key_of(self.task_id, self.epoch)


class TaskStarted(TaskEvent):
    """An attempt at a task begins."""

    attempt: Count
    max_steps: Count


class StepBegun(TaskEvent):
    """A step begins: its observation is on disk; `task` is the task's description.

    For displays on the judge's machine; it has no prose and is not sent over A2A.
    """

    step: Count
    task: str
    url: str


class StepDone(TaskEvent):
    """One step is over and on disk; `action` is the factual line, or why none was executed. `reply`: the number of its
    reply, if that is another one.

    `recorded` exists only in the judge's process: it is excluded from dumps and not sent over A2A.
    """

    step: Count
    reply: Count = omit_default(0)
    max_steps: Count
    action: str
    executed: bool
    recorded: Step | None = Field(default=None, exclude=True, repr=False)


class TaskRetried(TaskEvent):
    """An attempt was aborted by a fault outside the participant; another follows. `blame` is not sent over A2A."""

    attempt: Count
    cause: str
    blame: str | None = Field(default=None, exclude=True)


class TaskJudging(TaskEvent):
    """The attempt is over and is being judged."""

    steps: Count


class TaskDone(TaskEvent):
    """A task is settled, with the reason, and the verdict's `reason_code` if it has one.

    `blame` for an attempt without a verdict is not sent over A2A.
    """

    outcome: TaskOutcome
    blame: str | None = Field(default=None, exclude=True)
    steps: Count
    reason: str
    reason_code: Annotated[str, Field(max_length=100)] | None = omit_default(None)
    # Whether the task is one under attack.
    attacked: bool = omit_default(False)


class RunDone(Record):
    """The assessment is over. With several epochs attempts are counted."""

    successes: Count
    scored: Count
    total: Count
    epochs: Count = 1


class JudgeText(Record):
    """Prose of a judge that sends no events, to be shown."""

    text: str


Event = (
    RunStarted
    | RequestWarning
    | TaskStarted
    | StepBegun
    | StepDone
    | TaskRetried
    | TaskJudging
    | TaskDone
    | RunDone
    | JudgeText
)
Sink = Callable[[Event], None]

_PROSE: Mapping[type[Event], str] = MappingProxyType(
    {
        RunStarted: "Assessment {run_id}: {total} tasks{epochs}{kept}.",
        RequestWarning: "Note: {text}",
        TaskStarted: "Task {task_id}{epoch}, attempt {attempt}: started, up to {max_steps} steps.",
        StepDone: "Task {task_id}{epoch}, step {step}{reply} of {max_steps}: {action}",
        TaskRetried: "Task {task_id}{epoch}, attempt {attempt}: aborted, trying again: {cause}",
        TaskJudging: "Task {task_id}{epoch}: {steps} steps done, judging.",
        TaskDone: "Task {task_id}{epoch}: {outcome} after {steps} steps: {reason}",
        JudgeText: "{text}",
        RunDone: "Done: {successes} of {scored} scored tasks succeeded, {total} in all{epochs}.",
    }
)
# Included only if not the default, so that a run with one epoch reads as in older versions.
_IF_UNUSUAL = {
    "epoch": ", epoch {}",
    "reply": ", reply {}",
    "epochs": ", in {} epochs",
    "kept": ", {} kept from before",
}
_MAX_TEXT_CHARS = 200
_MAX_NOTE_CHARS = 500
_TEXTS = {"action", "cause", "reason", "text"}
# What is not for everybody to know of a sealed task set.
_CONTENT = {*_TEXTS, "task", "url"}
_COUNTED = re.compile(r"\{(\w+)\} ((?:scored )?(?:task|step))s")


def describe(event: Event) -> str:
    """One line of prose for an event, empty for `StepBegun`."""
    fields = _bounded(event).model_dump()
    prose = _PROSE.get(type(event), "")
    prose = _COUNTED.sub(lambda match: f"{{{match[1]}}} {match[2]}{'' if fields[match[1]] == 1 else 's'}", prose)
    for name in _IF_UNUSUAL.keys() & type(event).model_fields.keys():
        # What is usual may be left out of the dump.
        is_usual = getattr(event, name) == type(event).model_fields[name].default
        fields[name] = "" if is_usual else _IF_UNUSUAL[name].format(fields[name])
    return prose.format(**fields)


def sealed_form(event: Event) -> Event:
    """The event without anything that a task or a page says: of a sealed task set, only this leaves the judge."""
    withheld: dict[str, Any] = dict.fromkeys(_CONTENT & type(event).model_fields.keys(), WITHHELD)
    return event.model_copy(update=withheld | ({"recorded": None} if isinstance(event, StepDone) else {}))


def _bounded(event: Event) -> Event:
    """The event with each text on one line and bounded."""
    limit = _MAX_NOTE_CHARS if isinstance(event, RequestWarning | TaskDone | JudgeText) else _MAX_TEXT_CHARS
    texts = {name: getattr(event, name) for name in _TEXTS & type(event).model_fields.keys()}
    return event.model_copy(update={name: one_line(without_surrogates(text), limit) for name, text in texts.items()})


# Events that programs know by another name than their class.
_NAMES: Mapping[type[Event], str] = MappingProxyType({RequestWarning: "noted", JudgeText: "said"})


def event_name(kind: type[Event]) -> str:
    """The name of a kind of event in `--display json` and in metadata."""
    return _NAMES.get(kind) or re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_KINDS: Mapping[str, type[Event]] = MappingProxyType({event_name(kind): kind for kind in get_args(Event)})


def to_wire(event: Event, number: int) -> dict[str, Any]:
    """The event as a JSON object that names its kind, with its texts bounded; `number` counts a run's events."""
    return {"event": event_name(type(event)), "number": number, **_bounded(event).model_dump(mode="json")}


def from_wire(value: object) -> Event | None:
    """The event that a JSON object of `to_wire` or `--display json` represents; `None` for anything else."""
    if not isinstance(value, dict) or not isinstance(name := value.get("event"), str) or name not in _KINDS:
        return None
    fields = {key: item for key, item in value.items() if key not in ("event", "number")}
    try:
        return _KINDS[name].model_validate(fields)
    except ValidationError:
        return None


class EventReader:
    """Reads the events in the metadata of an assessment's updates, each once: after a reconnection some come again.

    The judge may be another program, so they are validated, and their texts are bounded.
    """

    def __init__(self) -> None:
        self._last = 0
        self.has_read = False

    def read(self, metadata: Mapping[str, Any]) -> list[Event]:
        """The new events of an update, in order; those that cannot be read are left out."""
        values = metadata.get(EVENT_KEY)
        return (
            [event for value in values[:_MAX_EVENTS] if (event := self._new(value))] if isinstance(values, list) else []
        )

    def _new(self, value: object) -> Event | None:
        event = from_wire(value)
        if event is None or not isinstance(value, dict):
            return None
        self.has_read = True
        number = value.get("number")
        if isinstance(number, int):
            if number <= self._last:
                return None
            self._last = number
        return _bounded(event)

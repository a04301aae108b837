"""What happens in an assessment, as data, and the prose in which it crosses A2A.

`describe` and `parse` are inverses, so that a terminal can show the progress of a judge running anywhere. The prose is
never JSON: clients take every text that parses as JSON for a result.
"""

import re
from collections.abc import Callable

from pydantic import Field

from shared.models import TASK_ID, Record, Step, TaskOutcome
from shared.text import one_line

# Where the metadata of an assessment's A2A task names its run.
RUN_ID_KEY = "wabe_run_id"
NO_ACTION = "no action"


class RunStarted(Record):
    """The assessment begins; `kept` tasks were settled by an earlier, interrupted run."""

    run_id: str
    total: int
    kept: int = 0


class Noted(Record):
    """Something about the request that its sender should know, such as an ignored key."""

    text: str


class TaskStarted(Record):
    """An attempt at a task begins."""

    task_id: str
    attempt: int
    max_steps: int


class StepBegun(Record):
    """A step begins: the page that it sees is on disk, `task` is what the participant was told to do.

    For displays on the judge's own machine; it has no prose and does not cross A2A.
    """

    task_id: str
    step: int
    task: str
    url: str


class StepDone(Record):
    """One step is over and on disk; `action` is the factual line, or why there is none.

    `recorded` is known in the judge's own process only: it is in no dump and does not cross A2A.
    """

    task_id: str
    step: int
    max_steps: int
    action: str
    recorded: Step | None = Field(default=None, exclude=True, repr=False)


class TaskRetried(Record):
    """An attempt was aborted by a fault around the participant; another follows."""

    task_id: str
    attempt: int
    cause: str


class TaskJudging(Record):
    """The attempt is over and is being judged."""

    task_id: str
    steps: int


class TaskDone(Record):
    """A task is settled, and why."""

    task_id: str
    outcome: TaskOutcome
    steps: int
    reason: str


class RunDone(Record):
    """The assessment is over."""

    successes: int
    scored: int
    total: int


Event = RunStarted | Noted | TaskStarted | StepDone | TaskRetried | TaskJudging | TaskDone | RunDone
Sink = Callable[[Event], None]
JudgeEvent = Event | StepBegun
JudgeSink = Callable[[JudgeEvent], None]

# The prose of each event. Of two for one event, the first is for `kept` tasks.
_PROSE: tuple[tuple[type[Event], str], ...] = (
    (RunStarted, "Assessment {run_id}: {total} tasks, {kept} kept from before."),
    (RunStarted, "Assessment {run_id}: {total} tasks."),
    (Noted, "Note: {text}"),
    (TaskStarted, "Task {task_id}, attempt {attempt}: started, up to {max_steps} steps."),
    (StepDone, "Task {task_id}, step {step} of {max_steps}: {action}"),
    (TaskRetried, "Task {task_id}, attempt {attempt}: aborted, trying again: {cause}"),
    (TaskJudging, "Task {task_id}: {steps} steps done, judging."),
    (TaskDone, "Task {task_id}: {outcome} after {steps} steps: {reason}"),
    (RunDone, "Done: {successes} of {scored} scored tasks succeeded, {total} in all."),
)
_MAX_TEXT_CHARS = 200
_MAX_NOTE_CHARS = 500
_MAX_LINE_CHARS = 4000
_TEXTS = {"action", "cause", "reason", "text"}
# What a field may look like; all others are whole numbers.
_PATTERNS = {
    "run_id": r"\S+",
    "task_id": TASK_ID.pattern,
    "outcome": "success|failure|unscored|aborted",
    **dict.fromkeys(_TEXTS, ".*"),
}


_COUNTED = re.compile(r"\{(\w+)\} ((?:scored )?(?:task|step))s")


def _pattern(prose: str) -> re.Pattern[str]:
    """What reads a prose back: every `{field}` becomes a group of that name, and a plural may be a singular."""
    escaped = re.sub(r"(?<=\\ )(task|step)s\b", r"\1s?", re.escape(prose))
    return re.compile(
        re.sub(r"\\{(\w+)\\}", lambda field: f"(?P<{field[1]}>{_PATTERNS.get(field[1], '[0-9]{1,9}')})", escaped)
    )


_READERS = tuple((_pattern(prose), kind) for kind, prose in _PROSE)


def describe(event: Event) -> str:
    """One line of prose for an event."""
    has_kept = isinstance(event, RunStarted) and event.kept > 0
    prose = next(prose for kind, prose in _PROSE if type(event) is kind and has_kept == ("{kept}" in prose))
    limit = _MAX_NOTE_CHARS if isinstance(event, Noted | TaskDone) else _MAX_TEXT_CHARS
    fields = event.model_dump()
    prose = _COUNTED.sub(lambda found: f"{{{found[1]}}} {found[2]}{'' if fields[found[1]] == 1 else 's'}", prose)
    return prose.format(**fields | {name: one_line(fields[name], limit) for name in _TEXTS & fields.keys()})


def parse(line: str) -> Event | None:
    """The event that a line of `describe` stands for, or `None` for any other text."""
    for pattern, kind in _READERS:
        if found := pattern.fullmatch(line[:_MAX_LINE_CHARS]):
            return kind.model_validate(found.groupdict())
    return None

"""How a column of rows is declared, and what it is made of. A plug-in's columns import this, and rows have them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from judge.records.attacks import AttackResult
from judge.records.checks import SuccessRule
from judge.records.tasks import Task
from judge.records.tools import acts_on_page, tool_of
from judge.records.verdicts import JudgeInfo, Verdict
from judge.results.identity import identity_in
from judge.results.progress import progress_of
from judge.results.rewards import success_rule
from judge.trajectory.record import Attempt
from shared.claims import ClaimedUsage
from shared.models import TokenUsage

if TYPE_CHECKING:
    from judge.results.metering import MeteredUsage
    from judge.results.part import RunPart

T = TypeVar("T")


@dataclass(frozen=True)
class RowSource:
    """The source of a row: an attempt at the task `task_id`, the judge that decides it, and its run.

    `verdict` is the one that counts, with its evidence if that could be read. An entry has no run.
    """

    attempt: Attempt
    task_id: str
    epoch: int
    verdict: Verdict | None
    metered: "MeteredUsage | None" = None
    judge_id: str | None = None
    sha256: str | None = None
    run_id: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    parts: "Sequence[RunPart]" = ()

    def part(self, kind: type[T]) -> T | None:
        """The part of this kind of the attempt's run."""
        return next((each for each in self.parts if isinstance(each, kind)), None)

    @property
    def task(self) -> Task:
        """The task as it was played."""
        return self.attempt.task

    @property
    def judge(self) -> JudgeInfo | None:
        """The judge named in the verdict."""
        return self.attempt.verdict.judge if self.attempt.verdict else None

    @property
    def reason_code(self) -> str | None:
        """The verdict's."""
        return self.attempt.verdict.reason_code if self.attempt.verdict else None

    @property
    def attack(self) -> AttackResult | None:
        """What became of the attack, if it is a task under attack."""
        return self.attempt.attacked

    @property
    def rejected(self) -> int:
        """How many replies led to no executed action: unreadable, naming something absent, or failed."""
        return sum(step.outcome is not None and not step.outcome.ok for step in self.attempt.steps)

    @property
    def page_actions(self) -> int:
        """How many executed actions could change a page: without looking, waiting, and ending the attempt."""
        done = (step.action for step in self.attempt.steps if step.action and step.outcome and step.outcome.ok)
        return sum(tool_of(action.tool).does != "ends" for action in done if acts_on_page(action.tool))

    @property
    def usage(self) -> TokenUsage:
        """Tokens used for judging."""
        return self.attempt.token_usage

    @property
    def progress(self) -> float | None:
        """The share of the checks or key points met."""
        progress = progress_of(self.verdict)
        return self.attempt.progress if progress is None else progress

    @property
    def claimed(self) -> ClaimedUsage | None:
        """What the participant says that its model used."""
        usage = self.attempt.claimed_usage
        return usage if usage and usage.basis == "claimed" else None

    @property
    def usage_source(self) -> str | None:
        """How the usage of the participant's model is known best."""
        usage = self.attempt.claimed_usage
        return "metered" if self.metered else usage.basis if usage else None

    def used(self, what: str) -> Any:
        """The metered usage, or else what another program recorded, where a number of 0 says that it is unknown."""
        if self.metered:
            return getattr(self.metered, what)
        usage = self.attempt.claimed_usage
        number = getattr(usage, what) if usage and usage.basis == "recorded" else None
        return number if what == "cost_usd" else number or None

    @property
    def efficiency(self) -> float | None:
        """The reference's length in relation to the actions of a success, at most 1."""
        length, attempt = self.task.reference_length, self.attempt
        if length is None or attempt.outcome != "success":
            return None
        return round(min(1.0, length / max(1, attempt.actions_taken)), 4)

    @property
    def rule(self) -> SuccessRule | None:
        """Which rewards are a success, if the task has a reward."""
        return success_rule(self.task.checks)

    @property
    def role(self) -> str:
        """The participant's role."""
        return str(next(iter(self.record.get("participants") or ()), ""))

    @cached_property
    def who(self) -> dict[str, Any]:
        """The identity of participant and scenario."""
        return identity_in(self.record)

    def seconds(self, phase: str) -> float | None:
        """The time of all steps spent in a phase; `None` if no step says what it took."""
        steps = self.attempt.steps
        if steps and not any(step.timings.is_known for step in steps):
            return None
        seconds: list[float] = [getattr(step.timings, phase) for step in steps]
        return round(sum(seconds), 3)


@dataclass(frozen=True)
class Column:
    """A declared column. `entry` is its name in an entry, `heading` its title on the report's page; empty: not there.

    Instead of `None`, an entry has `missing`. It has the key only `when` that is true of an attempt; a file from
    before the column was `added` does not have it at all. `empty` is its value in a row without an attempt. `public`: a
    submission has it also for a task of a sealed set; of the others, it then has the keys without the values.
    `mode`: runs with different values are compared by what they took; this is the value of rows without one. `of_mode`
    is the mode of which it shows how much it took. A plug-in's column stands `after` another one.
    """

    name: str
    type: type
    empty: object
    obtain: Callable[[RowSource], Any]
    entry: str
    heading: str
    missing: object
    when: Callable[[RowSource], bool] | None
    added: bool
    public: bool
    mode: str
    of_mode: str
    after: str

    @property
    def title(self) -> str:
        """What it is called on pages."""
        return self.heading or self.name.replace("_", " ").capitalize()

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, of which means can be taken."""
        return self.type in (int, float)


def column(
    obtain: Callable[[RowSource], T],
    *,
    entry: bool | str = False,
    heading: str = "",
    missing: object = None,
    when: Callable[[RowSource], bool] | None = None,
    added: bool = False,
    public: bool = False,
    mode: str = "",
    of_mode: str = "",
    after: str = "",
) -> T:
    """Declare a column (`Column`). `entry` is true if it has the same name there."""
    options = {"obtain": obtain, "entry": entry, "heading": heading, "missing": missing, "when": when, "added": added}
    options |= {"public": public, "mode": mode, "of_mode": of_mode, "after": after}
    declared: T = field(metadata=options)
    return declared

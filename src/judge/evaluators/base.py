"""The types of evaluators: a kind of check, and results with the expected, found and compared values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from judge.evaluators.evidence import TrajectoryEvidence
from judge.records.checks import KindCheck
from judge.records.findings import Fact
from judge.records.tasks import Task
from shared.text import counted


class ComparisonResult(NamedTuple):
    """The result of a comparison. `counts` is false if there was nothing to compare: no page, no answer.

    `facts` is the content of `text` as data, as far as programs use it.
    """

    passed: bool
    text: str
    normalised: str | None = None
    counts: bool = True
    facts: tuple[Fact, ...] = ()

    @classmethod
    def of(cls, passed: bool, fact: Fact, normalised: str | None = None) -> "ComparisonResult":
        """A finding of a fact."""
        return cls(passed, str(fact), normalised, facts=(fact,))


class Decision(NamedTuple):
    """Whether a check passed, the finding that decided it, and the index of the step at which it first passed.

    `last_step` and `near_step` are as in `Assertion`.
    """

    passed: bool
    result: ComparisonResult
    step: int | None
    last_step: int | None = None
    near_step: int | None = None


def happened(times: int | None, count: int, *, at_least: bool) -> bool:
    """Whether what a check is about happened as often as it says: exactly so often, or `at_least`; once by default."""
    return count >= (times or 1) if at_least or times is None else count == times


def how_often(times: int | None, count: int, what: str) -> str:
    """How often it happened instead."""
    return f"{counted(count, what)} instead of {times or 1}"


def _nothing(*_: Any) -> tuple[str, ...]:
    return ()


def _unknown(*_: Any) -> None:
    return None


@dataclass(frozen=True)
class CheckKind:
    """A kind of check: an entry point of `wabe.checks` with the kind's name.

    `model` is the record of its keys. `decide` is called with the check, the recording, and whether the check must not
    pass. The others may be left out: `near` finds the index of the last step that is nearly the expected one,
    `warnings` the probable mistakes in a check, `trivial` how an agent without ability passes it in this task, `hints`
    what could make a check without a mistake stricter or fail unexpectedly, and `contradicts` says why no attempt can
    pass two checks of this kind.
    `with_key` contains the forms of the kind that other keys select: a check in which the key is set and not false
    belongs to that form. `weighs_answers`: on frozen sites, the kind itself leaves out what rests on answers that do
    not count (`Look.is_unsure`, `TrajectoryEvidence.is_unsure`). Any other kind passes only if nothing rests on such.
    """

    model: type[KindCheck]
    decide: Callable[[Any, TrajectoryEvidence, bool], Decision]
    near: Callable[[Any, TrajectoryEvidence], int | None] = _unknown
    warnings: Callable[[Any], Iterable[str]] = _nothing
    trivial: Callable[[Any, Task], Iterable[str]] = _nothing
    hints: Callable[[Any, Task], Iterable[str]] = _nothing
    contradicts: Callable[[Any, Any], str | None] = _unknown
    with_key: Mapping[str, "CheckKind"] = field(default_factory=dict)
    weighs_answers: bool = False

    def form(self, check: object) -> "CheckKind":
        """The kind itself, or the one of its forms to which a check, or the table of one, belongs."""
        if isinstance(check, Mapping):
            keys = (key for key in self.with_key if check.get(key) not in (None, False))
            return self.with_key.get(next(keys, ""), self)
        return next((form for form in self.with_key.values() if isinstance(check, form.model)), self)

    def forms(self) -> "Iterator[CheckKind]":
        """The kind itself, and its other forms."""
        yield self
        yield from self.with_key.values()

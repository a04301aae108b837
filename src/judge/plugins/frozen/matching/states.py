"""Learns what the answers to a request depend on, by comparing those recorded in different states. Pure.

A request is answered from its observations (recorded answers, each with its context) in the current context. Contexts
may differ in writes and cookies that do not affect this request: two observations with and without it say the same, in
contexts that differ in nothing else. Nothing else is assumed: without such an observation, the answer is uncertain.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Literal, NamedTuple

from judge.plugins.frozen.exchanges import RecordedExchange
from judge.plugins.frozen.matching.contexts import Context, Label, Write, differences

# Comparing takes quadratic time.
_MAX_COMPARED = 60


@dataclass(frozen=True)
class RecordedObservation:
    """A recorded answer with the writes that had ended before it; `possible` are all contexts that it may belong to."""

    exchange: RecordedExchange
    likeness: str
    context: Context
    possible: tuple[Context, ...]
    is_timeless: bool = False


class Selection(NamedTuple):
    """The chosen answer, and how it was chosen: `certain` in the same context, `order` by counting, or the nearest one.

    `situation` stays the same as long as the same observations answer a request. `is_divided`: another walk got another
    answer in the same context.
    """

    observation: RecordedObservation
    how: Literal["certain", "order", "nearest"]
    situation: tuple[object, ...] = ()
    is_divided: bool = False


@dataclass(frozen=True)
class ObservationGroup:
    """The observations of one request, in the order in which they were recorded."""

    observations: tuple[RecordedObservation, ...]

    @cached_property
    def is_one(self) -> bool:
        """Whether all answers mean the same."""
        return len({each.likeness for each in self.observations}) == 1

    @cached_property
    def is_timeless(self) -> bool:
        """Whether the answer is valid in every state."""
        return self.is_one and all(each.is_timeless for each in self.observations)

    @cached_property
    def is_divided(self) -> bool:
        """Whether walks got different answers in the same context."""
        first: dict[Context, RecordedObservation] = {}
        return any(
            each.likeness != (other := first.setdefault(each.context, each)).likeness
            and each.exchange.walk != other.exchange.walk
            for each in self.observations
        )

    @cached_property
    def pairs(self) -> list[tuple[frozenset[Label], RecordedObservation, RecordedObservation]]:
        """Pairs of observations in different contexts, those with the fewest differences first."""
        compared = self.observations[:_MAX_COMPARED]
        pairs = [(differences(a.context, b.context), a, b) for a, b in combinations(compared, 2)]
        return sorted((pair for pair in pairs if pair[0]), key=lambda pair: len(pair[0]))

    def changes(self) -> Iterator[frozenset[Label]]:
        """Differences between contexts with different answers, unless a smaller one explains the change."""
        all_labels: set[Label] = set()
        for labels, one, other in self.pairs:
            if one.likeness != other.likeness and all_labels.isdisjoint(labels):
                all_labels |= labels
                yield labels


class Learnt:
    """What the answers to each request depend on."""

    def __init__(self) -> None:
        self._of_group: dict[int, _WriteEffects] = {}

    def state(self, group: ObservationGroup, writes: Sequence[Write]) -> tuple[Write, ...]:
        """The writes without those that had no effect on this request's answer, given the earlier ones that had."""
        known = self._write_effects(group)
        remaining: list[Write] = []
        for write in writes:
            if write not in known.harmless.get(tuple(remaining), ()):
                remaining.append(write)
        return tuple(remaining)

    def cookies(self, group: ObservationGroup, context: Context) -> frozenset[tuple[str, str]]:
        """The cookies without those that have no effect on this request's answer in this state."""
        harmless = self._write_effects(group).harmless.get(self.state(group, context.writes), frozenset())
        return frozenset(pair for pair in context.cookies if pair[0] not in harmless)

    def _write_effects(self, group: ObservationGroup) -> "_WriteEffects":
        known = self._of_group.get(id(group))
        if known is None:
            harmless: defaultdict[tuple[Write, ...], set[Label]] = defaultdict(set)
            known = _WriteEffects(frozenset(chain.from_iterable(group.changes())), harmless)
            # Stored before it is complete: short contexts come first and help with longer ones.
            self._of_group[id(group)] = known
            alike = [pair for pair in group.pairs if len(pair[0]) == 1 and pair[1].likeness == pair[2].likeness]
            for labels, one, other in sorted(alike, key=lambda pair: len(pair[1].context.writes)):
                shorter, longer = sorted((one.context.writes, other.context.writes), key=len)
                # Nothing after it may have undone it.
                if longer[: len(shorter)] == shorter and labels.isdisjoint(known.suspects):
                    harmless[self.state(group, shorter)] |= labels
        return known


class _WriteEffects(NamedTuple):
    """For one request: what may have changed its answer, and by state what did not."""

    suspects: frozenset[Label]
    harmless: Mapping[tuple[Write, ...], Set[Label]]


def choose(
    group: ObservationGroup,
    context: Context,
    learnt: Learnt,
    *,
    walk: str,
    times_requested: Mapping[object, int],
    bound: Mapping[int, str],
) -> Selection:
    """The answer to give in a context. `times_requested` counts the earlier requests by `Selection.situation`.

    The walk named `walk` is preferred, because the site may have been in a different state at the start of each walk.
    `bound` are the walks of writes that were answered differently in other walks: what follows from one is in its walk.
    """
    if group.is_timeless:
        return Selection(_preferred(group.observations, walk), "certain")
    walks = {bound[write.number] for write in learnt.state(group, context.writes) if write.number in bound}
    all_fitting = fitting_in(group, context, learnt)
    fitting = [each for each in all_fitting if not walks or {each.exchange.walk} == walks]
    is_divided = len({each.likeness for each in all_fitting}) > 1
    if not fitting:
        return Selection(_nearest(group.observations, context, walk), "nearest")
    own = [each for each in fitting if each.exchange.walk == walk]
    candidates = own or fitting
    situation = (id(group), *(each.exchange.record_id for each in candidates))
    count = times_requested.get(situation, 0)
    place = min(count, len(candidates) - 1)
    if not own and (group.is_divided or (is_divided and len({each.exchange.walk for each in candidates}) > 1)):
        return Selection(candidates[0], "nearest", situation)
    if len({each.likeness for each in candidates}) == 1:
        return Selection(candidates[place], "certain", situation, is_divided)
    is_steady = len(candidates) > 1 and candidates[-1].likeness == candidates[-2].likeness
    how: Literal["order", "nearest"] = "order" if count < len(candidates) or is_steady else "nearest"
    return Selection(candidates[place], how, situation, is_divided)


def fitting_in(group: ObservationGroup, context: Context, learnt: Learnt) -> list[RecordedObservation]:
    """The observations in the same context, ignoring what is known to have no effect."""

    def comparable(each: Context) -> tuple[object, ...]:
        return (learnt.state(group, each.writes), learnt.cookies(group, each))

    expected = comparable(context)
    return [each for each in group.observations if any(comparable(one) == expected for one in each.possible)]


def _preferred(observations: Sequence[RecordedObservation], walk: str) -> RecordedObservation:
    return next((each for each in observations if each.exchange.walk == walk), observations[0])


def _nearest(observations: Sequence[RecordedObservation], context: Context, walk: str) -> RecordedObservation:
    return min(
        reversed(observations), key=lambda each: (len(differences(each.context, context)), each.exchange.walk != walk)
    )

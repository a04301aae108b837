"""Learns what the answers to a request depend on, by comparing those recorded in different states. Pure.

A request is answered from its observations (recorded answers, each with its context) in the current context. Contexts
may differ in writes and cookies that do not affect this request. A write or cookie does not affect it

- if two observations with and without it say the same, in contexts that differ in nothing else, or
- if it is *local*: with and without it, many other pages said the same, it explains no change of another page, and this
  page has nothing to do with it by its address, redirects and links, or
- if it is *idle*, this request is at its own place and said the same in every state: a write that was answered alike in
  several states and explains no change of any answer, and at whose place nothing ever changed, although several
  requests were made with and without it.

Nothing else is assumed: without such an observation, the answer is uncertain.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import Literal, NamedTuple

from judge.plugins.frozen.exchanges import Exchange, header
from judge.plugins.frozen.matching.contexts import EVERYWHERE, Context, Label, Places, Write, differences, place_key

# Pages that have to be unaffected before something counts as local; fewer prove little.
MIN_UNAFFECTED = 8
# If this many kinds of writes are local, and none is not, the others are taken to be local too.
MIN_LOCAL = 5
# Requests at a write's own place that have to say the same with and without it, before it counts as idle. With two, the
# matcher misled itself on 2 of 3,000 simulated sites.
MIN_STEADY = 3
# Comparing takes quadratic time.
_MAX_COMPARED = 60


@dataclass(frozen=True)
class Observation:
    """A recorded answer with its context; `overlapping` also counts the writes that were under way."""

    exchange: Exchange
    likeness: str
    context: Context
    overlapping: Context
    is_timeless: bool = False


class Choice(NamedTuple):
    """The chosen answer, and how it was chosen: `certain` in the same context, `order` by counting, or the nearest one.

    `situation` stays the same as long as the same observations answer a request.
    """

    observation: Observation
    how: Literal["certain", "order", "nearest"]
    situation: tuple[object, ...] = ()


@dataclass(frozen=True)
class Group:
    """The observations of one request, in the order in which they were recorded."""

    path: str
    observations: tuple[Observation, ...]
    places: Mapping[int | str, Places] = field(repr=False)
    prefix: int = 0

    @cached_property
    def is_one(self) -> bool:
        """Whether all answers mean the same."""
        return len({each.likeness for each in self.observations}) == 1

    @cached_property
    def is_timeless(self) -> bool:
        """Whether the answer is valid in every state."""
        return self.is_one and all(each.is_timeless for each in self.observations)

    @cached_property
    def contexts(self) -> int:
        """The number of different contexts in which it was observed."""
        return len({each.context for each in self.observations})

    @cached_property
    def pairs(self) -> list[tuple[frozenset[Label], Observation, Observation]]:
        """Pairs of observations in different contexts, those with the fewest differences first."""
        compared = self.observations[:_MAX_COMPARED]
        pairs = [(differences(a.context, b.context), a, b) for a, b in combinations(compared, 2)]
        return sorted((pair for pair in pairs if pair[0]), key=lambda pair: len(pair[0]))

    def changes(self) -> Iterator[frozenset[Label]]:
        """Differences between contexts with different answers, unless a smaller one explains the change."""
        found: set[Label] = set()
        for labels, one, other in self.pairs:
            if one.likeness != other.likeness and found.isdisjoint(labels):
                found |= labels
                yield labels

    def compares(self, numbers: Set[int]) -> bool:
        """Whether it was observed both with and without the writes with these numbers."""
        return len({any(write.number in numbers for write in each.context.writes) for each in self.observations}) == 2

    def is_own(self, label: Label) -> bool:
        """Whether this page is likely to show the effect of the write or cookie."""
        return _places(self.places, label).concern(self.path, self.prefix)


@dataclass(frozen=True)
class Written:
    """A write as it was recorded, whatever the order of its lists: its numbers, one for each order, and its answers."""

    numbers: frozenset[int]
    observations: tuple[Observation, ...]

    @cached_property
    def is_answered_alike(self) -> bool:
        """Whether it was recorded in several states, and answered alike in each, without a new cookie."""
        answers = [each.exchange.answer for each in self.observations]
        return (
            len({each.likeness for each in self.observations}) == 1
            and len({each.context.writes for each in self.observations}) > 1
            and not any(header(answer.headers, "set-cookie") for answer in answers if answer is not None)
        )


class Learnt:
    """What the observations of all requests show together: what changed answers, and what affects only its own pages.

    Two walks differ in many things at once. Of the possible causes of a change, those that the page's address makes
    likely are chosen, or else those that explain the most changes on all pages.
    """

    def __init__(self, groups: Collection[Group], mixed: Collection[Group], written: Collection[Written]) -> None:
        """`mixed` are groups of requests that differ in changing values and in the order of lists."""
        changing = [(group, labels) for group in groups if not group.is_one for labels in group.changes()]
        self._causes = _causes(changing)
        unaffected: defaultdict[object, set[str]] = defaultdict(set)
        for group in groups:
            if group.is_one and not group.is_timeless:
                for label in _apart(group):
                    unaffected[_kind(group, label)].add(group.path)
        self._local = {
            kind for kind, paths in unaffected.items() if len(paths) >= MIN_UNAFFECTED and kind not in self._causes
        }
        writes = [kind for kind in self._local if not isinstance(kind, str)]
        self._are_writes_local = len(writes) >= MIN_LOCAL and all(isinstance(kind, str) for kind in self._causes)
        self._idle = _idle(groups, mixed, written)
        self._of_group: dict[int, _Known] = {}

    def is_idle(self, number: int) -> bool:
        """Whether the write with this number changed nothing wherever it was recorded."""
        return number in self._idle

    def state(self, group: Group, writes: Sequence[Write]) -> tuple[Write, ...]:
        """The writes without those that had no effect on this request's answer, given the earlier ones that had."""
        known = self._known(group)
        left: list[Write] = []
        for write in writes:
            if not self._concerns_others(group, known, write) and write not in known.harmless.get(tuple(left), ()):
                left.append(write)
        return tuple(left)

    def cookies(self, group: Group, context: Context) -> frozenset[tuple[str, str]]:
        """The cookies without those that have no effect on this request's answer in this state."""
        known = self._known(group)
        harmless = known.harmless.get(self.state(group, context.writes), frozenset())
        return frozenset(
            pair
            for pair in context.cookies
            if pair[0] not in harmless and not self._concerns_others(group, known, pair[0])
        )

    def _concerns_others(self, group: Group, known: "_Known", label: Label) -> bool:
        """Whether a write or cookie concerns only its own pages, and this is none of them, or concerns nothing.

        A write about which little is known is assumed to be like the site's other writes.
        """
        if group.contexts == 1 or label in known.suspects:
            return False
        if group.is_own(label):
            return isinstance(label, Write) and self.is_idle(label.number) and group.is_one
        kind = _kind(group, label)
        is_like_others = self._are_writes_local and not isinstance(kind, str) and kind not in self._causes
        return kind in self._local or is_like_others

    def _known(self, group: Group) -> "_Known":
        known = self._of_group.get(id(group))
        if known is None:
            harmless: defaultdict[tuple[Write, ...], set[Label]] = defaultdict(set)
            known = _Known(frozenset(chain.from_iterable(group.changes())), harmless)
            # Stored before it is complete: short contexts come first and help with longer ones.
            self._of_group[id(group)] = known
            alike = [pair for pair in group.pairs if len(pair[0]) == 1 and pair[1].likeness == pair[2].likeness]
            for labels, one, other in sorted(alike, key=lambda pair: len(pair[1].context.writes)):
                shorter, longer = sorted((one.context.writes, other.context.writes), key=len)
                # Nothing after it may have undone it.
                if longer[: len(shorter)] == shorter and labels.isdisjoint(known.suspects):
                    harmless[self.state(group, shorter)] |= labels
        return known


class _Known(NamedTuple):
    """For one request: what may have changed its answer, and by state what did not."""

    suspects: frozenset[Label]
    harmless: Mapping[tuple[Write, ...], Set[Label]]


def _causes(changing: Collection[tuple[Group, frozenset[Label]]]) -> frozenset[object]:
    """What explains the changes that no address explains: repeatedly, what occurs in most of the remaining ones."""
    left = [
        {_kind(group, label) for label in labels}
        for group, labels in changing
        if not any(group.is_own(label) for label in labels)
    ]
    causes: set[object] = set()
    while left:
        counts = Counter(kind for kinds in left for kind in kinds)
        most = max(counts.values())
        best = {kind for kind, count in counts.items() if count == most}
        # A cookie is part of the request itself, so it wins. Otherwise, keep all that explain equally many.
        causes |= {kind for kind in best if isinstance(kind, str)} or best
        left = [kinds for kinds in left if kinds.isdisjoint(causes)]
    return frozenset(causes)


def _idle(groups: Collection[Group], mixed: Collection[Group], written: Collection[Written]) -> frozenset[int]:
    """The numbers of the writes that changed nothing, as far as the archive shows."""
    changing = {label for group in groups for labels in group.changes() for label in labels}
    numbers = {label.number for label in changing if isinstance(label, Write)}
    idle: set[int] = set()
    for each in written:
        label = Write(min(each.numbers))
        own = [group for group in mixed if group.is_own(label) and not group.is_timeless]
        is_steady = each.numbers.isdisjoint(numbers) and all(group.is_one for group in own)
        # What only sets values also answers alike in any state, so that two such requests prove little.
        if each.is_answered_alike and is_steady and sum(group.compares(each.numbers) for group in own) >= MIN_STEADY:
            idle |= each.numbers
    return frozenset(idle)


def _apart(group: Group) -> set[Label]:
    """Differences between contexts with equal answers, which nothing else could have undone.

    So there was no other write to the same address, and the page is not one that the write concerns.
    """
    found: set[Label] = set()
    for labels, _, _ in group.pairs:
        counts = Counter(_kind(group, label) for label in labels)
        found |= {label for label in labels if counts[_kind(group, label)] == 1 and not group.is_own(label)}
    return found


def _kind(group: Group, label: Label) -> object:
    """Groups writes to the same address, which differ only in what they send."""
    return label if isinstance(label, str) else _places(group.places, label).paths


def _places(places: Mapping[int | str, Places], label: Label) -> Places:
    return places.get(place_key(label), EVERYWHERE)


def choose(group: Group, context: Context, learnt: Learnt, *, walk: str, asked: Mapping[object, int]) -> Choice:
    """The answer to give in a context. `asked` counts the earlier requests by `Choice.situation`.

    The walk named `walk` is preferred, because the site may have been in a different state at the start of each walk.
    """
    if group.is_timeless:
        return Choice(_preferred(group.observations, walk), "certain")
    fitting = fitting_in(group, context, learnt)
    if not fitting:
        return Choice(_nearest(group.observations, context, walk), "nearest")
    own = [each for each in fitting if each.exchange.walk == walk]
    chosen = own or fitting
    situation = (id(group), *(each.exchange.record_id for each in chosen))
    count = asked.get(situation, 0)
    place = min(count, len(chosen) - 1)
    if len({each.likeness for each in chosen}) == 1:
        return Choice(chosen[place], "certain", situation)
    if not own and len({each.exchange.walk for each in chosen}) > 1:
        return Choice(chosen[0], "nearest", situation)
    is_steady = len(chosen) > 1 and chosen[-1].likeness == chosen[-2].likeness
    return Choice(chosen[place], "order" if count < len(chosen) or is_steady else "nearest", situation)


def fitting_in(group: Group, context: Context, learnt: Learnt) -> list[Observation]:
    """The observations in the same context, ignoring what is known to have no effect."""

    def kept(each: Context) -> tuple[object, ...]:
        return (learnt.state(group, each.writes), learnt.cookies(group, each))

    wanted = kept(context)
    return [
        each for each in group.observations if any(kept(seen) == wanted for seen in (each.context, each.overlapping))
    ]


def _preferred(observations: Sequence[Observation], walk: str) -> Observation:
    return next((each for each in observations if each.exchange.walk == walk), observations[0])


def _nearest(observations: Sequence[Observation], context: Context, walk: str) -> Observation:
    return min(
        reversed(observations),
        key=lambda each: (len(differences(each.context, context)), each.exchange.walk != walk),
    )

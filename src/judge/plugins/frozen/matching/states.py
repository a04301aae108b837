"""Learns what the answers to a request depend on, by comparing those that were recorded in different states. Pure.

Among the observations of one request (its recorded answers, each with its context), those in the same context as now
answer it. A context need not be the same in what does not matter for this request. That is known of a write or a cookie

- if two observations with and without it say the same, and nothing else that matters differed (`Group.harmless`), or
- if it is *local*: with and without it, many other pages said the same, none said something else, and this page has
  nothing to do with it by its address, redirects and links (`Locality`).

What no observation shows is not assumed: the answer is then uncertain.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple

from judge.plugins.frozen.exchanges import Exchange
from judge.plugins.frozen.matching.contexts import Context, Label, Places, differences

# Of these many a server without a dependency is likely; fewer prove little.
MIN_UNAFFECTED = 8
# Comparing takes time quadratic in these.
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
    """The chosen answer, and how: `certain` in the same context, `order` by counting, or the nearest one.

    `situation` is the same while the same observations answer a request.
    """

    observation: Observation
    how: Literal["certain", "order", "nearest"]
    situation: tuple[object, ...] = ()


@dataclass(frozen=True)
class Group:
    """The observations of one request, in the order in which they were recorded."""

    path: str
    observations: tuple[Observation, ...]
    places: Mapping[Label, Places] = field(repr=False)
    prefix: int = 0

    @cached_property
    def is_one(self) -> bool:
        """Whether all answers say the same."""
        return len({each.likeness for each in self.observations}) == 1

    @cached_property
    def is_timeless(self) -> bool:
        """Whether the answer holds in every state."""
        return self.is_one and all(each.is_timeless for each in self.observations)

    @cached_property
    def contexts(self) -> int:
        """In how many different contexts it was observed."""
        return len({each.context for each in self.observations})

    @cached_property
    def _pairs(self) -> list[tuple[frozenset[Label], Observation, Observation]]:
        compared = self.observations[:_MAX_COMPARED]
        pairs = [(differences(a.context, b.context), a, b) for a, b in combinations(compared, 2)]
        return sorted((pair for pair in pairs if pair[0]), key=lambda pair: len(pair[0]))

    @cached_property
    def relevant(self) -> frozenset[Label]:
        """What may have made answers differ. Pairs that differ in least are explained first."""
        found: set[Label] = set()
        for labels, one, other in self._pairs:
            if one.likeness != other.likeness and found.isdisjoint(labels):
                found |= labels
        return frozenset(found)

    def core(self, context: Context) -> tuple[object, ...]:
        """The part of a context that made answers differ."""
        writes = tuple(label for label in context.writes if label in self.relevant)
        return (writes, frozenset(pair for pair in context.cookies if pair[0] in self.relevant))

    @cached_property
    def _evidence(self) -> Mapping[tuple[object, ...], frozenset[Label]]:
        """By core: what made no difference with that core."""
        found: defaultdict[tuple[object, ...], set[Label]] = defaultdict(set)
        for labels, one, other in self._pairs:
            if one.likeness == other.likeness and labels.isdisjoint(self.relevant):
                found[self.core(one.context)] |= self._apart(labels)
        return {core: frozenset(labels) for core, labels in found.items()}

    def _apart(self, labels: frozenset[Label]) -> set[Label]:
        """Those that cannot have undone one another, such as two writes below the same address."""
        if len(labels) == 1:
            return set(labels)
        paths = {label: self.places[label].paths if label in self.places else frozenset() for label in labels}
        return {
            label
            for label in labels
            if all(paths[label].isdisjoint(paths[other]) for other in labels if other != label)
            and not (
                label in self.places and self.places[label].concern(self.path, self.prefix) and isinstance(label, int)
            )
        }

    def harmless(self, context: Context) -> frozenset[Label]:
        """What is known to make no difference in this context."""
        return self._evidence.get(self.core(context), frozenset())

    @cached_property
    def ever_harmless(self) -> frozenset[Label]:
        """What made no difference in some context."""
        return frozenset().union(*self._evidence.values())


class Locality:
    """Which writes and cookies concern nothing but their own pages, as far as all other pages show."""

    def __init__(self, groups: Collection[Group], places: Mapping[Label, Places], prefix: int) -> None:
        self._places = places
        self._prefix = prefix
        unaffected: defaultdict[object, set[str]] = defaultdict(set)
        affecting: set[object] = set()
        for group in groups:
            if group.is_timeless:
                continue
            for label in group.ever_harmless - group.relevant:
                if not self.concerns(label, group.path):
                    unaffected[self._kind(label)].add(group.path)
            affecting |= {self._kind(label) for label in group.relevant if not self.concerns(label, group.path)}
        self._local = {
            kind for kind, paths in unaffected.items() if len(paths) >= MIN_UNAFFECTED and kind not in affecting
        }

    def concerns(self, label: Label, path: str) -> bool:
        """Whether a page is likely to show what this write or cookie does."""
        places = self._places.get(label)
        return places is None or places.concern(path, self._prefix)

    def is_local(self, label: Label) -> bool:
        """Whether it concerns nothing but its own pages."""
        return self._kind(label) in self._local

    def _kind(self, label: Label) -> object:
        """Writes to the same address count together: they differ in what they send."""
        places = self._places.get(label)
        return label if isinstance(label, str) or places is None else places.paths


def choose(group: Group, context: Context, locality: Locality, *, walk: str, asked: Mapping[object, int]) -> Choice:
    """The answer to give in a context. `asked` counts the earlier requests by `Choice.situation`.

    The walk named `walk` is preferred, because each walk may have begun with the site in a state of its own.
    """
    if group.is_timeless:
        return Choice(_preferred(group.observations, walk), "certain")
    fitting = fitting_in(group, context, locality)
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


def fitting_in(group: Group, context: Context, locality: Locality) -> list[Observation]:
    """The observations in a context that is the same, but for what is known not to matter."""
    harmless = group.harmless(context)

    def matters(label: Label) -> bool:
        if label in harmless:
            return False
        is_elsewhere = group.contexts > 1 and label not in group.relevant and not locality.concerns(label, group.path)
        return not (is_elsewhere and locality.is_local(label))

    def kept(each: Context) -> tuple[object, ...]:
        writes = tuple(label for label in each.writes if matters(label))
        return (writes, frozenset(pair for pair in each.cookies if matters(pair[0])))

    wanted, core = kept(context), group.core(context)
    return [
        each
        for each in group.observations
        if any(kept(seen) == wanted and group.core(seen) == core for seen in (each.context, each.overlapping))
    ]


def _preferred(observations: Sequence[Observation], walk: str) -> Observation:
    return next((each for each in observations if each.exchange.walk == walk), observations[0])


def _nearest(observations: Sequence[Observation], context: Context, walk: str) -> Observation:
    return min(
        reversed(observations),
        key=lambda each: (len(differences(each.context, context)), each.exchange.walk != walk),
    )

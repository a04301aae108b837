"""Decides recorded walks: by the task's checks, and by the oracle that does not know them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from judge.evaluators.checks import assertions
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.plugins.nearmiss.operators import OPERATORS, asks, prescribes_way
from judge.plugins.nearmiss.oracle import Difference, Kind, Oracle, WalkReading, reading
from judge.plugins.nearmiss.proposals import proposal, relaxed
from judge.plugins.nearmiss.recordings import Recorded
from judge.plugins.nearmiss.walks import RIGHT, NotFollowed, ScriptedWalk
from judge.records.sites import RunSites, origin_of
from judge.records.tasks import Task
from judge.trajectory.record import JUDGED_ENDS
from shared.files import sha256_json
from shared.models import Record
from shared.text import one_line

# Lists: what the checks let through, what they fail though it did the task, and ways that nobody checks; `undecided`
# are listed and not counted. The others are counts: walks that broke off, that differ and fail, or that come to the
# same and pass.
Class = Literal["survivor", "over-strict", "way", "undecided", "stillborn", "killed", "same"]
LISTED: tuple[Class, ...] = ("survivor", "over-strict", "way", "undecided")


class MissDecision(Record):
    """What a walk is. `differences` are those from the right walk; `check` would have decided it rightly."""

    task_id: str
    walk_id: str
    operator: str
    about: str
    kind: Class
    why: str = ""
    differences: str = ""
    check: str | None = None
    film: str | None = None

    @classmethod
    def of(cls, walk: ScriptedWalk, kind: Class, why: str = "", **more: Any) -> "MissDecision":
        """The decision on this walk."""
        named = {name: getattr(walk, name) for name in ("task_id", "walk_id", "operator", "about")}
        return cls(**named, kind=kind, why=why, **more)


class LetThrough(Record):
    """How many walks that do something besides their task pass its checks, of how many; by operator."""

    survivors: dict[str, int]
    of: int

    @classmethod
    def among(cls, decisions: Iterable[MissDecision]) -> "LetThrough | None":
        """The figure; `None` without any such walk that was decided."""
        besides = [each for each in decisions if OPERATORS[each.operator].purpose == "besides"]
        survivors = Counter(each.operator for each in besides if each.kind == "survivor")
        decided = survivors.total() + sum(each.kind == "killed" for each in besides)
        return cls(survivors=dict(survivors), of=decided) if decided else None

    def __str__(self) -> str:
        by = ", ".join(f"{count} {name}" for name, count in sorted(self.survivors.items(), key=lambda each: -each[1]))
        return f"let through {sum(self.survivors.values())} of {self.of}{f': {by}' if by else ''}"


def checks_digest(tasks: Iterable[Task]) -> str:
    """What a figure is bound to: the tasks' texts and checks."""
    declared = [(task.task_id, task.declared_text, task.model_dump(mode="json")["checks"]) for task in tasks]
    return sha256_json(declared)


class SeenWalk(NamedTuple):
    """What a walk came to, or what its recording lacks; the verdict of its task's checks, and the first that failed."""

    reading: WalkReading | str
    outcome: str
    why: str


@dataclass(frozen=True)
class Deciding:
    """Everything recorded of a scenario's tasks, to be decided with the checks that they have now."""

    tasks: Mapping[str, Task]
    sites: RunSites
    known: dict[tuple[str, str], SeenWalk] = field(default_factory=dict)

    def decide(self, recordings: Sequence[Recorded], *, proposes: bool = True) -> Iterator[MissDecision]:
        """A decision for each near miss, in order. Its task's right walks must be among the recordings."""
        by_site = defaultdict[str, list[Recorded]](list)
        by_task = defaultdict[str, list[Recorded]](list)
        for each in recordings:
            by_site[self._site_of(each.walk.task_id)].append(each)
            by_task[each.walk.task_id].append(each)
        loads = {site: self.loads_of(walks) for site, walks in by_site.items()}
        for task_id, walks in by_task.items():
            rights = [each for each in walks if each.walk.operator == RIGHT]
            own_loads = loads[self._site_of(task_id)]
            decided = _TaskDeciding(self, self.tasks[task_id], rights, walks, own_loads, proposes)
            yield from (decided.decide(each) for each in walks if each.walk.operator != RIGHT)

    def loads_of(self, recordings: Iterable[Recorded]) -> frozenset[Kind]:
        """The kinds of requests that pages send when they are opened, in any of these walks."""
        read = [self.seen(each).reading for each in recordings]
        return frozenset().union(*(each.loads for each in read if isinstance(each, WalkReading)))

    def _site_of(self, task_id: str) -> str:
        return str(origin_of(self.tasks[task_id].website))

    def seen(self, walk: Recorded) -> SeenWalk:
        """What a walk came to, and what the checks say of it. Its files are read once; pages take memory."""
        key = walk.walk.task_id, walk.walk.walk_id
        if key not in self.known:
            evidence = self.evidence(walk)
            outcome, why = _verdict(evidence)
            try:
                read: WalkReading | str = reading(evidence, self.tasks[walk.walk.task_id].state)
            except MissingEvidence as missing:
                read = str(missing)
            self.known[key] = SeenWalk(read, outcome, why)
        return self.known[key]

    def oracle_of(self, rights: Sequence[Recorded], loads: frozenset[Kind]) -> Oracle:
        """What two right walks of a task came to. Raises `NotFollowed` if nothing can be decided by them."""
        readings = []
        for read, outcome, why in map(self.seen, rights[:2]):
            if isinstance(read, str):
                raise NotFollowed(read)
            if outcome != "success":
                raise NotFollowed(f"its right walk does not pass: {why}")
            readings.append(read)
        if len(readings) < 2:
            raise NotFollowed("there are no two right walks")
        return Oracle(readings[0], readings[1], loads)

    def evidence(self, walk: Recorded) -> TrajectoryEvidence:
        """What was recorded of a walk, as evidence for its task's checks."""
        return TrajectoryEvidence(walk.trajectory.as_task(self.tasks[walk.walk.task_id]), self.sites)


def _verdict(evidence: TrajectoryEvidence) -> tuple[str, str]:
    if evidence.trajectory.stop_reason not in JUDGED_ENDS:
        return "failure", evidence.trajectory.stop_reason
    for each in assertions(evidence):
        if each.passed is None:
            return "unscored", one_line(each.found, 300)
        if not each.passed:
            return "failure", one_line(each.description or each.check, 200)
    return "success", ""


@dataclass(frozen=True)
class _TaskDeciding:
    """The walks of one task."""

    all: Deciding
    task: Task
    rights: Sequence[Recorded]
    walks: Sequence[Recorded]
    loads: frozenset[Kind]
    proposes: bool

    @cached_property
    def oracle(self) -> Oracle | str:
        """What the right walks came to, or why nothing can be decided."""
        try:
            return self.all.oracle_of(self.rights, self.loads)
        except NotFollowed as why:
            return str(why)

    @cached_property
    def done(self) -> list[TrajectoryEvidence]:
        """The right walks, and those that did the task by another way and pass."""
        others = (each for each in self.walks if each.walk.operator != RIGHT)
        strict = (each for each in others if OPERATORS[each.walk.operator].purpose == "strict")
        decided = replace(self, proposes=False)
        passing = (each for each in strict if decided.decide(each).kind == "same")
        return [self.all.evidence(each) for each in (*self.rights, *passing)]

    def decide(self, miss: Recorded) -> MissDecision:
        """What one walk is."""
        walk, (read, outcome, why) = miss.walk, self.all.seen(miss)
        if self.rights and not walk.is_whole(miss.trajectory, self.rights[0].trajectory):
            said = miss.trajectory.final_answer or miss.trajectory.stop_reason
            return MissDecision.of(walk, "stillborn", one_line(said))
        if isinstance(self.oracle, str) or isinstance(read, str):
            return MissDecision.of(walk, "undecided", self.oracle if isinstance(self.oracle, str) else str(read))
        if outcome == "unscored":
            return MissDecision.of(walk, "undecided", why)
        purpose = OPERATORS[walk.operator].purpose
        # After the task, the last page may be any; what was written counts.
        with_page = purpose != "strict" or not self.oracle.written
        found = self.oracle.differences(read, with_page=with_page, asks=asks(self.task))
        kind, reason = _classified(purpose, bool(found), passes=outcome == "success", why=why)
        if kind == "survivor" and {each.signal for each in found} == {"writes"} and self.oracle.ends_alike(read):
            kind, reason = "undecided", "it sends more, and the site answers in the end as after the right walk"
        if kind == "survivor" and walk.is_elsewhere and all(each.only_adds for each in found):
            kind, reason = "undecided", "the page shows all that it should, and more"
        if kind == "way" and not prescribes_way(self.task):
            kind = "same"
        film = str(miss.film) if miss.film else None
        words, check = "; ".join(map(str, found)), self._check(kind, miss, found)
        return MissDecision.of(walk, kind, reason, differences=words, check=check, film=film)

    def _check(self, kind: Class, miss: Recorded, found: Sequence[Difference]) -> str | None:
        if not self.proposes or isinstance(self.oracle, str):
            return None
        if kind == "survivor":
            return proposal(self.task, self.done, self.all.evidence(miss), found, self.oracle)
        if kind != "over-strict":
            return None
        return relaxed(self.task, self.all.evidence(miss), [self.all.evidence(each) for each in self.rights])


def _classified(purpose: str, is_other: bool, *, passes: bool, why: str) -> tuple[Class, str]:
    """What a walk is, by whether it came to something else and by its verdict; and why, if that needs a word."""
    if purpose == "strict":
        if is_other:
            # It may have undone the task: nobody knows.
            return ("same" if passes else "undecided"), "it came to something else, and fails"
        return ("same", "") if passes else ("over-strict", f"fails: {why}")
    if purpose == "way":
        return ("undecided" if is_other else "way") if passes else "killed", why or "the address alone passes"
    if is_other:
        return ("survivor" if passes else "killed"), ("" if passes else why)
    return ("same", "") if passes else ("undecided", f"comes to the same, and fails: {why}")

"""Decides recorded walks: by the task's checks, and by the oracle that does not know them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from judge.evaluators.checks import assertions
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.judges.code import code_checksum
from judge.plugins.nearmiss.operators import OPERATORS, asks, prescribes_way
from judge.plugins.nearmiss.oracle import Difference, Kind, Oracle, WalkReading, reading
from judge.plugins.nearmiss.proposals import proposal, relaxed
from judge.plugins.nearmiss.recordings import Recorded
from judge.plugins.nearmiss.walks import RIGHT, ScriptedWalk
from judge.records.sites import RunSites, origin_of
from judge.records.tasks import Task
from judge.trajectory.record import JUDGED_ENDS
from shared.fields import as_mapping
from shared.files import sha256_file, sha256_json
from shared.models import Record
from shared.text import one_line

# Lists: what the checks let through, what they fail though it did the task, and ways that nobody checks; `undecided`
# are listed and not counted. The others are counts: walks that broke off, that differ and fail, or that come to the
# same and pass.
Class = Literal["survivor", "over-strict", "way", "undecided", "stillborn", "killed", "same"]
# Among the tasks of a report: what pages of their sites send when they are opened.
LOADS = "/loads"
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


class LetThrough(NamedTuple):
    """How many walks that do something besides their task pass its checks, of how many; by operator."""

    survivors: Mapping[str, int]
    decided: int

    @classmethod
    def of(cls, decisions: Iterable[MissDecision]) -> "LetThrough | None":
        """The figure; `None` without any such walk that was decided."""
        counted = [
            each
            for each in decisions
            if OPERATORS[each.operator].purpose == "besides" and each.kind in ("survivor", "killed")
        ]
        survivors = Counter(each.operator for each in counted if each.kind == "survivor")
        return cls(dict(survivors), len(counted)) if counted else None

    def __str__(self) -> str:
        total = sum(self.survivors.values())
        by = ", ".join(f"{count} {name}" for name, count in sorted(self.survivors.items(), key=lambda each: -each[1]))
        return f"let through {total} of {self.decided}{f': {by}' if by else ''}"


def checks_digest(tasks: Iterable[Task]) -> str:
    """What a figure is bound to: the tasks' texts and checks."""
    declared = [(task.task_id, task.declared_text, task.model_dump(mode="json")["checks"]) for task in tasks]
    return sha256_json(declared)


def basis_of(recordings: Iterable[Recorded]) -> str:
    """A digest of these recordings, and of the code that decides them."""
    code = [sha256_file(path) for path in sorted(Path(__file__).parent.glob("*.py"))]
    return sha256_json(
        [code_checksum(), *code, *sorted(f"{each.walk.walk_id} {each.walk.sha256}" for each in recordings)]
    )


@dataclass
class Deciding:
    """Everything recorded of a scenario's tasks, to be decided with the checks that they have now."""

    tasks: Mapping[str, Task]
    sites: RunSites
    # Of tasks that were decided before, with what they were decided on.
    known: Mapping[str, Any] = field(default_factory=dict)
    loads: dict[str, frozenset[Kind]] = field(default_factory=dict)
    readings: dict[str, WalkReading | str] = field(default_factory=dict)

    def decide(self, recordings: Sequence[Recorded], *, proposes: bool = True) -> Iterator[MissDecision]:
        """A decision for each near miss, in order. Its task's right walks must be among the recordings."""
        by_task = defaultdict[str, list[Recorded]](list)
        for each in recordings:
            by_task[each.walk.task_id].append(each)
        basis = basis_of(recordings)
        for task_id, walks in by_task.items():
            if (before := self.decided_before(task_id, basis)) is not None:
                yield from before
                continue
            task = self.tasks[task_id]
            rights = [each for each in walks if each.walk.operator == RIGHT]
            decided = _TaskDeciding(self, task, rights, walks, self._loads_on(task, basis, recordings), proposes)
            yield from (decided.decide(each) for each in walks if each.walk.operator != RIGHT)

    def _loads_on(self, task: Task, basis: str, recordings: Sequence[Recorded]) -> frozenset[Kind]:
        """What pages of a task's site send when they are opened, in any of the recordings."""
        site = str(origin_of(task.website))
        if site not in self.loads:
            before = as_mapping(self.known.get(LOADS))
            if before.get("basis") == basis and site in before:
                self.loads[site] = frozenset((method, path, tuple(map(tuple, of))) for method, path, of in before[site])
            else:
                self.loads[site] = self.loads_of(each for each in recordings if self._is_beside(each, task))
        return self.loads[site]

    def loads_of(self, recordings: Iterable[Recorded]) -> frozenset[Kind]:
        """The kinds of requests that pages send when they are opened, in any of these walks."""
        read = map(self.read, recordings)
        return frozenset().union(*(each.loads for each in read if isinstance(each, WalkReading)))

    def loads_as_json(self, basis: str) -> dict[str, Any]:
        """What is known of the sites, for the next time."""
        before = as_mapping(self.known.get(LOADS))
        kept = before if before.get("basis") == basis else {}
        return {**kept, "basis": basis, **{site: sorted(kinds) for site, kinds in self.loads.items()}}

    def _is_beside(self, walk: Recorded, task: Task) -> bool:
        return origin_of(self.tasks[walk.walk.task_id].website) == origin_of(task.website)

    def decided_before(self, task_id: str, basis: str) -> list[MissDecision] | None:
        """What was decided of a task with the same checks, on the same recordings; `None` if that was otherwise."""
        before = as_mapping(self.known.get(task_id))
        if before.get("basis") != self.basis_of(task_id, basis):
            return None
        with suppress(ValidationError):
            return [MissDecision.model_validate(each) for each in before.get("walks", ())]
        return None

    def basis_of(self, task_id: str, basis: str) -> str:
        """What the decisions on a task rest on: its text, checks and state, all recordings, and this code."""
        task = self.tasks[task_id]
        state = task.state.model_dump() if task.state else None
        return sha256_json([basis, task.declared_text, task.model_dump(mode="json")["checks"], state])

    def read(self, walk: Recorded) -> WalkReading | str:
        """What a walk came to, or what its recording lacks."""
        key = f"{walk.walk.task_id}/{walk.walk.walk_id}"
        if key not in self.readings:
            try:
                state = self.tasks[walk.walk.task_id].state
                self.readings[key] = reading(walk.trajectory, self.sites, state)
            except MissingEvidence as missing:
                self.readings[key] = str(missing)
        return self.readings[key]

    def evidence(self, walk: Recorded, task: Task) -> TrajectoryEvidence:
        """What was recorded of a walk, as evidence for the task's checks."""
        return TrajectoryEvidence(walk.trajectory.as_task(task), self.sites)

    def verdict(self, evidence: TrajectoryEvidence) -> tuple[str, str]:
        """The verdict of the task's checks on a walk, and the first check that failed or could not be decided."""
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
    loads: frozenset[Any]
    proposes: bool
    # Of this task's walks only: pages take memory.
    known: dict[str, TrajectoryEvidence] = field(default_factory=dict)

    def evidence(self, walk: Recorded) -> TrajectoryEvidence:
        """What was recorded of a walk, which is read once."""
        if walk.walk.walk_id not in self.known:
            self.known[walk.walk.walk_id] = self.all.evidence(walk, self.task)
        return self.known[walk.walk.walk_id]

    @cached_property
    def oracle(self) -> Oracle | str:
        """What the right walks came to, or why nothing can be decided."""
        if len(self.rights) < 2:
            return "there are no two right walks"
        readings = [self.all.read(each) for each in self.rights[:2]]
        if lacking := next((each for each in readings if isinstance(each, str)), None):
            return lacking
        for each in self.rights:
            outcome, why = self.all.verdict(self.evidence(each))
            if outcome != "success":
                return f"its right walk does not pass: {why}"
        right, again = (each for each in readings if isinstance(each, WalkReading))
        return Oracle(right, again, self.loads)

    @cached_property
    def done(self) -> list[Recorded]:
        """The right walks, and those that did the task by another way and pass."""
        others = [each for each in self.walks if each.walk.operator != RIGHT]
        strict = [each for each in others if OPERATORS[each.walk.operator].purpose == "strict"]
        proposes = replace(self, proposes=False)
        return [*self.rights, *(each for each in strict if proposes.decide(each).kind == "same")]

    def decide(self, miss: Recorded) -> MissDecision:
        """What one walk is."""
        walk, read = miss.walk, self.all.read(miss)
        if self.rights and not walk.is_whole(miss.trajectory, self.rights[0].trajectory):
            said = miss.trajectory.final_answer or miss.trajectory.stop_reason
            return MissDecision.of(walk, "stillborn", one_line(said))
        if isinstance(self.oracle, str) or isinstance(read, str):
            return MissDecision.of(walk, "undecided", self.oracle if isinstance(self.oracle, str) else str(read))
        outcome, why = self.all.verdict(self.evidence(miss))
        if outcome == "unscored":
            return MissDecision.of(walk, "undecided", why)
        purpose = OPERATORS[walk.operator].purpose
        # After the task, the last page may be any; what was written counts.
        with_page = purpose != "strict" or not self.oracle.has_writes
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
        own = self.evidence(miss)
        if kind == "survivor":
            return proposal(self.task, list(map(self.evidence, self.done)), own, found, self.oracle)
        return relaxed(self.task, own, list(map(self.evidence, self.rights))) if kind == "over-strict" else None


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

"""Plays the right walk of each task twice, then its near misses, and keeps each as soon as it has been played."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from judge.evaluators.kinds.fetch import FetchCheck
from judge.evaluators.kinds.probe import ProbeCheck
from judge.network.archives import Archives
from judge.plugins.nearmiss.deciding import Deciding, MissDecision
from judge.plugins.nearmiss.operators import near_misses
from judge.plugins.nearmiss.oracle import Kind, any_of
from judge.plugins.nearmiss.recordings import Recorded, film, keep, recorded
from judge.plugins.nearmiss.walks import (
    NUMBER_FIELDS,
    RIGHT,
    NotFollowed,
    RightWalk,
    ScriptedWalk,
    ScriptSteps,
    followed,
    reference_digest,
    references_of,
)
from judge.records.checks import fetches_of
from judge.records.sites import origin_of
from judge.records.tasks import Task
from judge.runner.rehearsal import played, walker_of
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from judge.scenario.sources import toml_value
from judge.trajectory.record import Trajectory
from shared.files import write_atomic
from shared.settings import Settings

_SCRIPTS = "walks.toml"
# A walk that is done twice, with the waits for elements that are not there.
_MORE_STEPS = 20
_MAX_ID_CHARS = 90


class Options(NamedTuple):
    """What is played: near misses by these operators, at most `limit` of each task."""

    operators: Sequence[str]
    limit: int
    seed: int
    max_parallel: int


Told = Callable[[int, int, Recorded, MissDecision | None], None]


@dataclass
class WalkPlaying:
    """The tasks of a scenario, the folder of their near misses, and what was recorded so far.

    `skipped` says for each task that is not played why. `told` hears of each walk: its number, of how many, and what
    it is.
    """

    scenario: Scenario
    tasks: Sequence[Task]
    folder: Path
    settings: Settings
    archives: Archives | None
    today: date
    options: Options
    told: Told
    # Whether whole attempts are kept, which a judge model can judge.
    is_whole: bool = False
    skipped: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)

    @cached_property
    def deciding(self) -> Deciding:
        """What decides the walks while they are played."""
        return Deciding({task.task_id: task for task in self.tasks}, self.scenario.config.sites)

    async def run(self) -> list[Recorded]:
        """Play what is not recorded yet. Returns everything recorded of these tasks. Raises `ConfigError`."""
        references, lacking = references_of(self.tasks, self.scenario.path.resolve().parent, self.today)
        self.skipped |= lacking
        known = current(self.folder, references, self.tasks, removes=True)
        walks = [
            self._right(task, references[task.task_id], number)
            for task in self.tasks
            if task.task_id in references
            for number in (1, 2)
        ]
        known |= await self._played(walks, known)
        loads = self.deciding.loads_of(known.values())
        misses: list[ScriptedWalk] = []
        operators, limit, seed, _ = self.options
        for task in (each for each in self.tasks if each.task_id in references):
            try:
                right = self._followed(task, known, loads)
            except NotFollowed as why:
                self.skipped[task.task_id] = str(why)
                # The next start plays it again: the site may have been slow, or is repaired by then.
                for number in (1, 2):
                    shutil.rmtree(self.folder / task.task_id / f"{RIGHT}-{number}", ignore_errors=True)
            else:
                misses += near_misses(right, references[task.task_id], operators, limit, seed)
        known |= await self._played(misses, known)
        return [each for key, each in sorted(known.items()) if key[0] not in self.skipped]

    def _right(self, task: Task, steps: ScriptSteps, number: int) -> ScriptedWalk:
        digest = reference_digest(task, steps)
        return ScriptedWalk(
            walk_id=f"{RIGHT}-{number}", task_id=task.task_id, operator=RIGHT, steps=steps, reference=digest
        )

    def _followed(self, task: Task, known: Mapping[tuple[str, str], Recorded], loads: frozenset[Kind]) -> RightWalk:
        """The right walk. Raises `NotFollowed` where it cannot be used."""
        rights = [each for number in (1, 2) if (each := known.get((task.task_id, f"{RIGHT}-{number}")))]
        if len(rights) < 2:
            raise NotFollowed(f"its reference could not be played: {self.lost.get(task.task_id, 'unknown')}")
        first, oracle = rights[0], self.deciding.oracle_of(rights, loads)
        for each in rights:
            if not each.walk.is_whole(each.trajectory, first.trajectory):
                raise NotFollowed(f"its reference fails: {each.trajectory.final_answer}")
        writing = frozenset(each.step for each in oracle.right.writes if any_of(each.kind) not in loads)
        if writing and not self._is_reset(task):
            raise NotFollowed("it changes its site, which is not reset: add reset_url, restart or static to it")
        return followed(first.walk, first.trajectory, task, writing, self.scenario.config.sites)

    def _is_reset(self, task: Task) -> bool:
        origin = origin_of(task.website)
        own = [site for site in self.scenario.sites if origin_of(site.endpoint) == origin]
        is_safe = task.holds_requests or self.archives is not None
        return is_safe or any(site.reset or site.restart or site.archive for site in own)

    async def _played(
        self, walks: Sequence[ScriptedWalk], known: Mapping[tuple[str, str], Recorded]
    ) -> dict[tuple[str, str], Recorded]:
        todo = {f"{each.task_id[:_MAX_ID_CHARS]}-{each.walk_id}": each for each in walks}
        todo = {name: each for name, each in todo.items() if (each.task_id, each.walk_id) not in known}
        if not todo:
            return {}
        by_id = {task.task_id: task for task in self.tasks}
        own_tasks = [by_id[each] for each in dict.fromkeys(each.task_id for each in todo.values())]
        logged_in = {each.task_id: each for each in with_logins(self.scenario, own_tasks, self.settings.environ)}
        tasks = [self._as_played(logged_in[each.task_id], name, each) for name, each in todo.items()]
        found: dict[tuple[str, str], Recorded] = {}

        def ended(trajectory: Trajectory) -> None:
            walk = todo[trajectory.task.task_id]
            if trajectory.is_aborted:
                self.lost[walk.task_id] = trajectory.attempt.cause or "aborted"
                return
            own = keep(walk, trajectory, self.folder, by_id[walk.task_id] if self.is_whole else None)
            found[walk.task_id, walk.walk_id] = own
            decision = self._decided(own, known)
            if decision is not None and decision.kind in ("survivor", "over-strict") and not self.is_whole:
                film(own, trajectory)
            self.told(len(found), len(todo), own, decision)

        steps = max(len(each.steps) for each in todo.values()) + _MORE_STEPS
        changes = {
            "record_network": True,
            "max_parallel": self.options.max_parallel,
            "max_steps": max(steps, self.scenario.config.max_steps),
        }
        with TemporaryDirectory(prefix="wabe-walks-") as folder:
            scripts = [{"task": task.task, "steps": list(todo[task.task_id].steps)} for task in tasks]
            write_atomic(Path(folder) / _SCRIPTS, f"scripts = {toml_value(scripts)}\n".encode())
            async with played(
                self.scenario,
                tasks,
                self.settings,
                walker_of(tasks, Path(folder)),
                archives=self.archives,
                ended=ended,
                today=self.today,
                slots=self.options.max_parallel,
                changes=changes,
            ):
                return found

    def _decided(self, own: Recorded, known: Mapping[tuple[str, str], Recorded]) -> MissDecision | None:
        """What a near miss is, as far as that is known already."""
        rights = [each for key, each in known.items() if key[0] == own.walk.task_id and each.walk.operator == RIGHT]
        return next(self.deciding.decide([*rights, own], proposes=False), None)

    def _as_played(self, task: Task, name: str, walk: ScriptedWalk) -> Task:
        """The task under a text of its own, so that its participant finds the walk; the judge reads a little more."""
        checks = task.checks
        if task.state is not None:
            state = {"kind": "fetch", "url": task.state.url, "response": "*", "bearer": task.state.bearer}
            checks = (*checks, FetchCheck.model_validate(state))
        if walk.operator == RIGHT:
            checks = (
                *checks,
                ProbeCheck.model_validate({"kind": "probe", "expression": NUMBER_FIELDS, "expected": ""}),
            )
        changes = {"task_id": name, "task": f"{task.task} ({name})", "dated": None, "checks": checks}
        return task.model_copy(update={**changes, "reference": _SCRIPTS})


def current(
    folder: Path, references: Mapping[str, ScriptSteps], tasks: Sequence[Task], *, removes: bool = False
) -> dict[tuple[str, str], Recorded]:
    """What was recorded of these tasks with the scripts that they have now, by task and walk.

    `removes` what is to be played again: also what lacks an answer that the checks compare now.
    """
    own = {task.task_id: task for task in tasks if task.task_id in references}
    digests = {name: reference_digest(task, references[name]) for name, task in own.items()}
    found = {}
    for each in recorded(folder):
        name = each.walk.task_id
        is_own = digests.get(name) == each.walk.reference
        if removes and name in own and not (is_own and _has_answers(each, own[name])):
            # It was made from another script, or lacks an answer.
            shutil.rmtree(each.folder, ignore_errors=True)
        elif is_own:
            found[name, each.walk.walk_id] = each
    return found


def _has_answers(walk: Recorded, task: Task) -> bool:
    """Whether the judge got everything, when the walk was played, that it asks a site for now."""
    state = task.state
    asked = {*fetches_of(task.checks), *([(state.url, state.bearer)] if state else [])}
    return not asked or asked <= {(each.url, each.bearer) for each in walk.trajectory.attempt.fetched}

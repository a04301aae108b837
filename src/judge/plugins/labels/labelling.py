"""One person's session of labelling: which attempts are shown in which order, and what is kept of what they say.

Attempts are known by their place only, so that nothing that a person sees names a run or a task's verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from judge.plugins.labels.agreement import pair_of, read_labels
from judge.plugins.labels.corrections import PLAN_FILE, LabelledRun
from judge.plugins.labels.label_files import (
    PAGE_VERSION,
    AttemptKey,
    LabelFiles,
    LabelLine,
    LabelWord,
    append_label,
    label_file,
    labels_folder,
)
from judge.plugins.labels.label_plan import extended, new_seed, read_plan, require_seed, write_plan
from judge.plugins.labels.labelled import LabelledAttempt
from judge.results.corrected import MIN_LABELS
from judge.results.part import publish
from judge.store.layout import RunStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.fields import printable
from shared.text import counted

IMPORTED_PAGE = 0
_AGAIN = "start wabe label again"


class Place(NamedTuple):
    """An attempt to label, and the run that it is of."""

    run: RunStore
    attempt: LabelledAttempt


@dataclass
class Labelling:
    """A session. `latest` has the labeller's last line on each shown attempt, by its place from 0."""

    labeller: str
    places: Sequence[Place]
    is_blind: bool = True
    adjudicates: bool = False
    notes: Sequence[str] = ()
    latest: dict[int, LabelLine] = field(default_factory=dict)
    # The places in the order in which they were labelled, for undoing.
    _done: list[int] = field(default_factory=list)

    @property
    def labelled(self) -> int:
        """How many attempts have a label of this person."""
        return sum(line.label is not None for line in self.latest.values())

    @property
    def at_least(self) -> int:
        """How many more labels any corrected success rate needs; which verdicts they are of stays unsaid."""
        decided = sum(line.label in ("success", "failure") for line in self.latest.values())
        return max(0, min(MIN_LABELS, len(self.places)) - decided)

    def label_of(self, place: int) -> LabelWord | None:
        """This person's label."""
        line = self.latest.get(place)
        return line.label if line else None

    def next_open(self, after: int = -1) -> int | None:
        """The next place without a label, from the beginning if there is none after this one."""
        order = [*range(after + 1, len(self.places)), *range(after + 1)]
        return next((place for place in order if self.label_of(place) is None), None)

    def trajectory(self, place: int) -> Trajectory:
        """What is shown. Raises `ConfigError` if it is not the drawn trajectory.

        Errors name attempts by their place: anything else could tell what a blind person must not know.
        """
        key, folder = self.places[place].attempt.key, self.places[place].attempt.folder
        try:
            trajectory = load_trajectory(folder)
        except TrajectoryError:
            raise ConfigError(f"attempt {place + 1} cannot be read any more", remedy="wabe verify says why") from None
        if trajectory.sha256 != key.sha256:
            raise ConfigError(f"attempt {place + 1}: its trajectory has changed since it was drawn", remedy=_AGAIN)
        return trajectory

    def say(self, place: int, label: LabelWord | None, note: str = "", seconds: float = 0.0) -> None:
        """Keep a label, or take one back, with its note. Raises `ConfigError`, also for a changed trajectory."""
        self.trajectory(place)
        run, attempt = self.places[place]
        key = attempt.key
        line = LabelLine(
            task_id=key.task_id,
            epoch=key.epoch,
            trajectory_sha256=key.sha256,
            label=label,
            note=note,
            seconds=round(seconds, 1),
            page=PAGE_VERSION,
            blind=self.is_blind,
            adjudicates=self.adjudicates,
        )
        try:
            append_label(label_file(run, self.labeller), line)
        except ConfigError:
            raise ConfigError("the label cannot be written", remedy="check the disk's space and its folder") from None
        before = self.label_of(place)
        self.latest[place] = line
        if label is None and place in self._done:
            self._done.remove(place)
        elif label is not None and (label != before or place not in self._done):
            self._done = [*(each for each in self._done if each != place), place]

    def undo(self) -> int | None:
        """Take back the last label; returns its place, or `None` if there is none."""
        if not self._done:
            return None
        place = self._done[-1]
        self.say(place, None, self.latest[place].note)
        return place

    def others(self, place: int) -> Mapping[str, LabelLine]:
        """The other labels of an attempt, for whoever adjudicates."""
        opinions = self.places[place].attempt.opinions
        return {} if opinions is None else {n: line for n, line in opinions.lines.items() if not line.adjudicates}


def begin(
    runs: Sequence[RunStore],
    labeller: str,
    *,
    labels: int | None = None,
    seed: int | None = None,
    is_blind: bool = True,
    conflicts: bool = False,
) -> Labelling:
    """Draw or extend the plans, and begin a session or go on with one. Raises `ConfigError`.

    With `conflicts`, only attempts on which people differ are shown, without a plan.
    """
    require_different(runs)
    for run in runs:
        label_file(run, labeller)
    if not conflicts:
        _draw(runs, labels, seed)
    labelled_runs = {run: LabelledRun(run) for run in runs}
    notes = [
        note if len(runs) == 1 else f"{run.run_id}: {note}"
        for run, each in labelled_runs.items()
        for note in each.notes
    ]
    places = _conflicts(labelled_runs) if conflicts else _sample(labelled_runs)
    if not places:
        raise ConfigError(
            "no attempt on which labels differ" if conflicts else "no attempt to label",
            remedy="label with several people first (--as)" if conflicts else "judge the run first: wabe score RUN",
        )
    session = Labelling(labeller, places, is_blind=is_blind, adjudicates=conflicts, notes=notes)
    _resume(session, {run: each.files for run, each in labelled_runs.items()})
    return session


def require_different(runs: Sequence[RunStore]) -> None:
    """Raise a `ConfigError` if a run is named twice."""
    folders = [run.folder.resolve() for run in runs]
    again = next((run for number, run in enumerate(runs) if folders[number] in folders[:number]), None)
    if again is not None:
        raise ConfigError(f"{again.run_id} is named twice", remedy="name each run once")


def _draw(runs: Sequence[RunStore], labels: int | None, seed: int | None) -> None:
    paths = {run.run_id: labels_folder(run) / PLAN_FILE for run in runs}
    plans = {name: read_plan(path) for name, path in paths.items()}
    known = [plan for plan in plans.values() if plan is not None]
    if seed is not None:
        require_seed(known, seed)
    if labels is None and len(known) == len(runs):
        # Go on with what is drawn.
        return
    attempts = {run.run_id: LabelledRun(run).attempts for run in runs}
    used = seed if seed is not None else new_seed()
    for name, plan in extended(plans, attempts, labels, seed=used).items():
        if plan != plans[name]:
            write_plan(paths[name], plan)


def _sample(labelled: Mapping[RunStore, LabelledRun]) -> list[Place]:
    """The drawn attempts of all runs, mixed in an order that does not tell which run or verdict they are of."""
    ranked: list[tuple[str, Place]] = []
    for run, each in labelled.items():
        there = {attempt.key: attempt for attempt in each.attempts if not attempt.is_settled}
        if each.plan is not None:
            ranked += [(rank, Place(run, there[key])) for rank, key in each.plan.ranked if key in there]
    return [place for _, place in sorted(ranked, key=lambda pair: pair[0])]


def _conflicts(labelled: Mapping[RunStore, LabelledRun]) -> list[Place]:
    return [
        Place(run, attempt)
        for run, each in labelled.items()
        for attempt in each.attempts
        if attempt.opinions is not None and attempt.opinions.is_conflict
    ]


def _resume(session: Labelling, files: Mapping[RunStore, LabelFiles]) -> None:
    """Take over the earlier labels of this person."""
    known = {(place.run.run_id, place.attempt.key): number for number, place in enumerate(session.places)}
    for run, each in files.items():
        for line in each.lines.get(session.labeller, ()):
            number = known.get((run.run_id, line.attempt))
            if number is None or line.adjudicates != session.adjudicates:
                continue
            session.latest[number] = line
            session._done = [other for other in session._done if other != number]
            session._done += [number] if line.label is not None else []


def import_labels(run: RunStore, labeller: str, path: Path, column: str) -> tuple[int, list[str]]:
    """Append the labels of a file that `wabe agreement` reads. Returns how many, and a line for those left out."""
    target, rows = label_file(run, labeller), read_labels(path, column)
    by_task: dict[str, list[AttemptKey]] = {}
    for attempt in LabelledRun(run).attempts:
        by_task.setdefault(attempt.key.task_id, []).append(attempt.key)
    lines, unknown, several = list[LabelLine](), list[str](), list[str]()
    for task_id, (label_text, groups) in rows.items():
        pair = pair_of(label_text, "success", {}, f"{path}: task {printable(task_id)}")
        keys = [key for key in by_task.get(task_id, ()) if groups.get("epoch") in (None, "", str(key.epoch))]
        if pair.excluded == "unlabelled":
            continue
        if len(keys) != 1:
            (several if keys else unknown).append(task_id)
            continue
        label: LabelWord = "undecided" if pair.excluded else "success" if pair.human else "failure"
        key = keys[0]
        lines.append(
            LabelLine(
                task_id=key.task_id,
                epoch=key.epoch,
                trajectory_sha256=key.sha256,
                label=label,
                page=IMPORTED_PAGE,
                blind=False,
            )
        )
    for line in lines:
        append_label(target, line)
    notes = []
    if unknown:
        notes.append(
            f"{path}: {counted(len(unknown), 'label')} of tasks without a scored attempt, such as {unknown[0]}"
        )
    if several:
        notes.append(f"{path}: {counted(len(several), 'label')} of tasks with several epochs, such as {several[0]}")
    return len(lines), notes


def end(runs: Sequence[RunStore]) -> list[str]:
    """Update the results of the runs with their labels; returns a line about each."""
    lines = []
    for run in runs:
        correction = LabelledRun(run).correction
        why = publish(run) or (correction.why_absent if correction else "")
        lines.append(f"{run.run_id}: {why or 'results.json has the corrected success rate'}")
    return lines

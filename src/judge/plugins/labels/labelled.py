"""The attempts of a run that people's labels are about: scored ones without an attack, each with what people say."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from judge.judges.rescoring import WHY_ZERO
from judge.plugins.labels.label_files import AttemptKey, LabelFiles, LabelWord, Opinions
from judge.records.sites import site_of
from judge.results.columns import RowSource
from judge.results.folders import FoundTask
from judge.store.layout import RunStore, TaskStore
from judge.trajectory.files import load_trajectory, read_result
from judge.trajectory.record import Attempt
from shared.errors import TrajectoryError
from shared.fields import SHA256
from shared.text import counted

_SHA256 = re.compile(SHA256)


@dataclass(frozen=True)
class LabelledAttempt:
    """An attempt with its counted verdict. `is_settled`: rules decided it, so that no judge can have erred.

    `folder` is where it is, `opinions` what people say.
    """

    key: AttemptKey
    folder: Path
    verdict: Literal["success", "failure"]
    website: str
    is_settled: bool
    opinions: Opinions | None = None

    @property
    def label(self) -> LabelWord | None:
        """People's label."""
        return self.opinions.label if self.opinions else None

    @property
    def is_decided(self) -> bool:
        """Whether people say success or failure."""
        return self.label in ("success", "failure")


def attempts_of(store: RunStore, files: LabelFiles | None = None) -> list[LabelledAttempt]:
    """The scored attempts of a run, or of another tool's folder, that are not under attack."""
    opinions = files.opinions if files else {}
    attempts = []
    for task in store.tasks():
        try:
            attempt, sha256 = _read(task)
        except TrajectoryError:
            # Reported by `wabe verify`; such an attempt is in no rate.
            continue
        outcome = attempt.outcome
        if sha256 is None or attempt.task.clean_task is not None or outcome not in ("success", "failure"):
            continue
        key = AttemptKey(task.name, task.epoch, sha256)
        verdict: Literal["success", "failure"] = "success" if outcome == "success" else "failure"
        is_settled = not isinstance(task, FoundTask) and attempt.stop_reason in WHY_ZERO
        website = site_of(attempt.task.website) or attempt.task.website
        attempts.append(LabelledAttempt(key, task.folder, verdict, website, is_settled, opinions.get(key)))
    return attempts


def _read(task: TaskStore) -> tuple[Attempt, str | None]:
    if isinstance(task, FoundTask):
        return task.attempt(), load_trajectory(task.folder).sha256
    result = read_result(task.folder)
    sha256 = result.get("trajectory_sha256")
    attempt = Attempt.from_json(result, source=str(task.folder / "result.json"))
    # Versions before digests were recorded have none, and a file that somebody made may have anything.
    is_digest = isinstance(sha256, str) and _SHA256.fullmatch(sha256)
    return attempt, sha256 if is_digest else load_trajectory(task.folder).sha256


class PeopleLabels:
    """The labels of a run, for its rows; reads an attempt's digest only if somebody labelled that task."""

    def __init__(self, files: LabelFiles) -> None:
        self._opinions = files.opinions
        self._labelled = {(key.task_id, key.epoch) for key in self._opinions}

    def of(self, source: RowSource) -> LabelWord | None:
        """People's label of an attempt; `None` without one on this very trajectory."""
        if (source.task_id, source.epoch) not in self._labelled or source.folder is None:
            return None
        try:
            digest = source.sha256 or load_trajectory(source.folder).sha256
        except TrajectoryError:
            return None
        opinions = self._opinions.get(AttemptKey(source.task_id, source.epoch, digest or ""))
        return opinions.label if opinions else None


def strangers(files: LabelFiles, attempts: Collection[LabelledAttempt]) -> Iterator[str]:
    """Labels that are of no attempt here, a line for each file: of another trajectory, or of another run."""
    known = {each.key for each in attempts}
    names = {(each.key.task_id, each.key.epoch) for each in attempts}
    for labeller, lines in files.lines.items():
        where = f"labels/{labeller}.jsonl"
        keys = {line.attempt for line in lines} - known
        changed = [key for key in keys if (key.task_id, key.epoch) in names]
        other = len(keys) - len(changed)
        if changed:
            what = f"{counted(len(changed), 'label')} of another trajectory, such as {min(changed).name}"
            yield f"{where}: {what}: ignored"
        if other:
            yield f"{where}: {counted(other, 'label')} of attempts that are not scored in this run: ignored"

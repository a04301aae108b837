"""Treats folders of trajectories that WABE did not record as runs, for reports, checks and exports.

A run's `run.json` says which tasks it has and which judge's verdicts count. A folder has no `run.json`: its tasks are
the trajectories in it, in name order, and `counted_judge.json` names the judge whose verdicts count. It is written when
the folder is first judged here and when a user chooses a judge, so that judging with another one changes no result.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from judge.judges.rescoring import verdict_on_file
from judge.judges.stored import find_trajectories
from judge.records.verdicts import JudgeInfo, Verdict
from judge.results.submission import read_submissions
from judge.store.layout import RUN_ID, RunStore, TaskStore, readable_verdicts, resolve_run, run_at, run_of
from judge.trajectory.files import foreign_task_id, foreign_verdicts, load_trajectory
from judge.trajectory.paths import TASK_FILE, usable_id
from judge.trajectory.record import Attempt
from shared.errors import ConfigError
from shared.fields import as_mapping, printable
from shared.files import read_json, write_errors, write_json
from shared.text import counted

# Names the judge whose verdicts count in a folder.
COUNTED_JUDGE = "counted_judge.json"
_MAX_CHOICE_BYTES = 10_000


class FoundTask(TaskStore):
    """One trajectory of such a folder. `name` is its id; `judge_id` is the judge whose verdict counts."""

    def __init__(self, folder: Path, name: str, judge_id: str | None) -> None:
        super().__init__(folder)
        self.name = name
        self.judge_id = judge_id

    @property
    def epoch(self) -> int:
        """Always 1: the folder's path does not contain an epoch."""
        return 1

    def attempt(self) -> Attempt:
        """The attempt, with the verdict that counts. Raises `TrajectoryError`."""
        trajectory = load_trajectory(self.folder)
        attempt = trajectory.attempt
        verdict = attempt.verdict
        if verdict is None and self.judge_id is not None:
            verdict = verdict_on_file(self, self.judge_id, trajectory) or foreign_verdicts(self.folder).get(
                self.judge_id
            )
        return attempt.model_copy(
            update={"task": attempt.task.model_copy(update={"task_id": self.name}), "verdict": verdict}
        )


class FolderStore(RunStore):
    """A folder with trajectories of any layout. Its reports and exports go to `<output_dir>/folders/<name>-<digest>`.

    The digest is its path's, because a layout may name every such folder `traj`.
    """

    def __init__(self, folder: Path, output_dir: Path) -> None:
        # Without the parent's initialiser, because a foreign folder's name need not be a valid run id.
        self.folder = self.results = folder
        self.output_dir = output_dir
        path = Path(os.path.realpath(folder))
        self.run_id = usable_id("_".join(path.parts[-2:]).strip("/"))
        self.derived = output_dir / "folders" / f"{self.run_id}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"

    @cached_property
    def _folders(self) -> dict[str, Path]:
        """The trajectories by id, which is their folder's name, made unique, also without regard to case."""
        folders: dict[str, Path] = {}
        used_ids: set[str] = set()
        for folder in find_trajectories(self.folder):
            name = unique_id = usable_id(folder.resolve().name)
            count = 1
            while name.casefold() in used_ids:
                count += 1
                name = f"{unique_id[:120]}-{count}"
            used_ids.add(name.casefold())
            folders[name] = folder
        return folders

    @cached_property
    def judges(self) -> Mapping[str, tuple[int, JudgeInfo | None]]:
        """By id, how many trajectories each judge decided, and who it is: ours first, then other tools' evaluators."""
        own, foreign, known = Counter[str](), Counter[str](), dict[str, JudgeInfo | None]()
        for folder in self._folders.values():
            for count, verdicts in ((own, readable_verdicts(folder)), (foreign, foreign_verdicts(folder))):
                # 1 for each verdict of success or failure, 0 for the others.
                count.update({name: int(each.outcome != "unscored") for name, each in verdicts.items()})
                known |= {name: verdict.judge for name, verdict in verdicts.items()}
        # Other tools' evaluators only come first if our decided nothing. If several decided as many, the
        # first by name, so that the choice does not depend on the order of files.
        counts = (own, foreign) if own.total() or not foreign.total() else (foreign, own)
        order = [name for count in counts for name in sorted(count, key=lambda name: (-count[name], name))]
        return {name: ((own | foreign)[name], known.get(name)) for name in order}

    @cached_property
    def judge_id(self) -> str | None:
        """The judge whose verdicts count: the chosen one, else the one that decided most."""
        judge_id = None
        with suppress(OSError, ValueError):
            judge_id = as_mapping(read_json(self.folder / COUNTED_JUDGE, max_bytes=_MAX_CHOICE_BYTES)).get("judge_id")
        return judge_id if isinstance(judge_id, str) and judge_id in self.judges else next(iter(self.judges), None)

    def count_judge(self, judge_id: str) -> None:
        """From now on, count the verdicts of this judge. Raises `ConfigError` if that cannot be written."""
        with write_errors(f"cannot write {self.folder / COUNTED_JUDGE}", "check the permissions of the folder"):
            write_json(self.folder / COUNTED_JUDGE, {"judge_id": judge_id})
        self.__dict__.pop("judge_id", None)

    def choose_judge(self, name: str) -> None:
        """Count the verdicts of the judge with this id, method, model, or `METHOD@MODEL`. Raises `ConfigError`."""
        judge_ids = [judge_id for judge_id, (_, info) in self.judges.items() if name in _names_of(judge_id, info)]
        if len(judge_ids) == 1:
            self.count_judge(judge_ids[0])
            return
        known = ", ".join(judge_ids or self.judges) or "none: run wabe score"
        problem = "is the name of several judges" if judge_ids else "is not the name of a judge with verdicts here"
        raise ConfigError(f"--judge: {printable(name)} {problem}", remedy=f"name one by its id: {known}")

    def task(self, task_id: str, epoch: int = 1) -> FoundTask:
        """The trajectory of that id; a folder has no epochs."""
        return FoundTask(self._folders[task_id], task_id, self.judge_id)

    def task_folders(self) -> Iterator[TaskStore]:
        """Every trajectory, in name order."""
        return (self.task(name) for name in self._folders)

    def read_run(self) -> dict[str, Any]:
        """A substitute for `run.json`."""
        _, info = self.judges.get(self.judge_id or "", (0, None))
        return {
            "task_ids": list(self._folders),
            "judge_id": self.judge_id,
            "participants": {self.run_id: ""},
            **({"judge": info.model_dump(mode="json"), "judge_model": info.model} if info else {}),
        }


def keep_counted_judge(folder: Path, output_dir: Path, first: str | None = None) -> None:
    """Record which judge's verdicts count in a folder of trajectories, if it has any and none is recorded.

    To be called before the folder is judged by another judge, and afterwards: `first` is then the one that was asked
    first.
    """
    if (folder / COUNTED_JUDGE).exists():
        return
    store = FolderStore(folder, output_dir)
    decided = [judge_id for judge_id, (count, _) in store.judges.items() if count]
    if decided:
        store.count_judge(first if first in decided else decided[0])


def _names_of(judge_id: str, info: JudgeInfo | None) -> tuple[str, ...]:
    return (judge_id, *((info.method, info.model, f"{info.method}@{info.model}") if info else ()))


def resolve_store(argument: str, output_dir: Path, tasks: Path | None = None) -> RunStore:
    """A run by id, by its folder, also one copied elsewhere, or `latest`; or a folder with trajectories.

    `tasks` is a file with the texts of a foreign folder's tasks, see `give_tasks`. Raises `ConfigError`.
    """
    path = Path(argument)
    # Validated first, because joining an absolute path would replace the folder of runs.
    is_id = argument in ("", "latest") or (RUN_ID.fullmatch(argument) and (output_dir / "runs" / argument).is_dir())
    if is_id or not path.is_dir() or any((path / name).exists() for name in ("run.json", "results.json")):
        if tasks is not None:
            raise ConfigError(f"{argument}: --tasks is for folders of other tools", remedy="a run knows its tasks")
        if not is_id:
            if (copied := run_at(path, output_dir)) is not None:
                # Raises for a run of a newer version.
                copied.read_run()
                return copied
            _require_no_submission(path)
        return resolve_run(argument, output_dir)
    store = FolderStore(path, output_dir)
    if tasks is not None:
        give_tasks([task.folder for task in store.tasks()], tasks)
    return store


def _require_no_submission(path: Path) -> None:
    """Raise a `ConfigError` for a submission not in a run's folder; it names one of another benchmark."""
    file = path / "results.json" if path.is_dir() else path
    if file.suffix == ".json" and file.is_file() and run_of(file.parent) is None and read_submissions(file):
        raise ConfigError(f"{path}: a submission, without the run's recordings", remedy="give a run's folder")


def verdicts_beside(store: TaskStore) -> dict[str, Verdict]:
    """Every verdict on a trajectory by judge id: our valid ones, and other evaluators'.

    Raises `TrajectoryError` if the trajectory cannot be read.
    """
    trajectory = load_trajectory(store.folder)
    own = {judge_id: verdict_on_file(store, judge_id, trajectory) for judge_id in readable_verdicts(store.folder)}
    return {**{name: verdict for name, verdict in own.items() if verdict}, **foreign_verdicts(store.folder)}


def give_tasks(folders: Sequence[Path], path: Path) -> None:
    """Write the tasks in a file as `task.json` into those trajectory folders whose layout does not store the task.

    A trajectory is matched by its folder's name, or by the id in its answer file's name. Folders without a match are
    left unchanged. Raises `ConfigError`.
    """
    from judge.scenario.sources import read_task_rows

    tasks = read_task_rows(path, "--tasks")
    folders = [folder for folder in folders if not (folder / "result.json").exists()]
    known = [(folder, tasks.get(folder.resolve().name) or tasks.get(foreign_task_id(folder))) for folder in folders]
    if not any(task for _, task in known):
        count_text = counted(len(folders), "trajectory", "trajectories")
        raise ConfigError(
            f"--tasks {path} has {counted(len(tasks), 'task')}, but none of {count_text} without a text",
            remedy="task ids must be the names of the trajectories' folders",
        )
    for folder, task in known:
        if task:
            parts = task.model_dump(exclude_none=True)
            write_json(folder / TASK_FILE, {**parts, "task_id": usable_id(task.task_id)})

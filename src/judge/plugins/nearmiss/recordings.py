"""The folder `near-misses` beside a scenario: what was played, without screenshots, to be decided again after an edit.

`TASK/WALK/` has `walk.json`, `result.json`, `network.har` and `snapshots/`; of what an author looks at, also a film.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.plugins.nearmiss.walks import ScriptedWalk
from judge.records.tasks import Task
from judge.results.film import make_film
from judge.trajectory.files import read_result, recorded_pages
from judge.trajectory.network import NETWORK_FILE
from judge.trajectory.record import Attempt, Trajectory, evidence_sha256
from shared.errors import ConfigError, TrajectoryError
from shared.fields import first_mistake
from shared.files import read_errors, read_json, write_errors, write_json

FOLDER = "near-misses"
FILM = "film.gif"
REPORT = "report.json"
_WALK = "walk.json"
_KEPT = ("snapshots", "final", "downloads")


@dataclass(frozen=True)
class Recorded:
    """A walk that was played, and the folder of its recording, which is read when it is needed."""

    walk: ScriptedWalk
    folder: Path

    @cached_property
    def trajectory(self) -> Trajectory:
        """As `load_trajectory` reads it, without comparing digests: the author's own files, read at every save."""
        attempt = Attempt.from_json(read_result(self.folder), source=str(self.folder / "result.json"))
        network = self.folder / NETWORK_FILE
        return Trajectory(
            folder=self.folder,
            attempt=attempt,
            network=network if network.is_file() else None,
            network_missing=attempt.network_missing,
        )

    @property
    def film(self) -> Path | None:
        """Its film, if there is one."""
        path = self.folder / FILM
        return path if path.is_file() else None


def keep(walk: ScriptedWalk, played: Trajectory, folder: Path, whole: Task | None = None) -> Recorded:
    """Keep what was played in a scenario's folder of near misses, without screenshots. Raises `ConfigError`.

    As an attempt at the `whole` task, if it is given: with screenshots, and with nothing that names the walk.
    """
    place = folder / walk.task_id / walk.walk_id
    left_out = () if whole else ("screenshot.*",)
    with write_errors(place, "choose another --output"):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name in (*_KEPT, *(("trajectory",) if whole else ())):
            if (played.folder / name).is_dir():
                shutil.copytree(played.folder / name, place / name, ignore=shutil.ignore_patterns(*left_out))
        if played.network is not None:
            shutil.copyfile(played.network, place / NETWORK_FILE)
        of_whole = played.attempt.model_copy(update={"task": whole, "verdict": None}) if whole else None
        result = of_whole.to_json() if of_whole else _without_screenshots(read_result(played.folder))
        write_json(place / "result.json", result)
        # Last: a folder with it is whole.
        write_json(place / _WALK, walk.model_dump(mode="json"))
    return Recorded(walk, place)


def _without_screenshots(result: dict[str, Any]) -> dict[str, Any]:
    for page in recorded_pages(result):
        page |= {"screenshot": None, "screenshot_sha256": None}
    return {**result, "trajectory_sha256": evidence_sha256(result)}


def film(walk: Recorded, played: Trajectory) -> None:
    """Keep a film of what was played, where films can be made."""
    with suppress(ConfigError, TrajectoryError, OSError):
        (walk.folder / FILM).write_bytes(make_film(played.folder, "gif"))


def recorded(folder: Path) -> Iterator[Recorded]:
    """All walks in a folder of near misses, in order. Raises `ConfigError` for a damaged one."""
    for path in sorted(folder.glob(f"*/*/{_WALK}")):
        with read_errors(path, "delete its folder, and play it again"):
            try:
                walk = ScriptedWalk.model_validate(read_json(path))
            except ValidationError as error:
                raise ConfigError(f"{path}: {first_mistake(error)}", remedy="delete its folder") from None
        yield Recorded(walk, path.parent)


def write_report(folder: Path, report: dict[str, Any]) -> None:
    """Write the figures and lists as data."""
    with write_errors(folder, "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / REPORT, report)

"""The folder `near-misses` beside a scenario: what was played, without screenshots, to be decided again after an edit.

`TASK/WALK/` has `walk.json`, `result.json`, `network.har` and `snapshots/`; of what an author looks at, also a film.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from judge.plugins.nearmiss.walks import Walk
from judge.results.film import make_film
from judge.trajectory.files import read_result, recorded_pages
from judge.trajectory.network import NETWORK_FILE
from judge.trajectory.record import Attempt, Trajectory, evidence_sha256
from shared.errors import ConfigError, TrajectoryError
from shared.fields import first_mistake
from shared.files import read_errors, read_json, write_errors, write_json

FOLDER = "near-misses"
FILM = "film.gif"
_WALK = "walk.json"
_KEPT = ("snapshots", "final", "downloads")


class Recorded(NamedTuple):
    """A walk that was played."""

    walk: Walk
    trajectory: Trajectory

    @property
    def film(self) -> Path | None:
        """Its film, if there is one."""
        path = self.trajectory.folder / FILM
        return path if path.is_file() else None


def keep(walk: Walk, played: Trajectory, folder: Path) -> Recorded:
    """Keep what was played in a scenario's folder of near misses, without screenshots. Raises `ConfigError`."""
    place = folder / walk.task_id / walk.walk_id
    with write_errors(place, "choose another --output"):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name in _KEPT:
            if (played.folder / name).is_dir():
                shutil.copytree(played.folder / name, place / name, ignore=shutil.ignore_patterns("screenshot.*"))
        if played.network is not None:
            shutil.copyfile(played.network, place / NETWORK_FILE)
        result = _without_screenshots(read_result(played.folder))
        write_json(place / "result.json", result)
        # Last: a folder with it is whole.
        write_json(place / _WALK, walk.model_dump(mode="json"))
    return Recorded(walk, _trajectory(place, result))


def _without_screenshots(result: dict[str, Any]) -> dict[str, Any]:
    for page in recorded_pages(result):
        page |= {"screenshot": None, "screenshot_sha256": None}
    return {**result, "trajectory_sha256": evidence_sha256(result)}


def film(walk: Recorded, played: Trajectory) -> None:
    """Keep a film of what was played, where films can be made."""
    with suppress(ConfigError, TrajectoryError, OSError):
        (walk.trajectory.folder / FILM).write_bytes(make_film(played.folder, "gif"))


def recorded(folder: Path) -> Iterator[Recorded]:
    """All walks in a folder of near misses, in order. Raises `ConfigError` or `TrajectoryError` for a damaged one."""
    for path in sorted(folder.glob(f"*/*/{_WALK}")):
        with read_errors(path, "delete its folder, and play it again"):
            try:
                walk = Walk.model_validate(read_json(path))
            except ValidationError as error:
                raise ConfigError(f"{path}: {first_mistake(error)}", remedy="delete its folder") from None
        yield Recorded(walk, _trajectory(path.parent, read_result(path.parent)))


def _trajectory(place: Path, result: dict[str, Any]) -> Trajectory:
    """As `load_trajectory` reads it, without comparing digests: the author's own files, read at every save."""
    attempt = Attempt.from_json(result, source=str(place / "result.json"))
    network = place / NETWORK_FILE if (place / NETWORK_FILE).is_file() else None
    return Trajectory(
        folder=place,
        attempt=attempt,
        sha256=str(result.get("trajectory_sha256")),
        network=network,
        network_missing=attempt.network_missing,
    )


def remove(walk: Recorded) -> None:
    """Remove a walk that was made from another script."""
    shutil.rmtree(walk.trajectory.folder, ignore_errors=True)


def write_report(folder: Path, report: dict[str, Any]) -> None:
    """Write the figures and lists as data."""
    with write_errors(folder, "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")

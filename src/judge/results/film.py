"""An attempt as a film: its screenshots, with captions that say what was done there, and the verdict at the end."""

from pathlib import Path
from typing import Literal, NamedTuple

from judge.store.layout import RunStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError
from shared.files import read_file
from shared.images import CaptionedImage, Pictures, as_gif, as_webp_frames, captioned, require_pillow
from shared.text import excerpt, one_line
from shared.webm import webm

FilmFormat = Literal["webm", "gif"]
FILM_FORMATS: tuple[FilmFormat, ...] = ("webm", "gif")
SHOWN_MS = 2000
# Of a film of up to `_FEW_SCENES` pictures; a longer one may have as much for each picture.
MAX_BYTES = 5_000_000
_FEW_SCENES = 16
# Width, quality and colours; the first with which the film is small enough.
_TRIALS = ((960, 70, 128), (720, 60, 96), (540, 45, 64), (400, 30, 32), (280, 20, 16))
_MAX_CAPTION_CHARS = 110
_TINTS = {"success": (22, 101, 52), "failure": (153, 27, 27)}


class FilmFrame(NamedTuple):
    """A picture of a film: a screenshot, the text under it, and the verdict that it shows, if any."""

    screenshot: Path | None
    caption: str
    outcome: str = ""


def film_path(store: RunStore, key: str, form: FilmFormat) -> Path:
    """Where the film of a task is kept, for reports to find it."""
    return store.derived / "films" / f"{key}.{form}"


def scenes_of(trajectory: Trajectory) -> list[FilmFrame]:
    """The scenes of an attempt, in order; the last one shows the verdict."""
    attempt = trajectory.attempt
    total = attempt.actions_taken
    scenes = []
    for step in attempt.steps[:total]:
        done = (step.outcome.line or f"no action: {step.outcome.message}") if step.outcome else "no action"
        scenes.append(FilmFrame(_place(trajectory, step.screenshot), f"{step.index + 1}/{total}  {done}"))
    last = next((step.screenshot for step in reversed(attempt.observations) if step.screenshot), None)
    reason = attempt.verdict.reason if attempt.verdict else attempt.cause or attempt.stop_reason
    scenes.append(FilmFrame(_place(trajectory, last), f"{attempt.outcome}: {reason}", attempt.outcome))
    return scenes


def _place(trajectory: Trajectory, name: str | None) -> Path | None:
    return trajectory.folder / name if name else None


def make_film(folder: Path, form: FilmFormat) -> bytes:
    """The film of the attempt in a task's folder. Raises `TrajectoryError`, or `ConfigError` without Pillow."""
    require_pillow("films", "report")
    scenes = scenes_of(load_trajectory(folder))
    if all(scene.screenshot is None for scene in scenes):
        raise ConfigError(f"{folder} has no screenshots", remedy="choose a task that was played")
    frames = [_captioned(scene) for scene in scenes]
    limit = MAX_BYTES * max(1.0, len(scenes) / _FEW_SCENES)
    data = b""
    for width, quality, colours in _TRIALS:
        pictures = captioned(frames, width)
        data = as_gif(pictures, colours, SHOWN_MS) if form == "gif" else _webm(pictures, quality)
        if len(data) <= limit:
            break
    return data


def _webm(pictures: Pictures, quality: int) -> bytes:
    frames, size = as_webp_frames(pictures, quality)
    return webm(frames, size, SHOWN_MS)


def _captioned(scene: FilmFrame) -> CaptionedImage:
    data = b""
    if scene.screenshot is not None and not scene.screenshot.is_symlink():
        data = read_file(scene.screenshot)
    return CaptionedImage(data, excerpt(one_line(scene.caption), _MAX_CAPTION_CHARS), _TINTS.get(scene.outcome))

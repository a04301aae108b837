"""An attempt as a film: how large it is, what its scenes say, and that a browser plays it."""

import base64
import io
import random
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from helpers.browser.pages import open_browser
from helpers.cases import each
from helpers.plugins import skip_without_command
from helpers.runs import write_synthetic_run
from judge.commands.app import app as wabe
from judge.report.build import make_report
from judge.results.film import MAX_BYTES, SHOWN_MS, FilmFormat, film_path, make_film, scenes_of
from judge.store.layout import RunStore
from judge.trajectory.files import load_trajectory
from shared.webm import webm


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return write_synthetic_run(tmp_path / "out", tasks=2, steps=4)


def a_noisy_picture() -> bytes:
    """A screenshot that compresses worse than a photograph: noise in blocks of two pixels."""
    noise = Image.frombytes("RGB", (640, 360), random.Random(1).randbytes(640 * 360 * 3)).resize((1280, 720))
    out = io.BytesIO()
    noise.save(out, "JPEG", quality=75)
    return out.getvalue()


def test_every_step_is_a_scene_and_the_last_one_shows_the_verdict(run: RunStore) -> None:
    trajectory = load_trajectory(run.task("task_001").folder)
    scenes = scenes_of(trajectory)
    assert [scene.caption.split("  ", 1)[0] for scene in scenes[:-1]] == ["1/4", "2/4", "3/4", "4/4"]
    assert scenes[0].caption.endswith(trajectory.attempt.action_history[0])
    assert scenes[-1].outcome == trajectory.attempt.outcome
    assert scenes[-1].caption.startswith(f"{trajectory.attempt.outcome}: ")


def test_a_gif_has_a_picture_for_each_scene(run: RunStore) -> None:
    film = Image.open(io.BytesIO(make_film(run.task("task_001").folder, "gif")))
    assert getattr(film, "n_frames", 0) == 5
    assert film.info["duration"] == SHOWN_MS


# Eight pictures are too large as a GIF at first, as fifteen are.
@pytest.mark.slow
@pytest.mark.parametrize(("form", "steps"), each([("webm", 15), ("gif", 15), ("gif", 8)], suite=[("webm", 15)]))
def test_steps_of_noise_are_at_most_five_megabytes(tmp_path: Path, form: FilmFormat, steps: int) -> None:
    store = write_synthetic_run(tmp_path / "out", tasks=2, steps=steps, image=a_noisy_picture())
    assert len(make_film(store.task("task_001").folder, form)) <= MAX_BYTES


def test_a_picture_that_is_not_a_lossy_webp_makes_no_film() -> None:
    with pytest.raises(ValueError, match="not a lossy WebP"):
        webm([b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0"], (2, 2), 1)


def test_a_film_is_written_for_the_task_that_is_named_and_linked_in_the_report(run: RunStore) -> None:
    skip_without_command("export")
    output_dir = str(run.output_dir)
    completed = CliRunner().invoke(
        wabe, ["export", run.run_id, "--format", "webm", "--task", "task_001", "--output-dir", output_dir]
    )
    assert completed.exit_code == 0, completed.output
    assert film_path(run, "task_001", "webm").read_bytes().startswith(b"\x1a\x45\xdf\xa3")
    tasks = make_report([run]).parent / "tasks"
    assert 'href="../images/task_001/film.webm" download' in (tasks / "task_001.html").read_text()
    [other] = [path for path in tasks.glob("*.html") if path.stem != "task_001"]
    assert "Download film" not in other.read_text()
    assert (tasks.parent / "images" / "task_001" / "film.webm").is_file()


def test_a_task_that_was_not_played_has_no_film(run: RunStore) -> None:
    skip_without_command("export")
    completed = CliRunner().invoke(
        wabe, ["export", run.run_id, "--format", "gif", "--task", "task_01", "--output-dir", str(run.output_dir)]
    )
    assert completed.exit_code == 2 or "was not played" in str(completed.exception)


_PLAY_FILMS = """async ([webm, gif]) => {
  const video = document.createElement("video");
  video.muted = true;
  video.src = webm;
  await new Promise((done, failed) => { video.onloadedmetadata = done; video.onerror = failed; });
  const seen = [];
  for (const at of [0.5, video.duration - 0.5]) {
    video.currentTime = at;
    await new Promise(done => { video.onseeked = done; });
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d");
    context.drawImage(video, 4, video.videoHeight - 4, 1, 1, 0, 0, 1, 1);
    seen.push([...context.getImageData(0, 0, 1, 1).data]);
  }
  const image = new Image();
  image.src = gif;
  await image.decode();
  return [video.duration, video.videoWidth, video.videoHeight, seen, image.naturalWidth];
}"""


@pytest.mark.e2e
async def test_a_browser_plays_both_kinds_of_film(run: RunStore) -> None:
    folder = run.task("task_001").folder
    kinds: tuple[tuple[FilmFormat, str], ...] = (("webm", "video/webm"), ("gif", "image/gif"))
    urls = [f"data:{kind};base64,{base64.b64encode(make_film(folder, form)).decode()}" for form, kind in kinds]
    async with open_browser() as browser:
        page = await browser.new_page()
        duration, width, height, (step, verdict), gif_width = await page.evaluate(_PLAY_FILMS, urls)
    assert (duration, width, gif_width) == (5 * SHOWN_MS / 1000, 960, 960)
    assert height % 2 == 0
    # The bar under the last screenshot has the colour of the verdict.
    assert max(abs(one - other) for one, other in zip(step, verdict, strict=True)) > 40

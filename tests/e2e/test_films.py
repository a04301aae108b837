"""The film of a real attempt, as a browser shows it."""

from pathlib import Path

import pytest

from helpers.browser.pages import open_browser
from helpers.runner.commands import BIN, run_command
from helpers.scenario.copies import scenario_on_free_ports
from judge.results.film import FILM_FORMATS, MAX_BYTES, SHOWN_MS
from judge.store import load_trajectory

# That a browser plays a film, and how large one of fifteen steps can be, `judge/results/test_film.py` shows.
pytestmark = [pytest.mark.e2e, pytest.mark.nightly]
# Its script scrolls until no step is left.
TASK = "everything_in_the_shop"
STEPS = 15
_FILM_STATE = """async element => {
  const shown = document.querySelector(element);
  if (shown.tagName === "IMG") {
    await shown.decode();
    return [shown.naturalWidth, shown.naturalHeight, 0];
  }
  if (shown.readyState < 1)
    await new Promise((done, failed) => { shown.onloadedmetadata = done; shown.onerror = () => failed(shown.error); });
  // To its end: every picture is decoded.
  shown.playbackRate = 16;
  await shown.play();
  if (!shown.ended) await new Promise((done, failed) => { shown.onended = done; shown.onerror = failed; });
  return [shown.videoWidth, shown.videoHeight, shown.duration];
}"""


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both films of one attempt at a task of the demo."""
    folder = tmp_path_factory.mktemp("films")
    path = scenario_on_free_ports("demo", folder)
    path.write_text(path.read_text().replace("max_steps = 12", f"max_steps = {STEPS}"))
    output = ("--output-dir", folder / "out")
    ran = run_command(folder / "tmp", BIN / "wabe", "run", path, "--task", TASK, *output)
    runs = list(folder.glob("out/runs/*"))
    assert len(runs) == 1, ran.stdout + ran.stderr
    attempt = load_trajectory(folder / "out" / "results" / TASK)
    assert len(attempt.steps) == STEPS
    for form in FILM_FORMATS:
        words = ("export", runs[0].name, "--format", form, "--task", TASK, "--output", folder / f"film.{form}", *output)
        completed = run_command(folder / "tmp", BIN / "wabe", *words)
        assert completed.code == 0, completed.stdout + completed.stderr
    return folder


def test_the_films_of_fifteen_steps_are_at_most_five_megabytes(films: Path) -> None:
    sizes = {form: (films / f"film.{form}").stat().st_size for form in FILM_FORMATS}
    assert all(0 < size <= MAX_BYTES for size in sizes.values()), sizes


async def test_a_browser_plays_them_from_a_page(films: Path) -> None:
    page_file = films / "films.html"
    page_file.write_text('<!doctype html><video src="film.webm" muted></video><img src="film.gif">')
    async with open_browser() as browser:
        page = await browser.new_page()
        await page.goto(page_file.as_uri())
        width, height, duration = await page.evaluate(_FILM_STATE, "video")
        image_width, image_height, _ = await page.evaluate(_FILM_STATE, "img")
    # A picture for each step, and one with the verdict.
    assert duration == pytest.approx((STEPS + 1) * SHOWN_MS / 1000)
    assert width >= 280
    assert height >= 200
    assert image_width / image_height == pytest.approx(width / height, rel=0.02)

"""Opens the page of all runs over 2,000 copies of a recorded run, and checks that it is fast and can be used by all.

The copies are of four agents on two scenarios in eight versions, of which later ones do better. `wabe view` is started
without an index and with one; the page is opened in a fresh browser context each time, and searched as a person does.
Exit code 1 if the first contentful paint or a search takes 1 s or longer, or if axe-core finds anything in light or
dark at any of three widths.

    python benchmarks/all_runs.py [--runs 2000] [--run RUN, its folder] [--folder FOLDER for the copies, which are
        kept and used again] [--screenshots FOLDER]
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from playwright.sync_api import Browser, Page, sync_playwright

from helpers.recorded import recorded_run
from judge.browser.installed import find_browser
from judge.plugins.all_runs.notes import NotesFolder, RunNotes
from judge.results.entries import read_entries
from judge.results.submission import detail_of
from shared.settings import Settings

WABE = Path(sys.executable).parent / "wabe"
AGENTS = ("shopper", "navigator", "clicker", "reader")
SCENARIOS = ("demo/scenario.toml", "miniwob/scenario.toml")
VERSIONS = 8
WIDTHS = (390, 1280, 1920)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SEARCHES = (
    "shopper",
    "shopper 1.3",
    "-shopper demo",
    "2026-09",
    '"reader 1.1"',
    "checks",
    "best",
    "miniwob best",
    "zzz",
    "",
)
OPENINGS = 7
LIMIT_MS = 1_000
BEGAN = 1_790_000_000
# Waits until the list is another one, and the frame that shows it is drawn.
SEARCH = """async words => {
  const field = document.querySelector('#filters [type=search]'), before = document.getElementById('found');
  const began = performance.now();
  field.value = words;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  while (document.getElementById('found') === before) await new Promise(resolve => setTimeout(resolve, 2));
  await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
  return [performance.now() - began, document.getElementById('matches').textContent];
}"""


def copy_runs(source: Path, folder: Path, count: int) -> None:
    """Copies of the run with other agents, versions, days and outcomes; screenshots are hard links."""
    chance = random.Random(0)
    record = json.loads((source / "run.json").read_text())
    detail = json.loads((source / "results.json").read_text())["results"][0]["detail"]
    notes = NotesFolder(folder)
    for number in range(count):
        run_id, version = f"run-{number:05d}", number * VERSIONS // count
        target = folder / "runs" / run_id
        shutil.copytree(source, target, copy_function=os.link)
        identity = {"card_name": AGENTS[number % len(AGENTS)], "card_version": f"1.{version}", "name": None}
        scenario = SCENARIOS[number // len(AGENTS) % len(SCENARIOS)]
        began = BEGAN + 3_600 * number
        known = {**record["identity"], **identity, "revision": None}
        replace(
            target / "run.json",
            {
                **record,
                "run_id": run_id,
                "started_at": began,
                "ended_at": began + 600,
                "identity": known,
                "scenario": {**record["scenario"], "name": scenario},
            },
        )
        share = (version + 1 + number % len(AGENTS)) / (VERSIONS + len(AGENTS))
        tasks = [with_outcome(entry, chance.random() < share) for entry in detail["tasks"]]
        new_detail = detail_of(
            read_entries(tasks),
            judge=detail["judge"],
            cost_usd=0.0,
            provenance={**detail["provenance"], "identity": known},
        )
        replace(
            target / "results.json", {"participants": {}, "results": [{"winner": "white_agent", "detail": new_detail}]}
        )
        if number % 50 == 0:
            notes.write(run_id, RunNotes(tags=("best", "to show"), note="Kept for the meeting on Monday."))


def with_outcome(entry: dict[str, Any], is_success: bool) -> dict[str, Any]:
    """The entry with this outcome."""
    return {**entry, "success": is_success, "verdict": "success" if is_success else "failure"}


def replace(path: Path, value: Any) -> None:
    """Write a file anew: it is a link to the original."""
    path.unlink()
    path.write_text(json.dumps(value, indent=2))


@contextmanager
def viewed(folder: Path) -> Iterator[tuple[str, float, int]]:
    """`wabe view` on a free port: its address, the seconds until it printed it, and the id of its process."""
    began = time.monotonic()
    command: list[str | Path] = [WABE, "view", "--output-dir", folder, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.rpartition(" ")[2].strip(), time.monotonic() - began, server.pid
        finally:
            server.terminate()


def cpu_ms(process: int) -> float:
    """The milliseconds of CPU that a process has used."""
    used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return 1_000 * sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def first_paint_ms(browser: Browser, address: str) -> float:
    """The time from navigation to the first contentful paint, in a fresh context."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address)
    paint: float = page.evaluate(
        "new Promise(resolve => new PerformanceObserver(list => list.getEntriesByName('first-contentful-paint')"
        ".forEach(entry => resolve(entry.startTime))).observe({ type: 'paint', buffered: true }))"
    )
    context.close()
    return paint


def search_times(page: Page, searches: tuple[str, ...]) -> list[float]:
    """The milliseconds from the last key to the drawn list, with the pause that waits for more keys."""
    times = []
    for words in searches:
        elapsed_ms, matches = page.evaluate(SEARCH, words)
        print(f"  {elapsed_ms:4.0f} ms  {matches:<20} {words}")
        times.append(elapsed_ms)
    return times


def violations(browser: Browser, address: str, screenshots: Path | None) -> list[str]:
    """Everything that axe-core finds on the page, at every width, in light and dark."""
    axe = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    violations_found = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            # Axe is brought into the page, which the page's own policy forbids.
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
            )
            page = context.new_page()
            page.goto(address)
            if screenshots is not None:
                page.screenshot(path=screenshots / f"runs-{width}-{scheme}.png")
            page.evaluate(axe)
            result = page.evaluate("axe.run({ resultTypes: ['violations'] })")
            violations_found += [f"{width} px, {scheme}: {each['id']}" for each in result["violations"]]
            context.close()
    return violations_found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--run", type=Path, default=recorded_run())
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--screenshots", type=Path)
    chosen = parser.parse_args()
    if chosen.screenshots is not None:
        chosen.screenshots.mkdir(parents=True, exist_ok=True)
    program = find_browser(None, Settings.from_environ())
    arguments = [] if program.sandbox else ["--no-sandbox"]
    # Beside the run: hard links do not cross file systems.
    with tempfile.TemporaryDirectory(dir=chosen.run.resolve().parent, prefix=".all-runs-") as place:
        folder = chosen.folder or Path(place)
        if not (folder / "runs").exists():
            copy_runs(chosen.run, folder, chosen.runs)
        (folder / "view" / "index.json").unlink(missing_ok=True)
        with viewed(folder) as (_, began_s, process):
            used_ms = cpu_ms(process)
            print(f"{chosen.runs} runs: served after {began_s:.1f} s without an index, {used_ms:.0f} ms of CPU")
        size = (folder / "view" / "index.json").stat().st_size
        with viewed(folder) as (address, again_s, process), sync_playwright() as playwright:
            used_ms = cpu_ms(process)
            print(f"served after {again_s:.1f} s with an index of {size / 1e6:.1f} MB, {used_ms:.0f} ms of CPU")
            browser = playwright.chromium.launch(executable_path=str(program.path), args=arguments)
            paints = [first_paint_ms(browser, address) for _ in range(OPENINGS)]
            used = (cpu_ms(process) - used_ms) / OPENINGS
            print(
                f"first contentful paint: {median(paints):.0f} ms, {max(paints):.0f} ms at most, {OPENINGS} times; "
                f"{used:.0f} ms of the server's CPU each"
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address)
            used_ms = cpu_ms(process)
            times = search_times(page, SEARCHES)
            used = (cpu_ms(process) - used_ms) / len(SEARCHES)
            print(
                f"searches: {median(times):.0f} ms, {max(times):.0f} ms at most; {used:.0f} ms of the server's CPU each"
            )
            page.close()
            wrong = violations(browser, address, chosen.screenshots)
            print(f"axe-core: {len(wrong)} violations at {WIDTHS} px in light and dark", *wrong, sep="\n  ")
            browser.close()
    return int(bool(wrong) or max(*paints, *times) >= LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())

"""Labels 40 attempts of a run with a scripted browser, by keyboard alone, and kills the server in the middle.

The run (at least 40 attempts, such as one of `wabe run demo --epochs 3`) is copied. Its first labeller says what the
counted verdicts say, except for every sixth attempt. In the middle, the server is killed, started again, and goes on. A
second labeller differs on every eighth attempt; a third one adjudicates. Prints the time per label, what `wabe
agreement` and `wabe verify` say, and the corrected rate. Exit code 1 if a label was lost or a promise is missing.

    python benchmarks/label_by_keyboard.py RUN_FOLDER [--shots DIR]
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.async_api import Page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.browser.pages import open_page
from judge.results.corrections import CORRECTED, LABELS_KEY
from judge.results.label_files import label_file
from judge.results.labelling import Labelling, begin
from judge.store.layout import RunStore, run_of

WABE = [sys.executable, "-m", "wabe"]
LABELS = 40
WRONG_EVERY, DIFFERS_EVERY = 6, 8
SEED = 45


class Server:
    """`wabe label` for one labeller."""

    def __init__(self, run: RunStore, labeller: str, *options: str) -> None:
        command = [*WABE, "label", str(run.folder), "--as", labeller, "--port", "0", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r"http://\S+", line)
        if match is None:
            raise SystemExit(f"no address: {line}")
        print(f"  {line.strip()}")
        self.address = match[0]

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def end(self) -> str:
        self._process.send_signal(signal.SIGINT)
        output, _ = self._process.communicate(timeout=60)
        return output


def planned(session: Labelling, place: int, *, differs: bool) -> str:
    """The key for an attempt."""
    says = session.places[place].attempt.verdict == "success"
    says = says != (place % WRONG_EVERY == 1)
    return "1" if says != (differs and place % DIFFERS_EVERY == 3) else "0"


async def label(page: Page, session: Labelling, places: range, *, differs: bool = False) -> list[float]:
    """Label these places; returns the seconds from the key to the next page."""
    seconds = []
    for place in places:
        assert page.url.endswith(f"/attempt/{place + 1}"), page.url
        begun, before = time.perf_counter(), page.url
        await page.keyboard.press(planned(session, place, differs=differs))
        await page.wait_for_url(lambda url, before=before: url != before)
        seconds.append(time.perf_counter() - begun)
    return seconds


async def shoot(page: Page, address: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for width, height in ((1280, 800), (390, 844)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.goto(f"{address}attempt/3")
            await page.wait_for_load_state("networkidle")
            await page.screenshot(path=folder / f"label-{width}-{scheme}.png")
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": 1280, "height": 800})


async def play(run: RunStore, page: Page, shots: Path | None) -> list[str]:
    missing, half = [], LABELS // 2
    print("anna, killed in the middle")
    server = Server(run, "anna", "--labels", str(LABELS), "--seed", str(SEED))
    session = begin([run], "anna")
    await page.goto(server.address)
    seconds = await label(page, session, range(half))
    server.kill()
    saved = len(label_file(run, "anna").read_text().splitlines())
    server = Server(run, "anna")
    await page.goto(server.address)
    seconds += await label(page, session, range(half, LABELS))
    if shots:
        await shoot(page, server.address, shots)
    output = server.end()
    print(
        f"  {saved} of {half} labels on the disk after the kill; median {median(seconds):.2f} s from key to next page"
    )
    print(f"  {output.strip().splitlines()[-1]}")
    missing += [] if saved == half else ["labels were lost"]
    missing += [] if "results.json has the corrected" in output else ["no corrected rate"]
    print("bert, with planned conflicts")
    server = Server(run, "bert")
    await page.goto(server.address)
    await label(page, begin([run], "bert"), range(LABELS), differs=True)
    server.end()
    wanted = sum(place % DIFFERS_EVERY == 3 for place in range(LABELS))
    people = agreement(run)
    print(
        f"  {len(people['conflicts'])} conflicts, {wanted} planned; alpha {people['alpha']:.3f}; rule {people['rule']}"
    )
    missing += [] if len(people["conflicts"]) == wanted else ["other conflicts than planned"]
    print("carla adjudicates")
    server = Server(run, "carla", "--conflicts")
    await page.goto(server.address)
    for _ in range(wanted):
        before = page.url
        await page.keyboard.press("1")
        await page.wait_for_url(lambda url, before=before: url != before)
    server.end()
    rule = agreement(run)["rule"]
    missing += [] if rule == "adjudicated" else [f"the rule is {rule}"]
    return missing


def agreement(run: RunStore) -> dict[str, object] | dict[str, list[object]]:
    command = [*WABE, "agreement", str(run.folder), "--labels", "labels", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout)["people"])


def verified(folder: Path) -> list[str]:
    """What `wabe verify` says of the labels; prints its last line."""
    done = subprocess.run([*WABE, "verify", str(folder)], capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    print(lines[-1])
    return [line for line in lines if "label" in line and line.startswith("does not match")]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "runs", options.run.name)
        shutil.copytree(options.run, copy, ignore=shutil.ignore_patterns("labels", "*.lock", "report"))
        run = run_of(copy)
        assert run is not None
        async with open_page() as watched:
            missing = await play(run, watched.page, options.shots)
        detail = json.loads((copy / "results.json").read_text())["results"][0]["detail"]
        rates = f"success rate {detail['success_rate']} %, corrected {detail.get(CORRECTED)} %"
        print(f"{rates}, {json.dumps(detail.get(LABELS_KEY))}")
        wrong = verified(copy)
    for problem in (*missing, *wrong):
        print(f"missing: {problem}")
    sys.exit(bool(missing or wrong))


if __name__ == "__main__":
    asyncio.run(main())

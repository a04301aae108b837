"""The demo in every kind of browser: do the verdicts depend on it?

    python benchmarks/browser_modes.py [--modes shell new headed hosted]

Needs the headless shell, a full Chromium, and Xvfb or a display. The hosted browser is a Chromium that this script
starts and that the judge reaches over its DevTools port; it runs in real time, the others in page time. Prints a row
for each, and the tasks whose verdicts differ; exit code 1 if there are any.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.browser.hosted import running_chromium

MODES = {
    "shell": 'headless = "shell"',
    "new": 'headless = "new"',
    "headed": 'browser = "headed"',
    "hosted": 'cdp_url = "${BROWSER_URL}"\ncdp_private = true',
}
DEMO = ROOT / "scenarios" / "demo"
_PORTS = (9009, 9019, 9180)


def main() -> int:
    """Play the demo once in each mode; 0 if all verdicts are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    modes = parser.parse_args().modes
    results: dict[str, dict[str, str]] = {}
    print("| browser | recorded as | right | time |\n|---|---|---|---|")
    for mode in modes:
        begun = time.monotonic()
        detail = results_in(mode)
        results[mode] = {task["task_id"]: task["verdict"] for task in detail["tasks"]}
        made_with = detail["provenance"]["environment"]
        recorded = ", ".join([made_with["browser"], made_with["browser_mode"]])
        wins = list(results[mode].values()).count("success")
        print(
            f"| {mode} | {recorded} | {wins} of {len(results[mode])} | {time.monotonic() - begun:.0f} s |", flush=True
        )
    differing = {
        task_id: {mode: verdicts.get(task_id, "none") for mode, verdicts in results.items()}
        for task_id in sorted(set().union(*results.values()))
        if len({verdicts.get(task_id, "none") for verdicts in results.values()}) > 1
    }
    print(f"\nverdicts that differ: {json.dumps(differing) if differing else 'none'}")
    return 1 if differing else 0


def results_in(mode: str) -> dict:
    """What `results.json` says of the demo in a mode."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        shutil.copytree(DEMO, folder / "demo")
        scenario = folder / "demo" / "scenario.toml"
        scenario.write_text(_changed(scenario.read_text(encoding="utf-8"), MODES[mode]), encoding="utf-8")
        environ = dict(os.environ)
        if mode == "hosted":
            chromium = stack.enter_context(running_chromium(folder / "profile"))
            environ["BROWSER_URL"] = chromium.socket_url
        command = [str(Path(sys.executable).parent / "wabe"), "run", str(scenario), "--output-dir", str(folder / "out")]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        results = sorted((folder / "out" / "runs").glob("*/results.json"))
        if not results:
            sys.exit(f"{mode}: {done.stdout}{done.stderr}")
        return json.loads(results[-1].read_text(encoding="utf-8"))["results"][0]["detail"]


def _changed(text: str, setting: str) -> str:
    """The scenario with a setting, and on free ports."""
    for port in _PORTS:
        with socket.create_server(("127.0.0.1", 0)) as server:
            text = re.sub(rf"(127\.0\.0\.1:|--port ){port}\b", rf"\g<1>{server.getsockname()[1]}", text)
    return text.replace("[config]\n", f"[config]\n{setting}\n")


if __name__ == "__main__":
    sys.exit(main())

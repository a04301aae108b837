"""Measures a judge method against ground truth, with the commands that a user would run.

Plays the demo, which its checks decide; lets `webjudge` judge the same attempts with a model server that finds every
attempt a success; compares both. Such a judge has a false-positive rate of 100 %, so every attempt that the checks
failed must be listed as a disagreement. Exit code 1 if the figures differ.

    python benchmarks/judge_against_truth.py
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from model_server import model_server

WABE = Path(sys.executable).with_name("wabe")


def wabe(*arguments: str, folder: str, exit_codes: tuple[int, ...] = (0,)) -> str:
    """Run the command, show it, and return what it printed."""
    print(f"$ wabe {' '.join(arguments)}", flush=True)
    command = [str(WABE), *arguments, "--output-dir", folder]
    environ = {**os.environ, "OPENAI_API_KEY": "none"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    if done.returncode not in exit_codes:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def main() -> int:
    """Print the comparison. Returns the exit code."""
    with tempfile.TemporaryDirectory() as folder, model_server(0) as url:
        wabe("run", "demo", "--display", "none", folder=folder)
        judge = ("--method", "webjudge", "--model", "openai:says-yes", "--base-url", f"{url}/v1")
        print(wabe("score", "latest", *judge, folder=folder))
        print(wabe("agreement", "latest", "--truth", "checks", folder=folder))
        agreement = json.loads(wabe("agreement", "latest", "--truth", "checks", "--json", folder=folder))
    pairs = {(each["truth"], each["judge"]) for each in agreement["disagreements"]}
    is_as_expected = pairs == {("failure", "success")}
    print("as expected" if is_as_expected else f"UNEXPECTED: {sorted(pairs)}")
    return 0 if is_as_expected else 1


if __name__ == "__main__":
    sys.exit(main())

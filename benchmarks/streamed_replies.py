"""The demo, played by a participant that streams its replies in chunks of one character: are the verdicts the same?

    python benchmarks/streamed_replies.py

Plays all tasks twice: the participant answers `message/send` (its server puts the chunks together), and only streams.
Compares each verdict with the demo's `expected.toml`.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import tomli
from rich.console import Console

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("tests", "src")]

from helpers.paths import ROOT
from helpers.runner.streamed_demo import write_streamed_demo
from judge.runner.options import RunOptions
from judge.runner.run import run
from judge.store.layout import newest_run
from judge.trajectory.files import read_attempt
from shared.settings import Settings


async def main() -> None:
    """Print how many verdicts are as expected; exit with 1 if one is not."""
    expected = tomli.loads((ROOT / "scenarios" / "demo" / "expected.toml").read_text())
    wrong = 0
    for only_streams in (False, True):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            path = write_streamed_demo(Path(folder), only_streams=only_streams)
            options = RunOptions(scenario=path, output_dir=Path(folder) / "output", max_parallel=2, display="plain")
            await run(options, Settings.from_environ(), Console())
            store = newest_run(options.output_dir)
            assert store is not None
            outcomes = {task_id: read_attempt(store.task(task_id).folder).outcome for task_id in expected}
        differ = [task_id for task_id, entry in expected.items() if outcomes[task_id] != entry["verdict"]]
        wrong += len(differ)
        how = "streamed" if only_streams else "put together by the server"
        right, seconds = len(expected) - len(differ), time.monotonic() - began
        print(f"{how}: {right} of {len(expected)} verdicts as expected, {seconds:.0f} s")
        print(*differ, sep="\n", end="\n" if differ else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    asyncio.run(main())

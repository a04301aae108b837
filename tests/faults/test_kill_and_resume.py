"""Runs that end before they are done: by SIGKILL, and by Ctrl-C."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import finish, participant
from helpers.paths import ROOT
from helpers.ports import free_port
from helpers.runner.commands import command, listening, run_command
from helpers.runner.scenario_runs import write_scenario

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_a_killed_run_is_resumed_with_nothing_lost() -> None:
    # Judge, runner and everything are killed in one run, after the first epoch; by hand: twenty runs.
    script = [sys.executable, str(ROOT / "benchmarks" / "kill_resume.py"), "--repeats", "1", "--kills", "3"]
    done = subprocess.run(
        [*script, "--tasks", "2", "--epochs", "3"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 resumed with nothing lost" in done.stdout


async def test_ctrl_c_prints_the_command_that_finishes_the_run(tmp_path: Path, browser_files: Path) -> None:
    port, out = free_port(), tmp_path / "out"
    with hostile_site() as site:
        async with participant(lambda _: finish()) as agent:
            judge = f"http://127.0.0.1:{port}"
            serve = f'cmd = "wabe serve --port {port}"'
            path = write_scenario(tmp_path / "s.toml", judge=judge, judge_cmd=serve, agent=agent, agent_cmd="")
            path.write_text(path.read_text().replace("https://shop.test/", site.url))
            with command(browser_files / "t", "agentbeats-run", path, "--output-dir", out) as running:
                await asyncio.to_thread(running.wait_for_file, out, "runs/*/results/*/result.json")
                running.interrupt()
                first = await asyncio.to_thread(running.end)
            assert first.code == 130
            assert first.left_processes == {}
            assert first.left_files == []
            (line,) = [line for line in first.stderr.splitlines() if "--resume" in line]
            words = line.split("resume with: ")[1].rstrip(")").split()
            kept = {path: path.read_bytes() for path in out.glob("runs/*/results/*/result.json")}
            second = await asyncio.to_thread(run_command, browser_files / "t", *words)
    assert second.code == 0, second.stdout + second.stderr
    assert second.left_processes == {}
    assert not listening(port)
    assert len(list(out.glob("runs/*/results/*/result.json"))) == 2
    settled = {path: data for path, data in kept.items() if b'"verdict": "success"' in data}
    assert settled
    assert all(path.read_bytes() == data for path, data in settled.items())

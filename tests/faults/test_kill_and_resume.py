"""Runs that end before they are done: by SIGKILL, and by Ctrl-C."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.ports import free_port
from helpers.runner.commands import command, listening, run_command
from helpers.scenario.copies import ports_of, scenario_on_free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_a_killed_run_is_resumed_with_nothing_lost() -> None:
    # Three times, one for each of what can be killed, after the first epoch; by hand: twenty times.
    script = [sys.executable, str(ROOT / "benchmarks" / "kill_resume.py"), "--repeats", "3"]
    done = subprocess.run(
        [*script, "--tasks", "2", "--epochs", "3"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 resumed with nothing lost" in done.stdout


def four_demo_tasks(folder: Path) -> Path:
    path = scenario_on_free_ports("demo", folder)
    path.write_text("[[tasks]]".join(path.read_text().split("[[tasks]]")[:5]))
    return path


def test_ctrl_c_prints_the_command_that_finishes_the_run(tmp_path: Path) -> None:
    path, out = four_demo_tasks(tmp_path), tmp_path / "out"
    temp = Path("/tmp") / f"wabe-int-{free_port()}"
    try:
        with command(temp, "agentbeats-run", path, "--output-dir", out) as running:
            running.wait_for_file(out, "runs/*/results/*/result.json")
            running.interrupt()
            first = running.end()
        assert first.code == 130
        assert first.left_processes == {}
        assert first.left_files == []
        (line,) = [line for line in first.stderr.splitlines() if "--resume" in line]
        words = line.split("resume with: ")[1].rstrip(")").split()
        kept = {path: path.read_bytes() for path in out.glob("runs/*/results/*/result.json")}
        second = run_command(temp, *words)
        assert second.code == 0, second.stdout + second.stderr
        assert second.left_processes == {}
        assert [port for port in ports_of(path) if listening(port)] == []
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    assert len(list(out.glob("runs/*/results/*/result.json"))) == 4
    settled = {path: data for path, data in kept.items() if b'"verdict": "success"' in data}
    assert all(path.read_bytes() == data for path, data in settled.items())

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judge.scenario.sources import scenario_toml
from shared.models import Task

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def scenario(tmp_path: Path) -> str:
    path = tmp_path / "scenario.toml"
    task = Task(task_id="t", website="https://example.org/", task="Do it.", level="easy")
    path.write_text(scenario_toml([task], participant="gemini"))
    return str(path)


def test_the_sample_script_prints_toml(tmp_path: Path) -> None:
    done = run("sample_tasks.py", "--from", scenario(tmp_path), "--seed", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'task_id = "t"' in done.stdout


def test_the_validate_script_ends_with_2_on_a_bad_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[x\n")
    done = run("validate_scenario.py", scenario(tmp_path), str(bad))
    assert done.returncode == 2
    assert "valid, 1 task\n" in done.stdout
    assert done.stderr.startswith(f"{bad}: line 1, column 3: not TOML")


def test_a_mistake_of_the_user_is_one_line_without_a_traceback() -> None:
    done = run("sample_tasks.py", "--from", "none.json")
    assert done.returncode == 2
    assert done.stderr == "error: none.json: No such file or directory (give the path of the dataset's JSON file)\n"

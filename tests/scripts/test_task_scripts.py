import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.records.tasks import Task
from judge.scenario.importers import IMPORTERS
from judge.scenario.sources import scenario_toml

ROOT = Path(__file__).parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a script in this process; its exit code, and what it printed and complained about."""

    def run(script: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        with pytest.raises(SystemExit) as left:
            runpy.run_path(str(ROOT / "scripts" / script), run_name="__main__")
        assert isinstance(left.value.code, int)
        return left.value.code, *capsys.readouterr()

    return run


def scenario(tmp_path: Path) -> str:
    path = tmp_path / "scenario.toml"
    task = Task(task_id="t", website="https://example.org/", task="Do it.", level="easy")
    path.write_text(scenario_toml([task], participant="gemini"))
    return str(path)


def test_the_sample_script_prints_toml(run: Run, tmp_path: Path) -> None:
    code, printed, complaint = run("sample_tasks.py", "--from", scenario(tmp_path), "--seed", "1")
    assert (code, complaint) == (0, "")
    assert 'task_id = "t"' in printed


def test_the_validate_script_ends_with_2_on_a_bad_file(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[x\n")
    code, printed, complaint = run("validate_scenario.py", scenario(tmp_path), str(bad))
    assert code == 2
    assert "valid, 1 task\n" in printed
    assert complaint.startswith(f"{bad}: line 1, column 3: not TOML")


def test_a_mistake_of_the_user_is_one_line_without_a_traceback(run: Run) -> None:
    code, _, complaint = run("sample_tasks.py", "--from", "none.json")
    assert code == 2
    remedy = " or ".join(("give the path of the dataset's JSON file", *IMPORTERS.names()))
    assert complaint == f"error: none.json: No such file or directory ({remedy})\n"

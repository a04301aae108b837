"""The entry points: another package in place of one of this project is one clear line, not a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from wabe.__main__ import main

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
SRC = Path(__file__).resolve().parents[2] / "src"


def a_package(folder: Path, name: str, *, module: bool = False) -> Path:
    """Another package (or a single module) of this name."""
    path = folder / f"{name}.py" if module else folder / name / "__init__.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise RuntimeError('imported')")
    return path


def run(command: str, *arguments: str, pythonpath: Path) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(pythonpath), "PATH": "/usr/bin:/bin"}
    return subprocess.run([BIN / command, *arguments], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["wabe", "agentbeats-run"])
@pytest.mark.parametrize(("name", "module"), [("shared", False), ("judge", False), ("participants", True)])
def test_a_package_that_hides_ours_is_named_with_its_path_and_the_remedy(
    tmp_path: Path, command: str, name: str, module: bool
) -> None:
    other = a_package(tmp_path, name, module=module)
    done = run(command, pythonpath=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: Python finds the package {name!r} at {other} instead of WABE's own in {SRC}")
    assert "PYTHONPATH" in line


def test_ctrl_c_during_imports_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wabe.__main__._require_own_packages", interrupted)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130


# The help of all commands imports everything.
@pytest.mark.parametrize(("command", "arguments"), [("wabe", ["report", "--help"]), ("agentbeats-run", ["--help"])])
def test_other_packages_change_nothing(tmp_path: Path, command: str, arguments: list[str]) -> None:
    a_package(tmp_path, "unrelated")
    done = run(command, *arguments, pythonpath=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: {command}" in done.stdout

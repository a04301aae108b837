"""`python -m participants`: what participants' images start."""

import ast
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
# Checks need these to be validated and evaluated, which participants never do: `shared` imports them late.
OF_THE_JUDGE = {"jsonschema", "re2"}
LOCK = (ROOT / "requirements-purple.lock").read_text()
IMPORT_ALL = """
import importlib, sys
import participants.__main__
from participants.discovery import list_participants
for info in list_participants():
    importlib.import_module("participants." + info.name)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"}, timeout=60
    )


def imported_by(package: str) -> set[str]:
    """Top-level names that the package's files import."""
    found: set[str] = set()
    for path in (ROOT / "src" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found


def test_what_participants_import_is_in_their_own_lock() -> None:
    distributions = packages_distributions()
    foreign = (
        (imported_by("participants") | imported_by("shared")) - {"participants", "shared", "google"} - OF_THE_JUDGE
    )
    needed = {name.lower() for module in foreign - sys.stdlib_module_names for name in distributions[module]}
    locked = {line.partition("==")[0] for line in LOCK.splitlines() if "==" in line}
    assert needed | {"google-genai"} <= locked


def test_participants_load_nothing_of_the_judge_and_its_own_libraries() -> None:
    loaded = run("-c", IMPORT_ALL).stdout.split()
    assert "participants" in loaded
    assert {"judge", "duckdb", "mcp", "playwright", *OF_THE_JUDGE} & set(loaded) == set()


def test_it_lists_the_participants() -> None:
    done = run("-m", "participants", "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["gemini", "openai", "random", "replay"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nobody",), "there is no participant 'nobody'"),
        ((), "no participant is named"),
        (("random", "--port", "x"), "'--port'"),
        (("gemini", "--model", "openai:gpt-5"), "is none of gemini's"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], complaint: str) -> None:
    done = run("-m", "participants", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr

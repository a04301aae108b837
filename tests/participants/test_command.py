"""`wabe participant`, and `python -m participants` as the participants' images start it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import participants
from helpers.participants import observed
from participants.base import ParticipantOptions
from participants.command import load, main, participant
from shared.errors import ConfigError
from shared.models import Action, Page
from shared.participants import list_participants

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
# Checks and prices need these, participants never do: `shared` imports them late.
OF_THE_JUDGE = {"PIL", "genai_prices", "jsonschema", "re2", "redis"}
LOCK = (ROOT / "docker/requirements-purple.lock").read_text()
IMPORT_ALL = """
import sys
import participants.__main__
from wabe import Action, Observation, serve
from participants.command import load
from shared.participants import list_participants
for name in list_participants():
    load(name)
names = {name.removeprefix("judge.plugins.") for name in sys.modules if name not in ("judge", "judge.plugins")}
print(*sorted({name.split(".")[0] for name in names}))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"}, timeout=60
    )


def imported_by(package: str) -> set[str]:
    """Top-level names that the package's files import."""
    result: set[str] = set()
    for path in (ROOT / "src" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                result.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                result.add(node.module.split(".")[0])
    return result


def test_what_participants_import_is_in_their_own_lock() -> None:
    distributions = packages_distributions()
    foreign = (
        (imported_by("participants") | imported_by("shared")) - {"participants", "shared", "google"} - OF_THE_JUDGE
    )
    needed = {
        name.lower().replace("_", "-") for module in foreign - sys.stdlib_module_names for name in distributions[module]
    }
    locked = {line.partition("==")[0] for line in LOCK.splitlines() if "==" in line}
    assert needed | {"google-genai"} <= locked


def test_participants_and_what_they_import_of_wabe_load_nothing_of_the_judge_and_its_own_libraries() -> None:
    loaded = run("-c", IMPORT_ALL).stdout.split()
    assert "participants" in loaded
    assert {"judge", "duckdb", "mcp", "playwright", *OF_THE_JUDGE} & set(loaded) == set()


def test_it_lists_the_participants() -> None:
    done = run("-m", "participants", "--list")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert listed == sorted(listed)
    # Plug-ins may add others.
    assert {"anthropic", "gemini", "idle", "obedient", "openai", "random", "replay"} <= {*listed}


def test_a_mistake_is_one_line_and_exit_code_2() -> None:
    done = run("-m", "participants", "nobody")
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown participant 'nobody'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"), [([], "no participant given"), (["random", "--port", "x"], "'--port'")]
)
def test_bad_usage_leaves_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    try:
        code: object = main(arguments)
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert complaint in capsys.readouterr().err


# --- found by name ----------------------------------------------------------------------------------------------------


@pytest.fixture
def dropped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as part of the participants' package."""
    monkeypatch.setattr(participants, "__path__", [*participants.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("participants."):
            del sys.modules[name]


WAITER = '''"""Waits and sees.

More about it.
"""
from participants.base import Action

def create(options):
    async def decide(observation):
        return Action(tool="browser_wait_for", params={"time": options.seed})
    return decide
'''


def test_a_module_dropped_in_is_listed_with_its_first_line(dropped_in: Path) -> None:
    (dropped_in / "test_waiter.py").write_text(WAITER)
    assert list_participants()["test_waiter"] == "Waits and sees."


@pytest.mark.parametrize("name", ["test_waiter", "test-waiter"])
async def test_a_module_dropped_in_can_be_run(dropped_in: Path, name: str) -> None:
    (dropped_in / "test_waiter.py").write_text(WAITER)
    decide = load(name)(ParticipantOptions(seed=7))
    reply = await decide(observed(Page(url="https://a.test/", title="", snapshot=""), instruction="Wait."))
    assert reply == Action(tool="browser_wait_for", params={"time": 7})


def test_helper_modules_and_broken_modules_are_not_listed(dropped_in: Path) -> None:
    (dropped_in / "test_helper.py").write_text("def other(): ...")
    (dropped_in / "test_broken.py").write_text("def create(options:")
    names = set(list_participants())
    assert not names & {"test_helper", "test_broken", "base", "command", "model"}


def test_listing_imports_no_module(dropped_in: Path) -> None:
    (dropped_in / "test_bomb.py").write_text("raise SystemExit(3)\ndef create(options): ...")
    assert "test_bomb" in list_participants()


@pytest.mark.parametrize("name", ["nobody", "base", "model", "../base", "os", ""])
def test_an_unknown_participant_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown participant"):
        load(name)


def test_a_module_with_a_missing_import_is_refused_with_the_reason(dropped_in: Path) -> None:
    (dropped_in / "test_needy.py").write_text("import no_such_library\ndef create(options): ...")
    with pytest.raises(ConfigError, match=r"cannot be imported: No module named 'no_such_library'"):
        load("test_needy")


def test_the_command_lists_participants(dropped_in: Path) -> None:
    (dropped_in / "test_waiter.py").write_text(WAITER)
    app = typer.Typer()
    app.command()(participant)
    result = CliRunner().invoke(app, ["--list"])
    assert result.exit_code == 0
    assert "test_waiter  Waits and sees.\n" in result.stdout

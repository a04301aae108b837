"""The examples of docs/extending.md, installed as a package and used."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import tomli

from helpers.paths import ROOT
from helpers.plugins import skip_without_command, verify_run
from helpers.results import JUDGE, a_finished_run, a_result, a_verdict
from shared.seams import PluginInfo

# They start processes of our commands.
pytestmark = pytest.mark.slow
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SCENARIO = """[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:9019"

[green_agent]
endpoint = "http://127.0.0.1:9009"

[[tasks]]
task_id = "t1"
website = "https://example.org/"
task = "Find it."
checks = [{ kind = "answer_length", most = MOST }]
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def declared() -> Mapping[str, Mapping[str, str]]:
    document: Mapping[str, Mapping[str, str]] = tomli.loads(blocks("toml")[0])["project"]["entry-points"]
    return document


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, as pip leaves it."""
    folder = tmp_path_factory.mktemp("site")
    # Imports first, as in a module: each block has its own.
    (folder / "wabe_example.py").write_text("\n\n".join(blocks("python")), encoding="utf-8")
    for name, text in re.findall(r"```python (\S+)\n(.*?)```", GUIDE, re.DOTALL):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    metadata = folder / "wabe_example-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wabe-example\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in declared().items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    return folder


def python(site: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT / "src"), str(ROOT / "tests")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ, "PYTHONPATH": path},
    )


def wabe(site: Path, *arguments: str | Path, **environ: str) -> str:
    done = python(site, "-m", "wabe", *map(str, arguments), **environ)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_every_seam_has_an_example() -> None:
    kinds = {
        kind
        for path in (ROOT / "src").rglob("*.py")
        # A plug-in's page has those of its own.
        if ROOT / "src" / "judge" / "plugins" not in path.parents
        for kind in re.findall(r'\bSeam\(\s*"([a-z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert {f"wabe.{kind}" for kind in kinds} == declared().keys()


def test_a_command_and_a_finding_of_the_package_are_there(site: Path) -> None:
    assert wabe(site, "hello", "--name", "Ada") == "hello, Ada\n"
    assert "hello" in wabe(site, "--help")
    assert "the example is installed" in python(site, "-m", "wabe", "doctor").stdout


PLAY_PROGRAM = """
import sys
from pathlib import Path
from helpers.results import a_finished_run, a_result
from judge.records.tasks import Task
checks = [{"kind": "answer_length", "most": int(sys.argv[2])}]
task = Task.model_validate({"task_id": "t1", "website": "https://example.org/", "task": "Say it.", "checks": checks})
a_finished_run(Path(sys.argv[1]), a_result(task=task, verdict=None, final_answer="1234567890"))
"""


def test_a_scenario_has_a_check_of_the_package(site: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO.replace("MOST", "40"))
    assert "valid, 1 task" in wabe(site, "tasks", "validate", scenario)


@pytest.mark.parametrize(("most", "outcome"), [(40, "success"), (2, "failure")])
def test_a_check_decides_and_the_verdict_names_the_package(site: Path, tmp_path: Path, most: int, outcome: str) -> None:
    skip_without_command("score")
    result = python(site, "-c", PLAY_PROGRAM, str(tmp_path), str(most))
    assert result.returncode == 0, result.stderr
    wabe(site, "score", "run-1", "--model", "offline", "--output-dir", tmp_path)
    (verdict,) = [json.loads(path.read_text()) for path in tmp_path.rglob("verdicts/checks-*.json")]
    assert verdict["outcome"] == outcome
    (plugin,) = verdict["judge"]["plugins"]
    assert (plugin["name"], plugin["version"]) == ("wabe-example", "1.0")


def test_a_layout_is_written_and_read_again(site: Path, tmp_path: Path) -> None:
    skip_without_command("export")
    a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("success")))
    wabe(site, "export", "run-1", "--format", "notes", "--output", tmp_path / "notes", "--output-dir", tmp_path)
    assert (tmp_path / "notes" / "t1" / "notes.txt").is_file()
    text = wabe(site, "export", tmp_path / "notes", "--format", "jsonl", "--output", "-", "--output-dir", tmp_path)
    assert json.loads(text.splitlines()[0])["task_id"] == "t1"


def test_tasks_are_imported_with_their_notes(site: Path) -> None:
    assert 'task = "Solve the hard riddle"' in wabe(site, "tasks", "import", "riddles", "--tasks", "hard")


def test_an_evaluator_is_a_method_of_wabe_score(site: Path, tmp_path: Path) -> None:
    skip_without_command("score")
    a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("success")))
    done = python(site, "-m", "wabe", "score", "run-1", "--method", "always_unscored", "--output-dir", str(tmp_path))
    assert "1 unscored" in done.stdout, done.stderr


def test_a_method_and_a_provider_judge_together(site: Path, tmp_path: Path) -> None:
    skip_without_command("score")
    a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("success")))
    arguments = ("score", "run-1", "--method", "one_word", "--model", "parrot:grey", "--output-dir", str(tmp_path))
    done = python(site, "-m", "wabe", *arguments, PARROT_API_KEY="k")
    assert "1 failure" in done.stdout, done.stderr
    (path,) = tmp_path.rglob("verdicts/one_word-*.json")
    assert json.loads(path.read_text())["judge"]["plugins"][0]["name"] == "wabe-example"


def test_a_verdict_of_a_package_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = PluginInfo(name="gone", version="2.0", code_checksum="x")
    judge = JUDGE.model_copy(update={"plugins": (gone,)})
    store = a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("success", judge=judge)))
    assert 'plug-in "gone": version "2.0" took part, and it is not installed' in verify_run(store).mismatches


def test_a_participant_is_listed(site: Path) -> None:
    assert "finisher" in wabe(site, "participant", "--list")


def test_engines_and_stores_are_found_by_name_and_by_reference(site: Path, tmp_path: Path) -> None:
    program = """
import asyncio, pathlib, sys
from pydantic import SecretStr
from judge.runner.uploads import open_store
from shared.engines import player_of
from shared.errors import ConfigError, SharedStateFault
from shared.llm.sharing import open_state
from participants.command import load
pathlib.Path(sys.argv[1], "f").write_text("x")
for opened_by in ("", "wabe_example:FOLDER@"):
    store = open_store(opened_by + "folder://" + sys.argv[1])
    store.put(pathlib.Path(sys.argv[1], "f"), "r/f")
    print(store.read("r/f"))
for opened_by in ("", "wabe_example:NOWHERE@"):
    try:
        asyncio.run(open_state(SecretStr(opened_by + "nowhere://"), "r").check())
    except SharedStateFault as fault:
        print(fault.message)
print(player_of("dry").__name__, player_of("wabe_example:DRY").__name__, callable(load("finisher")))
for name in ("folder", "wabe_example:FOLDER", "wabe_example:Gone", "gone:ENGINE"):
    try:
        player_of(name)
    except ConfigError as error:
        print(error.message)
"""
    done = python(site, "-c", program, str(tmp_path))
    assert done.stdout.splitlines() == [
        "b'x'",
        "b'x'",
        "this store never answers",
        "this store never answers",
        "dry_run dry_run True",
        "--engine 'folder' does not play runs",
        "--engine 'wabe_example:FOLDER' does not play runs",
        "engines 'wabe_example:Gone' cannot be imported: module 'wabe_example' has no attribute 'Gone'",
        "engines 'gone:ENGINE' cannot be imported: No module named 'gone'",
    ], done.stderr


def test_a_format_of_archives_is_named_in_the_environment(site: Path, tmp_path: Path) -> None:
    shop = {"clock_ms": 1, "origin": "https://shop.example", "pages": {}}
    (tmp_path / "shop.leaves").write_text(json.dumps(shop))
    program = """
import sys
from judge.network.archives import open_archive
from judge.config import FrozenSite
print(open_archive(FrozenSite(path=sys.argv[1])).archive.matcher)
"""
    path = str(tmp_path / "shop.leaves")
    done = python(site, "-c", program, path, WABE_ARCHIVE_FORMATS="x=y:Z, leaves=wabe_example:PAGES")
    assert done.stdout == "pages-1\n", done.stderr
    assert "unknown archive format" in python(site, "-c", program, path).stderr


def test_a_format_of_archives_answers_requests(site: Path, tmp_path: Path) -> None:
    shop = {"clock_ms": 1, "origin": "https://shop.example", "pages": {"/": "hello"}}
    (tmp_path / "shop.pages").write_text(json.dumps(shop))
    program = """
import asyncio, sys
from judge.network.archives import open_archives
from judge.network.interception import WireRequest
from judge.config import RunConfig
from judge.records.tasks import Task
config = RunConfig(archives={"*": {"path": sys.argv[1]}})
task = Task(task_id="t", website="https://shop.example/", task="x")
archives = open_archives(config)
archives.check([task])
attempt = archives.of(task)
answered = [asyncio.run(attempt.answer(WireRequest("GET", f"https://shop.example/{path}"), None)) for path in ("", "x")]
print([each.status for each in answered], attempt.frozen().coverage, attempt.clock_ms)
"""
    done = python(site, "-c", program, str(tmp_path / "shop.pages"))
    assert done.stdout == "[200, 504] off_archive 1\n", done.stderr


def test_listing_names_imports_no_plug_in(site: Path) -> None:
    program = """
import sys
from shared.seams import Seam, installed_plugins
for kind in ("checks", "formats", "commands"):
    Seam(kind, "x").names()
installed_plugins()
print(sorted(name for name in sys.modules if name.startswith(("wabe_example", "judge."))))
"""
    assert python(site, "-c", program).stdout == "[]\n"


def test_an_entry_point_whose_code_is_gone_is_skipped_and_named(tmp_path: Path) -> None:
    metadata = tmp_path / "wabe_gone-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wabe-gone\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[wabe.commands]\ngone = wabe_gone:COMMAND\n")
    output = python(tmp_path, "-m", "wabe", "doctor").stdout
    assert "wabe-gone is declared, but its code is gone; skipped: wabe.commands gone" in output
    assert "gone" not in python(tmp_path, "-m", "wabe", "--help").stdout


@pytest.mark.nightly
def test_our_own_tests_do_not_depend_on_installed_packages(site: Path) -> None:
    """Those that go through everything of a kind: formats, methods, providers, participants, findings."""
    tests = (
        "shared/llm/test_adapters.py::test_every_provider_is_tested_here",
        "judge/judges/test_factory.py::test_every_method_opens_on_every_provider",
        "participants/test_command.py",
        "judge/commands/test_doctor.py",
        "platform/test_image_files.py",
    )
    arguments = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow and not e2e")
    done = python(site, "-m", "pytest", *arguments, *(str(ROOT / "tests" / test) for test in tests))
    assert done.returncode == 0, done.stdout


def test_our_own_names_cannot_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "thief-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: a-thief\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[wabe.judge_methods]\nwebjudge = thief:Judge\n")
    (tmp_path / "thief.py").write_text("Judge = None")
    program = "from shared.seams import Seam; print(Seam('judge_methods', 'm').entry('webjudge').package)"
    assert python(tmp_path, "-c", program).stdout == "wabe\n"


LIMITED_PROGRAM = """
import json, sys
from pathlib import Path
from helpers.episode.scripted import ScriptedBrowser, play_episode
from helpers.results import a_finished_run, a_result, a_submission
from helpers.runner.concluded import concluded
from shared.models import Action
from shared.plugins import plugins

visit, messages = Action(tool="browser_navigate", params={"url": "https://shop.example/next"}), []
left = Action(tool="calls_left", params={})

async def goes(browser, tool, params):
    browser.goes_to(params["url"])

folder, limit = Path(sys.argv[1]), "browser_navigate=2"
end = play_episode(folder / "attempt", ScriptedBrowser(goes), *[visit] * 4, left, messages=messages, tool_limit=limit)
facts = {"tool_limit": end.tool_limit, "refused_calls": end.refused_calls}
known = {"tool_limit": limit, "steps": end.steps[2:4]}
a_finished_run(folder, *(a_result(f"t{n}").model_copy(update={**known, "refused_calls": n}) for n in (2, 5)))
steps = {"steps": end.steps[2:4]}
results = a_submission(a_result("rugs"), a_result("lamps").model_copy(update=steps))["results"]
[follower] = (each.results for name, each in plugins().items() if name == "tool_limit")
code, said = concluded(folder, results=results, followers=[follower], fail_on_refused=True)
print(json.dumps([facts, end.to_json()["refused_calls"], [step.flags for step in end.steps], messages, code, said]))
"""


def test_a_limit_on_a_tool_is_a_plug_in_of_one_folder(site: Path, tmp_path: Path) -> None:
    skip_without_command("export")
    played = python(site, "-c", LIMITED_PROGRAM, str(tmp_path))
    assert played.returncode == 0, played.stderr
    facts, recorded, flags, messages, code, said = json.loads(played.stdout.splitlines()[-1])
    assert facts == {"tool_limit": "browser_navigate=2", "refused_calls": 2}
    assert recorded == 2
    assert flags == [[], [], ["tool_limit"], ["tool_limit"], [], []]
    assert "browser_navigate cannot be used any more" in messages[3]
    assert "- calls_left: Say how often the limited tool can still be used" in messages[0]
    assert "Result: 0 calls of browser_navigate are left" in messages[5]
    assert code == 1
    assert said.endswith("Calls were refused: lamps\n")
    here = ("--output-dir", tmp_path)
    rows = wabe(site, "export", "run-1", "--format", "jsonl", "--output", "-", *here).splitlines()
    assert [json.loads(row)["refused_calls"] for row in rows] == [2, 5]
    wabe(site, "report", "run-1", "--output", tmp_path / "page", *here)
    page = (tmp_path / "page" / "index.html").read_text()
    assert "Refused calls: 7 in 2 attempts" in page
    assert "Refused calls</th>" in page
    verified = python(site, "-m", "wabe", "verify", "run-1", *map(str, here)).stdout
    assert "t5/result.json: refused_calls: recorded 5, flagged in 2 steps" in verified
    assert "t2/result.json: refused_calls" not in verified


@pytest.mark.parametrize(
    ("limit", "said"), [("browser_click=3", "valid, 1 task"), ("often", "[config], key 'tool_limit'")]
)
def test_a_setting_of_a_plug_in_is_one_of_config(site: Path, tmp_path: Path, limit: str, said: str) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO.replace("MOST", "40") + f'\n[config]\ntool_limit = "{limit}"\n')
    done = python(site, "-m", "wabe", "tasks", "validate", str(scenario))
    assert said in done.stdout + done.stderr
    assert "--tool-limit TOOL=N" in wabe(site, "run", "--help")
    assert (
        "unknown key"
        in subprocess.run(
            [sys.executable, "-m", "wabe", "tasks", "validate", scenario], capture_output=True, text=True, check=False
        ).stderr
    )

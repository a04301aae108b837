"""A run of a sealed task set: what leaves the judge contains no word of its tasks, and the owner has everything."""

import json
import re
from pathlib import Path

import pytest

from helpers.plugins import verify_run
from helpers.ports import free_ports
from helpers.runner.commands import run_command
from judge.store.layout import RunStore
from judge.store.sealing import SealKey

pytestmark = [pytest.mark.e2e, pytest.mark.own_browser]
# Every word that only the tasks, their pages and their scripts contain.
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
cmd = "wabe serve --port {judge}"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:{participant}"
cmd = "wabe participant replay --script {{scenario_dir}}/replay.toml --port {participant}"
[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:{site}"
static = true
cmd = "python -m http.server {site} --bind 127.0.0.1 --directory {{scenario_dir}}/site"
[config]
max_steps = 4
judge_model = "offline"
[[tasks]]
task_id = "zorblat"
website = "http://127.0.0.1:{site}/quimble.html"
task = "Open vexitron and say frobnick."
level = "easy"
checks = [{{ kind = "page", url = "/vexitron.html", description = "Plonkery is open" }}]
policies = [{{ name = "grumphle", dimension = "skeddadle", kind = "page", url = "/wibbly.html" }}]
[[tasks]]
task_id = "snorfle"
website = "http://127.0.0.1:{site}/quimble.html"
task = "Answer with drimbolo."
checks = [{{ kind = "answer", contains = "drimbolo", description = "Drimbolo is named" }}]
[[tasks]]
task_id = "klompet"
website = "http://127.0.0.1:{gone}/blurf.html"
task = "Open blurf."
checks = [{{ kind = "page", url = "/blurf.html" }}]
[[tasks]]
task_id = "fnordle"
website = "http://127.0.0.1:{site}/quimble.html"
task = "Do jibberance."
excluded = "wompish reason"
checks = [{{ kind = "page", url = "/jibberance.html" }}]
"""
SCRIPT = """
[[scripts]]
task = "Open vexitron and say frobnick."
steps = [
  { tool = "browser_click", role = "link", name = "Vexitron", thought = "Open vexitron and say frobnick." },
  { tool = "finish", params = { answer = "My task was: Open vexitron and say frobnick." } },
]
[[scripts]]
task = "Answer with drimbolo."
steps = [{ tool = "finish", params = { answer = "hoggity" }, thought = "I was asked to answer with drimbolo." }]
"""
WORDS = (
    *"zorblat quimble vexitron frobnick plonkery grumphle skeddadle wibbly snorfle drimbolo".split(),
    *("klompet", "blurf", "fnordle", "jibberance", "wompish", "hoggity"),
)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    judge, participant, site, gone = free_ports(4)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "quimble.html").write_text('<title>Quimble</title><a href="vexitron.html">Vexitron</a>')
    (tmp_path / "site" / "vexitron.html").write_text("<title>Vexitron</title><h1>Vexitron</h1>")
    (tmp_path / "replay.toml").write_text(SCRIPT)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO.format(judge=judge, participant=participant, site=site, gone=gone))
    key = SealKey.new()
    (tmp_path / "key").write_text(key.text)
    sealing = run_command(tmp_path / "tmp", "wabe", "tasks", "seal", scenario, "--key", tmp_path / "key")
    assert sealing.code == 0, sealing.stderr
    return tmp_path / "scenario.sealed"


def words_in(text: str) -> list[str]:
    return [word for word in WORDS if re.search(word, text, re.IGNORECASE)]


def test_nothing_that_is_published_contains_a_word_of_the_tasks(sealed: Path) -> None:
    folder = sealed.parent
    env = {"TERM": "dumb", "CI": "true", "WABE_SEAL_KEY": (folder / "key").read_text()}
    files = {"--output-dir": "out", "--output": "results.json", "--junit": "junit.xml"}
    requests = [part for option, name in files.items() for part in (option, str(folder / name))]

    completed = run_command(folder / "tmp", "wabe", "run", sealed, *requests, "--display", "json", env=env)

    (run,) = (folder / "out" / "runs").glob("2*")
    published = {path.name: path.read_text() for path in (sealed, folder / "results.json", folder / "junit.xml")}
    published |= {"stdout": completed.stdout, "stderr": completed.stderr}
    published |= {"judge's log": (run / "logs" / "green_agent.log").read_text()}
    published |= {str(path): path.read_text() for path in (run / "report-public").rglob("*") if path.is_file()}
    assert {name: results for name, text in published.items() if (results := words_in(text))} == {}
    assert not (run / "report").exists()

    # Verdicts and counts are public, and what they rest on is the owner's.
    detail = json.loads(published["results.json"])["results"][0]["detail"]
    assert sorted(each["verdict"] for each in detail["tasks"]) == ["aborted", "failure", "success"]
    assert detail["sealed"] == json.loads(published["scenario.sealed"])["public"]["digest"]
    assert [each["reason"] for each in detail["excluded"]] == ["sealed"]
    content = "".join(path.read_text() for path in run.rglob("*.json*") if path.name != "results.json")
    assert {"vexitron", "frobnick", "drimbolo", "hoggity"} <= set(words_in(content))
    assert verify_run(RunStore(folder / "out", run.name)).mismatches == ()

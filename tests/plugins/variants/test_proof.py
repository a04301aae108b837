"""A variant counts for a task only if its right script still passes and its wrong script still fails under it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.browser.hostile_site import hostile_site
from helpers.ports import free_ports
from helpers.results import a_result, a_verdict
from judge.commands.app import app
from judge.plugins.variants import measured, proof
from judge.plugins.variants.proof import change_of, held_variants
from judge.records.ledger import Coverage, Frozen
from judge.records.tasks import Task
from judge.results.run_record import task_digests
from judge.scenario.models import Scenario
from judge.scenario.pairs import pairs_of, proof_path
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.settings import Settings

SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:{judge}"
[[participants]]
role = "agent"
endpoint = "http://127.0.0.1:{agent}"
[config]
judge_model = "offline"
[[tasks]]
task_id = "t"
website = "{site}/"
task = "{task}"
reference = "replay.toml"
checks = [{{ kind = "element", element = 'heading "Done"' }}]
[[variants]]
name = "dark"
[[variants]]
name = "phone"
"""
SCRIPT = """
[[scripts]]
task = "Press."
steps = [
  {{ tool = "browser_click", role = "button", name = "{name}" }},
  {{ tool = "finish", params = {{ answer = "" }} }},
]
"""
# On a phone, the wrong button is the right one.
PAGE = """<title>Press</title><h1>Press</h1><button>Right</button><button>Wrong</button><script>
document.onclick = ({ target }) => {
  const right = innerWidth < 600 ? "Wrong" : "Right";
  if (target.textContent === right) document.querySelector("h1").textContent = "Done";
};</script>"""


def scenario_in(folder: Path, site: str = "http://shop.test", task: str = "Press.") -> Path:
    judge, agent = free_ports(2)
    path = folder / "s.toml"
    path.write_text(SCENARIO.format(judge=judge, agent=agent, site=site, task=task))
    (folder / "replay.toml").write_text(SCRIPT.format(name="Right"))
    (folder / "wrong.toml").write_text(SCRIPT.format(name="Wrong"))
    return path


def proven(scenario: Scenario) -> None:
    pairs = [pair for task in scenario.tasks for pair in pairs_of(task)]
    held = task_digests(pairs[:1])
    proof_path(scenario.path, "variants").write_text(
        json.dumps({"held": held, "lost": {"t--phone": "the button has moved"}})
    )


def chosen(path: Path, mode: str = "both", *names: str) -> Any:
    return held_variants(load_scenario(path), {"variants": mode}, names)


def test_only_variants_that_hold_are_played_until_the_task_is_edited(tmp_path: Path) -> None:
    path = scenario_in(tmp_path)
    with pytest.raises(ConfigError, match=r"proven to change no verdict \(wabe tasks validate .* --variants --write"):
        chosen(path)
    assert measured(path) is None
    proven(load_scenario(path))
    assert chosen(path) == {"variants": "both", "held_variants": ("t--dark",)}
    assert chosen(path, "off") == {}
    assert measured(path) == "1 of 2 variants proven to change no verdict"
    scenario_in(tmp_path, task="Press twice.")
    assert measured(path) == "0 of 2 variants proven to change no verdict"
    with pytest.raises(ConfigError, match="proven to change no verdict"):
        chosen(path)


def test_a_chosen_variant_is_one_that_holds_or_the_error_says_why_not(tmp_path: Path) -> None:
    path = scenario_in(tmp_path)
    proven(load_scenario(path))
    assert held_variants(load_scenario(path), {}, ["dark"])["variants"] == "both"
    with pytest.raises(ConfigError, match="t--phone: the button has moved"):
        chosen(path, "both", "phone")
    with pytest.raises(ConfigError, match="--variant drak: no task has it"):
        chosen(path, "both", "drak")


@pytest.mark.parametrize(
    ("script", "clean", "under", "change"),
    [
        ("right", "success", "success", None),
        ("right", "success", "failure", "the right script ends as failure"),
        ("right", "failure", "failure", "without it, the right script ends as failure"),
        ("wrong", "failure", "failure", None),
        ("wrong", "failure", "success", "the wrong script ends as success"),
        ("wrong", "failure", "unscored", "the wrong script ends as unscored"),
    ],
)
def test_a_variant_holds_if_it_changes_neither_verdict(script: str, clean: str, under: str, change: str | None) -> None:
    (pair, *_) = pairs_of(Task(task_id="t", website="http://shop.test/", task="Go."))
    attempts = {
        name: a_result(name, verdict=a_verdict(outcome)) for name, outcome in (("t", clean), (pair.task_id, under))
    }
    found = change_of(attempts, pair, script)
    assert found is None if change is None else change in (found or "")


@pytest.mark.parametrize(("coverage", "holds"), [("full", True), ("uncertain", False), ("off_archive", False)])
def test_on_a_frozen_site_a_variant_holds_only_if_the_archive_answers_the_right_script(
    coverage: Coverage, holds: bool
) -> None:
    (pair, *_) = pairs_of(Task(task_id="t", website="http://shop.test/", task="Go."))
    frozen = Frozen(archives=(), worst_left_out=coverage)
    attempts = {name: a_result(name, frozen=frozen) for name in ("t", pair.task_id)}
    why = f"the archive does not answer all that the right script asks for ({coverage})"
    assert change_of(attempts, pair, "right") == (None if holds else why)


def test_what_is_proven_is_kept_when_a_later_task_cannot_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(some: Scenario, _: Settings) -> proof.Proof:
        if [task.task_id for task in some.tasks] == ["u"]:
            raise ConfigError("the site has gone")
        return proof.Proof({"t--dark": "digest"}, {})

    monkeypatch.setattr(proof, "_KEPT_AFTER", 1)
    monkeypatch.setattr(proof, "_proven", found)
    path = scenario_in(tmp_path)
    path.write_text(f'{path.read_text()}[[tasks]]\ntask_id = "u"\nwebsite = "http://shop.test/"\ntask = "Go."\n')
    with pytest.raises(ConfigError, match="the site has gone"):
        proof.prove(load_scenario(path), Settings.from_environ({}), write=True)
    assert proof.read_proof(path).held == {"t--dark": "digest"}


@pytest.mark.e2e
def test_validate_writes_which_variants_hold_and_why_others_do_not(tmp_path: Path) -> None:
    with hostile_site({"/": PAGE}) as site:
        path = scenario_in(tmp_path, site.url.rstrip("/"))
        result = CliRunner().invoke(app, ["tasks", "validate", str(path), "--variants", "--write"])
    assert result.exit_code == 0, result.output
    assert "t--phone is not played: the right script ends as failure" in result.output
    kept = json.loads(proof_path(path, "variants").read_text())
    assert (list(kept["held"]), list(kept["lost"])) == (["t--dark"], ["t--phone"])

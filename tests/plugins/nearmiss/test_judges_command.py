"""`wabe judges`: scripted judges, asked over the wire about known attempts, get their known figures."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.llm.scripted import stage_of
from helpers.llm.servers import Answer, ModelCall, ModelServer, openai_answer
from helpers.results import digested
from judge.commands.app import app
from judge.plugins.nearmiss.bench import OWN_CHECKS
from judge.plugins.nearmiss.corpus import KnownAttempt, known_attempts, read_corpus, write_corpus
from judge.plugins.nearmiss.deciding import Deciding
from judge.plugins.nearmiss.recordings import keep
from judge.plugins.nearmiss.walks import ScriptedWalk
from judge.records.sites import NONE_SHARED
from judge.records.tasks import Task
from judge.trajectory.record import Attempt, Trajectory
from shared.errors import ConfigError
from shared.files import read_json, write_json

from .packing import START, play, script, walk_of

CHECKS = [{"kind": "request", "method": "POST", "url": "/api/things", "post_data": {"name": "Rope"}}]
RIGHT = script("Add Rope")
BACK = {"tool": "browser_navigate", "params": {"url": START}}
# With the place of the first step that the right walk does not have.
MISSES = {
    "also-1": (script("Add Lantern", "Add Rope"), 0),
    "also-2": (script("Add Rope", "Add Anchor"), 1),
    "twice-1": (script("Add Rope", "Add Rope"), 1),
    "plus-one-1": (script("Add Rope", "Mark Anchor", "Mark Rope"), 1),
    "leave-1": ((*RIGHT[:-1], BACK, RIGHT[-1]), 1),
    "also-3": (script("Add Gloves", "Add Rope"), 0),
}
TWICE = ["Add Rope", "Add Rope"]


def wrong_action(pressed: list[str]) -> int | None:
    """The first action that the right walk does not have, from 1."""
    if pressed == ["Add Rope"]:
        return None
    return 1 if pressed[0] != "Add Rope" else 2


def judged(call: ModelCall, _number: int) -> Answer:
    """What the judge says that the model's name stands for."""
    model, texts = call.body["model"], call.body["messages"]
    said = "\n".join(part["text"] for part in texts[1]["content"] if part["type"] == "text")
    wrong = wrong_action(re.findall(r"<(\w+ \w+) button>", said)) if "actions" in said else None
    is_fooled = model == "yes" or (model == "blind" and re.findall(r"<(\w+ \w+) button>", said) == TWICE)
    off = {"off-1": 1, "off-2": 2}.get(model, 0)
    match stage_of(texts[0]["content"]):
        case "key_points":
            return openai_answer("1. It is packed")
        case "image" | "key_point":
            return openai_answer("Score: 5")
        case "rubric_criteria":
            return openai_answer(json.dumps({"criteria": [{"requirement": "Packed"}]}))
        case "rubric_image":
            relation = {"criterion": "c1", "relation": "supports", "seen": ""}
            return openai_answer(json.dumps({"relations": [relation]}))
        case "rubric_process":
            failure = {"action": wrong + off, "why": ""} if wrong else None
            mark = {"criterion": "c1", "verdict": "not met" if wrong else "met", "reason": ""}
            return openai_answer(json.dumps({"criteria": [mark], "first_failure": failure, "blockers": []}))
        case _:
            return openai_answer(f"Status: {'failure' if wrong and not is_fooled else 'success'}")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(judged) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Right walks and near misses of two lists, as they are kept after a play."""
    folder = tmp_path / "corpus"
    known: list[KnownAttempt] = []
    for name in ("one", "two"):
        task = Task.model_validate({"task_id": "pack", "website": START, "task": "Pack it all.", "checks": CHECKS})
        walks: list[tuple[ScriptedWalk, int | None]] = [(walk_of(RIGHT, f"right-{number}"), None) for number in (1, 2)]
        walks += [(walk_of(steps, walk, walk.rpartition("-")[0]), place) for walk, (steps, place) in MISSES.items()]
        kept = []
        for walk, place in walks:
            own = tmp_path / name / walk.walk_id
            trajectory, _ = play(own, walk.steps, CHECKS)
            for step in trajectory.steps:
                (own / "trajectory").mkdir(exist_ok=True)
                (own / str(step.screenshot)).write_bytes(b"\xff\xd8\xff\xe0" + f"{name}{step.index}".encode())
            attempt = Attempt.from_json(digested(own, trajectory.attempt.to_json()), source="")
            played = Trajectory(folder=own, attempt=attempt, network=trajectory.network)
            kept.append(keep(walk.model_copy(update={"faulty": place}), played, folder / name, task))
        deciding = Deciding({"pack": task}, NONE_SHARED)
        known += known_attempts(name, kept, deciding.decide(kept, proposes=False))
    write_corpus(folder, known)
    return folder


def told(corpus: Path, *arguments: str) -> str:
    where = ["--corpus", str(corpus), "--output-dir", str(corpus.parent)]
    result = CliRunner().invoke(app, ["judges", "bench", *where, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def benched(corpus: Path, *arguments: str) -> dict[str, Any]:
    found = json.loads(told(corpus, "--json", *arguments))
    return {each["name"]: each for each in found["judges"]} | {"all": found}


def test_a_corpus_says_of_each_attempt_what_is_true_and_where_the_fault_is(corpus: Path) -> None:
    known = {each.task_id: each for each in read_corpus(corpus) if each.task == "one/pack"}
    # One broke off.
    assert {name.rpartition("/")[2]: (each.human, each.checks, each.faulty) for name, each in known.items()} == {
        "right-1": (True, True, None),
        "right-2": (True, True, None),
        "also-1": (False, True, 1),
        "also-2": (False, False, 2),
        "twice-1": (False, True, 2),
        "plus-one-1": (False, True, 2),
        "leave-1": (True, True, None),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("server")
def test_scripted_judges_get_their_known_figures(corpus: Path) -> None:
    judges = [f"webjudge@openai:{name}" for name in ("perfect", "yes", "blind")]
    found = benched(corpus, *(part for name in judges for part in ("--judge", name)))
    figures = {
        name: (*(each["rates"][key] for key in ("accuracy", "false_positives", "false_negatives")), each["located"])
        for name, each in found.items()
        if name in judges
    }
    # Of 14 attempts 6 did the task: two right walks and one other of each of two tasks.
    assert figures == {
        judges[0]: (1.0, 0, 0, None),
        judges[1]: (pytest.approx(6 / 14), 8, 0, None),
        judges[2]: (pytest.approx(12 / 14), 2, 0, None),
    }
    blind = found[judges[2]]["by_operator"]
    assert {name: (each["false_positives"], each["n"]) for name, each in blind.items()} == {
        "also": (0, 4),
        "twice": (2, 2),
        "plus-one": (0, 2),
    }
    assert found[judges[1]]["balanced_accuracy"] == 0.5
    pairs = {(each["first"], each["second"]): each for each in found["all"]["pairs"]}
    against_yes = pairs[judges[0], judges[1]]
    assert (against_yes["only_first"], against_yes["only_second"]) == (8, 0)
    # Three pairs: the smallest p-value, of eight fair coins, counts three times.
    assert against_yes["p_value"] == pytest.approx(3 * 2 / 2**8)
    assert found[judges[0]]["floor"]["right"] == 14


@pytest.mark.slow
@pytest.mark.usefixtures("server")
def test_judges_that_look_at_no_page_stand_beside_them(corpus: Path) -> None:
    found = benched(corpus, "--judge", "webjudge@openai:yes")
    assert found["always yes"]["rates"]["false_positives"] == 8
    assert found[OWN_CHECKS]["rates"]["false_positives"] == 6
    # All walks with one action did the task, and all others did not.
    assert found["telemetry"]["rates"]["accuracy"] > found["always yes"]["rates"]["accuracy"]
    text = told(corpus, "--judge", "webjudge@openai:yes")
    assert "webjudge@openai:yes does not beat a judge that looks at no page (telemetry)" in " ".join(text.split())


@pytest.mark.slow
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(("model", "located"), [("perfect", 8), ("off-1", 8), ("off-2", 0)])
def test_a_fault_is_located_within_one_action(corpus: Path, model: str, located: int) -> None:
    found = benched(corpus, "--judge", f"rubric@openai:{model}", "--repeat", "2")
    judge = found[f"rubric@openai:{model}"]
    assert (judge["located"]["n"], judge["located"]["of"]) == (located, 8)
    assert judge["agreement_with_itself"]["agreement"] == 1
    assert judge["cost_usd"] is None


def test_a_corpus_of_others_names_no_folder_outside(corpus: Path) -> None:
    listed = read_json(corpus / "corpus.json")
    write_json(corpus / "corpus.json", [{**listed[0], "task_id": "one/../../elsewhere"}])
    with pytest.raises(ConfigError, match="task_id"):
        read_corpus(corpus)


def test_without_a_corpus_the_command_that_builds_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("wabe judges corpus SCENARIO.toml")):
        CliRunner().invoke(
            app, ["judges", "bench", "--judge", "offline", "--corpus", str(tmp_path)], catch_exceptions=False
        )

"""`wabe score` as a user runs it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.llm.servers import ModelCall, ModelServer, openai_answer
from helpers.results import a_finished_run, a_result, a_step, a_verdict, digested
from judge.commands.app import app
from judge.store.layout import RunStore
from shared.errors import ConfigError

pytestmark = pytest.mark.slow

JPEG = b"\xff\xd8\xff\xe0"


def answer(received: ModelCall, _number: int) -> Any:
    text = received.body["messages"][1]["content"][0]["text"]
    if "List the key points" in text:
        return openai_answer("1. One thing")
    return openai_answer("Score: 5" if "How much does it matter" in text else "Fine.\nStatus: success")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "WABE_JUDGE_MODEL", "EVAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with ModelServer(answer) as server:
        yield server


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """A run of two finished tasks, made with the offline judge."""
    store = RunStore(tmp_path / "out", "run-1")
    store.create()
    store.write_run({"config": {"judge_model": "offline", "score_threshold": 2}})
    for task_id in ("t1", "t2"):
        task = store.task(task_id)
        task.begin()
        (task.folder / "trajectory" / "step_000.jpg").write_bytes(JPEG + task_id.encode())
        (task.folder / "snapshots" / "step_000.yaml").write_text('- heading "Lamps" [level=1] [ref=e1]\n')
        result = a_result(task_id, steps=(a_step(0),), verdict=None).to_json()
        task.write_result(digested(task.folder, result | {"task": f"Open the lamps page {task_id}"}))
    return store


def invoke(run: RunStore, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["score", *arguments, "--output-dir", str(run.output_dir)])


def on(server: ModelServer) -> list[str]:
    return ["--model", "openai:m", "--base-url", f"{server.url}/v1", "--json"]


def test_a_run_is_scored_by_a_model_and_counted(run: RunStore, server: ModelServer) -> None:
    result = invoke(run, "run-1", *on(server))
    summary = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (summary["trajectories"], summary["success"], summary["success_rate"]) == (2, 2, 100.0)
    assert summary["token_usage"]["calls"] == 6
    assert summary["cost_usd"] is None


def test_scoring_again_asks_nothing(run: RunStore, server: ModelServer) -> None:
    invoke(run, "run-1", *on(server))
    calls_before = len(server.received)
    summary = json.loads(invoke(run, "run-1", *on(server)).stdout)
    assert (summary["kept"], len(server.received)) == (2, calls_before)


def test_another_threshold_reuses_the_replies_it_shares(run: RunStore, server: ModelServer) -> None:
    invoke(run, "run-1", *on(server))
    calls_before = len(server.received)
    invoke(run, "run-1", *on(server), "--threshold", "5")
    assert len(server.received) == calls_before
    assert len(list((run.task("t1").folder / "verdicts").iterdir())) == 2


def test_without_options_the_runs_own_judge_is_used(run: RunStore, server: ModelServer) -> None:
    result = invoke(run, "run-1", "--json")
    assert server.received == []
    assert json.loads(result.stdout)["trajectories"] == 2


def test_a_model_that_is_named_judges_tasks_with_checks_as_well(run: RunStore, server: ModelServer) -> None:
    task = run.task("t1")
    result = json.loads((task.folder / "result.json").read_text())
    task.write_result(digested(task.folder, result | {"checks": [{"kind": "page", "url": "/other"}]}))
    by_checks = json.loads(invoke(run, "run-1", "--json").stdout)
    by_model = json.loads(invoke(run, "run-1", *on(server)).stdout)
    assert (by_checks["failure"], by_checks["unscored"], by_model["success"]) == (1, 1, 2)
    # The checks say that t1 failed: the model is right on no attempt that both decided.
    (floor,) = by_model["floors"].values()
    assert (floor["n"], floor["right"], floor["trivial"]["always yes"]) == (1, 0, 0)


def test_limit_scores_only_the_first_ones(run: RunStore, server: ModelServer) -> None:
    assert json.loads(invoke(run, "run-1", *on(server), "--limit", "1").stdout)["trajectories"] == 1


def test_a_broken_folder_is_reported_and_makes_the_exit_code_1(run: RunStore, server: ModelServer) -> None:
    (run.task("t1").folder / "result.json").write_text("{")
    result = invoke(run, "run-1", *on(server))
    summary = json.loads(result.stdout)
    assert (result.exit_code, summary["broken"], summary["success"]) == (1, 1, 1)
    assert "result.json" in result.stderr


def test_a_spent_budget_leaves_the_rest_unscored(run: RunStore, server: ModelServer) -> None:
    result = invoke(run, "run-1", *on(server), "--max-tokens", "130", "--max-calls", "1", "--max-parallel", "1")
    summary = json.loads(result.stdout)
    assert (result.exit_code, summary["unscored"]) == (1, 2)
    assert len(server.received) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run-1", "--method", "tarot"],
            "--method: 'tarot' is not a known value (known: agenttrek, autonomous, rubric, webjudge, ",
        ),
        (["run-1", "--method", "rubric"], "--method: 'rubric' needs a judge model, not 'offline' (leave --method out"),
        (["run-1", "--threshold", "9"], "--threshold: 9 is more than 5 (write 5 or less)"),
        (["run-1", "--model", "gpt-4o"], "--model: unknown judge model"),
        (["run-1", "--model", "openai:x"], "--model: openai:x needs a key (set OPENAI_API_KEY"),
        (["run-1", "--judges", "openai:x"], "--judges: openai:x needs a key (set OPENAI_API_KEY"),
        (["run-1", "--model", "openai:x", "--base-url", "http://127.0.0.1:1", "--prompts", "absent"], "prompts"),
        (["run-9"], "run-9"),
    ],
)
def test_a_users_mistake_is_named(run: RunStore, server: ModelServer, arguments: list[str], message: str) -> None:
    error = invoke(run, *arguments).exception
    assert isinstance(error, ConfigError)
    assert message in str(error)


def test_a_verdict_of_the_runs_own_judge_goes_into_its_results(tmp_path: Path, server: ModelServer) -> None:
    finished = a_finished_run(tmp_path / "out", a_result("t1", verdict=a_verdict("unscored")))
    judge_id = json.loads(invoke(finished, "run-1", *on(server)).stdout)["judge"]
    record = finished.read_run()
    assert record is not None
    assert json.loads((finished.folder / "results.json").read_text())["results"][0]["detail"]["unscored_tasks"] == 1
    finished.write_run({**record, "judge_id": judge_id})
    summary = json.loads(invoke(finished, "run-1", *on(server)).stdout)
    assert summary["updated"] == ["t1"]
    assert json.loads((finished.folder / "results.json").read_text())["results"][0]["detail"]["success_rate"] == 100.0


def asked_for(server: ModelServer, what: str) -> int:
    return sum(what in json.dumps(call.body["messages"]) for call in server.received)


@pytest.fixture
def wavering(server: ModelServer) -> ModelServer:
    """The server, deciding success and failure in turns."""
    decided: list[int] = []

    def waver(received: ModelCall, number: int) -> Any:
        text = received.body["messages"][1]["content"][0]["text"]
        if "Did the attempt succeed" not in text and "Was the task done" not in text:
            return answer(received, number)
        decided.append(number)
        return openai_answer(f"Status: {'success' if len(decided) % 2 else 'failure'}")

    server.plan = waver
    return server


def test_repeats_ask_everything_anew_and_report_flips(run: RunStore, wavering: ModelServer) -> None:
    result = invoke(run, "run-1", *on(wavering), "--repeat", "3", "--limit", "1", "--max-parallel", "1")
    assert result.exit_code == 0, result.output
    own = json.loads(result.stdout)["judges"]["webjudge"]["self_agreement"]
    assert (own["repeats"], own["n"], own["agreement"]) == (3, 1, pytest.approx(1 / 3))
    assert [(flip["successes"], flip["failures"]) for flip in own["flips"]] == [(2, 1)]
    assert asked_for(wavering, "List the key points") == 3
    names = {path.name.partition(".")[2] for path in (run.task("t1").folder / "verdicts").iterdir()}
    assert names == {"json", "r2.json", "r3.json"}


def test_repeats_that_exist_are_kept(run: RunStore, wavering: ModelServer) -> None:
    first = invoke(run, "run-1", *on(wavering), "--repeat", "2")
    calls_before = len(wavering.received)
    second = invoke(run, "run-1", *on(wavering), "--repeat", "2")
    assert len(wavering.received) == calls_before
    assert (
        json.loads(first.stdout)["judges"]["webjudge"]["self_agreement"]
        == (json.loads(second.stdout)["judges"]["webjudge"]["self_agreement"])
    )


def test_judges_are_compared_in_pairs(run: RunStore, server: ModelServer) -> None:
    result = invoke(run, "run-1", *on(server), "--judges", "webjudge,autonomous@openai:m,offline")
    assert result.exit_code == 1, result.output  # Without checks, `offline` leaves the tasks unscored.
    report = json.loads(result.stdout)
    assert list(report["judges"]) == ["webjudge", "autonomous@openai:m", "offline"]
    assert [(pair["first"], pair["n"], pair["agreement"]) for pair in report["pairs"]] == [
        ("webjudge", 2, 1.0),
        ("webjudge", 0, None),
        ("autonomous@openai:m", 0, None),
    ]


def test_judges_and_repeats_are_shown_as_tables(run: RunStore, wavering: ModelServer) -> None:
    arguments = [each for each in on(wavering) if each != "--json"]
    result = invoke(run, "run-1", *arguments, "--judges", "webjudge,autonomous", "--repeat", "2", "--max-parallel", "1")
    assert result.exit_code == 0, result.output
    assert "self-agreement" in result.stdout
    assert "Pairs of judges" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judges", "webjuge"], "webjuge"),
        (["--judges", ","], "names no judge"),
        (["--judges", "offline,rubric@openai"], "openai"),
        (["--repeat", "2"], "needs a judge model"),
    ],
)
def test_a_judge_that_cannot_work_is_named_before_any_is_asked(
    run: RunStore, server: ModelServer, arguments: list[str], message: str
) -> None:
    result = invoke(run, "run-1", *arguments)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
    assert not server.received


def test_a_run_is_scored_in_all_of_its_epochs(tmp_path: Path) -> None:
    first = a_result("t1", verdict=a_verdict("success"))
    store = a_finished_run(tmp_path, first, first.model_copy(update={"epoch": 2}))
    done = invoke(store, "run-1", "--model", "offline", "--json")
    document = json.loads(done.stdout)
    assert (document["trajectories"], document["unscored"], document["success_rate"]) == (2, 2, None)
    assert (document["repeats"]["epochs"], len(document["repeats"]["tasks"])) == (2, 1)
    assert len(list(store.folder.glob("epochs/2/results/t1/verdicts/checks-*.json"))) == 1
    assert "t1.2: unscored" in invoke(store, "run-1", "--model", "offline").stdout


def priced(server: ModelServer, *arguments: str) -> list[str]:
    """A model of known price."""
    return ["--model", "openai:gpt-4.1-mini", "--base-url", f"{server.url}/v1", *arguments]


def test_what_scoring_will_take_is_printed_before_and_what_it_took_at_the_end(
    run: RunStore, server: ModelServer
) -> None:
    first, *_, last = invoke(run, "run-1", *priced(server)).stdout.splitlines()
    # Key points, a screenshot and the decision for each of two trajectories; nothing is known of earlier calls.
    assert first.startswith(
        "webjudge · openai:gpt-4.1-mini: 2 trajectories, 2 verdicts to ask for: about 6 calls, 12,200 tokens, $0.0"
    )
    assert "(estimated without earlier calls; cached replies are free)" in first
    assert last == "This command: 6 calls, 0 cached, $0.0004; all verdicts: $0.0004"


def test_cached_replies_and_earlier_verdicts_are_distinguished(run: RunStore, server: ModelServer) -> None:
    invoke(run, "run-1", *priced(server))
    first, *_, last = invoke(run, "run-1", *priced(server, "--threshold", "5")).stdout.splitlines()
    assert "about 6 calls, 750 tokens, $0.0004 (estimated from 6 earlier calls" in first
    assert last == "This command: 0 calls, 6 cached, $0.00; all verdicts: $0.0008"


def test_with_nothing_to_ask_that_is_said(run: RunStore, server: ModelServer) -> None:
    invoke(run, "run-1", *priced(server))
    first, *_ = invoke(run, "run-1", *priced(server)).stdout.splitlines()
    assert first == "webjudge · openai:gpt-4.1-mini: 2 trajectories, no verdicts to ask for"
    assert "to ask" not in invoke(run, "run-1", "--model", "offline").stdout


def test_a_dry_run_estimates_and_judges_nothing(run: RunStore, server: ModelServer) -> None:
    with run.held("judge"):
        # It writes nothing, so it needs no lock.
        completed = invoke(run, "run-1", *priced(server, "--dry-run"))
    assert completed.exit_code == 0, completed.output
    first, last = completed.stdout.splitlines()
    assert "2 verdicts to ask for: about 6 calls" in first
    assert last == "Nothing was judged (--dry-run)."
    document = json.loads(invoke(run, "run-1", *priced(server, "--dry-run", "--json")).stdout)
    assert document["expected"]["calls"] == 6
    free = invoke(run, "run-1", "--model", "offline", "--dry-run").stdout
    assert free.splitlines()[0] == "no judge model: 2 trajectories, no verdicts to ask for"
    assert server.received == []
    assert list(run.folder.rglob("verdicts/*.json")) == []


def test_json_has_the_costs_too(run: RunStore, server: ModelServer) -> None:
    summary = json.loads(invoke(run, "run-1", *priced(server, "--json")).stdout)
    assert summary["name"] == "webjudge · openai:gpt-4.1-mini"
    assert summary["expected"]["calls"] == 6
    assert (summary["command"]["calls"], summary["command"]["cached"]) == (6, 0)
    assert summary["all_verdicts_cost_usd"] == pytest.approx(summary["command"]["cost_usd"])


@pytest.mark.parametrize(("option", "most"), [("--max-cost-usd", "0.0001"), ("--max-tokens", "130")])
def test_the_remedy_for_a_spent_budget_names_the_option_once(
    run: RunStore, server: ModelServer, option: str, most: str
) -> None:
    limits = (option, most, "--max-calls", "1", "--max-parallel", "1")
    lines = invoke(run, "run-1", *priced(server, *limits)).stdout.splitlines()
    assert [line for line in lines if option in line] == [
        f"The budget is spent, 2 verdicts missing: score again with a higher {option}."
    ]
    assert sum("is spent" in line for line in lines) == 3


def test_judges_side_by_side_have_their_names(run: RunStore, server: ModelServer) -> None:
    arguments = [*on(server)[2:4], "--judges", "webjudge@openai:m,autonomous@openai:m", "--repeat", "2"]
    output = invoke(run, "run-1", *arguments).stdout
    for line in ("webjudge · openai:m, 1 of 2:", "webjudge · openai:m, 2 of 2:", "autonomous · openai:m, 1 of 2:"):
        assert f"\n{line}\n" in output
    # Three calls or one for each of two trajectories, twice.
    assert "4 verdicts to ask for" not in output.splitlines()[0]
    assert "8 verdicts to ask for: about 16 calls" in output.splitlines()[0]


@pytest.mark.parametrize("method", ["webjudge", "webvoyager", "autonomous", "agenttrek"])
def test_the_expected_calls_are_those_that_are_made(run: RunStore, server: ModelServer, method: str) -> None:
    summary = json.loads(invoke(run, "run-1", *on(server), "--method", method).stdout)
    assert summary["expected"]["calls"] == len(server.received) == summary["command"]["calls"]


SCORE_IS_MADE_OF = """
import sys
from judge.commands.app import app
app(["score", "--help"], prog_name="wabe", standalone_mode=False)
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def test_scoring_waits_for_no_server_no_browser_and_no_database() -> None:
    done = subprocess.run([sys.executable, "-c", SCORE_IS_MADE_OF], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "judge" in loaded
    assert loaded.isdisjoint({"a2a", "mcp", "playwright", "duckdb", "sqlalchemy", "starlette", "uvicorn", "jsonschema"})

"""What a run leaves when its judge has answered: exit code, files, and the last lines."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from helpers.ports import free_port
from helpers.results import a_result, a_submission, a_verdict
from helpers.runner.concluded import JUDGE, concluded
from helpers.runner.scenario_runs import write_scenario
from helpers.runs import write_synthetic_run
from judge.records.verdicts import OFF_ARCHIVE, WITHOUT_CHECKS
from judge.runner.ending import linger
from judge.runner.follow import RunOutcome
from judge.runner.options import RunOptions
from judge.runner.plan import Plan
from judge.runner.run import conclude
from judge.runner.terminal import Progress
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore
from shared.errors import WabeError
from shared.settings import Settings


@pytest.mark.parametrize(("limit", "code"), [(None, 0), (50.0, 0), (50.1, 1), (100.0, 1), (0.0, 0)])
def test_a_rate_below_the_limit_is_a_failed_run(tmp_path: Path, limit: float | None, code: int) -> None:
    result, text = concluded(tmp_path, fail_under=limit)
    assert result == code
    assert ("is below --fail-under" in text) == bool(code)


def test_a_missed_limit_is_reported_even_where_nothing_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert concluded(tmp_path, fail_under=80, display="none") == (1, "")
    assert capsys.readouterr().err == "success rate of all tasks 50.0 % is below --fail-under 80 %\n"


def test_the_last_json_line_has_the_counts_and_the_exit_code(tmp_path: Path) -> None:
    _, text = concluded(tmp_path, display="json", fail_under=80)
    [line] = text.splitlines()
    document = json.loads(line)
    assert (document["event"], document["run_id"], document["exit_code"]) == ("results", "r1", 1)
    assert (document["success_rate_of_all"], document["total_tasks"]) == (50.0, 2)


def test_results_that_the_judge_could_not_write_replace_those_of_an_earlier_start(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "out", "r1")
    store.create()
    store.write_submission(a_submission(a_result("rugs", "environment_fault", verdict=None)))
    code, text = concluded(tmp_path, store)
    stored = json.loads((store.folder / "results.json").read_text())
    assert (code, stored["results"][0]["detail"]["scored_tasks"]) == (0, 2)
    assert f"Results: {store.folder / 'results.json'}" in text


def test_results_that_cannot_be_written_are_shown_and_end_the_run_with_1(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "out", "r1")
    (store.folder / "results.json" / "a folder").mkdir(parents=True)
    code, text = concluded(tmp_path, store)
    assert code == 1
    assert "success rate 50.0 %" in text
    assert f"Results are not written: {store.folder / 'results.json'}: Is a directory" in text
    assert "Results: " not in text


@pytest.mark.parametrize(
    ("code", "exit_code", "may_help"), [(WITHOUT_CHECKS, 1, False), (None, 1, True), (OFF_ARCHIVE, 0, False)]
)
def test_resuming_is_advised_only_where_a_lost_task_may_get_a_verdict(
    tmp_path: Path, code: str | None, exit_code: int, may_help: bool
) -> None:
    store = RunStore(tmp_path, "r1")
    store.create()
    store.write_run({"run_id": "r1"})
    results = a_submission(a_result("rugs", verdict=a_verdict("unscored", reason_code=code)))["results"]
    run_options = RunOptions(scenario=write_scenario(tmp_path / "scenario.toml"))
    plan = Plan(run_options, Settings(), load_scenario(run_options.scenario), members=(JUDGE,), draft=None, store=store)
    output = io.StringIO()
    outcome = RunOutcome(results=tuple(results), state="completed")
    console = Console(file=output, width=200)
    assert conclude(outcome, plan, console, Progress(console, "plain")) == exit_code
    assert ("resume with" in output.getvalue()) == may_help


@pytest.mark.parametrize("detail", [{}, {"tasks": [1]}, {"tasks": [{"success": True}]}, {"tasks": [], "judge": "x"}])
def test_a_result_of_another_form_is_kept_and_refused_in_a_line(tmp_path: Path, detail: dict[str, Any]) -> None:
    run_options = RunOptions(scenario=write_scenario(tmp_path / "scenario.toml"), output=tmp_path / "kept.json")
    plan = Plan(run_options, Settings(), load_scenario(run_options.scenario), members=(JUDGE,), draft=None, store=None)
    outcome = RunOutcome(results=({"winner": "w", "detail": detail},), state="completed")
    console = Console(file=io.StringIO())
    with pytest.raises(WabeError, match="the judge's result cannot be read"):
        conclude(outcome, plan, console, Progress(console, "plain"))
    assert json.loads((tmp_path / "kept.json").read_text())["results"][0]["detail"] == detail


async def test_a_run_that_lingers_serves_its_report_where_its_judge_was_until_it_is_stopped(tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, tasks=1, steps=1)
    run_options = RunOptions(scenario=write_scenario(tmp_path / "shop" / "scenario.toml"), linger=True)
    judge = JUDGE.model_copy(update={"endpoint": f"http://127.0.0.1:{free_port()}/", "cmd": "wabe serve"})
    plan = Plan(run_options, Settings(), load_scenario(run_options.scenario), members=(judge,), draft=None, store=store)
    output = io.StringIO()
    lingering = asyncio.create_task(linger(plan, Console(file=output, width=200)))
    async with httpx.AsyncClient(base_url=judge.endpoint, trust_env=False) as client:
        async with asyncio.timeout(60):
            while "The live page stays" not in output.getvalue():
                await asyncio.sleep(0.01)
        assert judge.endpoint in output.getvalue()
        assert (await client.get(f"/live/{store.run_id}/report/index.html")).status_code == 200
    lingering.cancel()
    # The signal ends the waiting and is not a failure: the exit code is that of the run.
    await lingering


async def test_a_judge_that_was_not_started_here_keeps_its_own_live_page(tmp_path: Path) -> None:
    run_options = RunOptions(scenario=write_scenario(tmp_path / "shop" / "scenario.toml"), linger=True)
    plan = Plan(run_options, Settings(), load_scenario(run_options.scenario), members=(JUDGE,), draft=None, store=None)
    output = io.StringIO()
    await linger(plan, Console(file=output, width=200))
    assert "was not started by this command; its live page stays up." in output.getvalue()

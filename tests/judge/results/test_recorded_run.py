"""A run that was recorded before the code was rearranged: what is read and derived from it stays the same.

The tests use the command line and the facade, so that they outlive the modules behind them.
"""

import csv
import io
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wabe
from helpers.paths import ROOT
from helpers.plugins import skip_without_command
from helpers.recorded import recorded_run
from helpers.runner.recorded_ends import RecordedEnds
from judge.commands.app import app
from judge.episode.assessment import Assessment
from judge.episode.attempts import AttemptSetup
from judge.judges.code import code_checksum
from judge.judges.factory import open_judge
from judge.runner.options import RunOptions
from judge.runner.plan import Plan, make_plan
from judge.scenario.toml import load_scenario
from judge.server.service import JudgeService
from judge.store.layout import RunStore
from shared.a2a.tasks import AgentMessage
from shared.settings import Settings

pytestmark = pytest.mark.slow

RECORDED = ROOT / "tests" / "fixtures" / "recorded_run"
RUN_ID = recorded_run().name
OUTCOMES = {"one_lamp": "success", "red_rugs": "failure", "chair_price": "success"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a copy of the run; its output folder is a copy of the fixture's."""
    return shutil.copytree(recorded_run(), tmp_path / "runs" / RUN_ID)


def invoke(*arguments: str | Path, code: int = 0) -> str:
    skip_without_command(*arguments)
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == code, done.output
    return done.stdout


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def attempts_of(folder: Path) -> list[Path]:
    result = sorted(path.parent for path in folder.rglob("result.json"))
    assert len(result) == 2 * len(OUTCOMES)
    return result


def results(folder: Path) -> dict[str, bytes]:
    """Every file but verdicts, which another version's judge adds, and locks."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "verdicts")
    return {str(path): path.read_bytes() for path in paths if not path.name.startswith(".")}


def test_it_verifies(folder: Path) -> None:
    # Other code may have recomputed the verdicts of checks: that is a note.
    assert invoke("verify", folder).endswith(f"Run {RUN_ID}: 3 tasks, checksums, counts and rates match.\n")


def test_its_trajectories_have_the_digests_that_were_recorded(folder: Path) -> None:
    for attempt in attempts_of(folder):
        assert wabe.load_trajectory(attempt).sha256 == read(attempt / "result.json")["trajectory_sha256"]


async def test_its_checks_decide_as_before_with_the_same_evidence(folder: Path) -> None:
    scored = {one.folder.resolve(): one for one in await wabe.score(folder, again=True)}
    for attempt in attempts_of(folder):
        recorded = read(next((recorded_run() / attempt.relative_to(folder)).glob("verdicts/*.json")))
        verdict = scored[attempt.resolve()].verdict
        assert verdict is not None
        document = json.loads(verdict.model_dump_json())
        # These name the code.
        del recorded["judge"], document["judge"]
        # Recorded since: what was found, as data.
        for check in document["evidence"]["checks"]:
            check.pop("facts", None)
        assert document == recorded


def test_scoring_it_again_changes_no_result(folder: Path) -> None:
    before = results(folder)
    output = folder.parent.parent
    completed = invoke("score", RUN_ID, "--output-dir", output, "--model", "offline", "--again", "--json")
    summary = json.loads(completed)
    assert [summary[key] for key in ("trajectories", "success", "failure", "unscored")] == [6, 4, 2, 0]
    assert results(folder) == before


def test_its_rows_are_unchanged_and_new_columns_come_last(folder: Path) -> None:
    completed = list(csv.reader(io.StringIO(invoke("export", folder, "--format", "csv", "--output", "-"))))
    recorded = list(csv.reader(io.StringIO((RECORDED / "attempts.csv").read_text())))
    assert [line[: len(recorded[0])] for line in completed] == recorded


@pytest.mark.parametrize("query", ["overall", "by_level"])
def test_its_leaderboard_rows_are_unchanged(folder: Path, query: str) -> None:
    document = json.loads(invoke("leaderboard", folder / "results.json", "--query", query, "--json"))
    recorded = read(RECORDED / "leaderboard.json")[query]
    # Columns of later versions are empty.
    later = (
        dict.fromkeys(["Shards", "Efficiency", "Corrected by Labels", "Labels", "Lower Bound", "Upper Bound"])
        if query == "overall"
        else {}
    )
    assert document == [row | later for row in recorded]


def test_it_is_reported_with_the_same_table(folder: Path) -> None:
    invoke("report", folder, "--output", folder.parent / "report")
    with (folder.parent / "report" / "tasks.csv").open() as value, (RECORDED / "tasks.csv").open() as recorded:
        rows = list(csv.DictReader(value))
        assert [row | known for row, known in zip(rows, csv.DictReader(recorded), strict=True)] == rows


def plan_of(folder: Path) -> Plan:
    # Nothing is started, but there must be a browser.
    settings = Settings.from_environ({"WABE_BROWSER_PATH": sys.executable})
    options = RunOptions(scenario=RECORDED / "scenario.toml", output_dir=folder.parent.parent, resume=RUN_ID)
    return make_plan(options, settings)


def test_resuming_says_first_that_it_judges_again(folder: Path) -> None:
    plan = plan_of(folder)
    assert plan.resumes
    assert plan.notes == (
        "6 attempts judged by other code will be judged again from the recordings, without model calls",
    )


async def test_the_judge_resumes_it_and_it_verifies_scores_and_reports_afterwards(folder: Path) -> None:
    plan, before, sink = plan_of(folder), read(folder / "run.json"), RecordedEnds()
    judge = JudgeService(Settings(trust_config=True, browser_path=sys.executable), folder.parent.parent)
    await judge.execute(AgentMessage(text=plan.request, context_id="c", task_id="t"), sink)
    assert sink.ending[0] == "completed", sink.ending
    record = read(folder / "run.json")
    assert record["judge_id"] != before["judge_id"]
    assert record["earlier_judges"] == [before["judge_id"]]
    assert [record[key] for key in ("started_at", "outcomes")] == [before[key] for key in ("started_at", "outcomes")]
    assert invoke("verify", folder).endswith(f"Run {RUN_ID}: 3 tasks, checksums, counts and rates match.\n")
    invoke("report", folder, "--output", folder.parent / "report")
    result = await wabe.score(folder)
    assert sorted((one.folder.name, one.outcome) for one in result) == sorted([*OUTCOMES.items()] * 2)


async def test_a_resumed_run_plays_none_of_its_tasks_again(folder: Path) -> None:
    opened: list[object] = []

    @asynccontextmanager
    async def note_play(*arguments: object) -> AsyncIterator[Any]:
        opened.append(arguments)
        yield None

    scenario = load_scenario(RECORDED / "scenario.toml")
    judge = open_judge(scenario.config, Settings(), cache_dir=None)
    before = {attempt: read(attempt / "result.json")["trajectory_sha256"] for attempt in attempts_of(folder)}
    store = RunStore(folder.parent.parent, RUN_ID)
    setup = AttemptSetup(scenario.config, note_play, judge)
    result = await Assessment(scenario.tasks, setup, note_play, store, emit=lambda _: None).run()
    assert opened == []
    assert [(one.task.task_id, one.outcome) for one in result] == [*OUTCOMES.items()] * 2
    assert {attempt: read(attempt / "result.json")["trajectory_sha256"] for attempt in before} == before
    # One judge gave every verdict that counts, and those of the judge before are still there.
    assert {read(attempt / "result.json")["judge"]["code_checksum"] for attempt in before} == {code_checksum()}
    for attempt in before:
        assert {path.stem for path in attempt.glob("verdicts/*.json")} == {judge.id, "checks-ccb18757161e"}

"""The run of a served scenario: listed, verified and reported as what it is."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.episodes import CONFIG, TASKS, begin, finish, offline_judge
from helpers.paths import ROOT
from helpers.plugins import skip_without_command, verify_run
from judge.commands.app import app
from judge.environment.episode_runs import recorded_episodes
from judge.records.tasks import Task
from judge.store.episodes import EpisodeStore, Retention
from judge.store.layout import RunStore, runs_in
from shared.errors import ConfigError

LAMPS, RUGS = TASKS


def invoke(*arguments: str | Path, code: int = 0) -> str:
    skip_without_command(*arguments)
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.stdout


def served(folder: Path, retention: Retention | None = None, tasks: tuple[Task, ...] = TASKS) -> Iterator[EpisodeStore]:
    with recorded_episodes(folder, config=CONFIG, tasks=tasks, judge=offline_judge(), retention=retention) as episodes:
        yield episodes


def play(episodes: EpisodeStore, *answers: str | None, task: Task = LAMPS) -> None:
    judge = offline_judge()
    for answer in answers:
        store = begin(episodes, task)
        finish(store, task, answer, judge)
        episodes.end(store)


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """Six episodes, of which two were deleted; one ended as an abort, one without an end."""
    for episodes in served(tmp_path, Retention(episodes=4)):
        play(episodes, "42", "41", "42")
        play(episodes, "42", None, task=RUGS)
        episodes.end(begin(episodes, RUGS))
    return episodes.run


def test_a_run_of_episodes_is_listed_with_those_that_were_deleted(run: RunStore) -> None:
    row = json.loads(invoke("runs", "--json", "--output-dir", run.output_dir))[0]
    assert (row["id"], row["participant"], row["state"], row["episodes"]) == (run.run_id, "trainer", "finished", 6)
    # Two of three lamps, one of one rug.
    assert row["success_rate"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert "83.3 % (4 of 6 scored), 6 episodes" in invoke("runs", "--output-dir", run.output_dir)


def test_the_list_shows_episodes_that_ended_since_it_was_last_read(tmp_path: Path) -> None:
    index = pytest.importorskip("judge.plugins.all_runs.index").RunIndex(tmp_path)
    for episodes in served(tmp_path):
        play(episodes, "42")
        assert [(each.state, each.episodes) for each in index.runs()] == [("running", 1)]
        play(episodes, "41")
        assert [(each.episodes, each.rate) for each in index.runs()] == [(2, 50.0)]


def test_a_run_of_episodes_verifies_and_says_what_could_not_be_checked(run: RunStore) -> None:
    findings = verify_run(run)
    assert findings.mismatches == ()
    assert "2 deleted episodes: counted only, not checked" in findings.notes
    assert "1 episode without an end: interrupted" in findings.notes


@pytest.mark.parametrize(
    ("change", "mismatch"),
    [
        (lambda run: shutil.rmtree(run.episodes / "4"), "episodes.json: rugs: {'success': 1"),
        (lambda run: (run.episodes / "5/results/rugs/snapshots/step_000.yaml").write_text("x"), "(SHA-256)"),
        (lambda run: (run.episodes / "6/results/rugs/snapshots/step_000.yaml").write_text("x"), "(SHA-256)"),
        (lambda run: (run.episodes / "3").rename(run.episodes / "9"), "epoch"),
        (lambda run: edit(run.folder / "episodes.json", last=8), "8 episodes began, 6 are counted"),
        (lambda run: (run.folder / "episodes.json").write_text("{"), "not readable"),
        (lambda run: edit(run.episodes / "3/results/lamps/result.json", task="Find it"), "not the task lamps"),
        (lambda run: edit(run.episodes / "3/results/lamps/result.json", verdict="failure"), "verdict"),
    ],
)
def test_verify_finds_what_was_changed(run: RunStore, change: object, mismatch: str) -> None:
    assert callable(change)
    change(run)
    assert any(mismatch in each for each in verify_run(run).mismatches), verify_run(run).mismatches


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_report_has_the_kept_episodes_and_counts_the_others(run: RunStore) -> None:
    page = Path(invoke("report", run.folder).partition("Report: ")[2].strip())
    names = sorted(path.stem for path in (page.parent / "tasks").glob("*.html"))
    assert names == ["lamps.3", "rugs.4", "rugs.5", "rugs.6"]
    text = page.read_text()
    assert "episodes, of which 2 were deleted and are not in this report" in text
    assert "pass@" not in text


def test_tables_have_a_line_for_each_kept_episode_that_ended(run: RunStore) -> None:
    lines = invoke("export", run.folder, "--format", "jsonl", "--output", "-").splitlines()
    assert [(row["task_id"], row["epoch"], row["verdict"]) for row in map(json.loads, lines)] == [
        ("lamps", 3, "success"),
        ("rugs", 4, "success"),
        ("rugs", 5, "aborted"),
    ]


def test_a_restarted_server_continues_the_run_of_the_same_tasks(tmp_path: Path) -> None:
    for episodes in served(tmp_path):
        play(episodes, "42")
    for again in served(tmp_path):
        assert again.begin("lamps").epoch == 2
        with pytest.raises(ConfigError, match="being written"):
            next(held_elsewhere(again.run))
    for other in served(tmp_path, tasks=(RUGS,)):
        play(other, "42", task=RUGS)
    assert {run.run_id for run in runs_in(tmp_path)} == {episodes.run.run_id, other.run.run_id}
    assert again.run.run_id == episodes.run.run_id != other.run.run_id


def held_elsewhere(run: RunStore) -> Iterator[None]:
    with run.held("judge"):
        yield


def test_two_servers_of_the_same_tasks_have_runs_of_their_own(tmp_path: Path) -> None:
    for first in served(tmp_path):
        for second in served(tmp_path):
            play(first, "42")
            play(second, "42")
    assert len(runs_in(tmp_path)) == 2


DIES = """
import os, sys
from pathlib import Path
from helpers.episodes import CONFIG, TASKS, begin, finish, offline_judge
from judge.environment.episode_runs import recorded_episodes

judge, (lamps, rugs) = offline_judge(), TASKS
with recorded_episodes(Path(sys.argv[1]), config=CONFIG, tasks=TASKS, judge=judge) as episodes:
    store = begin(episodes, lamps)
    finish(store, lamps, "42", judge)
    episodes.end(store)
    begin(episodes, rugs, steps=3)
    os._exit(7)
"""


@pytest.mark.slow
def test_after_a_kill_every_step_is_there_and_the_episode_is_interrupted(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
    assert subprocess.run([sys.executable, "-c", DIES, tmp_path], env=environ, check=False).returncode == 7
    run = runs_in(tmp_path)[0]
    assert "interrupted" in invoke("runs", "--output-dir", tmp_path)
    assert len((run.episodes / "2/results/rugs/steps.jsonl").read_text().splitlines()) == 3
    for episodes in served(tmp_path):
        play(episodes, "41")
    findings = verify_run(run)
    assert (findings.mismatches, "1 episode without an end: interrupted" in findings.notes) == ((), True)
    assert json.loads((run.folder / "episodes.json").read_text())["ended"] == {
        "lamps": {"success": 1, "failure": 1},
        "rugs": {"interrupted": 1},
    }


def test_scoring_again_finds_each_kept_episode(run: RunStore) -> None:
    *lines, last = invoke("score", run.folder, code=1).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["lamps.3", "rugs.4", "rugs.5"]
    # The one without an end cannot be judged.
    assert "4 trajectories, 2 success, 0 failure, 0 unscored, 1 aborted, 1 broken" in last
    assert verify_run(run).mismatches == ()

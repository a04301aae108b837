"""Shards of a run become one run, or it is said why not."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.plugins import verify_run
from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, write_verdict_on
from judge.commands.app import app
from judge.config import RunConfig
from judge.judges.code import code_checksum
from judge.plugins.shards.merging_runs import merge_shards
from judge.report.build import make_report
from judge.results.rejudged import take_over
from judge.results.run_record import end_run, sha256_of, task_digests
from judge.scenario.models import Shard
from judge.store.layout import RunStore, newest_run, resolve_run
from judge.trajectory.record import Attempt
from shared.errors import ConfigError

# Without a digit in common with another price, so that a sum can be told.
COSTS = (0.1, 0.02, 0.003, 0.0004, 0.00005)


def attempts() -> list[Attempt]:
    """Five tasks: two successes, a failure, one without a verdict, one that was aborted."""
    code = code_checksum()
    judge = JUDGE.model_copy(update={"code_checksum": code, "prompt_checksum": code})
    outcomes = ["success", "failure", "success", "unscored"]
    judged = [
        a_result(f"t{n}", verdict=a_verdict(outcome, judge=judge, cost_usd=COSTS[n]), versions={"browser": "C 1"})
        for n, outcome in enumerate(outcomes)
    ]
    return [*judged, a_result("t4", "environment_fault", steps=(), error="gone", blame="browser")]


def a_sharded_run(
    folder: Path, divided: dict[int, list[int]], *, of: int = 3, whole: list[int] | None = None, **changes: Any
) -> RunStore:
    """`run-1` in shards; `divided` has the numbers of the tasks of each, `whole` those of the request."""
    known = attempts()
    digest = sha256_of(task_digests([known[n].task for n in whole or range(5)]))
    for index, numbers in divided.items():
        shard = Shard(index=index, of=of, tasks_sha256=digest)
        a_finished_run(
            folder, *(known[n] for n in numbers), run_id=f"run-1/shards/{shard.name}", shard=shard, **changes
        )
    return RunStore(folder, "run-1")


DIVIDED = {0: [0, 3], 1: [1], 2: [4, 2]}


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return a_sharded_run(tmp_path, DIVIDED)


def test_the_metered_calls_of_shards_are_merged_and_each_counts_once(run: RunStore) -> None:
    pytest.importorskip("judge.plugins.metering.part")
    for number, shard in enumerate(run.shards()):
        start = {"call": f"c{number}", "at": 1.0, "role": "white_agent", "provider": "openai"}
        # The last line of the first one was torn.
        (shard.folder / "metering.jsonl").write_text(json.dumps(start) + ("" if number else '\n{"call": "c9", "at'))
    for _ in range(2):
        merge_shards(run)
        assert len((run.folder / "metering.jsonl").read_text().splitlines()) == 4
        stored = json.loads((run.folder / "results.json").read_text())["results"][0]["detail"]
        assert stored["participant_usage"]["calls"] == 3
    assert verify_run(run).mismatches == ()


def test_merged_shards_are_a_run_like_any_other(run: RunStore, tmp_path: Path) -> None:
    merged = merge_shards(run)["results"][0]["detail"]
    whole = json.loads((a_finished_run(tmp_path / "whole", *attempts()).folder / "results.json").read_text())
    expected = whole["results"][0]["detail"]
    by_id = {entry["task_id"]: entry for entry in merged.pop("tasks")}
    assert by_id == {entry["task_id"]: entry for entry in expected.pop("tasks")}
    made_of = [shard["run_id"] for shard in merged["provenance"].pop("shards")]
    assert made_of == [f"run-1/shards/00{index}-of-003" for index in range(3)]
    # The shards were launched with a scenario, the other run was not.
    identity = json.loads((run.shards()[0].folder / "results.json").read_text())
    expected["provenance"]["identity"] = identity["results"][0]["detail"]["provenance"]["identity"]
    assert merged == expected
    assert verify_run(run).mismatches == ()
    assert make_report([run]).is_file()
    newest = newest_run(run.output_dir)
    assert newest is not None
    assert newest.run_id == "run-1"
    record = run.read_run() or {}
    assert record["outcomes"] == {"success": 2, "failure": 1, "unscored": 1, "aborted": 1}
    assert "shard" not in record["request"]


def test_merging_again_takes_over_what_changed_and_keeps_later_verdicts(run: RunStore) -> None:
    merge_shards(run)
    for task_id in ("t0", "t4"):
        write_verdict_on(run.task(task_id), "rubric-2", a_verdict("failure"))
    shard = RunStore(run.output_dir, "run-1/shards/002-of-003")
    played_again = a_result("t4", verdict=attempts()[0].verdict, versions={"browser": "C 1"})
    shutil.rmtree(shard.folder)
    a_finished_run(
        run.output_dir,
        played_again,
        attempts()[2],
        run_id=shard.run_id,
        shard=Shard(index=2, of=3, tasks_sha256=sha256_of(task_digests([each.task for each in attempts()]))),
    )
    assert merge_shards(run)["results"][0]["detail"]["judged_successes"] == 3
    assert run.task("t0").read_verdict("rubric-2") is not None
    # Of a trajectory that is gone.
    assert run.task("t4").read_verdict("rubric-2") is None
    assert verify_run(run).mismatches == ()


def test_a_verdict_that_was_given_after_a_merge_still_counts_after_the_next(run: RunStore) -> None:
    merge_shards(run)
    write_verdict_on(run.task("t3"), "webjudge-1", attempts()[0].verdict or a_verdict())
    take_over(run)
    merged = merge_shards(run)
    assert merged["results"][0]["detail"]["judged_successes"] == 3
    assert json.loads((run.folder / "results.json").read_text()) == merged
    assert verify_run(run).mismatches == ()


def test_a_verdict_that_a_shard_gave_later_replaces_the_merged_one(run: RunStore) -> None:
    merge_shards(run)
    write_verdict_on(run.shards()[1].task("t1"), "webjudge-1", a_verdict("success"))
    merge_shards(run)
    verdict = run.task("t1").read_verdict("webjudge-1")
    assert verdict is not None
    assert verdict.outcome == "success"


def test_a_task_is_played_again_in_the_merged_run_and_the_shard_stays_as_it_is(run: RunStore) -> None:
    merge_shards(run)
    before = {path: path.read_bytes() for path in (run.folder / "shards").rglob("*") if path.is_file()}
    run.task("t0").begin()
    (run.task("t0").folder / "steps.jsonl").write_text("{}")
    run.task("t1").write_result({})
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(("costs", "whole"), [((0.5, 0.25, 0.0), 0.75), ((0.5, None, 0.25), None)])
def test_what_the_judge_model_used_is_added_up_and_an_unknown_cost_stays_unknown(
    run: RunStore, costs: tuple[float | None, ...], whole: float | None
) -> None:
    for shard, cost in zip(run.shards(), costs, strict=True):
        record = shard.read_run() or {}
        shard.write_run(record | {"judge_usage": {"token_usage": {"calls": 2}, "cost_usd": cost}})
    merge_shards(run)
    usage = (run.read_run() or {})["judge_usage"]
    assert (usage["token_usage"]["calls"], usage["cost_usd"]) == (6, whole)


def test_files_are_not_stored_twice_where_links_are_possible(run: RunStore) -> None:
    merge_shards(run)
    picture = run.task("t0").folder / "trajectory" / "step_000.jpg"
    assert picture.stat().st_nlink == 2


def test_a_shard_without_tasks_may_be_missing(tmp_path: Path) -> None:
    run = a_sharded_run(tmp_path, {0: [0, 1], 1: [2, 3, 4]}, of=3)
    assert merge_shards(run)["results"][0]["detail"]["total_tasks"] == 5


def test_missing_shards_are_named(tmp_path: Path) -> None:
    run = a_sharded_run(tmp_path, {1: [1, 2]}, of=3)
    with pytest.raises(ConfigError, match=r"^run run-1 has 1 of 3 shards, missing: 000, 002 \(start what is missing"):
        merge_shards(run)
    assert not run.has_begun


def test_all_shards_that_are_not_finished_are_named(run: RunStore) -> None:
    first, _, last = run.shards()
    end_run(first, "cancelled")
    text = r"2 of 3 shards unfinished: 000-of-003 \(cancelled\), 002-of-003 \(running\) \(wait for those that run"
    with last.held("judge"), pytest.raises(ConfigError, match=text):
        merge_shards(run)


def test_a_result_of_another_task_is_found(run: RunStore) -> None:
    path = run.folder / "shards" / "001-of-003" / "results" / "t1" / "result.json"
    path.write_text(path.read_text().replace('"task": "Find it."', '"task": "Find anything."'))
    with pytest.raises(ConfigError, match="results/t1: records another task than the request"):
        merge_shards(run)


def test_a_run_that_is_not_a_shard_is_named(run: RunStore, tmp_path: Path) -> None:
    shutil.copy(a_finished_run(tmp_path / "other", *attempts()).folder / "run.json", run.shards()[1].folder)
    with pytest.raises(ConfigError, match=r"001-of-003/run\.json: missing, damaged, or of no shard"):
        merge_shards(run)


def test_a_task_in_two_shards_is_named(tmp_path: Path) -> None:
    run = a_sharded_run(tmp_path, {0: [0, 1, 2], 1: [2, 3, 4]}, of=2)
    with pytest.raises(ConfigError, match="task t2 is in two shards: 000-of-002 and 001-of-002"):
        merge_shards(run)


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "judge": ({"judge_id": "webjudge-2"}, "other judge"),
    "config": ({"config": RunConfig(judge_model="offline", max_steps=3)}, "other config"),
    "task set": ({"whole": [0, 1, 2, 3]}, "other tasks"),
    "count": ({"of": 4}, "other number of shards"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_shard_of_another_request_is_named_with_what_differs(tmp_path: Path, name: str) -> None:
    changes, what = OTHERS[name]
    a_sharded_run(tmp_path, {0: [0, 3], 2: [4, 2]})
    run = a_sharded_run(tmp_path, {1: [1]}, **changes)
    with pytest.raises(ConfigError, match=f"shard 00.-of-00. belongs to another request: {what}"):
        merge_shards(run)


def test_shards_with_other_budgets_and_parallelism_are_of_one_request(tmp_path: Path) -> None:
    a_sharded_run(tmp_path, {0: [0, 3], 2: [4, 2]})
    run = a_sharded_run(tmp_path, {1: [1]}, config=RunConfig(judge_model="offline", max_parallel=4, max_judge_tokens=9))
    merge_shards(run)
    assert verify_run(run).mismatches == ()


def remove(path: Path) -> None:
    path.unlink()


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


@pytest.mark.parametrize("damage", [remove, tear])
@pytest.mark.parametrize("file", ["run.json", "results.json", "results/t1/result.json"])
def test_a_damaged_file_is_named_and_nothing_is_written(
    run: RunStore, file: str, damage: Callable[[Path], None]
) -> None:
    damage(run.folder / "shards" / "001-of-003" / file)
    with pytest.raises(ConfigError, match=re.escape(file)):
        merge_shards(run)
    assert not run.has_begun


def test_a_changed_request_is_found(run: RunStore) -> None:
    path = run.folder / "shards" / "001-of-003" / "run.json"
    path.write_text(path.read_text().replace('"index": 1', '"index": 0'))
    with pytest.raises(ConfigError, match="request does not match request_sha256"):
        merge_shards(run)


def test_the_command_merges_a_run_by_its_id(run: RunStore) -> None:
    arguments = ["merge", "run-1", "--output-dir", str(run.output_dir)]
    done = CliRunner().invoke(app, [*arguments, "--output", str(run.output_dir / "all.json")], catch_exceptions=False)
    assert f"{run.folder}: 5 tasks of 3 shards, 3 scored, success rate 66.7 %, of all tasks 40.0 %" in done.stdout
    assert json.loads((run.output_dir / "all.json").read_text()) == json.loads(
        (run.folder / "results.json").read_text()
    )


def test_a_run_without_shards_is_not_merged(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run run-1 has no shards .*--shards"):
        merge_shards(a_finished_run(tmp_path, *attempts()))


def test_other_commands_say_that_shards_must_be_merged(run: RunStore) -> None:
    with pytest.raises(ConfigError, match=r"run run-1 is in shards \(merge them: wabe merge run-1\)"):
        resolve_run("run-1", run.output_dir)


def test_a_single_shard_can_be_read_by_its_id_and_by_its_folder(run: RunStore) -> None:
    shard = "run-1/shards/002-of-003"
    by_id, by_folder = resolve_run(shard, run.output_dir), resolve_run(str(run.folder / "shards/002-of-003"), Path("/"))
    assert by_id.run_id == by_folder.run_id == shard
    assert verify_run(by_folder).mismatches == ()


def test_merged_shards_have_all_epochs_of_their_tasks(tmp_path: Path) -> None:
    known = [attempt for attempt in attempts() if attempt.task.task_id in ("t0", "t1")]
    digest = sha256_of(task_digests([attempt.task for attempt in known]))
    for index, attempt in enumerate(known):
        shard = Shard(index=index, of=2, tasks_sha256=digest)
        both = (attempt, attempt.model_copy(update={"epoch": 2}))
        a_finished_run(tmp_path, *both, run_id=f"run-1/shards/{shard.name}", shard=shard)
    run = RunStore(tmp_path, "run-1")
    merged = merge_shards(run)["results"][0]["detail"]
    assert (merged["total_tasks"], merged["attempts"], merged["success_rate"]) == (2, 4, 50.0)
    assert [task.key for task in run.tasks()] == ["t0", "t1", "t0.2", "t1.2"]
    assert verify_run(run).mismatches == ()
    # The same again: an earlier merge is nothing that does not belong there.
    assert merge_shards(run)["results"][0]["detail"] == merged

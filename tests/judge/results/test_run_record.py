"""What a result was made with."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import a_result, a_verdict
from judge.config import RunConfig
from judge.records.tasks import Task
from judge.results.run_record import (
    begin_run,
    is_finished,
    package_versions,
    provenance,
    settings_checksum,
    task_set_checksum,
    totals_of,
)
from judge.results.submission import TaskSummary
from judge.store.layout import RunStore

TASKS = [Task(task_id=f"t{n}", website="https://shop.test/", task=f"Do {n}.") for n in range(5)]


def checksum(**settings: object) -> str:
    return settings_checksum(RunConfig.model_validate(settings).recorded())


@given(st.permutations(TASKS))
def test_the_order_of_tasks_does_not_change_their_checksum(tasks: list[Task]) -> None:
    assert task_set_checksum(tasks) == task_set_checksum(TASKS)


def test_any_change_to_a_task_does() -> None:
    changed = [*TASKS[:4], TASKS[4].model_copy(update={"task": "Do something else."})]
    assert task_set_checksum(changed) != task_set_checksum(TASKS)


@pytest.mark.parametrize("changes", [{"run_id": "r1"}, {"max_parallel": 4}, {"shard_index": 1, "num_shards": 2}])
def test_how_a_run_is_spread_does_not_change_the_settings_checksum(changes: dict[str, object]) -> None:
    assert checksum(**changes) == checksum()


@pytest.mark.parametrize(
    "changes", [{"max_steps": 3}, {"judge_model": "offline"}, {"score_threshold": 4}, {"locale": "de"}]
)
def test_what_can_change_a_result_does(changes: dict[str, object]) -> None:
    assert checksum(**changes) != checksum()


def test_the_versions_of_what_matters_are_named() -> None:
    versions = package_versions()
    assert {"python", "wabe", "a2a-sdk", "mcp", "playwright"} <= set(versions)
    assert "unknown" not in versions.values()


def test_the_block_names_run_shard_and_checksums() -> None:
    config = RunConfig(shard_index=1, num_shards=3)
    results = [TaskSummary.of(a_result(task=task, versions={"browser": "Chromium 1"})) for task in TASKS]
    block = provenance(config=config, results=results, run_id="r1")
    assert block["run_id"] == "r1"
    assert block["shard"] == {"index": 1, "of": 3}
    assert block["environment"] == {"browser": "Chromium 1"}
    assert block["task_set_checksum"] == task_set_checksum(TASKS)


def test_secrets_are_recorded_nowhere(tmp_path: Path) -> None:
    config, store = RunConfig(secrets=("s3cr3t!",)), RunStore(tmp_path, "run-1")
    store.create()
    begin_run(store, config=config, tasks=TASKS, role="white_agent", url="http://x/", judge_id="checks-1")
    text = (store.folder / "run.json").read_text()
    assert "s3cr3t!" not in text
    assert '"record_network": true' in text
    block = provenance(config=config, results=(), run_id="run-1")
    assert block["config_checksum"] == checksum()


def test_provenance_names_the_settings_that_change_what_a_participant_can_do_unless_they_are_the_default() -> None:
    changed = RunConfig(max_actions=5, cluster="template")

    result, usual = (provenance(config=config, results=(), run_id="r") for config in (changed, RunConfig()))

    assert (result["max_actions"], result["cluster"]) == (5, "template")
    assert usual.keys().isdisjoint({"max_actions", "cluster"})


@pytest.mark.parametrize(("code", "is_done"), [("off_archive", True), ("uncertain_archive", True), (None, False)])
def test_a_run_with_an_unconfirmed_success_has_nothing_left_to_play_or_judge(
    tmp_path: Path, code: str | None, is_done: bool
) -> None:
    results = [TaskSummary.of(a_result(verdict=a_verdict("unscored", reason_code=code)))]
    store = RunStore(tmp_path, "r1")
    store.create()
    store.write_run({"run_id": "r1", "state": "completed", **totals_of(results)})
    assert is_finished(store) is is_done

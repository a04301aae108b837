"""What people said of shards is said of the merged run, and of merged submissions."""

import json
from pathlib import Path

import pytest

from helpers.plugins import merge, merge_shards, verify_run
from helpers.results import a_finished_run, a_result, a_verdict
from judge.plugins.labels.corrections import label_text
from judge.plugins.labels.label_files import label_file
from judge.plugins.labels.labelling import begin
from judge.report.build import make_report
from judge.results.corrected import CORRECTED, LABELS_KEY
from judge.results.part import publish
from judge.results.run_record import sha256_of, task_digests
from judge.scenario.models import Shard
from judge.store.layout import RunStore
from plugins.labels.labelled import SEED, is_success, label_truly


def detail_of(run: RunStore) -> dict[str, object]:
    detail: dict[str, object] = json.loads((run.folder / "results.json").read_text())["results"][0]["detail"]
    return detail


def a_sharded_run(folder: Path, size: int = 30) -> RunStore:
    """`run-1` in two shards of as many attempts, of which each is labelled by itself."""
    known = [
        a_result(f"t{number}", verdict=a_verdict("success" if is_success(number) else "failure"))
        for number in range(2 * size)
    ]
    digest = sha256_of(task_digests([each.task for each in known]))
    for index in range(2):
        shard = Shard(index=index, of=2, tasks_sha256=digest)
        part = known[index * size : (index + 1) * size]
        store = a_finished_run(folder, *part, run_id=f"run-1/shards/{shard.name}", shard=shard)
        label_truly(begin([store], "anna", labels=24, seed=SEED + index))
    return RunStore(folder, "run-1")


@pytest.mark.slow
def test_the_labels_of_shards_are_those_of_the_merged_run(tmp_path: Path) -> None:
    run = a_sharded_run(tmp_path)
    for _ in range(2):
        merge_shards(run)
        labels = detail_of(run)[LABELS_KEY]
        assert isinstance(labels, dict)
        assert (labels["labels"], labels["lines"], len(labels["strata"])) == (48, {"anna": 48}, 4)
        assert labels["plan"]["seeds"] == [SEED, SEED + 1]
    assert [line for line in verify_run(run).mismatches if "label" in line or "corrected" in line] == []
    # Labels of the whole run stay with it when it is merged again.
    label_truly(begin([run], "bert"))
    merge_shards(run)
    assert len(label_file(run, "bert").read_text().splitlines()) == 48


@pytest.mark.slow
def test_merged_shards_that_were_labelled_by_different_rules_list_the_rules(tmp_path: Path) -> None:
    run = a_sharded_run(tmp_path)
    first, second = run.shards()
    label_truly(begin([second], "bert"))
    for shard in (first, second):
        publish(shard)
    parts = [json.loads((shard.folder / "results.json").read_text()) for shard in (first, second)]
    merge_shards(run)
    for detail in (merge(parts)["results"][0]["detail"], detail_of(run)):
        labels = detail[LABELS_KEY]
        assert isinstance(labels, dict)
        assert labels["rule"] == "single, unanimous"
        assert label_text(detail).endswith("(one label each; unanimous labels)")
    assert "(one label each; unanimous labels)" in make_report([run]).read_text()


@pytest.mark.slow
def test_merged_submissions_have_the_rate_of_all_only_if_each_has_one(tmp_path: Path) -> None:
    run = a_sharded_run(tmp_path)
    for shard in run.shards():
        publish(shard)
    parts = [json.loads((shard.folder / "results.json").read_text()) for shard in run.shards()]
    details = [part["results"][0]["detail"] for part in parts]
    merged = merge(parts)["results"][0]["detail"]
    assert merged[CORRECTED] == pytest.approx(sum(each[CORRECTED] for each in details) / 2, abs=0.1)
    assert merged[LABELS_KEY]["labels"] == 48
    errors = [each[LABELS_KEY]["standard_error"] for each in details]
    assert merged[LABELS_KEY]["standard_error"] == pytest.approx((errors[0] ** 2 + errors[1] ** 2) ** 0.5 / 2, abs=2e-3)
    for damaged in ({}, {CORRECTED: 3.0}, {CORRECTED: 3.0, LABELS_KEY: {"labels": "many"}}):
        remaining = {key: value for key, value in details[1].items() if key not in (CORRECTED, LABELS_KEY)}
        parts[1]["results"][0]["detail"] = remaining | damaged
        assert CORRECTED not in merge(parts)["results"][0]["detail"]

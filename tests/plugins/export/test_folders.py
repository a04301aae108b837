"""Submission folders on disk."""

import json
from pathlib import Path

import pytest

from helpers.results import a_result
from judge.plugins.export.folders import export_tasks, read_reference_lengths
from judge.plugins.export.online_mind2web import validate_folder
from judge.records.steps import Outcome, Step, StopReason
from judge.records.tasks import Task
from judge.store import load_trajectory
from judge.store.layout import TaskStore
from shared.errors import ConfigError
from shared.models import Action, Page

LINES = ["<Search textbox> -> TYPE: tent", "<Search button> -> CLICK", "<page> -> FINISH"]


def record(folder: Path, stop_reason: StopReason = "finished") -> TaskStore:
    """One attempt as the judge stores it."""
    store = TaskStore(folder)
    store.begin()
    steps = []
    for index, line in enumerate(LINES):
        page = Page(url=f"https://shop.test/{index}", title="Shop", snapshot="- button", screenshot=b"jpeg %d" % index)
        tool = "finish" if index == 2 else "browser_click"
        step = Step(
            index=index,
            url=page.url,
            title=page.title,
            **store.write_page(index, page),
            action=Action(tool=tool, thought=f"thought {index}"),
            outcome=Outcome(ok=True, line=line),
        )
        store.append_step(step)
        steps.append(step)
    task = Task(task_id=folder.name, website="https://shop.test/", task="Find a tent", reference_length=4)
    result = a_result(task=task, steps=tuple(steps), stop_reason=stop_reason, final_answer="Dome 2")
    store.write_result(result.to_json())
    return store


def test_an_exported_run_reads_back_with_the_same_evidence(tmp_path: Path) -> None:
    source = record(tmp_path / "results" / "t1")
    (exported,) = export_tasks([source], tmp_path / "out")
    assert exported.folder == tmp_path / "out" / "t1"
    ours, theirs = load_trajectory(source.folder), load_trajectory(exported.folder)
    assert [path.read_bytes() for path in theirs.screenshots] == [path.read_bytes() for path in ours.screenshots]
    assert theirs.task == ours.task.model_copy(update={"website": ""})
    assert (theirs.final_answer, theirs.thoughts) == (ours.final_answer, ours.thoughts)
    assert len(theirs.action_history) == 2


def test_an_exported_run_is_valid(tmp_path: Path) -> None:
    list(export_tasks([record(tmp_path / "r" / name) for name in ("t1", "t2")], tmp_path / "out"))
    assert validate_folder(tmp_path / "out", {"t1": 4}) == {"t1": [], "t2": []}
    assert validate_folder(tmp_path / "out" / "t1") == {"t1": []}


def test_exporting_again_leaves_nothing_of_the_older_export(tmp_path: Path) -> None:
    source = record(tmp_path / "r" / "t1")
    list(export_tasks([source], tmp_path / "out"))
    (tmp_path / "out" / "t1" / "trajectory" / "0009.jpg").write_bytes(b"old")
    list(export_tasks([source], tmp_path / "out"))
    assert validate_folder(tmp_path / "out") == {"t1": []}


def test_a_task_that_cannot_be_exported_is_reported_and_the_others_are_written(tmp_path: Path) -> None:
    sources = [record(tmp_path / "r" / "a", "cancelled"), record(tmp_path / "r" / "b")]
    first, second = export_tasks(sources, tmp_path / "out")
    assert first.reason is not None
    assert "aborted" in first.reason
    assert second.folder == tmp_path / "out" / "b"


def test_the_run_itself_is_never_overwritten(tmp_path: Path) -> None:
    source = record(tmp_path / "r" / "t1")
    with pytest.raises(ConfigError, match="holds the run itself"):
        list(export_tasks([source], tmp_path / "r"))
    assert load_trajectory(source.folder).final_answer == "Dome 2"


def test_a_folder_that_lacks_its_document_is_invalid(tmp_path: Path) -> None:
    list(export_tasks([record(tmp_path / "r" / "t1")], tmp_path / "out"))
    (tmp_path / "out" / "t2" / "trajectory").mkdir(parents=True)
    assert [str(problem) for problem in validate_folder(tmp_path / "out")["t2"]] == [
        "rule schema: result.json is missing"
    ]


def test_a_document_that_is_not_json_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "t1").mkdir()
    (tmp_path / "t1" / "result.json").write_text("{")
    assert validate_folder(tmp_path)["t1"][0].rule == "schema"


def test_a_folder_without_submissions_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no <task_id>/result"):
        validate_folder(tmp_path / "none")


def test_reference_lengths_come_from_the_dataset_file(tmp_path: Path) -> None:
    rows = [{"task_id": "a", "reference_length": 5}, {"task_id": "b"}, {"task_id": "c", "reference_length": "6"}]
    (tmp_path / "data.json").write_text(json.dumps(rows))
    assert read_reference_lengths(tmp_path / "data.json") == {"a": 5}


def test_a_dataset_of_lines_has_reference_lengths_as_well(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"task_id": "a", "reference_length": 5}\n{"task_id": "b"}\n')
    assert read_reference_lengths(tmp_path / "data.jsonl") == {"a": 5}


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_a_file_that_is_not_a_dataset_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "data.json").write_text(text)
    with pytest.raises(ConfigError, match=r"data\.json"):
        read_reference_lengths(tmp_path / "data.json")


def test_a_missing_dataset_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: No such file"):
        read_reference_lengths(tmp_path / "none.json")

"""A run as the folder that WebArena-Verified's submission command reads."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.plugins import export_tasks
from helpers.results import a_result, write_attempt
from judge.plugins.webarena.layout import WRITER
from judge.records.files import NetworkTrace
from judge.store.layout import TaskStore
from plugins.webarena.sites import entry, har
from shared.errors import ConfigError
from shared.files import sha256_file

ANSWER = '```json\n{"task_type": "NAVIGATE", "status": "SUCCESS"}\n```'


def exported_from(stores: list[TaskStore], output: Path) -> list[Any]:
    return export_tasks(stores, output, writer=WRITER)


def recorded(folder: Path, task_id: str, **changes: Any) -> TaskStore:
    """A task's folder with a network trace."""
    store = TaskStore(folder / task_id)
    trajectory = write_attempt(store, a_result(task_id, final_answer=ANSWER, **changes))
    path = store.folder / "network.har"
    path.write_text(json.dumps(har(entry("http://lab.test/"), entry("http://lab.test/ad", _frame=True))))
    trace = NetworkTrace(file="network.har", sha256=sha256_file(path), entries=2)
    store.write_result(trajectory.model_copy(update={"network": trace}).to_json())
    return store


def test_the_answer_is_written_unchanged_and_the_trace_as_it_is_evaluated(tmp_path: Path) -> None:
    (exported,) = exported_from([recorded(tmp_path, "webarena-44")], tmp_path / "out")
    assert exported.reason is None
    assert (tmp_path / "out" / "44" / "agent_response.json").read_text() == ANSWER
    page, frame = json.loads((tmp_path / "out" / "44" / "network.har").read_text())["log"]["entries"]
    assert page == entry("http://lab.test/")
    assert {"name": "Sec-Fetch-User", "value": "?0"} in frame["request"]["headers"]


def test_what_cannot_be_submitted_is_left_out_with_the_reason(tmp_path: Path) -> None:
    stores = [
        recorded(tmp_path, "t1"),
        recorded(tmp_path, "webarena-1", stop_reason="environment_fault", error="the browser died"),
        recorded(tmp_path, "webarena-2"),
    ]
    (stores[2].folder / "network.har").write_text("{}")
    reasons = [exported.reason or "" for exported in exported_from(stores, tmp_path / "out")]
    assert "not a task that was imported" in reasons[0]
    assert reasons[1] == "aborted: the browser died"
    assert "network.har" in reasons[2]
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ConfigError, match="choose another --output"):
        exported_from([recorded(tmp_path, "webarena-44")], tmp_path / "out")

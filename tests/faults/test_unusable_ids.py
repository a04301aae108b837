"""Ids from files that cannot be folders, or are one folder with another id: one line that names the file and the id."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.plugins import skip_without_command
from helpers.results import a_finished_run, a_result, a_submission
from judge.commands.app import app
from judge.results.folders import FolderStore
from judge.results.run_record import sha256_of
from judge.runner.boundary import run_command
from judge.scenario.models import Shard
from judge.store.layout import RunStore
from shared.files import write_json

Leave = Callable[..., tuple[int, str]]

UNUSABLE: dict[str, str] = {
    "above its folder": "../../x",
    "absolute": "/etc/passwd",
    "a drive": "C:x",
    "dots": "..",
    "empty": "",
    "a look-alike": "t\u0430sk",
    "too long": "x" * 129,
    "1 MB": "x" * 1_000_000,
    "a line break": "t1\n",
    "an escape sequence": "\x1b[2J",
    "half a surrogate pair": "\ud800",
    "a space": "t 1",
}


@pytest.fixture
def leave(capsys: pytest.CaptureFixture[str]) -> Leave:
    """Runs a command to its end: its exit code, and what it says."""

    def left(*arguments: object) -> tuple[int, str]:
        skip_without_command(*arguments)
        with pytest.raises(SystemExit) as exit_info:
            run_command(app, list(map(str, arguments)), name="wabe")
        output = capsys.readouterr()
        return int(str(exit_info.value.code)), output.out + output.err

    return left


def submission(path: Path, *ids: str, **changes: Any) -> Path:
    """A submission file with a task of each id."""
    value = a_submission(*(a_result(f"t{number}") for number, _ in enumerate(ids)))
    for entry, task_id in zip(value["results"][0]["detail"]["tasks"], ids, strict=True):
        entry.update({"task_id": task_id} | changes)
    path.write_text(json.dumps(value))
    return path


def is_one_line(text: str, *parts: str) -> bool:
    line = text.removesuffix("\n")
    return text.startswith("error: ") and line.isprintable() and len(line) < 700 and all(part in text for part in parts)


@pytest.mark.parametrize("what", UNUSABLE)
def test_merge_refuses_an_id_that_cannot_be_a_folder(tmp_path: Path, leave: Leave, what: str) -> None:
    files = submission(tmp_path / "a.json", "t1"), submission(tmp_path / "b.json", UNUSABLE[what])
    code, text = leave("merge", *files)
    assert code == 2
    assert is_one_line(text, "b.json: tasks #1: task_id", "not usable as a folder name")


@pytest.mark.parametrize(
    "ids", [("shop", "Shop"), ("T1", "t1"), ("aB-c_1", "Ab-C_1"), ("x" * 127 + "a", "x" * 127 + "A")]
)
@pytest.mark.parametrize("files", [1, 2])
def test_merge_refuses_ids_that_differ_only_in_case(
    tmp_path: Path, leave: Leave, ids: tuple[str, str], files: int
) -> None:
    groups = [ids] if files == 1 else [(name,) for name in ids]
    paths = [submission(tmp_path / f"{number}.json", *group) for number, group in enumerate(groups)]
    code, text = leave("merge", *paths)
    assert code == 2
    assert is_one_line(text, f"{paths[-1].name}: tasks #", "only in case")


@pytest.mark.parametrize("epoch", [0, -1, 101, 10**9, True, 1.5, "1", None])
def test_merge_refuses_an_epoch_that_no_run_has(tmp_path: Path, leave: Leave, epoch: Any) -> None:
    code, text = leave("merge", submission(tmp_path / "a.json", "t1", epoch=epoch))
    assert code == 2
    assert is_one_line(text, "a.json: tasks #1: its epoch")


def test_the_same_task_in_two_epochs_does_not_clash(tmp_path: Path, leave: Leave) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(a_submission(a_result("t1"), a_result("t1", epoch=2))))
    assert leave("merge", path)[0] == 0


def shards_of(tmp_path: Path, *ids: str) -> RunStore:
    """A run with a shard of each id."""
    tasks = dict.fromkeys(ids, "")
    for number in range(len(ids)):
        shard = Shard(index=number, of=len(ids), tasks_sha256=sha256_of(tasks))
        name = f"r1/shards/{number:03d}-of-{len(ids):03d}"
        store = a_finished_run(tmp_path, a_result("t1"), run_id=name, shard=shard)
        record = store.read_run() or {}
        record["request"]["tasks"] = {ids[number]: ""}
        write_json(store.folder / "run.json", record | {"request_sha256": sha256_of(record["request"])})
    return RunStore(tmp_path, "r1")


@pytest.mark.parametrize("what", ["above its folder", "absolute", "a look-alike", "too long", "an escape sequence"])
def test_merging_shards_refuses_an_id_that_cannot_be_a_folder(tmp_path: Path, leave: Leave, what: str) -> None:
    run = shards_of(tmp_path, "t1", UNUSABLE[what])
    code, text = leave("merge", run.run_id, "--output-dir", tmp_path)
    assert code == 2
    assert is_one_line(text, "001-of-002/run.json: task_id", "not usable as a folder name")
    assert not (tmp_path / "x").exists()


def test_merging_shards_refuses_ids_that_differ_only_in_case(tmp_path: Path, leave: Leave) -> None:
    run = shards_of(tmp_path, "shop", "Shop")
    code, text = leave("merge", run.run_id, "--output-dir", tmp_path)
    assert code == 2
    assert is_one_line(text, "001-of-002/run.json", '"Shop"', "only in case")


@pytest.mark.parametrize("command", ["verify", "report", "score"])
@pytest.mark.parametrize("what", ["above its folder", "absolute", "a look-alike", "a line break", "1 MB"])
def test_an_unusable_id_in_a_run_is_named(tmp_path: Path, leave: Leave, command: str, what: str) -> None:
    run = a_finished_run(tmp_path, a_result("t1"))
    record = run.read_run() or {}
    write_json(run.folder / "run.json", record | {"task_ids": ["t1", UNUSABLE[what]]})
    options = ("--model", "offline") if command == "score" else ()
    code, text = leave(command, run.run_id, "--output-dir", tmp_path, *options)
    messages = [line for line in text.splitlines() if "task_id" in line]
    assert code in (1, 2)
    assert "run.json: task_id " in messages[0]
    assert all(line.isprintable() and len(line) < 700 for line in messages)


SCENARIO = """
[green_agent]
[[participants]]
role = "p"
endpoint = "http://127.0.0.1:9"
[config]
judge_model = "offline"
"""
TASK = '[[tasks]]\ntask_id = {}\nwebsite = "https://shop.example/"\ntask = "Buy {}."\n'


@pytest.mark.parametrize("ids", [("shop", "Shop"), ("nul",), ("COM3",), ("t\u0430sk",), ("../x",)])
def test_a_scenario_with_unusable_ids_is_refused(tmp_path: Path, leave: Leave, ids: tuple[str, ...]) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO + "".join(TASK.format(json.dumps(name), number) for number, name in enumerate(ids)))
    code, text = leave("tasks", "validate", path)
    assert code == 2
    assert "s.toml" in text
    assert "task_id" in text


def test_trajectories_of_a_folder_have_ids_that_are_different_folders_everywhere(tmp_path: Path) -> None:
    for name in ("a/shop", "b/Shop", "c/SHOP", "d/nul", "e/t\u00e4sk", "f/t\u0430sk"):
        folder = tmp_path / name
        (folder / "trajectory").mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps({"task": "x", "task_id": "x", "action_history": []}))
    ids = [task.name for task in FolderStore(tmp_path, tmp_path / "out").tasks()]
    assert len({name.casefold() for name in ids}) == 6
    assert "nul" not in ids


@pytest.mark.parametrize("name", ["../x", "/etc", "r1/..", "r1/shards", "r\u0430", "", ".", "..", "x" * 200])
def test_no_name_removes_anything_but_a_run(tmp_path: Path, leave: Leave, name: str) -> None:
    run = a_finished_run(tmp_path, a_result("t1"), run_id="r1")
    code, _ = leave("runs", "rm", name, "--yes", "--output-dir", tmp_path)
    assert code == 2
    assert run.folder.is_dir()

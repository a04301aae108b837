import inspect
import json
import pkgutil
import pydoc
import re
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import wabe
from helpers.recorded import recorded_run
from helpers.results import a_finished_run, a_result, a_verdict, digested
from shared.errors import ConfigError

RECORDED = recorded_run()
EXPORTED = """
    Action ConfigError Decide EnvironmentHost EnvironmentSession EpisodeFault Observation Page Recorder
    Recording Run RunConfig Scored Step StepResult Task Trajectory TrajectoryError Verdict WabeError environment
    environments load_run load_trajectory parse_score parse_status record score serve
""".split()


OURS = {"judge", "participants", "shared", "wabe"}


def classes_in(hint: Any) -> Iterator[type]:
    """The classes in a type, such as `Run` and `str` in `list[Run] | str`."""
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for inner in get_args(hint):
        yield from (each for one in (inner if isinstance(inner, list) else [inner]) for each in classes_in(one))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return shutil.copytree(RECORDED, tmp_path / "runs" / RECORDED.name)


def test_the_exported_names_are_these() -> None:
    assert wabe.__all__ == EXPORTED
    assert dir(wabe) == EXPORTED
    assert [name for name in EXPORTED if getattr(wabe, name) is None] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trajectory'"):
        wabe.trajectory  # noqa: B018


def test_a_run_is_read_as_tables(run_folder: Path) -> None:
    run = wabe.load_run(run_folder)
    assert (run.run_id, run.info["run_id"]) == (RECORDED.name, RECORDED.name)
    # Wherever it is.
    assert wabe.load_run(shutil.copytree(run_folder, run_folder.parents[2] / "my copy")) == run
    task = next(row for row in run.tasks if row["task_id"] == "one_lamp")
    assert (task["verdict"], task["success"], task["steps_taken"], task["duration_s"]) == ("success", True, 4, 3.898)
    steps = [row for row in run.steps if (row["task_id"], row["epoch"]) == ("one_lamp", 1)]
    assert [row["action_line"] for row in steps][2:] == ["<Go to cart link> -> CLICK", "<page> -> FINISH"]
    assert steps[2]["tool"] == "browser_click"


def test_attempts_and_checks_are_tables_as_well(tmp_path: Path) -> None:
    check = {"check": "page", "description": "the cart", "passed": False, "expected": "/", "found": "/x", "step": None}
    store = a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("failure", evidence={"checks": [check]})))
    run = wabe.load_run(store.folder)
    assert [(row["task_id"], row["epoch"], row["verdict"]) for row in run.attempts] == [("t1", 1, "failure")]
    assert run.checks == [{"run_id": "run-1", "task_id": "t1", "epoch": 1, "number": 1, **check}]


def test_the_nearest_steps_of_a_failed_check_are_not_columns(tmp_path: Path) -> None:
    check = {"check": "page", "description": "the cart", "passed": False, "expected": "/", "found": "/x", "step": None}
    evidence = {"checks": [check | {"last_step": 1, "near_step": 2}]}
    store = a_finished_run(tmp_path, a_result("t1", verdict=a_verdict("failure", evidence=evidence)))
    assert wabe.load_run(store.folder).checks == [
        {"run_id": "run-1", "task_id": "t1", "epoch": 1, "number": 1, **check}
    ]


def test_rows_of_one_table_have_the_same_columns(run_folder: Path) -> None:
    run = wabe.load_run(run_folder)
    for rows in (run.attempts, run.tasks, run.steps):
        assert rows
        assert {tuple(row) for row in rows} == {tuple(rows[0])}


def test_the_tables_have_all_epochs(tmp_path: Path) -> None:
    first = a_result("t1", verdict=a_verdict())
    run = wabe.load_run(a_finished_run(tmp_path, first, first.model_copy(update={"epoch": 2})).folder)
    assert [(row["task_id"], row["epoch"]) for row in run.tasks] == [("t1", 1), ("t1", 2)]
    assert [row["epoch"] for row in run.steps] == [1, 1, 2, 2]


def test_every_row_names_its_run(run_folder: Path) -> None:
    run = wabe.load_run(run_folder)
    assert {row["run_id"] for row in (*run.tasks, *run.attempts, *run.steps)} == {run.run_id}


@pytest.mark.parametrize("name", ["latest", RECORDED.name])
def test_a_run_is_found_by_its_id_and_as_the_latest(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("WABE_OUTPUT_DIR", str(run_folder.parent.parent))
    assert wabe.load_run(name).run_id == RECORDED.name
    assert wabe.load_run().run_id == RECORDED.name


def test_without_any_run_there_is_no_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WABE_OUTPUT_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match="no run under"):
        wabe.load_run("latest")


def test_the_version_is_that_of_the_package() -> None:
    assert wabe.__version__ == metadata.version("wabe")


def test_the_help_describes_every_name() -> None:
    described = pydoc.plain(pydoc.render_doc(wabe)).partition("PACKAGE CONTENTS")[0]
    assert [name for name in EXPORTED if not re.search(rf"^ +(\w+, )?{name}\b.*   ?\S", described, re.MULTILINE)] == []
    assert described.count("\n") < 45


def test_what_functions_take_and_return_is_exported() -> None:
    exported = {getattr(wabe, name) for name in EXPORTED}
    functions = [value for value in exported if inspect.isfunction(value)]
    functions += [
        method
        for value in (wabe.Recorder, wabe.Recording)
        for name, method in inspect.getmembers(value, inspect.isfunction)
        if not name.startswith("_") and name != "closed"
    ]
    used = {kind for function in functions for hint in get_type_hints(function).values() for kind in classes_in(hint)}
    assert {kind for kind in used if kind.__module__.split(".")[0] in OURS} - exported == set()


def test_the_errors_that_docstrings_name_are_exported() -> None:
    texts = [inspect.getdoc(getattr(wabe, name)) or "" for name in EXPORTED]
    texts += [inspect.getdoc(method) or "" for method in (wabe.Recorder.start, wabe.Recording.step)]
    named = {matches for text in texts for matches in re.findall(r"`(\w+(?:Error|Fault))`", text)}
    assert named == {"ConfigError", "TrajectoryError"}


def test_a_folder_that_is_not_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a run"):
        wabe.load_run(tmp_path)


async def test_stored_trajectories_are_scored_by_their_checks_only(run_folder: Path) -> None:
    folder = run_folder / "results" / "one_lamp"
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(digested(folder, {**result, "checks": []})))
    scored = await wabe.score(folder)
    assert [one.outcome for one in scored] == ["unscored"]
    assert "no checks" in scored[0].reason


def test_no_module_has_the_name_of_an_export_which_it_would_replace_once_it_is_imported() -> None:
    modules = {module.name for module in pkgutil.iter_modules(wabe.__path__)}
    assert sorted(modules & set(wabe.__all__)) == []

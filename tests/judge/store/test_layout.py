"""The run folder: where everything is, and how it is found."""

import json
import shutil
from pathlib import Path

import pytest

from judge.records.steps import Step
from judge.records.verdicts import Verdict
from judge.store.layout import RunStore, TaskStore, new_run_id, newest_run, resolve_run
from shared.errors import ConfigError, WabeError
from shared.models import Page

PAGE = Page(url="http://shop.test/", title="Shop", snapshot="- link [ref=e1]", screenshot=b"\xff\xd8jpeg")


def test_a_screenshot_is_written_as_the_browser_gave_it(tmp_path: Path) -> None:
    store = TaskStore(tmp_path / "t1")
    store.begin()
    files = store.write_page(3, PAGE)
    assert files["screenshot"] == "trajectory/step_003.jpg"
    assert (tmp_path / "t1" / files["screenshot"]).read_bytes() == PAGE.screenshot
    assert (tmp_path / "t1" / str(files["snapshot"])).read_text() == PAGE.snapshot


def test_a_page_behind_a_dialog_has_no_screenshot(tmp_path: Path) -> None:
    store = TaskStore(tmp_path)
    store.begin()
    files = store.write_page(0, Page(url="u", title="", snapshot="", dialog="alert"))
    assert (files["screenshot"], files["screenshot_sha256"]) == (None, None)


def test_a_step_is_on_disk_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    store = TaskStore(tmp_path)
    store.begin()
    store.append_step(Step(index=0, url="u", title="one"))
    store.append_step(Step(index=1, url="u", title="two"))
    lines = (tmp_path / "steps.jsonl").read_text().splitlines()
    assert [json.loads(line)["title"] for line in lines] == ["one", "two"]


def test_a_step_with_a_lone_surrogate_is_still_written(tmp_path: Path) -> None:
    store = TaskStore(tmp_path)
    store.begin()
    store.append_step(Step(index=0, url="u", title="\ud800"))
    assert (tmp_path / "steps.jsonl").read_bytes().endswith(b"\n")


def test_an_earlier_attempt_is_set_aside_and_not_overwritten(tmp_path: Path) -> None:
    store = TaskStore(tmp_path)
    for title in ("first", "second", "third"):
        store.begin()
        store.append_step(Step(index=0, url="u", title=title))
    assert "third" in (tmp_path / "steps.jsonl").read_text()
    content = sorted(path.read_text() for path in (tmp_path / "attempts").glob("*/steps.jsonl"))
    assert ["first" in content[0], "second" in content[1]] == [True, True]


def test_a_verdict_reads_back_as_it_was_written(tmp_path: Path) -> None:
    store = TaskStore(tmp_path)
    verdict = Verdict(outcome="failure", reason="the filter was wrong")
    store.write_verdict("webjudge-0123", verdict)
    assert store.read_verdict("webjudge-0123") == verdict
    assert store.read_verdict("webjudge-4567") is None


def test_no_verdict_is_written_through_a_link(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "task"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "verdicts").symlink_to(elsewhere)
    with pytest.raises(OSError, match="a link"):
        TaskStore(folder).write_verdict("m-1", Verdict(outcome="success", reason="r"))
    assert not list(elsewhere.iterdir())


def test_a_torn_verdict_counts_as_none(tmp_path: Path) -> None:
    store = TaskStore(tmp_path)
    store.write_verdict("m-1", Verdict(outcome="success", reason="r"))
    path = tmp_path / "verdicts" / "m-1.json"
    path.write_bytes(path.read_bytes()[:20])
    assert store.read_verdict("m-1") is None


def test_results_points_at_the_newest_run(tmp_path: Path) -> None:
    for name in ("20260101-000000-aa", "20260102-000000-bb"):
        RunStore(tmp_path, name).create()
    link = tmp_path / "results"
    assert link.is_symlink()
    assert not link.readlink().is_absolute()
    assert link.resolve() == (tmp_path / "runs" / "20260102-000000-bb" / "results").resolve()


def test_a_results_folder_of_the_users_own_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine").write_text("x")
    RunStore(tmp_path, "r1").create()
    assert (tmp_path / "results" / "mine").read_text() == "x"


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "x" * 200, "a\nb"])
def test_a_run_id_that_would_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="run id"):
        RunStore(tmp_path, name)


@pytest.mark.parametrize("task_id", ["", "..", "a/b", "x y", "é"])
def test_a_task_id_that_is_not_a_plain_name_is_refused(tmp_path: Path, task_id: str) -> None:
    with pytest.raises(WabeError, match="task id"):
        RunStore(tmp_path, "r").task(task_id)


def test_a_run_is_found_by_id_by_folder_and_as_the_latest(tmp_path: Path) -> None:
    first, second = RunStore(tmp_path, "20260101-1"), RunStore(tmp_path, "20260102-2")
    first.create()
    second.create()
    assert resolve_run("20260101-1", tmp_path).folder == first.folder
    assert resolve_run(str(first.folder), Path("elsewhere")).run_id == "20260101-1"
    assert resolve_run("latest", tmp_path).run_id == "20260102-2"


def test_the_latest_run_is_the_one_started_last_whatever_its_name(tmp_path: Path) -> None:
    # A clock that was set back, or an id that the platform chose.
    for name in ("20260102-1", "20250101-1"):
        RunStore(tmp_path, name).create()
    assert resolve_run("latest", tmp_path).run_id == "20250101-1"


def test_without_links_the_latest_run_is_the_last_by_name(tmp_path: Path) -> None:
    for name in ("20260102-1", "20250101-1"):
        RunStore(tmp_path, name).create()
    (tmp_path / "results").unlink()
    assert resolve_run("latest", tmp_path).run_id == "20260102-1"


def test_a_link_to_a_run_that_was_deleted_is_not_followed(tmp_path: Path) -> None:
    first, second = RunStore(tmp_path, "20260101-1"), RunStore(tmp_path, "20260102-1")
    first.create()
    second.create()
    shutil.rmtree(second.folder)
    assert resolve_run("latest", tmp_path).run_id == "20260101-1"


def test_a_missing_run_is_a_config_error(tmp_path: Path) -> None:
    assert newest_run(tmp_path) is None
    with pytest.raises(ConfigError, match="no run"):
        resolve_run("latest", tmp_path)
    with pytest.raises(ConfigError, match="no run 'nope'"):
        resolve_run("nope", tmp_path)


def test_a_run_that_was_copied_elsewhere_is_refused_with_the_place_where_it_belongs(tmp_path: Path) -> None:
    copied = tmp_path / "downloads" / "20260101-1"
    copied.mkdir(parents=True)
    (copied / "run.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"not in a folder named runs.* \(move it to out/runs/20260101-1\)"):
        resolve_run(str(copied), Path("out"))


def test_two_run_ids_of_one_second_differ() -> None:
    assert len({new_run_id() for _ in range(50)}) == 50


def test_a_folder_that_cannot_be_written_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(ConfigError, match="cannot write"):
        RunStore(tmp_path, "r1").create()

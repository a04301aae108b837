"""Folders of trajectories that WABE did not record: which judge's verdicts count in them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.results import JUDGE, a_verdict, write_verdict_on
from judge.commands.app import app
from judge.report.build import make_report
from judge.report.data import read_task
from judge.results.folders import COUNTED_JUDGE, FolderStore, keep_counted_judge
from judge.store.layout import TaskStore
from shared.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two trajectories in a layout of flat lists, without times."""
    for name in ("a", "b"):
        path = tmp_path / "field" / name
        (path / "trajectory").mkdir(parents=True)
        task = {"task": "Find a lamp.", "task_id": name, "action_history": ["<Lamps link> -> CLICK"]}
        (path / "result.json").write_text(json.dumps(task))
    return tmp_path / "field"


def judged(folder: Path, judge_id: str, model: str, **outcomes: str) -> None:
    judge = JUDGE.model_copy(update={"model": model})
    for name, outcome in outcomes.items():
        write_verdict_on(TaskStore(folder / name), judge_id, a_verdict(outcome, judge=judge))


def outcomes(folder: Path, tmp_path: Path) -> list[str]:
    return [read_task(task).row.outcome for task in FolderStore(folder, tmp_path).tasks()]


def test_the_verdicts_that_count_stay_those_of_the_first_judge_when_another_one_is_asked(
    folder: Path, tmp_path: Path
) -> None:
    judged(folder, "webjudge-bb", "openai:b", a="failure", b="failure")
    keep_counted_judge(folder, tmp_path)
    judged(folder, "webjudge-aa", "openai:a", a="success", b="success")
    keep_counted_judge(folder, tmp_path, "webjudge-aa")
    assert outcomes(folder, tmp_path) == ["failure", "failure"]


def test_of_several_judges_asked_at_once_the_first_one_counts(folder: Path, tmp_path: Path) -> None:
    keep_counted_judge(folder, tmp_path)
    assert not (folder / COUNTED_JUDGE).exists()
    judged(folder, "webjudge-aa", "openai:a", a="success", b="success")
    judged(folder, "webjudge-bb", "openai:b", a="failure", b="failure")
    keep_counted_judge(folder, tmp_path, "webjudge-bb")
    assert outcomes(folder, tmp_path) == ["failure", "failure"]


@pytest.mark.parametrize("content", ["", "[]", '{"judge_id": ["x"]}', '{"judge_id": "webjudge-gone"}'])
def test_a_record_that_names_no_judge_of_the_folder_is_ignored(folder: Path, tmp_path: Path, content: str) -> None:
    judged(folder, "webjudge-aa", "openai:a", a="success", b="success")
    (folder / COUNTED_JUDGE).write_text(content)
    assert outcomes(folder, tmp_path) == ["success", "success"]


def test_a_judge_is_chosen_by_model_and_the_report_names_it_with_the_others_beside(
    folder: Path, tmp_path: Path
) -> None:
    judged(folder, "webjudge-aa", "openai:a", a="success", b="success")
    judged(folder, "webjudge-bb", "openai:b", a="failure", b="failure")
    arguments = ["report", str(folder), "--output-dir", str(tmp_path / "out")]
    completed = CliRunner().invoke(app, [*arguments, "--judge", "openai:b"])
    assert completed.exit_code == 0, completed.output
    html = make_report([FolderStore(folder, tmp_path)], tmp_path / "report").read_text()
    assert "judged by webjudge · openai:b</span></h1>" in html
    assert "0 of 2 scored tasks" in html
    counted = html.partition('id="counted"')[2].partition("</div>")[0]
    assert "<b>webjudge · openai:b</b> count on this page" in counted
    assert "1 other judge<" in counted
    assert html.count('<span class="flag">counts</span>') == 1


def test_an_unknown_judge_and_one_of_several_of_that_name_are_refused(folder: Path, tmp_path: Path) -> None:
    judged(folder, "webjudge-aa", "openai:a", a="success", b="success")
    judged(folder, "webjudge-bb", "openai:b", a="failure", b="failure")
    store = FolderStore(folder, tmp_path)
    with pytest.raises(ConfigError, match="'openai:c' is not the name of a judge with verdicts here"):
        store.choose_judge("openai:c")
    with pytest.raises(ConfigError, match="'webjudge' is the name of several judges") as refused:
        store.choose_judge("webjudge")
    assert refused.value.remedy == "name one by its id: webjudge-aa, webjudge-bb"


def test_unknown_times_are_not_zero(folder: Path, tmp_path: Path) -> None:
    judged(folder, "webjudge-aa", "openai:a", a="success", b="success")
    store = FolderStore(folder, tmp_path)
    row = read_task(next(store.tasks())).row
    assert (row.started_at, row.ended_at, row.duration_s, row.observe_s) == (None, None, None, None)
    index = make_report([store], tmp_path / "report")
    pages = [index.read_text(), (index.parent / "tasks" / "a.html").read_text()]
    assert not [page for page in pages if "0\u00a0ms" in page or "1970" in page]
    assert "<dd>unknown<small>attempts: not recorded" in pages[0]

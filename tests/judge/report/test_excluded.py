"""Excluded tasks in the report."""

import re
from pathlib import Path

from helpers.results import a_finished_run, a_result
from judge.config import RunConfig
from judge.report.build import make_report


def test_the_front_page_names_excluded_tasks_with_their_reasons(tmp_path: Path) -> None:
    config = RunConfig(judge_model="offline", exclude={"t2": "closed <b>in winter</b>"})
    left_out = a_result("t2", "excluded", steps=(), error="closed <b>in winter</b>")
    store = a_finished_run(tmp_path, a_result("t1"), left_out, config=config)
    scenario = [{"task_id": "old", "reason": "the page is gone", "by": "scenario"}]
    store.write_run({**(store.read_run() or {}), "excluded": scenario})
    html = make_report([store], tmp_path / "report").read_text()
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "1 of 2 tasks are not in the rate: 1 excluded before the first attempt." in text
    assert "old the page is gone (by the scenario)" in text
    assert "t2 closed &lt;b&gt;in winter&lt;/b&gt; (by this run)" in text


def test_a_run_without_exclusions_says_nothing_of_them(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1"), a_result("t2", "environment_fault", steps=(), error="gone"))
    html = make_report([store], tmp_path / "report").read_text()
    assert "excluded" not in html.lower().partition('id="tasks"')[0]

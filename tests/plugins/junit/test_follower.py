"""Results as JUnit XML."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.runner.concluded import concluded
from judge.plugins.junit.follower import JUnit, write_junit
from judge.runner.options import RunOptions
from shared.errors import ConfigError


def a_task(task_id: str, verdict: str, reason: str = "because") -> dict[str, Any]:
    return {"task_id": task_id, "level": "easy", "verdict": verdict, "reason": reason}


def write_suite(path: Path, *tasks: dict[str, Any]) -> ElementTree.Element:
    write_junit(path, {"results": [{"winner": "white_agent", "detail": {"tasks": tasks}}]}, "demo/scenario.toml")
    return ElementTree.parse(path).getroot()


def test_a_failure_is_a_failure_and_a_lost_task_is_an_error(tmp_path: Path) -> None:
    outcomes = ("success", "failure", "unscored", "aborted")
    suite = write_suite(tmp_path / "j.xml", *(a_task(f"t_{outcome}", outcome) for outcome in outcomes))[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "1",
        "errors": "2",
    }
    results = {case.get("name"): [(child.tag, child.get("type")) for child in case] for case in suite}
    assert results == {
        "t_success": [],
        "t_failure": [("failure", "failure")],
        "t_unscored": [("error", "unscored")],
        "t_aborted": [("error", "aborted")],
    }


def test_cases_have_the_time_of_their_attempt_and_the_suite_their_sum(tmp_path: Path) -> None:
    tasks = [a_task("t1", "success") | {"duration_s": 1.25}, a_task("t2", "failure") | {"duration_s": 2}]
    # A judge of an older version names none; another one may send anything.
    tasks += [a_task("t3", "failure"), a_task("t4", "failure") | {"duration_s": float("inf")}]
    suite = write_suite(tmp_path / "j.xml", *tasks)[0]
    assert suite.get("time") == "3.250"
    assert [case.get("time") for case in suite] == ["1.250", "2.000", "0.000", "0.000"]


def test_each_attempt_of_a_repeated_task_is_a_test_case(tmp_path: Path) -> None:
    outcomes = ("success", "failure", "aborted")
    tasks = [{**a_task("t", outcome), "epoch": epoch} for epoch, outcome in enumerate(outcomes, 1)]
    suite = write_suite(tmp_path / "j.xml", *tasks)[0]
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert [case.get("name") for case in suite] == ["t", "t.2", "t.3"]


@given(reason=st.text())
def test_whatever_the_reason_the_file_is_xml(tmp_path_factory: pytest.TempPathFactory, reason: str) -> None:
    suite = write_suite(tmp_path_factory.getbasetemp() / "reason.xml", a_task("t", "failure", reason))[0]
    assert suite[0][0].get("type") == "failure"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("")
    with pytest.raises(ConfigError, match="--junit"):
        write_suite(tmp_path / "folder" / "j.xml", a_task("t", "success"))


def test_a_test_case_links_its_task_page_if_the_report_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "run" / "report" / "tasks" / "t1.2.html"
    page.parent.mkdir(parents=True)
    page.write_text("")
    outside = tmp_path / "secret.html"
    outside.write_text("")
    monkeypatch.chdir(tmp_path)
    tasks = [a_task("t1", "failure") | {"epoch": 2}, a_task("t2", "failure"), a_task("../../../secret", "success")]
    write_junit(
        tmp_path / "ci" / "j.xml",
        {"results": [{"winner": "w", "detail": {"tasks": tasks}}]},
        "demo/scenario.toml",
        report=page.parent.parent / "index.html",
    )
    linked, *others = ElementTree.parse(tmp_path / "ci" / "j.xml").getroot()[0]
    assert [(each.get("name"), each.get("value")) for each in linked.iter("property")] == [
        ("task_page", "../run/report/tasks/t1.2.html")
    ]
    assert linked.findtext("system-out") == "[[ATTACHMENT|run/report/tasks/t1.2.html]]"
    assert (linked.findtext("failure") or "").splitlines() == ["because", "Task page: ../run/report/tasks/t1.2.html"]
    assert [[child.tag for child in case] for case in others] == [["failure"], []]


def test_an_excluded_task_is_skipped(tmp_path: Path) -> None:
    excluded = a_task("t2", "aborted") | {"excluded": "closed"}
    suite = write_suite(tmp_path / "j.xml", a_task("t1", "success"), excluded)[0]
    assert (suite.get("errors"), suite.get("skipped")) == ("0", "1")
    assert [skipped.get("message") for skipped in suite.iter("skipped")] == ["closed"]


def test_the_junit_file_names_the_scenario(tmp_path: Path) -> None:
    concluded(tmp_path, followers=[JUnit], junit=tmp_path / "junit.xml")
    assert 'testsuite name="shop/scenario.toml white_agent" tests="2" failures="1"' in (
        (tmp_path / "junit.xml").read_text()
    )


def test_a_file_that_cannot_be_written_is_reported_before_anything_is_started(tmp_path: Path) -> None:
    for path, problem in ((tmp_path, "Is a directory"), (Path("/dev/null/x"), "File exists")):
        with pytest.raises(ConfigError, match=f"--junit {path}: {problem}"):
            JUnit(RunOptions(scenario=tmp_path, junit=path))

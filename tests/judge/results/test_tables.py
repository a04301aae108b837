"""A run as a table: its rows, and what a spreadsheet or another reader makes of them."""

import csv
import io
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.paths import ROOT
from helpers.results import JUDGE, a_finished_run, a_result, a_row, a_step, a_verdict, write_attempt, write_verdict_on
from judge.records.steps import Timings
from judge.results.identity import record_card
from judge.results.rows import COLUMNS
from judge.results.tables import TableAttempt, Unreadable, csv_of, json_of, jsonl_of, parquet_of, table_of
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.models import TokenUsage
from shared.plugins import plugins
from shared.text import show_hidden

NAMES = [column.name for column in COLUMNS]


def assertion(description: str, passed: bool | None) -> dict[str, Any]:
    return {"check": "page", "description": description, "passed": passed, "expected": "/", "found": "/x", "step": 0}


def one(store: RunStore) -> TableAttempt:
    (row,) = table_of(store)
    assert isinstance(row, TableAttempt)
    return row


def test_a_row_has_the_reason_code_of_a_verdict_that_has_one(tmp_path: Path) -> None:
    verdict = a_verdict("failure", reason_code="withheld_evidence")
    assert one(a_finished_run(tmp_path, a_result("t1", verdict=verdict))).row.reason_code == "withheld_evidence"


def test_a_row_has_the_attempt_its_verdict_and_who_played(tmp_path: Path) -> None:
    steps = (a_step(0, timings=Timings(observe_s=0.5, reply_s=2, act_s=0.25)), a_step(1, line="<page> -> FINISH"))
    usage = TokenUsage(calls=2, input=100, output=10, cached=40, reasoning=5)
    store = a_finished_run(
        tmp_path, a_result("t1", steps=steps, final_answer="80", verdict=a_verdict("failure", token_usage=usage))
    )
    record_card(store, "my agent", "1.2")
    row = one(store).row.cells()
    expected = {
        "run_id": "run-1",
        "task_id": "t1",
        "epoch": 1,
        "attempt": 1,
        "level": "easy",
        "verdict": "failure",
        "success": False,
        "decided_by": "judge",
        "reason": "because",
        "failed_check": None,
        "stop_reason": "finished",
        "steps": 2,
        "max_steps": 15,
        "answer": "80",
        "started_at": "2023-11-14T22:13:20.250000+00:00",
        "duration_s": 10.25,
        "observe_s": 0.5,
        "reply_s": 2.0,
        "act_s": 0.25,
        "judge_method": "webjudge",
        "judge_model": "offline",
        "judge_calls": 2,
        "input_tokens": 100,
        "output_tokens": 10,
        "cached_tokens": 40,
        "reasoning_tokens": 5,
        "cost_usd": 0.25,
        "participant": "white_agent",
        "agent": "my agent",
        "agent_version": "1.2",
    }
    assert {key: row[key] for key in expected} == expected


def test_the_checks_that_failed_are_named(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "r1")
    verdict = a_verdict(
        "failure",
        judge=JUDGE.model_copy(update={"method": "checks"}),
        evidence={"checks": [assertion("the cart", False), assertion("the page", True), assertion("the sum", False)]},
    )
    write_attempt(store.task("t1"), a_result("t1", verdict=verdict))
    store.write_run({"judge_id": "webjudge-1", "judge_ids": {"t1": "checks-1"}})
    write_verdict_on(store.task("t1"), "checks-1", verdict)
    result = one(store)
    assert result.row.failed_check == "the cart; the sum"
    assert [(each.number, each.description, each.passed) for each in result.checks] == [
        (1, "the cart", False),
        (2, "the page", True),
        (3, "the sum", False),
    ]


def test_the_checks_of_an_epoch_are_of_the_judge_that_decided_it(tmp_path: Path) -> None:
    checked = a_verdict("failure", evidence={"checks": [assertion("the cart", False)]})
    attempts = [a_result("t1", epoch=epoch, verdict=checked) for epoch in (1, 2)]
    store = a_finished_run(tmp_path, *attempts, judge_id="checks-1")
    # As a later verdict on the first epoch alone leaves it.
    store.write_run({**(store.read_run() or {}), "judge_ids": {"t1": "webarena_verified-1", "t1.2": "checks-1"}})
    _, second = (each for each in table_of(store) if isinstance(each, TableAttempt))
    assert second.row.failed_check == "the cart"


def test_checks_of_another_trajectory_are_not_this_ones(tmp_path: Path) -> None:
    verdict = a_verdict("failure", evidence={"checks": [assertion("the cart", False)]}, trajectory_sha256="00")
    store = a_finished_run(tmp_path, a_result("t1"))
    store.task("t1").write_verdict("webjudge-1", verdict)
    assert one(store).checks == ()


@pytest.mark.parametrize("checks", [None, 3, "x", [1], [{}], [{"passed": "yes", "step": "1"}]])
def test_damaged_evidence_never_passes(tmp_path: Path, checks: Any) -> None:
    verdict = a_verdict("failure", evidence={"checks": checks})
    store = a_finished_run(tmp_path, a_result("t1", verdict=verdict))
    assert {each.passed for each in one(store).checks} <= {None}


def test_a_task_under_way_has_no_row_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    store = a_finished_run(tmp_path, a_result("t1"), a_result("t2"), a_result("t3"))
    (store.task("t1").folder / "result.json").unlink()
    (store.task("t2").folder / "result.json").write_text("{")
    damaged, good = table_of(store)
    assert isinstance(damaged, Unreadable)
    assert (damaged.task_id, isinstance(good, TableAttempt)) == ("t2", True)


def test_csv_has_a_line_of_column_names_and_one_for_each_attempt() -> None:
    text = csv_of([a_row(reason='two\nlines, "quoted"', level=None, success=None), a_row(success=False)])
    first, second = csv.DictReader(io.StringIO(text))
    assert list(first) == NAMES
    assert (first["reason"], first["level"], first["success"]) == ('two\nlines, "quoted"', "", "")
    assert (second["success"], second["duration_s"]) == ("false", "1.0")


@given(start=st.sampled_from(["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "\u00a0@", "＝"]), rest=st.text())
def test_no_cell_of_csv_is_a_formula(start: str, rest: str) -> None:
    (row,) = csv.DictReader(io.StringIO(csv_of([a_row(answer=start + rest)])))
    assert not row["answer"].lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))


@given(text=st.text(st.characters()))
def test_whatever_a_participant_says_csv_is_readable_utf_8(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO(csv_of([a_row(answer=text)]).encode().decode(), newline=""), strict=True)
    assert len(row) == len(NAMES)
    assert None not in row


@given(st.text())
def test_any_text_stays_in_its_cell_of_csv(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO(csv_of([a_row(task=text, reason="last")]), newline=""))
    assert (row["task"].removeprefix("'"), row["reason"]) == (show_hidden(text).removeprefix("'"), "last")


def test_parquet_has_the_same_columns_with_their_types_and_the_exact_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = ["=1+1", "\ud800", "nul \0", "two\nlines 😀", None]
    path.write_bytes(parquet_of(a_row(answer=text, success=None) for text in texts))
    with duckdb.connect() as connection:
        described = connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
        table_rows = connection.execute(f"SELECT answer, success FROM '{path}'").fetchall()
    types = {name: kind for name, kind, *_ in described}
    assert list(types) == NAMES
    assert [types[name] for name in ("run_id", "epoch", "cost_usd", "success")] == [
        "VARCHAR",
        "BIGINT",
        "DOUBLE",
        "BOOLEAN",
    ]
    assert table_rows == [(text, None) for text in ["=1+1", "\ufffd", "nul \0", "two\nlines 😀", None]]


def test_an_empty_run_is_an_empty_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet_of([]))
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM '{path}'").fetchall() == [(0,)]


def test_without_duckdb_parquet_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(ConfigError) as raised:
        parquet_of([])
    assert "wabe[leaderboard]" in raised.value.remedy


def columns_of_plugins() -> set[str]:
    """Their own pages name them."""
    return {field.name for each in plugins().values() if each.columns for field in fields(each.columns())}


def test_every_column_is_documented_in_its_order() -> None:
    text = (ROOT / "docs" / "formats.md").read_text().partition("## Columns")[2].partition("\n## ")[0]
    named = [
        name for cell in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    ]
    assert named == [name for name in NAMES if name not in columns_of_plugins()]


@given(st.text(), st.none() | st.text())
def test_json_lines_have_all_columns_of_a_row_in_one_line_for_any_texts(task: str, reason: str | None) -> None:
    row = a_row(task=task, reason=reason, success=None)
    first, second = map(json.loads, jsonl_of([row, row]).splitlines())
    assert first == second
    assert list(first) == NAMES
    assert (first["task"], first["reason"], first["success"]) == (task, reason, None)


@given(st.text())
def test_json_has_the_columns_of_csv_with_lists_and_the_fact_of_each_category(task: str) -> None:
    row = a_row(task=task, flags=("off_site", "shared_state"), categories={"loop": "4 times"})
    (record,) = json.loads(json_of([row]))
    (line,) = csv.DictReader(io.StringIO(csv_of([row]), newline=""))
    assert list(record) == list(line) == NAMES
    assert (record["task"], record["flags"], record["categories"]) == (
        task,
        ["off_site", "shared_state"],
        {"loop": "4 times"},
    )
    assert (line["flags"], line["categories"]) == ("off_site shared_state", "loop")

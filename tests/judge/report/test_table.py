"""The task table as CSV and JSON."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.data import RunView, TaskRow
from judge.report.table import csv_table, json_table
from judge.results.categories import Finding

RUN = RunView("20260101-000000-ab", {"identity": {"name": "night run"}}, "white_agent")
ROW = TaskRow(
    "t1", "Find it.", "https://a.example/", "a.example", "easy", "failure", "not found", steps=3, duration_s=1.23456
)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_both_tables_have_the_same_columns_and_values() -> None:
    row = replace(ROW, flags=("off_site", "shared_state"), categories=(Finding("loop", "4 times"),))
    (line,), (record,) = read(csv_table(RUN, [row])), json.loads(json_table(RUN, [row]))
    assert list(line) == list(record)
    assert (record["participant"], record["verdict"], record["duration_s"]) == (
        "night run: white_agent",
        "failure",
        1.235,
    )
    assert (line["steps"], line["flags"], line["categories"]) == ("3", "off_site shared_state", "loop")
    assert (record["cost_usd"], line["cost_usd"]) == (None, "")
    assert record["categories"] == {"loop": "4 times"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_spreadsheet_takes_a_text_for_a_formula(text: str) -> None:
    (line,) = read(csv_table(RUN, [replace(ROW, why=text)]))
    assert line["reason"].startswith("'")


@given(st.text())
def test_any_text_stays_in_its_cell(text: str) -> None:
    (line,) = read(csv_table(RUN, [replace(ROW, task=text, why="last")]))
    assert (line["task"].removeprefix("'"), line["reason"]) == (text.removeprefix("'"), "last")
    assert json.loads(json_table(RUN, [replace(ROW, task=text)]))[0]["task"] == text

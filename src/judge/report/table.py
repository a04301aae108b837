"""The task table of a run as CSV and as JSON, for spreadsheets and data frames. Pure."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from judge.report.data import RunView, TaskRow
from judge.results.tables import not_a_formula


def csv_table(run: RunView, rows: Iterable[TaskRow]) -> str:
    """One line per task and epoch. Lists are joined by spaces, and an apostrophe precedes a possible formula."""
    records = [_record(run, row) for row in rows]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, _COLUMNS)
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in record.items()} for record in records)
    return out.getvalue()


def json_table(run: RunView, rows: Iterable[TaskRow]) -> str:
    """A list of objects with the columns of the CSV; each category comes with the fact it was derived from."""
    return json.dumps([_record(run, row) for row in rows], indent=1, allow_nan=False)


def _record(run: RunView, row: TaskRow) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "participant": run.player,
        "task_id": row.task_id,
        "epoch": row.epoch,
        "task": row.task,
        "website": row.website,
        "level": row.level,
        "verdict": row.outcome,
        "categories": {finding.category: finding.found for finding in row.categories},
        "reason": row.why,
        "decided_by": row.decided_by,
        "stop_reason": row.stop_reason,
        "steps": row.steps,
        "max_steps": row.max_steps,
        "reference_length": row.reference_length,
        "duration_s": None if row.duration_s is None else round(row.duration_s, 3),
        "cost_usd": row.cost_usd,
        "input_tokens": row.tokens.input,
        "output_tokens": row.tokens.output,
        "attempt": row.attempt,
        "flags": list(row.flags),
    }


_COLUMNS = tuple(_record(RunView("", {}, ""), TaskRow("", "", "", "", "", "unfinished", "")))


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        value = " ".join(value)
    return not_a_formula(value) if isinstance(value, str) else value

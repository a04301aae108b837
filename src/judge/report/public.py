"""A report for everybody: what a submission may say of sealed tasks (ids, verdicts, counts), and nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.report.build import report_folder
from judge.report.output import Folder
from judge.report.pages import FAILURES_FIRST, Renderer
from judge.results.entries import read_entries
from judge.results.submission import public_entry, rate_text
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.fields import as_mapping, as_mappings
from shared.files import read_json, reason_of

_FOLDER = "report-public"


def make_public_report(store: RunStore, output: Path | None = None) -> Path:
    """Write the page of a run that has ended, with its rows as JSON, from its submission alone; returns the page.

    Raises `ConfigError` if there is no submission yet, or if the page cannot be written.
    """
    path = store.folder / "results.json"
    try:
        submission = as_mapping(read_json(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy="let the run end, or resume it") from None
    target = output or store.derived / _FOLDER
    with report_folder(target):
        out = Folder(target)
        for result in as_mappings(submission.get("results"))[:1]:
            detail = as_mapping(result.get("detail"))
            rows = [public_entry(each) for each in as_mappings(detail.get("tasks"))]
            out.table("tasks.json", json.dumps(rows, indent=1))
            out.page("index.html", _page(store.run_id, detail, rows))
    return target / "index.html"


def _page(run_id: str, detail: Mapping[str, Any], rows: list[dict[str, Any]]) -> str:
    entries = sorted(read_entries(rows), key=lambda each: FAILURES_FIRST.index(each.outcome))
    judge = as_mapping(detail.get("judge"))
    return Renderer().page(
        "public.html",
        run_id=run_id,
        rate=rate_text(detail),
        counts={name: detail.get(f"{name}_tasks", 0) for name in ("scored", "unscored", "aborted")},
        total=detail.get("total_tasks", 0),
        judge=[str(judge[key]) for key in ("method", "model") if judge.get(key)],
        sealed=detail.get("sealed"),
        entries=entries,
    )

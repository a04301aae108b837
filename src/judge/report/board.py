"""A leaderboard as a static page, from submission files: `wabe leaderboard FILES --html DIR`.

Rows are those of the leaderboard's SQL. They are ranked within a group only: the same task set, judge, limit of
actions, site tools and sealed set. Everything in a submission is data of a stranger: bounded, escaped, never fetched.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from judge.report.build import report_folder
from judge.report.charts import Chart
from judge.report.output import Folder
from judge.report.pages import Renderer
from judge.report.pareto import chart_of_points
from judge.results.entries import rate_of, read_entries
from judge.results.leaderboard import Placed, placed_rows
from judge.results.signing import signer_of
from judge.results.tables import not_a_formula
from shared.fields import as_mapping, as_mappings
from shared.text import one_line, show_hidden

QUERIES = ("overall", "cost_per_success", "safety")
# The key of a submission file that names its run's public report, beside `participants`.
REPORT_URL = "report_url"
_STAMP = re.compile(r"_(\d{4})(\d\d)(\d\d)_\d{6}_\d+$")
_MAX_CHARS = 120
_MAX_URL_CHARS = 2_000
_LOST_PERCENT = 5
_NO_VALUES: Mapping[str, Any] = {}


@dataclass(frozen=True)
class BoardRow:
    """A submission. Rates and intervals are in percent, costs in US dollars; `None` where something is not known.

    `rank` is its place among the complete rows of its group. `why` says what makes it incomplete. `host` is that of the
    report's address.
    """

    group: str
    rank: int | None
    id: str
    name: str
    agent: str
    model: str
    success_rate: float | None
    interval: tuple[float, float] | None
    success_rate_of_all: float | None
    corrected_rate: float | None
    score: float | None
    tasks: int | None
    complete: bool | None
    why: str
    cost_per_success: float | None
    cost_per_task: float | None
    under_policy: float | None
    attack_success_rate: float | None
    coverage: str
    judge: str
    date: str
    signer: str
    report: str
    host: str
    file: str


@dataclass(frozen=True)
class BoardGroup:
    """Rows that may be compared, the best first, with what they have in common."""

    key: str
    title: str
    facts: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    scenario: str
    newest: str
    chart: Chart | None
    is_earlier: bool = False
    has: Mapping[str, bool] = field(default_factory=dict)


def make_board(files: Sequence[Path], target: Path) -> Path:
    """Write the page with its data as CSV and JSON; returns the page. Raises `ConfigError`."""
    groups = groups_of(placed_rows(files, QUERIES))
    rows = [row for group in groups for row in group.rows]
    with report_folder(target):
        out = Folder(target)
        out.table("leaderboard.csv", _csv(rows))
        out.table("leaderboard.json", json.dumps([asdict(row) for row in rows], indent=1, allow_nan=False))
        out.page("index.html", Renderer().of_report("board.html", groups=groups, total=len(rows)))
    return target / "index.html"


def groups_of(placed: Iterable[Placed]) -> list[BoardGroup]:
    """The groups: those of present task sets first, then the earlier versions of them; the largest first."""
    members: dict[tuple[str, ...], list[Placed]] = {}
    for each in placed:
        members.setdefault(_key(each), []).append(each)
    groups = [_group(number, key, group_rows) for number, (key, group_rows) in enumerate(members.items(), 1)]
    # A scenario of the same name with other tasks is another version; the one that was played last is the present one.
    newest: dict[str, tuple[str, str]] = {}
    for group, key in zip(groups, members, strict=True):
        if group.scenario:
            newest[group.scenario] = max(newest.get(group.scenario, ("", "")), (group.newest, key[0]))
    ordered = []
    for group, key in zip(groups, members, strict=True):
        is_earlier = bool(group.scenario) and newest[group.scenario][1] != key[0]
        ordered.append(replace(group, is_earlier=is_earlier))
    return sorted(ordered, key=lambda group: (group.is_earlier, -len(group.rows), group.key))


def _key(placed: Placed) -> tuple[str, ...]:
    """What rows must have in common: task set, judge, limit of actions, site tools, sealed set."""
    detail = as_mapping(placed.result.get("detail"))
    provenance = as_mapping(detail.get("provenance"))
    return (
        _text(placed.values.get("Tasks")),
        _text(placed.values.get("Decided By")),
        _text(provenance.get("max_actions")),
        _text(provenance.get("site_tools")),
        _text(detail.get("sealed")),
    )


def _group(number: int, key: tuple[str, ...], placed: Sequence[Placed]) -> BoardGroup:
    task_set, decided, actions, tools, sealed = key
    rows = [_row(f"g{number}", each) for each in placed]
    # Incomplete rows stand below all complete ones, as in the queries.
    rows.sort(key=lambda row: (row.complete is False, -(row.success_rate if row.success_rate is not None else -1.0)))
    ranked, place, before = [], 0, None
    for index, row in enumerate(rows, 1):
        if row.complete is False or row.success_rate is None:
            ranked.append(row)
            continue
        place = place if row.success_rate == before else index
        before = row.success_rate
        ranked.append(replace(row, rank=place))
    scenarios = sorted({_scenario(each) for each in placed} - {""})
    names = ", ".join(scenarios[:3])
    known = [
        (_label(row), row.cost_per_task, row.success_rate)
        for row in ranked
        if row.cost_per_task is not None and row.success_rate is not None and row.complete is not False
    ]
    unknown = [_label(row) for row in ranked if row.cost_per_task is None]
    columns = ("corrected_rate", "score", "cost_per_success", "under_policy", "attack_success_rate")
    texts = ("coverage", "signer", "report", "why", "model")
    return BoardGroup(
        key=f"g{number}",
        title=names or f"Task set {task_set or 'unknown'}",
        facts=tuple(
            filter(
                None,
                (
                    f"task set {task_set or 'unknown'}",
                    f"decided by {decided or 'unknown'}",
                    f"up to {actions} actions per reply" if actions else "",
                    f"site tools: {tools}" if tools else "",
                    f"sealed {sealed[:16]}" if sealed else "",
                ),
            )
        ),
        rows=tuple(ranked),
        scenario=scenarios[0] if len(scenarios) == 1 else "",
        newest=max((row.date for row in rows), default=""),
        chart=replace(chart, name=f"pareto-g{number}") if (chart := chart_of_points(known, unknown)) else None,
        has={
            **{name: any(getattr(row, name) is not None for row in rows) for name in columns},
            **{name: any(getattr(row, name) for row in rows) for name in texts},
        },
    )


def _label(row: BoardRow) -> str:
    return one_line(row.name or row.agent or row.id or "without a name", 24)


def _scenario(placed: Placed) -> str:
    provenance = as_mapping(as_mapping(placed.result.get("detail")).get("provenance"))
    return _text(as_mapping(provenance.get("identity")).get("scenario"))


def _row(group: str, placed: Placed) -> BoardRow:
    values, detail = placed.values, as_mapping(placed.result.get("detail"))
    url, host = report_address(placed.submission.get(REPORT_URL))
    tasks, attempts, scored = (_count(values.get(name)) for name in ("# Tasks", "Attempts", "Scored"))
    return BoardRow(
        group=group,
        rank=None,
        id=_text(values.get("id")),
        name=_text(values.get("Name")),
        agent=_text(values.get("Agent")),
        model=_text(values.get("Model")),
        success_rate=_number(values.get("Success Rate")),
        interval=_interval(placed),
        success_rate_of_all=_number(values.get("Success Rate of All")),
        corrected_rate=_corrected(detail.get("corrected_success_rate")),
        score=_percent(detail.get("score")),
        tasks=tasks,
        complete=complete if isinstance(complete := values.get("Complete"), bool) else None,
        why=_why(values, attempts, scored),
        cost_per_success=_number(values.get("Model USD per Success")),
        cost_per_task=_number(values.get("Model USD per Task")),
        under_policy=_number(values.get("Under Policy")),
        attack_success_rate=_number(values.get("Attack Success Rate")),
        coverage=_coverage(detail.get("coverage")),
        judge=_text(values.get("Decided By")),
        date=_date(detail),
        signer=signer_of(placed.path) or "",
        report=url,
        host=host,
        file=_text(placed.path.name),
    )


def _why(values: Mapping[str, Any], attempts: int | None, scored: int | None) -> str:
    """What makes the row incomplete: lost attempts, and what is wrong with its shards."""
    if values.get("Complete") is not False:
        return ""
    reasons = []
    lost_count = None if attempts is None or scored is None else attempts - scored
    if lost_count and attempts and 100 * lost_count > _LOST_PERCENT * attempts:
        reasons.append(f"{lost_count} of {attempts} attempts without a verdict")
    if shards := _text(values.get("Shards"), 300):
        reasons.append(f"shards {shards}")
    return "; ".join(reasons) or "the file says so"


def _interval(placed: Placed) -> tuple[float, float] | None:
    """The interval of the rate, from the entries: of one result, or of shards that make a whole."""
    shards = placed.values.get("Shards")
    if shards and ";" in str(shards):
        return None
    winner = placed.result.get("winner")
    parts = [placed.result] if not shards else as_mappings(placed.submission.get("results"))
    details = [as_mapping(each.get("detail")) for each in parts if each.get("winner") == winner]
    entries = [entry for detail in details for entry in as_mappings(detail.get("tasks"))]
    # Older files have no verdicts.
    if not entries or not all(entry.get("verdict") for entry in entries):
        return None
    low, high = rate_of(read_entries(entries)).published()["confidence_interval_95"]
    return low, high


def report_address(value: object) -> tuple[str, str]:
    """The address of a report and its host, if it is https and has no user's name; otherwise empty texts."""
    if not isinstance(value, str) or len(value) > _MAX_URL_CHARS or not value.isascii() or not value.isprintable():
        return "", ""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "", ""
    is_usable = parts.scheme == "https" and host and "@" not in parts.netloc and not re.search(r"[\s\\<>\"]", value)
    return (value, host or "") if is_usable else ("", "")


def _date(detail: Mapping[str, Any]) -> str:
    """The day of the last attempt, from the names of the entries."""
    stamps = [
        f"{match[1]}-{match[2]}-{match[3]}"
        for entry in as_mappings(detail.get("tasks"))
        if (match := _STAMP.search(str(entry.get("task_id_with_timestamp") or "")[-40:]))
    ]
    return max(stamps, default="")


def _coverage(value: object) -> str:
    counts = as_mapping(value)
    numbers = {name: _count(counts.get(name)) or 0 for name in ("full", "uncertain", "off_archive")}
    total = sum(numbers.values())
    return f"{numbers['full']} of {total} on recorded answers alone" if total else ""


def _corrected(value: object) -> float | None:
    return _number(as_mapping(value).get("rate")) if isinstance(value, Mapping) else _number(value)


def _percent(value: object) -> float | None:
    share = _number(value)
    return None if share is None or not 0 <= share <= 1 else round(100 * share, 1)


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isinstance(value, int | float) and abs(value) < 1e12 else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None


def _text(value: object, limit: int = _MAX_CHARS) -> str:
    return "" if value is None else one_line(str(value), limit)


def _csv(rows: Iterable[BoardRow]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [name for name in BoardRow.__dataclass_fields__ if name != "interval"]
    writer.writerow([*names, "interval_low", "interval_high"])
    for row in rows:
        cells = [getattr(row, name) for name in names]
        cells = [not_a_formula(show_hidden(cell)) if isinstance(cell, str) else cell for cell in cells]
        writer.writerow([*cells, *(row.interval or ("", ""))])
    return stream.getvalue()

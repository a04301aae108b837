"""A leaderboard as a static page, from submission files: `wabe leaderboard FILES --html DIR`.

Rows come from the leaderboard's SQL. They are ranked within a group only: the same task set, judge and sealed set,
and the same settings that set runs apart. Everything in a submission is data of a stranger: bounded, escaped, never
fetched.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.plugins.leaderboard.label_claims import interval_by_labels
from judge.plugins.leaderboard.ranking import Placed, placed_rows
from judge.report.build import report_folder
from judge.report.charts import Chart
from judge.report.output import Folder
from judge.report.pages import Renderer
from judge.report.pareto import chart_of_points
from judge.results.corrected import CORRECTED
from judge.results.entries import TaskEntry, read_entries
from judge.results.figures import Figures, cluster_in
from judge.results.signatures import signer_of
from judge.results.tables import not_a_formula
from shared.declarations import setting_apart
from shared.fields import as_mapping, as_mappings
from shared.text import one_line, show_hidden

QUERIES = ("overall", "cost_per_success", "safety")
# The key of a submission file that names its run's public report, beside `participants`.
REPORT_URL = "report_url"
_STAMP = re.compile(r"_(\d{4})(\d\d)(\d\d)_\d{6}_\d+$")
_MAX_CHARS = 120
_MAX_URL_CHARS = 2_000
_LOST_PERCENT = 5
_MAX_COLUMNS = 12


@dataclass(frozen=True)
class BoardRow:
    """A submission. Rates and intervals are in percent, costs in US dollars; `None` where something is not known.

    `rank` is its place among the complete rows of its group whose rate follows from verdicts. `why` says what makes it
    incomplete. `corrected_claimed` is a corrected rate that does not follow from labels. `host` is in the report's
    address.
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
    corrected_interval: tuple[float, float] | None
    corrected_claimed: float | None
    score: float | None
    tasks: int | None
    complete: bool | None
    why: str
    cost_per_success: float | None
    cost_per_task: float | None
    under_policy: float | None
    attack_success_rate: float | None
    coverage: str
    lower_bound: float | None
    upper_bound: float | None
    efficiency: float | None
    # What it says of tasks under variants, by family.
    kept_claimed: str
    judge: str
    date: str
    signer: str
    report: str
    host: str
    file: str
    # By key and value of the tasks' metadata.
    by_metadata: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    @property
    def ranked_rate(self) -> float | None:
        """The rate by which it is ranked: on frozen sites the lower bound."""
        return self.success_rate if self.lower_bound is None else self.lower_bound


@dataclass(frozen=True)
class BoardGroup:
    """Rows that may be compared, the best first, with what they have in common.

    `title` is the owner's name of the task set, or its digest; `claimed` are the scenarios that files name.
    """

    key: str
    title: str
    facts: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    chart: Chart | None = None
    claimed: str = ""
    is_present: bool = False
    has: Mapping[str, bool] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, list[str]]:
        """The values of the tasks' metadata by key, as far as there is room for a column of each."""
        keys = sorted({key for row in self.rows for key in row.by_metadata})
        values = {key: sorted({value for row in self.rows for value in row.by_metadata.get(key, ())}) for key in keys}
        return {key: each for key, each in values.items() if len(each) <= _MAX_COLUMNS}


class Present(NamedTuple):
    """A present task set of the page's owner: its digest; of a file also its name, and what was measured of it."""

    task_set: str
    name: str = ""
    measured: tuple[str, ...] = ()


class MadeBoard(NamedTuple):
    """The page, and why files are left out of it."""

    page: Path
    left_out: Mapping[Path, str]


def make_board(files: Sequence[Path], target: Path, present: Sequence[Present] = ()) -> MadeBoard:
    """Write the page with its data as CSV and JSON. `present` are the present task sets. Raises `ConfigError`."""
    placed, left_out = placed_rows(files, QUERIES)
    groups = groups_of(placed, present)
    rows = [row for group in groups for row in group.rows]
    with report_folder(target):
        out = Folder(target)
        out.table("leaderboard.csv", _csv(rows))
        out.table("leaderboard.json", json.dumps([asdict(row) for row in rows], indent=1, allow_nan=False))
        files_left_out = {path.name: one_line(why, 300) for path, why in left_out.items()}
        renderer = Renderer()
        out.page(
            "index.html",
            renderer.page(
                "board.html",
                package=__package__ or "",
                scripts=("sorting.js",),
                groups=groups,
                total=len(rows),
                left_out=files_left_out,
            ),
        )
    return MadeBoard(target / "index.html", left_out)


def groups_of(placed: Iterable[Placed], present: Sequence[Present] = ()) -> list[BoardGroup]:
    """The groups: present task sets first, in the owner's order; then the others, the largest first.

    What submissions say of themselves, such as names and dates, has no part in the order.
    """
    members: dict[tuple[str, ...], list[Placed]] = {}
    for each in placed:
        members.setdefault(_key(each), []).append(each)
    named = {each.task_set: each for each in reversed(present)}
    places = {each.task_set: place for place, each in enumerate(present)}
    for task_set in named.keys() - {key[0] for key in members}:
        members[_no_rows(task_set)] = []
    keys = sorted(members, key=lambda key: (places.get(key[0], len(places)), -len(members[key]), key))
    return [_group(number, key, members[key], named.get(key[0])) for number, key in enumerate(keys, 1)]


def _key(placed: Placed) -> tuple[str, ...]:
    """What rows must have in common: task set, judge, sealed set, and the settings that set runs apart."""
    detail = as_mapping(placed.result.get("detail"))
    provenance = as_mapping(detail.get("provenance"))
    return (
        _text(placed.values.get("Tasks")),
        _text(placed.values.get("Decided By")),
        _text(detail.get("sealed")),
        *(_text(provenance.get(name)) for name in setting_apart(RunConfig)),
    )


def _no_rows(task_set: str) -> tuple[str, ...]:
    """The key of a group without a row."""
    return (task_set, *[""] * (2 + len(setting_apart(RunConfig))))


def _group(number: int, key: tuple[str, ...], placed: Sequence[Placed], present: Present | None) -> BoardGroup:
    task_set, decided, sealed, *apart = key
    rows = [_row(f"g{number}", each) for each in placed]
    # Incomplete rows stand below all complete ones, and a frozen site's lower bound counts, as in the queries.
    rows.sort(key=lambda row: (bool(row.why), -(row.ranked_rate if row.ranked_rate is not None else -1.0)))
    ranked, place, before = [], 0, None
    for index, row in enumerate(rows, 1):
        if row.why or row.success_rate is None:
            ranked.append(row)
            continue
        place = place if row.ranked_rate == before else index
        before = row.ranked_rate
        ranked.append(replace(row, rank=place))
    scenarios = [name for name, _ in Counter(map(_scenario, placed)).most_common() if name]
    known = [
        (_label(row), row.cost_per_task, row.success_rate)
        for row in ranked
        if row.cost_per_task is not None and row.success_rate is not None and not row.why
    ]
    unknown = [_label(row) for row in ranked if row.cost_per_task is None]
    columns = ("corrected_rate", "score", "cost_per_success", "under_policy", "attack_success_rate", "efficiency")
    texts = ("kept_claimed", "coverage", "signer", "report", "why", "model")
    return BoardGroup(
        key=f"g{number}",
        title=(present.name if present else "") or f"Task set {task_set or 'unknown'}",
        claimed=", ".join(scenarios[:3]) + (f" and {len(scenarios) - 3} more" if len(scenarios) > 3 else ""),
        is_present=present is not None,
        facts=tuple(
            filter(
                None,
                (
                    f"task set {task_set or 'unknown'}",
                    f"decided by {decided or 'unknown'}" if placed else "no submission yet",
                    *(
                        words.format(value)
                        for value, (_, words) in zip(apart, setting_apart(RunConfig).values(), strict=True)
                        if value
                    ),
                    f"sealed {sealed[:16]}" if sealed else "",
                    *(present.measured if present else ()),
                ),
            )
        ),
        rows=tuple(ranked),
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
    entries = _entries(placed)
    figures = Figures.of((each.counted for each in entries), cluster_in(detail.get("provenance")))
    outcomes = [each.outcome for each in entries if each.is_clean]
    corrected = _number(detail.get(CORRECTED)) if not values.get("Shards") else None
    corrected_interval = None if corrected is None else interval_by_labels(detail, outcomes)
    return BoardRow(
        group=group,
        rank=None,
        id=_text(values.get("id")),
        name=_text(values.get("Name")),
        agent=_text(values.get("Agent")),
        model=_text(values.get("Model")),
        success_rate=_number(values.get("Success Rate")),
        interval=(round(figures.all.low, 1), round(figures.all.high, 1)) if entries else None,
        success_rate_of_all=_number(values.get("Success Rate of All")),
        corrected_rate=corrected if corrected_interval else None,
        corrected_interval=corrected_interval,
        corrected_claimed=None if corrected_interval else corrected,
        score=_percent(figures.mean_score.get("score")),
        tasks=tasks,
        complete=complete if isinstance(complete := values.get("Complete"), bool) else None,
        why=_why(values, attempts, scored, has_verdicts=bool(entries)),
        cost_per_success=_number(values.get("Model USD per Success")),
        cost_per_task=_number(values.get("Model USD per Task")),
        under_policy=_number(values.get("Under Policy")),
        attack_success_rate=_number(values.get("Attack Success Rate")),
        kept_claimed=_kept(detail.get("robustness")),
        coverage=_coverage(detail.get("coverage")),
        lower_bound=_number(values.get("Lower Bound")),
        upper_bound=_number(values.get("Upper Bound")),
        judge=_text(values.get("Decided By")),
        date=_date(detail),
        signer=signer_of(placed.path) or "",
        report=url,
        host=host,
        file=_text(placed.path.name),
        efficiency=None if figures.efficiency is None else round(figures.efficiency, 2),
        by_metadata={
            key: {value: None if rate.rate is None else round(rate.rate, 1) for value, rate in rates.items()}
            for key, rates in figures.by_metadata.items()
        },
    )


def _why(values: Mapping[str, Any], attempts: int | None, scored: int | None, *, has_verdicts: bool) -> str:
    """What makes the row incomplete: lost attempts, what is wrong with its shards, a rate without verdicts."""
    if values.get("Complete") is not False:
        return "" if has_verdicts else "no verdict of each attempt, from which its rate would follow"
    reasons = []
    lost_count = None if attempts is None or scored is None else attempts - scored
    if lost_count and attempts and 100 * lost_count > _LOST_PERCENT * attempts:
        reasons.append(f"{lost_count} of {attempts} attempts without a verdict")
    if shards := _text(values.get("Shards"), 300):
        reasons.append(f"shards {shards}")
    return "; ".join(reasons) or "the file says so"


def _entries(placed: Placed) -> list[TaskEntry]:
    """The entries of one result, or of shards that make a whole; none if an attempt has no verdict."""
    shards = placed.values.get("Shards")
    if shards and ";" in str(shards):
        return []
    winner = placed.result.get("winner")
    parts = [placed.result] if not shards else as_mappings(placed.submission.get("results"))
    details = [as_mapping(each.get("detail")) for each in parts if each.get("winner") == winner]
    entries = [entry for detail in details for entry in as_mappings(detail.get("tasks"))]
    return list(read_entries(entries)) if all(entry.get("verdict") for entry in entries) else []


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


def _kept(value: object) -> str:
    """The share of its clean successes that a participant keeps under each family of variants, the smallest first."""
    families = as_mapping(as_mapping(value).get("by_family"))
    known = [
        (kept, name, as_mapping(figures).get("retained_interval_95"))
        for name, figures in islice(families.items(), _MAX_COLUMNS)
        if (kept := _number(as_mapping(figures).get("retained"))) is not None
    ]
    return ", ".join(
        f"{_text(name, 20)} {kept:.1f} %{_interval(within)}"
        for kept, name, within in sorted(known, key=lambda each: each[0])
    )


def _interval(value: object) -> str:
    low, high = map(_number, value) if isinstance(value, list) and len(value) == 2 else (None, None)
    return "" if low is None or high is None else f" ({low:.1f} to {high:.1f})"


def _coverage(value: object) -> str:
    counts = as_mapping(value)
    numbers = {name: _count(counts.get(name)) or 0 for name in ("full", "uncertain", "off_archive")}
    total = sum(numbers.values())
    return f"{numbers['full']} of {total} on recorded answers alone" if total else ""


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
    names = [name for name in BoardRow.__dataclass_fields__ if name not in ("interval", "by_metadata")]
    writer.writerow([*names, "interval_low", "interval_high"])
    for row in rows:
        cells = [getattr(row, name) for name in names]
        cells = [not_a_formula(show_hidden(cell)) if isinstance(cell, str) else cell for cell in cells]
        writer.writerow([*cells, *(row.interval or ("", ""))])
    return stream.getvalue()

"""Renders views as HTML: jinja2 with autoescaping, one inline style sheet and one inline script per page.

Each page's Content-Security-Policy allows exactly its own style sheet and script (`shared.pages`).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import zip_longest
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from jinja2 import ChoiceLoader, DictLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from judge.records.metadata import shown
from judge.records.notices import notice_text
from judge.report.charts import charts_of, duration
from judge.report.comparing import (
    MatrixRow,
    RunPair,
    better_at,
    conclusion_of,
    differing_settings,
    judges_of,
    side_by_side,
    task_counts,
)
from judge.report.data import RunView, TaskRow, TaskView
from judge.report.effort import differing
from judge.report.network import ConsoleView
from judge.report.pareto import pareto_chart
from judge.report.setup import moment, setup_of
from judge.report.totals import Totals, grouped
from judge.results.categories import CATEGORIES
from judge.results.rates import LEVELS, RowOutcome
from judge.results.rows import COLUMNS
from shared.pages import BODY_END, HtmlPage, asset, body_start, page_frame, page_head, page_policy
from shared.plugins import ReportSection
from shared.text import counted, show_hidden, usd, without_surrogates

_OWN = "judge.report"
# Outcomes that need attention first.
FAILURES_FIRST: tuple[RowOutcome, ...] = ("failure", "unscored", "aborted", "unfinished", "success")
# A page has the script and the style sheet of its own name. These scripts are shared, and these style sheets stand in
# where it has none.
_SCRIPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "index.html": ("sorting.js", "table.js"),
        "task.html": ("labels.js", "viewer.js"),
        "compare.html": ("sorting.js", "table.js"),
    }
)
_STYLES = ("labels.css", "viewer.css")
_BUNDLED = ("index.html", "task.html", "compare.html", "compare_task.html")
GENERATOR = "wabe report"


@dataclass(frozen=True)
class ComparedRun:
    """A run in a comparison. Its report is in a folder named by its letter."""

    letter: str
    view: RunView
    totals: Totals


class Renderer:
    """Renders pages. `bundled` pages have no head: they are between `begin_bundle` and `end_bundle`, in one file.

    Without `contents`, pages of tasks show neither headers and bodies nor console messages.
    """

    def __init__(self, *, bundled: bool = False, contents: bool = True) -> None:
        self._bundled = bundled
        self._contents = contents

    def index(
        self, run: RunView, totals: Totals, rows: list[TaskRow], *, up: str = "", floors: Sequence[str] = ()
    ) -> str:
        """The run's front page. `up` is a link to the comparison it belongs to, `floors` are notes on its judges."""
        record = run.record
        judge = record.get("judge")
        groups = grouped(rows)
        # As in the rates, tasks under attack do not count with the others.
        clean = [group for group in groups if group.first.is_clean]
        categories = Counter(name for group in clean for name in group.categories)
        setup = setup_of(record)
        return self.page(
            "index.html",
            run=run,
            totals=totals,
            groups=sorted(groups, key=lambda group: (FAILURES_FIRST.index(group.first.outcome), group.successes)),
            rows=rows,
            outcomes=Counter(outcome for group in clean for outcome in group.outcomes),
            all_outcomes={outcome for group in groups for outcome in group.outcomes},
            up=up,
            floors=floors,
            charts=charts_of(totals, [row for row in rows if row.is_clean]),
            first=FAILURES_FIRST,
            trivial_agents={run.player or "this run": totals.all, **run.trivial_agents} if run.trivial_agents else {},
            categories={name: categories[name] for name in (*CATEGORIES, "other") if categories[name]},
            all_categories={name for group in groups for name in group.categories},
            levels=LEVELS,
            # Columns with the same value in every row are hidden.
            has_sites=len(totals.by_site) > 1,
            has_costs=totals.cost_usd != 0,
            declared=[each for each in COLUMNS if each.heading and any(getattr(row, each.name) for row in rows)],
            sections=[section for part in run.parts if (section := part.section(rows))],
            model=record.get("judge_model") or "",
            # In a folder of another tool, several judges may have decided as much.
            judged_by=totals.judge_names.get(str(record.get("judge_id"))) if run.is_folder else None,
            state=record.get("state") or "",
            began=moment(record.get("started_at")),
            wall_s=_wall_s(record),
            note=(judge.get("note") if isinstance(judge, dict) else "") or "",
            setup=setup.decided,
            setup_more=setup.more,
        )

    def task(
        self,
        task: TaskView,
        *,
        before: str = "",
        after: str = "",
        home: str = "../index.html",
        run: RunView | None = None,
        film: str = "",
    ) -> str:
        """A task's page; `before` and `after` are its neighbours' ids, `run` the run if its labels can be stored.

        `film` is the name of its film, among its images.
        """
        if not self._contents:
            task = replace(task, network=replace(task.network, has_contents=False), console=ConsoleView())
        return self.page(
            "task.html",
            task=task,
            before=before,
            after=after,
            home=home,
            label_key=run.label_key if run else "",
            player=run.player if run else "",
            film=film,
        )

    def comparison(
        self,
        runs: Sequence[ComparedRun],
        matrix: Sequence[MatrixRow],
        pairs: Sequence[RunPair],
        sections: Sequence[tuple[str, ReportSection]] = (),
    ) -> str:
        """The front page of a comparison: `pairs` are every two of its runs, `sections` have the letter of theirs."""
        records = [run.view.record for run in runs]
        better = better_at(pairs)
        return self.page(
            "compare.html",
            runs=runs,
            matrix=matrix,
            pairs=pairs,
            sections=sections,
            effort_columns=differing(pair.efforts for pair in pairs),
            estimates=list(dict.fromkeys(title for pair in pairs for title in pair.estimates)),
            conclusion=conclusion_of(pairs),
            better=better,
            better_counts=Counter(name for names in better.values() for name in names),
            judges=judges_of(records),
            first=FAILURES_FIRST,
            levels=LEVELS,
            differing=differing_settings(records),
            task_counts=task_counts(matrix, len(runs)),
            by_metadata=side_by_side([run.totals.by_metadata for run in runs]),
            pareto=pareto_chart([(run.letter, run.totals) for run in runs]),
        )

    def compared_task(
        self, runs: Sequence[tuple[str, RunView, TaskView | None]], *, before: str = "", after: str = ""
    ) -> str:
        """The steps of one task in several runs side by side. `runs`: folder, run, and the task there if it has it."""
        tasks = [task for _, _, task in runs]
        steps = list(zip_longest(*(task.steps if task else () for task in tasks)))
        lines = [{step.line if step else None for step, task in zip(row, tasks, strict=True) if task} for row in steps]
        return self.page(
            "compare_task.html",
            runs=[{"folder": folder, "view": view, "task": task} for folder, view, task in runs],
            row=next(task.row for task in tasks if task),
            steps=steps,
            before=before,
            after=after,
            differs_at=next((number for number, each in enumerate(lines, 1) if len(each) > 1), None),
        )

    def begin_bundle(self, title: str) -> str:
        """The beginning of a file that holds all pages of a report; its policy allows the scripts of all of them."""
        css = _css("single.html")
        scripts = (_script(name, _OWN, ()) for name in _BUNDLED)
        policy = self._policy(*scripts, asset("single.js", _OWN), css=css)
        around = [Markup(page_head(policy, css, GENERATOR)), Markup(body_start())]
        return _environment().get_template("single.html").render(around=around, title=title)

    def end_bundle(self) -> str:
        """The end of that file: the script that shows the page named in the address."""
        return f"<script>{asset('single.js', _OWN)}</script>{BODY_END}"

    def of_server(self, name: str, *, package: str = _OWN, token: str = "", **values: Any) -> HtmlPage:
        """A served page: it may ask its own server for more, and send changes if it has the token for them."""
        return self._page(name, package, connect=True, token=token, **values)

    def page(self, name: str, *, package: str = _OWN, scripts: tuple[str, ...] = (), **values: Any) -> str:
        """A page from the template `name` among the `templates` of a package. It may extend `base.html`.

        `scripts` are those of reports that it shares.
        """
        return self._page(name, package, scripts=scripts, **values).html

    def _policy(self, *scripts: str, css: str, connect: bool = False) -> str:
        return page_policy(*scripts, css=css, images="data:" if self._bundled else "'self' data:", connect=connect)

    def _page(
        self,
        name: str,
        package: str,
        *,
        scripts: tuple[str, ...] = (),
        connect: bool = False,
        token: str = "",
        **values: Any,
    ) -> HtmlPage:
        script, css = _script(name, package, scripts, connect=connect), _css(name, package)
        policy = self._policy(script, css=css, connect=connect)
        # Our own texts: the only values that are not escaped.
        around = ("", "", "") if self._bundled else (page_head(policy, css, GENERATOR), body_start(token), BODY_END)
        template = _environment(package).get_template(name)
        return HtmlPage(template.render(around=[*map(Markup, around)], script=Markup(script), **values), policy)


def visible(text: object, limit: int = 100_000) -> str:
    r"""Foreign text cut to about `limit` characters, with hidden characters as `\u202e` and the like.

    Keeps tabs and line feeds. Cut text says how much is missing. The template escapes markup.
    """
    whole = str(text)
    if len(whole) <= limit and whole.isascii() and whole.isprintable():
        # A fast path for most texts, of which a report has a hundred thousand.
        return whole
    whole = without_surrogates(whole.replace("\r\n", "\n"))
    text_shown = show_hidden(whole[:limit])
    return text_shown if len(whole) <= limit else f"{text_shown}… ({counted(len(whole) - limit, 'more character')})"


def web_link(url: str) -> str | None:
    """`url` if a link may point at it: http or https with a host, nothing else (no `javascript:`, no `file:`)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    # `urlsplit` and browsers remove control characters, each in its own way.
    if parts.scheme not in ("http", "https") or not parts.netloc or re.search(r"[\x00-\x20\x7f]", url):
        return None
    return without_surrogates(url)


def _wall_s(record: dict[str, Any]) -> float | None:
    """The run's duration; `None` while it runs and if it was resumed after a pause."""
    began, ended_at = record.get("started_at"), record.get("ended_at")
    if record.get("resumed_at") or not isinstance(began, int | float) or not isinstance(ended_at, int | float):
        return None
    return max(0.0, ended_at - began)


@cache
def _environment(package: str = _OWN) -> Environment:
    """The template environment; cached, because compiling a template takes longer than rendering a page."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(_OWN), DictLoader({"base.html": _base()})]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "visible": visible,
        "metadata": shown,
        "notice": notice_text,
        "web_link": web_link,
        "dur": duration,
        "moment": lambda seconds: f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC",
        "num": lambda value: f"{value:,}".replace(",", "\u202f"),
        "counted": lambda value, noun: counted(value, noun).replace(str(value), f"{value:,}".replace(",", "\u202f"), 1),
        "usd": usd,
        "pct": lambda value: f"{value:.1f}\u00a0%",
        "pvalue": lambda p: "below 0.0001" if p < 0.0001 else f"{p:.4f}".rstrip("0") if p < 0.01 else f"{p:.2f}",
    }
    return environment


def _base() -> str:
    """What templates extend as `base.html`. A bundled page has neither head nor body."""
    names = ("title", "nav", "content")
    blocks = {name: f"{{% block {name} %}}{{% endblock %}}" for name in names}
    frame = page_frame(label="Report", begin="{{ around[1] }}", script="{{ script }}", end="{{ around[2] }}", **blocks)
    return '{% import "parts.html" as parts %}{{ around[0] }}' + frame


@cache
def _css(page: str, package: str = _OWN) -> str:
    own = _of_page(page, "css", package) or "\n".join(asset(name, _OWN) for name in _STYLES)
    return "\n".join((asset("base.css"), asset("report.css", _OWN), own))


@cache
def _script(page: str, package: str, scripts: tuple[str, ...], *, connect: bool = False) -> str:
    frame = map(asset, ("theme.js", "change.js") if connect else ("theme.js",))
    shared = (asset(name, _OWN) for name in scripts or _SCRIPTS.get(page, ()))
    return "\n".join((*frame, *shared, _of_page(page, "js", package)))


def _of_page(page: str, suffix: str, package: str) -> str:
    try:
        return asset(f"{page.removesuffix('html')}{suffix}", package)
    except FileNotFoundError:
        return ""

"""Views as HTML text: jinja2 with autoescaping, one style sheet and one script per page, both inlined and pinned.

Each page's Content-Security-Policy allows exactly its own style sheet and script, by hash, and images next to it: even
markup that got through escaping could neither run nor load anything.
"""

import base64
import hashlib
import re
from datetime import UTC, datetime
from functools import cached_property
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from judge.report.charts import charts_of, duration, rates_chart, segments
from judge.report.data import LEVELS, OUTCOMES, RunView, TaskRow, TaskView
from judge.report.totals import Comparison, Totals, differences
from shared.text import show_hidden, without_surrogates


class Renderer:
    """Renders pages. It compiles each template once, so keep one for a whole report."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("judge.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "visible": visible,
            "web_link": web_link,
            "dur": duration,
            "num": lambda value: f"{value:,}".replace(",", "\u202f"),
            "usd": usd,
            "pct": lambda value: f"{value:.1f}\u00a0%",
            "pvalue": lambda p: "below 0.0001" if p < 0.0001 else f"{p:.4f}".rstrip("0") if p < 0.01 else f"{p:.2f}",
            "segments": segments,
        }

    def index(self, run: RunView, totals: Totals, rows: list[TaskRow], *, up: str = "") -> str:
        """The run's front page. `up` is a link to the comparison it belongs to."""
        record = run.record
        judge = record.get("judge")
        return self._page(
            "index.html",
            ("theme.js", "table.js"),
            run=run,
            totals=totals,
            rows=rows,
            up=up,
            charts=charts_of(totals, rows),
            order={outcome: place for place, outcome in enumerate(OUTCOMES)},
            levels=LEVELS,
            model=record.get("judge_model") or "",
            state=record.get("state") or "",
            began=_moment(record.get("started_at")),
            wall_s=_wall_s(record),
            note=(judge.get("note") if isinstance(judge, dict) else "") or "",
            setup=_setup(record),
            config=_pairs(record.get("config")),
        )

    def task(
        self,
        task: TaskView,
        *,
        before: str = "",
        after: str = "",
        home: str = "../index.html",
        run: RunView | None = None,
    ) -> str:
        """A task's page; `before` and `after` are the ids of its neighbours, `run` the run if its labels can be kept."""
        return self._page(
            "task.html",
            ("theme.js", "labels.js", "viewer.js"),
            task=task,
            before=before,
            after=after,
            home=home,
            run_id=run.run_id if run else "",
            player=run.player if run else "",
        )

    def comparison(self, runs: list[tuple[RunView, Totals]], comparisons: list[Comparison], folders: list[str]) -> str:
        """The front page of a comparison: `comparisons[n]` is of run n + 1 against run 0."""
        letters = [folder.upper() for folder in folders]
        rates = {letter: totals.all for letter, (_, totals) in zip(letters, runs, strict=True)}
        return self._page(
            "compare.html",
            ("theme.js",),
            runs=[
                {"view": view, "totals": totals, "letter": letter, "folder": folder}
                for (view, totals), letter, folder in zip(runs, letters, folders, strict=True)
            ],
            pairs=[
                {"comparison": comparison, "letter": letter, "folder": folder}
                for comparison, letter, folder in zip(comparisons, letters[1:], folders[1:], strict=True)
            ],
            differing=differences([view.record for view, _ in runs]),
            chart=rates_chart("run", "Which run succeeds more often?", rates),
        )

    def steps(self, **values: Any) -> str:
        """The page of a step-level scoring (`judge.report.steps`)."""
        return self._page("steps.html", ("theme.js",), **values)

    def live(self) -> tuple[str, str]:
        """The live page and its Content-Security-Policy, which allows connections to its own server only."""
        scripts = ("theme.js", "live.js")
        return self._page("live.html", scripts, connect=True), self._policy(_scripts(scripts), connect=True)

    def _policy(self, script: str, *, connect: bool = False) -> str:
        parts = ["default-src 'none'", "img-src 'self' data:", f"style-src '{_hash(self._css)}'"]
        parts += [f"script-src '{_hash(script)}'", "base-uri 'none'", "form-action 'none'"]
        return "; ".join(parts + (["connect-src 'self'"] if connect else []))

    @cached_property
    def _css(self) -> str:
        return "\n".join(map(_asset, ("report.css", "labels.css", "viewer.css")))

    def _page(self, name: str, scripts: tuple[str, ...], *, connect: bool = False, **values: Any) -> str:
        script = _scripts(scripts)
        return self._environment.get_template(name).render(
            # Our own files, not foreign text: the only two values that are not escaped.
            css=Markup(self._css),
            script=Markup(script),
            csp=self._policy(script, connect=connect),
            **values,
        )


def visible(text: object, limit: int = 100_000) -> str:
    r"""Foreign text in about `limit` characters at most, with hidden characters as `\u202e` and the like.

    Tabs and line feeds stay. A cut says how much is missing. Escaping markup is the template's job.
    """
    whole = without_surrogates(str(text).replace("\r\n", "\n"))
    shown = show_hidden(whole[:limit])
    return shown if len(whole) <= limit else f"{shown}… ({len(whole) - limit} more characters)"


def web_link(url: str) -> str | None:
    """`url` if a link may point at it: http or https with a host, nothing else (no `javascript:`, no `file:`)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc or re.search(r"[\x00-\x20\x7f]", url):
        return None
    return without_surrogates(url)


def usd(value: float | None) -> str:
    """US dollars for people: `$0.42`, `$0.0007`, `unknown`."""
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def _setup(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Everything in `run.json` except the configuration, which has its own list."""
    facts = []
    for key, value in record.items():
        if key in ("config", "task_ids", "schema_version") or value in (None, "", {}, []):
            continue
        text = ", ".join(f"{name} {item}" for name, item in _pairs(value)) if isinstance(value, dict) else str(value)
        facts.append((key.replace("_", " "), _moment(value) or text if key.endswith("_at") else text))
    return facts


def _wall_s(record: dict[str, Any]) -> float | None:
    """How long the run took; unknown while it runs and if it was resumed after a pause."""
    began, ended = record.get("started_at"), record.get("ended_at")
    if record.get("resumed_at") or not isinstance(began, int | float) or not isinstance(ended, int | float):
        return None
    return max(0.0, ended - began)


def _pairs(value: Any) -> list[tuple[str, str]]:
    return [(str(key), str(item)) for key, item in value.items()] if isinstance(value, dict) else []


def _moment(value: Any) -> str:
    """Seconds since 1970 or an ISO time as `2026-02-03 04:05 UTC`; empty for anything else."""
    try:
        moment = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _scripts(names: tuple[str, ...]) -> str:
    return "\n".join(map(_asset, names))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (resources.files("judge.report") / "templates" / name).read_text(encoding="utf-8")

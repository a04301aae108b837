"""The page of all runs: every local run, and the submissions in folders, with filters, trends, tags and notes.

Everything is read except for tags and notes. What runs and submissions contain is data: only the addresses of this
server and of the judges of this machine become links.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from judge.plugins.all_runs.filters import MAX_CHARS, RunFilters, choices, filters_in, run_filters
from judge.plugins.all_runs.index import RunIndex
from judge.plugins.all_runs.listing import ListedRun
from judge.plugins.all_runs.notes import MAX_NOTE_CHARS, MAX_TAG_CHARS, MAX_TAGS, NotesFolder, RunNotes
from judge.plugins.all_runs.trend_chart import trend_chart
from judge.plugins.all_runs.trends import versions_of
from judge.report.build import MAX_RUNS
from judge.report.pages import Renderer
from judge.server.live_records import live_address
from judge.server.reports import Reports
from judge.store.layout import RUN_ID, RunStore
from judge.store.matrices import Matrix, stored_matrices
from shared.a2a.local_pages import LocalPages, PageRefused
from shared.a2a.serving import address_of, serve_app
from shared.errors import ConfigError
from shared.models import Record
from shared.pages import HtmlPage

_REFUSAL = "The page of all runs is shown on its own machine only, at a loopback address or the named host.\n"
_ROWS, _ROWS_ON_PHONE = 100, 20
_MAX_TRENDS = 3
_MAX_VERSIONS = 12
_MAX_OPTIONS = 300
# The runs that have a report.
_SHOWN_STATES = ("finished", "interrupted", "failed")
# The list is at most as old as this, so that searching while typing does not look at all files for every letter.
_AGE_S = 1.0


class NotesChange(Record):
    """What the page sends: the notes of one run or submission."""

    key: str
    notes: RunNotes


class _FilterField(NamedTuple):
    """A filter as the page's form shows it; `values` has at least one, which may be empty."""

    name: str
    heading: str
    kind: str
    values: list[str]
    options: list[tuple[str, str]]


class _Row(NamedTuple):
    """A row of the list: a run, or the listed runs of a matrix, which are shown below it once it is open."""

    runs: list[ListedRun]
    matrix: str | None = None

    def texts(self, name: str) -> str:
        """What its runs have there, each once."""
        return ", ".join(dict.fromkeys(filter(None, (getattr(run, name) for run in self.runs))))

    @property
    def states(self) -> str:
        """How many of its runs are in each state."""
        return ", ".join(f"{count} {state}" for state, count in Counter(run.state for run in self.runs).items())

    @property
    def rates(self) -> list[float]:
        """The lowest and the highest rate, if they differ."""
        rates = [run.rate for run in self.runs if run.rate is not None]
        return sorted({min(rates), max(rates)}) if rates else []


class _RunningRun(NamedTuple):
    run: ListedRun
    address: str | None
    done: int
    total: int | None


def runs_routes(index: RunIndex, *, host: str = "") -> list[Route]:
    """The list at `/`, reports at the addresses of the live page, comparisons, and the change of tags and notes.

    They answer requests from this machine only, at a loopback name or at the host `host`.
    """
    local = LocalPages(_REFUSAL, host)
    pages = _RunsPage(index, local.token)
    return [
        *local.shows(
            {
                "/": pages.front,
                "/live/{run_id}/report/{name:path}": pages.report,
                "/compare": pages.compare_selected,
                "/compare/{run_ids}/{name:path}": pages.comparison,
            }
        ),
        local.takes("/notes", NotesChange, pages.keep_notes),
    ]


async def serve_runs(
    output_dir: Path,
    sock: socket.socket,
    on_ready: Callable[[str, int], None],
    *,
    folders: Sequence[Path] = (),
    admitted_host: str = "",
    takes_signals: bool = True,
) -> None:
    """Serve the page of all runs, to this machine only, until cancelled or signalled.

    `on_ready` gets its address and the number of runs and submissions, once they are read. `folders` have submissions,
    `admitted_host` is the host that the user chose.
    """
    # Before the first page is asked for: without an index, every run is read.
    index = RunIndex(output_dir, folders)
    count = len(await asyncio.to_thread(index.runs))
    host, port = sock.getsockname()[:2]
    on_ready(address_of(host, port), count)
    await serve_app(Starlette(routes=runs_routes(index, host=admitted_host)), sock, takes_signals=takes_signals)


class _RunsPage:
    def __init__(self, index: RunIndex, token: str) -> None:
        self._index = index
        self._output_dir = index.output_dir
        self._token = token
        self._notes = NotesFolder(index.output_dir)
        self._renderer = Renderer()
        self._reports = Reports()
        self._reading = asyncio.Lock()
        self._runs: list[ListedRun] = []
        self._read_at = float("-inf")

    async def front(self, request: Request) -> HtmlPage:
        try:
            filters = filters_in(request.query_params.multi_items())
        except ConfigError as error:
            raise PageRefused(HTTPStatus.BAD_REQUEST, error) from None
        number = request.query_params.get("page", "1")
        page = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1
        runs = await self._listed_runs()
        # All browsers of phones have it in their name.
        rows = _ROWS_ON_PHONE if "Mobi" in request.headers.get("user-agent", "") else _ROWS
        opened = request.query_params.get("open", "")
        return await asyncio.to_thread(self._page, runs, filters, max(1, page), rows, opened)

    async def report(self, request: Request) -> Path | None:
        return await self._file([request.path_params["run_id"]], request.path_params["name"])

    async def compare_selected(self, request: Request) -> Response:
        """To the comparison of the runs that a form without scripts names."""
        run_ids = ",".join(quote(run_id, safe="") for run_id in request.query_params.getlist("run"))
        return RedirectResponse(f"/compare/{run_ids or '-'}/index.html")

    async def comparison(self, request: Request) -> Path | None:
        run_ids = list(dict.fromkeys(request.path_params["run_ids"].split(",")))
        if not 1 < len(run_ids) <= MAX_RUNS:
            raise PageRefused(HTTPStatus.BAD_REQUEST, f"no comparison: select 2 to {MAX_RUNS} runs")
        return await self._file(run_ids, request.path_params["name"])

    def keep_notes(self, change: NotesChange) -> dict[str, Any]:
        if all(run.key != change.key for run in self._runs):
            raise ConfigError("no such run is listed", remedy="reload the page")
        self._notes.write(change.key, change.notes)
        self._read_at = float("-inf")
        return change.notes.model_dump(mode="json")

    async def _listed_runs(self) -> list[ListedRun]:
        clock = asyncio.get_running_loop().time
        async with self._reading:
            if clock() - self._read_at > _AGE_S:
                # Before reading, so that a change meanwhile is read the next time.
                self._read_at = clock()
                self._runs = await asyncio.to_thread(self._index.runs)
            return self._runs

    async def _file(self, run_ids: Sequence[str], name: str) -> Path | None:
        return await self._reports.file([self._store(run_id) for run_id in run_ids], name)

    def _store(self, run_id: str) -> RunStore:
        """A run below the output folder. Raises `ConfigError` for anything else."""
        # Without shards, and no path.
        if "/" not in run_id and RUN_ID.fullmatch(run_id):
            store = RunStore(self._output_dir, run_id)
            if store.has_begun:
                return store
        raise ConfigError("no such run", remedy="go back to the list of runs")

    def _page(self, runs: list[ListedRun], filters: RunFilters, number: int, rows: int, opened: str) -> HtmlPage:
        matching_runs = filters.keep(runs)
        listed = _rows(matching_runs, stored_matrices(self._output_dir))
        pages = max(1, -(-len(listed) // rows))
        number = min(number, pages)
        series = versions_of(matching_runs)
        charts = [
            trend_chart(each.trend(_MAX_VERSIONS), f"trend-{place}", left_out=max(0, len(each) - _MAX_VERSIONS))
            for place, each in enumerate(series[:_MAX_TRENDS], 1)
        ]
        return self._renderer.of_server(
            "runs.html",
            package="judge.plugins.all_runs",
            token=self._token,
            place=str(self._output_dir),
            folders=[str(folder) for folder in self._index.folders],
            total=len(runs),
            matches=len(matching_runs),
            rows=listed[rows * (number - 1) : rows * number],
            opened=opened,
            running=[self._running(run) for run in runs if run.state == "running"],
            filters=[_field(name, runs, filters) for name, _, _ in run_filters()],
            trends=charts,
            more_trends=max(0, len(series) - _MAX_TRENDS),
            shown_states=_SHOWN_STATES,
            address=filters.address(),
            number=number,
            pages=pages,
            max_chars=MAX_CHARS,
            max_tags=MAX_TAGS,
            max_tag_chars=MAX_TAG_CHARS,
            max_note_chars=MAX_NOTE_CHARS,
        )

    def _running(self, run: ListedRun) -> _RunningRun:
        store = RunStore(self._output_dir, run.id)
        if run.episodes is not None:
            return _RunningRun(run, live_address(store), run.total or 0, None)
        done = sum((task.folder / "result.json").exists() for task in store.task_folders())
        return _RunningRun(run, live_address(store), done, run.total * run.epochs if run.total else None)


def _rows(runs: Sequence[ListedRun], matrices: Sequence[Matrix]) -> list[_Row]:
    """The rows of a list. A matrix stands where its newest run does; one run of it is a row like any other."""
    homes = {cell.run_id: matrix.matrix_id for matrix in matrices for cell in matrix.cells}
    rows: dict[str, list[ListedRun]] = {}
    for run in runs:
        home = homes.get(run.id) if run.kind == "run" else None
        # No key of a run has a slash.
        rows.setdefault(run.key if home is None else f"matrix/{home}", []).append(run)
    return [_Row(each, key.partition("/")[2] if len(each) > 1 else None) for key, each in rows.items()]


def _field(name: str, runs: list[ListedRun], filters: RunFilters) -> _FilterField:
    each = next(declared for known, _, declared in run_filters() if known == name)
    value = getattr(filters, name)
    values = list(value) if each.kind == "names" else [str(value or "")]
    options = [(f"={text}", f"{text} ({count})") for text, count in choices(runs, each).items()][:_MAX_OPTIONS]
    # An address may name a part of a name, or one that no run has.
    known = {option for option, _ in options}
    options = [*((other, other.removeprefix("=")) for other in values[:1] if other not in known), *options]
    return _FilterField(name, each.heading, each.kind, values or [""], options)

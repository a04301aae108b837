"""Writes reports: of one run or a comparison of several, as a self-contained folder or a single file."""

import os
import shutil
import webbrowser
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

from judge.records.tasks import key_of
from judge.records.verdicts import CHECKS, method_of
from judge.report.comparing import matrix_of, pairs_of, with_estimates
from judge.report.data import TaskRow, TaskView, read_run, read_task
from judge.report.output import Folder, Output, SingleFile, write
from judge.report.pages import GENERATOR, ComparedRun, Renderer
from judge.report.totals import Totals, totals_of
from judge.results.figures import cluster_in
from judge.results.film import FILM_FORMATS, film_path
from judge.results.processes import in_processes
from judge.results.tables import csv_of, json_of
from judge.results.trivial_judges import floors_in
from judge.store.layout import RunStore
from judge.trajectory.network import NETWORK_FILE
from shared.errors import ConfigError
from shared.files import read_file, read_json, write_json
from shared.images import require_pillow
from shared.text import counted

MAX_RUNS = 12
# From this number on, starting processes saves time.
_MANY_TASKS = 100
# Tasks passed to a process at once, together with the data of the run.
_TASKS_AT_ONCE = 64
_COMPARISONS = "comparisons"
# The ids of the runs that a comparison is about.
_COMPARED = "runs.json"
_BETWEEN_NAMES = "--"
_MAX_NAME_CHARS = 180
_GENERATOR = f'<meta name="generator" content="{GENERATOR}">'
_POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'">"""


def make_report(
    stores: list[RunStore],
    output: Path | None = None,
    *,
    single_file: bool = False,
    contents: bool = True,
    parallel: bool = False,
) -> Path:
    """Write the report of one run, or the comparison of several, at `output` or beside the runs; returns its page.

    Without `contents` it has neither headers and bodies of requests nor console messages, in which redaction may have
    missed a secret. `parallel`: the pages of a large run are made in several processes.
    Replaces an earlier report. Raises `ConfigError` if something else is there, or if it cannot be written.
    """
    if len(stores) > MAX_RUNS:
        raise ConfigError(f"{counted(len(stores), 'run')} to compare", remedy=f"give 2 to {MAX_RUNS} runs")
    for store in stores:
        # Before anything is written.
        store.require_key()
    beside = stores[0].derived / "report"
    if len(stores) > 1:
        names = _BETWEEN_NAMES.join(_name_of(store.run_id) for store in stores)
        beside = stores[0].output_dir / _COMPARISONS / names[:_MAX_NAME_CHARS]
    if single_file:
        target = output or beside.with_name(f"{beside.name}.html")
        _write_single_file(stores, target, contents=contents)
        return target
    target = output or beside
    with report_folder(target):
        _write(stores, Folder(target), Renderer(contents=contents), parallel=parallel)
        if len(stores) > 1:
            write_json(target / _COMPARED, [store.run_id for store in stores])
    return target / "index.html"


def remove_comparisons(output_dir: Path, run_ids: Collection[str]) -> list[str]:
    """Delete the comparisons of runs that were deleted; returns their names. Only reports in the folder for them."""
    removed = []
    for path in sorted((output_dir / _COMPARISONS).glob("*")):
        page = path / "index.html" if path.is_dir() else path
        if path.is_symlink() or not _is_report(page) or not _compares(path, run_ids):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed.append(path.name)
    return removed


def _compares(path: Path, run_ids: Collection[str]) -> bool:
    """Whether a comparison is about one of these runs: by the list in it or, where there is none, by its name."""
    with suppress(OSError, ValueError, TypeError):
        return not set(run_ids).isdisjoint(read_json(path / _COMPARED))
    name = f"{_BETWEEN_NAMES}{path.name.removesuffix('.html')}{_BETWEEN_NAMES}"
    return any(f"{_BETWEEN_NAMES}{_name_of(run_id)}{_BETWEEN_NAMES}" in name for run_id in run_ids)


def _name_of(run_id: str) -> str:
    return run_id.replace("/", "-")


def _write_single_file(stores: list[RunStore], target: Path, *, contents: bool) -> None:
    require_pillow("reports in a single file", "report")
    renderer = Renderer(bundled=True, contents=contents)
    with _refused_as_config_error(target):
        if target.exists() and not _is_report(target):
            raise ConfigError(f"{target} is not a report", remedy="choose another --output file")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        try:
            with part.open("wb") as stream:
                stream.write(renderer.begin_bundle(" and ".join(store.run_id for store in stores)).encode())
                _write(stores, SingleFile(stream), renderer)
                stream.write(renderer.end_bundle().encode())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def write_report(stores: Sequence[RunStore], out: Output) -> None:
    """Write the report of one run, or the comparison of several, to `out`."""
    _write(list(stores), out, Renderer())


def open_page(page: Path) -> bool:
    """Open a page in the user's browser; false if there is none."""
    return webbrowser.open(page.resolve().as_uri())


@contextmanager
def report_folder(target: Path) -> Iterator[None]:
    """An empty folder at `target`. Removes an earlier report; refuses a folder with any other content."""
    with _refused_as_config_error(target):
        if target.is_dir() and any(target.iterdir()):
            if not _is_report(target / "index.html"):
                raise ConfigError(
                    f"{target} holds something that is not a report", remedy="choose another --output folder"
                )
            shutil.rmtree(target)
        target.mkdir(parents=True, exist_ok=True)
        # Marked as a report from the start, so that an interrupted one can be replaced.
        write(
            target / "index.html",
            f"<!doctype html>{_POLICY}{_GENERATOR}<title>Report</title><p>This report is incomplete.",
        )
        yield


@contextmanager
def _refused_as_config_error(target: Path) -> Iterator[None]:
    """Turn an `OSError` into a `ConfigError` about `target` or about the run's folder."""
    try:
        yield
    except OSError as error:
        file_named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else target
        why = error.strerror or str(error)
        # Errors about the target include its parent folder and its temporary siblings.
        if file_named != target.parent and not os.fspath(file_named).startswith(os.fspath(target)):
            raise ConfigError(f"{file_named}: {why}", remedy="check the permissions of the run's folder") from None
        raise ConfigError(
            f"cannot write the report to {target}: {why}", remedy="choose another --output folder"
        ) from None


def _is_report(page: Path) -> bool:
    try:
        return _GENERATOR.encode() in read_file(page, head_bytes=4096)
    except (OSError, ValueError):
        return False


class _RunPages:
    """The pages of one run within a report. Only one task's page and all tasks' rows are in memory."""

    def __init__(self, store: RunStore, out: Output, renderer: Renderer, folder: str = "") -> None:
        self._store, self._out, self._renderer, self._folder = store, out, renderer, folder
        self.view = read_run(store)
        self._plays = {key_of(*play): play for play in self.view.plays}
        self._places = _neighbours(list(self._plays))
        self.rows: list[TaskRow] = []

    @property
    def keys(self) -> list[str]:
        """The keys of the tasks, in every epoch."""
        return list(self._plays)

    def write_task(self, key: str) -> TaskView | None:
        """Write the page of a task with its images; returns `None` if the run does not have it."""
        if key not in self._plays:
            return None
        store = self._store.task(*self._plays[key])
        task = read_task(store, self.view)
        self._place_files(store.folder, task)
        film = self._film(key)
        before, after = self._places[key]
        page = self._renderer.task(task, before=before, after=after, run=self.view, film=film)
        self._out.page(f"{self._folder}tasks/{key}.html", page)
        return task

    def rows_of(self, keys: Sequence[str]) -> list[TaskRow]:
        """Write the pages of these tasks; returns only their rows."""
        return [task.row for task in map(self.write_task, keys) if task is not None]

    def write_index(self) -> Totals:
        """Write the front page with its tables, once all tasks are written."""
        metered = self.view.metering.total if self.view.metering else None
        totals = totals_of(self.rows, metered, cluster_in(self.view.record.get("config")))
        up = "../index.html" if self._folder else ""
        self._out.table(f"{self._folder}tasks.csv", csv_of(self.rows))
        self._out.table(f"{self._folder}tasks.json", json_of(self.rows))
        page = self._renderer.index(self.view, totals, self.rows, up=up, floors=self._floors(totals))
        self._out.page(f"{self._folder}index.html", page)
        return totals

    def _floors(self, totals: Totals) -> list[str]:
        """What to say of judges that do not beat judges that look at no page."""
        methods = {method_of(each.judge_id) for row in self.rows for each in row.given_verdicts if each.is_stored}
        if CHECKS not in methods or len(methods) < 2:
            return []
        floors = floors_in(self._store.task(*play).folder for play in self._plays.values())
        words = (floor.words(str(totals.judge_names.get(name, name))) for name, floor in floors.items())
        return list(filter(None, words))

    def _film(self, key: str) -> str:
        """The name of the task's film, if `wabe export` has made one; a page in a single file has none."""
        for form in FILM_FORMATS if isinstance(self._out, Folder) else ():
            if (path := film_path(self._store, key, form)).is_file():
                self._out.file(f"{self._folder}images/{key}/film.{form}", path)
                return f"film.{form}"
        return ""

    def _place_files(self, source: Path, task: TaskView) -> None:
        images = f"{self._folder}images/{task.row.key}"
        for step in (*task.steps, task.final_look):
            if step and step.image and step.record.screenshot:
                self._out.file(f"{images}/{step.image}", source / step.record.screenshot)
        if task.network.file is not None:
            self._out.file(f"{images}/{NETWORK_FILE}", task.network.file)


def _neighbours(ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The previous and next id of each id; `""` at the ends."""
    return {name: (before, after) for name, before, after in zip(ids, ["", *ids], [*ids[1:], ""], strict=False)}


def _write(stores: list[RunStore], out: Output, renderer: Renderer, *, parallel: bool = False) -> None:
    if len(stores) > 1:
        _write_comparison(stores, out, renderer)
        return
    run = _RunPages(stores[0], out, renderer)
    if parallel and len(run.keys) >= _MANY_TASKS:
        parts = [run.keys[at : at + _TASKS_AT_ONCE] for at in range(0, len(run.keys), _TASKS_AT_ONCE)]
        run.rows = [row for rows in in_processes(run.rows_of, parts) for row in rows]
    else:
        run.rows = run.rows_of(run.keys)
    run.write_index()


def _write_comparison(stores: Sequence[RunStore], out: Output, renderer: Renderer) -> None:
    runs = [_RunPages(store, out, renderer, f"{name}/") for store, name in zip(stores, ascii_lowercase, strict=False)]
    keys = list(dict.fromkeys(key for run in runs for key in run.keys))
    for key, (before, after) in _neighbours(keys).items():
        tasks = [run.write_task(key) for run in runs]
        for run, task in zip(runs, tasks, strict=True):
            run.rows += [task.row] if task else []
        compared = [(name, run.view, task) for name, run, task in zip(ascii_lowercase, runs, tasks, strict=False)]
        out.page(f"tasks/{key}.html", renderer.compared_task(compared, before=before, after=after))
    lettered = dict(zip(ascii_uppercase, runs, strict=False))
    sides = [ComparedRun(letter, run.view, run.write_index()) for letter, run in lettered.items()]
    clusters = {cluster_in(run.view.record.get("config")) for run in runs}
    pairs = with_estimates(
        pairs_of(
            {letter: run.rows for letter, run in lettered.items()}, clusters.pop() if len(clusters) == 1 else None
        ),
        {letter: run.view.parts for letter, run in lettered.items()},
    )
    sections = [
        (letter, section)
        for letter, run in lettered.items()
        for part in run.view.parts
        if part.is_compared and (section := part.section(run.rows))
    ]
    out.page("index.html", renderer.comparison(sides, matrix_of([run.rows for run in runs]), pairs, sections))

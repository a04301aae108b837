"""Writes a report's folder: pages and images, complete, so that it can be sent."""

import os
import shutil
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from judge.report.data import RunView, TaskRow, TaskView, read_run, read_task
from judge.report.pages import Renderer
from judge.report.totals import Totals, compare, totals_of
from judge.store import RunStore
from judge.trajectory.network import NETWORK_FILE
from shared.errors import ConfigError
from shared.models import key_of

MAX_RUNS = 12
_GENERATOR = '<meta name="generator" content="wabe report">'


def write_report(store: RunStore, target: Path) -> Path:
    """Write the report of one run; returns its `index.html`. An earlier report there is replaced.

    Raises `ConfigError` if the folder holds something else, or cannot be written.
    """
    with report_folder(target):
        _write_run(store, target, Renderer())
    return target / "index.html"


def write_comparison(stores: list[RunStore], target: Path) -> Path:
    """Write a comparison with the report of each run beside it; returns its `index.html`. Raises `ConfigError`."""
    if not 2 <= len(stores) <= MAX_RUNS:
        raise ConfigError(f"{len(stores)} runs to compare", remedy=f"give 2 to {MAX_RUNS} runs")
    renderer = Renderer()
    folders = [chr(ord("a") + place) for place in range(len(stores))]
    with report_folder(target):
        runs = [
            _write_run(store, target / name, renderer, up="../index.html")
            for store, name in zip(stores, folders, strict=True)
        ]
        comparisons = [compare(runs[0][2], rows) for _, _, rows in runs[1:]]
        page = renderer.comparison([(view, totals) for view, totals, _ in runs], comparisons, folders)
        _write(target / "index.html", page)
    return target / "index.html"


def make_report(stores: list[RunStore], output: Path | None = None) -> Path:
    """The report of one run, or the comparison of several, at `output` or beside the runs; returns its `index.html`.

    Raises `ConfigError`.
    """
    if len(stores) == 1:
        return write_report(stores[0], output or stores[0].derived / "report")
    names = "--".join(store.run_id.replace("/", "-") for store in stores)
    return write_comparison(stores, output or stores[0].output_dir / "comparisons" / names[:180])


def open_page(page: Path) -> bool:
    """Open a page in the user's browser; false if there is none."""
    return webbrowser.open(page.resolve().as_uri())


@contextmanager
def report_folder(target: Path) -> Iterator[None]:
    """An empty folder at `target`. An earlier report is removed; a folder that holds anything else is refused."""
    try:
        if target.is_dir() and any(target.iterdir()):
            if not _is_report(target):
                raise ConfigError(
                    f"{target} holds something that is not a report", remedy="choose another --output folder"
                )
            shutil.rmtree(target)
        target.mkdir(parents=True, exist_ok=True)
        # Marked from the start, so that an interrupted report can be replaced.
        _write(target / "index.html", f"<!doctype html>{_GENERATOR}<title>Report</title><p>This report is incomplete.")
        yield
    except OSError as error:
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else target
        why = error.strerror or str(error)
        if not named.is_relative_to(target):
            raise ConfigError(f"{named}: {why}", remedy="check the permissions of the run's folder") from None
        raise ConfigError(
            f"cannot write the report to {target}: {why}", remedy="choose another --output folder"
        ) from None


def _is_report(folder: Path) -> bool:
    try:
        with (folder / "index.html").open("rb") as stream:
            return _GENERATOR.encode() in stream.read(4096)
    except OSError:
        return False


def _write_run(
    store: RunStore, target: Path, renderer: Renderer, *, up: str = ""
) -> tuple[RunView, Totals, list[TaskRow]]:
    run = read_run(store)
    (target / "tasks").mkdir(parents=True, exist_ok=True)
    rows: list[TaskRow] = []
    judged: list[dict[str, str]] = []
    plays = [(task_id, epoch) for epoch in range(1, run.epochs + 1) for task_id in run.task_ids]
    neighbours = ["", *(key_of(*play) for play in plays), ""]
    for place, play in enumerate(plays):
        task = read_task(store.task(*play))
        _place_files(store.task(*play).folder, task, target)
        page = renderer.task(task, before=neighbours[place], after=neighbours[place + 2])
        _write(target / "tasks" / f"{key_of(*play)}.html", page)
        rows.append(task.row)
        judged.append(task.judged)
    totals = totals_of(rows, judged)
    _write(target / "index.html", renderer.index(run, totals, rows, up=up))
    return run, totals, rows


def _place_files(source: Path, task: TaskView, target: Path) -> None:
    folder = target / "images" / task.row.key
    folder.mkdir(parents=True, exist_ok=True)
    for step in (*task.steps, *([task.final_look] if task.final_look else [])):
        if step.image and step.record.screenshot:
            place_file(source / step.record.screenshot, folder / step.image)
    if task.network.file is not None:
        place_file(task.network.file, folder / NETWORK_FILE)


def place_file(source: Path, target: Path) -> None:
    """Put `source`, if it is there, at `target`: a hard link where the file system allows it, else a copy."""
    if source.is_symlink() or not source.is_file():
        return
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or one without hard links.
        with suppress(OSError):
            shutil.copyfile(source, target)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))

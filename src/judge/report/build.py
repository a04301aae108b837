"""Writes a report's folder: pages and images; complete, so that it can be sent."""

import os
import shutil
import webbrowser
from pathlib import Path

from judge.report.compare import compare
from judge.report.data import read_run, read_tasks
from judge.report.images import place_image
from judge.report.render import Renderer
from judge.report.totals import Totals, totals_of
from judge.report.views import RunView, TaskRow, TaskView
from judge.store import RunStore
from shared.errors import ConfigError

MAX_RUNS = 12
_GENERATOR = '<meta name="generator" content="wabe report">'


def write_report(store: RunStore, target: Path) -> Path:
    """Write the report of one run; returns its `index.html`. An earlier report there is replaced.

    Raises `ConfigError` when the folder holds something else, or cannot be written.
    """
    try:
        _make_room(target)
        _write_run(store, target, Renderer())
    except OSError as error:
        raise _unwritable(target, error) from None
    return target / "index.html"


def write_comparison(stores: list[RunStore], target: Path) -> Path:
    """Write a comparison with the report of each run beside it; returns its `index.html`. Raises `ConfigError`."""
    if not 2 <= len(stores) <= MAX_RUNS:
        raise ConfigError(f"{len(stores)} runs to compare", remedy=f"give 2 to {MAX_RUNS} runs")
    renderer = Renderer()
    folders = tuple(chr(ord("a") + place) for place in range(len(stores)))
    try:
        _make_room(target)
        made = [
            _write_run(store, target / name, renderer, up="../index.html")
            for store, name in zip(stores, folders, strict=True)
        ]
        first = made[0][2]
        comparisons = [compare(first, rows) for _, _, rows in made[1:]]
        page = renderer.comparison([(view, totals) for view, totals, _ in made], comparisons, folders)
        _write(target / "index.html", page)
    except OSError as error:
        raise _unwritable(target, error) from None
    return target / "index.html"


def make_report(stores: list[RunStore], output: Path | None = None) -> Path:
    """The report of one run, or the comparison of several, at `output` or beside the runs; returns its `index.html`.

    Raises `ConfigError`.
    """
    if len(stores) == 1:
        return write_report(stores[0], output or stores[0].folder / "report")
    names = "--".join(store.run_id for store in stores)
    return write_comparison(stores, output or stores[0].output_dir / "comparisons" / names[:180])


def open_page(page: Path) -> bool:
    """Open a page in the user's browser; false when there is none."""
    return webbrowser.open(page.resolve().as_uri())


def is_report(folder: Path) -> bool:
    """Whether the folder's `index.html` says that this program made it."""
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
    for place, task in enumerate(read_tasks(store, run)):
        before = run.task_ids[place - 1] if place else ""
        after = run.task_ids[place + 1] if place + 1 < len(run.task_ids) else ""
        _place_images(store, task, target)
        _write(target / "tasks" / f"{task.row.task_id}.html", renderer.task(task, before=before, after=after))
        rows.append(task.row)
        judged.append(task.judged)
    totals = totals_of(rows, judged)
    _write(target / "index.html", renderer.index(run, totals, rows, up=up))
    return run, totals, rows


def _place_images(store: RunStore, task: TaskView, target: Path) -> None:
    folder = target / "images" / task.row.task_id
    folder.mkdir(parents=True, exist_ok=True)
    source = store.task(task.row.task_id).folder / "trajectory"
    for step in task.steps:
        if step.image:
            place_image(source / step.image, folder / step.image)


def _make_room(target: Path) -> None:
    """Remove an earlier report of ours; refuse a folder that holds anything else."""
    if target.is_dir() and any(target.iterdir()):
        if not is_report(target):
            raise ConfigError(f"{target} holds something that is no report", remedy="choose another --output folder")
        shutil.rmtree(target)
    target.mkdir(parents=True, exist_ok=True)
    # From the first moment on the folder says whose it is, so that a report that was interrupted can be made again.
    _write(target / "index.html", f"<!doctype html>{_GENERATOR}<title>Report</title><p>This report is not complete.")


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


def _unwritable(target: Path, error: OSError) -> ConfigError:
    named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else target
    if not named.is_relative_to(target):
        return ConfigError(f"{named}: {error.strerror or error}", remedy="check the permissions of the run's folder")
    return ConfigError(
        f"cannot write the report to {target}: {error.strerror or error}", remedy="choose another --output folder"
    )

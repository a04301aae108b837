"""`wabe agreement`: how well verdicts agree with human labels."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.commands import AsJson, OutputDir
from judge.results.agreement import Agreement, Rates, read_labels, read_pairs, read_verdicts
from judge.results.agreement import agreement as compare
from judge.store import output_folder, resolve_run
from shared.errors import ConfigError
from shared.settings import Settings
from shared.text import one_line

_PIPED_WIDTH = 140
_COLUMNS = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "false_positive_rate": "FPR",
    "kappa": "Kappa",
}
_EXCLUDED = {
    "unscored": "unscored by the judge",
    "not_executable": "labelled not executable",
    "unlabelled": "without a label",
    "no_verdict": "without a verdict of this judge",
}
_INTERVALS = "In brackets: 95 % intervals (Wilson; F1 from Wilson's of the Jaccard share; kappa large-sample)"


def agreement(
    file: Annotated[
        Path | None, typer.Argument(help="CSV with the columns human and judge (0/1).", metavar="FILE.csv")
    ] = None,
    verdicts: Annotated[str | None, typer.Option(help="A run, or a folder of task folders.", metavar="RUN")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels: CSV task_id,human[,group…] or JSON.", metavar="FILE")
    ] = None,
    label_column: Annotated[str, typer.Option(help="The labels' column, if its name is not human.")] = "human",
    method: Annotated[str | None, typer.Option(help="Compare this judge method only.")] = None,
    output_dir: OutputDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare verdicts with human labels: rates with 95 % intervals, over all and by group."""
    if file is not None and verdicts is None and labels is None:
        if method is not None:
            raise ConfigError("--method goes with --verdicts", remedy="leave it out")
        found = {"": compare(read_pairs(file))}
    elif file is None and verdicts is not None and labels is not None:
        folder = Path(verdicts)
        if not folder.is_dir():
            folder = resolve_run(verdicts, output_folder(output_dir, Settings.from_environ())).folder
        results = folder / "results" if (folder / "results").is_dir() else folder
        known = read_labels(labels, label_column)
        pairs = read_verdicts(results, known, labels_path=labels, method=method)
        found = {judge_id: compare(compared) for judge_id, compared in pairs.items()}
    else:
        raise ConfigError("agreement needs one source", remedy="give FILE.csv, or --verdicts RUN with --labels FILE")
    if as_json:
        typer.echo(_as_json(found))
        return
    console = Console()
    # Rich assumes 80 columns for a pipe, which would wrap the intervals.
    if not console.is_terminal:
        console = Console(width=_PIPED_WIDTH)
    for judge_id, compared in found.items():
        title = f"Agreement with human labels{f': {judge_id}' if judge_id else ''}"
        console.print(_table(title, "", {"overall": compared.overall}))
        for column, by_value in compared.groups.items():
            console.print(_table(f"By {column}", column, by_value))
        excluded = [f"Left out: {count} {_EXCLUDED[why]}" for why, count in compared.overall.excluded.items()]
        for note in (*compared.notes, *excluded, _INTERVALS):
            console.print(Text(one_line(note)), style="dim", soft_wrap=True)


def _as_json(found: dict[str, Agreement]) -> str:
    """One comparison as such; several as `{"judges": {id: …}}`."""
    plain = {judge_id: compared.model_dump(mode="json") for judge_id, compared in found.items()}
    ((judge_id, first), *others) = plain.items()
    only = {**first, "judge": judge_id} if judge_id else first
    return json.dumps({"judges": plain} if others else only, indent=2, allow_nan=False)


def _table(title: str, first: str, by_value: dict[str, Rates]) -> Table:
    table = Table(title=Text(one_line(title)), title_justify="left")
    table.add_column(Text(one_line(first)), overflow="fold")
    for name in ("n", *_COLUMNS.values()):
        table.add_column(name, justify="right")
    for value, rates in by_value.items():
        cells = [_cell(rates, name) for name in _COLUMNS]
        table.add_row(Text(one_line(value) or "(blank)"), str(rates.n), *cells)
    return table


def _cell(rates: Rates, name: str) -> Text:
    value, interval = getattr(rates, name), rates.intervals_95[name]
    if value is None or interval is None:
        return Text("-")
    # Kappa runs from -1 to 1, the others are shares.
    if name == "kappa":
        return Text("{:.2f}\n[{:.2f}, {:.2f}]".format(value, *interval))
    return Text("{:.1f} %\n[{:.1f}, {:.1f}]".format(*(100 * number for number in (value, *interval))))

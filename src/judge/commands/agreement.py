"""`wabe agreement`: how well verdicts agree with human labels."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.results.agreement import Agreement, Labels, Rates, read_labels, read_pairs, read_verdicts
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


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(agreement)


def agreement(
    file: Annotated[
        Path | None, typer.Argument(help="CSV with the columns human and judge (0/1).", metavar="FILE.csv")
    ] = None,
    verdicts: Annotated[str | None, typer.Option(help="A run, or a folder of task folders.", metavar="RUN")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels: CSV task_id,human[,group…] or JSON.", metavar="FILE")
    ] = None,
    label_column: Annotated[str, typer.Option(help="The labels' column, when it is not called human.")] = "human",
    method: Annotated[str | None, typer.Option(help="Compare this judge method only.")] = None,
    output_dir: Annotated[Path | None, typer.Option(help="Where runs are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare verdicts with human labels: rates with 95 % intervals, over all and by group."""
    if (file is None) == (verdicts is None) or (verdicts is None) != (labels is None):
        raise ConfigError("agreement needs one source", remedy="give FILE.csv, or --verdicts RUN with --labels FILE")
    if file is not None:
        if method is not None:
            raise ConfigError("--method goes with --verdicts", remedy="leave it out")
        found = {"": compare(read_pairs(file))}
    else:
        runs = output_folder(output_dir, Settings.from_environ())
        path = labels or Path()
        found = _compare_verdicts(verdicts or "", read_labels(path, label_column), path, method, runs)
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=2, allow_nan=False))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PIPED_WIDTH)
    for judge_id, compared in found.items():
        _show(console, judge_id, compared)


def _compare_verdicts(
    run: str, labels: Labels, labels_path: Path, method: str | None, output_dir: Path
) -> dict[str, Agreement]:
    folder = Path(run)
    if not folder.is_dir():
        folder = resolve_run(run, output_dir).folder
    results = folder / "results" if (folder / "results").is_dir() else folder
    pairs = read_verdicts(results, labels, labels_path=labels_path, method=method)
    return {judge_id: compare(compared) for judge_id, compared in pairs.items()}


def _as_json(found: dict[str, Agreement]) -> dict[str, Any]:
    """One comparison as the contract has it; several as `{"judges": {id: …}}`."""
    plain = {judge_id: compared.model_dump(mode="json") for judge_id, compared in found.items()}
    if len(plain) > 1:
        return {"judges": plain}
    ((judge_id, only),) = plain.items()
    return {**only, "judge": judge_id} if judge_id else only


def _show(console: Console, judge_id: str, compared: Agreement) -> None:
    console.print(
        _table(f"Agreement with people{f': {judge_id}' if judge_id else ''}", "", {"overall": compared.overall})
    )
    for column, by_value in compared.groups.items():
        console.print(_table(f"By {column}", column, by_value))
    notes = [*compared.notes, *_excluded(compared.overall)]
    notes.append("In brackets: 95 % intervals (Wilson; F1 from Wilson's of the Jaccard share; kappa large-sample)")
    for note in notes:
        console.print(Text(one_line(note)), style="dim", soft_wrap=True)


def _excluded(overall: Rates) -> list[str]:
    words = {
        "unscored": "unscored by the judge",
        "not_executable": "labelled not executable",
        "unlabelled": "without a label",
        "no_verdict": "without a verdict of this judge",
    }
    return [f"Left out: {count} {words[reason]}" for reason, count in overall.excluded.items()]


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
    if name == "kappa":
        return Text(f"{value:.2f}\n[{interval[0]:.2f}, {interval[1]:.2f}]")
    return Text(f"{100 * value:.1f} %\n[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]")

"""`wabe agreement`: how well verdicts agree with human labels, or with ground truth."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from judge.commands import AsJson, Command, OutputDir, table, wide_console
from judge.plugins.labels.agreement import (
    UNDECIDED,
    Agreement,
    Labels,
    names_in,
    read_labels,
    read_pairs,
    read_verdicts,
)
from judge.plugins.labels.agreement import agreement as compare
from judge.plugins.labels.agreement_output import show_order, show_people
from judge.plugins.labels.corrections import LabelledRun
from judge.plugins.labels.ground_truth import measure
from judge.plugins.labels.label_files import AttemptKey, Opinions
from judge.plugins.labels.labellers import LabellerAgreement, labeller_agreement
from judge.plugins.labels.labelling import require_different
from judge.plugins.labels.rank_stability import rank_stability
from judge.results.agreement import LabelledVerdict, Rates
from judge.results.folders import FolderStore, resolve_store
from judge.results.given_verdicts import once, repeat_of
from judge.results.ground_truth import JudgeDisagreement
from judge.results.trivial_judges import JudgeFloor, floor_of_pairs
from judge.store.layout import RunStore, output_folder, resolve_run, run_of
from shared.errors import ConfigError
from shared.text import counted, one_line

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
    "undecided": "that people left undecided",
    "unlabelled": "without a label",
    "no_verdict": "without a verdict of this judge",
    "settled": "whose end settled the score without a judge",
}
_EXCLUDED_BY_TRUTH = {**_EXCLUDED, "unlabelled": "that ground truth leaves undecided"}
_MAX_SHOWN_CHARS = 500
_LABEL = "label with: wabe label RUN --labels 40"
_SOURCES = "give FILE.csv, RUN with --truth or --labels, --verdicts RUN with --labels FILE, or several runs"
_WORDS = {True: "success", False: "failure"}
_INTERVALS = "In brackets: 95 % intervals (Wilson; F1 from Wilson's of the Jaccard share; kappa large-sample)"


class _JudgeAgreement(NamedTuple):
    """A judge's agreement with labels or ground truth; `judge_id` and `name` are empty for the rows of a CSV."""

    judge_id: str
    agreement: Agreement
    differences: tuple[JudgeDisagreement, ...] = ()
    name: str = ""
    # Those with a label, if it was compared with labels.
    labelled: tuple[LabelledVerdict, ...] | None = None
    floor: JudgeFloor | None = None


def agreement(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="A CSV with the columns human and judge (0/1); a run with --truth or --labels; or several runs.",
            metavar="FILE.csv|RUN…",
        ),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(
            help="Compare the run's judges with this instead of labels: checks, or a method without a model.",
            metavar="NAME",
        ),
    ] = None,
    verdicts: Annotated[str | None, typer.Option(help="A run, or a folder of task folders.", metavar="RUN")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels: CSV task_id,human[,group…] or JSON, or a folder of wabe label.", metavar="FILE|DIR"),
    ] = None,
    label_column: Annotated[str, typer.Option(help="The labels' column, if its name is not human.")] = "human",
    method: Annotated[str | None, typer.Option(help="Compare this judge method only.")] = None,
    output_dir: OutputDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare verdicts with human labels or ground truth, labellers with each other, or the order of several runs."""
    request = _AgreementRequest(tuple(files or ()), truth, verdicts, labels, label_column, method)
    folder = output_folder(output_dir)
    if len(request.files) > 1:
        show_order(rank_stability(request.runs(folder)), as_json=as_json)
        return
    people: LabellerAgreement | None = None
    if (store := request.labelled_run(folder)) is not None:
        labelled = LabelledRun(store, folder=request.label_folder(store))
        for note in labelled.notes:
            typer.echo(f"note: {note}", err=True)
        opinions = {each.key: each.opinions for each in labelled.attempts if each.opinions is not None}
        if not opinions:
            raise ConfigError(f"{request.label_folder(store)}: no label of an attempt of {store.run_id}", remedy=_LABEL)
        people = labeller_agreement(opinions)
        results: Path | None = store.results
        agreements = _with_labels(store, opinions, request)
    else:
        results, agreements = _compared(request, folder)
    if results is not None and agreements:
        names = names_in(sorted(results.iterdir()), [each.judge_id for each in agreements])
        agreements = [each._replace(name=str(names[each.judge_id])) for each in agreements]
    if as_json:
        run = run_of(results.parent) if results is not None and results.name == "results" else None
        of_run = {"run_id": run.run_id} if run else {}
        of_people = {"people": people.model_dump(mode="json")} if people else {}
        typer.echo(
            json.dumps(
                of_run | of_people | (_plain(agreements, truth) if agreements else {}), indent=2, allow_nan=False
            )
        )
        return
    if people is not None:
        show_people(people)
    groups = _by_judge(agreements)
    if len(groups) > 1:
        # Before the details of each, because which judge to trust is the question.
        rows = {group[0].name: group[0].agreement.overall for group in groups}
        again = " (first verdicts)" if len(agreements) > len(groups) else ""
        wide_console().print(_table(f"Judges side by side: agreement with {truth or 'human labels'}{again}", "", rows))
    for line in _label_lines(groups):
        wide_console().print(line, soft_wrap=True)
    for group in groups:
        _show(group, truth)


class _AgreementRequest(NamedTuple):
    """What the command was asked to compare."""

    files: tuple[str, ...]
    truth: str | None
    verdicts: str | None
    labels: Path | None
    label_column: str
    method: str | None

    def runs(self, folder: Path) -> list[RunStore]:
        """The runs whose order is compared. Raises `ConfigError` for anything else among them."""
        others = [file for file in self.files if Path(file).is_file()]
        if others:
            raise ConfigError(f"{others[0]}: a file among runs", remedy="give one FILE.csv, or two or more runs")
        if self.truth or self.verdicts or self.labels or self.method:
            raise ConfigError(
                "several runs are compared with each other only", remedy="leave the options out, or give one run"
            )
        stores = [_resolved(file, folder) for file in self.files]
        require_different(stores)
        return stores

    def labelled_run(self, folder: Path) -> RunStore | None:
        """The run whose labels are in a folder, if asked for."""
        if self.labels is None or self.labels.is_file() or (self.verdicts is None) == (not self.files):
            return None
        if self.files and Path(self.files[0]).is_file():
            # A CSV has labels of its own.
            return None
        store = _resolved(self.verdicts or self.files[0], folder)
        return store if self.truth is None and self.label_folder(store).is_dir() else None

    def label_folder(self, store: RunStore) -> Path:
        """The folder of labels, also as it is named beside the run."""
        labels = self.labels or Path()
        return store.derived / labels if not labels.exists() and (store.derived / labels).is_dir() else labels


def _compared(request: _AgreementRequest, output: Path) -> tuple[Path | None, list[_JudgeAgreement]]:
    """Judges against ground truth, a CSV of both, or a file of labels."""
    file, truth, labels = request.files[0] if request.files else None, request.truth, request.labels
    run = request.verdicts or (file if labels is not None else None)
    if truth is not None and (file is None or request.verdicts is not None or labels is not None):
        raise ConfigError("--truth needs a run and nothing else", remedy=f"wabe agreement RUN --truth {truth}")
    if file is not None and truth is not None:
        results = _results(file, output)
        measured = measure(results, truth, run=file, method=request.method)
        return results, [
            _JudgeAgreement(judge, compare(each.pairs), each.differences, floor=floor_of_pairs(each.pairs, results))
            for judge, each in measured.items()
        ]
    if file is not None and labels is None and request.verdicts is None:
        if not Path(file).is_file() and Path(file).suffix != ".csv":
            _results(file, output)
            remedy = f"wabe agreement {file} with --truth checks, --labels FILE.csv or --labels labels"
            raise ConfigError(f"{file} is a run, and nothing says what to compare it with", remedy=remedy)
        if request.method is not None:
            raise ConfigError("--method goes with --verdicts", remedy="leave it out")
        pairs = read_pairs(Path(file))
        return None, [_JudgeAgreement("", compare(pairs), floor=floor_of_pairs(pairs, None))]
    is_csv = file is not None and Path(file).is_file()
    if run is not None and labels is not None and not is_csv and (file is None) != (request.verdicts is None):
        if not labels.exists():
            raise ConfigError(f"--labels {labels}: no such file or folder", remedy=_LABEL)
        known, results = read_labels(labels, request.label_column), _results(run, output)
        return results, _against(results, known, labels, request.method)
    raise ConfigError("agreement needs one source", remedy=_SOURCES)


def _with_labels(
    store: RunStore, opinions: Mapping[AttemptKey, Opinions], request: _AgreementRequest
) -> list[_JudgeAgreement]:
    """The run's judges against one label of each attempt of its first epoch; none if it has no verdict file."""
    words = {"success": "1", "failure": "0"}
    known = {
        key.task_id: (words.get(str(each.label), UNDECIDED), dict[str, str]())
        for key, each in opinions.items()
        if key.epoch == 1
    }
    has_verdicts = any((store.results / task).glob("verdicts/*.json") for task in known)
    return _against(store.results, known, request.label_folder(store), request.method) if has_verdicts else []


def _against(results: Path, labels_known: Labels, labels: Path, method: str | None) -> list[_JudgeAgreement]:
    pairs = read_verdicts(results, labels_known, labels_path=labels, method=method)
    return [
        _JudgeAgreement(judge, compare(of_judge), labelled=tuple(of_judge), floor=floor_of_pairs(of_judge, results))
        for judge, of_judge in pairs.items()
    ]


def _resolved(run: str, output: Path) -> RunStore:
    store = resolve_store(run, output)
    store.require_key()
    return store


def _results(run: str, output: Path) -> Path:
    path = Path(run)
    store = (run_of(path) or FolderStore(path, output)) if path.is_dir() else resolve_run(run, output)
    store.require_key()
    folder = store.folder
    return folder / "results" if (folder / "results").is_dir() else folder


def _by_judge(agreements: Sequence[_JudgeAgreement]) -> list[list[_JudgeAgreement]]:
    """The comparisons of each judge: several if it was asked again."""
    groups: dict[str, list[_JudgeAgreement]] = {}
    for each in sorted(agreements, key=lambda each: (once(each.judge_id), repeat_of(each.judge_id))):
        groups.setdefault(once(each.judge_id), []).append(each)
    return list(groups.values())


def _show(group: Sequence[_JudgeAgreement], truth: str | None) -> None:
    """Print a judge's agreement. The groups are its first verdicts'."""
    console, name, agreed = wide_console(), group[0].name, group[0].agreement
    if truth:
        # Before the rates, because a reader will want to inspect these.
        count = counted(sum(len(each.differences) for each in group), "disagreement")
        console.print(Text(f"{count} of {name} with {truth}", style="bold"), soft_wrap=True)
        for line in _difference_lines(group, truth):
            console.print(line, soft_wrap=True)
    title = f"Agreement with {truth or 'human labels'}{f': {name}' if name else ''}"
    rows = {"overall": agreed.overall}
    if len(group) > 1:
        rows = {f"asked, {repeat_of(each.judge_id)} of {len(group)}": each.agreement.overall for each in group}
    console.print(_table(title, "", rows))
    for column, by_value in agreed.groups.items():
        console.print(_table(f"By {column}{' (first verdicts)' if len(group) > 1 else ''}", column, by_value))
    words = _EXCLUDED_BY_TRUTH if truth else _EXCLUDED
    excluded = [f"Left out: {count} {words[why]}" for why, count in agreed.overall.excluded.items()]
    floor = group[0].floor
    said = [floor.words(name or "The judge")] if floor else []
    for note in filter(None, (*agreed.notes, *excluded, *said, _INTERVALS)):
        console.print(Text(one_line(note)), style="dim", soft_wrap=True)


def _difference_lines(group: Sequence[_JudgeAgreement], truth: str) -> Iterator[Text]:
    """Each disagreement: both verdicts, the failed checks with their findings, the judge's reason.

    A judge asked again has one, with the first reason.
    """
    by_verdicts: dict[tuple[str, str], list[JudgeDisagreement]] = {}
    for difference in (difference for each in group for difference in each.differences):
        by_verdicts.setdefault((difference.task_id, difference.judge), []).append(difference)
    for each, *others in by_verdicts.values():
        times = f" ({1 + len(others)} of {len(group)} times)" if len(group) > 1 else ""
        sentence = f": {truth} says {each.truth}, {group[0].name} says {each.judge}{times}"
        yield Text.assemble((each.task_id, "red"), sentence)
        for check in each.failed:
            expected = f", expected {check.expected}" if check.expected else ""
            yield Text(f"  failed: {_short(f'{check.description}{expected}, found {check.found}')}")
        if not each.failed:
            yield Text(f"  {truth}: {_short(each.truth_reason)}")
        yield Text(f"  judge: {_short(each.reason)}")


def _label_lines(groups: Sequence[Sequence[_JudgeAgreement]]) -> Iterator[Text]:
    """Each labelled task on which a judge's first verdict differs: the label, every judge's verdict, their reasons."""
    judged = [(group[0].name, pair) for group in groups for pair in group[0].labelled or ()]
    differing = dict.fromkeys(pair.task_id for _, pair in judged if pair.differs)
    if differing:
        yield Text(f"{counted(len(differing), 'task')} on which a judge differs from the label", style="bold")
    for task_id in differing:
        here = [(name, pair) for name, pair in judged if pair.task_id == task_id and pair.excluded is None]
        opinions_text = ", ".join(f"{name} says {_WORDS[pair.judge]}" for name, pair in here)
        yield Text.assemble((task_id, "red"), f": the label says {_WORDS[here[0][1].human]}, {opinions_text}")
        for name, pair in here:
            if pair.differs:
                yield Text(f"  {name}: {_short(pair.reason)}")


def _short(text: str) -> str:
    return one_line(text, _MAX_SHOWN_CHARS)


def _plain(agreements: Sequence[_JudgeAgreement], truth: str | None) -> dict[str, Any]:
    """For JSON: a single comparison directly; several as `{"judges": {id: …}}`."""
    plain: dict[str, dict[str, Any]] = {}
    for each in agreements:
        disagreements = [difference.model_dump(mode="json") for difference in each.differences]
        of_truth = {"truth": truth, "disagreements": disagreements} if truth else {}
        if each.labelled is not None:
            differing = [
                {
                    "task_id": pair.task_id,
                    "human": _WORDS[pair.human],
                    "judge": _WORDS[pair.judge],
                    "reason": pair.reason,
                }
                for pair in each.labelled
                if pair.differs
            ]
            of_truth = {"disagreements": differing}
        name_entry = {"name": each.name} if each.name else {}
        floor = {"floor": each.floor.model_dump()} if each.floor else {}
        plain[each.judge_id] = name_entry | of_truth | each.agreement.model_dump(mode="json") | floor
    if len(plain) > 1:
        return {"judges": plain}
    ((judge_id, only),) = plain.items()
    return only | ({"judge": judge_id} if judge_id else {})


def _table(title: str, first: str, by_value: dict[str, Rates]) -> Table:
    grid = table(title, (first,), ("n", *_COLUMNS.values()))
    for value, rates in by_value.items():
        cells = [_cell(rates, name) for name in _COLUMNS]
        grid.add_row(Text(one_line(value) or "(blank)"), str(rates.n), *cells)
    return grid


def _cell(rates: Rates, name: str) -> Text:
    value, interval = getattr(rates, name), rates.intervals_95[name]
    if value is None or interval is None:
        return Text("-")
    # Kappa ranges from -1 to 1, the others are fractions.
    if name == "kappa":
        return Text("{:.2f}\n[{:.2f}, {:.2f}]".format(value, *interval))
    return Text("{:.1f} %\n[{:.1f}, {:.1f}]".format(*(100 * number for number in (value, *interval))))


COMMAND = Command(agreement, ("wabe agreement labelled.csv", "wabe agreement latest --truth checks"))

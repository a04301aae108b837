"""`wabe label`, and what `wabe agreement` makes of labels and of several runs: what users see."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judge.commands.app import command_app
from judge.plugins.labels.labelling import begin
from plugins.labels.labelled import a_run_to_label, label_truly, labelled_run, say
from shared.errors import ConfigError

pytestmark = pytest.mark.slow


def run(command: str, *arguments: object) -> str:
    result = CliRunner().invoke(command_app(command), [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_labels_are_imported_and_the_results_updated(tmp_path: Path) -> None:
    store = labelled_run(tmp_path / "out")
    path = tmp_path / "labels.csv"
    path.write_text("task_id,human\nt1,1\nt2,0\n")
    output = run("label", store.folder, "--import", path, "--as", "bert")
    assert output.splitlines() == ["2 labels of bert imported.", "run-1: results.json has the corrected success rate"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--as", "../x"), "--as '../x' is not usable as a name"),
        (("--conflicts", "--labels", "9"), "--conflicts shows what was labelled already"),
        (("--conflicts",), "no attempt on which labels differ"),
        (("--import", "x.csv", "--labels", "9"), "--import takes one run and no other labels"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    store = a_run_to_label(tmp_path, 3)
    with pytest.raises(ConfigError, match=problem):
        run("label", store.folder, *arguments)


def test_a_run_is_named_once(tmp_path: Path) -> None:
    store = a_run_to_label(tmp_path, 3)
    for command in ("label", "agreement"):
        with pytest.raises(ConfigError, match="run-1 is named twice"):
            run(command, store.folder, store.folder)


def test_agreement_shows_conflicts_first_then_pairs_alpha_and_the_judges(tmp_path: Path) -> None:
    store = a_run_to_label(tmp_path, 30)
    label_truly(begin([store], "anna", seed=1))
    label_truly(begin([store], "bert"), wrong=frozenset({4, 9}))
    say(store, "chief", "t4", "failure", adjudicates=True)
    output = run("agreement", store.folder, "--labels", "labels")
    lines = output.splitlines()
    assert lines[0] == "2 attempts on which people differ, 1 to adjudicate: wabe label RUN --conflicts"
    assert lines[1] == "t4: anna says failure, bert says success; adjudicated: failure"
    assert "anna and bert" in output
    assert "Krippendorff's alpha of all: 0.8" in output
    assert "One label of several: the label of more than half" in output
    assert output.index("Krippendorff") < output.index("Agreement with human labels")
    document = json.loads(run("agreement", store.folder, "--labels", store.folder / "labels", "--json"))
    assert document["people"]["rule"] == "majority"
    assert document["overall"]["n"] == 29
    assert document["overall"]["excluded"] == {"undecided": 1}


def test_several_runs_are_put_in_order(tmp_path: Path) -> None:
    runs = [a_run_to_label(tmp_path, 12, run_id=f"run-{number}") for number in (1, 2)]
    label_truly(begin(runs, "anna"))
    output = run("agreement", *(each.folder for each in runs))
    assert "over 12 tasks of all runs" in output
    assert "people's labels (corrected): Kendall's tau unknown, all are tied; same order" in output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("RUN", "CSV"), "a file among runs"),
        (("CSV", "RUN"), "a file among runs"),
        (("RUN", "OTHER", "--labels", "labels"), "several runs are compared with each other only"),
        (("RUN", "--labels", "nowhere"), "--labels nowhere: no such file or folder"),
        (("RUN", "--labels", "EMPTY"), "no label of an attempt of run-1"),
    ],
)
def test_runs_labels_and_files_are_distinguished(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    csv, empty = tmp_path / "a.csv", tmp_path / "empty"
    csv.write_text("human,judge\n1,1\n")
    empty.mkdir()
    named = {
        "RUN": a_run_to_label(tmp_path, 3).folder,
        "OTHER": a_run_to_label(tmp_path, 3, run_id="run-2").folder,
        "CSV": csv,
        "EMPTY": empty,
    }
    with pytest.raises(ConfigError, match=problem):
        run("agreement", *(named.get(each, each) for each in arguments))

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helpers.results import JUDGE, a_finished_run, a_result, a_verdict, write_verdict_on
from judge.commands.app import command_app
from shared.errors import ConfigError
from shared.files import write_json


@pytest.fixture
def app() -> typer.Typer:
    return command_app("agreement")


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "a.csv"
    path.write_text("human,judge,level,task_id\n1,1,easy,a\n0,1,hard,b\n1,,hard,c\n")
    return str(path)


@pytest.fixture
def labels(tmp_path: Path) -> str:
    path = tmp_path / "labels.csv"
    path.write_text("task_id,human\nt1,1\n")
    return str(path)


def run(app: typer.Typer, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_has_overall_and_groups(app: typer.Typer, table: str) -> None:
    value = json.loads(run(app, "--json", table))
    assert (value["overall"]["n"], value["overall"]["precision"]) == (2, 0.5)
    assert value["overall"]["excluded"] == {"unscored": 1}
    assert list(value["groups"]) == ["level"]
    assert value["groups"]["level"]["easy"]["precision"] == 1.0


def test_the_table_shows_rates_intervals_and_what_was_left_out(app: typer.Typer, table: str) -> None:
    output = run(app, table)
    assert "50.0 %" in output
    assert "By level" in output
    assert "Left out: 1 unscored by the judge" in output


def test_verdicts_of_a_run_are_compared_with_labels(app: typer.Typer, labels: str, tmp_path: Path) -> None:
    verdict = a_verdict().model_dump(mode="json")
    write_json(tmp_path / "run" / "results" / "t1" / "verdicts" / "webjudge-aa.json", verdict)
    value = json.loads(run(app, "--verdicts", str(tmp_path / "run"), "--labels", labels, "--json"))
    assert value["judge"] == "webjudge-aa"
    assert value["overall"]["accuracy"] == 1.0


def test_labels_may_stand_in_another_column(app: typer.Typer, tmp_path: Path) -> None:
    verdict = a_verdict().model_dump(mode="json")
    for task_id in ("t1", "t2"):
        write_json(tmp_path / "run" / "results" / task_id / "verdicts" / "webjudge-aa.json", verdict)
    (tmp_path / "l.csv").write_text("task_id,A_human_label,B_human_label\nt1,1,0\nt2,2,0\n")
    arguments = ["--verdicts", str(tmp_path / "run"), "--labels", str(tmp_path / "l.csv"), "--json"]
    value = json.loads(run(app, *arguments, "--label-column", "A_human_label"))
    assert (value["overall"]["n"], value["overall"]["accuracy"]) == (1, 1.0)
    assert value["overall"]["excluded"] == {"not_executable": 1}
    assert value["groups"] == {}


def test_runs_are_found_in_the_folder_that_the_environment_names(
    app: typer.Typer, labels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out" / "runs" / "r1" / "results" / "t1" / "verdicts" / "webjudge-aa.json"
    write_json(path, a_verdict().model_dump(mode="json"))
    monkeypatch.setenv("WABE_OUTPUT_DIR", str(tmp_path / "out"))
    assert json.loads(run(app, "--verdicts", "r1", "--labels", labels, "--json"))["overall"]["n"] == 1


def test_a_run_is_found_by_its_id_and_every_judge_is_shown(app: typer.Typer, labels: str, tmp_path: Path) -> None:
    for judge_id in ("webjudge-aa", "rubric-bb"):
        path = tmp_path / "out" / "runs" / "r1" / "results" / "t1" / "verdicts" / f"{judge_id}.json"
        write_json(path, a_verdict().model_dump(mode="json"))
    arguments = ["--verdicts", "r1", "--labels", labels, "--output-dir", str(tmp_path / "out")]
    assert list(json.loads(run(app, *arguments, "--json"))["judges"]) == ["rubric-bb", "webjudge-aa"]
    output = run(app, *arguments)
    # Their verdicts name the same judge, so the digests tell them apart.
    assert "webjudge (aa)" in output
    assert "webjudge (bb)" in output


@pytest.mark.parametrize(
    "arguments",
    [[], ["{table}", "--verdicts", "r", "--labels", "l"], ["--verdicts", "r"], ["{table}", "--labels", "l"]],
)
def test_one_source_must_be_given(app: typer.Typer, table: str, arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match="needs one source"):
        run(app, *(argument.format(table=table) for argument in arguments))


def test_a_run_alone_says_what_it_can_be_compared_with(app: typer.Typer, tmp_path: Path) -> None:
    (tmp_path / "out" / "runs" / "r1" / "results").mkdir(parents=True)
    for argument in ("r1", str(tmp_path / "out" / "runs" / "r1")):
        with pytest.raises(ConfigError, match=r"r1 with --truth checks, --labels FILE\.csv or --labels labels"):
            run(app, argument, "--output-dir", str(tmp_path / "out"))


def test_a_method_without_verdicts_is_refused(app: typer.Typer, table: str) -> None:
    with pytest.raises(ConfigError, match="--method goes with --verdicts"):
        run(app, table, "--method", "webjudge")


def test_a_run_that_is_not_there_is_named(app: typer.Typer, labels: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run 'r9'"):
        run(app, "--verdicts", "r9", "--labels", labels, "--output-dir", str(tmp_path))


@pytest.fixture
def judged(tmp_path: Path) -> str:
    """A run with a task on which checks and judge differ, and one on which they agree."""
    store = a_finished_run(tmp_path, *(a_result(f"t{n}", verdict=None) for n in range(2)))
    checks = JUDGE.model_copy(update={"method": "checks"})
    failed = {"check": "check 1", "description": "Oak is chosen", "expected": "oak", "found": "pine\x1b[2J"}
    evidence = {"checks": [failed | {"passed": False}]}
    for n, known in enumerate(("failure", "success")):
        write_verdict_on(store.task(f"t{n}"), "checks-1", a_verdict(known, judge=checks, evidence=evidence))
        write_verdict_on(store.task(f"t{n}"), "webjudge-1", a_verdict(reason="It is done.\nReally."))
    return str(store.folder)


def test_disagreements_with_ground_truth_come_before_the_rates(app: typer.Typer, judged: str) -> None:
    lines = run(app, judged, "--truth", "checks").splitlines()
    assert lines[:4] == [
        "1 disagreement of webjudge with checks",
        "t0: checks says failure, webjudge says success",
        "  failed: Oak is chosen, expected oak, found pine [2J",
        "  judge: It is done. Really.",
    ]
    assert "Agreement with checks: webjudge" in lines[4]


def test_a_judge_that_was_asked_again_is_one_judge(app: typer.Typer, judged: str) -> None:
    for path in Path(judged).rglob("webjudge-1.json"):
        path.with_name("webjudge-1.r2.json").write_bytes(path.read_bytes())
    output = run(app, judged, "--truth", "checks")
    assert output.count("Agreement with checks") == 1
    assert "t0: checks says failure, webjudge says success (2 of 2 times)" in output
    assert "asked, 1 of 2" in output
    assert "asked, 2 of 2" in output


def test_json_against_ground_truth_lists_the_disagreements(app: typer.Typer, judged: str) -> None:
    value = json.loads(run(app, judged, "--truth", "checks", "--json"))
    assert (value["truth"], value["judge"], value["overall"]["accuracy"]) == ("checks", "webjudge-1", 0.5)
    assert value["floor"]["right"] == value["overall"]["n"] / 2
    assert "does not beat a judge that looks at no page" in run(app, judged, "--truth", "checks")
    (result,) = value["disagreements"]
    assert (result["task_id"], result["failed"][0]["description"]) == ("t0", "Oak is chosen")


@pytest.mark.parametrize("arguments", [["--truth", "checks"], ["r", "--truth", "checks", "--verdicts", "r"]])
def test_truth_needs_a_run_and_nothing_else(app: typer.Typer, arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match="--truth needs a run"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_disagreements_with_labels_are_listed_with_every_judge_beside_them(app: typer.Typer, tmp_path: Path) -> None:
    models = {"webjudge-aa": "gemini:a", "webjudge-bb": "gemini:b"}
    for judge_id, model in models.items():
        judge = JUDGE.model_copy(update={"model": model})
        results = tmp_path / "run" / "results"
        write_json(results / "t1" / "verdicts" / f"{judge_id}.json", a_verdict(judge=judge).model_dump(mode="json"))
        outcome = "failure" if judge_id == "webjudge-bb" else "success"
        verdict = a_verdict(outcome, judge=judge, reason="no lamp was chosen")
        write_json(results / "t2" / "verdicts" / f"{judge_id}.json", verdict.model_dump(mode="json"))
    labels = tmp_path / "labels.csv"
    labels.write_text("task_id,human\nt1,1\nt2,1\n")
    arguments = ["--verdicts", str(tmp_path / "run"), "--labels", str(labels)]
    output = run(app, *arguments)
    assert output.index("Judges side by side") < output.index("1 task on which a judge differs from the label")
    line = "t2: the label says success, webjudge · gemini:a says success, webjudge · gemini:b says failure"
    assert f"{line}\n  webjudge · gemini:b: no lamp was chosen" in output
    judges = json.loads(run(app, *arguments, "--json"))["judges"]
    (result,) = judges["webjudge-bb"]["disagreements"]
    assert result == {"task_id": "t2", "human": "success", "judge": "failure", "reason": "no lamp was chosen"}
    assert judges["webjudge-aa"]["disagreements"] == []

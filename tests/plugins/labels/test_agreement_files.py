import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.results import JUDGE, a_result, a_verdict
from judge.plugins.labels.agreement import agreement, names_in, pair_of, read_labels, read_pairs, read_verdicts
from judge.results.given_verdicts import given_verdicts_in
from judge.store.layout import TaskStore
from shared.errors import ConfigError
from shared.files import write_json

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "agreement_webjudge_o4_mini.csv"


def file(tmp_path: Path, content: str, name: str = "labels.csv") -> Path:
    path = tmp_path / name
    path.write_text(content)
    return path


def test_the_published_precision_comes_out() -> None:
    if not PUBLISHED.exists():
        pytest.skip("the published labels are not on this machine")
    measured = agreement(read_pairs(PUBLISHED))
    assert measured.overall.n == 1106
    assert {name: round(100 * (rates.precision or 0), 1) for name, rates in measured.groups["benchmark"].items()} == {
        "assistantbench": 100.0,
        "visualwebarena": 74.5,
        "webarena": 81.2,
        "workarena": 100.0,
        "workarena++": 90.0,
    }
    assert round(100 * (measured.overall.precision or 0), 1) == 82.0
    assert sorted(measured.groups) == ["agent", "benchmark"]


def test_rows_are_read_with_their_groups(tmp_path: Path) -> None:
    pairs = read_pairs(file(tmp_path, "\ufefflevel,human,judge\neasy,1,0\n\nhard,success,FAILURE\n"))
    assert [(pair.human, pair.judge, pair.groups) for pair in pairs] == [
        (True, False, {"level": "easy"}),
        (True, False, {"level": "hard"}),
    ]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1,", "unscored"),
        ("1,unscored", "unscored"),
        (",1", "unlabelled"),
        ("not executable,1", "not_executable"),
        ("2,0", "not_executable"),
        ("Not Executable,", "not_executable"),
        ("undecided,1", "undecided"),
    ],
)
def test_what_cannot_be_compared_is_kept_as_excluded(tmp_path: Path, row: str, why: str) -> None:
    assert read_pairs(file(tmp_path, f"human,judge\n{row}\n"))[0].excluded == why


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "no column 'human'; the columns are none"),
        ("human,verdict\n1,1\n", "no column 'judge'; the columns are 'human', 'verdict'"),
        ("human,judge,human\n1,1,1\n", "two columns 'human'"),
        ("human,judge\n", "no rows"),
        ("human,judge\n1,1\n1\n", "line 3: 1 cell, but 2 columns"),
        ("human,judge\n1,1\nyes,1\n", "line 3: human is 'yes' (write 1, 0, 'undecided' or 'not executable')"),
        ("human,judge\n1,2\n", "line 2: judge is '2'"),
        ('human,judge\n1,"1\n', "line 2: not CSV"),
        ("human,judge\n1," + "1" * 200_000 + "\n", "line 2: not CSV: field larger"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path: Path, content: str, expected: str) -> None:
    path = file(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        read_pairs(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.csv: No such file"):
        read_pairs(tmp_path / "none.csv")


def test_a_table_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("human,judge,é\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_pairs(tmp_path / "a.csv")


@given(st.text(alphabet='human,judge\n\r"01 x\0é', max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_table_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.csv"
    path.write_bytes(b"human,judge\n" + text.encode())
    try:
        count = len(read_pairs(path))
    except ConfigError:
        count = 1
    assert count > 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", "task_id,human,level\nt1,1,easy\nt2,not executable,\n"),
        (
            "l.json",
            '[{"task_id": "t1", "human": 1, "level": "easy"},'
            ' {"task_id": "t2", "human": "not executable", "level": null}]',
        ),
    ],
)
def test_labels_are_read_from_csv_and_json(tmp_path: Path, name: str, content: str) -> None:
    assert read_labels(file(tmp_path, content, name)) == {
        "t1": ("1", {"level": "easy"}),
        "t2": ("not executable", {"level": ""}),
    }


def test_labels_may_be_a_plain_mapping(tmp_path: Path) -> None:
    assert read_labels(file(tmp_path, '{"t1": true, "t2": 0}', "l.json")) == {"t1": ("True", {}), "t2": ("0", {})}


@pytest.mark.parametrize(
    ("column", "label"), [("human_judgement_outcome", "Correct"), ("final_human_process_label", "1")]
)
def test_f33_the_labels_of_cua_verifier_bench_are_read_for_outcome_and_process(
    tmp_path: Path, column: str, label: str
) -> None:
    row = {"task_id": "Shop--1", "human_judgement_outcome": "Correct", "final_human_process_label": 1}
    labels = read_labels(file(tmp_path, json.dumps([row]), "annotations.json"), column)
    assert labels["Shop--1"][0] == label
    assert pair_of(label, "0", {}, "here").human is True
    assert pair_of("Incorrect", "1", {}, "here").human is False


@pytest.mark.parametrize("column", ["Operator_human_label", "Operator"])
def test_the_benchmarks_own_labels_are_read_for_one_agent(tmp_path: Path, column: str) -> None:
    label = {"task_id": "t1", "confirmed_task": "Do it", "Operator_human_label": 2, "SeeAct_human_label": 1}
    path = file(tmp_path, json.dumps([label]), "human_label.json")
    assert read_labels(path, column) == {"t1": ("2", {"confirmed_task": "Do it"})}


def test_the_benchmarks_own_labels_name_their_agents_if_none_is_chosen(tmp_path: Path) -> None:
    label = {"task_id": "t1", "Operator_human_label": "2", "SeeAct_human_label": "1"}
    path = file(tmp_path, json.dumps([label]), "human_label.json")
    agents = "labels of 2 agents: 'Operator_human_label', 'SeeAct_human_label'"
    with pytest.raises(ConfigError, match=rf"{agents} \(choose one, such as --label-column Operator_human_label\)"):
        read_labels(path)


def test_the_only_agent_of_the_benchmarks_labels_needs_no_choice(tmp_path: Path) -> None:
    path = file(tmp_path, '[{"task_id": "t1", "SeeAct_human_label": "1"}]', "human_label.json")
    assert read_labels(path) == {"t1": ("1", {})}


def test_json_is_not_a_table_of_labels_and_verdicts(tmp_path: Path) -> None:
    path = file(tmp_path, '[{"task_id": "t1", "Operator_human_label": 2}]', "human_label.json")
    with pytest.raises(ConfigError, match=r"JSON has labels only.*\(wabe agreement --verdicts RUN --labels "):
        read_pairs(path)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("l.csv", "task_id,human\nt,1\nt,0\n", "line 3: task 't' has two labels"),
        ("l.csv", "id,human\nt,1\n", "no column 'task_id'"),
        ("l.json", "{", "line 1: not JSON"),
        ("l.json", "{}", "no labels"),
        ("l.json", "3", "no labels"),
        ("l.json", '[{"task_id": "t"}]', "label 1 has no task_id or no human"),
        ("l.json", '{"participants": {"a": ""}, "results": []}', "not labels: 'participants' has no single value"),
        ("l.json", '[{"task_id": "t", "human": [1]}]', "not labels: 't' has no single value"),
        ("l.json", "[1]", "label 1 has no task_id or no human"),
    ],
)
def test_bad_labels_are_one_line(tmp_path: Path, name: str, content: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_labels(file(tmp_path, content, name))
    assert expected in str(caught.value)


def a_run(tmp_path: Path, verdicts: dict[str, dict[str, Any]]) -> Path:
    for task_id, by_judge in verdicts.items():
        write_json(tmp_path / task_id / "result.json", a_result(task_id).to_json())
        for judge_id, outcome in by_judge.items():
            write_json(tmp_path / task_id / "verdicts" / f"{judge_id}.json", a_verdict(outcome).model_dump(mode="json"))
    return tmp_path


LABELS: dict[str, tuple[str, dict[str, str]]] = {"t1": ("1", {}), "t2": ("0", {}), "t3": ("1", {}), "gone": ("1", {})}
RUN = {
    "t1": {"webjudge-aa": "success", "rubric-bb": "failure"},
    "t2": {"webjudge-aa": "success"},
    "t3": {"webjudge-aa": "unscored"},
    "unlabelled": {"webjudge-aa": "success"},
}


def test_each_judge_of_a_run_is_compared_apart(tmp_path: Path) -> None:
    result = read_verdicts(a_run(tmp_path, RUN), LABELS, labels_path=Path("l.csv"), method=None)
    assert list(result) == ["rubric-bb", "webjudge-aa"]
    compared = agreement(result["webjudge-aa"])
    assert (compared.overall.n, compared.overall.precision) == (2, 0.5)
    assert compared.overall.excluded == {"no_verdict": 1, "unscored": 1}
    assert agreement(result["rubric-bb"]).overall.excluded == {"no_verdict": 3}


def test_level_and_website_of_a_task_are_groups(tmp_path: Path) -> None:
    result = read_verdicts(a_run(tmp_path, RUN), LABELS, labels_path=Path("l.csv"), method=None)
    assert result["webjudge-aa"][0].groups == {"level": "easy", "website": "example.org"}


@pytest.mark.parametrize("method", ["webjudge", "webjudge-aa"])
def test_one_method_may_be_chosen(tmp_path: Path, method: str) -> None:
    result = read_verdicts(a_run(tmp_path, RUN), LABELS, labels_path=Path("l.csv"), method=method)
    assert list(result) == ["webjudge-aa"]


@pytest.mark.parametrize(("labels", "method"), [(LABELS, "agenttrek"), ({"other": ("1", {})}, None)])
def test_nothing_to_compare_is_an_error(tmp_path: Path, labels: Any, method: str | None) -> None:
    with pytest.raises(ConfigError, match=r"no verdict .*for any task of l\.csv"):
        read_verdicts(a_run(tmp_path, RUN), labels, labels_path=Path("l.csv"), method=method)


def test_a_damaged_verdict_is_named(tmp_path: Path) -> None:
    run = a_run(tmp_path, RUN)
    (run / "t1" / "verdicts" / "webjudge-aa.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"webjudge-aa\.json: not a verdict"):
        read_verdicts(run, LABELS, labels_path=Path("l.csv"), method=None)


def test_a_verdict_of_a_task_without_a_result_has_the_labels_groups_only(tmp_path: Path) -> None:
    run = a_run(tmp_path, RUN)
    (run / "t1" / "result.json").write_text(json.dumps([]))
    result = read_verdicts(run, {"t1": ("1", {"agent": "x"})}, labels_path=Path("l.csv"), method="webjudge")
    assert result["webjudge-aa"][0].groups == {"agent": "x"}


def test_names_are_read_from_verdicts(tmp_path: Path) -> None:
    TaskStore(tmp_path / "t1").write_verdict(
        "webjudge-1", a_verdict(judge=JUDGE.model_copy(update={"model": "openai:gpt-4.1-mini"}))
    )
    (tmp_path / "t1" / "verdicts" / "webjudge-2.json").write_text("{")
    names = names_in([tmp_path / "t0", tmp_path / "t1"], ["webjudge-1", "webjudge-2"])
    assert [str(name) for name in names.values()] == ["webjudge · openai:gpt-4.1-mini", "webjudge-2"]
    assert [each.judge_id for each in given_verdicts_in([tmp_path / "t1"])] == ["webjudge-1"]

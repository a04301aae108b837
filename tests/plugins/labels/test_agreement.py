import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.labels.agreement import agreement, group_columns, read_pairs
from judge.results.agreement import LabelledVerdict, rates
from shared.errors import ConfigError


def pairs_of(tp: int, fp: int, tn: int, fn: int, **groups: str) -> list[LabelledVerdict]:
    cells = [(True, True, tp), (False, True, fp), (False, False, tn), (True, False, fn)]
    return [
        LabelledVerdict(human=human, judge=judge, groups=groups) for human, judge, count in cells for _ in range(count)
    ]


COUNTS = st.tuples(*[st.integers(0, 12)] * 4)


def test_each_group_has_its_own_rates() -> None:
    measured = agreement([*pairs_of(2, 0, 1, 0, level="easy"), *pairs_of(0, 1, 1, 0, level="hard")])
    assert measured.overall.n == 5
    assert list(measured.groups) == ["level"]
    assert measured.groups["level"]["easy"].precision == 1.0
    assert measured.groups["level"]["hard"].precision == 0.0


def test_a_column_that_identifies_rows_is_not_a_group() -> None:
    many = [LabelledVerdict(groups={"level": "easy", "url": str(n), "task_id": "t"}) for n in range(11)]
    assert group_columns(many) == ["level"]


def test_a_column_with_too_many_values_is_not_a_group() -> None:
    assert group_columns([LabelledVerdict(groups={"seed": str(n % 201)}) for n in range(402)]) == []
    assert group_columns([LabelledVerdict(groups={"seed": str(n % 200)}) for n in range(402)]) == ["seed"]


def test_a_few_rows_may_each_be_a_group() -> None:
    assert group_columns([LabelledVerdict(groups={"level": name}) for name in ("easy", "hard")]) == ["level"]


def test_rows_of_totals_that_repeat_the_others_are_left_out() -> None:
    once = [*pairs_of(2, 1, 3, 0, agent="a", site="x"), *pairs_of(1, 0, 1, 2, agent="b", site="y")]
    again = [pair.model_copy(update={"groups": {**pair.groups, "agent": "all"}}) for pair in reversed(once)]
    measured = agreement([*again, *once])
    assert measured.overall == rates(once)
    assert list(measured.groups["agent"]) == ["a", "b"]
    assert measured.notes == ("left out: 10 rows with agent = all, the sum of other rows",)


def test_rows_under_all_that_are_not_a_repetition_stay() -> None:
    measured = agreement([*pairs_of(2, 1, 3, 0, agent="a"), *pairs_of(2, 1, 3, 1, agent="all")])
    assert measured.overall.n == 13
    assert list(measured.groups["agent"]) == ["a", "all"]
    assert measured.notes == ()


@given(COUNTS)
def test_groups_partition_the_whole(counts: tuple[int, int, int, int]) -> None:
    measured = agreement([*pairs_of(*counts, level="a"), *pairs_of(1, 2, 3, 4, level="b")])
    assert sum(group.n for group in measured.groups["level"].values()) == measured.overall.n


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("declared", ["", "sep={}\r\n", '"sep={}"\n', "\ufeffsep={}\n"])
def test_cells_may_be_separated_by_commas_semicolons_or_tabs(tmp_path: Path, separator: str, declared: str) -> None:
    lines = ["task_id,human,judge,level", "a,1,1,easy", 'b,0,1,"very\r\nhard"']
    text = declared.format(separator) + "\n".join(line.replace(",", separator) for line in lines) + "\n"
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode())
    assert read_pairs(path) == [
        LabelledVerdict(human=True, judge=True, groups={"task_id": "a", "level": "easy"}),
        LabelledVerdict(human=False, judge=True, groups={"task_id": "b", "level": "very\r\nhard"}),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sep=|\nhuman|judge\n1|1|1\n", "line 3: 3 cells, but 2 columns"),
        ("sep=;\nhuman;judge\n1;x\n", "line 3"),
        ("human;verdict\n1;1\n", "no column 'judge'; the columns are 'human', 'verdict'"),
    ],
)
def test_a_mistake_is_named_with_its_line_whatever_separates_the_cells(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(problem)):
        read_pairs(path)

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.results.agreement import LabelledVerdict, agreement, group_columns, rates, read_pairs
from shared.errors import ConfigError


def pairs_of(tp: int, fp: int, tn: int, fn: int, **groups: str) -> list[LabelledVerdict]:
    cells = [(True, True, tp), (False, True, fp), (False, False, tn), (True, False, fn)]
    return [
        LabelledVerdict(human=human, judge=judge, groups=groups) for human, judge, count in cells for _ in range(count)
    ]


def test_rates_of_a_worked_example() -> None:
    measured = rates(pairs_of(tp=20, fp=5, tn=60, fn=15))
    assert measured.n == 100
    assert measured.accuracy == pytest.approx(0.8)
    assert measured.precision == pytest.approx(0.8)
    assert measured.recall == pytest.approx(20 / 35)
    assert measured.f1 == pytest.approx(40 / 60)
    assert measured.false_positive_rate == pytest.approx(5 / 65)
    assert measured.kappa == pytest.approx((0.8 - 0.575) / (1 - 0.575))


def test_a_proportion_has_wilsons_interval() -> None:
    measured = rates(pairs_of(tp=20, fp=5, tn=60, fn=15)).intervals_95
    assert measured["precision"] == pytest.approx((0.608691, 0.911395), abs=1e-5)


def test_the_interval_of_kappa_is_that_of_the_delta_method() -> None:
    """The 1969 formula is the delta method for multinomial counts; here its gradient is taken by differences."""
    counts = (20, 5, 60, 15)
    n = sum(counts)

    def kappa(tp: float, fp: float, tn: float, fn: float) -> float:
        total = tp + fp + tn + fn
        chance = ((tp + fn) * (tp + fp) + (tn + fp) * (tn + fn)) / total**2
        return ((tp + tn) / total - chance) / (1 - chance)

    shares = [count / n for count in counts]
    slopes = []
    for place in range(4):
        up, down = (
            [share + (step if place == other else 0) for other, share in enumerate(shares)] for step in (1e-6, -1e-6)
        )
        slopes.append((kappa(*up) - kappa(*down)) / 2e-6)
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    variance = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True)) - mean**2
    half = 1.959964 * (variance / n) ** 0.5
    centre = kappa(*counts)
    assert rates(pairs_of(*counts)).intervals_95["kappa"] == pytest.approx((centre - half, centre + half), abs=1e-5)


def test_the_interval_of_f1_is_that_of_the_jaccard_share_carried_over() -> None:
    """20 of 40 that either side calls a success: Wilson says 35.2 % to 64.8 %."""
    measured = rates(pairs_of(tp=20, fp=5, tn=60, fn=15)).intervals_95["f1"]
    assert measured == pytest.approx((2 * 0.351995 / 1.351995, 2 * 0.648005 / 1.648005), abs=1e-5)


def test_a_rate_without_a_denominator_is_none() -> None:
    measured = rates(pairs_of(tp=0, fp=0, tn=4, fn=0))
    assert (measured.precision, measured.recall, measured.f1, measured.kappa) == (None, None, None, None)
    assert (measured.accuracy, measured.false_positive_rate) == (1.0, 0.0)
    assert measured.intervals_95["precision"] is None


def test_no_rows_give_no_rates() -> None:
    assert rates([]).n == 0
    assert rates([]).accuracy is None


def test_perfect_agreement_has_kappa_one() -> None:
    assert rates(pairs_of(3, 0, 3, 0)).kappa == pytest.approx(1.0)


def test_full_disagreement_has_kappa_minus_one() -> None:
    assert rates(pairs_of(0, 3, 0, 3)).kappa == pytest.approx(-1.0)


def test_excluded_pairs_are_counted_and_not_compared() -> None:
    measured = rates(
        [*pairs_of(1, 0, 1, 0), LabelledVerdict(excluded="unscored"), LabelledVerdict(excluded="not_executable")]
    )
    assert measured.n == 2
    assert measured.excluded == {"not_executable": 1, "unscored": 1}


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


COUNTS = st.tuples(*[st.integers(0, 12)] * 4)


@given(COUNTS)
def test_every_rate_lies_in_its_interval_and_range(counts: tuple[int, int, int, int]) -> None:
    measured = rates(pairs_of(*counts))
    for name, interval in measured.intervals_95.items():
        value = getattr(measured, name)
        assert (value is None) == (interval is None)
        if interval is not None:
            assert (-1.0 if name == "kappa" else 0.0) <= interval[0] <= value + 1e-9
            assert value - 1e-9 <= interval[1] <= 1.0


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

"""One rate of attempts, whoever shows it."""

import pytest

from judge.results.entries import counts_of
from judge.results.rates import CountedAttempt, Rate
from judge.results.submission import lost_attempts


def attempts(**outcomes: str) -> list[CountedAttempt]:
    names = {"s": "success", "f": "failure", "u": "unscored", "a": "aborted"}
    return [CountedAttempt(task, names[letter]) for task, letters in outcomes.items() for letter in letters]


def test_tasks_played_a_different_number_of_times_weigh_the_same_in_the_rate_of_all() -> None:
    items = attempts(a="sss", b="f")
    entries = [{"task_id": each.task, "epoch": 1, "verdict": each.outcome} for each in items]
    assert Rate.of(items).rate_of_all == counts_of(entries)["success_rate_of_all"] == 50.0


def test_an_unknown_outcome_is_counted_as_unfinished_and_not_scored() -> None:
    rate = Rate.of([CountedAttempt("a", "odd"), CountedAttempt("b", "success")])
    assert (rate.counts["unfinished"], rate.scored, rate.total) == (1, 1, 2)


def test_a_task_is_completed_if_the_participant_ended_every_attempt() -> None:
    items = [
        CountedAttempt("a", "success", True),
        CountedAttempt("a", "failure", False),
        CountedAttempt("b", "failure", True),
    ]
    assert Rate.of(items).completed_tasks == 1


def test_coverage_and_its_bounds_stand_beside_the_rate_and_change_nothing_in_it() -> None:
    items = [
        CountedAttempt("a", "success", coverage="full"),
        CountedAttempt("b", "failure", coverage="full"),
        CountedAttempt("c", "failure", coverage="off_archive"),
        CountedAttempt("d", "success", coverage="off_archive"),
        CountedAttempt("e", "unscored", coverage="off_archive"),
        CountedAttempt("f", "failure", coverage="uncertain"),
        CountedAttempt("g", "aborted", coverage="uncertain"),
        CountedAttempt("h", "unscored", coverage="uncertain", is_unconfirmed=True),
    ]
    result = Rate.of(items).published()
    coverage = {"full": 2, "uncertain": 3, "off_archive": 3, "unconfirmed": 1, "lower_bound": 25.0, "upper_bound": 62.5}
    assert result.pop("coverage") == coverage
    assert result == Rate.of([each._replace(coverage=None) for each in items]).published()
    assert (result["success_rate"], result["success_rate_of_all"]) == (40.0, 25.0)


def test_bounds_weigh_tasks_as_the_rate_of_all_does() -> None:
    items = [CountedAttempt("a", "success", coverage="full")] * 3
    items += [CountedAttempt("b", "unscored", coverage="off_archive", is_unconfirmed=True)]
    covered = Rate.of(items).covered
    assert covered is not None
    assert (covered.lower_bound, covered.upper_bound) == (50.0, 100.0)


def test_unconfirmed_successes_are_not_lost() -> None:
    items = [CountedAttempt("a", "success", coverage="full")]
    items += [CountedAttempt("b", "unscored", coverage="off_archive", is_unconfirmed=True)]
    rate = Rate.of(items)
    assert rate.is_complete
    assert lost_attempts(rate.published()) == 0
    assert not Rate.of(attempts(a="s", b="u")).is_complete


def test_entries_say_how_their_attempts_are_covered() -> None:
    entries = [
        {"task_id": "a", "epoch": 1, "verdict": "failure", "coverage": "off_archive"},
        # A file may hold anything.
        {"task_id": "b", "epoch": 1, "verdict": "failure", "coverage": ["full"]},
        {"task_id": "c", "epoch": 1, "verdict": "failure", "coverage": "great"},
    ]
    assert {name: count for name, count in counts_of(entries)["coverage"].items() if count} == {
        "off_archive": 1,
        "upper_bound": 33.3,
    }


@pytest.mark.parametrize(
    ("verdict", "code", "count"),
    [
        ("unscored", "off_archive", 1),
        ("unscored", "uncertain_archive", 1),
        ("unscored", None, 0),
        ("failure", "off_archive", 0),
    ],
)
def test_entries_say_which_successes_are_unconfirmed(verdict: str, code: str | None, count: int) -> None:
    entry = {"task_id": "a", "epoch": 1, "verdict": verdict, "reason_code": code, "coverage": "off_archive"}
    assert counts_of([entry])["coverage"]["unconfirmed"] == count

"""One rate of attempts, whoever shows it."""

from judge.results.entries import counts_of
from judge.results.rates import CountedAttempt, Rate


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


def test_coverage_and_its_upper_bound_stand_beside_the_rate_and_change_nothing_in_it() -> None:
    items = [
        CountedAttempt("a", "success", coverage="full"),
        CountedAttempt("b", "failure", coverage="full"),
        CountedAttempt("c", "failure", coverage="off_archive"),
        CountedAttempt("d", "success", coverage="off_archive"),
        CountedAttempt("e", "unscored", coverage="off_archive"),
        CountedAttempt("f", "failure", coverage="uncertain"),
    ]
    result = Rate.of(items).published()
    assert result.pop("coverage") == {"full": 2, "uncertain": 1, "off_archive": 3, "upper_bound": 60.0}
    assert result == Rate.of([each._replace(coverage=None) for each in items]).published()
    assert result["success_rate"] == 40.0


def test_entries_say_how_their_attempts_are_covered() -> None:
    entries = [
        {"task_id": "a", "epoch": 1, "verdict": "failure", "coverage": "off_archive"},
        # A file may hold anything.
        {"task_id": "b", "epoch": 1, "verdict": "failure", "coverage": ["full"]},
        {"task_id": "c", "epoch": 1, "verdict": "failure", "coverage": "great"},
    ]
    assert counts_of(entries)["coverage"] == {"full": 0, "uncertain": 0, "off_archive": 1, "upper_bound": 33.3}

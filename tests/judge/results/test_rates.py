"""One rate of attempts, whoever shows it."""

from judge.results.rates import Counted, Rate
from judge.results.submission import counts_of


def attempts(**outcomes: str) -> list[Counted]:
    names = {"s": "success", "f": "failure", "u": "unscored", "a": "aborted"}
    return [Counted(task, names[letter]) for task, letters in outcomes.items() for letter in letters]


def test_tasks_played_a_different_number_of_times_weigh_the_same_in_the_rate_of_all() -> None:
    listed = attempts(a="sss", b="f")
    entries = [{"task_id": each.task, "epoch": 1, "verdict": each.outcome} for each in listed]
    assert Rate.of(listed).rate_of_all == counts_of(entries)["success_rate_of_all"] == 50.0


def test_an_outcome_that_is_none_is_counted_as_unfinished_and_not_scored() -> None:
    rate = Rate.of([Counted("a", "odd"), Counted("b", "success")])
    assert (rate.counts["unfinished"], rate.scored, rate.total) == (1, 1, 2)


def test_a_task_is_completed_if_the_participant_ended_every_attempt() -> None:
    listed = [Counted("a", "success", True), Counted("a", "failure", False), Counted("b", "failure", True)]
    assert Rate.of(listed).completed_tasks == 1

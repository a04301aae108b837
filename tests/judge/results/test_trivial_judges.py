"""Judges that look at no page, and what is said of a judge that does not beat them."""

import pytest

from helpers.results import a_result, a_step
from judge.results.agreement import LabelledVerdict
from judge.results.trivial_judges import JudgeFloor, Telemetry, floor_of, floor_of_pairs, trivial_verdicts


def known(task: str, steps: int, *, truth: bool) -> tuple[Telemetry, bool]:
    return Telemetry(task, features=(float(steps),)), truth


# Of each of six tasks one attempt with three steps, which did it, and one with eight.
ATTEMPTS = [known(f"t{task}", steps + task % 2, truth=steps == 3) for task in range(6) for steps in (3, 8)]


def test_telemetry_is_weighed_by_what_the_other_tasks_teach() -> None:
    assert trivial_verdicts(ATTEMPTS)["telemetry"] == [truth for _, truth in ATTEMPTS]


def test_without_other_tasks_nothing_can_be_learnt() -> None:
    assert "telemetry" not in trivial_verdicts([known("t", 3, truth=True), known("t", 8, truth=False)])


def test_what_an_attempt_shows_without_its_pages() -> None:
    attempt = a_result("t1", steps=(a_step(0),)).model_copy(update={"final_answer": "I have opened the lamps page."})
    task = attempt.task.model_copy(update={"task": "Open the lamps page"})
    assert Telemetry.of(attempt.model_copy(update={"task": task})).repeats_task
    assert not Telemetry.of(attempt.model_copy(update={"task": task, "final_answer": None})).repeats_task
    over = attempt.model_copy(update={"stop_reason": "max_steps"})
    assert not Telemetry.of(over).is_within_budget


@pytest.mark.parametrize(("said", "right"), [([True] * 12, 6), ([truth for _, truth in ATTEMPTS], 12)])
def test_a_judge_must_beat_the_best_of_them(said: list[bool], right: int) -> None:
    judged = [(telemetry, truth, verdict) for (telemetry, truth), verdict in zip(ATTEMPTS, said, strict=True)]
    floor = floor_of(judged)
    assert floor is not None
    says = f"X does not beat a judge that looks at no page (telemetry): right on {right} of 12 attempts, that one on 12"
    assert floor.words("X").startswith(says)


def test_a_judge_that_is_better_by_chance_is_not_shown_to_be_better() -> None:
    assert "is not shown to beat" in JudgeFloor(n=3, right=3, trivial={"always yes": 2}, p_value=1.0).words("X")
    assert JudgeFloor(n=30, right=30, trivial={"always yes": 15}, p_value=1e-4).words("X") == ""


def test_labels_without_recordings_have_one_trivial_judge() -> None:
    floor = floor_of_pairs([LabelledVerdict(human=True, judge=False), LabelledVerdict(excluded="unscored")], None)
    assert floor == JudgeFloor(n=1, right=0, trivial={"always yes": 1}, p_value=1.0)
    assert floor_of_pairs([], None) is None

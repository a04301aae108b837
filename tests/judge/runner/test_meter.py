"""A run whose meter has ended: what it said of participants in its last moments is withdrawn, and nothing else."""

from pathlib import Path

import pytest

from helpers.results import a_finished_run, a_result
from judge.records.steps import StopReason
from judge.results.run_record import withdraw_since
from judge.trajectory.record import Attempt

NOTICED = 1_000_000.0


def attempt_ended_before(task_id: str, seconds_before: float, stop_reason: StopReason = "participant_error") -> Attempt:
    attempt = a_result(task_id, stop_reason=stop_reason)
    at = NOTICED - seconds_before
    return attempt.model_copy(update={"started_at": at - 5, "ended_at": at})


@pytest.mark.parametrize(
    ("attempt", "is_withdrawn"),
    [
        (attempt_ended_before("t", 0.5), True),
        (attempt_ended_before("t", 3.0), False),
        # The participant ended it itself: it had an answer.
        (attempt_ended_before("t", 0.5, "max_steps"), False),
    ],
    ids=["in the last moment", "earlier", "not an error"],
)
def test_only_an_error_of_the_participant_in_the_last_moments_is_withdrawn(
    tmp_path: Path, attempt: Attempt, is_withdrawn: bool
) -> None:
    store = a_finished_run(tmp_path, attempt)
    withdraw_since(store, NOTICED - 2.0, "the meter ended")
    assert (store.task("t").folder / "withdrawn.json").is_file() is is_withdrawn
    assert (store.task("t").folder / "result.json").is_file() is not is_withdrawn
    assert (store.read_run() or {})["state"] == "stopped"

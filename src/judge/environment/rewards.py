"""The reward of an episode: one number for a judged attempt, and an error for any other."""

import logging
from pathlib import Path

from judge.config import RunConfig
from judge.environment.errors import EpisodeFault
from judge.evaluators.checks import evaluate
from judge.records.assertions import assertions_in
from judge.records.ledger import CERTAIN
from judge.records.policies import PolicyResult
from judge.records.verdicts import is_unconfirmed
from judge.results.progress import progress_of
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Attempt, Trajectory

_log = logging.getLogger(__name__)
# Only the judge's operator may read why: the reason quotes the task's checks.
_SEE_LOG = "the environment's log says why"
_WITHHELD = f"it could not be judged; {_SEE_LOG}"


def reward_of(attempt: Attempt, folder: Path, config: RunConfig) -> float:
    """The reward of a recorded attempt, whose files are in `folder`, as the settings say.

    Blocks. Raises `EpisodeFault` if the attempt was not scored, and `TrajectoryError` if its files cannot be read.
    """
    if attempt.is_aborted and attempt.blame == "internal":
        _log.warning("task %s: %s", attempt.task.task_id, attempt.error)
        raise EpisodeFault("aborted", "internal", _SEE_LOG)
    if attempt.is_aborted:
        if attempt.stop_reason == "site_blocked":
            raise EpisodeFault("blocked", attempt.blame, attempt.error or "")
        raise EpisodeFault("lost" if attempt.blame == "user" else "aborted", attempt.blame, attempt.error or "")
    if attempt.verdict is not None and is_unconfirmed(attempt.outcome, attempt.verdict.reason_code):
        # The reason itself quotes requests, but none of the checks.
        raise EpisodeFault("unscored", "site", attempt.verdict.reason)
    if attempt.outcome not in ("success", "failure"):
        _log.warning("task %s: %s", attempt.task.task_id, attempt.cause)
        raise EpisodeFault("unscored", "judge model", _WITHHELD)
    reward = float(attempt.outcome == "success")
    if config.reward == "progress":
        reward = _progress(attempt, folder, config)
    return max(-1.0, reward - config.policy_penalty * _violated(attempt)) if config.policy_penalty else reward


def _progress(attempt: Attempt, folder: Path, config: RunConfig) -> float:
    """The share of the checks that passed, less the share that held before the participant did anything.

    An attempt that failed for another reason than its checks has made none. Key points hold for nothing at first.
    """
    checks = assertions_in(attempt.verdict)
    if not checks:
        share = progress_of(attempt.verdict)
        return float(attempt.outcome == "success") if share is None else share
    trajectory = load_trajectory(folder)
    if attempt.frozen is not None:
        # What was met on answers that the archive does not have for certain adds nothing.
        checks = list(evaluate(trajectory, config.sites, CERTAIN))
    passed = sum(each.passed is True for each in checks)
    at_first = _held_at_first(trajectory, config)
    return max(0.0, round((passed - at_first) / len(checks), 4))


def _held_at_first(trajectory: Trajectory, config: RunConfig) -> int:
    """How many checks held at the first look.

    What is known only at the end (requests, downloads, fetched answers) did if it must not be there.
    """
    checks = zip(trajectory.task.checks, evaluate(_first_look(trajectory), config.sites), strict=True)
    return sum(declared.inverted if assertion.passed is None else assertion.passed for declared, assertion in checks)


def _first_look(trajectory: Trajectory) -> Trajectory:
    """The trajectory as it was when the first observation was sent."""
    first = trajectory.attempt.steps[0].model_copy(
        update={"reply": "", "action": None, "outcome": None, "asked": None, "claimed_trace": None}
    )
    nothing = {"steps": (first,), "final_look": None, "final_answer": None, "fetched": (), "network": None}
    attempt = trajectory.attempt.model_copy(update=nothing)
    why = "nothing was done yet"
    return trajectory.model_copy(update={"attempt": attempt, "network": None, "network_missing": why})


def _violated(attempt: Attempt) -> int:
    """How many policies were violated, or are presumed to be. Raises `EpisodeFault` if unknown."""
    if any(_state(each) is None for each in attempt.policies):
        _log.warning("task %s: a policy is undecided", attempt.task.task_id)
        raise EpisodeFault("unscored", "internal", _WITHHELD)
    return sum(_state(each) is True for each in attempt.policies)


def _state(policy: PolicyResult) -> bool | None:
    return True if policy.presumed else policy.violated

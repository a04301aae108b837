"""Judges stored trajectories: live judging, resuming and `wabe score` all use `judge_stored`.

A verdict is valid only for the trajectory whose digest it names, and that digest is recomputed from the files.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

from judge.judges.base import Judge
from judge.judges.code import with_plugins
from judge.records.sites import OFF_SITE
from judge.records.steps import StopReason
from judge.records.verdicts import INTERNAL_ERROR, MODEL_UNREACHED, OFF_SITE_PLAY, UNCONFIRMED, Verdict
from judge.store.bounds import bounded
from judge.store.layout import TaskStore
from judge.trajectory.files import load_trajectory
from judge.trajectory.record import Trajectory
from shared.concurrency import for_each
from shared.errors import TrajectoryError
from shared.models import Record

_log = logging.getLogger(__name__)
T = TypeVar("T")

ScoreOutcome = Literal["success", "failure", "unscored", "aborted", "broken"]
# Stop reasons that mean score 0 without asking a judge. They are also the `reason_code` of the verdict.
WHY_ZERO: Mapping[StopReason, str] = MappingProxyType(
    {
        "max_steps": "over the step budget, no answer",
        "task_timeout": "over the time budget, no answer",
        "participant_error": "the participant failed",
        "unreadable_replies": "the participant kept sending replies that could not be read",
    }
)
# The key of a verdict's rules version, as `differences` names it.
RULES = "judge.prompt_version"


class Scored(Record):
    """The result for one folder. Aborted and broken ones have no `verdict`.

    `kept`: an earlier verdict was reused. `replaced`: the stored verdict was not what the recording gives.
    """

    folder: Path
    outcome: ScoreOutcome
    reason: str
    kept: bool = False
    replaced: bool = False
    verdict: Verdict | None = None


async def with_last_probe(
    items: Iterable[T], settle: Callable[[T, bool], Awaitable[bool]], judge: Judge, *, at_once: int
) -> None:
    """`settle` each item; at the end once more, with `is_last` true, those for which it returned false because the
    judge model could not be reached.
    """
    waiting: list[T] = []

    async def first(item: T) -> None:
        if not await settle(item, False):
            waiting.append(item)

    async def last(item: T) -> None:
        await settle(item, True)

    await for_each(items, first, at_once=at_once)
    judge.probe()
    await for_each(waiting, last, at_once=at_once)


def is_unreached(verdict: Verdict | None) -> bool:
    """Whether there is no decision because the judge model could not be reached."""
    return verdict is not None and verdict.reason_code == MODEL_UNREACHED


async def judge_stored(
    store: TaskStore,
    judge: Judge,
    *,
    off_site: str = "flag",
    again: bool = False,
    by_this_code: bool = False,
    asking: Callable[[], None] = lambda: None,
) -> Scored:
    """Judge the trajectory in a task's folder and write the verdict beside it. Raises only `CancelledError`.

    In this order: an aborted attempt is not judged; what the recording alone decides (some stop reasons, and checks) is
    always recomputed, so that an edited verdict does not stay; this judge's existing verdict on this very trajectory is
    reused, unless it is unscored or `again` is set; otherwise `asking` is called and the judge decides. If a task has
    several judges, all verdicts are written and the first one counts. `by_this_code`: a verdict that other code gave is
    not reused either, and kept beside the new one.
    """
    folder = store.folder
    try:
        trajectory = await asyncio.to_thread(load_trajectory, folder)
    # An `OSError` means that a folder or file cannot be read, which is not the judge's fault either.
    except (TrajectoryError, OSError) as error:
        return Scored(folder=folder, outcome="broken", reason=str(error))
    # Isolation boundary: an internal error fails only this verdict; the trajectory can be judged again.
    except Exception as error:  # noqa: BLE001
        return Scored(folder=folder, outcome="unscored", reason=_internal(store, error))
    if trajectory.is_aborted:
        reason = f"aborted, so not judged: {trajectory.error or trajectory.stop_reason}"
        return Scored(folder=folder, outcome="aborted", reason=reason)

    async def judged(one: Judge) -> Scored:
        before = recomputed_verdict = None
        is_outdated = False
        try:
            before = verdict_on_file(store, one.id, trajectory)
            is_outdated = by_this_code and not is_by_this_code(before, one)
            is_lost = before is None or (before.outcome == "unscored" and before.reason_code not in UNCONFIRMED)
            is_due = is_lost or again or is_outdated
            if is_due and why_settled(trajectory, off_site) is None:
                asking()
            recomputed_verdict = await asyncio.to_thread(recomputed, one, trajectory, off_site)
            if recomputed_verdict is not None:
                verdict = recomputed_verdict
            elif before is not None and not is_due:
                return Scored(folder=folder, outcome=before.outcome, reason=before.reason, kept=True, verdict=before)
            else:
                verdict = one.confirmed(await one.judge(trajectory), trajectory)
        except TrajectoryError as error:
            return Scored(folder=folder, outcome="broken", reason=str(error))
        # Isolation boundary, as above.
        except Exception as error:  # noqa: BLE001
            reason = _internal(store, error)
            verdict = Verdict(outcome="unscored", reason=reason, reason_code=INTERNAL_ERROR, judge=one.info)
        verdict = with_plugins(bounded(verdict), trajectory).model_copy(update={"trajectory_sha256": trajectory.sha256})
        is_replaced = recomputed_verdict is not None and before is not None and bool(differences(before, verdict))
        try:
            if is_outdated or _is_news(verdict, before, is_recomputed=recomputed_verdict is not None):
                await asyncio.to_thread(_write, store, one.id, verdict, before if is_outdated else None)
        except OSError as error:
            reason = f"{folder / 'verdicts'}: cannot be written: {error.strerror or error}"
            return Scored(folder=folder, outcome="broken", reason=reason)
        return Scored(
            folder=folder, outcome=verdict.outcome, reason=verdict.reason, replaced=is_replaced, verdict=verdict
        )

    scored = [await judged(one) for one in judge.judges_of(trajectory.task)]
    return scored[0]


def is_by_this_code(verdict: Verdict | None, judge: Judge) -> bool:
    """Whether there is a verdict, and the judging code that gave it is the judge's."""
    info = verdict.judge if verdict else None
    return info is not None and info.code_checksum == judge.info.code_checksum


def _write(store: TaskStore, judge_id: str, verdict: Verdict, earlier: Verdict | None) -> None:
    if earlier is not None:
        store.keep_verdict(judge_id, earlier)
    store.write_verdict(judge_id, verdict)


def _is_news(verdict: Verdict, before: Verdict | None, *, is_recomputed: bool) -> bool:
    """Whether to store a verdict: a judge that fails now must not replace its earlier verdict."""
    if before is None or is_recomputed:
        return before is None or bool(differences(before, verdict))
    return verdict.outcome != "unscored" or before.outcome == "unscored"


def recomputed(judge: Judge, trajectory: Trajectory, off_site: str = "flag") -> Verdict | None:
    """The judge's verdict as it is stored, if the recording alone decides it, without a model; otherwise `None`.

    Blocks. Raises `TrajectoryError`.
    """
    settled = why_settled(trajectory, off_site)
    if settled is not None:
        verdict: Verdict | None = Verdict(
            outcome="failure", reason=settled.reason, reason_code=settled.code, judge=judge.info
        )
    else:
        verdict = judge.recompute(trajectory)
    if verdict is None:
        return None
    verdict = judge.confirmed(verdict, trajectory)
    return bounded(verdict).model_copy(update={"trajectory_sha256": trajectory.sha256})


def differences(stored: Verdict, again: Verdict) -> dict[str, tuple[object, object]]:
    """What differs between a stored verdict and its recomputation, by key: the stored value and the recomputed one."""
    before, after = (_comparable(verdict) for verdict in (stored, again))
    # Keys that only the recomputed one has are those that older versions did not record.
    return {key: (before[key], after.get(key)) for key in before if before[key] != after.get(key)}


def _comparable(verdict: Verdict) -> dict[str, object]:
    # Round-tripped, as when read from a file: a surrogate pair becomes one character.
    recorded_fields = json.loads(json.dumps(verdict.model_dump(mode="json", exclude={"judge", "trajectory_sha256"})))
    judge = verdict.judge
    return {"flags": [], **recorded_fields, RULES: None if judge is None else judge.prompt_version}


class FailureReason(NamedTuple):
    """Why an attempt failed, for programs and for people."""

    code: str
    reason: str


def why_settled(trajectory: Trajectory, off_site: str) -> FailureReason | None:
    """Why the attempt failed, if its stop reason settles that; `None` if a judge must decide."""
    stop = trajectory.stop_reason
    if stop is not None and stop in WHY_ZERO:
        why = WHY_ZERO[stop]
        return FailureReason(stop, f"{why}: {trajectory.error}" if trajectory.error else why)
    if off_site == "fail" and any(OFF_SITE in step.flags for step in trajectory.observations):
        return FailureReason(OFF_SITE_PLAY, "off-site play: a page outside the task's website was visited")
    return None


def _internal(store: TaskStore, error: Exception) -> str:
    _log.error("judging %s", store.folder, exc_info=error)
    return f"internal error while judging ({type(error).__name__}); see the log"


def verdict_on_file(store: TaskStore, judge_id: str, trajectory: Trajectory) -> Verdict | None:
    """This judge's stored verdict on this very trajectory, or `None`.

    If the recorder wrote no digests (foreign layouts), a verdict without a digest is accepted.
    """
    verdict = store.read_verdict(judge_id)
    if verdict is None or (verdict.trajectory_sha256 is None and trajectory.is_digested):
        return None
    return verdict if verdict.trajectory_sha256 in (None, trajectory.sha256) else None

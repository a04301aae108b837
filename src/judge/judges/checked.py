"""Judges by a task's declared checks: no model, no network; the same trajectory always gives the same verdict."""

import asyncio
from pathlib import Path

from judge.config import RunConfig
from judge.evaluators.checks import evaluate
from judge.judges.base import Judge, judge_id
from judge.judges.code import installed_code
from judge.judges.confirming import confirmed
from judge.records.assertions import Assertion
from judge.records.checks import NO_CHECKS
from judge.records.tasks import Task
from judge.records.verdicts import NO_PROMPTS, OFFLINE, WITHOUT_CHECKS, ImageScore, JudgeInfo, Verdict, VerdictOutcome
from judge.trajectory.record import CURRENT_RULES, Trajectory

METHOD = "checks"
_FOREIGN = (
    "recorded by another program: origins of frames, editors and senders of requests are unknown, and not checked"
)
_SCORE_OF_PASS, _SCORE_OF_REST = 5, 1


class ChecksJudge(Judge):
    """Decides by the checks that the trajectory's task declares.

    The checks are not part of `id`: they belong to the task, so the trajectory's digest covers them, and a verdict is
    valid for that digest only.
    """

    def __init__(self, config: RunConfig) -> None:
        code = installed_code()
        self._sites = config.sites
        self.id = judge_id(METHOD, CURRENT_RULES, code["code_checksum"], {"allowed_sites": list(config.sites.shared)})
        self.info = JudgeInfo(
            method=METHOD,
            model=OFFLINE,
            prompt_set=NO_PROMPTS,
            prompt_version=CURRENT_RULES,
            # There are no prompts: the code that evaluates the checks decides.
            prompt_checksum=code["code_checksum"],
            threshold=config.score_threshold,
            **code,
        )

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """Success if every check passes; unscored if there are none, or if evidence for one was not recorded."""
        # In a thread, because reading snapshots of several megabytes takes seconds.
        return await asyncio.to_thread(self.recompute, trajectory)

    def recompute(self, trajectory: Trajectory) -> Verdict:
        """The same as `judge`: checks need nothing but the recording."""
        if not trajectory.task.checks:
            return Verdict(
                outcome="unscored", reason=NO_CHECKS, reason_code=WITHOUT_CHECKS, judge=self.info, cost_usd=0.0
            )
        info = self.info
        if trajectory.attempt.self_recorded:
            info = info.model_copy(update={"note": _FOREIGN})
        assertions = evaluate(trajectory, self._sites)
        verdict = Verdict(
            outcome=_outcome(assertions),
            reason=reason_of(assertions),
            judge=info,
            key_points=tuple(each.description for each in assertions),
            image_judge_record=_scores(trajectory, assertions),
            evidence={"checks": [each.model_dump(mode="json") for each in assertions]},
            cost_usd=0.0,
        )
        return confirmed(
            verdict,
            trajectory,
            lambda accepted: all(each.passed for each in evaluate(trajectory, self._sites, accepted)),
        )

    def confirmed(self, verdict: Verdict, trajectory: Trajectory) -> Verdict:
        """The verdict itself: `recompute` has looked at what each check rests on."""
        return verdict


class CheckedJudge(Judge):
    """Combines checks with a judge model: tasks that declare checks are decided by them without a model call.

    With `judge_checked_tasks` the model judges those as well, and `truth` says which of the two verdicts counts.
    """

    def __init__(self, checks: ChecksJudge, model: Judge, config: RunConfig) -> None:
        # The run's judge has the model judge's id; the verdict file of a task with checks is named by `ChecksJudge`.
        self.id = model.id
        self.info = model.info
        self._checks = checks
        self._model = model
        self._judges_both = config.judge_checked_tasks
        self._truth = config.truth

    def judges_of(self, task: Task) -> tuple[Judge, ...]:
        """The judges of a task: first the one whose verdict counts, then those whose verdicts are also stored."""
        if not task.checks:
            return (self._model,)
        if not self._judges_both:
            return (self._checks,)
        return (self._model, self._checks) if self._truth == "judge" else (self._checks, self._model)

    def prefetch(self, task: Task, screenshot: Path | None = None) -> None:
        """Prefetch for tasks that the model judges."""
        for judge in self.judges_of(task):
            judge.prefetch(task, screenshot)

    def probe(self) -> None:
        """See `Judge`."""
        self._model.probe()

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The verdict that counts."""
        return await self.judges_of(trajectory.task)[0].judge(trajectory)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


def reason_of(assertions: tuple[Assertion, ...]) -> str:
    """The checks that did not pass, with what was found instead."""
    unknown = [each for each in assertions if each.passed is None]
    failed = [each for each in assertions if each.passed is False]
    if unknown:
        return "; ".join(f"{each.check} ({each.description}) cannot be decided: {each.found}" for each in unknown)
    if failed:
        return "; ".join(f"{each.description}: failed, found {each.found}" for each in failed)
    return f"all {len(assertions)} checks passed" if len(assertions) > 1 else "the check passed"


def _outcome(assertions: tuple[Assertion, ...]) -> VerdictOutcome:
    if any(each.passed is None for each in assertions):
        return "unscored"
    return "success" if all(each.passed for each in assertions) else "failure"


def _scores(trajectory: Trajectory, assertions: tuple[Assertion, ...]) -> tuple[ImageScore, ...]:
    """A score for each screenshot: 5 if a check first passes there, else 1."""
    first: dict[int, list[str]] = {}
    for each in assertions:
        if each.step is not None:
            first.setdefault(each.step, []).append(each.description)
    return tuple(
        ImageScore(
            Response="; ".join(f"first passed here: {text}" for text in first.get(step.index, []))
            or "no check first passed here",
            Score=_SCORE_OF_PASS if step.index in first else _SCORE_OF_REST,
        )
        for step in trajectory.steps
        if step.screenshot is not None
    )

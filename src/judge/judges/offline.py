"""The offline judge: a deterministic baseline that reads the recorded snapshots. No model, no network, no leaderboard.

It runs the three stages of WebJudge by rule:

1. *Key points* are the scenario's own `key_points`, or else the clauses of the task's text. Each becomes claims: a page
   or section is open, something shows, a search was made, a switch is on, a listing is sorted or within a price range,
   the cart holds something, something was confirmed, a dialog was answered (`offline_claims`).
2. *Relevance*, 1 to 5, of each observation: 5 when a claim is met there, 4 when the page's names hold every specific
   term, 3 when they hold one or a switch contradicts, 2 when only text or links mention it, 1 otherwise.
3. *Outcome*: success needs every key point met. A page counts by its title, main heading, path, or the section its
   address points at under a name that the site gives it; a link that names a thing is not the thing; an error page or
   an empty result is nothing; a page whose name says more than was asked gives way to a link that fits exactly
   (`offline_pages`). States count as they stand where they show last; sort orders and price limits are checked on the
   values listed (`offline_states`). Steps on the way have to show in order; the last clause has to show at the end,
   unless it was confirmed on the way (`offline_decision`).

A participant's thoughts, answers and action parameters are never read. Its typed text counts only where the site acted
on it. Without snapshots (foreign layouts) or without anything to check the verdict is unscored.
"""

import asyncio
import hashlib
import json
from pathlib import Path

from judge.config import RunConfig
from judge.files import read_text, reason_of
from judge.judges.offline_claims import Claim, point_claims, task_claims
from judge.judges.offline_decision import Decision, decide
from judge.judges.offline_page import View, view
from judge.trajectory import Trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.models import ImageScore, JudgeInfo, Step, Task, Verdict

MODEL = "offline"
RULES_VERSION = "1"
NOTE = (
    "Offline baseline: fixed rules over recorded page snapshots, without a model. It is no leaderboard judge, and its "
    "verdicts are for demos and tests only."
)
Points = tuple[tuple[str, tuple[Claim, ...]], ...]


class OfflineJudge:
    """`judge_model = "offline"` behind the judges' protocol. Same trajectory, same verdict, always."""

    def __init__(self, config: RunConfig, *, package_version: str, code_checksum: str) -> None:
        check_method(config)
        self._off_site = config.off_site
        self.info = JudgeInfo(
            method=config.judge_method,
            model=MODEL,
            prompt_set="offline-rules",
            prompt_version=RULES_VERSION,
            # The rules are code: there are no prompts to change them by.
            prompt_checksum=code_checksum,
            threshold=config.score_threshold,
            package_version=package_version,
            code_checksum=code_checksum,
            note=NOTE,
        )

    @property
    def id(self) -> str:
        """`webjudge-<digest>` over the rules, everything else in `JudgeInfo`, and what is off-site play."""
        said = {**self.info.model_dump(mode="json"), "off_site": self._off_site}
        canonical = json.dumps(said, sort_keys=True)
        return f"{self.info.method}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"

    async def prefetch_task(self, task: Task) -> None:
        """Nothing to ask ahead."""

    async def prefetch_step(self, task: Task, step: Step, trajectory_dir: str) -> None:
        """Nothing to ask ahead."""

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """Decide by the rules above."""
        return await asyncio.to_thread(self._judge, trajectory)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _judge(self, trajectory: Trajectory) -> Verdict:
        points = key_points(trajectory.task)
        texts = tuple(text for text, _ in points)
        try:
            views = load_views(trajectory)
        except TrajectoryError as error:
            return self._unscored(f"a recorded snapshot cannot be read: {error}", texts)
        if not views:
            return self._unscored("there are no recorded snapshots to judge by", texts)
        if not any(claims for _, claims in points):
            return self._unscored("nothing in the task is of a kind that this baseline can check", texts)
        decision = decide([claims for _, claims in points], views)
        return Verdict(
            outcome="success" if decision.success else "failure",
            reason=reason(texts, decision),
            judge=self.info,
            key_points=texts,
            image_judge_record=tuple(
                ImageScore(Response=f"Step {shown.index}: {shown.title!r}, relevance {score} by rule.", Score=score)
                for shown, score in zip(views, decision.relevance, strict=True)
                if not trajectory.steps or trajectory.steps[shown.index].screenshot is not None
            ),
            evidence={
                "baseline": NOTE,
                "key_points": [
                    {"key_point": text, "met": finding.met, "step": _counted(finding.step), "why": finding.why}
                    for text, finding in zip(texts, decision.findings, strict=True)
                ],
            },
            cost_usd=0.0,
        )

    def _unscored(self, why: str, texts: tuple[str, ...]) -> Verdict:
        return Verdict(
            outcome="unscored",
            reason=f"Offline baseline, no leaderboard judge: {why}.",
            judge=self.info,
            key_points=texts,
            evidence={"baseline": NOTE},
            cost_usd=0.0,
        )


def check_method(config: RunConfig) -> None:
    """Raises `ConfigError` for a method that needs a judge model."""
    if config.judge_method != "webjudge":
        raise ConfigError(
            f"config.judge_method: {config.judge_method!r} needs a judge model; the offline judge has only 'webjudge'",
            remedy="leave judge_method out, or set judge_model to a model",
        )


def key_points(task: Task) -> Points:
    """The key points in words, each with its claims."""
    if task.key_points:
        return tuple(zip(task.key_points, point_claims(task.key_points), strict=True))
    return tuple((claims[-1].clause, claims) for claims in task_claims(task.task))


def load_views(trajectory: Trajectory) -> list[View]:
    """The observations of an episode in order; none for a layout without step records."""
    if not any(step.snapshot for step in trajectory.steps):
        return []
    return [
        view(
            number,
            step.url,
            step.title,
            _read(trajectory.folder / step.snapshot) if step.snapshot else "",
            step.dialog,
            step.outcome.line if step.outcome is not None and step.outcome.ok else None,
        )
        for number, step in enumerate(trajectory.steps)
    ]


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        raise TrajectoryError(f"{path}: {reason_of(error)}") from None


def _counted(step: int | None) -> int | None:
    """A step as people count, from 1."""
    return None if step is None else step + 1


def reason(texts: tuple[str, ...], decision: Decision) -> str:
    """The verdict in words: every key point with what shows it, or what is missing; what is missing stands first."""
    pairs = sorted(zip(texts, decision.findings, strict=True), key=lambda pair: pair[1].met)
    lines = [f"{'Met' if finding.met else 'Not met'}: {text} ({finding.why})" for text, finding in pairs]
    return "\n".join((*lines, "Offline baseline, no leaderboard judge."))

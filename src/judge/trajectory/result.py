"""What is known of one task once its episode is over: `result.json`, and which of four outcomes it counts as."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from judge.trajectory.record import ABORTING, evidence_sha256
from judge.trajectory.schemas import OLDER_RESULT_SCHEMAS, RESULT_SCHEMA
from shared.errors import TrajectoryError
from shared.models import Navigation, Record, Step, StopReason, Task, TokenUsage, Verdict, VerdictOutcome

MAX_THOUGHT_CHARS = 4000
TaskOutcome = Literal["success", "failure", "unscored", "aborted"]


def classify(stop_reason: StopReason, verdict: VerdictOutcome | None, is_aborted: bool = False) -> TaskOutcome:
    """Which outcome of the contract's table an episode counts as.

    A fault around the participant aborts, whatever else is known. An episode that the participant did not end itself
    is a failure, whatever a judge would say. One it did end is what the judge says; without a word it is unscored.
    """
    if is_aborted or stop_reason in ABORTING:
        return "aborted"
    if stop_reason != "finished":
        return "failure"
    return verdict or "unscored"


class TaskResult(Record):
    """One task's result. Times are seconds since 1970; `judge_s` is the wait for the verdict after the last step.

    `participant_s` is what the participant used of `task_timeout_s`. `navigations` are those after the last step.
    `error` and `blame` name the cause when the episode did not end by the participant's own word.
    """

    task: Task
    steps: tuple[Step, ...]
    stop_reason: StopReason
    max_steps: int = Field(ge=1)
    final_answer: str | None = None
    error: str | None = None
    blame: str | None = None
    verdict: Verdict | None = None
    attempt: int = Field(default=1, ge=1)
    started_at: float
    ended_at: float
    judge_s: float | None = None
    participant_s: float = 0.0
    navigations: tuple[Navigation, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)

    @property
    def is_aborted(self) -> bool:
        """Whether the episode counts for nothing."""
        return self.stop_reason in ABORTING

    @property
    def outcome(self) -> TaskOutcome:
        """What the task counts as."""
        return classify(self.stop_reason, self.verdict.outcome if self.verdict else None)

    @property
    def cause(self) -> str | None:
        """Why there is no verdict of a judge on a finished episode, blame first; `None` when there is one."""
        if self.error is not None:
            return f"{self.blame}: {self.error}" if self.blame else self.error
        if self.outcome == "unscored":
            return f"judge model: {self.verdict.reason if self.verdict else 'no verdict yet'}"
        return None

    @property
    def token_usage(self) -> TokenUsage:
        """What judging took."""
        return self.verdict.token_usage if self.verdict else TokenUsage()

    @property
    def cost_usd(self) -> float | None:
        """What judging cost: 0 when no model was called, `None` when the price is unknown."""
        return self.verdict.cost_usd if self.verdict and self.token_usage.calls else 0.0

    @property
    def steps_taken(self) -> int:
        """The participant's steps: without the final look, which has no outcome."""
        has_final_look = self.stop_reason == "finished" and bool(self.steps) and self.steps[-1].outcome is None
        return len(self.steps) - has_final_look

    @property
    def action_history(self) -> list[str]:
        """The factual action lines."""
        return [step.outcome.line for step in self.steps if step.outcome and step.outcome.line]

    @property
    def thoughts(self) -> list[str]:
        """What the participant said it thought, bounded; no evidence of anything."""
        return [step.action.thought[:MAX_THOUGHT_CHARS] for step in self.steps if step.action]

    @property
    def flags(self) -> list[str]:
        """What was noticed at any step (`off_site`), each once, in order."""
        return list(dict.fromkeys(flag for step in self.steps for flag in step.flags))

    def to_json(self) -> dict[str, Any]:
        """The contract's `result.json`: finite numbers only, readable by the Online-Mind2Web evaluator (v1).

        The verdict's evidence is left to the verdict's own file.
        """
        verdict = self.verdict
        value = {
            "schema_version": RESULT_SCHEMA,
            "task_id": self.task.task_id,
            "task": self.task.task,
            "website": self.task.website,
            "level": self.task.level,
            "reference_length": self.task.reference_length,
            "scenario_key_points": list(self.task.key_points),
            **self.task.model_dump(mode="json", include={"checks", "allowed_sites"}, exclude_defaults=True),
            "action_history": self.action_history,
            "thoughts": self.thoughts,
            "final_result_response": self.final_answer or "",
            "agent_final_answer": self.final_answer,
            "steps": [step.model_dump(mode="json") for step in self.steps],
            "navigations": [navigation.model_dump(mode="json") for navigation in self.navigations],
            "max_steps": self.max_steps,
            "stop_reason": self.stop_reason,
            "error": self.error,
            "blame": self.blame,
            "is_aborted": self.is_aborted,
            "attempt": self.attempt,
            "flags": self.flags,
            "verdict": self.outcome,
            "verdict_of_judge": verdict.outcome if verdict else None,
            "reason": verdict.reason if verdict else None,
            "judge": verdict.judge.model_dump(mode="json") if verdict and verdict.judge else None,
            "key_points": list(verdict.key_points) if verdict else [],
            "image_judge_record": [score.model_dump(mode="json") for score in verdict.image_judge_record]
            if verdict
            else [],
            "token_usage": self.token_usage.model_dump(mode="json"),
            "cost_usd": self.cost_usd,
            "times": self._times(),
            "versions": dict(self.versions),
        }
        written = dict(finite(value))
        return {**written, "trajectory_sha256": evidence_sha256(written)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, source: str) -> Self:
        """Read back what `to_json` gave, now or in an older version (without the verdict's evidence).

        Raises `TrajectoryError` naming `source`. The files are not looked at: `load_trajectory` compares digests.
        """
        try:
            if value["schema_version"] not in (RESULT_SCHEMA, *OLDER_RESULT_SCHEMAS):
                raise TrajectoryError(
                    f"{source}: schema_version is {str(value['schema_version'])[:60]!a}, not {RESULT_SCHEMA}"
                )
            return cls._from_json(value)
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
            where = ".".join(map(str, detail["loc"]))
            raise TrajectoryError(f"{source}: {where}: {detail['msg']}", remedy="run this task again") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrajectoryError(f"{source}: not a result: {error!a:.200}", remedy="run this task again") from None

    @classmethod
    def _from_json(cls, value: Mapping[str, Any]) -> Self:
        judged = value["verdict_of_judge"]
        verdict = {
            "outcome": judged,
            "reason": value["reason"],
            "judge": value["judge"],
            "key_points": value["key_points"],
            "image_judge_record": value["image_judge_record"],
            "token_usage": value["token_usage"],
            "cost_usd": value["cost_usd"],
        }
        task = {key: value[key] for key in ("task_id", "task", "website", "level", "reference_length")}
        keys = ("steps", "stop_reason", "max_steps", "error", "blame", "attempt", "versions")
        return cls.model_validate(
            {key: value[key] for key in keys}
            | {
                "task": task
                | {"key_points": value["scenario_key_points"]}
                | {key: value[key] for key in ("checks", "allowed_sites") if key in value},
                "final_answer": value["agent_final_answer"],
                "verdict": None if judged is None else verdict,
                "started_at": datetime.fromisoformat(value["times"]["started_at"]).timestamp(),
                "ended_at": datetime.fromisoformat(value["times"]["ended_at"]).timestamp(),
                "judge_s": value["times"]["judge_s"],
                # Absent in what versions before these fields wrote.
                "participant_s": value["times"].get("participant_s", 0.0),
                "navigations": value.get("navigations", ()),
            }
        )

    def _times(self) -> dict[str, Any]:
        return {
            "started_at": datetime.fromtimestamp(self.started_at, UTC).isoformat(),
            "ended_at": datetime.fromtimestamp(self.ended_at, UTC).isoformat(),
            "duration_s": round(self.ended_at - self.started_at, 3),
            "observe_s": round(math.fsum(step.timings.observe_s for step in self.steps), 3),
            "reply_s": round(math.fsum(step.timings.reply_s for step in self.steps), 3),
            "act_s": round(math.fsum(step.timings.act_s for step in self.steps), 3),
            "judge_s": self.judge_s,
            "participant_s": round(self.participant_s, 3),
        }


def finite(value: Any) -> Any:
    """`value` with every infinity and NaN as text: a participant may send them, and no JSON reader agrees on them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value

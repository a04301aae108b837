"""An attempt at a task: what `result.json` records of it, and the trajectory that judges read."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError

from shared.errors import TrajectoryError
from shared.fields import first_mistake
from shared.files import sha256_json
from shared.models import Navigation, Record, Step, StopReason, Task, TaskOutcome, Timings, TokenUsage, Verdict

RESULT_SCHEMA = "wabe-2"
# Results of these versions are read only: they can be shown, scored and verified, and are never rewritten.
OLDER_RESULT_SCHEMAS = ("wabe-1",)
MAX_THOUGHT_CHARS = 4000
# The flag of evidence that comes from the agent itself: the judge has not seen the browser.
SELF_RECORDED = "self_recorded"
SHARED_STATE = "shared_state"
# Attempts that ended for reasons outside the participant; they count for nothing.
ABORTING: tuple[StopReason, ...] = ("environment_fault", "site_blocked", "cancelled")
# Attempts that ended in a way that is up to the verdict.
JUDGED_ENDS: tuple[StopReason, ...] = ("finished", "ended_by_page")
# Keys of `result.json` with the same name and value as the field of the record.
_OF_TASK = ("task_id", "task", "website", "level", "reference_length")
_LATER_OF_TASK = ("checks", "allowed_sites", "start_urls", "keep_fields")
_OF_ATTEMPT = ("max_steps", "stop_reason", "error", "blame", "versions")
_OF_NETWORK = ("network", "network_missing")
_OF_VERDICT = ("reason", "judge", "key_points", "image_judge_record", "token_usage", "cost_usd")
_EVIDENCE_IF_THERE = ("final_look", "start_urls", SELF_RECORDED)
# What a verdict rests on: neither the verdict itself, nor what is derived from these keys (`action_history`,
# `thoughts`), nor times. `probes` counts as null, since the values of probes are in the steps, as does `network` where
# there is none. Keys that came later count where they are there: attempts without them keep the digest that they were
# recorded with.
_EVIDENCE = (
    *(*_OF_TASK, "scenario_key_points", "checks", "allowed_sites"),
    *("steps", "agent_final_answer", "stop_reason", "error", "blame", "max_steps", "attempt", "network", "probes"),
)

# In microseconds, as it is written: what is derived from it is the same before it is stored and after.
Time = Annotated[float, AfterValidator(lambda seconds: round(seconds, 6))]


class NetworkTrace(Record):
    """The file with an attempt's requests, relative to its folder, its digest and the number of requests in it."""

    file: str
    sha256: str | None
    entries: int = Field(ge=0)


class Attempt(Record):
    """One attempt at a task, once it is over. Times are seconds since 1970; `judge_s` is the wait for the verdict.

    `number` counts the task's attempts from 1 in each epoch. `participant_s` is how much of `task_timeout_s` the
    participant used. `final_look` is the page after the end, where no step shows it. `navigations` are those after the
    last step or final look. `error` and `blame` name the cause where the participant did not end the attempt itself.
    `settle` is how pages were waited for (`judge.browser.settle`); older versions recorded none. `shared_state`: the
    site was not in its first state, or another attempt was played there at the same time. `network_missing` is why
    there is no network trace. `self_recorded`: the evidence comes from the agent itself. `participant_usage` is what a
    foreign layout says that the agent used.
    """

    task: Task
    steps: tuple[Step, ...]
    final_look: Step | None = None
    stop_reason: StopReason
    max_steps: int = Field(ge=1)
    final_answer: str | None = None
    error: str | None = None
    # Not `shared.errors.Blame`: older versions used other words.
    blame: str | None = None
    verdict: Verdict | None = None
    number: int = Field(default=1, ge=1)
    epoch: int = Field(default=1, ge=1)
    started_at: Time
    ended_at: Time
    judge_s: float | None = None
    participant_s: float = 0.0
    navigations: tuple[Navigation, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    settle: str | None = None
    shared_state: bool = False
    network: NetworkTrace | None = None
    network_missing: str | None = None
    self_recorded: bool = False
    participant_usage: TokenUsage | None = None

    @property
    def is_aborted(self) -> bool:
        """Whether something around the participant failed, so that the attempt counts for nothing."""
        return self.stop_reason in ABORTING

    @property
    def steps_taken(self) -> int:
        """The participant's steps. Older versions recorded the final look as one more, without an outcome."""
        has_final_look = self.stop_reason == "finished" and bool(self.steps) and self.steps[-1].outcome is None
        return len(self.steps) - has_final_look

    @property
    def observations(self) -> tuple[Step, ...]:
        """The steps and the final look."""
        return self.steps if self.final_look is None else (*self.steps, self.final_look)

    @property
    def outcome(self) -> TaskOutcome:
        """What the task counts as. Only an attempt that the participant or the page ended is up to the verdict."""
        if self.is_aborted:
            return "aborted"
        if self.stop_reason not in JUDGED_ENDS:
            return "failure"
        return self.verdict.outcome if self.verdict else "unscored"

    @property
    def cause(self) -> str | None:
        """Why the attempt failed, was aborted or is unscored, blame first; `None` when a verdict decided it."""
        if self.error is not None:
            return f"{self.blame}: {self.error}" if self.blame else self.error
        if self.outcome == "unscored":
            return f"judge model: {self.verdict.reason if self.verdict else 'no verdict yet'}"
        return None

    @property
    def token_usage(self) -> TokenUsage:
        """Tokens used for judging."""
        return self.verdict.token_usage if self.verdict else TokenUsage()

    @property
    def cost_usd(self) -> float | None:
        """What judging cost: 0 when no model was called, `None` when the price is unknown."""
        return self.verdict.cost_usd if self.verdict and self.token_usage.calls else 0.0

    @property
    def action_history(self) -> list[str]:
        """The factual action lines."""
        return [step.outcome.line for step in self.steps if step.outcome and step.outcome.line]

    @property
    def thoughts(self) -> list[str]:
        """The participant's own words, bounded; never evidence."""
        return [step.action.thought[:MAX_THOUGHT_CHARS] for step in self.steps if step.action]

    @property
    def flags(self) -> list[str]:
        """`self_recorded`, `shared_state`, and the flags of all steps (such as `off_site`), each once, in order."""
        own = [SELF_RECORDED] * self.self_recorded + [SHARED_STATE] * self.shared_state
        return list(dict.fromkeys([*own, *(flag for step in self.observations for flag in step.flags)]))

    def to_json(self) -> dict[str, Any]:
        """The contract's `result.json`, readable by the Online-Mind2Web evaluator (v1).

        The verdict's evidence is only in the verdict's own file.
        """
        fields = self.model_dump(mode="json", exclude={"verdict": {"evidence"}})
        task, verdict = fields["task"], fields["verdict"] or {}
        value = {
            "schema_version": RESULT_SCHEMA,
            **{key: task[key] for key in _OF_TASK},
            "scenario_key_points": task["key_points"],
            **self.task.model_dump(mode="json", include=set(_LATER_OF_TASK), exclude_defaults=True),
            "action_history": self.action_history,
            "thoughts": self.thoughts,
            "final_result_response": self.final_answer or "",
            "agent_final_answer": self.final_answer,
            **{key: fields[key] for key in ("steps", "final_look", "navigations", *_OF_ATTEMPT)},
            "settle": self.settle,
            **({SELF_RECORDED: True} if self.self_recorded else {}),
            **({"shared_state": True} if self.shared_state else {}),
            **{key: fields[key] for key in _OF_NETWORK},
            "is_aborted": self.is_aborted,
            "attempt": self.number,
            **({"epoch": self.epoch} if self.epoch > 1 else {}),
            "flags": self.flags,
            "verdict": self.outcome,
            "verdict_of_judge": verdict.get("outcome"),
            **{key: verdict.get(key) for key in ("reason", "judge")},
            **{key: verdict.get(key, []) for key in ("key_points", "image_judge_record")},
            "token_usage": self.token_usage.model_dump(mode="json"),
            "cost_usd": self.cost_usd,
            "times": self._times(),
        }
        return {**value, "trajectory_sha256": evidence_sha256(value)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, source: str) -> Self:
        """Read what `to_json` made, in this or an older version; the verdict comes back without its evidence.

        Raises `TrajectoryError` naming `source`. Files and digests are not looked at: `load_trajectory` compares them.
        """
        try:
            if value["schema_version"] not in (RESULT_SCHEMA, *OLDER_RESULT_SCHEMAS):
                raise TrajectoryError(f"{source}: unknown schema_version {str(value['schema_version'])[:60]!a}")
            task = {key: value[key] for key in _OF_TASK} | {key: value[key] for key in _LATER_OF_TASK if key in value}
            times, outcome = value["times"], value["verdict_of_judge"]
            return cls.model_validate(
                {
                    **{key: value[key] for key in ("steps", *_OF_ATTEMPT)},
                    "task": {**task, "key_points": value["scenario_key_points"]},
                    "final_answer": value["agent_final_answer"],
                    "verdict": None
                    if outcome is None
                    else {"outcome": outcome, **{key: value[key] for key in _OF_VERDICT}},
                    "number": value["attempt"],
                    "epoch": value.get("epoch", 1),
                    "started_at": datetime.fromisoformat(times["started_at"]).timestamp(),
                    "ended_at": datetime.fromisoformat(times["ended_at"]).timestamp(),
                    "judge_s": times["judge_s"],
                    # Absent in older versions.
                    "final_look": value.get("final_look"),
                    "participant_s": times.get("participant_s", 0.0),
                    "navigations": value.get("navigations", ()),
                    "settle": value.get("settle"),
                    "self_recorded": value.get(SELF_RECORDED, False),
                    "shared_state": value.get("shared_state", False),
                    **{key: value.get(key) for key in _OF_NETWORK},
                }
            )
        except KeyError as error:
            problem = f"key {error} is missing"
        except ValidationError as error:
            problem = first_mistake(error)
        except (TypeError, ValueError, AttributeError) as error:
            problem = f"not a result: {error!a:.200}"
        raise TrajectoryError(f"{source}: {problem}", remedy="run this task again")

    def _times(self) -> dict[str, Any]:
        phases = {name: math.fsum(getattr(step.timings, name) for step in self.steps) for name in Timings.model_fields}
        return {
            "started_at": datetime.fromtimestamp(self.started_at, UTC).isoformat(),
            "ended_at": datetime.fromtimestamp(self.ended_at, UTC).isoformat(),
            "duration_s": round(self.ended_at - self.started_at, 3),
            **{name: round(seconds, 3) for name, seconds in phases.items()},
            "judge_s": self.judge_s,
            "participant_s": round(self.participant_s, 3),
        }


class Trajectory(Record):
    """An attempt on disk, in whatever layout it was stored: what judges read.

    `screenshots` are absolute paths in step order, without that of the final look, which no model sees. The flat lists
    of Online-Mind2Web (v1 and v2) have no step records: `steps` is empty there, and `input_images` are files within the
    folder that belong to the task, as the recorder named them. `attempt` is the whole record; of a foreign layout
    (`is_foreign`) it holds what is known, and is for display and export only. `sha256` is the digest of
    the evidence as it is on disk; `is_digested` says that its recorder wrote digests as well, and that they match.
    `network` is the file with the requests, or `network_missing` why there is none.
    """

    folder: Path
    task: Task
    action_history: tuple[str, ...]
    thoughts: tuple[str, ...] = ()
    screenshots: tuple[Path, ...] = ()
    input_images: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    final_look: Step | None = None
    final_answer: str | None = None
    stop_reason: StopReason | None = None
    error: str | None = None
    is_aborted: bool = False
    sha256: str | None = None
    is_digested: bool = False
    network: Path | None = None
    network_missing: str | None = None
    attempt: Attempt | None = None
    is_foreign: bool = False

    @property
    def observations(self) -> tuple[Step, ...]:
        """The steps and the final look."""
        return self.steps if self.final_look is None else (*self.steps, self.final_look)


def evidence_sha256(result: Mapping[str, Any]) -> str:
    """The digest of a trajectory, from its `result.json`: the steps in it carry the digests of their files."""
    evidence = {key: result.get(key) for key in _EVIDENCE}
    evidence |= {key: result[key] for key in _EVIDENCE_IF_THERE if result.get(key) is not None}
    return sha256_json(evidence)

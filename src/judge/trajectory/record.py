"""An attempt at a task: the content of `result.json`, and the trajectory that judges read."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from judge.records.attacks import AttackResult
from judge.records.files import NetworkTrace
from judge.records.ledger import Coverage, Frozen
from judge.records.policies import PolicyResult, under_policy
from judge.records.result_keys import INLINE, ResultKey, ResultKeys, derived
from judge.records.steps import BlameFacts, Navigation, Step, StopReason, Timings
from judge.records.tasks import Task
from judge.records.verdicts import TaskOutcome, Verdict
from judge.trajectory.fetched import Fetched
from shared.claims import ClaimedUsage, UsageBasis
from shared.errors import TrajectoryError
from shared.fields import first_mistake
from shared.files import sha256_json
from shared.models import Record, RecordedLimit, TokenUsage, omit_default
from shared.plugins import Facts, extended

RESULT_SCHEMA = "wabe-2"
MAX_THOUGHT_CHARS = 4000
# The flag of evidence that the agent recorded itself: the judge has not seen the browser.
SELF_RECORDED = "self_recorded"
SHARED_STATE = "shared_state"
# The rules that decide checks on a recording of the judge.
CURRENT_RULES = "3"
# The keys of `result.json` that also stand in a submission's entry.
POLICIES, ATTACK = "policies", "attack"
# Stop reasons outside the participant's control; such attempts are not scored. `excluded` ones were never played.
ABORTING: tuple[StopReason, ...] = ("environment_fault", "site_blocked", "cancelled", "excluded")
# Stop reasons after which the verdict decides.
JUDGED_ENDS: tuple[StopReason, ...] = ("finished", "ended_by_page")
# Evidence of every attempt, and of some.
_ALWAYS = ResultKey(evidence=True, always=True)
_EVIDENCE = ResultKey(evidence=True)
# Always null in what the digest covers: the values of probes are in the steps.
_PROBES = "probes"


def _is_time(seconds: float) -> float:
    # As it is written, so that derived values are the same before and after it is stored.
    return round(seconds, 6)


def _read_time(value: object) -> object:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value


def _written_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _in_ms(seconds: float) -> float:
    return round(seconds, 3)


# Seconds since 1970, from year 1 to 9999; in JSON as ISO 8601.
Time = Annotated[
    float,
    Field(ge=-62_135_596_800, lt=253_402_300_799),
    BeforeValidator(_read_time),
    AfterValidator(_is_time),
    PlainSerializer(_written_time, when_used="json"),
]


def _claimed_in(value: object) -> object:
    """The usage that a record says somebody stated; other usage with the same key is left alone."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, ClaimedUsage) else None
    return value if value.get("basis") in get_args(UsageBasis) else None


# With the basis of the figures, which is not the judge's measurement.
RecordedClaim = Annotated[ClaimedUsage | None, BeforeValidator(_claimed_in)]


class Attempt(Record):
    """A finished attempt at a task, in the order of the keys in `result.json`."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    task: Annotated[Task, INLINE]
    """The task as it was played."""
    final_answer: Annotated[
        str | None, RecordedLimit(120_000), ResultKey("agent_final_answer", evidence=True, always=True)
    ] = None
    """The participant's answer; `None` if it gave none."""
    steps: Annotated[tuple[Step, ...], _ALWAYS]
    """The steps: an observation, a reply and an outcome each."""
    final_look: Annotated[Step | None, _EVIDENCE] = None
    """The final observation, if the page changed after the last step's."""
    navigations: tuple[Navigation, ...] = ()
    """The navigations after the last step or final observation."""
    max_steps: Annotated[int, _ALWAYS] = Field(ge=1)
    """How many replies the participant could send."""
    max_actions: Annotated[int, _EVIDENCE] = omit_default(1, ge=1)
    """How many actions a reply could have."""
    stop_reason: Annotated[StopReason, _ALWAYS]
    """What ended the attempt."""
    error: Annotated[str | None, RecordedLimit(12_000), _ALWAYS] = None
    """What went wrong, if the participant did not end the attempt itself."""
    blame: Annotated[str | None, _ALWAYS] = None
    """Whose fault the error is."""
    versions: Annotated[dict[str, str], ResultKey()] = Field(default_factory=dict)
    """The versions of the browser and of what drives it."""
    blame_facts: Annotated[BlameFacts | None, _EVIDENCE] = omit_default(None)
    """What decided who is to blame for a fault that a participant can cause (`judge.episode.blame`)."""
    fetched: Annotated[tuple[Fetched, ...], _EVIDENCE] = omit_default(())
    """The answers that `fetch` checks compare."""
    frozen: Annotated[Frozen | None, _EVIDENCE] = omit_default(None)
    """What an attempt on frozen sites rests on, with its ledger."""
    policies: Annotated[tuple[PolicyResult, ...], RecordedLimit(2_000_000)] = omit_default(())
    """What became of each of the task's policies."""
    attack: AttackResult | None = omit_default(None)
    """What became of the attack with which the task was played."""
    earlier_attempts: Annotated[tuple[str, ...], RecordedLimit(100_000), _EVIDENCE] = omit_default(())
    """The digests of earlier attempts at this task in this epoch. They count for policies and attacks, and are recorded
    for tasks with either.
    """
    settle: str | None = None
    """How pages were waited for (`judge.browser.settle`)."""
    self_recorded: Annotated[bool, _EVIDENCE] = omit_default(False)
    """Whether the evidence comes from the agent itself."""
    shared_state: bool = omit_default(False)
    """Whether the site was not in its initial state, or another attempt was played there at the same time."""
    site_instances: dict[str, str] = omit_default({}, max_length=100)
    """By website, the address of the instance lent to the attempt; pages are recorded under the website's address."""
    rules_version: Annotated[str | None, _EVIDENCE] = omit_default(None)
    """The rules by which checks are decided on what the judge recorded."""
    network: Annotated[NetworkTrace | None, _ALWAYS] = None
    """Where the requests are recorded, with their digest."""
    network_missing: str | None = None
    """Why there is no network trace."""
    network_off: Annotated[bool, _EVIDENCE] = omit_default(False)
    """Whether the configuration turned the network trace off."""
    number: Annotated[int, ResultKey("attempt", evidence=True, always=True)] = Field(default=1, ge=1)
    """The number of the attempt at the task, from 1 in each epoch."""
    context_id: str | None = omit_default(None, max_length=200)
    """The conversation with the participant, which it can name to a meter."""
    epoch: int = omit_default(1, ge=1)
    """The epoch, from 1."""
    verdict: Annotated[Verdict | None, INLINE] = None
    """The verdict that counts."""
    progress: float | None = omit_default(None, ge=0, le=1)
    """The share of checks or key points met, from the verdict's evidence."""
    recorded_flags: dict[str, str] = Field(default={}, exclude=True)
    """What another program noted of its recording, by the category of failures that it belongs to."""
    claimed_usage: Annotated[RecordedClaim, ResultKey("participant_usage")] = omit_default(None)
    """What the participant says of its model, in the metadata of its replies, or another program that recorded it."""
    started_at: Annotated[Time, ResultKey("times.started_at")]
    """When the attempt began, in seconds since 1970."""
    ended_at: Annotated[Time, ResultKey("times.ended_at")]
    """When the attempt ended, in seconds since 1970."""
    judge_s: Annotated[float | None, ResultKey("times.judge_s")] = None
    """How long judging took."""
    participant_s: Annotated[float, PlainSerializer(_in_ms, when_used="json"), ResultKey("times.participant_s")] = 0.0
    """How much of `task_timeout_s` the participant used."""

    @property
    @derived(after="network_off")
    def is_aborted(self) -> bool:
        """Whether the attempt ended for reasons outside the participant's control, so that it is not scored."""
        return self.stop_reason in ABORTING

    @property
    def excluded(self) -> str | None:
        """Why the run excluded the task before its first attempt; `None` if it was to be played."""
        return self.error or "no reason recorded" if self.stop_reason == "excluded" else None

    @property
    def steps_taken(self) -> int:
        """The number of the participant's replies."""
        return len({step.of_reply for step in self._own_steps})

    @property
    def actions_taken(self) -> int:
        """The number of the participant's actions, executed or not: one for each step."""
        return len(self._own_steps)

    @property
    def _own_steps(self) -> tuple[Step, ...]:
        # Older versions counted the final observation, which has no outcome.
        has_final_look = self.stop_reason == "finished" and bool(self.steps) and self.steps[-1].outcome is None
        return self.steps[:-1] if has_final_look else self.steps

    @property
    def observed_steps(self) -> tuple[Step, ...]:
        """The steps whose observations the participant was sent: the first one of each reply."""
        return tuple({step.of_reply: step for step in reversed(self.steps)}.values())[::-1]

    @property
    def observations(self) -> tuple[Step, ...]:
        """The steps and the final observation."""
        return self.steps if self.final_look is None else (*self.steps, self.final_look)

    @property
    @derived("verdict", after="flags")
    def outcome(self) -> TaskOutcome:
        """How the task counts. The verdict decides only if the participant or the page ended the attempt."""
        if self.is_aborted:
            return "aborted"
        if self.stop_reason not in JUDGED_ENDS:
            return "failure"
        return self.verdict.outcome if self.verdict else "unscored"

    @property
    def completed_under_policy(self) -> bool | None:
        """Whether the attempt succeeded and nothing was violated; `None` without policies, or if unknown."""
        under_policies = under_policy(self.outcome, self.policies) if self.policies else ""
        return None if under_policies not in ("success", "failure") else under_policies == "success"

    @property
    def attacked(self) -> AttackResult | None:
        """What became of the attack; of one that was not decided, only which one it is."""
        if self.attack is not None or self.task.attack is None:
            return self.attack
        played_attack = self.task.attack
        return AttackResult(
            name=played_attack.attack.name, kind=played_attack.attack.kind, of=played_attack.of, shown=False
        )

    @property
    def cause(self) -> str | None:
        """Why the attempt failed, was aborted or is unscored, blame first; `None` if a verdict decided it."""
        if self.excluded is not None:
            return f"excluded: {self.excluded}"
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
    @derived()
    def cost_usd(self) -> float | None:
        """The cost of judging: 0 if no model was asked, `None` if that or the price is unknown."""
        return self.verdict.cost if self.verdict else 0.0

    @property
    @derived(after="dated")
    def action_history(self) -> list[str]:
        """The factual action lines."""
        return [step.outcome.line for step in self.steps if step.outcome and step.outcome.line]

    @property
    @derived(after="action_history")
    def thoughts(self) -> list[str]:
        """The participant's stated thoughts, bounded; never evidence."""
        return [step.action.thought[:MAX_THOUGHT_CHARS] for step in self.steps if step.action]

    @property
    @derived(after="epoch")
    def flags(self) -> list[str]:
        """`self_recorded`, `shared_state`, and the flags of all steps (such as `off_site`), each once, in order."""
        own = {SELF_RECORDED: self.self_recorded, SHARED_STATE: self.shared_state}
        flag_list = [flag for flag, is_set in own.items() if is_set]
        flag_list += [flag for step in self.observations for flag in step.flags]
        return list(dict.fromkeys(flag_list))

    @property
    @derived("final_result_response", after="thoughts")
    def _answer_text(self) -> str:
        return self.final_answer or ""

    @property
    @derived("coverage", after="frozen", unless_none=True)
    def _coverage(self) -> Coverage | None:
        """Frozen sites only: the coverage of the evidence."""
        return self.frozen.coverage if self.frozen else None

    @property
    def duration_s(self) -> float | None:
        """How long it took in seconds; `None` if unknown, as in many recordings of other tools."""
        # What was excluded is known to have taken no time.
        return self._duration_s if self.ended_at > self.started_at or self.stop_reason == "excluded" else None

    @property
    @derived("times.duration_s", after="times.ended_at")
    def _duration_s(self) -> float:
        return round(self.ended_at - self.started_at, 3)

    @property
    @derived("times", after="times.duration_s")
    def _phases(self) -> Timings:
        phases = {name: math.fsum(getattr(step.timings, name) for step in self.steps) for name in Timings.model_fields}
        return Timings(**{name: round(seconds, 3) for name, seconds in phases.items()})

    def to_json(self) -> dict[str, Any]:
        """The contract's `result.json`, readable by the Online-Mind2Web evaluator (v1).

        The verdict's evidence is not included: it is only in the verdict's file.
        """
        value = {"schema_version": RESULT_SCHEMA, **RESULT_KEYS.write(self)}
        return {**value, "trajectory_sha256": evidence_sha256(value)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, source: str) -> Self:
        """Read the output of `to_json`; the verdict has no evidence.

        Raises `TrajectoryError` naming `source`. Does not check files and digests: `load_trajectory` does.
        """
        try:
            if value["schema_version"] != RESULT_SCHEMA:
                raise TrajectoryError(f"unknown schema_version {str(value['schema_version'])[:60]!a}", location=source)
            return cls.model_validate(RESULT_KEYS.read(value))
        except KeyError as error:
            problem = f"key {error} is missing"
        except ValidationError as error:
            problem = first_mistake(error)
        except (TypeError, ValueError, AttributeError) as error:
            problem = f"not a result: {error!a:.200}"
        raise TrajectoryError(problem, location=source, remedy="run this task again")


if not TYPE_CHECKING:
    Attempt = extended(Attempt, Facts)
RESULT_KEYS = ResultKeys.of(Attempt)


class Texts(Record):
    """What judges read of an attempt, where it differs from the record.

    For a foreign layout, these are its recorder's words. A judge may also be shown less than was recorded.
    """

    action_history: tuple[str, ...]
    thoughts: tuple[str, ...] = ()
    final_answer: str | None = None
    state: str | None = omit_default(None)
    """The site's final state, as another program recorded it."""


class Trajectory(Record):
    """An attempt on disk, in any layout, as judges read it: its folder, its record, its images and digests.

    `attempt` is the record; of a foreign layout (`is_foreign`), it is what is known. `judged_as` is the task as it is
    judged, if not as recorded, and `texts` what judges read instead of the record's. `screenshots` are absolute paths
    in step order, without the final observation's, which no model sees. The flat lists of Online-Mind2Web (v1 and
    v2) have no steps (`is_flat`): a step of their record is what has the same place in each list, for display and
    export only. `input_images` are files in the folder that belong to the task, as named by the recorder. `sha256` is
    the digest of the evidence on disk; `is_digested` means that its recorder wrote digests as well, and they match.
    `network` is the file with the requests, or `network_missing` the reason why there is none.
    """

    folder: Path
    attempt: Attempt
    judged_as: Task | None = None
    texts: Texts | None = None
    screenshots: tuple[Path, ...] = ()
    input_images: tuple[str, ...] = ()
    sha256: str | None = None
    is_digested: bool = False
    network: Path | None = None
    network_missing: str | None = None
    is_foreign: bool = False
    is_flat: bool = False

    @property
    def task(self) -> Task:
        """The task as it is judged."""
        return self.judged_as or self.attempt.task

    @property
    def steps(self) -> tuple[Step, ...]:
        """The participant's steps; empty for flat lists."""
        return () if self.is_flat else self.attempt.steps

    @property
    def observed_steps(self) -> tuple[Step, ...]:
        """The steps whose observations the participant was sent; empty for flat lists."""
        return () if self.is_flat else self.attempt.observed_steps

    @property
    def observations(self) -> tuple[Step, ...]:
        """The steps and the final observation; empty for flat lists."""
        return () if self.is_flat else self.attempt.observations

    @property
    def action_history(self) -> tuple[str, ...]:
        """The actions, as judges read them."""
        return tuple(self.attempt.action_history) if self.texts is None else self.texts.action_history

    @property
    def thoughts(self) -> tuple[str, ...]:
        """The participant's thoughts, as judges read them."""
        return tuple(self.attempt.thoughts) if self.texts is None else self.texts.thoughts

    @property
    def final_answer(self) -> str | None:
        """The participant's answer, as judges read it."""
        return self.attempt.final_answer if self.texts is None else self.texts.final_answer

    @property
    def stop_reason(self) -> StopReason:
        """Why the attempt ended."""
        return self.attempt.stop_reason

    @property
    def error(self) -> str | None:
        """What ended the attempt, if the participant did not."""
        return self.attempt.error

    @property
    def is_aborted(self) -> bool:
        """Whether the attempt is not scored."""
        return self.attempt.is_aborted

    def as_task(self, task: Task) -> Self:
        """The same attempt, judged as an attempt at this task."""
        return self.model_copy(update={"judged_as": task})


def evidence_sha256(result: Mapping[str, Any]) -> str:
    """The digest of a trajectory, from its `result.json`, whose steps contain the digests of their files.

    It covers the evidence for a verdict, but not the verdict itself, keys derived from the evidence, or times.
    """
    return sha256_json({**RESULT_KEYS.evidence(result), _PROBES: None})

"""An attempt at a task: the content of `result.json`, and the trajectory that judges read."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError

from judge.records.attacks import AttackResult
from judge.records.ledger import Frozen
from judge.records.policies import PolicyResult, under_policy
from judge.records.steps import BlameFacts, Navigation, Step, StopReason, Timings
from judge.records.tasks import Task
from judge.records.verdicts import TaskOutcome, Verdict
from judge.trajectory.fetched import Fetched
from shared.claims import ClaimedUsage
from shared.errors import TrajectoryError
from shared.fields import first_mistake
from shared.files import sha256_json
from shared.models import Record, Recorded, TokenUsage

RESULT_SCHEMA = "wabe-2"
# Results of these versions are read-only: they can be shown, scored and verified, but are never rewritten.
OLDER_RESULT_SCHEMAS = ("wabe-1",)
MAX_THOUGHT_CHARS = 4000
# The flag of evidence that the agent recorded itself: the judge has not seen the browser.
SELF_RECORDED = "self_recorded"
SHARED_STATE = "shared_state"
# The rules that decide checks on a recording. Version 1 has to guess who wrote or sent what is recorded; recordings for
# version 2 state it.
FIRST_RULES, SECOND_RULES, CURRENT_RULES = "1", "2", "3"
BLAME_FACTS = "blame_facts"
FETCHED = "fetched"
FROZEN = "frozen"
# In `result.json`: the policies that the task declares, their outcomes, and the digests of earlier attempts.
DECLARED_POLICIES, POLICIES, EARLIER_ATTEMPTS = "scenario_policies", "policies", "earlier_attempts"
# The attack that the task was played with, as declared, and what became of it.
DECLARED_ATTACK, ATTACK = "scenario_attack", "attack"
# Stop reasons outside the participant's control; such attempts are not scored. `excluded` ones were never played.
ABORTING: tuple[StopReason, ...] = ("environment_fault", "site_blocked", "cancelled", "excluded")
# Stop reasons after which the verdict decides.
JUDGED_ENDS: tuple[StopReason, ...] = ("finished", "ended_by_page")
# Keys of `result.json` with the same name and value as the field of the record.
_OF_TASK = ("task_id", "task", "website", "level", "reference_length")
_OF_HOLDS = ("hold", "writes", "allow_writes", "allow_sockets")
_LATER_OF_TASK = (
    "checks",
    "allowed_sites",
    "start_urls",
    "keep_fields",
    "user_replies",
    "user_reply",
    *_OF_HOLDS,
    "dated",
)
_OF_ATTEMPT = ("max_steps", "stop_reason", "error", "blame", "versions")
_OF_NETWORK = ("network", "network_missing")
NETWORK_OFF = "network_off"
PARTICIPANT_USAGE = "participant_usage"
_CLAIMED = "claimed"
_OF_VERDICT = ("reason", "judge", "key_points", "image_judge_record", "token_usage", "cost_usd")
_LATER_OF_VERDICT = ("reason_code", "price_date")
_EVIDENCE_IF_THERE = (
    "final_look",
    "start_urls",
    SELF_RECORDED,
    NETWORK_OFF,
    "rules_version",
    BLAME_FACTS,
    FETCHED,
    FROZEN,
    DECLARED_POLICIES,
    EARLIER_ATTEMPTS,
    DECLARED_ATTACK,
    "user_replies",
    "user_reply",
    *_OF_HOLDS,
    "dated",
)
# The keys that the digest covers: the evidence for a verdict, but not the verdict itself, keys derived from these
# (`action_history`, `thoughts`) or times. `probes` is always null, because the values of probes are in the steps; so is
# a missing `network`. Keys added in later versions are covered only if present, so that older attempts keep their
# digest.
_EVIDENCE = (
    *_OF_TASK,
    "scenario_key_points",
    "checks",
    "allowed_sites",
    "steps",
    "agent_final_answer",
    "stop_reason",
    "error",
    "blame",
    "max_steps",
    "attempt",
    "network",
    "probes",
)

# Rounded to microseconds, as it is written, so that derived values are the same before and after it is stored.
Time = Annotated[float, AfterValidator(lambda seconds: round(seconds, 6))]


class NetworkTrace(Record):
    """The file with an attempt's requests (relative to its folder), its digest and the number of requests in it."""

    file: str
    sha256: str | None
    entries: int = Field(ge=0)


def _claimed_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage that a record says the participant claimed."""
    found = value.get(PARTICIPANT_USAGE)
    if not isinstance(found, Mapping) or found.get("basis") != _CLAIMED:
        return None
    return {name: each for name, each in found.items() if name != "basis"}


class Attempt(Record):
    """A finished attempt at a task. Times are seconds since 1970; `judge_s` is the duration of judging.

    `number` counts the task's attempts from 1 in each epoch. `participant_s` is how much of `task_timeout_s` the
    participant used. `final_look` is the final observation, if the page changed after the last step's. `navigations`
    are those after the last step or final observation. `error` and `blame` name the cause if the participant did not
    end the attempt itself. `settle` is how pages were waited for (`judge.browser.settle`); older versions did not
    record it. `shared_state`: the site was not in its initial state, or another attempt was played there at the same
    time. `network_missing` is why there is no network trace. `self_recorded`: the evidence comes from the agent itself.
    `participant_usage` is the agent's usage according to a foreign layout. `rules_version`: the rules by which checks
    are decided on this recording. `blame_facts` decided who is to blame for a fault that a participant can cause
    (`judge.episode.blame`); older versions did not record them. `fetched` are the answers that `fetch` checks compare.
    `frozen` is what an attempt on frozen sites rests on, with its ledger.
    `policies`: what became of each of the task's; `attack`: what became of the attack that it was played with.
    `earlier_attempts` are the digests of those at the same task and epoch, which count for both; recorded for tasks
    with policies or an attack.
    `context_id` is that of the conversation with the participant, which it can name to a meter; older versions did not
    record it.
    """

    task: Task
    steps: tuple[Step, ...]
    final_look: Step | None = None
    stop_reason: StopReason
    max_steps: int = Field(ge=1)
    final_answer: Annotated[str | None, Recorded(120_000)] = None
    error: Annotated[str | None, Recorded(12_000)] = None
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
    # By the configuration: nothing that the participant did.
    network_off: bool = False
    self_recorded: bool = False
    rules_version: str = FIRST_RULES
    participant_usage: TokenUsage | None = None
    # What the participant says of its model, in the metadata of its replies.
    claimed_usage: ClaimedUsage | None = None
    # The share of checks or key points that are met, from the verdict's evidence, which is not part of this record.
    progress: float | None = Field(default=None, ge=0, le=1)
    blame_facts: BlameFacts | None = None
    fetched: tuple[Fetched, ...] = ()
    frozen: Frozen | None = None
    context_id: str | None = Field(default=None, max_length=200)
    policies: Annotated[tuple[PolicyResult, ...], Recorded(2_000_000)] = ()
    attack: AttackResult | None = None
    earlier_attempts: Annotated[tuple[str, ...], Recorded(100_000)] = ()

    @property
    def is_aborted(self) -> bool:
        """Whether the attempt ended for reasons outside the participant's control, so that it is not scored."""
        return self.stop_reason in ABORTING

    @property
    def excluded(self) -> str | None:
        """Why the run excluded the task before its first attempt; `None` if it was to be played."""
        return self.error or "no reason recorded" if self.stop_reason == "excluded" else None

    @property
    def steps_taken(self) -> int:
        """The number of the participant's steps. Older versions counted the final observation, which has no outcome."""
        has_final_look = self.stop_reason == "finished" and bool(self.steps) and self.steps[-1].outcome is None
        return len(self.steps) - has_final_look

    @property
    def observations(self) -> tuple[Step, ...]:
        """The steps and the final observation."""
        return self.steps if self.final_look is None else (*self.steps, self.final_look)

    @property
    def outcome(self) -> TaskOutcome:
        """How the task counts. The verdict decides only if the participant or the page ended the attempt."""
        if self.is_aborted:
            return "aborted"
        if self.stop_reason not in JUDGED_ENDS:
            return "failure"
        return self.verdict.outcome if self.verdict else "unscored"

    @property
    def completed_under_policy(self) -> bool | None:
        """Whether the attempt succeeded and nothing was violated; `None` without policies, or if that is unknown."""
        found = under_policy(self.outcome, self.policies) if self.policies else ""
        return None if found not in ("success", "failure") else found == "success"

    @property
    def attacked(self) -> AttackResult | None:
        """What became of the attack; of one that was not decided, only which one it is."""
        if self.attack is not None or self.task.attack is None:
            return self.attack
        played = self.task.attack
        return AttackResult(name=played.attack.name, kind=played.attack.kind, of=played.of, shown=False)

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
    def cost_usd(self) -> float | None:
        """The cost of judging: 0 if no model was called, `None` if the price is unknown."""
        return self.verdict.cost_usd if self.verdict and self.token_usage.calls else 0.0

    @property
    def action_history(self) -> list[str]:
        """The factual action lines."""
        return [step.outcome.line for step in self.steps if step.outcome and step.outcome.line]

    @property
    def thoughts(self) -> list[str]:
        """The participant's stated thoughts, bounded; never evidence."""
        return [step.action.thought[:MAX_THOUGHT_CHARS] for step in self.steps if step.action]

    @property
    def flags(self) -> list[str]:
        """`self_recorded`, `shared_state`, and the flags of all steps (such as `off_site`), each once, in order."""
        own = {SELF_RECORDED: self.self_recorded, SHARED_STATE: self.shared_state}
        found = [flag for flag, is_set in own.items() if is_set]
        found += [flag for step in self.observations for flag in step.flags]
        return list(dict.fromkeys(found))

    def to_json(self) -> dict[str, Any]:
        """The contract's `result.json`, readable by the Online-Mind2Web evaluator (v1).

        The verdict's evidence is not included: it is only in the verdict's own file.
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
            **({BLAME_FACTS: fields[BLAME_FACTS]} if self.blame_facts else {}),
            **({FETCHED: fields[FETCHED]} if self.fetched else {}),
            **({FROZEN: fields[FROZEN], "coverage": self.frozen.coverage} if self.frozen else {}),
            **({DECLARED_POLICIES: self._declared_policies()} if self.task.policies else {}),
            **({DECLARED_ATTACK: self._declared_attack()} if self.task.attack else {}),
            **{key: fields[key] for key in (POLICIES, ATTACK, EARLIER_ATTEMPTS) if fields[key]},
            "settle": self.settle,
            **({SELF_RECORDED: True} if self.self_recorded else {}),
            **({"shared_state": True} if self.shared_state else {}),
            **({} if self.rules_version == FIRST_RULES else {"rules_version": self.rules_version}),
            **{key: fields[key] for key in _OF_NETWORK},
            **({NETWORK_OFF: True} if self.network_off else {}),
            "is_aborted": self.is_aborted,
            "attempt": self.number,
            **({} if self.context_id is None else {"context_id": self.context_id}),
            **({"epoch": self.epoch} if self.epoch > 1 else {}),
            "flags": self.flags,
            "verdict": self.outcome,
            "verdict_of_judge": verdict.get("outcome"),
            **{key: verdict.get(key) for key in ("reason", "judge")},
            **{key: verdict[key] for key in _LATER_OF_VERDICT if key in verdict},
            **{key: verdict.get(key, []) for key in ("key_points", "image_judge_record")},
            **({} if self.progress is None else {"progress": self.progress}),
            **({PARTICIPANT_USAGE: {"basis": _CLAIMED, **fields["claimed_usage"]}} if self.claimed_usage else {}),
            "token_usage": self.token_usage.model_dump(mode="json"),
            "cost_usd": self.cost_usd,
            "times": self._times(),
        }
        return {**value, "trajectory_sha256": evidence_sha256(value)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, source: str) -> Self:
        """Read the output of `to_json` of this or an older version; the verdict has no evidence.

        Raises `TrajectoryError` naming `source`. Does not check files and digests: `load_trajectory` does.
        """
        try:
            if value["schema_version"] not in (RESULT_SCHEMA, *OLDER_RESULT_SCHEMAS):
                raise TrajectoryError(f"unknown schema_version {str(value['schema_version'])[:60]!a}", location=source)
            task = {key: value[key] for key in _OF_TASK} | {key: value[key] for key in _LATER_OF_TASK if key in value}
            task |= {"policies": value[DECLARED_POLICIES]} if DECLARED_POLICIES in value else {}
            task |= {"attack": value[DECLARED_ATTACK]} if DECLARED_ATTACK in value else {}
            times, outcome = value["times"], value["verdict_of_judge"]
            return cls.model_validate(
                {
                    **{key: value[key] for key in ("steps", *_OF_ATTEMPT)},
                    "task": {**task, "key_points": value["scenario_key_points"]},
                    "final_answer": value["agent_final_answer"],
                    "verdict": None
                    if outcome is None
                    else {
                        "outcome": outcome,
                        **{key: value[key] for key in _OF_VERDICT},
                        **{key: value[key] for key in _LATER_OF_VERDICT if key in value},
                    },
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
                    BLAME_FACTS: value.get(BLAME_FACTS),
                    FETCHED: value.get(FETCHED, ()),
                    FROZEN: value.get(FROZEN),
                    **{key: value.get(key, ()) for key in (POLICIES, EARLIER_ATTEMPTS)},
                    ATTACK: value.get(ATTACK),
                    "progress": value.get("progress"),
                    "claimed_usage": _claimed_in(value),
                    "self_recorded": value.get(SELF_RECORDED, False),
                    "shared_state": value.get("shared_state", False),
                    "context_id": value.get("context_id"),
                    "rules_version": value.get("rules_version", FIRST_RULES),
                    **{key: value.get(key) for key in _OF_NETWORK},
                    NETWORK_OFF: value.get(NETWORK_OFF, False),
                }
            )
        except KeyError as error:
            problem = f"key {error} is missing"
        except ValidationError as error:
            problem = first_mistake(error)
        except (TypeError, ValueError, AttributeError) as error:
            problem = f"not a result: {error!a:.200}"
        raise TrajectoryError(problem, location=source, remedy="run this task again")

    def _declared_policies(self) -> list[dict[str, Any]]:
        return [each.model_dump(mode="json", exclude_defaults=True) for each in self.task.policies]

    def _declared_attack(self) -> dict[str, Any]:
        return self.task.attack.model_dump(mode="json", exclude_defaults=True) if self.task.attack else {}

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


class Texts(Record):
    """What judges read of an attempt, where it differs from the record.

    For a foreign layout, these are its recorder's words. A judge may also be shown less than was recorded.
    """

    action_history: tuple[str, ...]
    thoughts: tuple[str, ...] = ()
    final_answer: str | None = None


class Trajectory(Record):
    """An attempt on disk, in any layout, as judges read it: its folder, its record, its images and digests.

    `attempt` is the record; of a foreign layout (`is_foreign`), it is what is known. `judged_as` is the task as it is
    judged, if not as recorded, and `texts` what judges read instead of the record's. `screenshots` are absolute paths
    in step order, without that of the final observation, which no model sees. The flat lists of Online-Mind2Web (v1 and
    v2) have no steps (`is_flat`): a step of their record is what has the same place in each list, for display and
    export only. `input_images` are files in the folder that belong to the task, as named by the recorder. `sha256` is
    the digest of the evidence on disk; `is_digested` means that its recorder wrote digests as well, and they match.
    `network` is the file with the requests, or `network_missing` the reason why there is none. `was_aborted`: by an
    older version, which could abort an attempt with any stop reason.
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
    was_aborted: bool = False

    @property
    def task(self) -> Task:
        """The task as it is judged."""
        return self.judged_as or self.attempt.task

    @property
    def steps(self) -> tuple[Step, ...]:
        """The participant's steps; empty for flat lists."""
        return () if self.is_flat else self.attempt.steps

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
        return self.was_aborted or self.attempt.is_aborted

    def as_task(self, task: Task) -> Self:
        """The same attempt, judged as an attempt at this task."""
        return self.model_copy(update={"judged_as": task})


def evidence_sha256(result: Mapping[str, Any]) -> str:
    """The digest of a trajectory, from its `result.json`, whose steps contain the digests of their files."""
    evidence = {key: result.get(key) for key in _EVIDENCE}
    evidence |= {key: result[key] for key in _EVIDENCE_IF_THERE if result.get(key) is not None}
    return sha256_json(evidence)

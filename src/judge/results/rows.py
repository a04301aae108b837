"""The row of an attempt. A column is declared once, in one line: its name and type, how it is obtained, where it shows.

Everything that lists attempts shows views of this row: the entry of a submission (columns with `entry`), CSV, JSON
lines, Parquet and the facade (all columns), the report's `tasks.csv` and `tasks.json` (all), and its page (`heading`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin, get_type_hints

from judge.records.assertions import assertions_in
from judge.records.attacks import AttackOutcome, AttackResult
from judge.records.checks import SuccessRule
from judge.records.findings import AnswerSeen
from judge.records.metadata import Value
from judge.records.policies import PolicyResult
from judge.records.tasks import Task, key_of
from judge.records.tools import SITE_TOOL, acts_on_page, tool_of
from judge.records.verdicts import CHECKS, JUDGE, JudgeInfo, Verdict, is_unconfirmed, method_of
from judge.results.categories import Category, failure_categories
from judge.results.identity import identity_in
from judge.results.progress import progress_of, score_of
from judge.results.rates import CountedAttempt
from judge.results.rewards import reward_of, success_rule
from judge.trajectory.record import Attempt
from shared.claims import ClaimedUsage
from shared.models import TokenUsage
from shared.plugins import extended
from shared.text import clip

if TYPE_CHECKING:
    from judge.results.label_files import LabelWord
    from judge.results.metering import MeteredUsage

T = TypeVar("T")
# Limits for texts in an entry and in a report, so that their sizes are bounded.
MAX_TEXT_CHARS = 2000
# In an entry, why the run excluded its task; in a detail, the excluded tasks; in a table, the verdict of such a row.
EXCLUDED = "excluded"


@dataclass(frozen=True)
class RowSource:
    """The source of a row: an attempt at the task `task_id`, the judge that decides it, and its run.

    `verdict` is the one that counts, with its evidence if that could be read. An entry has no run.
    """

    attempt: Attempt
    task_id: str
    epoch: int
    verdict: Verdict | None
    metered: "MeteredUsage | None" = None
    judge_id: str | None = None
    sha256: str | None = None
    run_id: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    # What people say of it, if somebody labelled it.
    label: "LabelWord | None" = None

    @property
    def task(self) -> Task:
        """The task as it was played."""
        return self.attempt.task

    @property
    def judge(self) -> JudgeInfo | None:
        """The judge named in the verdict."""
        return self.attempt.verdict.judge if self.attempt.verdict else None

    @property
    def reason_code(self) -> str | None:
        """The verdict's."""
        return self.attempt.verdict.reason_code if self.attempt.verdict else None

    @property
    def attack(self) -> AttackResult | None:
        """What became of the attack, if it is a task under attack."""
        return self.attempt.attacked

    @property
    def rejected(self) -> int:
        """How many replies led to no executed action: unreadable, naming something that is not there, or failed."""
        return sum(step.outcome is not None and not step.outcome.ok for step in self.attempt.steps)

    @property
    def site_tool_calls(self) -> int:
        """How often the participant called a tool of the site's."""
        return sum(step.action is not None and step.action.tool == SITE_TOOL for step in self.attempt.steps)

    @property
    def page_actions(self) -> int:
        """How many executed actions could change a page: without looking, waiting, and ending the attempt."""
        done = (step.action for step in self.attempt.steps if step.action and step.outcome and step.outcome.ok)
        return sum(tool_of(action.tool).does != "ends" for action in done if acts_on_page(action.tool))

    @property
    def usage(self) -> TokenUsage:
        """Tokens used for judging."""
        return self.attempt.token_usage

    @property
    def progress(self) -> float | None:
        """The share of the checks or key points met."""
        progress = progress_of(self.verdict)
        return self.attempt.progress if progress is None else progress

    @property
    def claimed(self) -> ClaimedUsage | None:
        """What the participant says that its model used."""
        usage = self.attempt.claimed_usage
        return usage if usage and usage.basis == "claimed" else None

    @property
    def usage_source(self) -> str | None:
        """How the usage of the participant's model is known best."""
        usage = self.attempt.claimed_usage
        return "metered" if self.metered else usage.basis if usage else None

    def used(self, what: str) -> Any:
        """The metered usage, or else what another program recorded, where a number of 0 says that it is unknown."""
        if self.metered:
            return getattr(self.metered, what)
        usage = self.attempt.claimed_usage
        number = getattr(usage, what) if usage and usage.basis == "recorded" else None
        return number if what == "cost_usd" else number or None

    @property
    def efficiency(self) -> float | None:
        """The reference's length in relation to the actions of a success, at most 1."""
        length, attempt = self.task.reference_length, self.attempt
        if length is None or attempt.outcome != "success":
            return None
        return round(min(1.0, length / max(1, attempt.actions_taken)), 4)

    @property
    def rule(self) -> SuccessRule | None:
        """Which rewards are a success, if the task has a reward."""
        return success_rule(self.task.checks)

    @property
    def role(self) -> str:
        """The participant's role."""
        return str(next(iter(self.record.get("participants") or ()), ""))

    @cached_property
    def who(self) -> dict[str, Any]:
        """The identity of participant and scenario."""
        return identity_in(self.record)

    def seconds(self, phase: str) -> float | None:
        """The time of all steps spent in a phase; `None` if no step says what it took."""
        steps = self.attempt.steps
        if steps and not any(step.timings.is_known for step in steps):
            return None
        seconds: list[float] = [getattr(step.timings, phase) for step in steps]
        return round(sum(seconds), 3)


@dataclass(frozen=True)
class Column:
    """A declared column. `entry` is its name in an entry, `heading` its title on the report's page; empty: not there.

    Instead of `None`, an entry has `missing`. It has the key only `when` that is true of an attempt; a file from
    before the column was `added` does not have it at all. `empty` is its value in a row without an attempt. `public`: a
    submission has it also for a task of a sealed set; of the others, it then has the keys without the values.
    """

    name: str
    type: type
    empty: object
    obtain: Callable[[RowSource], Any]
    entry: str
    heading: str
    missing: object
    when: Callable[[RowSource], bool] | None
    added: bool
    public: bool

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, of which means can be taken."""
        return self.type in (int, float)


def column(
    obtain: Callable[[RowSource], T],
    *,
    entry: bool | str = False,
    heading: str = "",
    missing: object = None,
    when: Callable[[RowSource], bool] | None = None,
    added: bool = False,
    public: bool = False,
) -> T:
    """Declare a column (`Column`). `entry` is true if it has the same name there."""
    options = {"obtain": obtain, "entry": entry, "heading": heading, "missing": missing, "when": when, "added": added}
    options |= {"public": public}
    declared: T = field(metadata=options)
    return declared


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """The attempt that counts for one task in one epoch. The order of the columns is part of the format."""

    run_id: str = column(lambda it: it.run_id)
    task_id: str = column(lambda it: it.task_id, entry=True, public=True)
    epoch: int = column(lambda it: it.epoch, entry=True, public=True)
    attempt: int = column(lambda it: it.attempt.number)
    website: str = column(lambda it: it.task.website, entry=True)
    level: str | None = column(lambda it: it.task.level, entry=True, public=True)
    reference_length: int | None = column(lambda it: it.task.reference_length)
    task: str = column(lambda it: it.task.task, entry="task_description")
    verdict: str = column(lambda it: it.attempt.outcome, entry=True, public=True)
    success: bool | None = column(lambda it: _SUCCESS.get(it.attempt.outcome), entry=True, missing=False, public=True)
    decided_by: str = column(lambda it: decided_by(it.attempt, it.judge_id), entry=True, public=True)
    reason: str | None = column(lambda it: it.attempt.verdict.reason if it.attempt.verdict else None, entry=True)
    reason_code: str | None = column(
        lambda it: it.reason_code, entry=True, when=lambda it: it.reason_code is not None, public=True
    )
    failed_check: str | None = column(lambda it: _failed_check(it.verdict))
    stop_reason: str = column(lambda it: it.attempt.stop_reason, entry=True, public=True)
    error: str | None = column(lambda it: it.attempt.cause, entry=True)
    blame: str | None = column(lambda it: it.attempt.blame)
    flags: tuple[str, ...] = column(lambda it: tuple(it.attempt.flags), entry=True, public=True)
    steps: int = column(lambda it: it.attempt.steps_taken, entry="steps_taken", public=True)
    max_steps: int = column(lambda it: it.attempt.max_steps, entry=True, public=True)
    answer: str | None = column(lambda it: it.attempt.final_answer)
    started_at: str | None = column(lambda it: _time(it.attempt.started_at))
    ended_at: str | None = column(lambda it: _time(it.attempt.ended_at))
    duration_s: float | None = column(lambda it: it.attempt.duration_s, entry=True, missing=0.0, public=True)
    observe_s: float | None = column(lambda it: it.seconds("observe_s"))
    reply_s: float | None = column(lambda it: it.seconds("reply_s"))
    act_s: float | None = column(lambda it: it.seconds("act_s"))
    judge_s: float | None = column(lambda it: it.attempt.judge_s)
    judge_method: str | None = column(lambda it: it.judge.method if it.judge else None)
    judge_model: str | None = column(lambda it: it.judge.model if it.judge else None)
    judge_calls: int = column(lambda it: it.usage.calls)
    input_tokens: int = column(lambda it: it.usage.input)
    output_tokens: int = column(lambda it: it.usage.output)
    cached_tokens: int = column(lambda it: it.usage.cached)
    reasoning_tokens: int = column(lambda it: it.usage.reasoning)
    cost_usd: float | None = column(lambda it: it.attempt.cost_usd)
    participant: str = column(lambda it: it.role)
    name: str | None = column(lambda it: it.who["name"])
    agent: str | None = column(lambda it: it.who["card_name"])
    agent_version: str | None = column(lambda it: it.who["card_version"])
    model: str | None = column(lambda it: it.who["model"])
    agentbeats_id: str | None = column(lambda it: it.who["agentbeats_id"])
    scenario: str | None = column(lambda it: it.who["scenario"])
    revision: str | None = column(lambda it: it.who["revision"])
    trajectory_sha256: str | None = column(lambda it: it.sha256)
    excluded: str | None = column(
        lambda it: it.attempt.excluded, entry=True, when=lambda it: it.attempt.excluded is not None
    )
    reward: float | None = column(
        lambda it: reward_of(it.attempt), entry=True, when=lambda it: it.rule is not None, added=True, public=True
    )
    success_rule: str | None = column(
        lambda it: it.rule, entry=True, when=lambda it: it.rule is not None, added=True, public=True
    )
    categories: Mapping[Category, str] = column(lambda it: dict(failure_categories(it.attempt, it.verdict)))
    coverage: str | None = column(
        lambda it: it.attempt.frozen.coverage if it.attempt.frozen else None,
        entry=True,
        when=lambda it: it.attempt.frozen is not None,
        added=True,
        public=True,
    )
    not_executed: int = column(lambda it: it.rejected, entry=True, heading="Not executed", added=True, public=True)
    completed_under_policy: bool | None = column(
        lambda it: it.attempt.completed_under_policy,
        entry=True,
        when=lambda it: bool(it.attempt.policies),
        added=True,
        public=True,
    )
    policies: Mapping[str, str] = column(lambda it: {each.name: each.dimension for each in it.attempt.policies})
    violated_policies: Mapping[str, str] = column(lambda it: _policies(it.attempt, violated=True))
    undecided_policies: Mapping[str, str] = column(lambda it: _policies(it.attempt, violated=None))
    # Of the undecided ones: those that count as violated.
    presumed_policies: Mapping[str, str] = column(
        lambda it: {each.name: each.dimension for each in it.attempt.policies if each.presumed}
    )
    # With dates as the scenario has them (`{today}`), which is the same on every day.
    task_template: str | None = column(
        lambda it: it.task.declared_text if it.task.dated else None,
        entry=True,
        when=lambda it: it.task.dated is not None,
        added=True,
    )

    sealed: str | None = column(
        lambda it: it.task.sealed, entry=True, when=lambda it: it.task.sealed is not None, added=True, public=True
    )
    attack: str | None = column(lambda it: it.attack.name if it.attack else None)
    attack_kind: str | None = column(lambda it: it.attack.kind if it.attack else None)
    attack_of: str | None = column(lambda it: it.attack.of if it.attack else None)
    attack_shown: bool | None = column(lambda it: it.attack.shown if it.attack else None)
    attack_started: bool | None = column(lambda it: it.attack.started if it.attack else None)
    attack_succeeded: bool | None = column(lambda it: it.attack.succeeded if it.attack else None)
    attack_left_out: bool | None = column(lambda it: it.attack.is_left_out if it.attack else None)
    progress: float | None = column(
        lambda it: it.progress, entry=True, when=lambda it: it.progress is not None, added=True, public=True
    )
    participant_calls: int | None = column(lambda it: it.metered.calls if it.metered else None)
    participant_unknown_calls: int | None = column(lambda it: it.metered.unknown_calls if it.metered else None)
    participant_input_tokens: int | None = column(lambda it: it.used("input"))
    participant_output_tokens: int | None = column(lambda it: it.used("output"))
    participant_cached_tokens: int | None = column(lambda it: it.used("cached"))
    participant_reasoning_tokens: int | None = column(lambda it: it.used("reasoning"))
    participant_model_s: float | None = column(lambda it: it.metered.seconds if it.metered else None)
    participant_cost_usd: float | None = column(lambda it: it.used("cost_usd"))
    claimed_input_tokens: int | None = column(lambda it: it.claimed.input if it.claimed else None)
    claimed_output_tokens: int | None = column(lambda it: it.claimed.output if it.claimed else None)
    claimed_cost_usd: float | None = column(lambda it: it.claimed.cost_usd if it.claimed else None)
    score: float | None = column(
        lambda it: score_of(it.verdict),
        entry=True,
        when=lambda it: score_of(it.verdict) is not None,
        added=True,
        public=True,
    )
    # Only where a reply may have several actions: otherwise there are as many as steps.
    actions: int | None = column(
        lambda it: it.attempt.actions_taken if it.attempt.max_actions > 1 else None,
        entry="actions_taken",
        when=lambda it: it.attempt.max_actions > 1,
        added=True,
        public=True,
    )
    max_actions: int | None = column(
        lambda it: it.attempt.max_actions if it.attempt.max_actions > 1 else None,
        entry=True,
        when=lambda it: it.attempt.max_actions > 1,
        added=True,
        public=True,
    )
    # Empty where they were off.
    site_tools: str | None = column(
        lambda it: it.attempt.site_tools if it.attempt.site_tools != "off" else None,
        entry=True,
        when=lambda it: it.attempt.site_tools != "off",
        heading="Site tools",
        added=True,
        public=True,
    )
    site_tool_calls: int = column(lambda it: it.site_tool_calls, heading="Site tool calls")
    human_label: str | None = column(lambda it: it.label, heading="Label")
    page_actions: int = column(lambda it: it.page_actions)
    answer_seen: bool | None = column(lambda it: answer_seen(it.verdict))
    isolation: str | None = column(lambda it: it.who.get("isolation"))
    usage_source: str | None = column(lambda it: it.usage_source)
    metadata: Mapping[str, Value] | None = column(
        lambda it: it.task.metadata or None,
        entry=True,
        when=lambda it: bool(it.task.metadata),
        heading="Metadata",
        added=True,
    )
    # Of a success: how few steps it took beside a human's, at most 1.
    efficiency: float | None = column(
        lambda it: it.efficiency,
        entry=True,
        when=lambda it: it.efficiency is not None,
        heading="Efficiency",
        added=True,
        public=True,
    )

    @classmethod
    def of(cls, source: RowSource, *, max_chars: int | None = None, **more: Any) -> Self:
        """The row of an attempt; its texts are cut at `max_chars`. `more` are the fields of a subclass."""
        return cls(**{each.name: _cut(each.obtain(source), max_chars) for each in COLUMNS}, **more)

    @classmethod
    def without_attempt(cls, **values: Any) -> Self:
        """A row for a task without a readable attempt: unknown values are missing or 0."""
        empty: dict[str, Any] = {each.name: each.empty for each in COLUMNS}
        return cls(**(empty | values))

    @property
    def key(self) -> str:
        """The name of the task in its epoch, unique in the run; also names its page and image folder."""
        return key_of(self.task_id, self.epoch)

    @property
    def is_attacked(self) -> bool:
        """Whether the task was under attack: no rate of clean tasks counts it."""
        return self.attack is not None

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is unscored because a frozen site does not confirm its success."""
        return is_unconfirmed(self.verdict, self.reason_code)

    @property
    def counted(self) -> CountedAttempt:
        """The attempt's contribution to the figures of a run."""
        attack = None
        if self.attack is not None:
            attack = AttackOutcome(
                self.attack_of or "",
                self.attack,
                self.attack_kind or "",
                bool(self.attack_shown),
                self.attack_started,
                self.attack_succeeded,
                bool(self.attack_left_out),
            )
        return CountedAttempt(
            task=self.task_id,
            outcome=self.verdict,
            ended_itself=self.stop_reason == "finished",
            coverage=self.coverage,
            attack=attack,
            is_unconfirmed=self.is_unconfirmed,
            policies=tuple(
                PolicyResult(
                    name=name,
                    dimension=dimension,
                    violated=None if name in self.undecided_policies else name in self.violated_policies,
                    presumed=name in self.presumed_policies,
                )
                for name, dimension in self.policies.items()
            ),
            progress=self.progress,
            score=self.score,
            level=self.level or "unknown",
            decided_by=self.decided_by,
            metadata=self.metadata or {},
            efficiency=self.efficiency,
        )

    def cells(self) -> dict[str, Any]:
        """The row as a flat record, for tables: lists are joined by spaces, and metadata are JSON."""
        flat = {name: " ".join(each) if _is_list(each) else each for name, each in self.values().items()}
        return flat | {"metadata": json.dumps(self.metadata, ensure_ascii=False) if self.metadata else None}

    def values(self) -> dict[str, Any]:
        """The row as a record with lists, and with the fact beside each category."""
        return {each.name: getattr(self, each.name) for each in COLUMNS}


def entry_of(source: RowSource) -> dict[str, Any]:
    """The columns of a submission's entry."""
    entry = {}
    for each in ENTRY_COLUMNS:
        if each.when is None or each.when(source):
            value = _cut(each.obtain(source), MAX_TEXT_CHARS)
            if source.task.sealed and not each.public:
                value = emptied(value)
            value = each.missing if value is None else value
            entry[each.entry] = list(value) if isinstance(value, tuple) else value
    return entry


def decided_by(attempt: Attempt, judge_id: str | None = None) -> str:
    """What decides the attempt's task, even if there is no verdict yet."""
    judge = attempt.verdict.judge if attempt.verdict else None
    method = judge.method if judge else method_of(judge_id) if judge_id else CHECKS
    if judge is not None and judge.is_ground_truth and method != CHECKS:
        return method
    # An offline run is judged by checks, even for a task without any.
    return CHECKS if attempt.task.checks and method == CHECKS else JUDGE


def answer_seen(verdict: Verdict | None) -> bool | None:
    """Whether everything that checks found in the answer was on an observed page; `None` without such."""
    facts = [fact for each in assertions_in(verdict) for fact in each.facts or () if isinstance(fact, AnswerSeen)]
    return all(fact.step is not None for fact in facts) if facts else None


def _policies(attempt: Attempt, *, violated: bool | None) -> dict[str, str]:
    """The dimensions by name of the policies of which this is known."""
    return {each.name: each.dimension for each in attempt.policies if each.violated is violated}


def _failed_check(verdict: Verdict | None) -> str | None:
    return "; ".join(each.description for each in assertions_in(verdict) if each.passed is False) or None


def _time(seconds: float) -> str | None:
    """A moment; `None` for 0, which says that it is unknown."""
    return None if not seconds else datetime.fromtimestamp(seconds, UTC).isoformat()


def _cut(value: Any, max_chars: int | None) -> Any:
    return clip(value, max_chars) if max_chars is not None and isinstance(value, str) else value


def emptied(value: Any) -> Any:
    """A value of the same kind without content; texts and lists are the only ones that can have any."""
    return "" if isinstance(value, str) else [] if isinstance(value, list | tuple) else None


def _is_list(value: object) -> bool:
    return isinstance(value, tuple | dict)


def _declared() -> tuple[Column, ...]:
    types = get_type_hints(AttemptRow)
    declared_columns = []
    for each in fields(AttemptRow):
        options = dict(each.metadata)
        entry = options.pop("entry")
        kind, is_optional = _kind(types[each.name])
        declared_columns.append(
            Column(
                name=each.name,
                type=kind,
                empty=None if is_optional else kind(),
                entry=each.name if entry is True else entry or "",
                **options,
            )
        )
    return tuple(declared_columns)


def _kind(annotation: Any) -> tuple[type, bool]:
    """The class of a column's values, and whether they may be missing."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (get_origin(annotation) or annotation,)
    (kind,) = (get_origin(kind) or kind for kind in kinds if kind is not NoneType)
    return dict if kind is Mapping else kind, NoneType in kinds


if not TYPE_CHECKING:
    AttemptRow = extended(AttemptRow, "columns")
_SUCCESS: Mapping[str, bool] = MappingProxyType({"success": True, "failure": False})
COLUMNS = _declared()
ENTRY_COLUMNS = tuple(each for each in COLUMNS if each.entry)

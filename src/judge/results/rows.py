"""The row of an attempt. A column is declared once, in one line: its name and type, how it is obtained, where it shows.

Everything that lists attempts shows views of this row: the entry of a submission (columns with `entry`), CSV, JSON
lines, Parquet and the facade (all columns), the report's `tasks.csv` and `tasks.json` (all), and its page (`heading`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin, get_type_hints

from judge.records.assertions import assertions_in
from judge.records.attacks import AttackOutcome
from judge.records.findings import AnswerSeen
from judge.records.metadata import Value
from judge.records.policies import PolicyResult
from judge.records.tasks import key_of
from judge.records.verdicts import CHECKS, JUDGE, Verdict, is_unconfirmed, method_of
from judge.results.categories import Category, failure_categories
from judge.results.columns import Column, RowSource, column
from judge.results.progress import score_of
from judge.results.rates import CountedAttempt
from judge.results.rewards import reward_of
from judge.trajectory.record import Attempt
from shared.plugins import extended
from shared.text import clip

T = TypeVar("T")
# Limits for texts in an entry and in a report, so that their sizes are bounded.
MAX_TEXT_CHARS = 2000
# In an entry, why the run excluded its task; in a detail, the excluded tasks; in a table, the verdict of such a row.
EXCLUDED = "excluded"


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
    # Of a task under an attack or a variant.
    clean_task: str | None = column(
        lambda it: it.task.clean_task,
        entry=True,
        when=lambda it: it.task.clean_task is not None,
        added=True,
        public=True,
    )
    attack: str | None = column(lambda it: it.attack.name if it.attack else None)
    attack_kind: str | None = column(lambda it: it.attack.kind if it.attack else None)
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
        of_mode="max_actions",
    )
    max_actions: int | None = column(
        lambda it: it.attempt.max_actions if it.attempt.max_actions > 1 else None,
        entry=True,
        when=lambda it: it.attempt.max_actions > 1,
        added=True,
        public=True,
        mode="1",
    )
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
    def is_clean(self) -> bool:
        """Whether the task was under no attack or variant: the rates of a run count no other."""
        return self.clean_task is None

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
            clean_task=self.clean_task,
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
    declared_columns: list[Column] = []
    for each in fields(AttemptRow):
        options = dict(each.metadata)
        entry = options.pop("entry")
        kind, is_optional = _kind(types[each.name])
        made = Column(
            name=each.name,
            type=kind,
            empty=None if is_optional else kind(),
            entry=each.name if entry is True else entry or "",
            **options,
        )
        names = [each.name for each in declared_columns]
        declared_columns.insert(names.index(made.after) + 1 if made.after in names else len(names), made)
    return tuple(declared_columns)


def _kind(annotation: Any) -> tuple[type, bool]:
    """The class of a column's values, and whether they may be missing."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (get_origin(annotation) or annotation,)
    (kind,) = (get_origin(kind) or kind for kind in kinds if kind is not NoneType)
    return dict if kind is Mapping else kind, NoneType in kinds


if not TYPE_CHECKING:
    AttemptRow = extended(AttemptRow)
_SUCCESS: Mapping[str, bool] = MappingProxyType({"success": True, "failure": False})
COLUMNS = _declared()
ENTRY_COLUMNS = tuple(each for each in COLUMNS if each.entry)

"""What a participant's model calls cost, as a meter on this machine saw them: the ledger of a run, read and added up.

`metering.jsonl` has two lines for each call, one when it is sent and one when it has ended, so that a meter that is
killed loses none. The judge adds one for each attempt that begins, so that calls of an attempt cut off are not
taken for another one's. What a provider does not report is unknown, never zero. A participant can also call a
model without the meter, so every figure is a lower bound.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError

from judge.store.layout import RunStore
from judge.store.run_files import METERING
from judge.trajectory.record import Attempt
from shared.fields import without_none
from shared.files import opened, read_errors, read_json
from shared.models import Record

LEDGER = METERING.name
# In a submission's detail; `METERED` says how the figures were obtained.
PARTICIPANT_COST, PARTICIPANT_USAGE, METERED = "participant_cost_usd", "participant_usage", "metered, lower bound"
# A million calls; a line has no content and so a bounded length.
_MAX_BYTES = 1_000_000_000
_MAX_LINE_BYTES = 16_384
UNASSIGNED = "unassigned_calls"
# Why the tokens of a call are not known: the provider did not report them; the call was cut off; its answer is in an
# encoding not read, too large, or not of the provider's format; the meter was killed meanwhile.
Unknown = Literal["not_reported", "cut_off", "encoding", "too_large", "unreadable", "lost"]
MeteredCount = Annotated[int, Field(ge=0, le=10**12)]


class Tokens(Record):
    """The tokens of a call. `input` includes `cached` and `written` (to the provider's cache), `output` `reasoning`."""

    input: MeteredCount
    output: MeteredCount
    cached: MeteredCount = 0
    written: MeteredCount = 0
    reasoning: MeteredCount = 0


class CallStart(Record):
    """A call being sent. `attempt` is what the participant names, `one_slot` that only one can be meant."""

    call: str = Field(max_length=64)
    at: float
    role: str = Field(max_length=1000)
    provider: str = Field(max_length=100)
    attempt: str | None = Field(default=None, max_length=200)
    one_slot: bool = False


class CallEnd(Record):
    """How a call ended. `status` is its answer's, `None` without one; `is_sent` is false if it never left."""

    call: str = Field(max_length=64)
    seconds: float = Field(ge=0)
    status: int | None = None
    is_sent: bool = True
    is_streamed: bool = False
    model: str | None = Field(default=None, max_length=300)
    tokens: Tokens | None = None
    unknown: Unknown | None = None
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_date: str | None = Field(default=None, max_length=40)


class AttemptStart(Record):
    """An attempt at a `task` begins, of a judge that plays since then, in seconds since 1970."""

    attempt: str = Field(max_length=200)
    task: str = Field(max_length=400)
    began: float
    since: float

    def write(self, ledger: Path) -> None:
        """Append the line in one write, because the meter appends to the file as well. Raises `OSError`."""
        with ledger.open("ab", buffering=0) as stream:
            stream.write(self.model_dump_json().encode() + b"\n")


@dataclass(frozen=True)
class Call:
    """A call with its end; one that the meter did not see ends as `lost`."""

    start: CallStart
    end: CallEnd

    @property
    def is_refused(self) -> bool:
        """Whether the provider refused the call, or never received it: it costs nothing."""
        return not self.end.is_sent or (self.end.status is not None and self.end.status >= 400)


@dataclass(frozen=True)
class MeteredUsage:
    """Calls added up. Tokens are those that are known; `unknown_calls` are the calls whose tokens are not.

    `cost_usd` is `None` if one call's is not known; `known_cost_usd` is the others'. `unassigned_calls`
    count for the run, but for none of its attempts.
    """

    calls: int = 0
    refused_calls: int = 0
    unknown_calls: int = 0
    unpriced_calls: int = 0
    unassigned_calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    seconds: float = 0.0
    known_cost_usd: float = 0.0
    models: tuple[str, ...] = ()
    price_date: str | None = None

    @property
    def cost_usd(self) -> float | None:
        """The cost of all calls; `None` if one call's is not known."""
        return None if self.unpriced_calls else self.known_cost_usd

    @classmethod
    def of(cls, calls: Iterable[Call], *, unassigned_calls: int = 0) -> Self | None:
        """The sum of these calls; `None` without any, because nothing was measured then."""
        all_calls = list(calls)
        if not all_calls:
            return None
        answered = [each.end for each in all_calls if not each.is_refused]
        known = [each.tokens for each in answered if each.tokens is not None]
        costs = [each.cost_usd for each in answered if each.cost_usd is not None]
        names = (f"{each.start.provider}:{each.end.model}" for each in all_calls if each.end.model)
        return cls(
            calls=len(all_calls),
            refused_calls=len(all_calls) - len(answered),
            unknown_calls=len(answered) - len(known),
            unpriced_calls=len(answered) - len(costs),
            unassigned_calls=unassigned_calls,
            input=sum(each.input for each in known),
            output=sum(each.output for each in known),
            cached=sum(each.cached for each in known),
            reasoning=sum(each.reasoning for each in known),
            seconds=round(sum(each.end.seconds for each in all_calls), 3),
            # Rounded, so that the sum does not depend on the order of the calls.
            known_cost_usd=round(sum(costs), 9),
            models=tuple(sorted(set(names))),
            price_date=max((each.price_date for each in answered if each.price_date), default=None),
        )

    def published(self) -> dict[str, Any]:
        """As in a submission's detail: a cost not known is absent."""
        return {
            **without_none(participant_cost_usd=None if self.cost_usd is None else round(self.cost_usd, 6)),
            PARTICIPANT_USAGE: {
                "basis": METERED,
                "calls": self.calls,
                "refused_calls": self.refused_calls,
                "unknown_calls": self.unknown_calls,
                UNASSIGNED: self.unassigned_calls,
                "input_tokens": self.input,
                "output_tokens": self.output,
                "cached_tokens": self.cached,
                "reasoning_tokens": self.reasoning,
                "seconds": self.seconds,
                "known_cost_usd": round(self.known_cost_usd, 6),
                "models": list(self.models),
                "price_date": self.price_date,
            },
        }


@dataclass(frozen=True)
class InProgress:
    """When an attempt was in progress, by the id of its conversation."""

    context_id: str
    began: float
    end: float

    @classmethod
    def unrecorded(cls, start: AttemptStart, starts: Iterable[AttemptStart]) -> Self:
        """An attempt whose end is not recorded: it was over when its task, or another judge, began again."""
        again = [each.began for each in starts if each.task == start.task and each.began > start.began]
        again += [each.since for each in starts if each.since > start.since]
        return cls(start.attempt, start.began, min(again, default=math.inf))


@dataclass(frozen=True)
class Metering:
    """The calls of a run. Its attempts were played by the participant of `role`; `None` if that is not known."""

    calls: tuple[Call, ...]
    attempts: tuple[InProgress, ...] = ()
    role: str | None = None

    @classmethod
    def of(cls, store: RunStore) -> Self | None:
        """What was metered in a run and its shards; `None` if it was not metered."""
        own = store.folder / LEDGER
        # Merging joins the shards' files; older versions did not.
        ledger_files = [own] if own.exists() else sorted(store.folder.glob(f"shards/*/{LEDGER}"))
        if not ledger_files:
            return None
        ledgers = [read_ledger(path) for path in ledger_files]
        starts = [start for ledger in ledgers for start in ledger.starts]
        attempts = list(_attempts_in(store.folder))
        recorded = {each.context_id for each in attempts}
        attempts += [InProgress.unrecorded(each, starts) for each in starts if each.attempt not in recorded]
        record = store.read_run() or {}
        participants = record.get("participants")
        role = next(iter(participants), None) if isinstance(participants, dict) else None
        return cls(tuple(call for ledger in ledgers for call in ledger.calls), tuple(attempts), role)

    @property
    def total(self) -> MeteredUsage | None:
        """All calls of the run, also between attempts."""
        return MeteredUsage.of(self.calls, unassigned_calls=sum(self._is_unassigned(call) for call in self.calls))

    def of_attempt(self, attempt: Attempt) -> MeteredUsage | None:
        """The calls of one attempt; `None` if there are none, or if some call of its time could be anybody's."""
        calls = []
        for call in self.calls:
            is_meanwhile = self._is_player(call) and attempt.started_at <= call.start.at <= attempt.ended_at
            if is_meanwhile and call.start.one_slot:
                # Whatever it names, no other attempt can be meant.
                calls.append(call)
            elif (attempt_id := self._attempt_named(call)) is not None:
                calls += [call] if attempt_id == attempt.context_id else []
            elif is_meanwhile:
                return None
        return MeteredUsage.of(calls)

    def _is_player(self, call: Call) -> bool:
        return self.role is None or call.start.role == self.role

    def _attempt_named(self, call: Call) -> str | None:
        """The attempt that a call names, if that was in progress and is its participant's."""
        name = call.start.attempt if self._is_player(call) else None
        return next((each.context_id for each in self._meanwhile(call) if each.context_id == name), None)

    def _is_unassigned(self, call: Call) -> bool:
        """Whether a call counts for the run, but cannot be assigned to an attempt."""
        is_slots = call.start.one_slot and self._is_player(call) and bool(self._meanwhile(call))
        return not is_slots and self._attempt_named(call) is None

    def _meanwhile(self, call: Call) -> list[InProgress]:
        return [each for each in self.attempts if each.began <= call.start.at <= each.end]


def _attempts_in(folder: Path) -> Iterator[InProgress]:
    """The attempts of a run, of its epochs and of its shards, also those that were played again."""
    for path in sorted(folder.glob("**/result.json")):
        try:
            record = read_json(path)
            began, ended_at = (
                datetime.fromisoformat(record["times"][name]).timestamp() for name in ("started_at", "ended_at")
            )
            yield InProgress(str(record["context_id"]), began, ended_at)
        except (OSError, ValueError, KeyError, TypeError):
            # Older versions recorded no conversation; a damaged record is reported elsewhere.
            continue


class LedgerContent(NamedTuple):
    """The calls of a ledger, in the order in which they began, and the attempts that began."""

    calls: tuple[Call, ...]
    starts: tuple[AttemptStart, ...]


def read_ledger(path: Path) -> LedgerContent:
    """Read a ledger. Lines that cannot be read are left out.

    Raises `ConfigError` for a ledger that is not a file, or too large.
    """
    begun: dict[str, CallStart] = {}
    ends_by_call: dict[str, CallEnd] = {}
    starts: list[AttemptStart] = []
    remedy = "remove it: the run is then one without a meter"
    with read_errors(path, remedy), opened(path, max_bytes=_MAX_BYTES) as stream:
        while line := stream.readline(_MAX_LINE_BYTES):
            try:
                value: dict[str, Any] = json.loads(line)
                if "at" in value:
                    first = CallStart.model_validate(value)
                    begun.setdefault(first.call, first)
                elif "attempt" in value:
                    starts.append(AttemptStart.model_validate(value))
                else:
                    last = CallEnd.model_validate(value)
                    ends_by_call.setdefault(last.call, last)
            except (ValueError, ValidationError, TypeError, RecursionError):
                # A line that was torn when the machine stopped.
                continue
    calls = (
        Call(each, ends_by_call.get(name) or CallEnd(call=name, seconds=0.0, unknown="lost"))
        for name, each in begun.items()
    )
    return LedgerContent(tuple(calls), tuple(starts))

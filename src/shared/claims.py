"""What a participant says about its model and its work, in the metadata of its A2A replies: untrusted claims, which
are shown as such, and are neither measurements nor evidence.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from shared.models import Record, RecordedLimit, omit_default
from shared.text import one_line

# The key in a reply's metadata; its value is a table such as `{"input_tokens": 812, "output_tokens": 64}`.
USAGE_KEY = "usage"
# Numbers in A2A metadata are doubles. More than any reply uses, so that sums stay exact.
_Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]


UsageBasis = Literal["claimed", "recorded"]


class _UsageClaim(Record):
    """The keys in use; others are ignored."""

    input_tokens: _Tokens = 0
    output_tokens: _Tokens = 0
    cached_tokens: _Tokens = 0
    reasoning_tokens: _Tokens = 0
    cost_usd: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)


class ClaimedUsage(Record):
    """The sum over the replies that reported something. `cost_usd` is `None` if one of them did not say it.

    `basis` is `recorded` if another program that recorded the attempt says it, rather than the participant.
    """

    basis: UsageBasis = "claimed"
    replies: int = Field(default=0, ge=0)
    input: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    cached: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @classmethod
    def in_reply(cls, metadata: Mapping[str, Any]) -> Self | None:
        """What one reply reports; `None` if it reports nothing that can be read."""
        value = metadata.get(USAGE_KEY)
        if not isinstance(value, Mapping):
            return None
        known = {name: value[name] for name in _UsageClaim.model_fields if name in value}
        try:
            claim = _UsageClaim.model_validate(known)
        except ValidationError:
            return None
        if not known:
            return None
        return cls(
            replies=1,
            input=claim.input_tokens,
            output=claim.output_tokens,
            cached=claim.cached_tokens,
            reasoning=claim.reasoning_tokens,
            cost_usd=claim.cost_usd,
        )

    def __add__(self, other: "ClaimedUsage") -> "ClaimedUsage":
        """Both together."""
        costs = (self.cost_usd, other.cost_usd)
        return ClaimedUsage(
            basis=self.basis,
            replies=self.replies + other.replies,
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            reasoning=self.reasoning + other.reasoning,
            # Rounded, so that the sum does not depend on the order.
            cost_usd=None if costs[0] is None or costs[1] is None else round(costs[0] + costs[1], 9),
        )


# What the participant did for one reply: a list of tables, and the W3C header's value (Trace Context, level 1).
SPANS_KEY = "spans"
TRACEPARENT_KEY = "traceparent"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
MAX_SPANS = 50
_MAX_NAME_CHARS = 100
_MAX_TEXT_CHARS = 500
_Seconds = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]


class ClaimedSpan(Record):
    """A piece of the participant's work. `start` and `end` are seconds since 1970, by its own clock."""

    name: Annotated[str, RecordedLimit(400)]
    start: _Seconds
    end: _Seconds
    input_tokens: _Tokens | None = omit_default(None)
    output_tokens: _Tokens | None = omit_default(None)
    text: Annotated[str, RecordedLimit(2_000)] = omit_default("")

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Self:
        if self.end < self.start:
            raise ValueError("a span ends before it starts")
        return self


class ClaimedTrace(Record):
    """What the participant says it did for one reply."""

    traceparent: str | None = omit_default(None)
    spans: tuple[ClaimedSpan, ...] = omit_default(())

    @classmethod
    def in_reply(cls, metadata: Mapping[str, Any]) -> Self | None:
        """The first `MAX_SPANS` spans that can be read, with texts cut; `None` if there is nothing to read."""
        parent, span_list = metadata.get(TRACEPARENT_KEY), metadata.get(SPANS_KEY)
        spans = filter(None, map(_span, span_list[:MAX_SPANS] if isinstance(span_list, list) else ()))
        is_parent = isinstance(parent, str) and _TRACEPARENT.fullmatch(parent)
        trace = cls(traceparent=parent if is_parent else None, spans=tuple(spans))
        return trace if trace.traceparent or trace.spans else None

    @property
    def begins(self) -> float:
        """The start of the first span."""
        return min((span.start for span in self.spans), default=0.0)


def _span(value: object) -> ClaimedSpan | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        return None
    known = {name: value[name] for name in ClaimedSpan.model_fields if name in value}
    known["name"] = one_line(known["name"], _MAX_NAME_CHARS)
    if isinstance(known.get("text"), str):
        known["text"] = known["text"][:_MAX_TEXT_CHARS]
    try:
        return ClaimedSpan.model_validate(known)
    except ValidationError:
        return None

"""What a participant says that its model used, in the metadata of its A2A replies: untrusted, never a measurement."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError

from shared.models import Record

# The key in a reply's metadata; its value is a table such as `{"input_tokens": 812, "output_tokens": 64}`.
USAGE_KEY = "usage"
# Numbers in A2A metadata are doubles. More than any reply uses, so that sums stay exact.
_Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]


class _UsageClaim(Record):
    """The keys that are read; others are ignored."""

    input_tokens: _Tokens = 0
    output_tokens: _Tokens = 0
    cached_tokens: _Tokens = 0
    reasoning_tokens: _Tokens = 0
    cost_usd: float | None = Field(default=None, ge=0, le=1_000_000, allow_inf_nan=False)


class ClaimedUsage(Record):
    """The sum over the replies that reported something. `cost_usd` is `None` if one of them did not say it."""

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
            found = _UsageClaim.model_validate(known)
        except ValidationError:
            return None
        if not known:
            return None
        return cls(
            replies=1,
            input=found.input_tokens,
            output=found.output_tokens,
            cached=found.cached_tokens,
            reasoning=found.reasoning_tokens,
            cost_usd=found.cost_usd,
        )

    def __add__(self, other: "ClaimedUsage") -> "ClaimedUsage":
        """Both together."""
        costs = (self.cost_usd, other.cost_usd)
        return ClaimedUsage(
            replies=self.replies + other.replies,
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            reasoning=self.reasoning + other.reasoning,
            # Rounded, so that the sum does not depend on the order.
            cost_usd=None if costs[0] is None or costs[1] is None else round(costs[0] + costs[1], 9),
        )

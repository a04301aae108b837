"""The model protocol, shared by adapters and wrappers: one request in, one completion out."""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from shared.models import Record, TokenUsage

Detail = Literal["low", "high", "auto"]
FinishReason = Literal["stop", "length", "blocked", "other"]
# Awaited before a request is repeated; may raise a `ModelError` instead.
BeforeRetry = Callable[[], Awaitable[None]]


class ImagePart(Record):
    """An image of a request, as encoded bytes.

    OpenAI models only: `detail` is how closely they look, `named_type` the media type to name instead of the real one.
    """

    data: bytes
    media_type: str = "image/jpeg"
    detail: Detail | None = None
    named_type: str | None = None


class ModelRequest(Record):
    """One call: a system prompt and a user turn of texts and images, in order. `lead` is a user turn before it."""

    system: str
    lead: tuple[str | ImagePart, ...] = ()
    parts: tuple[str | ImagePart, ...]
    max_output_tokens: int | None = None
    temperature: float | None = 0.0
    seed: int | None = None

    @property
    def turns(self) -> list[tuple[str | ImagePart, ...]]:
        """The user turns."""
        return [turn for turn in (self.lead, self.parts) if turn]


class Completion(Record):
    """A model's answer. `cost_usd` is `None` when the price of the model is unknown; `payer`: see `CachedModel`."""

    text: str
    model: str
    finish_reason: FinishReason = "stop"
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None
    payer: str | None = None


class Model(Protocol):
    """Anything that answers a `ModelRequest`, or raises a subclass of `ModelError` that says why it cannot."""

    @property
    def name(self) -> str:
        """`provider:model`, as in a scenario."""
        ...

    async def complete(self, request: ModelRequest) -> Completion: ...

    async def aclose(self) -> None: ...

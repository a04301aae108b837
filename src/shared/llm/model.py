"""The model protocol: one request in, one completion out. Adapters and wrappers share it."""

from typing import Literal, Protocol

from shared.models import Record, TokenUsage

FinishReason = Literal["stop", "length", "blocked", "other"]


class ImagePart(Record):
    """An image of a request, as encoded bytes."""

    data: bytes
    media_type: str = "image/jpeg"


class ModelRequest(Record):
    """One call: a system prompt and a user turn of texts and images, in order."""

    system: str
    parts: tuple[str | ImagePart, ...]
    max_output_tokens: int | None = None
    temperature: float | None = 0.0
    seed: int | None = None


class Completion(Record):
    """A model's answer. `cost_usd` is `None` when the price of the model is unknown."""

    text: str
    model: str
    finish_reason: FinishReason = "stop"
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None


class Model(Protocol):
    """Anything that answers a `ModelRequest`.

    Raises `shared.errors.ModelError` (a subclass says why) when there is no answer to return.
    """

    @property
    def name(self) -> str:
        """`provider:model`, as in a scenario."""
        ...

    async def complete(self, request: ModelRequest) -> Completion: ...

    async def aclose(self) -> None: ...

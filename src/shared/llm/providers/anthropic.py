"""Anthropic models over the anthropic SDK. The only file that imports that SDK.

Wire format: the Messages API (https://platform.claude.com/docs/en/api/messages).
"""

import base64
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import AliasPath, BaseModel, Field

from shared.errors import ModelBlocked, ModelError
from shared.llm.http import UNREPORTED, HTTPModel, http_client
from shared.llm.model import Completion, ImagePart, ModelRequest
from shared.llm.provider import Provider
from shared.models import TokenUsage

if TYPE_CHECKING:
    import anthropic

# The API requires a limit, and thinking counts towards it.
_MAX_TOKENS = 16_000
# A filter's error has the type of any bad request; only its text tells that it is one.
_FILTERED = "content filtering policy"


class _Usage(BaseModel):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class Block(BaseModel):
    """One block of an answer: text, thoughts or a tool call; which of the fields there are depends on its type."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    toolset_name: str | None = None
    input: dict[str, Any] = Field(default_factory=dict)


class MessageResponse(BaseModel):
    """What is read of an answer."""

    content: list[Block]
    # Must be sent back unchanged: thinking blocks are signed.
    as_sent: list[dict[str, Any]] = Field(validation_alias=AliasPath("content"))
    model: str | None = None
    stop_reason: str | None = None
    reported: _Usage = Field(default_factory=_Usage, validation_alias="usage")

    @property
    def text(self) -> str:
        """The answer's text, without thoughts."""
        return "".join(block.text for block in self.content if block.type == "text")

    @property
    def usage(self) -> TokenUsage:
        """The call's tokens. The API counts tokens read from and written to its cache separately."""
        cached = self.reported.cache_read_input_tokens or 0
        cache_writes = self.reported.cache_creation_input_tokens or 0
        return TokenUsage(
            calls=1,
            input=self.reported.input_tokens + cached + cache_writes,
            output=self.reported.output_tokens,
            cached=cached,
        )


class AnthropicModel(HTTPModel):
    """One Anthropic model. It is sent neither a temperature nor a seed: current models refuse both."""

    provider = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    finish_reasons = MappingProxyType({"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"})

    def _connect(self) -> None:
        import anthropic

        self.status_errors = (anthropic.APIStatusError,)
        self.connection_errors = (anthropic.APIConnectionError,)
        self.body_errors = (anthropic.AnthropicError, ValueError)
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self._base_url,
            timeout=self._timeout_s,
            max_retries=0,
            http_client=http_client(follow_redirects=True),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _ask(self, request: ModelRequest) -> Completion:
        body = {
            "system": request.system,
            "messages": [{"role": "user", "content": [_part(part) for part in turn]} for turn in request.turns],
            "max_tokens": request.max_output_tokens or _MAX_TOKENS,
        }
        answer = await self.post(body)
        return self._finished(answer.text, model=answer.model, reason=answer.stop_reason or "", usage=answer.usage)

    async def post(self, body: dict[str, Any]) -> MessageResponse:
        """The answer to a request, inside `bounded`. Raises `ModelBlocked` when the model refuses."""
        body = {"model": self._model, "max_tokens": _MAX_TOKENS, **body}
        # As in the OpenAI adapter: the SDK's transport and errors without its typed request and response.
        response = await self._send(lambda: self._client.post("/v1/messages", body=body, cast_to=object))
        answer = MessageResponse.model_validate(response)
        if answer.stop_reason == "refusal":
            why = self.clean(answer.text) or "no reason given"
            raise ModelBlocked(f"{self.name} refused: {why}", usage=answer.usage)
        return answer

    def _refusal(self, error: "anthropic.APIStatusError") -> ModelError:
        if error.status_code == 400 and _FILTERED in error.message:
            # The blocked answer may be billed.
            return ModelBlocked(f"{self.name} refused the request: {self.clean(error.message)}", usage=UNREPORTED)
        return self._error_for(error.status_code, error.message)


def image_block(data: bytes, media_type: str) -> dict[str, Any]:
    """An image as a block of a request."""
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
    return {"type": "image", "source": source}


def text_block(text: str) -> dict[str, Any]:
    """A text as a block of a request."""
    return {"type": "text", "text": text}


def _part(part: str | ImagePart) -> dict[str, Any]:
    return text_block(part) if isinstance(part, str) else image_block(part.data, part.media_type)


PROVIDER = Provider(
    name=AnthropicModel.provider,
    title="Anthropic",
    module="anthropic",
    package="anthropic",
    extra="anthropic",
    key_variables=(AnthropicModel.key_variable,),
    url_variable="ANTHROPIC_BASE_URL",
    default_model="claude-haiku-5-5",
    computer_example="claude-sonnet-5-5",
    sampling=False,
    open=AnthropicModel,
    prices_id="anthropic",
    telemetry_name="anthropic",
)

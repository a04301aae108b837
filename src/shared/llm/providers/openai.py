"""OpenAI models and compatible endpoints over the openai SDK. The only file that imports that SDK.

Wire format: chat completions (https://platform.openai.com/docs/api-reference/chat), which vLLM, Ollama and OpenRouter
speak as well.
"""

import base64
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import AliasPath, BaseModel, Field, ValidationError

from shared.errors import ModelBlocked, ModelError
from shared.llm.http import AnswerInterrupted, HTTPModel, http_client
from shared.llm.model import Completion, ImagePart, ModelRequest
from shared.llm.provider import Provider
from shared.models import TokenUsage

if TYPE_CHECKING:
    import openai

T = TypeVar("T")
# Reasoning models, which take no temperature, and their dated revisions.
_REASONING = re.compile(r"(?:o\d|gpt-5)(?:-mini|-nano)?(?:-[\d-]+)?")
# The codes of errors that say that a filter refused the request: OpenAI's, and Azure's.
_BLOCKED_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt", "moderation_blocked"})
# Compatible endpoints know the older name of the output limit, OpenAI's reasoning models only the newer one.
_LIMITS = ("max_tokens", "max_completion_tokens")


class _ContentPart(BaseModel):
    type: str = "text"
    text: str | None = None


class _Completion(BaseModel):
    """What is read of an answer; compatible endpoints leave out much of it."""

    message: dict[str, Any] = Field(validation_alias=AliasPath("choices", 0, "message"))
    # Some endpoints answer in pieces; pieces of other types than text are reasoning.
    content: str | list[_ContentPart] | None = Field(
        None, validation_alias=AliasPath("choices", 0, "message", "content")
    )
    refusal: str | None = Field(None, validation_alias=AliasPath("choices", 0, "message", "refusal"))
    finish_reason: str | None = Field(None, validation_alias=AliasPath("choices", 0, "finish_reason"))
    model: str | None = None
    prompt: int | None = Field(None, validation_alias=AliasPath("usage", "prompt_tokens"))
    completion: int | None = Field(None, validation_alias=AliasPath("usage", "completion_tokens"))
    cached: int | None = Field(None, validation_alias=AliasPath("usage", "prompt_tokens_details", "cached_tokens"))
    reasoning: int | None = Field(
        None, validation_alias=AliasPath("usage", "completion_tokens_details", "reasoning_tokens")
    )

    @property
    def text(self) -> str:
        """The answer's text, without reasoning that the endpoint returns apart; pieces are joined."""
        if isinstance(self.content, list):
            return "".join(piece.text or "" for piece in self.content if piece.type in ("text", "output_text"))
        return self.content or ""

    @property
    def usage(self) -> TokenUsage:
        """The call's tokens, 0 where the endpoint does not report them."""
        return TokenUsage(
            calls=1,
            input=self.prompt or 0,
            output=self.completion or 0,
            cached=self.cached or 0,
            reasoning=self.reasoning or 0,
        )


class OpenAIModel(HTTPModel):
    """One chat model. A parameter that the endpoint refuses is left out of the retry and of all later calls."""

    provider = "openai"
    key_variable = "OPENAI_API_KEY"
    finish_reasons = MappingProxyType({"stop": "stop", "length": "length"})

    def _connect(self) -> None:
        import openai

        self.status_errors = (openai.APIStatusError,)
        self.connection_errors = (openai.APIConnectionError,)
        self.body_errors = (openai.OpenAIError, ValueError)
        if _REASONING.fullmatch(self._model):
            self._unsupported.add("temperature")
        self._client = openai.AsyncOpenAI(
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
        limit, other = _LIMITS if self._base_url else reversed(_LIMITS)
        options = {"temperature": request.temperature, "seed": request.seed, limit: request.max_output_tokens}
        messages = messages_of(request)
        return await self._send_options(
            options,
            lambda used: self._posted("/chat/completions", {"messages": messages, **used}, self._completion),
            limits=_LIMITS,
            other_names={limit: other},
        )

    async def post(self, path: str, body: dict[str, Any], parse: Callable[[object], T]) -> T:
        """What `parse` makes of the answer to a request, inside `bounded`."""
        return await self._send(lambda: self._posted(path, body, parse))

    async def _posted(self, path: str, body: dict[str, Any], parse: Callable[[object], T]) -> T:
        # The SDK's transport and errors without its typed request and response: converting to those takes longer than
        # the rest of the call, and the answer is validated here anyway.
        return parse(await self._client.post(path, body={"model": self._model, **body}, cast_to=object))

    def _refusal(self, error: "openai.APIStatusError") -> ModelError:
        if error.code in _BLOCKED_CODES or _is_moderated(error.body):
            return ModelBlocked(f"{self.name} refused the request: {self.clean(error.message)}")
        return self._error_for(error.status_code, error.message)

    def _completion(self, response: object) -> Completion:
        try:
            answer = _Completion.model_validate(response)
        except ValidationError:
            raise self._malformed("no chat completion") from None
        if answer.finish_reason == "error":
            # OpenRouter's finish reason for an interrupted answer.
            raise AnswerInterrupted(f"{self.name} broke off its answer", usage=answer.usage)
        if answer.finish_reason == "content_filter":
            raise ModelBlocked(f"{self.name} cut the answer: content filter", usage=answer.usage)
        if answer.refusal:
            raise ModelBlocked(f"{self.name} refused: {self.clean(answer.refusal)}", usage=answer.usage)
        return self._finished(answer.text, model=answer.model, reason=answer.finish_reason or "", usage=answer.usage)


def messages_of(request: ModelRequest) -> list[dict[str, Any]]:
    """The messages of a request, as they are sent."""
    users = [{"role": "user", "content": [_part(part) for part in turn]} for turn in request.turns]
    return [{"role": "system", "content": request.system}, *users]


def _is_moderated(error: object) -> bool:
    """Whether an error comes from OpenRouter's moderation, which has the HTTP status of a wrong key."""
    about = error.get("metadata") if isinstance(error, dict) else None
    return isinstance(about, dict) and bool(about.get("reasons") or about.get("flagged_input"))


def _part(part: str | ImagePart) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = base64.b64encode(part.data).decode("ascii")
    detail = {"detail": part.detail} if part.detail else {}
    return {
        "type": "image_url",
        "image_url": {"url": f"data:{part.named_type or part.media_type};base64,{data}", **detail},
    }


PROVIDER = Provider(
    name=OpenAIModel.provider,
    title="OpenAI",
    module="openai",
    package="openai",
    extra="openai",
    key_variables=(OpenAIModel.key_variable,),
    url_variable="OPENAI_BASE_URL",
    default_model="gpt-4.1-mini",
    url_note="any compatible endpoint",
    open=OpenAIModel,
    prices_id="openai",
    telemetry_name="openai",
)

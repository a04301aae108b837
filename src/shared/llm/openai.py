"""OpenAI models and compatible endpoints over the openai SDK. The only file that imports that SDK.

Wire format: chat completions (https://platform.openai.com/docs/api-reference/chat), which vLLM, Ollama and OpenRouter
speak as well.
"""

import asyncio
import base64
from typing import Any

import openai
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import ModelBlocked, ModelError, ModelKeyRefused, ModelMalformed, ModelTruncated, ModelUnavailable
from shared.llm.http import (
    MAX_ATTEMPTS,
    UNTOLD,
    Attempts,
    BeforeRetry,
    attempt_hooks,
    counted_attempts,
    no_wait,
    without_secret,
)
from shared.llm.model import Completion, FinishReason, ImagePart, ModelRequest
from shared.models import TokenUsage
from shared.text import without_surrogates

_KEY_REMEDY = "check the key in OPENAI_API_KEY"
# What a model may refuse to take; its error names the parameter, which is then left out or said in the other way.
_OPTIONAL = ("temperature", "seed", "max_completion_tokens", "max_tokens")
_REFUSED_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "invalid_parameter"})
_OTHER_NAME = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


class _Read(BaseModel):
    """What is read of an answer; compatible endpoints leave much of it out."""

    model_config = ConfigDict(from_attributes=True, extra="ignore")


class _Details(_Read):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(_Read):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Piece(_Read):
    text: str | None = None


class _Message(_Read):
    # Some endpoints answer in pieces; those without a text of their own are thoughts.
    content: str | list[_Piece] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        """What was said."""
        if isinstance(self.content, list):
            return "".join(piece.text or "" for piece in self.content)
        return self.content or ""


class _Choice(_Read):
    message: _Message
    finish_reason: str | None = None


class _Answer(_Read):
    choices: list[_Choice] = Field(min_length=1)
    model: str | None = None
    usage: _Usage | None = None


class OpenAIModel:
    """One chat model. Every call has one time limit, repeats included.

    A parameter that the endpoint's error names as unsupported is left out of the repeat and of all later calls.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        timeout_s: float = 120.0,
        takes_sampling: bool = True,
        before_retry: BeforeRetry = no_wait,
    ) -> None:
        self._model = model
        self._key = api_key
        self._timeout_s = timeout_s
        self._refused: set[str] = set() if takes_sampling else {"temperature"}
        # Compatible endpoints know the older name of the output limit, OpenAI's reasoning models only the newer one.
        self._limit_name = "max_completion_tokens" if base_url is None else "max_tokens"
        self._client = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            timeout=timeout_s,
            max_retries=MAX_ATTEMPTS - 1,
            http_client=openai.DefaultAsyncHttpxClient(
                event_hooks=attempt_hooks(before_retry, honour_retry_after=False)
            ),
        )

    @property
    def name(self) -> str:
        """`openai:model`."""
        return f"openai:{self._model}"

    async def complete(self, request: ModelRequest) -> Completion:
        """Ask once. Raises a `ModelError`; no error text holds the key."""
        attempts = Attempts()
        try:
            async with asyncio.timeout(self._timeout_s):
                with counted_attempts(attempts):
                    response = await self._create(request)
        except (TimeoutError, openai.APITimeoutError):
            why = f"{self.name} did not answer within {self._timeout_s:g} s"
            raise ModelUnavailable(why, usage=attempts.usage) from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APIConnectionError as error:
            why = f"{self.name} cannot be reached: {type(error.__cause__).__name__}"
            raise ModelUnavailable(why, usage=attempts.usage) from None
        except (openai.OpenAIError, ValueError) as error:
            # Not JSON, or JSON of another shape: the SDK lets its parsers' errors through.
            raise ModelMalformed(
                f"{self.name} answered with no chat completion: {type(error).__name__}", usage=UNTOLD
            ) from None
        return self._completion(response)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _create(self, request: ModelRequest) -> object:
        for _ in _OPTIONAL:
            body = self._body(request)
            try:
                return await self._send(body)
            except openai.BadRequestError as error:
                name = _refused_parameter(error)
                # By what this call sent: of calls under way together, each is refused what the first one learns from.
                if name is None or name not in body:
                    raise
                self._refuse(name)
        return await self._send(self._body(request))

    async def _send(self, body: dict[str, Any]) -> object:
        # The SDK's own transport with its repeats, key and errors, but without its typed request: walking that takes
        # longer than all the rest of a call, and the answer is checked here anyway.
        return await self._client.post("/chat/completions", body=body, cast_to=object)

    def _refuse(self, name: str) -> None:
        other = _OTHER_NAME.get(name)
        if other is not None and other not in self._refused:
            self._limit_name = other
        self._refused.add(name)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        options = {
            "temperature": request.temperature,
            "seed": request.seed,
            self._limit_name: request.max_output_tokens,
        }
        chosen = {key: value for key, value in options.items() if value is not None and key not in self._refused}
        content = [_part(part) for part in request.parts]
        messages = [{"role": "system", "content": request.system}, {"role": "user", "content": content}]
        return {"model": self._model, "messages": messages, **chosen}

    def _refusal(self, error: openai.APIStatusError) -> ModelError:
        code = error.status_code
        if code in (401, 403):
            return ModelKeyRefused(f"{self.name} refused the key (HTTP {code})", remedy=_KEY_REMEDY)
        said = without_secret(str(error.message), self._key)
        if error.code in ("content_filter", "content_policy_violation"):
            return ModelBlocked(f"{self.name} refused the request: {said}")
        remedy = "check the model's name and the base URL" if code == 404 else ""
        return ModelUnavailable(f"{self.name} answered HTTP {code}: {said}", remedy=remedy)

    def _completion(self, response: object) -> Completion:
        # The SDK builds its records unchecked: any field may be missing or of another type, until checked here.
        try:
            answer = _Answer.model_validate(response)
        except ValidationError:
            if said := _error_within(response):
                said = without_secret(said, self._key)
                raise ModelUnavailable(f"{self.name} answered with an error: {said}") from None
            raise ModelMalformed(f"{self.name} answered with no chat completion", usage=UNTOLD) from None
        choice, usage = answer.choices[0], _usage(answer.usage)
        if choice.finish_reason == "error":
            # Said by endpoints that pass a request on (OpenRouter) when it breaks on the way.
            raise ModelUnavailable(f"{self.name} broke off its answer", usage=usage)
        if choice.finish_reason == "content_filter":
            raise ModelBlocked(f"{self.name} cut the answer: content filter", usage=usage)
        if choice.message.refusal:
            said = without_secret(choice.message.refusal, self._key)
            raise ModelBlocked(f"{self.name} refused: {said}", usage=usage)
        # Half an emoji, as a cut leaves it, is valid JSON but no text that could be written down.
        text = without_surrogates(choice.message.text)
        if not text.strip():
            if choice.finish_reason == "length":
                raise ModelTruncated(f"{self.name} reached its token limit before it said anything", usage=usage)
            why = f"finish reason {choice.finish_reason}"
            raise ModelMalformed(f"{self.name} answered without text ({why})", usage=usage)
        reasons: dict[str, FinishReason] = {"stop": "stop", "length": "length"}
        return Completion(
            text=text,
            model=without_surrogates(answer.model or self._model),
            finish_reason=reasons.get(choice.finish_reason or "", "other"),
            usage=usage,
        )


def _refused_parameter(error: openai.BadRequestError) -> str | None:
    """The optional parameter that a 400 names as unsupported, by the error's own `param` and `code`."""
    if error.param in _OPTIONAL and (error.code in _REFUSED_CODES or "nsupported" in str(error.message)):
        return error.param
    return None


def _error_within(response: object) -> str:
    """The error that an answer of HTTP 200 holds instead of choices, as endpoints before other endpoints send it."""
    error = response.get("error") if isinstance(response, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


def _part(part: str | ImagePart) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = base64.b64encode(part.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}


def _usage(usage: _Usage | None) -> TokenUsage:
    if usage is None:
        return TokenUsage(calls=1)
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return TokenUsage(
        calls=1,
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cached=(prompt.cached_tokens if prompt else None) or 0,
        reasoning=(completion.reasoning_tokens if completion else None) or 0,
    )

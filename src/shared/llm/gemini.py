"""Gemini models over google-genai. The only file that imports that SDK.

Wire format: generateContent of the Gemini API (https://ai.google.dev/api/generate-content).
"""

import asyncio

import httpx
from google import genai
from google.genai import errors, types

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

_BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"}
    | {"IMAGE_RECITATION", "MODEL_ARMOR"}
)
_KEY_REMEDY = "check the key in GOOGLE_API_KEY"


class GeminiModel:
    """One Gemini model. Every call has one time limit, repeats included."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        timeout_s: float = 120.0,
        retry_delay_s: float = 1.0,
        before_retry: BeforeRetry = no_wait,
    ) -> None:
        self._model = model
        self._key = api_key
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=256),
            event_hooks=attempt_hooks(before_retry, honour_retry_after=True),
        )
        self._client = genai.Client(
            api_key=api_key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=base_url,
                timeout=int(timeout_s * 1000),
                httpx_async_client=self._http,
                retry_options=types.HttpRetryOptions(
                    attempts=MAX_ATTEMPTS, initial_delay=retry_delay_s, jitter=retry_delay_s
                ),
            ),
        )

    @property
    def name(self) -> str:
        """`gemini:model`."""
        return f"gemini:{self._model}"

    async def complete(self, request: ModelRequest) -> Completion:
        """Ask once. Raises a `ModelError`; no error text holds the key."""
        attempts = Attempts()
        try:
            async with asyncio.timeout(self._timeout_s):
                with counted_attempts(attempts):
                    response = await self._client.aio.models.generate_content(
                        model=self._model,
                        contents=types.Content(role="user", parts=[_part(part) for part in request.parts]),
                        config=types.GenerateContentConfig(
                            system_instruction=request.system,
                            temperature=request.temperature,
                            seed=request.seed,
                            max_output_tokens=request.max_output_tokens,
                        ),
                    )
        except errors.APIError as error:
            raise self._refusal(error) from None
        except (TimeoutError, httpx.TimeoutException):
            why = f"{self.name} did not answer within {self._timeout_s:g} s"
            raise ModelUnavailable(why, usage=attempts.usage) from None
        except httpx.HTTPError as error:
            why = f"{self.name} cannot be reached: {type(error).__name__}"
            raise ModelUnavailable(why, usage=attempts.usage) from None
        except ValueError as error:
            # Not JSON, or JSON of another shape: the SDK lets its parsers' errors through.
            raise ModelMalformed(
                f"{self.name} answered with no generateContent reply: {type(error).__name__}", usage=UNTOLD
            ) from None
        return self._completion(response)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        await self._http.aclose()

    def _refusal(self, error: errors.APIError) -> ModelError:
        code = int(error.code or 0)
        if code in (401, 403) or "API key" in (error.message or ""):
            return ModelKeyRefused(f"{self.name} refused the key (HTTP {code})", remedy=_KEY_REMEDY)
        said = without_secret(f"{error.status or ''} {error.message or ''}", self._key)
        remedy = "check the model's name" if code == 404 else ""
        return ModelUnavailable(f"{self.name} answered HTTP {code}: {said}", remedy=remedy)

    def _completion(self, response: types.GenerateContentResponse) -> Completion:
        usage = _usage(response.usage_metadata)
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason:
            raise ModelBlocked(f"{self.name} refused the request: {_name(feedback.block_reason)}", usage=usage)
        if not response.candidates:
            raise ModelMalformed(f"{self.name} answered without a candidate", usage=usage)
        candidate = response.candidates[0]
        reason = _name(candidate.finish_reason)
        if reason in _BLOCKED:
            raise ModelBlocked(f"{self.name} cut the answer: {reason}", usage=usage)
        parts = (candidate.content.parts if candidate.content else None) or []
        # Half an emoji, as a cut leaves it, is valid JSON but no text that could be written down.
        text = without_surrogates("".join(part.text for part in parts if part.text and not part.thought))
        if not text.strip():
            if reason == "MAX_TOKENS":
                raise ModelTruncated(f"{self.name} reached its token limit before it said anything", usage=usage)
            raise ModelMalformed(f"{self.name} answered without text (finish reason {reason or 'none'})", usage=usage)
        reasons: dict[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
        return Completion(
            text=text,
            model=without_surrogates(response.model_version or self._model),
            finish_reason=reasons.get(reason, "other"),
            usage=usage,
        )


def _part(part: str | ImagePart) -> types.Part:
    if isinstance(part, str):
        return types.Part(text=part)
    return types.Part.from_bytes(data=part.data, mime_type=part.media_type)


def _usage(usage: types.GenerateContentResponseUsageMetadata | None) -> TokenUsage:
    if usage is None:
        return TokenUsage(calls=1)
    thoughts = usage.thoughts_token_count or 0
    return TokenUsage(
        calls=1,
        input=usage.prompt_token_count or 0,
        output=(usage.candidates_token_count or 0) + thoughts,
        cached=usage.cached_content_token_count or 0,
        reasoning=thoughts,
    )


def _name(value: object) -> str:
    """The wire name of an SDK enumeration's value, also of one that the SDK does not know."""
    return str(getattr(value, "value", value) or "")

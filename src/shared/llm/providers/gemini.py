"""Gemini models over google-genai. In the core, only this file imports that SDK.

Wire format: generateContent of the Gemini API (https://ai.google.dev/api/generate-content).
"""

from types import MappingProxyType
from typing import TYPE_CHECKING

from shared.errors import ModelBlocked, ModelError
from shared.llm.http import HTTPModel, http_client
from shared.llm.model import Completion, ImagePart, ModelRequest
from shared.llm.provider import Provider
from shared.models import TokenUsage

if TYPE_CHECKING:
    from google.genai import errors, types

# The finish reasons of answers that Google's filters cut off, or that the model will not give.
_BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"}
    | {"IMAGE_RECITATION", "MODEL_ARMOR", "LANGUAGE"}
)


class GeminiModel(HTTPModel):
    """One Gemini model."""

    provider = "gemini"
    key_variable = "GOOGLE_API_KEY"
    finish_reasons = MappingProxyType({"STOP": "stop", "MAX_TOKENS": "length"})

    def _connect(self) -> None:
        import httpx2
        from google import genai
        from google.genai import errors, types

        self.status_errors = (errors.APIError,)
        self.connection_errors = (httpx2.HTTPError,)
        # Not to another origin, which would receive the key.
        self._http = http_client(follow_redirects=False)
        # Without `retry_options` the SDK makes one attempt.
        http_options = types.HttpOptions(
            base_url=self._base_url, timeout=int(self._timeout_s * 1000), httpx_async_client=self._http
        )
        # `vertexai` is explicit, because otherwise an environment variable would choose the other API.
        self._client = genai.Client(api_key=self._key, vertexai=False, http_options=http_options)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        await self._http.aclose()

    async def _ask(self, request: ModelRequest) -> Completion:
        from google.genai import types

        contents = [types.Content(role="user", parts=[_part(part) for part in turn]) for turn in request.turns]
        options = {
            "temperature": request.temperature,
            "seed": request.seed,
            "max_output_tokens": request.max_output_tokens,
        }
        response, candidate = await self._send_options(
            options,
            lambda used: self._generated(
                contents, types.GenerateContentConfig(system_instruction=request.system, **used)
            ),
            limits=("max_output_tokens",),
        )
        parts = (candidate.content.parts if candidate.content else None) or []
        text = "".join(part.text for part in parts if part.text and not part.thought)
        reason, usage = _name(candidate.finish_reason), _usage(response.usage_metadata)
        return self._finished(text, model=response.model_version, reason=reason, usage=usage)

    async def generate(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig"
    ) -> "tuple[types.GenerateContentResponse, types.Candidate]":
        """The response and its candidate, inside `bounded`. Raises a `ModelError` if there is none or it was cut."""
        return await self._send(lambda: self._generated(contents, config))

    async def _generated(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig"
    ) -> "tuple[types.GenerateContentResponse, types.Candidate]":
        # A copy for the type checker: the SDK declares a list of a wider type, and lists are invariant.
        response = await self._client.aio.models.generate_content(
            model=self._model, contents=[*contents], config=config
        )
        usage = _usage(response.usage_metadata)
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason:
            raise ModelBlocked(f"{self.name} refused the request: {_name(feedback.block_reason)}", usage=usage)
        if not response.candidates:
            raise self._malformed("no candidate", usage)
        reason = _name(response.candidates[0].finish_reason)
        if reason in _BLOCKED:
            raise ModelBlocked(f"{self.name} cut the answer: {reason}", usage=usage)
        return response, response.candidates[0]

    def _refusal(self, error: "errors.APIError") -> ModelError:
        # A wrong key is answered with HTTP 400.
        is_key = "API key" in (error.message or "")
        return self._error_for(int(error.code or 0), f"{error.status or ''} {error.message or ''}", is_key=is_key)


def _part(part: str | ImagePart) -> "types.Part":
    from google.genai import types

    if isinstance(part, str):
        return types.Part(text=part)
    return types.Part.from_bytes(data=part.data, mime_type=part.media_type)


def _usage(usage: "types.GenerateContentResponseUsageMetadata | None") -> TokenUsage:
    if usage is None:
        return TokenUsage(calls=1)
    # The API does not count thoughts as part of the answer, but bills both as output.
    thoughts = usage.thoughts_token_count or 0
    return TokenUsage(
        calls=1,
        input=usage.prompt_token_count or 0,
        output=(usage.candidates_token_count or 0) + thoughts,
        cached=usage.cached_content_token_count or 0,
        reasoning=thoughts,
    )


def _name(value: object) -> str:
    """The wire name of an SDK enum value, which may be a plain string that the SDK does not know."""
    return str(getattr(value, "value", value) or "")


PROVIDER = Provider(
    name=GeminiModel.provider,
    title="Gemini",
    module="google.genai",
    package="google-genai",
    extra="gemini",
    key_variables=(GeminiModel.key_variable, "GEMINI_API_KEY"),
    url_variable="GOOGLE_GEMINI_BASE_URL",
    default_model="gemini-2.5-flash",
    computer_example="gemini-2.5-computer-use-preview-10-2025",
    open=GeminiModel,
    prices_id="google",
    telemetry_name="gcp.gemini",
)

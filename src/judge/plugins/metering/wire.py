"""What the answers of the providers' APIs say about tokens: one reader for each wire format. Pure.

A format takes every JSON value of an answer in turn: the one of a plain answer, or each event of a stream.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from judge.results.metering import Tokens

# Methods whose requests use no model, and headers by which some servers take another method.
_READING = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_OVERRIDES = frozenset({b"x-http-method", b"x-http-method-override", b"x-method-override"})
_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class WireFormat(ABC):
    """One provider's wire format, reading one answer. `default_url` is where calls go without another address."""

    default_url: ClassVar[str]
    # The paths, below the provider's address, of requests that write something and use no model.
    free: ClassVar[re.Pattern[str]]
    # What a line of a stream contains if it says anything about tokens or the model.
    marks: ClassVar[tuple[bytes, ...]]

    def __init__(self) -> None:
        self.model: str | None = None
        # Whether a stream has come to the event after which it reports no tokens any more.
        self.is_ended = False
        self._counts: dict[str, Any] = {}
        self._is_final = False

    def take(self, value: Any) -> None:
        """Read one JSON value."""
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, dict):
                self._take(each)

    @classmethod
    def uses_model(cls, method: str, path: str, headers: Iterable[bytes], *, has_body: bool) -> bool:
        """Whether a request could make a model work, as any server may read its method and its path.

        `path` is the part below the provider's address as it is sent, not decoded. What is not certain is a call.
        """
        if any(name.lower() in _OVERRIDES for name in headers):
            return True
        if method in _READING and not has_body:
            return False
        return cls.free.fullmatch(path) is None

    @property
    def tokens(self) -> Tokens | None:
        """The tokens of the call; `None` if they were not reported. Raises `ValidationError` if they are not counts."""
        return self._tokens(self._counts) if self._is_final else None

    @abstractmethod
    def _take(self, value: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def _tokens(self, counts: Mapping[str, Any]) -> Tokens | None: ...

    def _note_model(self, name: object) -> None:
        if isinstance(name, str) and name:
            self.model = name[:300]


class OpenAI(WireFormat):
    """Chat completions, responses, embeddings and whatever else has their `usage`, of OpenAI and compatible servers."""

    default_url = "https://api.openai.com/v1"
    free = re.compile(
        r"(?a)(?:/v1)?/(?:files|moderations|responses/input_tokens|uploads(?:/[\w-]+/(?:parts|complete|cancel))?"
        r"|containers/[\w-]+/files|vector_stores/[\w-]+/files|(?:responses|batches|fine_tuning/jobs)/[\w-]+/cancel)"
    )
    marks = (b'"usage"', b'"model"')

    def _take(self, value: Mapping[str, Any]) -> None:
        # An event of the Responses API contains the response.
        inner = value.get("response")
        body = inner if isinstance(inner, dict) else value
        self._note_model(body.get("model"))
        usage = body.get("usage")
        if isinstance(usage, dict) and usage:
            # Some servers report the counts so far with every piece.
            self._counts, self._is_final = usage, True
        self.is_ended = value.get("type") in _LAST_EVENTS or value.get("choices") == []

    def _tokens(self, counts: Mapping[str, Any]) -> Tokens | None:
        tokens_in = counts.get("prompt_tokens", counts.get("input_tokens"))
        tokens_out = counts.get("completion_tokens", counts.get("output_tokens"))
        if tokens_out is None and tokens_in is not None and counts.get("total_tokens") == tokens_in:
            # Embeddings have no output.
            tokens_out = 0
        if tokens_in is None or tokens_out is None:
            return None
        details = _part(counts, "prompt_tokens_details", "input_tokens_details")
        more = _part(counts, "completion_tokens_details", "output_tokens_details")
        return Tokens.model_validate(
            {
                "input": tokens_in,
                "output": tokens_out,
                "cached": details.get("cached_tokens") or 0,
                "reasoning": more.get("reasoning_tokens") or 0,
            }
        )


class Anthropic(WireFormat):
    """The Messages API. A stream reports its input at its start and its output, added up, at its end."""

    default_url = "https://api.anthropic.com"
    free = re.compile(r"(?a)/v1/(?:messages/count_tokens|files|messages/batches/[\w-]+/cancel)")
    marks = (b'"usage"',)

    def _take(self, value: Mapping[str, Any]) -> None:
        kind, inner = value.get("type"), value.get("message")
        body = inner if kind == "message_start" and isinstance(inner, dict) else value
        self._note_model(body.get("model"))
        usage = body.get("usage")
        if isinstance(usage, dict):
            self._counts |= {name: count for name, count in usage.items() if count is not None}
            self._is_final |= kind != "message_start"
            self.is_ended = kind == "message_delta"

    def _tokens(self, counts: Mapping[str, Any]) -> Tokens | None:
        if "input_tokens" not in counts or "output_tokens" not in counts:
            return None
        cached, cache_writes = (
            counts.get(name, 0) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
        )
        fresh = Tokens.model_validate(
            {
                "input": counts["input_tokens"],
                "output": counts["output_tokens"],
                "cached": cached,
                "written": cache_writes,
            }
        )
        # The API counts tokens read from and written to its cache separately.
        return fresh.model_copy(update={"input": fresh.input + fresh.cached + fresh.written})


class Google(WireFormat):
    """generateContent of the Gemini API, streamed as events or as the parts of a list."""

    default_url = "https://generativelanguage.googleapis.com"
    free = re.compile(
        r"(?a)(?:/upload)?/v1(?:alpha|beta)?/(?:files|cachedContents(?:/[\w-]+)?|models/[\w.-]+:countTokens|batches/[\w-]+:cancel)"
    )
    marks = (b'"usageMetadata"', b'"modelVersion"')

    def _take(self, value: Mapping[str, Any]) -> None:
        self._note_model(value.get("modelVersion"))
        usage = value.get("usageMetadata")
        if isinstance(usage, dict) and "promptTokenCount" in usage:
            self._counts, self._is_final = usage, True
        candidates = value.get("candidates")
        self.is_ended = isinstance(candidates, list) and any(
            isinstance(each, dict) and each.get("finishReason") for each in candidates
        )

    def _tokens(self, counts: Mapping[str, Any]) -> Tokens | None:
        tokens_in, tokens_out = counts["promptTokenCount"], counts.get("candidatesTokenCount")
        if tokens_out is None and "totalTokenCount" not in counts:
            return None
        # Neither the results of tools nor thoughts are part of the other counts. A blocked answer has no candidates.
        parts = Tokens.model_validate(
            {
                "input": tokens_in,
                "output": tokens_out or 0,
                "cached": counts.get("cachedContentTokenCount") or 0,
                "reasoning": counts.get("thoughtsTokenCount") or 0,
            }
        )
        tools = Tokens.model_validate({"input": counts.get("toolUsePromptTokenCount") or 0, "output": 0})
        return parts.model_copy(update={"input": parts.input + tools.input, "output": parts.output + parts.reasoning})


def _part(counts: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((table for name in names if isinstance(table := counts.get(name), dict)), {})


WIRES: Mapping[str, type[WireFormat]] = MappingProxyType({"openai": OpenAI, "anthropic": Anthropic, "gemini": Google})

"""How each provider's API says the same things, for tests of what all adapters have in common."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from helpers.llm.servers import (
    Answer,
    anthropic_answer,
    anthropic_error,
    anthropic_thought,
    gemini_answer,
    gemini_error,
    openai_answer,
    openai_error,
)

Body = Mapping[str, Any]


@dataclass(frozen=True)
class SentRequest:
    """A request, read from its wire format: each turn is texts and the bytes of images, in order."""

    system: str
    turns: list[list[str | bytes]]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One provider's wire format. Every answer with usage reports 100 tokens in, 40 of them cached, and 25 out."""

    # What follows the server's address in the base URL; the header with the key, and its value.
    base: str = ""
    key_header: str
    key_value: str = "{key}"
    parse: Callable[[Body], SentRequest]
    answer: Callable[[str], Answer]
    # An error with a status, a text and headers.
    error: Callable[..., Answer]
    refused_key: Callable[[str], Answer]
    # "Hi" after thoughts, which are not part of the text.
    with_thoughts: Answer
    # "Half an ans", cut off at the token limit.
    cut: Answer
    # "Hi" with nothing that can be left out: no usage, no served model.
    minimal: Answer
    # Without any text: refused by the model or a filter; at the token limit; for no reason.
    blocked: Answer
    exhausted: Answer
    empty: Answer
    # JSON of another shape than documented.
    malformed: tuple[Any, ...]
    reasoning_tokens: int = 0


def _openai(body: Body) -> SentRequest:
    system, *turns = body["messages"]

    def part(body: Body) -> str | bytes:
        if body["type"] == "text":
            return str(body["text"])
        return base64.b64decode(body["image_url"]["url"].removeprefix("data:image/jpeg;base64,"))

    return SentRequest(system["content"], [[part(each) for each in turn["content"]] for turn in turns])


def _gemini(body: Body) -> SentRequest:
    def part(body: Body) -> str | bytes:
        return str(body["text"]) if "text" in body else base64.urlsafe_b64decode(body["inlineData"]["data"])

    (system,) = body["systemInstruction"]["parts"]
    return SentRequest(system["text"], [[part(each) for each in turn["parts"]] for turn in body["contents"]])


def _anthropic(body: Body) -> SentRequest:
    def part(body: Body) -> str | bytes:
        return str(body["text"]) if body["type"] == "text" else base64.b64decode(body["source"]["data"])

    return SentRequest(body["system"], [[part(each) for each in turn["content"]] for turn in body["messages"]])


def _gemini_thinking() -> Answer:
    answer = gemini_answer("Hi")
    answer.body["candidates"][0]["content"]["parts"].insert(0, {"text": "hm", "thought": True})
    return answer


_OPENAI_PIECES = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "Hi"}]

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "anthropic": Dialect(
            key_header="authorization",
            key_value="Bearer {key}",
            parse=_anthropic,
            answer=anthropic_answer,
            error=lambda status, text, **headers: anthropic_error(status, "e", text, **headers),
            refused_key=lambda text: anthropic_error(401, "authentication_error", text),
            with_thoughts=anthropic_answer(anthropic_thought("hm"), "Hi"),
            cut=anthropic_answer("Half an ans", stop="max_tokens"),
            minimal=Answer({"content": [{"type": "text", "text": "Hi"}]}),
            blocked=anthropic_answer("I cannot.", stop="refusal"),
            exhausted=anthropic_answer(anthropic_thought("long"), stop="max_tokens"),
            empty=anthropic_answer(),
            malformed=({"content": [{"text": "no type"}]}, {"content": "many"}),
        ),
        "gemini": Dialect(
            key_header="x-goog-api-key",
            parse=_gemini,
            answer=gemini_answer,
            error=lambda status, text, **headers: gemini_error(status, "E", text, **headers),
            # This API answers a wrong key with HTTP 400.
            refused_key=lambda text: gemini_error(400, "INVALID_ARGUMENT", f"API key not valid: {text}"),
            with_thoughts=_gemini_thinking(),
            cut=gemini_answer("Half an ans", finish="MAX_TOKENS"),
            minimal=Answer({"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}),
            blocked=gemini_answer(None, finish="SAFETY"),
            exhausted=gemini_answer(None, finish="MAX_TOKENS"),
            empty=gemini_answer(None),
            malformed=({"candidates": []}, {"candidates": "many"}),
            reasoning_tokens=5,
        ),
        "openai": Dialect(
            base="/v1",
            key_header="authorization",
            key_value="Bearer {key}",
            parse=_openai,
            answer=openai_answer,
            error=openai_error,
            refused_key=lambda text: openai_error(401, f"Incorrect API key provided: {text}"),
            with_thoughts=Answer({"choices": [{"message": {"content": _OPENAI_PIECES}}]}),
            cut=openai_answer("Half an ans", finish="length"),
            minimal=Answer({"choices": [{"message": {"content": "Hi"}}]}),
            blocked=openai_answer(None, finish="content_filter"),
            exhausted=openai_answer(None, finish="length"),
            empty=openai_answer(""),
            malformed=({"choices": []}, {"choices": [{}]}, {"choices": "many"}),
            reasoning_tokens=5,
        ),
    }
)

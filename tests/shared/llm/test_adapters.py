"""What every provider's adapter must do, over the wire. A provider's own tests have only what is different about it."""

import asyncio
import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest

from helpers.llm.servers import (
    Answer,
    ModelCall,
    ModelServer,
    anthropic_answer,
    anthropic_error,
    anthropic_thought,
    gemini_answer,
    gemini_error,
    openai_answer,
    openai_error,
    serving,
)
from shared.errors import (
    ModelBlocked,
    ModelBudgetSpent,
    ModelError,
    ModelKeyRefused,
    ModelMalformed,
    ModelTruncated,
    ModelUnavailable,
    ModelUnreached,
)
from shared.llm.http import HTTPModel
from shared.llm.model import Completion, ImagePart, ModelRequest
from shared.llm.opening import provider
from shared.llm.providers import provider_names

pytestmark = pytest.mark.slow

# How each provider's API says the same things, for tests of what all adapters have in common.
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


KEY = "a-very-secret-key"
JPEG = b"\xff\xd8\xffjpeg"
REQUEST = ModelRequest(system="Be brief.", lead=("Before.",), parts=("Hello", ImagePart(data=JPEG), "Well?"))


class Adapter:
    """A provider's adapter and the dialect of its server."""

    def __init__(self, name: str) -> None:
        self.provider = provider(name)
        self.dialect: Dialect = DIALECTS[name]

    def model(self, server: ModelServer, **options: Any) -> HTTPModel:
        url = server.url + self.dialect.base
        return self.provider.open("m-1", api_key=KEY, base_url=url, **{"retry_delay_s": 0.001, **options})

    async def ask(self, server: ModelServer, **options: Any) -> Completion:
        model = self.model(server, **options)
        try:
            return await model.complete(REQUEST)
        finally:
            await model.aclose()

    async def failure(self, *answers: Answer, **options: Any) -> tuple[ModelError, int]:
        """The error for these answers, and how many requests were sent."""
        async with serving(*answers) as server:
            with pytest.raises(ModelError) as caught:
                await self.ask(server, **options)
        assert KEY not in str(caught.value)
        return caught.value, len(server.received)


@pytest.fixture(params=provider_names())
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return Adapter(request.param)


def test_every_provider_is_tested_here() -> None:
    assert set(DIALECTS) == set(provider_names())


async def test_a_request_has_the_key_the_system_prompt_and_texts_and_images_in_order(adapter: Adapter) -> None:
    dialect = adapter.dialect
    async with serving(dialect.answer("Hi")) as server:
        await adapter.ask(server)
    (received,) = server.received
    assert received.headers[dialect.key_header] == dialect.key_value.format(key=KEY)
    assert dialect.parse(received.body) == SentRequest("Be brief.", [["Before."], ["Hello", JPEG, "Well?"]])


async def test_a_completion_has_text_model_finish_reason_and_all_tokens(adapter: Adapter) -> None:
    async with serving(adapter.dialect.answer("Hi")) as server:
        completion = await adapter.ask(server)
    assert (completion.text, completion.finish_reason) == ("Hi", "stop")
    assert completion.model.startswith("served")
    usage = completion.usage
    assert (usage.calls, usage.input, usage.output, usage.cached) == (1, 100, 25, 40)
    assert usage.reasoning == adapter.dialect.reasoning_tokens


async def test_thoughts_are_not_part_of_the_text(adapter: Adapter) -> None:
    async with serving(adapter.dialect.with_thoughts) as server:
        assert (await adapter.ask(server)).text == "Hi"


async def test_text_cut_off_at_the_limit_is_marked(adapter: Adapter) -> None:
    async with serving(adapter.dialect.cut) as server:
        completion = await adapter.ask(server)
    assert (completion.text, completion.finish_reason) == ("Half an ans", "length")


async def test_a_minimal_answer_is_enough_and_counts_as_one_call(adapter: Adapter) -> None:
    async with serving(adapter.dialect.minimal) as server:
        completion = await adapter.ask(server)
    assert (completion.text, completion.model, completion.finish_reason) == ("Hi", "m-1", "other")
    assert (completion.usage.calls, completion.usage.input) == (1, 0)


async def test_half_an_emoji_in_an_answer_can_be_encoded(adapter: Adapter) -> None:
    async with serving(adapter.dialect.answer("Fine \ud83d\nScore: 4")) as server:
        completion = await adapter.ask(server)
    assert Completion.model_validate_json(completion.model_dump_json()).text == "Fine \ufffd\nScore: 4"


@pytest.mark.parametrize(
    ("answer", "kind"), [("blocked", ModelBlocked), ("exhausted", ModelTruncated), ("empty", ModelMalformed)]
)
async def test_an_answer_without_text_has_its_own_error_and_still_reports_its_usage(
    adapter: Adapter, answer: str, kind: type[ModelError]
) -> None:
    error, requests = await adapter.failure(getattr(adapter.dialect, answer))
    assert (type(error), requests) == (kind, 1)
    assert error.usage is not None
    assert (error.usage.calls, error.usage.input, error.usage.output) == (1, 100, 25)


@pytest.mark.parametrize("body", [{}, [1, 2], b"", b"<html>not json</html>", b'{"choices": [{"mess'])
async def test_an_answer_that_is_not_of_the_api_is_malformed(adapter: Adapter, body: Any) -> None:
    error, _ = await adapter.failure(Answer(body))
    assert type(error) is ModelMalformed


async def test_html_that_says_so_is_malformed(adapter: Adapter) -> None:
    error, _ = await adapter.failure(Answer(b"<html>not json</html>", headers={"content-type": "text/html"}))
    assert type(error) is ModelMalformed


async def test_json_of_another_shape_is_malformed(adapter: Adapter) -> None:
    for body in adapter.dialect.malformed:
        error, _ = await adapter.failure(Answer(body))
        assert type(error) is ModelMalformed, body


async def test_a_refused_key_names_its_variable_and_does_not_show_the_key(adapter: Adapter) -> None:
    error, requests = await adapter.failure(adapter.dialect.refused_key(KEY))
    assert (type(error), requests) == (ModelKeyRefused, 1)
    assert adapter.provider.key_variables[0] in str(error)


async def test_the_key_is_removed_from_error_texts(adapter: Adapter) -> None:
    error, _ = await adapter.failure(adapter.dialect.error(400, f"bad field near {KEY}"))
    assert "bad field near [key]" in str(error)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_fault_is_retried(adapter: Adapter, status: int) -> None:
    async with serving(adapter.dialect.error(status, "later"), adapter.dialect.answer("Hi")) as server:
        assert (await adapter.ask(server)).text == "Hi"
    assert len(server.received) == 2


async def test_retry_after_is_waited_for(adapter: Adapter) -> None:
    late = adapter.dialect.error(429, "later", retry_after="0.4")
    async with serving(late, adapter.dialect.answer("Hi")) as server:
        await adapter.ask(server)
    assert server.received[1].at - server.received[0].at >= 0.4


async def test_a_wait_in_the_text_of_an_error_is_waited_for(adapter: Adapter) -> None:
    late = adapter.dialect.error(429, "Please try again in 0.4s.")
    async with serving(late, adapter.dialect.answer("Hi")) as server:
        await adapter.ask(server)
    assert server.received[1].at - server.received[0].at >= 0.4


async def test_an_error_sent_as_an_answer_is_retried(adapter: Adapter) -> None:
    late = Answer({"error": {"code": 429, "message": "Please try again in 0.4s."}})
    async with serving(late, adapter.dialect.answer("Hi")) as server:
        completion = await adapter.ask(server)
    assert (completion.text, completion.usage.calls) == ("Hi", 1)
    assert server.received[1].at - server.received[0].at >= 0.4


async def test_a_free_tier_finishes_slowly(adapter: Adapter) -> None:
    # Two calls in each 0.2 s, for twenty at once: most are refused more often than five times.
    windows: dict[int, int] = {}

    def plan(received: ModelCall, _number: int) -> Answer:
        window = int(received.at / 0.2)
        windows[window] = windows.get(window, 0) + 1
        left_s = (window + 1) * 0.2 - received.at
        busy = adapter.dialect.error(429, f"Quota exceeded. Please retry in {left_s:.6f}s.")
        return adapter.dialect.answer("Hi") if windows[window] <= 2 else busy

    async with serving(plan=plan) as server:
        model = adapter.model(server)
        answers = await asyncio.gather(*(model.complete(REQUEST) for _ in range(20)))
        await model.aclose()
    assert [answer.text for answer in answers] == ["Hi"] * 20
    assert max(windows.values()) > 5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_lasting_status_is_not_retried(adapter: Adapter, status: int) -> None:
    _, requests = await adapter.failure(adapter.dialect.error(status, "no"))
    assert requests == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_fault_that_does_not_pass_ends_after_five_attempts_as_unavailable(
    adapter: Adapter, status: int
) -> None:
    error, requests = await adapter.failure(adapter.dialect.error(status, "no"))
    # More requests would mean that an SDK still makes retries of its own.
    assert isinstance(error, ModelUnavailable)
    assert requests == 5


async def test_a_provider_can_forbid_a_retry(adapter: Adapter) -> None:
    _, requests = await adapter.failure(adapter.dialect.error(429, "no", x_should_retry="false"))
    assert requests == 1


async def test_a_wait_that_would_exceed_the_time_limit_is_not_begun(adapter: Adapter) -> None:
    error, requests = await adapter.failure(adapter.dialect.error(429, "no", retry_after="60"), timeout_s=30.0)
    assert re.search(r" at http://127\.0\.0\.1:\d+ answered HTTP 429: .* \(wait, lower the requests", str(error))
    assert requests == 1


async def test_every_retry_waits_for_a_place_in_the_rate_limit(adapter: Adapter) -> None:
    waits = []

    async def slot() -> None:
        waits.append(True)

    async with serving(adapter.dialect.error(500, "x"), adapter.dialect.answer("Hi")) as server:
        await adapter.ask(server, before_retry=slot)
    assert len(waits) == 1


async def test_no_retry_is_sent_when_the_budget_is_spent(adapter: Adapter) -> None:
    async def spent() -> None:
        raise ModelBudgetSpent("the budget is spent")

    error, requests = await adapter.failure(adapter.dialect.error(500, "no"), before_retry=spent)
    assert isinstance(error, ModelBudgetSpent)
    assert error.usage is None
    assert requests == 1


async def test_a_slow_answer_ends_at_the_time_limit(adapter: Adapter) -> None:
    error, requests = await adapter.failure(Answer(b"{}", delay_s=5), timeout_s=0.3)
    assert isinstance(error, ModelUnavailable)
    assert "0.3 s" in str(error)
    assert requests == 1


async def test_an_unreachable_endpoint_is_unavailable(adapter: Adapter) -> None:
    async with serving(adapter.dialect.answer("Hi")) as server:
        pass
    with pytest.raises(ModelUnreached) as failed:
        await adapter.ask(server, timeout_s=1.0)
    assert f"cannot be reached at {server.url}: " in str(failed.value)
    assert str(failed.value).endswith(" (check the network, the proxy and the base URL)")

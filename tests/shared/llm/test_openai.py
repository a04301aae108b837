"""The OpenAI adapter against a local server that speaks chat completions."""

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from helpers.llm.servers import Answer, ModelCall, ModelServer, openai_answer, openai_error, serving
from shared.errors import ModelBlocked, ModelError, ModelMalformed, ModelTruncated, ModelUnavailable
from shared.llm.model import Completion, ImagePart, ModelRequest

if TYPE_CHECKING:
    from shared.llm.providers.openai import OpenAIModel

KEY = "sk-very-secret-key"
REQUEST = ModelRequest(
    system="Be brief.", parts=("Hello", ImagePart(data=b"\xff\xd8\xffjpeg")), seed=7, max_output_tokens=50
)


def model_of(server: ModelServer, name: str = "gpt-x", **options: Any) -> "OpenAIModel":
    # Late: every test process imports this file, one runs its tests, and the SDK takes a second.
    from shared.llm.providers.openai import OpenAIModel

    return OpenAIModel(name, api_key=KEY, base_url=f"{server.url}/v1", **options)


async def ask(server: ModelServer, **options: Any) -> Completion:
    model = model_of(server, **options)
    try:
        return await model.complete(REQUEST)
    finally:
        await model.aclose()


async def failure(server: ModelServer, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(server, **options)
    assert KEY not in str(caught.value)
    return caught.value


async def test_a_request_carries_system_prompt_text_image_and_options() -> None:
    async with serving(openai_answer("Hi")) as server:
        await ask(server)
    (received,) = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    system, user = received.body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert user["content"][0] == {"type": "text", "text": "Hello"}
    url = user["content"][1]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/jpeg;base64,")) == b"\xff\xd8\xffjpeg"
    options = {key: value for key, value in received.body.items() if key != "messages"}
    assert options == {"model": "gpt-x", "temperature": 0.0, "seed": 7, "max_tokens": 50}


async def test_a_completion_has_text_model_and_all_tokens() -> None:
    async with serving(openai_answer("Hi")) as server:
        completion = await ask(server)
    assert (completion.text, completion.model, completion.finish_reason) == ("Hi", "served", "stop")
    usage = completion.usage
    assert (usage.input, usage.output, usage.cached, usage.reasoning) == (100, 25, 40, 5)


async def test_a_reasoning_model_is_sent_no_temperature() -> None:
    async with serving(openai_answer("Hi")) as server:
        model = model_of(server, "o4-mini")
        await model.complete(REQUEST)
        await model.aclose()
    assert "temperature" not in server.received[0].body


async def test_a_parameter_named_as_unsupported_is_left_out_from_then_on() -> None:
    refusal = openai_error(400, "Unsupported value", code="unsupported_value", param="temperature")
    async with serving(refusal, openai_answer("Hi")) as server:
        model = model_of(server)
        await model.complete(REQUEST)
        await model.complete(REQUEST)
        await model.aclose()
    assert ["temperature" in received.body for received in server.received] == [True, False, False]


async def test_concurrent_calls_all_survive_a_refused_parameter() -> None:
    def plan(received: ModelCall, _number: int) -> Answer:
        named = next((name for name in ("temperature", "max_tokens") if name in received.body), None)
        if named is None:
            return openai_answer("Hi")
        refusal = openai_error(400, "Unsupported value", code="unsupported_value", param=named)
        # Late enough that every call has been sent before the first one is refused.
        return Answer(refusal.body, refusal.status, delay_s=0.1)

    async with serving(plan=plan) as server:
        model = model_of(server)
        replies = await asyncio.gather(*(model.complete(REQUEST) for _ in range(8)))
        await model.aclose()
    assert [reply.text for reply in replies] == ["Hi"] * 8
    assert server.received[-1].body["max_completion_tokens"] == 50


async def test_an_output_limit_refused_under_one_name_is_sent_under_the_other() -> None:
    refusal = openai_error(400, "Unsupported parameter", code="unsupported_parameter", param="max_tokens")
    async with serving(refusal, openai_answer("Hi")) as server:
        await ask(server)
    assert server.received[1].body["max_completion_tokens"] == 50
    assert "max_tokens" not in server.received[1].body


async def test_any_other_bad_request_is_not_retried() -> None:
    async with serving(openai_error(400, "image too large", code="invalid_image", param="messages")) as server:
        error = await failure(server)
    assert "image too large" in str(error)
    assert len(server.received) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_fault_is_retried(status: int) -> None:
    async with serving(openai_error(status, "later", retry_after_ms="10"), openai_answer("Hi")) as server:
        assert (await ask(server)).text == "Hi"


async def test_retry_after_is_waited_for() -> None:
    async with serving(openai_error(429, "later", retry_after="1"), openai_answer("Hi")) as server:
        await ask(server)
    assert server.received[1].at - server.received[0].at >= 1


async def test_every_retry_waits_for_a_place_in_the_rate_limit() -> None:
    waits = []

    async def slot() -> None:
        waits.append(True)

    async with serving(openai_error(500, "x", retry_after_ms="5"), openai_answer("Hi")) as server:
        await ask(server, before_retry=slot)
    assert len(waits) == 1


async def test_a_refused_key_is_reported_without_showing_it() -> None:
    async with serving(openai_error(401, f"Incorrect API key provided: {KEY}")) as server:
        assert "OPENAI_API_KEY" in str(await failure(server))


async def test_a_slow_answer_ends_at_the_time_limit() -> None:
    async with serving(Answer(b"{}", delay_s=5)) as server:
        error = await failure(server, timeout_s=0.3)
    assert isinstance(error, ModelUnavailable)
    assert len(server.received) == 1


async def test_an_unreachable_endpoint_is_unavailable() -> None:
    async with serving(openai_answer("Hi")) as server:
        pass
    assert isinstance(await failure(server, timeout_s=1.0), ModelUnavailable)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (openai_answer(None, finish="content_filter"), ModelBlocked),
        (openai_answer(None, refusal="I won't."), ModelBlocked),
        (openai_error(400, "filtered", code="content_filter"), ModelBlocked),
        (openai_error(400, "flagged", code="invalid_prompt"), ModelBlocked),
        (Answer({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["x"]}}}, 403), ModelBlocked),
        (Answer({"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "x"}}}), ModelBlocked),
        (Answer({"error": {"code": "content_filter", "message": "filtered"}}), ModelBlocked),
        (openai_answer(None, finish="length"), ModelTruncated),
        (openai_answer("Status: succ", finish="error"), ModelUnavailable),
        (Answer({"error": {"message": "upstream is down", "code": 502}}), ModelUnavailable),
        (openai_answer(""), ModelMalformed),
        (Answer({"choices": []}), ModelMalformed),
        (Answer({"choices": [{"finish_reason": "stop", "message": None}]}), ModelMalformed),
        (Answer({"choices": [{}]}), ModelMalformed),
        (Answer({"choices": "many"}), ModelMalformed),
        (Answer({}), ModelMalformed),
        (Answer([1, 2]), ModelMalformed),
        (Answer(b"<html>not json</html>"), ModelMalformed),
        (Answer(b"<html>not json</html>", headers={"content-type": "text/html"}), ModelMalformed),
        (Answer(b'{"choices": [{"mess'), ModelMalformed),
        (Answer(b""), ModelMalformed),
    ],
)
async def test_each_unusable_answer_has_its_own_error(answer: Answer, kind: type[ModelError]) -> None:
    async with serving(answer) as server:
        error = await failure(server)
    assert type(error) is kind


@pytest.mark.parametrize(
    "answer",
    [openai_answer(None, finish="length"), openai_answer(None, finish="content_filter"), openai_answer("")],
)
async def test_an_answer_without_text_still_reports_its_usage(answer: Answer) -> None:
    async with serving(answer) as server:
        usage = (await failure(server)).usage
    assert usage is not None
    assert (usage.calls, usage.input, usage.output, usage.reasoning) == (1, 100, 25, 5)


async def test_an_error_in_an_http_200_answer_is_reported_without_the_key() -> None:
    async with serving(Answer({"error": {"message": f"no credit left for {KEY}", "code": 402}})) as server:
        assert "no credit left for [key]" in str(await failure(server))


async def test_an_answer_in_pieces_is_joined_without_its_thoughts() -> None:
    pieces = [
        {"type": "thinking", "thinking": [{"text": "hm"}]},
        {"type": "text", "text": "Status: "},
        {"text": "success"},
    ]
    async with serving(Answer({"choices": [{"message": {"content": pieces}}]})) as server:
        assert (await ask(server)).text == "Status: success"


async def test_text_cut_off_at_the_limit_is_marked() -> None:
    async with serving(openai_answer("Half an ans", finish="length")) as server:
        completion = await ask(server)
    assert (completion.text, completion.finish_reason) == ("Half an ans", "length")


async def test_a_minimal_answer_is_enough() -> None:
    async with serving(Answer({"choices": [{"message": {"content": "Hi"}}]})) as server:
        completion = await ask(server)
    assert (completion.text, completion.model, completion.finish_reason) == ("Hi", "gpt-x", "other")
    assert completion.usage.calls == 1


async def test_half_an_emoji_in_an_answer_can_be_encoded() -> None:
    async with serving(openai_answer("Fine \ud83d\nScore: 4")) as server:
        completion = await ask(server)
    assert Completion.model_validate_json(completion.model_dump_json()).text == "Fine \ufffd\nScore: 4"

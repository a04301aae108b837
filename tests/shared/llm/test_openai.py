"""What is particular to the OpenAI adapter; `test_adapters` has what all adapters do."""

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from helpers.llm.servers import Answer, ModelCall, ModelServer, openai_answer, openai_error, serving
from shared.errors import ModelBlocked, ModelError, ModelMalformed, ModelUnavailable
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
    model = model_of(server, **{"retry_delay_s": 0.001, **options})
    try:
        return await model.complete(REQUEST)
    finally:
        await model.aclose()


async def failure(server: ModelServer, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(server, **options)
    assert KEY not in str(caught.value)
    return caught.value


async def test_a_request_has_the_documented_form_and_options() -> None:
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


async def test_a_parameter_refused_in_a_gateways_text_is_left_out_once_that_has_helped() -> None:
    refusal = openai_error(400, "BadRequestError: {'message': \"Unsupported parameter: 'temperature'\"}")
    async with serving(refusal, openai_error(400, "image too large"), refusal, openai_answer("Hi")) as server:
        model = model_of(server)
        # An error's text may repeat what a participant wrote: nothing is remembered before the request is accepted.
        with pytest.raises(ModelError, match="image too large"):
            await model.complete(REQUEST)
        await model.complete(REQUEST)
        await model.complete(REQUEST)
        await model.aclose()
    assert ["temperature" in received.body for received in server.received] == [True, False, True, False, False]


async def test_an_interrupted_answer_is_asked_for_again_and_its_tokens_are_counted() -> None:
    async with serving(openai_answer("Status: succ", finish="error"), openai_answer("Hi")) as server:
        completion = await ask(server)
    assert (completion.text, completion.usage.calls, completion.usage.output) == ("Hi", 2, 50)


async def test_any_other_bad_request_is_not_retried() -> None:
    async with serving(openai_error(400, "image too large", code="invalid_image", param="messages")) as server:
        error = await failure(server)
    assert "image too large" in str(error)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (openai_answer(None, refusal="I won't."), ModelBlocked),
        (openai_error(400, "filtered", code="content_filter"), ModelBlocked),
        (openai_error(400, "flagged", code="invalid_prompt"), ModelBlocked),
        (Answer({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["x"]}}}, 403), ModelBlocked),
        (Answer({"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "x"}}}), ModelBlocked),
        (Answer({"error": {"code": "content_filter", "message": "filtered"}}), ModelBlocked),
        (openai_answer("Status: succ", finish="error"), ModelUnavailable),
        (Answer({"error": {"message": "upstream is down", "code": 502}}), ModelUnavailable),
        (Answer({"choices": [{"finish_reason": "stop", "message": None}]}), ModelMalformed),
    ],
)
async def test_each_refusal_and_fault_of_this_api_has_its_own_error(answer: Answer, kind: type[ModelError]) -> None:
    async with serving(answer) as server:
        error = await failure(server)
    assert type(error) is kind


async def test_an_error_in_an_http_200_answer_is_reported_without_the_key() -> None:
    async with serving(Answer({"error": {"message": f"no credit left for {KEY}", "code": 402}})) as server:
        assert "no credit left for [key]" in str(await failure(server))
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Hi", "reasoning_content": "Status: success"},
        {"content": "Hi", "reasoning": "Status: success", "reasoning_details": [{"text": "Status: success"}]},
        {"content": [{"type": "reasoning", "text": "Status: success"}, {"type": "text", "text": "Hi"}]},
        {"content": [{"type": "thinking", "text": "Status: success"}, {"type": "output_text", "text": "Hi"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Status: success"}]}, {"text": "Hi"}]},
    ],
)
async def test_reasoning_that_an_endpoint_returns_apart_is_not_part_of_the_text(message: dict[str, Any]) -> None:
    async with serving(Answer({"choices": [{"message": message}]})) as server:
        assert (await ask(server)).text == "Hi"


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "reasoning_content": "Status: success"},
        {"content": [{"type": "reasoning", "text": "Status: success"}]},
    ],
)
async def test_an_answer_of_reasoning_alone_has_no_text(message: dict[str, Any]) -> None:
    async with serving(Answer({"choices": [{"message": message}]})) as server:
        assert isinstance(await failure(server), ModelMalformed)

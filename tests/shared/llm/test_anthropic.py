"""The Anthropic adapter against a local server that speaks the Messages API."""

import base64

import pytest

from helpers.llm.servers import (
    Answer,
    ModelServer,
    anthropic_answer,
    anthropic_error,
    anthropic_thought,
    serving,
)
from shared.errors import ModelBlocked, ModelError, ModelKeyRefused, ModelMalformed, ModelTruncated, ModelUnavailable
from shared.llm.model import Completion, ImagePart, ModelRequest

KEY = "sk-ant-secret"
IMAGE = ImagePart(data=b"\xff\xd8\xffjpeg")
REQUEST = ModelRequest(system="Be brief.", lead=("Before.",), parts=("Hello", IMAGE), seed=7)


async def ask(server: ModelServer) -> Completion:
    # Late: every test process imports this file, one runs its tests, and the SDK takes a second.
    from shared.llm.providers.anthropic import AnthropicModel

    model = AnthropicModel("claude-x", api_key=KEY, base_url=server.url, retry_delay_s=0.01)
    try:
        return await model.complete(REQUEST)
    finally:
        await model.aclose()


async def test_a_request_has_texts_and_images_in_order_and_no_sampling_options() -> None:
    async with serving(anthropic_answer("Hi")) as server:
        await ask(server)
    (received,) = server.received
    assert received.path == "/v1/messages"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    lead, user = received.body["messages"]
    assert lead == {"role": "user", "content": [{"type": "text", "text": "Before."}]}
    assert user["content"][0] == {"type": "text", "text": "Hello"}
    source = user["content"][1]["source"]
    assert (source["media_type"], base64.b64decode(source["data"])) == ("image/jpeg", IMAGE.data)
    options = {key: value for key, value in received.body.items() if key != "messages"}
    assert options == {"model": "claude-x", "system": "Be brief.", "max_tokens": 16_000}


async def test_a_completion_has_the_text_without_thoughts_and_all_tokens() -> None:
    async with serving(anthropic_answer(anthropic_thought("hm"), "Hi ", "there")) as server:
        completion = await ask(server)
    assert (completion.text, completion.model, completion.finish_reason) == ("Hi there", "served", "stop")
    assert (completion.usage.input, completion.usage.output, completion.usage.cached) == (100, 25, 40)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (anthropic_answer("I cannot.", stop="refusal"), ModelBlocked),
        (
            anthropic_error(400, "invalid_request_error", "Output blocked by content filtering policy"),
            ModelBlocked,
        ),
        (anthropic_answer(anthropic_thought("long"), stop="max_tokens"), ModelTruncated),
        (anthropic_answer(), ModelMalformed),
        (anthropic_error(401, "authentication_error", f"invalid x-api-key {KEY}"), ModelKeyRefused),
        (anthropic_error(404, "not_found_error", f"no model for {KEY}"), ModelUnavailable),
        (Answer({}), ModelMalformed),
        (Answer([1, 2]), ModelMalformed),
        (Answer({"content": [{"text": "no type"}]}), ModelMalformed),
        (Answer(b"<html>not json</html>", headers={"content-type": "text/html"}), ModelMalformed),
        (Answer(b""), ModelMalformed),
    ],
)
async def test_each_unusable_answer_has_its_own_error_without_the_key(answer: Answer, kind: type[ModelError]) -> None:
    async with serving(answer) as server:
        with pytest.raises(ModelError) as caught:
            await ask(server)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)


async def test_text_cut_off_at_the_limit_is_marked_and_a_minimal_answer_is_enough() -> None:
    minimal = {"content": [{"type": "text", "text": "Half an ans"}], "stop_reason": "max_tokens"}
    async with serving(Answer(minimal)) as server:
        completion = await ask(server)
    assert (completion.text, completion.model, completion.finish_reason) == ("Half an ans", "claude-x", "length")
    assert completion.usage.calls == 1

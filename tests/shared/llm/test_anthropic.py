"""What is particular to the Anthropic adapter; `test_adapters` has what all adapters do."""

import base64

import pytest

from helpers.llm.servers import Answer, ModelServer, anthropic_answer, anthropic_error, serving
from shared.errors import ModelBlocked, ModelError, ModelUnavailable
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


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (anthropic_error(400, "invalid_request_error", "Output blocked by content filtering policy"), ModelBlocked),
        (anthropic_error(404, "not_found_error", f"no model for {KEY}"), ModelUnavailable),
    ],
)
async def test_a_filter_and_an_unknown_model_have_their_own_errors(answer: Answer, kind: type[ModelError]) -> None:
    async with serving(answer) as server:
        with pytest.raises(ModelError) as caught:
            await ask(server)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)

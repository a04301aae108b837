"""What is particular to the Gemini adapter; `test_adapters` has what all adapters do."""

import base64
from typing import TYPE_CHECKING, Any

import pytest

from helpers.llm.servers import Answer, ModelServer, gemini_answer, gemini_error, serving
from shared.errors import ModelBlocked, ModelError
from shared.llm.model import Completion, ImagePart, ModelRequest

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from shared.llm.providers.gemini import GeminiModel

KEY = "AIza-very-secret-key"
REQUEST = ModelRequest(
    system="Be brief.", parts=("Hello", ImagePart(data=b"\xff\xd8\xffjpeg")), temperature=0.5, seed=7
)


def model_of(server: ModelServer, **options: Any) -> "GeminiModel":
    # Late: every test process imports this file, one runs its tests, and the SDK takes a second.
    from shared.llm.providers.gemini import GeminiModel

    return GeminiModel("gemini-x", api_key=KEY, base_url=server.url, **{"retry_delay_s": 0.01, **options})


async def ask(server: ModelServer, request: ModelRequest = REQUEST, **options: Any) -> Completion:
    model = model_of(server, **options)
    try:
        return await model.complete(request)
    finally:
        await model.aclose()


async def failure(server: ModelServer, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(server, **options)
    assert KEY not in str(caught.value)
    return caught.value


async def test_a_request_has_the_documented_form_and_options() -> None:
    async with serving(gemini_answer("Hi")) as server:
        await ask(server)
    (received,) = server.received
    assert received.path.endswith("/models/gemini-x:generateContent")
    assert received.headers["x-goog-api-key"] == KEY
    assert received.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    text, image = received.body["contents"][0]["parts"]
    assert text == {"text": "Hello"}
    # JSON for protocol buffers reads both spellings of a name; the SDK has used either.
    image_data = image["inlineData"]
    assert (image_data.get("mimeType") or image_data.get("mime_type")) == "image/jpeg"
    assert base64.urlsafe_b64decode(image_data["data"]) == b"\xff\xd8\xffjpeg"
    assert received.body["generationConfig"]["temperature"] == 0.5
    assert received.body["generationConfig"]["seed"] == 7


async def test_a_lead_is_a_turn_of_its_own_before_the_others_and_images_keep_their_real_type() -> None:
    image = ImagePart(data=b"\xff\xd8\xffjpeg", named_type="image/png", detail="high")
    async with serving(gemini_answer("Hi")) as server:
        await ask(server, ModelRequest(system="s", lead=("First",), parts=("Then", image)))
    lead, turn = server.received[0].body["contents"]
    assert (lead["role"], lead["parts"]) == ("user", [{"text": "First"}])
    image_data = turn["parts"][1]["inlineData"]
    assert (image_data.get("mimeType") or image_data.get("mime_type")) == "image/jpeg"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer({"promptFeedback": {"blockReason": "SAFETY"}}), ModelBlocked),
        (gemini_answer("half", finish="PROHIBITED_CONTENT"), ModelBlocked),
        (gemini_answer(None, finish="RECITATION"), ModelBlocked),
        (gemini_answer(None, finish="LANGUAGE"), ModelBlocked),
    ],
)
async def test_every_filter_blocks(answer: Answer, kind: type[ModelError]) -> None:
    async with serving(answer) as server:
        error = await failure(server)
    assert type(error) is kind


async def test_a_finish_reason_from_the_future_is_other() -> None:
    with pytest.warns(UserWarning, match="NEW_REASON"):
        async with serving(gemini_answer("Hi", finish="NEW_REASON")) as server:
            assert (await ask(server)).finish_reason == "other"


async def test_a_parameter_that_a_gateway_does_not_know_is_left_out_from_then_on() -> None:
    refusal = gemini_error(400, "INVALID_ARGUMENT", 'Unknown name "seed" at generation_config')
    async with serving(refusal, gemini_answer("Hi")) as server:
        model = model_of(server)
        await model.complete(REQUEST)
        await model.complete(REQUEST)
        await model.aclose()
    requests = ["seed" in received.body["generationConfig"] for received in server.received]
    assert requests == [True, False, False]

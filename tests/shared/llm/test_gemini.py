"""The Gemini adapter against a local server that speaks generateContent."""

import base64
from typing import TYPE_CHECKING, Any

import pytest

from helpers.llm.servers import Answer, ModelServer, gemini_answer, gemini_error, serving
from shared.errors import ModelBlocked, ModelError, ModelMalformed, ModelTruncated, ModelUnavailable
from shared.llm.model import Completion, ImagePart, ModelRequest

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


async def test_a_request_carries_system_prompt_text_image_and_options() -> None:
    async with serving(gemini_answer("Hi")) as server:
        await ask(server)
    (received,) = server.received
    assert received.path.endswith("/models/gemini-x:generateContent")
    assert received.headers["x-goog-api-key"] == KEY
    assert received.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    text, image = received.body["contents"][0]["parts"]
    assert text == {"text": "Hello"}
    # JSON for protocol buffers reads both spellings of a name; the SDK has used either.
    sent = image["inlineData"]
    assert (sent.get("mimeType") or sent.get("mime_type")) == "image/jpeg"
    assert base64.urlsafe_b64decode(sent["data"]) == b"\xff\xd8\xffjpeg"
    assert received.body["generationConfig"]["temperature"] == 0.5
    assert received.body["generationConfig"]["seed"] == 7


async def test_a_lead_is_a_turn_of_its_own_before_the_others_and_images_keep_their_real_type() -> None:
    image = ImagePart(data=b"\xff\xd8\xffjpeg", named_type="image/png", detail="high")
    async with serving(gemini_answer("Hi")) as server:
        await ask(server, ModelRequest(system="s", lead=("First",), parts=("Then", image)))
    lead, turn = server.received[0].body["contents"]
    assert (lead["role"], lead["parts"]) == ("user", [{"text": "First"}])
    sent = turn["parts"][1]["inlineData"]
    assert (sent.get("mimeType") or sent.get("mime_type")) == "image/jpeg"


async def test_a_completion_has_text_version_and_all_tokens() -> None:
    async with serving(gemini_answer("Hi")) as server:
        completion = await ask(server)
    assert (completion.text, completion.model, completion.finish_reason) == ("Hi", "served-version", "stop")
    usage = completion.usage
    assert (usage.input, usage.output, usage.cached, usage.reasoning) == (100, 25, 40, 5)


async def test_thoughts_are_not_part_of_the_text() -> None:
    answer = gemini_answer("Hi")
    answer.body["candidates"][0]["content"]["parts"].insert(0, {"text": "thinking", "thought": True})
    async with serving(answer) as server:
        assert (await ask(server)).text == "Hi"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_fault_is_retried(status: int) -> None:
    async with serving(gemini_error(status, "X", "later"), gemini_answer("Hi")) as server:
        assert (await ask(server)).text == "Hi"
    assert len(server.received) == 2


async def test_retry_after_is_waited_for() -> None:
    late = gemini_error(429, "RESOURCE_EXHAUSTED", "later", retry_after="0.4")
    async with serving(late, gemini_answer("Hi")) as server:
        await ask(server)
    assert server.received[1].at - server.received[0].at >= 0.4


async def test_a_refused_key_is_reported_without_showing_it_and_not_retried() -> None:
    async with serving(gemini_error(400, "INVALID_ARGUMENT", f"API key not valid: {KEY}")) as server:
        error = await failure(server)
    assert "GOOGLE_API_KEY" in str(error)
    assert len(server.received) == 1


async def test_the_key_is_removed_from_error_texts() -> None:
    async with serving(gemini_error(400, "INVALID_ARGUMENT", f"bad field near {KEY}")) as server:
        assert "[key]" in str(await failure(server))


async def test_a_slow_answer_ends_at_the_time_limit() -> None:
    async with serving(Answer(b"{}", delay_s=5)) as server:
        error = await failure(server, timeout_s=0.3)
    assert isinstance(error, ModelUnavailable)
    assert "0.3 s" in str(error)


async def test_an_unreachable_endpoint_is_unavailable() -> None:
    async with serving(gemini_answer("Hi")) as server:
        pass
    assert isinstance(await failure(server), ModelUnavailable)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer({"promptFeedback": {"blockReason": "SAFETY"}}), ModelBlocked),
        (gemini_answer(None, finish="SAFETY"), ModelBlocked),
        (gemini_answer("half", finish="PROHIBITED_CONTENT"), ModelBlocked),
        (gemini_answer(None, finish="RECITATION"), ModelBlocked),
        (gemini_answer(None, finish="LANGUAGE"), ModelBlocked),
        (gemini_answer(None, finish="MAX_TOKENS"), ModelTruncated),
        (gemini_answer(None), ModelMalformed),
        (Answer({"candidates": []}), ModelMalformed),
        (Answer({}), ModelMalformed),
        (Answer(b"<html>not json</html>"), ModelMalformed),
        (Answer(b'{"candidates": [{"content"'), ModelMalformed),
        (Answer({"candidates": "many"}), ModelMalformed),
        (Answer([1, 2]), ModelMalformed),
        (Answer(b""), ModelMalformed),
    ],
)
async def test_each_unusable_answer_has_its_own_error(answer: Answer, kind: type[ModelError]) -> None:
    async with serving(answer) as server:
        error = await failure(server)
    assert type(error) is kind


@pytest.mark.parametrize(
    "answer", [gemini_answer(None, finish="MAX_TOKENS"), gemini_answer(None, finish="SAFETY"), gemini_answer(None)]
)
async def test_an_answer_without_text_still_reports_its_usage(answer: Answer) -> None:
    async with serving(answer) as server:
        usage = (await failure(server)).usage
    assert usage is not None
    assert (usage.calls, usage.input, usage.output, usage.reasoning) == (1, 100, 25, 5)


async def test_text_cut_off_at_the_limit_is_marked() -> None:
    async with serving(gemini_answer("Half an ans", finish="MAX_TOKENS")) as server:
        completion = await ask(server)
    assert (completion.text, completion.finish_reason) == ("Half an ans", "length")


async def test_a_finish_reason_from_the_future_is_other() -> None:
    with pytest.warns(UserWarning, match="NEW_REASON"):
        async with serving(gemini_answer("Hi", finish="NEW_REASON")) as server:
            assert (await ask(server)).finish_reason == "other"


async def test_an_answer_without_usage_counts_as_one_call() -> None:
    answer = gemini_answer("Hi")
    del answer.body["usageMetadata"]
    async with serving(answer) as server:
        usage = (await ask(server)).usage
    assert (usage.calls, usage.input) == (1, 0)

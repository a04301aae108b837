"""The single-flight cache of replies."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.llm.scripted import ScriptedModel
from shared.errors import ModelBlocked, ModelError, ModelUnavailable
from shared.llm.cache import CachedModel, request_key
from shared.llm.model import ImagePart, ModelRequest
from shared.models import TokenUsage

ASK = ModelRequest(system="s", parts=("p",))


def cached(model: ScriptedModel, folder: Path | None, namespace: str = "n") -> CachedModel:
    return CachedModel(model, namespace=namespace, folder=folder)


def files(folder: Path, pattern: str) -> list[Path]:
    return list(folder.rglob(pattern))


@pytest.fixture(params=["memory", "disk"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "disk" else None


async def test_the_same_request_is_asked_once(folder: Path | None) -> None:
    model = ScriptedModel(lambda _: "reply")
    cache = cached(model, folder)
    replies = [await cache.complete(ASK) for _ in range(3)]
    assert len(model.requests) == 1
    assert replies[0] == replies[2]


async def test_concurrent_requests_share_one_call(folder: Path | None) -> None:
    model = ScriptedModel(lambda _: "reply")
    cache = cached(model, folder)
    await asyncio.gather(*(cache.complete(ASK) for _ in range(20)))
    assert len(model.requests) == 1


async def test_kept_replies_outlive_the_process(tmp_path: Path) -> None:
    first, second = ScriptedModel(lambda _: "one"), ScriptedModel(lambda _: "two")
    reply = await cached(first, tmp_path).complete(ASK)
    assert await cached(second, tmp_path).complete(ASK) == reply
    assert second.requests == []


async def test_a_reply_counts_for_the_first_who_pays_and_is_free_for_all_others(folder: Path | None) -> None:
    cache = cached(ScriptedModel(lambda _: "reply"), folder)
    # Whoever asks ahead does not count anything.
    assert (await cache.complete(ASK)).cost_usd == 0.01
    replies = await asyncio.gather(*(cache.complete(ASK, payer) for payer in ("one", "other", "one")))
    assert [(reply.text, reply.cost_usd, reply.usage.calls) for reply in replies] == [
        ("reply", 0.01, 1),
        ("reply", 0.0, 0),
        ("reply", 0.01, 1),
    ]


async def test_a_call_that_several_wait_for_counts_once(folder: Path | None) -> None:
    cache = cached(ScriptedModel(lambda _: "reply"), folder)
    replies = await asyncio.gather(*(cache.complete(ASK, payer) for payer in ("one", "other")))
    assert sorted(reply.usage.calls for reply in replies) == [0, 1]


async def test_a_reply_kept_by_another_process_counts_in_full(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "reply")
    first, second = cached(model, tmp_path), cached(model, tmp_path)
    await first.complete(ASK, "one")
    assert [(await second.complete(ASK, payer)).usage.calls for payer in ("other", "one")] == [1, 0]


async def test_an_error_reaches_all_waiting_callers_and_is_not_kept(folder: Path | None) -> None:
    answers: Iterator[str | ModelError] = iter([ModelUnavailable("down"), "reply"])
    cache = cached(ScriptedModel(lambda _: next(answers)), folder)
    results = await asyncio.gather(cache.complete(ASK), cache.complete(ASK), return_exceptions=True)
    assert [type(result) for result in results] == [ModelUnavailable, ModelUnavailable]
    assert (await cache.complete(ASK)).text == "reply"


async def test_a_refusal_is_kept_and_counts_like_a_reply(folder: Path | None) -> None:
    refusal = ModelBlocked("unsafe", usage=TokenUsage(calls=1, input=7))
    refusal.cost_usd = 0.01
    model = ScriptedModel(lambda _: refusal)
    cache = cached(model, folder)
    results = []
    for payer in (None, "one", "other", "one"):
        with pytest.raises(ModelBlocked, match="unsafe") as caught:
            await cache.complete(ASK, payer)
        results.append((caught.value.usage, caught.value.cost_usd))
    paid, free = (TokenUsage(calls=1, input=7), 0.01), (TokenUsage(), 0.0)
    assert (results, len(model.requests)) == ([paid, paid, free, paid], 1)


async def test_a_discarded_refusal_is_asked_for_again(folder: Path | None) -> None:
    answers: Iterator[str | ModelError] = iter([ModelBlocked("unsafe"), "reply"])
    cache = cached(ScriptedModel(lambda _: next(answers)), folder)
    with pytest.raises(ModelBlocked):
        await cache.complete(ASK)
    await cache.discard(ASK)
    assert (await cache.complete(ASK)).text == "reply"


async def test_a_cancelled_caller_does_not_end_the_call(folder: Path | None) -> None:
    model = ScriptedModel(lambda _: "reply")
    model.gate = asyncio.Event()
    cache = cached(model, folder)
    leaving = asyncio.create_task(cache.complete(ASK))
    while not model.requests:
        await asyncio.sleep(0)
    leaving.cancel()
    staying = asyncio.create_task(cache.complete(ASK))
    await asyncio.sleep(0)
    model.gate.set()
    assert (await staying).text == "reply"
    assert len(model.requests) == 1


async def test_a_discarded_reply_is_asked_for_again(folder: Path | None) -> None:
    model = ScriptedModel(lambda _: "reply")
    cache = cached(model, folder)
    await cache.complete(ASK)
    await cache.discard(ASK)
    await cache.complete(ASK)
    assert len(model.requests) == 2


async def test_a_damaged_file_counts_as_absent_and_is_replaced(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "reply")
    cache = cached(model, tmp_path)
    await cache.complete(ASK)
    (file,) = files(tmp_path, "*.json")
    file.write_bytes(file.read_bytes()[:10])
    assert (await cache.complete(ASK)).text == "reply"
    assert (await cached(ScriptedModel(lambda _: "x"), tmp_path).complete(ASK)).text == "reply"


async def test_nothing_half_written_is_left_in_the_folder(tmp_path: Path) -> None:
    await cached(ScriptedModel(lambda _: "reply"), tmp_path).complete(ASK)
    assert files(tmp_path, "*.part") == []


async def test_replies_that_cannot_be_written_are_kept_in_memory_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder can be here")
    model = ScriptedModel(lambda _: "reply")
    cache = cached(model, tmp_path / "file")
    assert [(await cache.complete(ASK)).text for _ in range(2)] == ["reply", "reply"]
    assert len(model.requests) == 1
    assert "in memory only" in caplog.text
    await cache.discard(ASK)
    await cache.complete(ASK)
    assert len(model.requests) == 2


async def test_closing_cancels_running_calls(folder: Path | None) -> None:
    model = ScriptedModel(lambda _: "reply")
    model.gate = asyncio.Event()
    cache = cached(model, folder)
    waiting = asyncio.create_task(cache.complete(ASK))
    while not model.requests:
        await asyncio.sleep(0)
    await cache.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert model.closed


def test_the_key_covers_model_prompt_set_and_the_whole_request() -> None:
    image = ImagePart(data=b"1")
    requests = [
        ASK,
        ModelRequest(system="t", parts=("p",)),
        ModelRequest(system="s", parts=("p", "q")),
        ModelRequest(system="s", parts=("pq",)),
        ModelRequest(system="s", parts=("p", image)),
        ModelRequest(system="s", parts=("p", ImagePart(data=b"2"))),
        ModelRequest(system="s", parts=("p", ImagePart(data=b"1", media_type="image/png"))),
        ModelRequest(system="s", parts=("p", ImagePart(data=b"1", named_type="image/png"))),
        ModelRequest(system="s", parts=("p", ImagePart(data=b"1", detail="high"))),
        ModelRequest(system="s", lead=("p",), parts=("p",)),
        ModelRequest(system="s", parts=("p",), temperature=1.0),
        ModelRequest(system="s", parts=("p",), seed=1),
        ModelRequest(system="s", parts=("p",), max_output_tokens=5),
    ]
    keys = {request_key("m", "n", request) for request in requests}
    keys |= {request_key("m2", "n", ASK), request_key("m", "n2", ASK)}
    assert len(keys) == len(requests) + 2

"""What a variant does to requests: they are late in the page's time, or one fails once; never the judge's."""

import asyncio
import time
from typing import Any

import pytest

from helpers.network.interceptors import Answering, answer
from judge.network.disturbing import Disturbed
from judge.network.interception import WireAnswer, WireRequest
from judge.network.wire import CLOCK
from judge.records.variants import Requests

SHOP = "https://shop.example"
PAGE = (("Sec-Fetch-Dest", "document"),)


def disturbed(**change: Any) -> Disturbed:
    return Disturbed(Answering(lambda _: answer("right")), Requests(**change))


def asked(url: str = "/api/lamps", method: str = "GET", step: int = 1, **more: Any) -> WireRequest:
    return WireRequest(method, url if "://" in url else f"{SHOP}{url}", step=step, **more)


async def status(interceptor: Disturbed, request: WireRequest) -> int:
    return (await interceptor.answer(request, None)).status


async def left(interceptor: Disturbed, ms: int) -> int:
    reply: WireAnswer = await interceptor.answer(asked(f"{CLOCK}?ahead_ms={ms}", is_judges=True), None)
    assert isinstance(reply.body, bytes)
    return int(reply.body)


async def test_the_first_get_of_an_address_fails_once_and_says_that_loading_the_page_again_helps() -> None:
    one = disturbed(fail_once="/api/*")
    reply = await one.answer(asked(), None)
    assert (reply.status, reply.is_held) == (503, True)
    assert b"Reload the page" in (reply.body if isinstance(reply.body, bytes) else b"")
    assert await status(one, asked()) == 200


@pytest.mark.parametrize(
    "request_",
    [
        asked("/lamps"),
        asked(method="POST"),
        asked(method="HEAD"),
        asked(step=0),
        asked(headers=PAGE),
        asked(is_judges=True),
    ],
    ids=["another address", "a write", "no GET", "before the first action", "a document's first load", "the judge's"],
)
async def test_nothing_else_fails(request_: WireRequest) -> None:
    one = disturbed(fail_once="/api/*")
    assert await status(one, request_) == 200
    assert await status(one, asked()) == 503


async def test_a_document_may_fail_when_it_is_loaded_again() -> None:
    one = disturbed(fail_once="/api/*")
    assert [await status(one, asked(headers=PAGE)) for _ in range(3)] == [200, 503, 200]


async def test_a_request_is_late_by_this_machines_clock_unless_the_page_is_ahead() -> None:
    one = disturbed(delay_s=0.2)
    began = time.monotonic()
    assert await status(one, asked()) == 200
    assert time.monotonic() - began >= 0.2


async def test_a_delay_is_over_when_it_has_passed_in_the_pages_time() -> None:
    one = disturbed(delay_s=30)
    late = asyncio.create_task(status(one, asked()))
    while not await left(one, 0):
        await asyncio.sleep(0)
    assert 9_000 < await left(one, 20_000) <= 10_000
    assert not late.done()
    assert await left(one, 30_001) == 0
    async with asyncio.timeout(5):
        assert await late == 200


async def test_no_page_can_move_the_clock_and_neither_the_first_page_nor_the_judge_waits() -> None:
    one = disturbed(delay_s=30)
    async with asyncio.timeout(5):
        assert [await status(one, each) for each in (asked(step=0), asked(is_judges=True))] == [200, 200]
    forged = asyncio.create_task(status(one, asked(f"{CLOCK}?ahead_ms=60000")))
    while not await left(one, 0):
        await asyncio.sleep(0)
    assert not forged.done()
    forged.cancel()

"""Disturbs an attempt's requests as its variant says: each is late, or the first one of an address fails.

A delay passes in the page's time. Where the judge moves that faster than this machine's, its browser tells this
interceptor so (`settle/delays.cjs`), by requests that no page can send.
"""

import asyncio
import time
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from judge.evaluators.addresses import could_be_held
from judge.network.holding import is_for_document, reply_to
from judge.network.interception import Interceptor, PageSocket, Upstream, WireAnswer, WireRequest
from judge.network.wire import CLOCK
from judge.records.holds import Hold
from judge.records.variants import Requests

_AGAIN = "The server was busy for a moment. Reload the page to try again."


class Disturbed:
    """The interceptor `inner`, disturbed from the first action on: the judge opens the first page."""

    def __init__(self, inner: Interceptor, change: Requests) -> None:
        self._inner = inner
        self._delay_s = change.delay_s or 0.0
        self._fails = None if change.fail_once is None else Hold(url=change.fail_once, status=503, body=_AGAIN)
        # Documents that were asked for already: one never fails when it is first loaded.
        self._loaded: set[str] = set()
        # By how much the page's time is ahead of this machine's.
        self._ahead_s = 0.0
        self._due: list[float] = []
        self._moved = asyncio.Event()

    @property
    def reaches_out(self) -> bool:
        """See `Interceptor`."""
        return self._inner.reaches_out

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `Interceptor`."""
        if not request.is_judges:
            if request.step:
                await self._late()
            if (failure := self._failure(request)) is not None:
                return failure
        elif request.url.startswith(CLOCK):
            return self._clock(request.url)
        return await self._inner.answer(request, upstream)

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `Interceptor`."""
        if request.step:
            await self._late()
        await self._inner.socket(request, page, upstream)

    def _failure(self, request: WireRequest) -> WireAnswer | None:
        is_first = False
        if is_for_document(request.headers):
            is_first = request.url not in self._loaded
            self._loaded.add(request.url)
        if self._fails is None or not request.step or is_first or request.method != "GET":
            return None
        if not could_be_held(request.url, self._fails):
            return None
        failing, self._fails = self._fails, None
        return reply_to(request, failing)

    def _now(self) -> float:
        return time.monotonic() + self._ahead_s

    async def _late(self) -> None:
        due = self._now() + self._delay_s
        self._due.append(due)
        try:
            while (left := due - self._now()) > 0:
                moved = self._moved
                with suppress(TimeoutError):
                    await asyncio.wait_for(moved.wait(), left)
        finally:
            self._due.remove(due)

    def _clock(self, url: str) -> WireAnswer:
        """Notes how far the page's time is ahead; answers how long the next delay still takes, 0 without one."""
        self._ahead_s = int(parse_qs(urlsplit(url).query)["ahead_ms"][0]) / 1000
        # One for each move, so that nobody misses one.
        self._moved.set()
        self._moved = asyncio.Event()
        left = max(0.0, min(self._due, default=0.0) - self._now())
        body = str(round(left * 1000)).encode()
        return WireAnswer(200, "OK", (("Content-Length", str(len(body))),), body)

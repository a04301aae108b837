"""Answers the requests of an attempt from an archive. Nothing here can open a connection or resolve a name."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from email.utils import format_datetime, parsedate_to_datetime

from judge.network.interception import (
    HeaderPairs,
    PageSocket,
    RequestFailed,
    Upstream,
    WireAnswer,
    WireRequest,
    judges_page,
)
from judge.plugins.frozen.exchanges import Chunk, RecordedExchange, RecordedSocketMessage, without_headers
from judge.plugins.frozen.kinds import DOCUMENTS
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Match, Matcher
from judge.plugins.frozen.secrets import Secrets
from judge.plugins.frozen.sockets import SocketReplay
from judge.records.ledger import LedgerEntry

# Streams pause as recorded, so that no look shows what a live page would only show later. Longer pauses are cut.
MAX_PAUSE_S = 1.0
_EXPIRES = re.compile(r"(;\s*expires=)([^;]+)", re.IGNORECASE)
# These would make the browser connect elsewhere.
_LEADING_AWAY = ("alt-svc", "strict-transport-security", "x-archive-orig-transfer-encoding")
# These would let the browser use an answer again.
_KEEPING = ("cache-control", "expires", "etag", "last-modified", "pragma")
_MISSED = "Not in the archive"


class WriteCounter:
    """The writes of an attempt so far, and a way to wait for more."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._changed = asyncio.Condition()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._matcher.writes)

    async def notify(self) -> None:
        """Wake the waiting tasks."""
        async with self._changed:
            self._changed.notify_all()

    async def until(self, writes: Counter[int], since: int) -> None:
        """Wait until the wanted writes have been made, not counting the first `since` ones."""
        if writes:
            async with self._changed:
                await self._changed.wait_for(lambda: writes <= Counter(self._matcher.writes[since:]))


class ReplayInterceptor:
    """Answers from an index, and keeps the ledger of an attempt."""

    reaches_out = False

    def __init__(self, index: Index, walk: str = "", secrets: Sequence[str] = ()) -> None:
        self._index = index
        self._secrets = Secrets(secrets)
        self._matcher = Matcher(index, self._secrets, walk)
        self._progress = WriteCounter(self._matcher)
        self._later = timedelta(milliseconds=time.time() * 1000 - index.recording.clock_ms)
        self._entries: list[LedgerEntry] = []
        self._sockets: list[SocketReplay] = []

    def take(self) -> tuple[LedgerEntry, ...]:
        """The requests since the last call, in order."""
        entries, self._entries = tuple(self._entries), []
        return entries

    def entered(self, texts: Sequence[str]) -> None:
        """Note what the participant is about to enter."""
        self._matcher.entered(texts)

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `judge.network.interception.Interceptor`."""
        before = self._progress.count
        match = self._matcher.match(request)
        self._note(request, match)
        if self._progress.count > before:
            for each in self._sockets:
                each.wrote(request.step)
            await self._progress.notify()
        if match.exchange is None:
            return self._missed(request, match)
        if match.answer is None:
            await _failed(match.exchange)
        return self._answer(match)

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `judge.network.interception.Interceptor`."""
        match = self._matcher.match(request)
        self._note(request, match)
        if match.exchange is None:
            raise RequestFailed("the socket was not recorded")
        if match.answer is None:
            raise RequestFailed(match.exchange.failure)
        if match.answer.status != 101:
            await page.refuse(self._answer(match))
            return
        await page.accept(self._headers(match.answer.headers))
        replay = SocketReplay(
            match.exchange,
            page,
            matcher=self._matcher,
            secrets=self._secrets,
            wait=self._caused,
            note=lambda message, step: self._note(replace(request, step=step), message),
            others=match.others,
        )
        self._sockets.append(replay)
        try:
            await replay.run(self._progress.notify)
        finally:
            self._sockets.remove(replay)

    def _note(self, request: WireRequest, match: Match) -> None:
        self._entries.append(
            LedgerEntry(
                step=request.step,
                method=request.method,
                url=self._secrets.address(request.url),
                kind=match.kind,
                grade=match.grade,
                record=match.exchange.record_id if match.exchange else None,
                differs=match.differs[:50],
                miss=match.miss,
                is_read=match.is_read,
                is_quiet=match.is_quiet,
            )
        )

    def _answer(self, match: Match) -> WireAnswer:
        exchange, answer = match.exchange, match.answer
        assert exchange is not None
        assert answer is not None
        headers = self._headers(answer.headers)
        if match.grade == "uncertain":
            # Used again only if the page asks again, so that the ledger has each use.
            headers = (*without_headers(headers, *_KEEPING), ("Cache-Control", "no-store"))
        is_recorded = answer is exchange.answer
        if is_recorded and (exchange.chunks or not exchange.is_whole):
            body = self._streamed(exchange)
            other_headers = without_headers(headers, "content-length")
            return WireAnswer(answer.status, answer.reason, other_headers, body, answer.http_version)
        return WireAnswer(answer.status, answer.reason, headers, answer.body, answer.http_version)

    async def _streamed(self, exchange: RecordedExchange) -> AsyncIterator[bytes]:
        """The body in its recorded pieces, each after the writes that may have caused it."""
        since, place, at_ms = self._progress.count, 0, 0
        body = exchange.answer.body if exchange.answer else b""
        for chunk in exchange.chunks:
            await self._caused(exchange, chunk, at_ms, since)
            yield self._matcher.as_now(body[place : chunk.end])
            place, at_ms = chunk.end, chunk.at_ms
        if place < len(body):
            yield self._matcher.as_now(body[place:])
        if not exchange.is_whole:
            await _failed(exchange)

    async def _caused(
        self, exchange: RecordedExchange, piece: Chunk | RecordedSocketMessage, before_ms: int, since: int
    ) -> None:
        """Wait for the writes that came before a piece, then as long as it took after the last write or piece."""
        await self._progress.until(self._index.writes.during(exchange, piece.tick), since)
        pauses = piece.at_ms - before_ms, self._index.writes.since_ms(exchange, piece.tick, piece.at_ms)
        pause_ms = min(each for each in pauses if each is not None)
        await asyncio.sleep(min(max(0, pause_ms) / 1000, MAX_PAUSE_S))

    def _headers(self, headers: HeaderPairs) -> HeaderPairs:
        """The headers, with the expiry times of cookies shifted by the time since the recording."""
        return tuple(
            (name, self._later_cookie(value) if name.lower() == "set-cookie" else value)
            for name, value in without_headers(headers, *_LEADING_AWAY)
        )

    def _later_cookie(self, value: str) -> str:
        def later(match: re.Match[str]) -> str:
            try:
                moment = parsedate_to_datetime(match[2].strip().replace("-", " "))
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
                # An expiry time that had passed at recording is meant to delete the cookie.
                if moment.timestamp() * 1000 <= self._index.recording.clock_ms:
                    return match[0]
                return match[1] + format_datetime((moment + self._later).astimezone(UTC), usegmt=True)
            except (ValueError, OverflowError, TypeError):
                return match[0]

        return _EXPIRES.sub(later, value)

    def _missed(self, request: WireRequest, match: Match) -> WireAnswer:
        if match.miss == "harmless":
            return WireAnswer(204, "No Content", (("Access-Control-Allow-Origin", "*"),), b"")
        body = b""
        if match.kind in DOCUMENTS:
            url = self._secrets.address(request.url)[:2_000]
            body = judges_page(
                _MISSED, f"{request.method} {url} was not recorded, so this frozen site cannot answer it."
            )
        # Anything else has no content: a script of the site would put it into its page.
        headers = (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            # It has no access to what the site stores in the browser, and is not the site's for probes.
            ("Content-Security-Policy", "sandbox"),
        )
        return WireAnswer(504, _MISSED, headers, body)


async def _failed(exchange: RecordedExchange) -> None:
    """End like the recorded exchange: with its failure, or only when the page gives up."""
    if exchange.failure:
        raise RequestFailed(exchange.failure)
    await asyncio.Event().wait()

"""Replays a web socket: the site's messages follow the page's, in the recorded order."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from judge.network.interception import PageSocket, SocketClose, SocketMessage
from judge.plugins.frozen.exchanges import RecordedExchange, RecordedSocketMessage
from judge.plugins.frozen.kinds import RequestKind
from judge.plugins.frozen.matching.matcher import Match, Matcher
from judge.plugins.frozen.matching.messages import is_signal, reply_to
from judge.plugins.frozen.secrets import Secrets
from judge.records.ledger import Grade

_SOCKET: RequestKind = "socket"
Wait = Callable[[RecordedExchange, RecordedSocketMessage, int, int], Awaitable[None]]


@dataclass
class SocketReplay:
    """One socket of an attempt.

    Each message of the page is looked up among its recorded ones. A message of the site is sent once the page has sent
    everything that preceded it in the recording. If the page skips messages, its message is uncertain: the replies to
    the skipped ones are left out, and follow if the page sends them later. A message that may be a recorded one is
    uncertain, and any other is a miss.

    `others` are further recordings of this socket in the same state. If one of them went like this one so far, and then
    continues with the page's message, it answers from then on.
    """

    exchange: RecordedExchange
    page: PageSocket
    matcher: Matcher
    secrets: Secrets
    wait: Wait
    note: Callable[[Match, int], None]
    others: Sequence[RecordedExchange] = ()
    _exchanged: list[tuple[bool, str]] = field(default_factory=list)
    _since: int = 0
    _is_lost: bool = False
    _released: "asyncio.Task[None] | None" = None
    _seen: set[int] = field(default_factory=set)
    _left_out: set[int] = field(default_factory=set)
    _skipped: set[int] = field(default_factory=set)
    _late: list[int] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._first = self.exchange
        self._read()

    def _read(self) -> None:
        self._messages = self.exchange.messages
        page_messages = [
            (place, self._key_in(self.exchange, each)) for place, each in enumerate(self._messages) if each.is_from_page
        ]
        self._page_messages = page_messages
        self._writing = self.matcher.index.writes.in_messages(self.exchange)
        self._signals = {at for at, _ in page_messages if is_signal(self._messages[at].data)}

    async def run(self, notify: Callable[[], Awaitable[None]]) -> None:
        """Serve the page until the socket ends."""
        self._since = len(self.matcher.writes)
        self._released = asyncio.create_task(self._release(0))
        try:
            while isinstance(message := await self.page.receive(), SocketMessage):
                if self._received(message):
                    await notify()
                await self._release_late()
        finally:
            self._released.cancel()
            await asyncio.gather(self._released, return_exceptions=True)

    def wrote(self, step: int) -> None:
        """Note a write outside of the socket in a step."""
        *_, last = self.matcher.writes
        before = self.matcher.state(step, -1)
        if not self.matcher.index.is_foreseen(self.exchange, before, last):
            # The page may lack what the site said; what the write changed is known.
            self._note("uncertain", step, is_read=True)

    async def _release(self, start: int) -> None:
        at_ms = 0
        for place, message in enumerate(self._messages):
            if place < start:
                continue
            if message.is_from_page:
                at_ms = message.at_ms
                continue
            await self._until(place)
            if place in self._left_out:
                continue
            await self.wait(self.exchange, message, at_ms, self._since)
            at_ms = message.at_ms
            await self._send(message)
        closed = self.exchange.closed
        if isinstance(closed, SocketClose) and not closed.is_from_page:
            await self._until(len(self._messages))
            end = RecordedSocketMessage(False, False, b"", closed.at_ms, self.exchange.ended)
            await self.wait(self.exchange, end, at_ms, self._since)
            await self.page.close(closed.code, closed.reason)

    async def _send(self, message: RecordedSocketMessage) -> None:
        self._exchanged.append((False, self._key_in(self.exchange, message)))
        data = self.matcher.as_now(message.data)
        await self.page.send(SocketMessage(False, message.is_text, data, message.at_ms))

    async def _release_late(self) -> None:
        """Send the replies to messages that the page had skipped and has now sent."""
        while self._late:
            place = self._late.pop(0)
            for message in takewhile(lambda each: not each.is_from_page, self._messages[place + 1 :]):
                await self._send(message)

    async def _until(self, place: int) -> None:
        """Wait until the page has sent everything that precedes this place in the recording."""
        while any(
            each < place and each not in self._seen and each not in self._signals for each, _ in self._page_messages
        ):
            self._changed.clear()
            await self._changed.wait()

    def _received(self, message: SocketMessage) -> bool:
        """Look up a message of the page among the recorded ones. Returns whether it counts as a write."""
        page_message = RecordedSocketMessage(
            True, message.is_text, self.matcher.as_recorded(message.data), message.at_ms, 0
        )
        key = self._key(page_message)
        writes = self.matcher.state(message.step)
        self._follow(key)
        self._exchanged.append((True, key))
        places = [place for place, each in self._page_messages if each == key]
        near = None if places else self._near(page_message)
        places += [] if near is None else [near]
        unseen = [place for place in places if place not in self._seen]
        if is_signal(message.data):
            # With whatever count it has reached, and as often as it likes.
            self._see(unseen[:1])
            return False
        if not places:
            self._note("miss", message.step)
        elif not unseen:
            self._late += sorted(self._skipped.intersection(places))[:1]
            self._skipped.difference_update(self._late)
            self._note("uncertain", message.step)
        else:
            self._in_order(unseen[0], writes, message.step, is_sure=near is None)
        if unseen:
            self.matcher.note_message(self.exchange.path, self._messages[unseen[0]].data, page_message.data)
        # An equal one that comes later in the recording may have counted as a write when this one did not.
        if places and self._writing.isdisjoint(unseen[:1] or places):
            return False
        is_certain = bool(unseen) and not self._is_lost
        if is_certain and self.matcher.is_unsure:
            # An affected page could have sent another one.
            self._note("exact", message.step)
        data = self.secrets.message(page_message.data, is_text=page_message.is_text)
        self.matcher.note_socket_message(self.exchange.request.url, data, is_certain=is_certain)
        return True

    def _in_order(self, place: int, writes: Sequence[int], step: int, *, is_sure: bool) -> None:
        """Mark the message at this place as sent. Earlier ones that were not sent are skipped, with their replies.

        Messages with no reply in between may come in any order. The reply is certain after the same `writes` only,
        and if it is sure that this is the message.
        """
        missing, answered = self._before(place)
        if answered:
            self._left_out |= {at for at in range(answered[0], place) if not self._messages[at].is_from_page}
            self._see(missing)
            self._skipped.update(missing)
        # The reply would wait for the others.
        is_early = bool(missing) and not answered and bool(reply_to(self._messages, place))
        is_same = self.matcher.index.is_same_state(self.exchange, self._messages[place].tick, writes)
        self._is_lost = bool(self._left_out) or is_early or not is_same or not is_sure
        if self._is_lost:
            self._note("uncertain", step)
        self._see([place])

    def _before(self, place: int) -> tuple[list[int], list[int]]:
        """The earlier messages that the page has not sent, and the ones with a reply in between."""
        missing = [
            each
            for each, _ in self._page_messages
            if each < place and each not in self._seen and each not in self._signals
        ]
        return missing, [
            each for each in missing if any(not self._messages[at].is_from_page for at in range(each, place))
        ]

    def _follow(self, key: str) -> None:
        """Change to the recording that went like this socket so far and has the page's message next, if need be."""
        unseen = next((place for place, each in self._page_messages if each == key and place not in self._seen), None)
        if unseen is not None and not self._before(unseen)[1]:
            return
        count = len(self._exchanged)
        for other in self.others:
            messages = [(each.is_from_page, self._key_in(other, each)) for each in other.messages[: count + 1]]
            if messages == [*self._exchanged, (True, key)]:
                self._change(other, count)
                self._seen = {place for place, _ in self._page_messages if place < count}
                return
        if self.exchange is not self._first and unseen is None:
            self._return()

    def _return(self) -> None:
        """Go on with the first recording: what it has was exchanged in another order."""
        self._change(self._first, 0)
        sent_counts = Counter(key for is_sent, key in self._exchanged if is_sent)
        is_said = True
        for place, message in enumerate(self._messages):
            if message.is_from_page:
                key = self._key_in(self.exchange, message)
                is_said = sent_counts[key] > 0
                sent_counts[key] -= 1
            if is_said:
                (self._seen if message.is_from_page else self._left_out).add(place)

    def _change(self, exchange: RecordedExchange, start: int) -> None:
        self.exchange = exchange
        self._read()
        for each in (self._seen, self._left_out, self._skipped):
            each.clear()
        if self._released is not None:
            self._released.cancel()
        self._released = asyncio.create_task(self._release(start))

    def _see(self, places: list[int]) -> None:
        self._seen.update(places)
        self._changed.set()

    def _note(self, grade: Grade, step: int, *, is_read: bool = False) -> None:
        miss = "decisive" if grade == "miss" else None
        exchange = None if grade == "miss" else self.exchange
        match = Match(_SOCKET, grade, exchange, differs=("message",), miss=miss, is_read=is_read)  # type: ignore[arg-type]
        self.note(match, step)

    def _near(self, message: RecordedSocketMessage) -> int | None:
        """The recorded message that this one may be, although it was not recorded like this."""
        data = self.secrets.message(message.data, is_text=message.is_text)
        unseen = (place for place, _ in self._page_messages if place not in self._seen)
        return self.matcher.index.near_message(self.exchange, data, unseen)

    def _key(self, message: RecordedSocketMessage) -> str:
        """The class of a message that the page sends now."""
        data = self.secrets.message(message.data, is_text=message.is_text)
        return self.matcher.index.message_class(self.exchange.path, data)

    def _key_in(self, exchange: RecordedExchange, message: RecordedSocketMessage) -> str:
        """The class of a recorded message."""
        data = self.secrets.message(message.data, is_text=message.is_text)
        return self.matcher.index.class_in(exchange, replace(message, data=data))

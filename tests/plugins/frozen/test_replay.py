"""Recording and replay, with the network and the page's end of sockets faked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from judge.network.interception import HeaderPairs, RequestFailed, SocketClose, SocketMessage, WireAnswer, WireRequest
from judge.plugins.frozen.exchanges import Chunk, RecordedExchange, SiteRecording
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.recording import RecordingInterceptor
from judge.plugins.frozen.replay import MAX_PAUSE_S, ReplayInterceptor
from plugins.frozen.made import AGAIN, START_MS, answer, recording, request, walk

SOCKET = "ws://shop.test/live"
EVENTS: HeaderPairs = (("Content-Type", "text/event-stream"),)


@dataclass
class End:
    """One end of a socket: what it receives is put in, what is sent to it is kept."""

    incoming: Sequence[SocketMessage | SocketClose] = ()
    answer: WireAnswer = field(default_factory=lambda: WireAnswer(101, "Switching Protocols"))
    outgoing: list[bytes] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue: asyncio.Queue[SocketMessage | SocketClose] = asyncio.Queue()
        for message in self.incoming:
            self.queue.put_nowait(message)
        self.changed = asyncio.Condition()

    async def receive(self) -> SocketMessage | SocketClose:
        return await self.queue.get()

    async def send(self, message: SocketMessage) -> None:
        self.outgoing.append(message.data)
        async with self.changed:
            self.changed.notify_all()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed.append(code)
        # As a peer does, whose answer ends the socket.
        self.queue.put_nowait(SocketClose(True, code))
        async with self.changed:
            self.changed.notify_all()

    async def accept(self, headers: HeaderPairs = ()) -> None:
        pass

    async def refuse(self, answer: WireAnswer) -> None:
        self.refusals.append(answer.status)

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(reached)


@dataclass
class Network:
    """A network whose sites answer what it is given."""

    answers: dict[str, WireAnswer | RequestFailed]
    site: End = field(default_factory=End)

    async def fetch(self, request: WireRequest) -> WireAnswer:
        result = self.answers[request.url]
        if isinstance(result, RequestFailed):
            raise result
        return result

    async def socket(self, request: WireRequest) -> End:
        return self.site


async def pieces(*parts: bytes, fails: str = "") -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if fails:
        raise RequestFailed(fails)


async def whole(body: bytes | AsyncIterator[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join([piece async for piece in body])


def page_message(text: str) -> SocketMessage:
    return SocketMessage(True, True, text.encode())


def received(text: str) -> SocketMessage:
    return SocketMessage(False, True, text.encode())


async def test_what_passes_is_recorded_as_it_was_on_the_wire() -> None:
    result = WireAnswer(200, "Fine", (("content-ENCODING", "br"), ("X", "1")), pieces(b"\x8b", b"\x03"), "1.0")
    recorder = RecordingInterceptor("w", task_id="t")
    recorded_answer = await recorder.answer(request("/a", step=3), Network({"http://shop.test/a": result}))
    assert await whole(recorded_answer.body) == b"\x8b\x03"
    (exchange,) = recorder.exchanges
    assert exchange.answer is not None
    assert (exchange.answer.body, exchange.answer.headers, exchange.answer.reason) == (
        b"\x8b\x03",
        result.headers,
        "Fine",
    )
    assert (exchange.request.step, exchange.is_whole, exchange.answer.http_version) == (3, True, "1.0")
    assert recorder.walk.task_id == "t"


async def test_an_answer_that_cannot_be_had_is_recorded_and_fails_again() -> None:
    recorder = RecordingInterceptor("w")
    with pytest.raises(RequestFailed):
        await recorder.answer(request("/a"), Network({"http://shop.test/a": RequestFailed("TLS: unknown authority")}))
    replay = ReplayInterceptor(Index(recorder.recording()))
    with pytest.raises(RequestFailed, match="TLS: unknown authority"):
        await replay.answer(request("/a"), None)
    assert [entry.grade for entry in replay.take()] == ["exact"]


async def test_an_answer_that_the_page_left_is_not_whole() -> None:
    recorder = RecordingInterceptor("w")
    endless = WireAnswer(200, "OK", EVENTS, pieces(b"data: 1\n\n", b"data: 2\n\n"))
    recorded_answer = await recorder.answer(request("/events"), Network({"http://shop.test/events": endless}))
    assert not isinstance(recorded_answer.body, bytes)
    async for _ in recorded_answer.body:
        break
    await recorded_answer.body.aclose()  # type: ignore[attr-defined]
    (exchange,) = recorder.exchanges
    assert (exchange.is_whole, [chunk.end for chunk in exchange.chunks]) == (False, [9])


async def test_requests_that_overlap_keep_their_order() -> None:
    first, second = (WireAnswer(200, "OK", (), pieces(b"x")) for _ in range(2))
    recorder = RecordingInterceptor("w")
    network = Network({"http://shop.test/1": first, "http://shop.test/2": second})
    one = await recorder.answer(request("/1"), network)
    two = await recorder.answer(request("/2"), network)
    await whole(two.body)
    await whole(one.body)
    outer, inner = recorder.exchanges
    assert outer.began < inner.began < inner.ended < outer.ended


async def test_a_replay_reaches_nothing_and_says_what_it_lacks() -> None:
    replay = ReplayInterceptor(Index(recording()))
    assert replay.reaches_out is False
    page = await replay.answer(request("/a?token=0123456789abcdef0", headers=(("Sec-Fetch-Dest", "document"),)), None)
    image = await replay.answer(request("/a.png", headers=(("Sec-Fetch-Dest", "image"),)), None)
    data = await replay.answer(request("/a.json?q=oak", headers=(("Sec-Fetch-Dest", "empty"),)), None)
    icon = await replay.answer(request("/favicon.ico"), None)
    assert [each.status for each in (page, image, data, icon)] == [504, 504, 504, 204]
    assert b"was not recorded" in await whole(page.body)
    # A script of the site could put a text into its own page.
    assert [await whole(each.body) for each in (image, data, icon)] == [b"", b"", b""]
    assert [(entry.kind, entry.miss) for entry in replay.take()] == [
        ("document", "decisive"),
        ("image", "cosmetic"),
        ("fetch", "decisive"),
        ("icon", "harmless"),
    ]
    assert replay.take() == ()


async def test_a_missed_address_is_escaped_and_shown_without_its_secrets() -> None:
    replay = ReplayInterceptor(Index(recording()))
    page = await replay.answer(request("/a?token=0123456789abcdef0&x=<script>"), None)
    body = await whole(page.body)
    assert b"<script>" not in body
    assert b"0123456789abcdef0" not in body
    assert "0123456789abcdef0" not in replay.take()[0].url


async def test_a_cookie_expires_as_late_as_it_did() -> None:
    cookies = (
        ("Set-Cookie", "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/"),
        ("Set-Cookie", "b=; expires=Thu, 01 Jan 1970 00:00:00 GMT"),
        ("Set-Cookie", "c=1; Max-Age=60"),
    )
    recorded = walk("w", (request("/"), answer(headers=cookies)))
    replay = ReplayInterceptor(Index(recording(recorded)))
    recorded_answer = await replay.answer(request("/"), None)
    values = [value for name, value in recorded_answer.headers if name == "Set-Cookie"]
    assert START_MS < 1_792_567_680_000
    assert "21 Oct 2026" not in values[0]
    assert values[0].endswith("GMT; Path=/")
    assert values[1:] == [value for _, value in cookies[1:]]


async def test_an_event_waits_for_the_write_that_caused_it() -> None:
    recorder = RecordingInterceptor("w")
    saved = asyncio.Event()

    async def stream() -> AsyncIterator[bytes]:
        yield b"data: hello\n\n"
        await saved.wait()
        yield b"data: saved\n\n"

    network = Network(
        {
            "http://shop.test/events": WireAnswer(200, "OK", EVENTS, stream()),
            "http://shop.test/save": WireAnswer(200, "OK", (), b"ok"),
        }
    )
    recorded_answer = await recorder.answer(request("/events"), network)
    assert not isinstance(recorded_answer.body, bytes)
    body = aiter(recorded_answer.body)
    await anext(body)
    await recorder.answer(request("/save", "POST"), network)
    saved.set()
    assert [piece async for piece in body] == [b"data: saved\n\n"]

    replay = ReplayInterceptor(Index(recorder.recording()))
    again = await replay.answer(request("/events"), None)
    assert not isinstance(again.body, bytes)
    replayed = aiter(again.body)
    assert await anext(replayed) == b"data: hello\n\n"
    waiting = asyncio.ensure_future(anext(replayed))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    await replay.answer(request("/save", "POST"), None)
    assert await asyncio.wait_for(waiting, 10) == b"data: saved\n\n"


async def test_an_event_comes_as_soon_after_its_write_as_it_did_not_as_long_after_the_event_before() -> None:
    walk_of_request, saved = walk(
        "w", (request("/events"), answer(b"ab", headers=EVENTS)), (request("/save", "POST"), answer())
    )
    chunks = (Chunk(10, 2, 1), Chunk(17_010, 6, 2))
    stream = replace(walk_of_request, began=1, ended=7, chunks=chunks)
    write = replace(saved, at_ms=stream.at_ms + 17_000, began=3, ended=5)
    replay = ReplayInterceptor(Index(recording((stream, write))))
    recorded_answer = await replay.answer(request("/events"), None)
    assert not isinstance(recorded_answer.body, bytes)
    body = aiter(recorded_answer.body)
    assert await anext(body) == b"a"
    waiting = asyncio.ensure_future(anext(body))
    await replay.answer(request("/save", "POST"), None)
    assert await asyncio.wait_for(waiting, MAX_PAUSE_S / 2) == b"b"


async def recorded_socket(*messages: SocketMessage | SocketClose) -> RecordedExchange:
    """What is recorded of a socket on which these messages pass, in this order."""
    page, site = End(), End()
    recorder = RecordingInterceptor("w")
    serving = asyncio.create_task(recorder.socket(request(SOCKET), page, Network({}, site)))
    for message in messages:
        source, target = (page, site) if message.is_from_page else (site, page)
        source.queue.put_nowait(message)
        if isinstance(message, SocketMessage):
            expected = len(target.outgoing) + 1
            await target.until(lambda target=target, expected=expected: len(target.outgoing) >= expected)  # type: ignore[misc]
    if not isinstance(messages[-1], SocketClose):
        page.queue.put_nowait(SocketClose(True, 1001))
    await asyncio.wait_for(serving, 10)
    (exchange,) = recorder.exchanges
    assert [message.data for message in exchange.messages] == [
        each.data for each in messages if isinstance(each, SocketMessage)
    ]
    return exchange


async def replayed(exchange: RecordedExchange) -> tuple[ReplayInterceptor, End, "asyncio.Task[None]"]:
    replay, page = ReplayInterceptor(Index(recording((exchange,)))), End()
    return replay, page, asyncio.create_task(replay.socket(request(SOCKET), page, None))


async def test_what_the_site_sent_follows_what_the_page_sends() -> None:
    exchange = await recorded_socket(received("hello"), page_message("save 1"), received("saved 1"), received("news"))
    replay, page, serving = await replayed(exchange)
    await page.until(lambda: page.outgoing == [b"hello"])
    page.queue.put_nowait(page_message("save 1"))
    await page.until(lambda: page.outgoing == [b"hello", b"saved 1", b"news"])
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == ["exact"]


async def test_a_message_out_of_order_is_uncertain_and_skips_the_replies_to_others() -> None:
    exchange = await recorded_socket(
        received("hello"), page_message("a"), received("A"), page_message("b"), received("B")
    )
    replay, page, serving = await replayed(exchange)
    await page.until(lambda: page.outgoing == [b"hello"])
    page.queue.put_nowait(page_message("b"))
    await page.until(lambda: page.outgoing == [b"hello", b"B"])
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == ["exact", "uncertain"]


async def test_a_reply_is_uncertain_after_a_write_that_did_not_precede_it_when_it_was_recorded() -> None:
    exchange = await recorded_socket(received("hello"), page_message("show"), received("0"))
    other = walk("v", (request("/set", "POST"), answer(b"set")))
    replay, page = ReplayInterceptor(Index(recording((exchange,), other)), "w"), End()
    serving = asyncio.create_task(replay.socket(request(SOCKET), page, None))
    await page.until(lambda: page.outgoing == [b"hello"])
    await replay.answer(request("/set", "POST"), None)
    replay.take()
    page.queue.put_nowait(page_message("show"))
    await page.until(lambda: page.outgoing == [b"hello", b"0"])
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == ["uncertain"]


@pytest.mark.parametrize(("is_told", "grades"), [(True, ["exact", "uncertain"]), (False, ["exact"])])
async def test_a_write_after_which_the_site_sent_a_message_over_the_socket_is_uncertain_elsewhere(
    is_told: bool, grades: list[str]
) -> None:
    opened = await recorded_socket(received("hello"), *([received("news")] if is_told else []))
    (saved,) = walk("v", (request("/save", "POST"), answer(b"saved")))
    ticks = [2, 6]
    messages = tuple(replace(each, tick=tick) for each, tick in zip(opened.messages, ticks, strict=False))
    message = (replace(opened, walk="v", messages=messages, ended=9), replace(saved, number=1, began=4, ended=5))
    index = Index(recording((await recorded_socket(received("hello")),), message))
    replay, page = ReplayInterceptor(index, "w"), End()
    serving = asyncio.create_task(replay.socket(request(SOCKET), page, None))
    await page.until(lambda: page.outgoing == [b"hello"])
    replay.take()
    await replay.answer(request("/save", "POST"), None)
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == grades


async def test_a_message_whose_reply_waits_for_others_is_uncertain() -> None:
    exchange = await recorded_socket(received("hello"), page_message("a"), page_message("b"), received("AB"))
    replay, page, serving = await replayed(exchange)
    await page.until(lambda: page.outgoing == [b"hello"])
    page.queue.put_nowait(page_message("b"))
    page.queue.put_nowait(page_message("a"))
    await page.until(lambda: page.outgoing == [b"hello", b"AB"])
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == ["exact", "uncertain"]


@pytest.mark.parametrize(
    ("step", "steps", "grade"),
    [
        (0, (0, 1), "exact"),
        (1, (0, 1), "uncertain"),
        # By hand, or in a log-in, everything is one step.
        (0, (0, 0), "uncertain"),
        # An old archive has no steps of messages, so that only a request of a later step shows that it was sent then.
        (None, (0, 1), "exact"),
        (None, (1, 2), "uncertain"),
    ],
)
async def test_what_a_page_says_first_is_a_greeting_only_in_the_step_that_opened_the_socket(
    step: int | None, steps: tuple[int, int], grade: str
) -> None:
    opened = await recorded_socket(replace(page_message("set"), step=step or 0), received("done"))
    assert [each.step for each in opened.messages] == [step or 0, None]
    messages = tuple(replace(each, tick=10 + at) for at, each in enumerate(opened.messages))
    opened = replace(opened, messages=(replace(messages[0], step=step), messages[1]))
    walk_of_request = walk(
        "w", (request("/", step=steps[0]), answer(b"0")), (request("/shown", step=steps[1]), answer(b"1"))
    )
    pages = (
        replace(walk_of_request[0], number=1, began=2, ended=3),
        replace(walk_of_request[1], number=2, began=20, ended=21),
    )
    index = Index(recording((replace(opened, ended=30), *pages)))
    replay = ReplayInterceptor(index, "w")
    await replay.answer(request("/shown"), None)
    assert [entry.grade for entry in replay.take()] == [grade]


@pytest.mark.parametrize(
    ("destination", "method", "step", "last", "grade"),
    [
        ("document", "GET", 0, 1, "exact"),
        ("document", "GET", 1, 1, "uncertain"),
        ("document", "POST", 0, 1, "uncertain"),
        ("empty", "GET", 0, 1, "uncertain"),
        # By hand, or in a log-in, everything is one step.
        ("document", "GET", 0, 0, "uncertain"),
    ],
)
async def test_what_a_page_says_after_the_site_is_a_greeting_only_while_the_page_loads(
    destination: str, method: str, step: int, last: int, grade: str
) -> None:
    opened = await recorded_socket(received("hello"), replace(page_message("subscribe"), step=step))
    messages = tuple(replace(each, tick=10 + at) for at, each in enumerate(opened.messages))
    page = request("/", method, headers=(("Sec-Fetch-Dest", destination),))
    first, later = walk("w", (page, answer(b"page")), (request("/part", step=last), answer(b"part")))
    loads = (replace(first, number=1, began=2, ended=3), replace(later, number=2, began=20, ended=21))
    socket = replace(opened, messages=messages, began=4, ended=30)
    replay = ReplayInterceptor(Index(recording((socket, *loads))), "w")
    await replay.answer(page, None)
    await replay.answer(request("/part"), None)
    assert [entry.grade for entry in replay.take()] == ["exact", grade]


@pytest.mark.parametrize(("step", "grades"), [(0, ["exact", "exact"]), (1, ["exact", "exact", "uncertain"])])
async def test_a_reply_may_come_before_what_the_page_itself_writes_only_while_the_page_loads(
    step: int, grades: list[str]
) -> None:
    opened = await recorded_socket(replace(page_message("show"), step=step), received("shown"))
    messages = tuple(replace(each, tick=10 + at) for at, each in enumerate(opened.messages))
    page = request("/", headers=(("Sec-Fetch-Dest", "document"),))
    seen = request("/seen", "POST", headers=(("Referer", page.url),))
    loads = walk("w", (page, answer(b"page")), (seen, answer()), (request("/later", step=1), answer(b"later")))
    socket = replace(opened, number=3, messages=messages, began=5, ended=30)
    first, own, later = (replace(each, began=at, ended=at + 1) for each, at in zip(loads, (1, 3, 9), strict=True))
    index = Index(recording((first, socket, own, replace(later, began=9 if step else 20, ended=21))))
    replay, end = ReplayInterceptor(index, "w"), End()
    await replay.answer(page, None)
    serving = asyncio.create_task(replay.socket(request(SOCKET), end, None))
    end.queue.put_nowait(replace(page_message("show"), step=step))
    await end.until(lambda: end.outgoing == [b"shown"])
    end.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == grades


async def test_a_message_that_was_never_recorded_is_a_decisive_miss_of_its_own_step() -> None:
    exchange = await recorded_socket(received("hello"), page_message("a"), received("A"))
    replay, page, serving = await replayed(exchange)
    page.queue.put_nowait(replace(page_message("delete everything"), step=2))
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [(entry.grade, entry.miss, entry.step, entry.is_read) for entry in replay.take()] == [
        ("exact", None, 0, False),
        ("miss", "decisive", 2, False),
    ]


async def watched_in_two_plays() -> SiteRecording:
    """A page that says twice over a socket what it shows, each time with a new id that the site repeats.

    Between the two messages, it asks for a list.
    """
    plays = []
    for name, ids in (("w", ("k3j9x1aa", "p0z7q2bb")), ("w again", ("m2n8b4cc", "t5v1c6dd"))):
        pairs = [(page_message(f'{{"show": "oak", "id": "{each}"}}'), received(f'{{"for": "{each}"}}')) for each in ids]
        exchange = await recorded_socket(*(message for pair in pairs for message in pair))
        messages = tuple(replace(each, tick=10 * each.tick) for each in exchange.messages)
        (walk_of_request,) = walk(name, (request("/list"), answer(b"a list")))
        between = replace(walk_of_request, number=1, began=messages[1].tick + 1, ended=messages[1].tick + 2)
        plays.append((replace(exchange, walk=name, messages=messages, ended=1_000), between))
    return recording(*plays)


async def test_what_a_page_makes_up_in_a_message_is_new_each_time_although_the_site_repeats_it() -> None:
    replay, page = ReplayInterceptor(Index(await watched_in_two_plays())), End()
    serving = asyncio.create_task(replay.socket(request(SOCKET), page, None))
    page.queue.put_nowait(page_message('{"show": "oak", "id": "z9y8x7ee"}'))
    await page.until(lambda: page.outgoing == [b'{"for": "z9y8x7ee"}'])
    # The first message of a socket changes nothing, also if a later one like it may have.
    await replay.answer(request("/list"), None)
    page.queue.put_nowait(page_message('{"show": "elm", "id": "z9y8x8ff"}'))
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == ["exact", "exact", "miss"]


async def test_a_socket_goes_on_as_in_another_walk_although_the_page_named_itself_as_in_a_third() -> None:
    plays = []
    for boat, names in (("oak", ("k3j9x1aa", "p0z7q2bb")), ("elm", ("m2n8b4cc", "t5v1c6dd"))):
        for play, name in enumerate(names):
            of = boat + AGAIN * play
            socket = await recorded_socket(page_message(f"watch {boat}"), received(f"see {boat}"))
            opened = replace(socket.request, url=f"{SOCKET}?page={name}")
            (listed,) = walk(of, (request(f"/list?page={name}"), answer(b"a list")))
            plays.append((listed, replace(socket, walk=of, number=1, request=opened, began=3, ended=99)))
    replay, page = ReplayInterceptor(Index(recording(*plays)), "elm"), End()
    await replay.answer(request("/list?page=z9y8x7ee"), None)
    page.queue.put_nowait(page_message("watch oak"))
    serving = asyncio.create_task(replay.socket(request(f"{SOCKET}?page=z9y8x7ee"), page, None))
    await page.until(lambda: page.outgoing == [b"see oak"])
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert not {"uncertain", "miss"}.intersection(entry.grade for entry in replay.take())


async def test_what_a_page_says_about_what_it_has_received_changes_nothing_with_whatever_count() -> None:
    exchange = await recorded_socket(
        received("hello"), page_message('42["ack",1]'), page_message("save"), received("saved")
    )
    replay, page, serving = await replayed(exchange)
    page.queue.put_nowait(page_message('42["ack",5]'))
    page.queue.put_nowait(page_message("save"))
    await page.until(lambda: b"saved" in page.outgoing)
    page.queue.put_nowait(SocketClose(True, 1000))
    await asyncio.wait_for(serving, 10)
    assert [entry.grade for entry in replay.take()] == ["exact"]


async def test_a_socket_that_the_site_closed_is_closed_after_its_last_message() -> None:
    exchange = await recorded_socket(page_message("bye"), received("bye"), SocketClose(False, 4001))
    _, page, serving = await replayed(exchange)
    page.queue.put_nowait(page_message("bye"))
    await page.until(lambda: bool(page.closed))
    assert (page.outgoing, page.closed) == ([b"bye"], [4001])
    await asyncio.wait_for(serving, 10)


async def test_a_socket_that_the_site_closed_after_a_write_is_closed_after_it() -> None:
    opened = await recorded_socket(received("hello"), SocketClose(False, 4001))
    assert opened.ended == opened.messages[0].tick + 1
    (left,) = walk("w", (request("/leave", "POST"), answer(b"bye")))
    left = replace(left, number=1, began=opened.ended, ended=opened.ended + 1)
    replay, page = ReplayInterceptor(Index(recording((replace(opened, ended=left.ended + 1), left)))), End()
    serving = asyncio.create_task(replay.socket(request(SOCKET), page, None))
    await page.until(lambda: page.outgoing == [b"hello"])
    await asyncio.sleep(0.05)
    assert page.closed == []
    await replay.answer(request("/leave", "POST"), None)
    await page.until(lambda: page.closed == [4001])
    await asyncio.wait_for(serving, 10)


async def test_a_socket_that_was_not_recorded_fails() -> None:
    replay = ReplayInterceptor(Index(recording()))
    with pytest.raises(RequestFailed):
        await replay.socket(request(SOCKET), End(), None)
    assert [(entry.kind, entry.miss) for entry in replay.take()] == [("socket", "decisive")]


async def test_a_socket_that_was_refused_is_refused() -> None:
    page = End()
    recorder = RecordingInterceptor("w")
    site = End(answer=WireAnswer(403, "Forbidden", (), b"no"))
    await recorder.socket(request(SOCKET), page, Network({}, site))
    again = End()
    await ReplayInterceptor(Index(recorder.recording())).socket(request(SOCKET), again, None)
    assert page.refusals == again.refusals == [403]

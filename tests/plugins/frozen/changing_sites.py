"""Generated sites that issue the identifiers of their entities anew in each play, and talk over a socket.

`wrong` records such a site in some walks, visits the archive and the site itself in another one, and compares what both
say. Identifiers are compared by the order in which the page learnt them. Whatever the archive says without a flag has
to be what the site says.
"""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from judge.network.interception import SocketClose, SocketMessage, WireRequest
from judge.plugins.frozen.exchanges import (
    RecordedExchange,
    RecordedResponse,
    RecordedSocketMessage,
    SiteRecording,
    Walk,
)
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.replay import ReplayInterceptor
from plugins.frozen.made import START_MS, answer, request
from plugins.frozen.test_replay import End
from plugins.frozen.visits import base_36, hexadecimal, uuid_of

JSON = (("Content-Type", "application/json"),)
SOCKET = "ws://shop.test/live"
IDS: dict[str, Callable[[random.Random], str]] = {
    "UUID": uuid_of,
    "base 36": base_36,
    "hash": hexadecimal,
    "number": lambda dice: str(dice.randrange(10**4, 10**9)),
}
# Enough turns of the event loop for everything that does not wait for the page.
_TURNS = 30


class Op(NamedTuple):
    """What a page does next. `of`: which of the identifiers that it knows, or what it writes."""

    do: str
    of: int = 0


HTTP = ("page", "set", "list", "new", "item", "raise", "drop", "make", "mend", "made")
TALK = ("open", "show", "put", "add")


@dataclass(frozen=True)
class Site:
    """`ids`: the form of identifiers. `stock`: entities at the start."""

    ids: str
    stock: int
    has_socket: bool
    greets: bool
    """The first message of the socket says what the state is."""
    pushes: bool
    """A write outside of the socket is reported on it."""
    is_quiet: bool
    """Writes over the socket are not answered."""
    is_tagged: bool
    """Messages of the page have an identifier that it makes up, and that the site repeats."""


@dataclass
class Server:
    """The site in one play. `dice` draws its identifiers."""

    site: Site
    dice: random.Random
    value: int = 0
    items: dict[str, int] = field(default_factory=dict)
    made: dict[str, list[int]] = field(default_factory=dict)
    """By identifiers of the page's own, which no answer repeats: what it made, and how often it mended that."""

    def __post_init__(self) -> None:
        for _ in range(self.site.stock):
            self._new()

    def _new(self) -> str:
        result = IDS[self.site.ids](self.dice)
        self.items[result] = 0
        return result

    def answer(self, wire_request: WireRequest) -> tuple[RecordedResponse, list[str]]:
        """The answer to a request, and what it makes the site say over the socket."""
        path = wire_request.url.removeprefix("http://shop.test")
        text = self._content_of(path, wire_request)
        pushed = [f'{{"news": {self.value}, "items": {len(self.items)}}}'] if self.site.pushes else []
        status = 200 if text is not None else 404
        return answer(
            json.dumps(text).encode(), status, "application/json"
        ), pushed if wire_request.method != "GET" else []

    def _content_of(self, path: str, wire_request: WireRequest) -> object:
        if path == "/set":
            self.value = int(wire_request.body)
            return {"now": self.value}
        if path == "/items" and wire_request.method == "POST":
            return {"id": self._new()}
        if path == "/items":
            return [{"id": each, "n": n} for each, n in self.items.items()]
        if path.startswith("/made"):
            return self._made(path.removeprefix("/made/"), wire_request)
        key, _, action = path.removeprefix("/items/").partition("/")
        if key not in self.items:
            return {"value": self.value} if path == "/" else None
        if wire_request.method == "DELETE":
            return {"dropped": self.items.pop(key)}
        self.items[key] += action == "raise"
        return {"id": key, "n": self.items[key], "value": self.value}

    def _made(self, key: str, wire_request: WireRequest) -> object:
        if wire_request.method == "PUT":
            self.made[key] = [int(wire_request.body), 0]
        if wire_request.method == "POST" and key in self.made:
            self.made[key][1] += 1
        return list(self.made.values()) if wire_request.method == "GET" else "done"

    def greeting(self) -> list[str]:
        return [f'{{"hello": {self.value}}}'] if self.site.greets else []

    def reply(self, text: str) -> list[str]:
        message = json.loads(text)
        if message["do"] == "put":
            self.value = message["to"]
        if message["do"] == "add":
            self.value += message["to"]
        if self.site.is_quiet and message["do"] != "show":
            return []
        return [json.dumps({"value": self.value, **({"tag": message["tag"]} if "tag" in message else {})})]


@dataclass
class Page:
    """What the page knows: the identifiers that it received, in their order."""

    site: Site
    dice: random.Random
    identifiers: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    def request(self, op: Op) -> WireRequest | None:
        """The request of an operation; `None` if the page does not know such an entity."""
        if op.do in ("page", "list", "made"):
            return request({"page": "/", "list": "/items", "made": "/made"}[op.do])
        if op.do == "set":
            return request("/set", "POST", str(op.of).encode())
        if op.do == "new":
            return request("/items", "POST")
        if op.do == "make":
            self.own.append(IDS[self.site.ids](self.dice))
            return request(f"/made/{self.own[-1]}", "PUT", str(op.of).encode())
        if op.do == "mend":
            return request(f"/made/{self.own[op.of]}", "POST") if op.of < len(self.own) else None
        if op.of >= len(self.identifiers):
            return None
        path = f"/items/{self.identifiers[op.of]}"
        request_body = {"item": (path, "GET"), "raise": (f"{path}/raise", "POST"), "drop": (path, "DELETE")}
        return request(*request_body[op.do])

    def message(self, op: Op) -> str:
        text: dict[str, object] = {"do": op.do, **({"to": op.of} if op.do != "show" else {})}
        if self.site.is_tagged:
            self.tags.append(base_36(self.dice))
            text["tag"] = self.tags[-1]
        return json.dumps(text)

    def with_names(self, text: str) -> str:
        """The text with names in place of the identifiers that the page knows or learns from it, and of its tags."""
        for place, each in enumerate([*self.identifiers, *self.unknown(text)]):
            text = text.replace(each, f"#{place}")
        for place, each in enumerate(self.tags):
            text = text.replace(each, f"tag {place}")
        return text

    def unknown(self, text: str) -> list[str]:
        matches = re.findall(r'"id": "([^"]+)"', text)
        return [each for each in dict.fromkeys(matches) if each not in self.identifiers]

    def learn(self, text: str) -> None:
        self.identifiers += self.unknown(text)


class Case(NamedTuple):
    site: Site
    walks: list[list[Op]]
    operations: list[Op]
    seed: int
    plays: int


def make_case(seed: int) -> Case:
    """The case with this number."""
    dice = random.Random(f"changing {seed}")
    site = Site(dice.choice(list(IDS)), dice.randint(0, 2), *(dice.random() < 0.5 for _ in range(5)))
    walks = [_walk(dice, site) for _ in range(dice.randint(1, 3))]
    seen = [each for one in walks for each in one]
    others = (
        lambda: _walk(dice, site),
        lambda: dice.choices(seen, k=dice.randint(1, 14)),
        lambda: [each for each in dice.choice(walks) if dice.random() < 0.7],
        lambda: list(dice.choice(walks)),
        lambda: _of_another(dice, dice.choice(walks)),
    )
    return Case(site, walks, dice.choice(others)(), seed, dice.choice((1, 2, 2)))


def _walk(dice: random.Random, site: Site) -> list[Op]:
    possible = (*HTTP, *TALK) if site.has_socket else HTTP
    # Of fewer kinds, more belong together.
    chosen = dice.sample(possible, dice.randint(3, len(possible)))
    return [Op(dice.choice(chosen), dice.randint(0, 2)) for _ in range(dice.randint(1, 14))]


def _of_another(dice: random.Random, walk: Sequence[Op]) -> list[Op]:
    """The walk with another thing in one of its operations."""
    places = [at for at, op in enumerate(walk) if op.do in ("item", "raise", "drop", "mend")]
    at = dice.choice(places or range(len(walk)))
    return [*walk[:at], Op(walk[at].do, (walk[at].of + dice.randint(1, 2)) % 3), *walk[at + 1 :]]


# On the site


class OperationResult(NamedTuple):
    """What an operation led to: the answer and the messages. `is_sure`: none of them has a flag."""

    answer: str
    messages: tuple[str, ...]
    is_sure: bool = True
    grades: tuple[str, ...] = ()


class Live:
    """A visit to the site itself, which records it."""

    def __init__(self, site: Site, seed: str, walk: str = "") -> None:
        self.page, self._server = Page(site, random.Random(f"page {seed}")), Server(site, random.Random(seed))
        self._walk, self._tick, self._number = walk, 0, 0
        self.exchanges: list[RecordedExchange] = []
        self._step = 0
        self._opened: tuple[int, int, int] | None = None
        self._messages: list[RecordedSocketMessage] = []

    def does(self, op: Op) -> OperationResult | None:
        """`None` if the page cannot do it."""
        self._step += 1
        if op.do not in TALK:
            return self._asks(op)
        if op.do == "open":
            if self._opened is not None:
                return None
            self._opened = self._next(), self._number, self._step
            self._number += 1
            return OperationResult("open", self._hear(self._server.greeting()))
        if self._opened is None:
            return None
        text = self.page.message(op)
        self._messages.append(RecordedSocketMessage(True, True, text.encode(), 0, self._next(), self._step))
        return OperationResult("", self._hear(self._server.reply(text)))

    def _asks(self, op: Op) -> OperationResult | None:
        walk_of_request = self.page.request(op)
        if walk_of_request is None:
            return None
        began, number = self._next(), self._number
        self._number += 1
        recorded_answer, pushed = self._server.answer(walk_of_request)
        walk_of_request = replace(walk_of_request, step=self._step)
        self.exchanges.append(
            RecordedExchange(self._walk, number, walk_of_request, START_MS, began, self._next(), recorded_answer)
        )
        text = recorded_answer.body.decode()
        printed = f"{recorded_answer.status} {self.page.with_names(text)}"
        return OperationResult(printed, self._hear(pushed) if self._opened else ())

    def _hear(self, texts: Sequence[str]) -> tuple[str, ...]:
        self._messages += [RecordedSocketMessage(False, True, text.encode(), 0, self._next()) for text in texts]
        return tuple(self.page.with_names(text) for text in texts)

    def learns(self) -> None:
        """Keep the identifiers in the last answer."""
        last = self.exchanges[-1].answer
        assert last is not None
        self.page.learn(last.body.decode())

    def recorded(self) -> list[RecordedExchange]:
        """Everything so far."""
        result = list(self.exchanges)
        if self._opened:
            began, number, step = self._opened
            upgraded = RecordedResponse(101, "Switching Protocols", (), b"")
            opened = RecordedExchange(
                self._walk, number, request(SOCKET, step=step), START_MS, began, self._next(), upgraded
            )
            result.append(replace(opened, messages=tuple(self._messages), closed=SocketClose(True, 1001)))
        return sorted(result, key=lambda each: each.began)

    def _next(self) -> int:
        self._tick += 1
        return self._tick


def recorded(case: Case) -> SiteRecording:
    walks, exchanges = [], []
    for number, ops in enumerate(case.walks):
        for play in range(case.plays):
            name = f"w{number}{' again' * play}"
            live = Live(case.site, f"{case.seed} {name}", name)
            for op in ops:
                if live.does(op) is not None and op.do not in TALK:
                    live.learns()
            if result := live.recorded():
                walks.append(Walk(name, START_MS + play * 60_000, repeats=f"w{number}" if play else None))
                exchanges += result
    return SiteRecording(tuple(walks), tuple(exchanges))


# On the archive


class Frozen:
    """A visit to the archive."""

    def __init__(self, case: Case, index: Index) -> None:
        self.page = Page(case.site, random.Random(f"frozen {case.seed}"))
        self._replay, self._end = ReplayInterceptor(index, "w0"), End()
        self._serving: asyncio.Task[None] | None = None
        self._messages_read, self._is_lost = 0, False
        self._last = ""

    async def does(self, op: Op) -> OperationResult:
        """Do what the site's page did."""
        text = ""
        if op.do == "open":
            self._serving = asyncio.create_task(self._replay.socket(request(SOCKET), self._end, None))
            text = "open"
        elif op.do in TALK:
            self._end.queue.put_nowait(SocketMessage(True, True, self.page.message(op).encode()))
        else:
            walk_of_request = self.page.request(op)
            assert walk_of_request is not None
            recorded_answer = await self._replay.answer(walk_of_request, None)
            assert isinstance(recorded_answer.body, bytes)
            self._last = recorded_answer.body.decode()
            text = f"{recorded_answer.status} {self.page.with_names(self._last)}"
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        grades = tuple(entry.grade for entry in self._replay.take())
        is_sure = not {"uncertain", "miss"}.intersection(grades)
        if op.do in TALK:
            # What follows on a socket after a flag has it too.
            self._is_lost |= not is_sure
            is_sure = not self._is_lost
        events = [self.page.with_names(each.decode()) for each in self._end.outgoing[self._messages_read :]]
        self._messages_read = len(self._end.outgoing)
        return OperationResult(text, tuple(events), is_sure, grades)

    def learns(self) -> None:
        """Keep the identifiers in the last answer."""
        self.page.learn(self._last)

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    async def ends(self) -> None:
        if self._serving:
            self._end.queue.put_nowait(SocketClose(True, 1001))
            await asyncio.gather(self._serving, return_exceptions=True)


async def wrong(case: Case, grades: Counter[str] | None = None) -> str | None:
    """The first thing that the archive says without a flag, and that is wrong."""
    recording = recorded(case)
    if not recording.exchanges:
        return None
    frozen, live = Frozen(case, Index(recording)), Live(case.site, f"{case.seed} live")
    try:
        for place, op in enumerate(case.operations):
            here = live.does(op)
            if here is None:
                continue
            text = await frozen.does(op)
            if grades is not None:
                grades.update(text.grades)
            if op.do == "open" and "miss" in text.grades:
                # The page has no socket, and does not go on as on the site.
                break
            # Pushes belong to the socket.
            items = [each.messages if not frozen.is_lost else () for each in (here, text)]
            if text.is_sure and (here.answer, items[0]) != (text.answer, items[1]):
                return f"{place}, {op}: {text}, live {here}"
            if text.is_sure and op.do not in TALK:
                live.learns()
                frozen.learns()
    finally:
        await frozen.ends()
    return None

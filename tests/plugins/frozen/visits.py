"""Generated visits to a small shop: is another value ever answered as if it were the recorded one?

A visit asks for one value in one place of a request. `Case.value` is the one that was recorded, `Case.other` the one of
an attempt on the archive. The same function makes the recording, the attempt, and what the live site would answer.
"""

import base64
import hashlib
import json
import random
import re
import string
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple

from judge.network.interception import HeaderPairs, WireRequest
from judge.plugins.frozen.exchanges import SiteRecording, Walk
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from judge.plugins.frozen.secrets import Secrets
from plugins.frozen.made import START_MS, answer, request, walk

Ask = Callable[[WireRequest, bytes], bytes]
"""Sends a request. The live site's answer is given; the result is what the page gets."""
Dice = random.Random
ValueMaker = Callable[[Dice], str]

JSON: HeaderPairs = (("Content-Type", "application/json"),)
FORM: HeaderPairs = (("Content-Type", "application/x-www-form-urlencoded"),)
_BETWEEN_PLAYS_MS = 95_000
_DAY = datetime.fromtimestamp(START_MS / 1000, UTC)
_LETTERS = string.ascii_lowercase + string.digits


def base_36(dice: Dice, length: int = 11) -> str:
    return "".join(dice.choices(_LETTERS, k=length))


def uuid_of(dice: Dice) -> str:
    return str(uuid.UUID(int=dice.getrandbits(128), version=4))


def hexadecimal(dice: Dice, length: int = 32) -> str:
    return f"{dice.getrandbits(4 * length):0{length}x}"


def words_of(dice: Dice, count: int) -> list[str]:
    return dice.choices("oak moon tide harbour lamp desk rug chair fjord shelf linen amber north".split(), k=count)


def day_of(dice: Dice) -> str:
    return f"{_DAY + timedelta(days=dice.randint(-40, 60)):%Y-%m-%d}"


ENTITIES: dict[str, ValueMaker] = {
    "UUID": uuid_of,
    "number": lambda dice: str(dice.randint(1, 10 ** dice.randint(1, 7))),
    "slug": lambda dice: "-".join(words_of(dice, 3)),
    "hash": lambda dice: hexadecimal(dice, dice.choice((8, 32, 40, 64))),
    "date": day_of,
    "base 36": lambda dice: base_36(dice, dice.randint(4, 13)),
}
ENTERED: dict[str, ValueMaker] = {
    "search": lambda dice: " ".join(words_of(dice, dice.randint(1, 3))),
    "quantity": lambda dice: str(dice.randint(1, 30)),
    "date": lambda dice: dice.choice(
        (
            day_of(dice),
            f"{day_of(dice)}T{dice.randint(0, 23):02}:30:00.000Z",
            # A moment that a date picker made of the present time of day.
            str(START_MS + dice.randint(0, 40) * 86_400_000 + 12_345),
            str(START_MS + dice.randint(1, 80_000) * 997),
        )
    ),
    "slider": lambda dice: dice.choice((str(dice.randint(0, 100)), repr(dice.random()))),
    "order": lambda dice: ",".join(dice.sample("abcdef", 5)),
    "coordinates": lambda dice: f"{dice.uniform(-90, 90):.7f},{dice.uniform(-180, 180):.7f}",
}
COMPUTED: dict[str, Callable[[str], str]] = {
    "as it is": lambda value: value,
    "digest": lambda value: hashlib.sha256(value.encode()).hexdigest(),
    "base 64": lambda value: base64.urlsafe_b64encode(json.dumps({"value": value}).encode()).decode(),
    "UUID": lambda value: str(uuid.uuid5(uuid.NAMESPACE_URL, value)),
    "base 36": lambda value: base_36(Dice(value)),
}
INVENTED: dict[str, Callable[[Dice, int], str]] = {
    "time": lambda dice, now_ms: str(now_ms),
    "seconds": lambda dice, now_ms: str(now_ms // 1000),
    "ISO time": lambda dice, now_ms: f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
    "base 36": lambda dice, now_ms: base_36(dice),
    "UUID": lambda dice, now_ms: uuid_of(dice),
    "nonce": lambda dice, now_ms: hexadecimal(dice),
    "fraction": lambda dice, now_ms: repr(dice.random()),
    "base 64": lambda dice, now_ms: base64.b64encode(dice.randbytes(18)).decode().replace("+", "-").replace("/", "_"),
    "number": lambda dice, now_ms: str(dice.randint(10**6, 10**9)),
    "number and time": lambda dice, now_ms: f"{base_36(dice, 5)}.{now_ms}",
}


def graphql(value: str, others: list[str], kind: str = "query") -> WireRequest:
    """A batch of operations, of which the last before mixing asks for the value."""
    operations = [
        {"operationName": "Thing", "query": f"{kind} Thing($id: ID!) {{ thing(id: $id) }}", "variables": {"id": value}},
        *({"operationName": each, "query": f"query {each} {{ {each.lower()} }}", "variables": {}} for each in others),
    ]
    return request("/graphql", "POST", json.dumps(operations).encode(), JSON)


def json_body(path: str, **fields: object) -> WireRequest:
    return request(path, "POST", json.dumps(fields).encode(), JSON)


def _quoted(value: str) -> str:
    return value.replace(" ", "+").replace(",", "%2C").replace(":", "%3A").replace("=", "%3D")


READS: dict[str, Callable[[str], WireRequest]] = {
    "path": lambda value: request(f"/things/{_quoted(value)}"),
    "query": lambda value: request(f"/thing?id={_quoted(value)}&page=1"),
    "JSON": lambda value: json_body("/search", filter={"id": value}, page=1),
    "GraphQL": lambda value: graphql(value, ["Viewer"]),
    "cookie": lambda value: request("/chosen", headers=(("Cookie", f"thing={_quoted(value)}"),)),
    "header": lambda value: request("/chosen", headers=(("X-Thing", value),)),
}
WRITES: dict[str, Callable[[str], WireRequest]] = {
    "path": lambda value: request(f"/basket/{_quoted(value)}", "PUT"),
    "query": lambda value: request(f"/basket/add?id={_quoted(value)}", "POST"),
    "JSON": lambda value: json_body("/basket", items=[{"id": value, "gift": False}]),
    "GraphQL": lambda value: graphql(value, ["Viewer"], "mutation"),
    "cookie": lambda value: request("/basket/add", "POST", headers=(("Cookie", f"thing={_quoted(value)}"),)),
    "header": lambda value: request("/basket/add", "POST", headers=(("X-Thing", value),)),
}
LIST_FORMATS: dict[str, Callable[[list[str]], bytes]] = {
    "JSON": lambda values: json.dumps([{"id": value, "name": "a thing"} for value in values]).encode(),
    "links": lambda values: "".join(f'<a href="/things/{_quoted(value)}">a thing</a>' for value in values).encode(),
    "script": lambda values: f"const things = {json.dumps(values)};".encode(),
    # Typed, or from elsewhere.
    "nowhere": lambda values: b"<h1>Welcome</h1>",
}


class Noise:
    """What a page adds to its requests on one visit, and what else it draws by chance."""

    def __init__(self, kinds: tuple[str, ...], seed: str, start_ms: int) -> None:
        self.kinds, self.dice, self._now_ms = kinds, Dice(seed), start_ms

    def invent(self, kind: str) -> str:
        """The next invented value of a kind; the page's clock goes on."""
        self._now_ms += self.dice.randint(3, 90)
        return INVENTED[kind](self.dice, self._now_ms)

    def on(self, wire_request: WireRequest) -> WireRequest:
        """The request as the page sends it."""
        for place, _, value in (kind.partition(" ") for kind in self.kinds if kind != MIXED):
            wire_request = with_value(wire_request, place, self.invent(value), name="_" if value == "time" else "rid")
        return self.mixed(wire_request)

    def mixed(self, wire_request: WireRequest) -> WireRequest:
        """The request with the operations of a batch in a random order."""
        if not wire_request.body.startswith(b"[") or MIXED not in self.kinds:
            return wire_request
        operations = json.loads(wire_request.body)
        self.dice.shuffle(operations)
        return replace(wire_request, body=json.dumps(operations).encode())


def with_value(wire_request: WireRequest, place: str, value: str, name: str = "rid") -> WireRequest:
    """The request with one more value in this place."""
    if place == "query":
        mark = "&" if "?" in wire_request.url else "?"
        return replace(wire_request, url=f"{wire_request.url}{mark}{name}={_quoted(value)}")
    if place == "header":
        return replace(wire_request, headers=(*wire_request.headers, ("X-Request-Id", value)))
    if place == "body" and wire_request.body.startswith(b"{"):
        return replace(wire_request, body=json.dumps({**json.loads(wire_request.body), name: value}).encode())
    return wire_request


MIXED = "mixed"
NOISE = ("query time", "query base 36", "query fraction", "header UUID", "header nonce", "body UUID", "body base 36")


@dataclass(frozen=True)
class Case:
    """One value in one place. `matters`: whether the site's answers depend on it. `others`: values of other tasks."""

    number: int
    kind: str
    place: str
    value: str
    other: str
    is_write: bool
    matters: bool
    list_kind: str
    noise: tuple[str, ...]
    plays: Literal[1, 2]
    others: tuple[str, ...] = ()

    def visit(self, value: str, noise: Noise, ask: Ask) -> None:
        """The requests of a page for this value."""
        ask(noise.on(request("/")), LIST_FORMATS[self.list_kind](sorted({self.value, self.other, *self.others})))
        ask(noise.on(request("/log?id=" + noise.invent("UUID"))), b"logged")
        result = (WRITES if self.is_write else READS)[self.place](value)
        text = value if self.matters else "nothing"
        reply = "done" if self.is_write else f"shows {text}"
        ask(noise.on(result), reply.encode())
        ask(noise.on(request("/basket")), f"holds {text if self.is_write else 'nothing'}".encode())

    def recording(self) -> SiteRecording:
        """Each task is one value; it is played as often as `plays` says."""
        plays = [
            (f"task {task}", number, partial(self.visit, value))
            for task, value in enumerate((self.value, *self.others))
            for number in range(self.plays)
        ]
        return recorded(list(plays), self.noise, f"{self.kind} {self.number}")

    @property
    def is_same_by_chance(self) -> bool:
        """See `has_same_orders`."""
        return self.place == "GraphQL" and MIXED in self.noise and has_same_orders(self.recording())

    def __str__(self) -> str:
        method = "write" if self.is_write else "read"
        return (
            f"{self.kind}, {self.place}, {method}, listed in {self.list_kind}, {self.plays} plays, "
            f"noise {', '.join(self.noise) or 'none'}: {self.value!r} recorded, {self.other!r} asked"
        )


Visit = Callable[[Noise, Ask], None]


def recorded(plays: list[tuple[str, int, Visit]], noise: tuple[str, ...], seed: str) -> SiteRecording:
    """The recording of these visits: the task of each, the number of its play, and what the page does.

    The only place that knows how two plays of one walk are recorded.
    """
    walks, exchanges, secrets = [], [], Secrets()
    for place, (task_id, number, visit) in enumerate(plays):
        name, start_ms = f"{task_id}, play {number + 1}" if number else task_id, START_MS + place * _BETWEEN_PLAYS_MS
        pairs: list[tuple[WireRequest, bytes]] = []

        def ask(wire_request: WireRequest, live: bytes, pairs: list[tuple[WireRequest, bytes]] = pairs) -> bytes:
            pairs.append((wire_request, live))
            return live

        visit(Noise(noise, f"{seed} {name}", start_ms), ask)
        walk_made = walk(name, *((walk_of_request, answer(live, mime=_type(live))) for walk_of_request, live in pairs))
        exchanges += [secrets.exchange(replace(each, at_ms=start_ms + 40 * each.number)) for each in walk_made]
        walks.append(Walk(name, start_ms, task_id, repeats=task_id if number else None))
    return SiteRecording(tuple(walks), tuple(exchanges))


def has_same_orders(recording: SiteRecording) -> bool:
    """Whether a page that mixes its batches had, by chance, the same orders in both plays of each task.

    Then the recording does not show that an order means nothing, and an answer to another one has to be uncertain.
    """
    orders: dict[str, list[str]] = {}
    for each in recording.exchanges:
        if each.request.body.startswith(b"["):
            names = [operation["operationName"] for operation in json.loads(each.request.body)]
            orders.setdefault(each.walk, []).append(" ".join(names))
    repeats = [walk for walk in recording.walks if walk.repeats is not None and walk.name in orders]
    return bool(repeats) and all(orders[walk.name] == orders[walk.repeats or ""] for walk in repeats)


def _type(live: bytes) -> str:
    return "application/json" if live[:1] in (b"[", b"{") else "text/html"


def _without_tokens(body: bytes) -> bytes:
    """Session tokens, which the site issues anew, say nothing that a page shows."""
    return re.sub(rb'(?<=_token":")[^"]*', b"", body)


Outcome = Literal["certain and wrong", "miss", "uncertain", "certain and right"]


class Answered(NamedTuple):
    """The worst outcome of a visit, and the request with it."""

    outcome: Outcome
    request: str


_WORST_FIRST: tuple[Outcome, ...] = ("certain and wrong", "miss", "uncertain", "certain and right")


def answered(index: Index, visit: Visit, noise: tuple[str, ...], seed: str, task_id: str = "task 0") -> Answered:
    """What an attempt gets from the archive, compared with what the live site would answer."""
    matcher, answers = Matcher(index, walk=task_id), []

    def ask(wire_request: WireRequest, live: bytes) -> bytes:
        match = matcher.match(wire_request)
        body = match.answer.body if match.answer else b"\x00"
        outcome: Outcome = (
            "certain and right" if _without_tokens(body) == _without_tokens(live) else "certain and wrong"
        )
        if match.grade in ("miss", "uncertain"):
            outcome = match.grade
        if match.miss in (None, "decisive"):
            headers = (
                f"{wire_request.method} {wire_request.url} {wire_request.body.decode()} {dict(wire_request.headers)}"
            )
            answers.append(Answered(outcome, f"{headers}: {match.grade} {body!r}, live {live!r}"))
        return live if match.answer is None else body

    visit(Noise(noise, seed, index.recording.clock_ms), ask)
    return min(answers, key=lambda each: _WORST_FIRST.index(each.outcome))


def of_other(case: Case) -> Answered:
    """What an attempt gets that asks for the other value."""
    return _of(case, case.other)


def of_same(case: Case) -> Answered:
    """What an attempt gets that does what was recorded."""
    return _of(case, case.value)


def _of(case: Case, value: str) -> Answered:
    index = Index(case.recording())
    return answered(index, partial(case.visit, value), case.noise, f"{case.number}")


def entity_case(number: int) -> Case:
    """Another entity than recorded: each kind in each place."""
    return _case(number, ENTITIES, lambda dice: ("JSON", "links", "script", "nowhere")[dice.randrange(4)], "as it is")


def entered_case(number: int) -> Case:
    """Another value than was typed, chosen, dragged or computed at recording: each kind in each place."""
    how = list(COMPUTED)[number // 36 % len(COMPUTED)]
    return _case(number, ENTERED, lambda dice: "nowhere", how)


def _case(number: int, kinds: dict[str, ValueMaker], list_kind: Callable[[Dice], str], how: str) -> Case:
    dice = Dice(f"{sorted(kinds)} {number}")
    kind, place = list(kinds)[number % len(kinds)], list(READS)[number // len(kinds) % len(READS)]
    values: list[str] = []
    while len(values) < 4:
        result = COMPUTED[how](kinds[kind](dice))
        values += [] if result in values else [result]
    return Case(
        number,
        kind if how == "as it is" else f"{kind} as {how}",
        place,
        values[0],
        values[1],
        is_write=dice.random() < 0.6,
        matters=dice.random() < 0.9,
        list_kind=list_kind(dice),
        noise=tuple(dice.sample((*NOISE, MIXED), dice.randint(0, 3))),
        plays=1 if dice.random() < 0.3 else 2,
        others=tuple(values[2 : 2 + dice.choice((0, 0, 1, 2))]),
    )


# What the page invents


@dataclass(frozen=True)
class Invented:
    """A value that the page invents on each visit, in one place, and how the site treats it."""

    number: int
    kind: str
    place: str
    use: str
    plays: Literal[1, 2]

    def visit(self, noise: Noise, ask: Ask) -> None:
        """The requests of a page."""
        ask(request("/"), b"<h1>Welcome</h1>")
        USES[self.use](self, noise, ask)

    def recording(self) -> SiteRecording:
        plays = [("task 0", number, self.visit) for number in range(self.plays)]
        return recorded(list(plays), (MIXED,), f"{self.number}")

    def with_invented(self, wire_request: WireRequest, value: str) -> WireRequest:
        """The request with the invented value in its place."""
        if self.place == "path":
            parts = wire_request.url.partition("?")
            return replace(wire_request, url=f"{parts[0]}/{_quoted(value)}{parts[1]}{parts[2]}")
        if self.place == "cookie":
            return replace(wire_request, headers=(*wire_request.headers, ("Cookie", f"visitor={_quoted(value)}")))
        return with_value(wire_request, self.place, value)

    @property
    def is_same_by_chance(self) -> bool:
        """See `has_same_orders`."""
        return self.use == "in a batch" and has_same_orders(self.recording())

    def __str__(self) -> str:
        return f"{self.kind}, {self.place}, {self.use}, {self.plays} plays"


def _plain(one: Invented, noise: Noise, ask: Ask) -> None:
    for path in ("/list", "/offers", "/list"):
        ask(one.with_invented(request(path), noise.invent(one.kind)), f"shows {path}".encode())
    ask(one.with_invented(json_body("/basket", n=2), noise.invent(one.kind)), b'{"held": 2}')
    ask(one.with_invented(request("/basket"), noise.invent(one.kind)), b'{"holds": 2}')


def _echoed(one: Invented, noise: Noise, ask: Ask) -> None:
    for n in (1, 2):
        value = noise.invent(one.kind)
        ask(
            one.with_invented(json_body("/basket", n=n), value),
            json.dumps({"n": n, "id": 16 + n, "for": value}).encode(),
        )
    ask(request("/basket"), b'{"holds": 2}')


def _mapped(one: Invented, noise: Noise, ask: Ask) -> None:
    """Two new notes with names that the page invents; the site repeats them, and one is deleted by its name."""
    names = [noise.invent(one.kind) for _ in range(2)]
    for place, name in enumerate(names):
        batch_request = one.with_invented(json_body("/notes", text=f"note {place}"), name)
        ask(batch_request, json.dumps({"name": name, "id": 40 + place}).encode())
    ask(request("/notes"), json.dumps([{"name": name, "text": f"note {n}"} for n, name in enumerate(names)]).encode())
    ask(request(f"/notes/{_quoted(names[0])}", "DELETE"), b'{"left": 1}')
    ask(request("/notes"), json.dumps([{"name": names[1], "text": "note 1"}]).encode())


def _batch(one: Invented, noise: Noise, ask: Ask) -> None:
    # Of two operations, the order is often the same in both plays by chance.
    others = ["Viewer", "News"][: 1 + one.number % 2]
    for value in ("a-7", "b-9", "c-1", "d-4"):
        batch = [{**each, "key": noise.invent(one.kind)} for each in json.loads(graphql(value, others).body)]
        batch_request = request("/graphql", "POST", json.dumps(batch).encode(), JSON)
        ask(
            noise.mixed(one.with_invented(batch_request, noise.invent(one.kind))),
            f'{{"thing": "{value}", "viewer": 1}}'.encode(),
        )


def _session(one: Invented, noise: Noise, ask: Ask) -> None:
    """A log-in whose tokens are new each time: the site issues them, and the page sends what it received."""
    responses = json.loads(ask(json_body("/login", user="ada", password="harbour-light"), _issued(noise)))
    ask(one.with_invented(_bearing("/me", responses), noise.invent(one.kind)), b'{"name": "Ada"}')
    responses = json.loads(ask(json_body("/refresh", refresh_token=responses["refresh_token"]), _issued(noise)))
    ask(one.with_invented(_bearing("/orders", responses), noise.invent(one.kind)), b'{"orders": []}')


def _issued(noise: Noise) -> bytes:
    tokens = {name: base_36(noise.dice, 40) for name in ("access_token", "refresh_token")}
    return json.dumps(tokens, separators=(",", ":")).encode()


def _bearing(path: str, tokens: dict[str, str]) -> WireRequest:
    return request(path, headers=(("Authorization", f"Bearer {tokens['access_token']}"),))


USES: dict[str, Callable[[Invented, Noise, Ask], None]] = {
    "ignored": _plain,
    "echoed": _echoed,
    "mapped": _mapped,
    "in a batch": _batch,
    "in a session": _session,
}
INVENTED_PLACES = ("query", "header", "body", "path", "cookie")


def invented_case(number: int, plays: Literal[1, 2] = 2) -> Invented:
    """Each kind in each place and use, in turn."""
    kinds, uses = list(INVENTED), list(USES)
    place = INVENTED_PLACES[number // len(kinds) % len(INVENTED_PLACES)]
    return Invented(number, kinds[number % len(kinds)], place, uses[number // 50 % len(uses)], plays)


def of_invented(case: Invented) -> Answered:
    """What another attempt at the recorded walk gets, whose page invents other values."""
    return answered(Index(case.recording()), case.visit, (MIXED,), f"again {case.number}")

"""A boat hire as a single-page application: `python site.py --host 127.0.0.1 --port 9310`.

It has what makes such applications hard to record: batched operations, tokens, random parts of every request, streams,
and identifiers of many kinds. All data are invented and kept in memory; a POST to /reset restores them.
"""

import argparse
import asyncio
import hashlib
import itertools
import json
import secrets
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

STATIC = Path(__file__).parent / "static"
PEOPLE = {"ada@quay.example": ("anchor-and-rope", "Ada Lovelace"), "ben@quay.example": ("tar-and-oakum", "Ben Stone")}
# Price of a day, and the highest wind force of the safety sheet.
BOATS = {
    "Oak Canoe": (35, 4),
    "Cedar Canoe": (42, 4),
    "Tandem Kayak": (48, 5),
    "Touring Kayak": (40, 6),
    "Family Kayak": (55, 3),
    "Rowing Boat": (30, 3),
    "Racing Skiff": (70, 5),
    "Pedal Boat": (25, 2),
}
SLUGS = {name.lower().replace(" ", "-"): name for name in BOATS}
SHEETS = {hashlib.sha256(slug.encode()).hexdigest(): name for slug, name in SLUGS.items()}
VOUCHERS = {"k7f2q9": 10, "k7f2qd": 25, "zz41x8": 50}
MESSAGES = {41: "From June we open at seven.", 42: "The lock is closed on 9 June.", 43: "We have your deposit."}
SUBJECTS = {41: "New opening hours", 42: "Lock closed", 43: "Your deposit"}
STOPS = ["Boathouse", "Old Bridge", "Lighthouse", "Seal Island"]
ORDERED = {"Pedal Boat": "2031-06-03", "Oak Canoe": "2031-06-12", "Racing Skiff": "2031-06-21"}
CLOSED = ("2031-06-09", "2031-06-10")
MUTATIONS = ("add_line", "set_line", "set_day", "add_entry", "tick_entry")
QUERIES = ("boats", "boat", "basket", "entries")
Json = dict[str, Any]


class Refused(Exception):
    """An answer with an error: its status and text."""


class State:
    """Everything that visitors can change. Baskets and lists belong to a page's own random name, `client`."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.lines: defaultdict[str, dict[int, Json]] = defaultdict(dict)
        self.list: defaultdict[str, dict[int, Json]] = defaultdict(dict)
        self.days: dict[str, str] = {}
        self.keys: dict[str, Json] = {}
        self.read: set[int] = set()
        self.stops = STOPS
        self.numbers = itertools.count(31)
        # What pages call their new entries until they know the numbers.
        self.temporary: dict[str, int] = {}
        self.streams: defaultdict[str, list[asyncio.Queue[Json]]] = defaultdict(list)
        self.placed: dict[str, Json] = {}
        for name, day in ORDERED.items():
            self.place([{"name": name, "quantity": 1}], day, BOATS[name][0])

    def place(self, lines: list[Json], day: str, total: int) -> Json:
        made = {"id": str(uuid.uuid4()), "number": 1001 + len(self.placed), "status": "confirmed"}
        self.placed[made["id"]] = made | {"lines": lines, "day": day, "total": total}
        return self.placed[made["id"]]

    # Operations of the batch endpoint

    def boats(self, client: str, q: str, most: int) -> list[Json]:
        found = [{"slug": slug, "name": name, "price": BOATS[name][0]} for slug, name in SLUGS.items()]
        return [boat for boat in found if q.lower() in boat["name"].lower() and boat["price"] <= most]

    def boat(self, client: str, slug: str) -> Json:
        name, digest = SLUGS[slug], hashlib.sha256(slug.encode()).hexdigest()
        return {"slug": slug, "name": name, "price": BOATS[name][0], "sheet": digest}

    def basket(self, client: str) -> Json:
        lines = list(self.lines[client].values())
        total = sum(line["quantity"] * BOATS[line["name"]][0] for line in lines)
        return {"lines": lines, "day": self.days.get(client), "total": total}

    def entries(self, client: str) -> list[Json]:
        return list(self.list[client].values())

    def add_line(self, client: str, slug: str) -> int:
        number = next(self.numbers)
        self.lines[client][number] = {"id": number, "name": SLUGS[slug], "quantity": 1}
        return number

    def set_line(self, client: str, id: int, quantity: int) -> None:
        self.lines[client][id]["quantity"] = max(1, min(quantity, 9))

    def set_day(self, client: str, day: str) -> None:
        self.days[client] = day

    def add_entry(self, client: str, text: str, temp: str) -> Json:
        number = self.temporary[temp] = next(self.numbers)
        self.list[client][number] = {"id": number, "text": text[:80], "done": False}
        return {"temp": temp, "id": number}

    def tick_entry(self, client: str, id: int | str, done: bool) -> None:
        number = self.temporary[id] if isinstance(id, str) else id
        self.list[client][number]["done"] = done

    # Everything else. Each gets the request's parts: those of the address, the body, and the headers.

    def batch(self, sent: list[Json], headers: Mapping[str, str]) -> list[Json]:
        """Operations in any order: those that change something are done first."""
        known = [each for each in sent if each["operationName"] in (*MUTATIONS, *QUERIES)]
        known.sort(key=lambda each: each["operationName"] not in MUTATIONS)
        client = headers["x-client"]
        named = ((each["operationName"], each["variables"]) for each in known)
        return [{"name": name, "data": getattr(self, name)(client, **values)} for name, values in named]

    def session(self, sent: Json, headers: Mapping[str, str]) -> Json:
        email = sent.get("email")
        if email not in PEOPLE or sent.get("password") != PEOPLE[email][0]:
            raise Refused(401, "Unknown address or wrong password.")
        return self._issued(email)

    def refreshed(self, sent: Json, headers: Mapping[str, str]) -> Json:
        if (email := self.tokens.pop(f"refresh {sent.get('refresh_token')}", None)) is None:
            raise Refused(401, "Log in first.")
        return self._issued(email)

    def _issued(self, email: str) -> Json:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens |= {f"Bearer {access}": email, f"refresh {refresh}": email}
        return {"access_token": access, "refresh_token": refresh, "name": PEOPLE[email][1]}

    def _known(self, headers: Mapping[str, str]) -> None:
        if headers.get("authorization") not in self.tokens:
            raise Refused(401, "Log in first.")

    def order(self, sent: Json, headers: Mapping[str, str]) -> Json:
        """Place an order. The same key is the same order."""
        self._known(headers)
        key, client = headers["idempotency-key"], headers["x-client"]
        if key not in self.keys:
            basket, share = self.basket(client), VOUCHERS.get(sent["voucher"] or "", 0)
            if not basket["lines"] or not sent["day"]:
                raise Refused(422, "Choose a boat and a day.")
            total = (basket["total"] + sent["insurance"]) * (100 - share) // 100
            made = self.keys[key] = self.place(basket["lines"], sent["day"], total)
            self.lines.pop(client)
            for queue in self.streams[client]:
                queue.put_nowait({"type": "notice", "text": f"Order {made['number']} is confirmed."})
        return self.keys[key]

    def orders(self, sent: None, headers: Mapping[str, str]) -> list[Json]:
        self._known(headers)
        return list(self.placed.values())

    def one_order(self, sent: None, headers: Mapping[str, str], id: str) -> Json:
        self._known(headers)
        return self.placed[id]

    def cancel(self, sent: None, headers: Mapping[str, str], id: str) -> Json:
        self._known(headers)
        self.placed[id]["status"] = "cancelled"
        return self.placed[id]

    def messages(self, sent: None, headers: Mapping[str, str]) -> list[Json]:
        self._known(headers)
        return [self.message(None, headers, id) for id in MESSAGES]

    def message(self, sent: None, headers: Mapping[str, str], id: int) -> Json:
        self._known(headers)
        return {"id": id, "subject": SUBJECTS[id], "text": MESSAGES[id], "read": id in self.read}

    def mark(self, sent: Json, headers: Mapping[str, str], id: int) -> Json:
        self.read |= {id} & set(MESSAGES)
        return self.message(None, headers, id)

    def plan(self, sent: None, headers: Mapping[str, str]) -> list[str]:
        return self.stops

    def set_plan(self, sent: Json, headers: Mapping[str, str]) -> list[str]:
        self.stops = sent["stops"] if sorted(sent["stops"]) == sorted(STOPS) else self.stops
        return self.stops

    def day(self, sent: None, headers: Mapping[str, str], day: str) -> Json:
        return {"open": day not in CLOSED, "free": 2 + int(day[-2:]) % 5}

    def voucher(self, sent: None, headers: Mapping[str, str], code: str) -> Json:
        return {"share": VOUCHERS[code]}

    def sheet(self, sent: None, headers: Mapping[str, str], digest: str) -> Json:
        return {"name": SHEETS[digest], "wind": BOATS[SHEETS[digest]][1]}


ROUTES: dict[str, dict[str, Callable[..., Any]]] = {
    "/graphql": {"POST": State.batch},
    "/api/session": {"POST": State.session},
    "/api/session/refresh": {"POST": State.refreshed},
    "/api/orders": {"GET": State.orders, "POST": State.order},
    "/api/orders/{id}": {"GET": State.one_order, "DELETE": State.cancel},
    "/api/messages": {"GET": State.messages},
    "/api/messages/{id:int}": {"GET": State.message, "PATCH": State.mark},
    "/api/plan": {"GET": State.plan, "PUT": State.set_plan},
    "/api/days/{day}": {"GET": State.day},
    "/api/vouchers/{code}": {"GET": State.voucher},
    "/api/sheets/{digest}": {"GET": State.sheet},
}


async def answer(request: Request) -> Response:
    """The answer of the method that serves this route."""
    serve = ROUTES[request.scope["route"].path][request.method]
    try:
        sent = await request.json() if request.method in ("POST", "PUT", "PATCH") else None
        return JSONResponse(serve(request.app.state.held, sent, request.headers, **request.path_params))
    except Refused as refused:
        status, text = refused.args
        return JSONResponse({"error": text}, status)
    except (KeyError, TypeError, ValueError):
        return JSONResponse({"error": "Not found."}, 404)


async def reset(request: Request) -> Response:
    """Back to the initial state."""
    request.app.state.held = State()
    return Response(status_code=204)


async def events(request: Request) -> Response:
    """Presence at once, and notices of the page's own orders."""
    queue: asyncio.Queue[Json] = asyncio.Queue()
    streams = request.app.state.held.streams[request.query_params["client"]]
    streams.append(queue)
    queue.put_nowait({"type": "presence", "people": 3})

    async def stream() -> AsyncIterator[str]:
        while True:
            yield f"data: {json.dumps(await queue.get())}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def live(socket: WebSocket) -> None:
    """Who else looks at a boat: invented, but always the same. The page's own message id is repeated."""
    await socket.accept()
    with suppress(WebSocketDisconnect):
        while True:
            asked = await socket.receive_json()
            await socket.send_json({"people": 1 + len(asked["slug"]) % 4, "slug": asked["slug"], "for": asked["id"]})


async def page(request: Request) -> Response:
    """The same page for every other address."""
    return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-store"})


def create_app() -> Starlette:
    """The application in its initial state."""
    routes = [
        Route("/reset", reset, methods=["POST"]),
        Route("/api/events", events),
        WebSocketRoute("/api/live", live),
        *(Route(path, answer, methods=list(methods)) for path, methods in ROUTES.items()),
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/{path:path}", page),
    ]
    app = Starlette(routes=routes)
    app.state.held = State()
    return app


def main() -> None:
    """Serve the application until it is stopped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9310)
    options = parser.parse_args()
    at = {"host": options.host, "port": options.port}
    uvicorn.run(create_app(), **at, log_level="warning", access_log=False, timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()

"""Hard cases: sockets and event streams."""

import asyncio
import json
from collections.abc import AsyncIterator

from helpers.network.served_sites import Answer, Channel, Request
from plugins.frozen.hard.case import Case, page, press

_OPEN = """const address = `wss://${location.host}${location.pathname}socket`;
"""


def _text(message: str | bytes) -> str:
    return message if isinstance(message, str) else message.decode()


async def _echo(channel: Channel, _: Request) -> None:
    while (message := await channel.receive()) is not None:
        await channel.send(f"heard {_text(message)}")


async def _reverse(channel: Channel, _: Request) -> None:
    while (message := await channel.receive()) is not None:
        await channel.send(bytes(message if isinstance(message, bytes) else message.encode())[::-1])


async def _greet(channel: Channel, _: Request) -> None:
    for word in ("welcome", "to the", "harbour"):
        await channel.send(word)
        await asyncio.sleep(0.03)
    while (message := await channel.receive()) is not None:
        await channel.send(f"{_text(message)} is expected at noon")


async def _break_once(channel: Channel, request: Request) -> None:
    request.session["sockets"] = count = request.session.get("sockets", 0) + 1
    await channel.send(f"connection {count}")
    if count % 2:
        await channel.close(1012)
        return
    while (message := await channel.receive()) is not None:
        await channel.send(f"{_text(message)} delivered")


async def _numbered(channel: Channel, _: Request) -> None:
    """Answers carry the number of the request, and come in another order."""
    late: str | None = None
    while (message := await channel.receive()) is not None:
        document = json.loads(message)
        answer = json.dumps({"id": document["id"], "result": sum(document["values"])})
        if document.get("later"):
            late = answer
            continue
        await channel.send(answer)
        if late is not None:
            await channel.send(late)
            late = None


async def _events(request: Request) -> Answer:
    last = int(request.headers.get("last-event-id", "0"))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"retry: 60\n\n: hello\n\n"
        for number in range(last + 1, 4 if last == 0 else 6):
            await asyncio.sleep(0.02)
            yield f"event: level\nid: {number}\ndata: {number} m\ndata: rising\n\n".encode()
        if last:
            yield b"event: end\ndata: all\n\n"

    return Answer(kind="text/event-stream", chunks=chunks())


async def _lines(_: Request) -> Answer:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(4):
            # Cut within a line, and within a character.
            whole = json.dumps({"row": number, "name": "Müller"}, ensure_ascii=False).encode() + b"\n"
            place = whole.index(b"\xc3") + 1
            yield whole[:place]
            await asyncio.sleep(0.02)
            yield whole[place:]

    return Answer(kind="application/x-ndjson", chunks=chunks())


async def _endless(_: Request) -> Answer:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"data: the first one\n\n"
        # Until the page goes away.
        await asyncio.sleep(3600)

    return Answer(kind="text/event-stream", chunks=chunks())


CASES = (
    Case(
        "socket-echo",
        "a socket that answers each message",
        "open",
        {
            "/socket-echo/": page(
                "socket-echo",
                _OPEN
                + """const socket = new WebSocket(address);
socket.onopen = () => show("open");
socket.onmessage = event => show(event.data);
button("Say one", () => socket.send("one"));
button("Say two", () => socket.send("two"));""",
            )
        },
        ((press("Say one", "heard one"), press("Say two", "heard two")),),
        (press("Say two", "heard two"), press("Say one", "heard one")),
        {"/socket-echo/socket": _echo},
        is_free=True,
    ),
    Case(
        "socket-binary",
        "a socket with binary messages, as buffers and as blobs",
        "open",
        {
            "/socket-binary/": page(
                "socket-binary",
                _OPEN
                + """const socket = new WebSocket(address);
socket.binaryType = "arraybuffer";
socket.onopen = () => show("open");
socket.onmessage = event => show("bytes " + [...new Uint8Array(event.data)].slice(0, 6).join(" "));
button("Buffer", () => socket.send(new Uint8Array([1, 2, 250])));
button("Blob", () => socket.send(new Blob([new Uint8Array(70000).fill(9, 69999)])));""",
            )
        },
        ((press("Buffer", "bytes 250 2 1"), press("Blob", "bytes 9 0 0 0 0 0")),),
        (press("Blob", "bytes 9 0 0 0 0 0"), press("Buffer", "bytes 250 2 1")),
        {"/socket-binary/socket": _reverse},
        is_free=True,
    ),
    Case(
        "socket-greeting",
        "a socket whose server speaks first",
        "harbour",
        {
            "/socket-greeting/": page(
                "socket-greeting",
                _OPEN
                + """const socket = new WebSocket(address, ["tides", "winds"]);
socket.onopen = () => show("protocol " + socket.protocol);
socket.onmessage = event => show(event.data);
button("Ask for Aurora", () => socket.send("Aurora"));
button("Ask for Borealis", () => socket.send("Borealis"));""",
            )
        },
        ((press("Ask for Aurora", "Aurora is expected"), press("Ask for Borealis", "Borealis is expected")),),
        (press("Ask for Borealis", "Borealis is expected"), press("Ask for Aurora", "Aurora is expected")),
        {"/socket-greeting/socket": _greet},
        is_free=True,
    ),
    Case(
        "socket-reconnect",
        "a socket that its server closes, and the page opens again",
        "connection 2",
        {
            "/socket-reconnect/": page(
                "socket-reconnect",
                _OPEN
                + """let socket;
const connect = () => {
  socket = new WebSocket(address);
  socket.onmessage = event => show(event.data);
  socket.onclose = event => { show("closed " + event.code); if (event.code === 1012) setTimeout(connect, 50); };
};
connect();
button("Send", () => socket.send("parcel"));
button("Leave", () => socket.close(4001, "enough"));""",
            )
        },
        ((press("Send", "parcel delivered"), press("Leave", "closed 4001")),),
        (press("Leave", "closed 4001"),),
        {"/socket-reconnect/socket": _break_once},
    ),
    Case(
        "socket-numbers",
        "a socket whose numbered answers come in another order",
        "open",
        {
            "/socket-numbers/": page(
                "socket-numbers",
                _OPEN
                + """const socket = new WebSocket(address);
const asked = new Map();
socket.onopen = () => show("open");
socket.onmessage = event => { const got = JSON.parse(event.data); asked.get(got.id)(got.result); };
const ask = (values, later) => new Promise(done => {
  asked.set(asked.size + 1, done);
  socket.send(JSON.stringify({ id: asked.size, values, later }));
});
button("Sum", async () => show("sum " + await ask([2, 3], false)));
button("Both", async () => {
  const sums = await Promise.all([ask([10, 20], true), ask([5, 6], false)]);
  show("both " + sums.join(" and "));
});
""",
            )
        },
        ((press("Sum", "sum 5"), press("Both", "both 30 and 11")),),
        (press("Sum", "sum 5"), press("Both", "both 30 and 11")),
        {"/socket-numbers/socket": _numbered},
    ),
    Case(
        "event-stream",
        "an event stream that ends, and goes on after its last event",
        "run 1: all 5 events",
        {
            "/event-stream/": page(
                "event-stream",
                """let count = 0, runs = 0;
const listen = () => {
  runs += 1;
  const source = new EventSource("events");
  source.addEventListener("level", event => { count += 1; show(event.lastEventId + ": " + event.data); });
  source.addEventListener("end", event => {
    source.close();
    show(`run ${runs}: ${event.data} ${count} events`);
    count = 0;
  });
};
listen();
button("Again", listen);""",
            ),
            "/event-stream/events": _events,
        },
        ((press("Again", "run 2: all 5 events"),),),
        (press("Again", "run 2: all 5 events"), press("Again", "run 3: all 5 events")),
    ),
    Case(
        "endless-stream",
        "an event stream that stays open",
        "heard the first one",
        {
            "/endless-stream/": page(
                "endless-stream",
                """const source = new EventSource("events");
source.onmessage = event => show("heard " + event.data);
button("State", () => show("state " + source.readyState));
button("Close", () => { source.close(); show("closed"); });""",
            ),
            "/endless-stream/events": _endless,
        },
        ((press("State", "state 1"), press("Close", "closed")),),
        (press("Close", "closed"), press("State", "state 2")),
    ),
    Case(
        "stream-reading",
        "an answer that the page reads as it arrives",
        "Stream reading",
        {
            "/stream-reading/": page(
                "stream-reading",
                """button("Read", async () => {
  const reader = (await fetch("lines")).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", rows = [];
  for (let part; !(part = await reader.read()).done;) {
    const lines = (rest + part.value).split("\\n");
    rest = lines.pop();
    rows.push(...lines.map(line => JSON.parse(line)));
  }
  show(`rows ${rows.length}, last ${rows.at(-1).row} ${rows.at(-1).name}`);
});
button("Break off", async () => {
  const control = new AbortController();
  const answer = await fetch("lines", { signal: control.signal });
  await answer.body.getReader().read();
  control.abort();
  show("broken off");
});""",
            ),
            "/stream-reading/lines": _lines,
        },
        ((press("Read", "rows 4, last 3 Müller"), press("Break off", "broken off")),),
        (press("Break off", "broken off"), press("Read", "rows 4, last 3 Müller")),
        is_free=True,
    ),
)

"""The pages that `late_content.py` measures. Run by it: `python site.py PORT BUNDLES_FOLDER`.

Reached as 127.0.0.1 and as localhost, which are two sites to a browser. Every answer may be held back by `ms`.
"""

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

HERE = Path(__file__).resolve().parent
OTHER = (
    "<title>Other</title><h1>Other page</h1><script>onload = () => window.opener?.postMessage('opened', '*')</script>"
)
NEVER_S = 120


class Site:
    """What the server remembers of each case: when its polling began, and who reads its messages."""

    def __init__(self, port: int, bundles: Path) -> None:
        self.port = port
        self.polled: dict[str, float] = {}
        self.readers: defaultdict[str, list[asyncio.Queue[int]]] = defaultdict(list)
        self.routes = [
            Route("/page", self.page),
            Route("/library", self.library),
            Route("/other", lambda _: HTMLResponse(OTHER)),
            Route("/late", self.late),
            Route("/piece", self.piece),
            Route("/poll", self.poll),
            Route("/publish", self.publish),
            Route("/messages", self.messages),
            Route("/endless", self.endless),
            Route("/unanswered", self.unanswered),
            WebSocketRoute("/socket", self.socket),
            WebSocketRoute("/socket.io/", self.socket_io),
            Mount("/static", StaticFiles(directory=HERE)),
            Mount("/bundles", StaticFiles(directory=bundles)),
        ]

    async def page(self, request: Request) -> Response:
        query = request.query_params
        await asyncio.sleep(float(query.get("held", 0)) / 1000)
        config = {
            "token": query["token"],
            "kind": query["kind"],
            "start": query["start"],
            "delay": float(query["delay"]),
            "visible": float(query.get("visible", 2000)),
            "peer": f"http://localhost:{self.port}",
        }
        return HTMLResponse((HERE / "page.html").read_text().replace("/*config*/ null", json.dumps(config)))

    async def library(self, request: Request) -> Response:
        query = request.query_params
        config = {"token": query["token"], "start": query["start"], "delay": float(query["delay"])}
        text = (HERE / "libraries" / "page.html").read_text()
        return HTMLResponse(text.replace("/*config*/ null", json.dumps(config)).replace("NAME", query["name"]))

    async def late(self, request: Request) -> Response:
        await asyncio.sleep(float(request.query_params["ms"]) / 1000)
        return PlainTextResponse("late")

    async def piece(self, request: Request) -> Response:
        """Markup for pages that put the server's own HTML in."""
        await asyncio.sleep(float(request.query_params["ms"]) / 1000)
        token = request.query_params["token"]
        return HTMLResponse(f"<p>first FINAL {token}</p><p>second FINAL {token}</p>")

    async def poll(self, request: Request) -> Response:
        began = self.polled.setdefault(request.query_params["token"], time.monotonic())
        is_done = time.monotonic() - began >= float(request.query_params["ms"]) / 1000
        return PlainTextResponse("done" if is_done else "working")

    async def publish(self, request: Request) -> Response:
        """Answered at once; the content comes later, over the stream of messages."""
        readers = self.readers[request.query_params["token"]]

        def send() -> None:
            for queue in readers:
                queue.put_nowait(1)

        asyncio.get_running_loop().call_later(float(request.query_params["ms"]) / 1000, send)
        return Response(status_code=204)

    async def messages(self, request: Request) -> Response:
        queue: asyncio.Queue[int] = asyncio.Queue()
        self.readers[request.query_params["token"]].append(queue)

        async def stream() -> AsyncIterator[str]:
            yield ": open\n\n"
            while True:
                await queue.get()
                yield "data: done\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def endless(self, _: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            while True:
                yield "more\n"
                await asyncio.sleep(0.2)

        return StreamingResponse(stream(), media_type="text/plain")

    async def unanswered(self, _: Request) -> Response:
        await asyncio.sleep(NEVER_S)
        return Response(status_code=204)

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await asyncio.sleep(float(await socket.receive_text()) / 1000)
                await socket.send_text("done")
        except WebSocketDisconnect:
            return

    async def socket_io(self, socket: WebSocket) -> None:
        """As much of a socket.io server as one event and its answer need."""
        await socket.accept()
        opened = {"sid": "a", "upgrades": [], "pingInterval": 25000, "pingTimeout": 20000, "maxPayload": 100000}
        await socket.send_text(f"0{json.dumps(opened)}")
        try:
            while True:
                packet = await socket.receive_text()
                if packet.startswith("40"):
                    await socket.send_text('40{"sid":"b"}')
                elif packet.startswith("42"):
                    await asyncio.sleep(json.loads(packet[2:])[1] / 1000)
                    await socket.send_text('42["done"]')
        except WebSocketDisconnect:
            return


def main() -> None:
    """Serve until killed."""
    port, bundles = int(sys.argv[1]), Path(sys.argv[2])
    app = Starlette(routes=Site(port, bundles).routes)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()

"""What every foreign agent here does, whatever it is built with: it answers with what it was sent, or plays.

The programs of this folder run in environments without any of our code, as a stranger's would.
"""

import argparse
import asyncio
import hashlib
import re
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

# What an agent says of itself that is right only where it runs: nobody else can dial it.
ADVERTISED = "http://agent-container:8080/"


def options() -> argparse.Namespace:
    """How replies are packed, one agent each; `--gate FILE`: play, and wait for that file before every answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", nargs="+")
    parser.add_argument("--gate", type=Path)
    return parser.parse_args()


def listening() -> socket.socket:
    """A socket on a free port, whose number is printed for whoever started this."""
    # The protocol is named as a server's own start-up does; otherwise every answer waits 40 ms for Nagle's algorithm.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    sock.listen(128)
    print(sock.getsockname()[1], flush=True)
    return sock


def serve(app_of: Callable[[str], Any], shapes: list[str]) -> None:
    """Serve an agent for each shape, on a port of its own, until a signal."""

    async def serve_all() -> None:
        servers = [uvicorn.Server(uvicorn.Config(app_of(shape), log_level="warning")) for shape in shapes]
        await asyncio.gather(*(server.serve(sockets=[listening()]) for server in servers))

    asyncio.run(serve_all())


def echo(turn: int, text: str, images: list[bytes]) -> str:
    """Shows which turn of a conversation this is, from 1, and that text and pictures arrived as they were."""
    return " ".join([str(turn), text, *(hashlib.sha256(image).hexdigest() for image in images)])


async def reply(gate: Path | None, turns: Counter[str], context_id: str, text: str, images: list[bytes]) -> str:
    """What an agent says to one message. `turns` counts those of each of its conversations."""
    if gate is None:
        turns[context_id] += 1
        return echo(turns[context_id], text, images)
    while not gate.exists():
        await asyncio.sleep(0.05)
    link = re.search(r'link "Goal" \[ref=(\w+)\]', text)
    if link:
        return f'<json>{{"thought": "", "tool": "browser_click", "params": {{"ref": "{link[1]}"}}}}</json>'
    return '<json>{"thought": "", "tool": "finish", "params": {"answer": "The goal is reached."}}</json>'

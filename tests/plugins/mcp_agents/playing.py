"""Plays an attempt with a program over MCP, as a judge does over A2A."""

import contextlib
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil

from helpers.a2a.agents import JPEG, served
from judge.plugins.mcp_agents.mcp import create
from participants.base import ParticipantOptions, build_participant
from shared.a2a.client import ParticipantClient
from shared.models import ObservationMessage, Page, ToolSpec
from shared.protocol import parse_reply, render_observation

AGENT = Path(__file__).with_name("program.py")
SDK_PROGRAM = shlex.join([sys.executable, str(Path(__file__).with_name("sdk_program.py"))])
TOOLS = tuple(
    ToolSpec(name=name, description="Does it.", parameters={"type": "object", "properties": {}})
    for name in ("browser_click", "finish")
)
# So that a process of these tests, and not of others at the same time, can be found by its command line.
MARK = f"wabe_test_agent_{os.getpid()}"


def message(title: str, instruction: str | None = None, feedback: str | None = None) -> str:
    page = Page(url="http://shop.test/", title=title, snapshot="- button [ref=e1]")
    return render_observation(
        ObservationMessage(
            page=page,
            tools=TOOLS,
            instruction=instruction,
            website=None if instruction is None else "http://shop.test/",
            feedback=feedback,
        )
    )


def program(*statements: str) -> str:
    return shlex.join([sys.executable, str(AGENT), *statements, f"# {MARK}"])


class Judge:
    """The judge's side of one attempt."""

    def __init__(self, client: ParticipantClient, context: str = "attempt") -> None:
        self.client = client
        self.context = context
        self.step = 0

    async def show(self, feedback: str | None = None) -> tuple[str, object]:
        """The tool that the program calls on the next page, and its parameters."""
        text = message(f"page {self.step}", None if self.step else "Buy a lamp.", feedback)
        self.step += 1
        parsed = parse_reply(await self.client.send(text, image=JPEG, context_id=self.context))
        assert parsed.action is not None
        return parsed.action.tool, parsed.action.params


@contextlib.asynccontextmanager
async def playing(command: str, logs: Path, **options: object) -> AsyncIterator[Judge]:
    participant = create(ParticipantOptions(command=command, logs=logs, **options))
    app = build_participant(participant, name="mcp", card_url="http://participant.invalid/")
    async with served(app) as url, ParticipantClient(url) as client:
        judge = Judge(client)
        yield judge
        await client.end(judge.context)
        await participant.aclose()
        assert not running(), "a process is left"


def running(mark: str = MARK) -> bool:
    """Whether a process has the mark in its command line."""
    return any(mark in " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))

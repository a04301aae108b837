"""The example built with Google's Agent Development Kit, against a scripted Gemini: it plays for the judge's client."""

import asyncio
import subprocess
import sys

import pytest

from helpers.a2a.agents import JPEG
from helpers.interop.environments import environment
from helpers.llm.servers import gemini_answer, serving
from helpers.paths import ROOT
from helpers.ports import free_port
from shared.a2a.client import ParticipantClient, fetch_card
from shared.errors import ParticipantError
from shared.models import ObservationMessage, Page, ToolSpec
from shared.protocol import parse_reply, render_observation

CLICK = '<json>{"thought": "in", "tool": "browser_click", "params": {"target": "e1"}}</json>'
FINISH = '<json>{"thought": "done", "tool": "finish", "params": {"answer": "42"}}</json>'
FIRST = ObservationMessage(
    page=Page(url="https://a.test/", title="A", snapshot='- link "In" [ref=e1]'),
    tools=(ToolSpec(name="browser_click", description="Click", parameters={"type": "object", "properties": {}}),),
    instruction="Find the way in",
    website="https://a.test/",
)
NEXT = FIRST.model_copy(update={"instruction": None, "website": None})


async def until_up(url: str) -> None:
    for _ in range(600):
        try:
            await fetch_card(url, 5)
        except ParticipantError:
            await asyncio.sleep(0.1)
        else:
            return


@pytest.mark.nightly
async def test_w22_the_example_plays_an_attempt_and_remembers_it(environments: None) -> None:
    python = environment("adk")
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    async with serving(gemini_answer(CLICK), gemini_answer(FINISH)) as server:
        variables = {"GOOGLE_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": server.url, "PATH": str(python.parent)}
        command = [str(python), str(ROOT / "examples" / "purple-adk" / "agent.py"), "--port", str(port)]
        agent = subprocess.Popen(command, env=variables, stdout=sys.stderr)
        try:
            await until_up(url)
            async with ParticipantClient(url) as client:
                replies = [
                    parse_reply(await client.send(render_observation(each), image=JPEG, context_id="c")).action
                    for each in (FIRST, NEXT)
                ]
        finally:
            agent.terminate()
            agent.wait(30)
        assert [reply.tool if reply else None for reply in replies] == ["browser_click", "finish"]
        contents = server.received[1].body["contents"]
        assert "Find the way in" in contents[0]["parts"][0]["text"]
        # Only the newest screenshot.
        images = [sum("inlineData" in part for part in each["parts"]) for each in contents]
        assert images == [0, 0, 1]

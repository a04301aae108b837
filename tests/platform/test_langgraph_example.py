"""The example built with LangGraph, with a scripted model: it plays for the judge's client."""

import runpy
from typing import Any

import pytest

from helpers.participants import serving_agent
from helpers.paths import ROOT
from shared.a2a.client import ParticipantClient
from shared.models import ObservationMessage, Page, ToolSpec
from shared.protocol import parse_reply, render_observation

CLICK = '<json>{"thought": "in", "tool": "browser_click", "params": {"target": "e1"}}</json>'
FINISH = '<json>{"thought": "done", "tool": "finish", "params": {"answer": "42"}}</json>'
TOOLS = (ToolSpec(name="browser_click", description="Click", parameters={"type": "object", "properties": {}}),)
FIRST = ObservationMessage(
    page=Page(url="https://a.test/", title="A", snapshot='- link "In" [ref=e1]'),
    tools=TOOLS,
    instruction="Find the way in",
    website="https://a.test/",
)
NEXT = FIRST.model_copy(update={"instruction": None, "website": None})


def scripted(*texts: str) -> Any:
    """A model with given replies, which keeps its requests."""
    # Not at import: every process imports the tests, and one runs this.
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatResult
    from pydantic import Field

    class Scripted(GenericFakeChatModel):
        asked: list[list[Any]] = Field(default_factory=list)

        def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
            self.asked.append(messages[-1].content_blocks)
            return super()._generate(messages, *args, **options)

    return Scripted(messages=iter(AIMessage(text) for text in texts))


@pytest.mark.slow
async def test_the_example_plays_an_attempt_and_remembers_it() -> None:
    build_app = runpy.run_path(str(ROOT / "examples" / "purple-langgraph" / "agent.py"))["build_app"]
    model = scripted("I click e1.", CLICK, FINISH)
    async with serving_agent(lambda url: build_app(model, url)) as url, ParticipantClient(url) as client:
        replies = [
            parse_reply(
                await client.send(render_observation(observation), image=b"\xff\xd8\xff", context_id="c")
            ).action
            for observation in (FIRST, NEXT)
        ]
    assert [reply.tool if reply else None for reply in replies] == ["browser_click", "finish"]
    # Asked again after the reply without a tool call.
    texts = [blocks[0]["text"] for blocks in model.asked]
    assert ["Task: Find the way in" in text for text in texts] == [True] * 3
    assert CLICK in texts[2]
    assert [block["type"] for block in model.asked[2]] == ["text", "image"]

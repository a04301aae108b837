"""`anthropic`, `gemini` and `openai` over the wire: a judge's client on one side, a provider's server on the other."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from helpers.llm.servers import (
    Answer,
    ModelCall,
    anthropic_answer,
    anthropic_error,
    gemini_answer,
    gemini_error,
    openai_answer,
    openai_error,
    serving,
)
from helpers.participants import serving_participant
from participants.base import Decide, ParticipantOptions
from participants.command import load
from shared.a2a.client import ParticipantClient
from shared.errors import ConfigError, ParticipantError
from shared.models import Action, ObservationMessage, Page, ToolSpec
from shared.protocol import parse_reply, render_observation
from shared.settings import Settings

pytestmark = pytest.mark.slow

TOOLS = (
    ToolSpec(
        name="browser_click",
        description="Click",
        parameters={
            "type": "object",
            "properties": {"target": {"type": "string"}},
            "required": ["target"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(name="finish", description="End", parameters={"type": "object", "properties": {}}),
)
CLICK = '<json>{"thought": "in", "tool": "browser_click", "params": {"target": "e1"}}</json>'
FINISH = '<json>{"thought": "done", "tool": "finish", "params": {"answer": "42"}}</json>'
PICTURE = b"\xff\xd8\xff\xe0"


@dataclass(frozen=True)
class Provider:
    """How to configure one provider, and the form of its requests and answers."""

    create: Callable[[ParticipantOptions], Decide]
    settings: Callable[[str], Settings]
    answer: Callable[[str], Answer]
    busy: Answer
    text_of: Callable[[dict[str, Any]], str]
    images_of: Callable[[dict[str, Any]], list[bytes]]
    refused_key: Answer
    refused_image: Answer


def gemini_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = body["contents"][0]["parts"]
    return parts


def openai_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = body["messages"][1]["content"]
    return parts


def anthropic_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = body["messages"][0]["content"]
    return parts


PROVIDERS = {
    "anthropic": Provider(
        create=load("anthropic"),
        settings=lambda url: Settings(environ={"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}),
        answer=anthropic_answer,
        busy=anthropic_error(529, "overloaded_error", "Overloaded", retry_after="0.05"),
        text_of=lambda body: "\n".join(part.get("text", "") for part in anthropic_parts(body)),
        images_of=lambda body: [
            base64.b64decode(part["source"]["data"]) for part in anthropic_parts(body) if part["type"] == "image"
        ],
        refused_key=anthropic_error(401, "authentication_error", "invalid x-api-key"),
        refused_image=anthropic_error(400, "invalid_request_error", "image cannot be read"),
    ),
    "gemini": Provider(
        create=load("gemini"),
        settings=lambda url: Settings(environ={"GOOGLE_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url}),
        answer=gemini_answer,
        busy=gemini_error(429, "RESOURCE_EXHAUSTED", "too many", retry_after="0.05"),
        text_of=lambda body: "\n".join(part.get("text", "") for part in gemini_parts(body)),
        images_of=lambda body: [
            base64.urlsafe_b64decode(part["inlineData"]["data"]) for part in gemini_parts(body) if "inlineData" in part
        ],
        refused_key=gemini_error(400, "INVALID_ARGUMENT", "API key not valid"),
        refused_image=gemini_error(400, "INVALID_ARGUMENT", "no image input"),
    ),
    "openai": Provider(
        create=load("openai"),
        settings=lambda url: Settings(environ={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}),
        answer=openai_answer,
        busy=openai_error(429, "too many", retry_after="0.05"),
        text_of=lambda body: "\n".join(part.get("text", "") for part in openai_parts(body)),
        images_of=lambda body: [
            base64.b64decode(part["image_url"]["url"].partition(",")[2])
            for part in openai_parts(body)
            if "image_url" in part
        ],
        refused_key=openai_error(401, "Incorrect API key provided"),
        # vLLM's words, with a model that only reads.
        refused_image=openai_error(400, "At most 0 image(s) may be provided in one prompt."),
    ),
}
every = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)


def message(instruction: str | None) -> str:
    page = Page(url="https://a.test/", title="A", snapshot='- link "In" [ref=e1]')
    return render_observation(
        ObservationMessage(page=page, tools=TOOLS, instruction=instruction, website="https://a.test/")
    )


async def play(provider: Provider, url: str, turns: list[tuple[str, str | None]]) -> list[Action | None]:
    """Send `(context, instruction)` pairs in order; returns the actions in the replies."""
    decide = provider.create(ParticipantOptions(model="m-1", settings=provider.settings(url)))
    async with serving_participant(decide) as agent, ParticipantClient(agent) as client:
        return [
            parse_reply(await client.send(message(instruction), image=PICTURE, context_id=context)).action
            for context, instruction in turns
        ]


@every
async def test_an_attempt_has_screenshots_and_memory(provider: Provider) -> None:
    async with serving(provider.answer(CLICK), provider.answer(FINISH)) as server:
        actions = await play(provider, server.url, [("c", "Find the way in"), ("c", None)])
        requests = [received.body for received in server.received]
    assert [action.tool if action else None for action in actions] == ["browser_click", "finish"]
    assert ["Task: Find the way in" in provider.text_of(body) for body in requests] == [True, True]
    assert "browser_click" in provider.text_of(requests[1]).partition("Tools:")[0]
    assert [provider.images_of(body) for body in requests] == [[PICTURE], [PICTURE]]


@every
async def test_the_chosen_model_is_used(provider: Provider) -> None:
    async with serving(provider.answer(FINISH)) as server:
        await play(provider, server.url, [("c", "Go")])
        (received,) = server.received
    assert "m-1" in received.path + str(received.body.get("model"))


@every
async def test_a_rate_limit_is_waited_out(provider: Provider) -> None:
    async with serving(provider.busy, provider.answer(CLICK)) as server:
        (action,) = await play(provider, server.url, [("c", "Go")])
        assert len(server.received) == 2
    assert action is not None
    assert action.tool == "browser_click"


@every
async def test_an_unreadable_reply_is_requested_again_before_anything_is_sent(provider: Provider) -> None:
    async with serving(provider.answer("I click e1."), provider.answer(CLICK)) as server:
        (action,) = await play(provider, server.url, [("c", "Go")])
    assert action is not None
    assert action.tool == "browser_click"


@every
async def test_parallel_attempts_keep_their_own_tasks(provider: Provider) -> None:
    def plan(received: ModelCall, _: int) -> Answer:
        return provider.answer(CLICK if "Task: One" in provider.text_of(received.body) else FINISH)

    async with serving(plan=plan) as server:
        actions = await play(provider, server.url, [("a", "One"), ("b", "Two"), ("a", None), ("b", None)])
    tools = [action.tool if action else None for action in actions]
    assert tools == ["browser_click", "finish", "browser_click", "finish"]


@every
async def test_a_refused_key_fails_at_once_instead_of_waiting_on_the_page(provider: Provider) -> None:
    async with serving(provider.refused_key) as server:
        decide = provider.create(ParticipantOptions(model="m-1", settings=provider.settings(server.url)))
        async with serving_participant(decide) as agent, ParticipantClient(agent) as client:
            with pytest.raises(ParticipantError, match="refused the key"):
                await client.send(message("Go"), context_id="c")


@every
async def test_a_model_that_takes_no_images_is_asked_again_without(provider: Provider) -> None:
    async with serving(provider.refused_image, provider.answer(CLICK)) as server:
        (action,) = await play(provider, server.url, [("c", "Go")])
        requests = [provider.images_of(received.body) for received in server.received]
    assert action is not None
    assert action.tool == "browser_click"
    assert requests == [[PICTURE], []]


async def test_a_compatible_endpoint_needs_no_key_and_may_name_its_models_as_it_likes() -> None:
    provider = PROVIDERS["openai"]
    name = "hf.co/Qwen/Qwen3-VL-8B-Instruct:Q4_K_M"
    async with serving(provider.answer(FINISH)) as server:
        options = ParticipantOptions(model=name, settings=Settings(environ={"OPENAI_BASE_URL": f"{server.url}/v1"}))
        decide = provider.create(options)
        async with serving_participant(decide) as agent, ParticipantClient(agent) as client:
            assert parse_reply(await client.send(message("Go"), context_id="c")).action is not None
        (received,) = server.received
    assert (received.path, received.body["model"]) == ("/v1/chat/completions", name)


@pytest.mark.parametrize(
    ("name", "model"), [("anthropic", "openai:gpt-5"), ("gemini", "anthropic:claude-opus-5-5"), ("openai", "gemini:x")]
)
def test_a_model_of_another_provider_is_refused(name: str, model: str) -> None:
    with pytest.raises(ConfigError, match=f"is not a {name} model"):
        PROVIDERS[name].create(ParticipantOptions(model=model))

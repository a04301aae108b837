"""The guide for participants: its messages are those on the wire, and its example really plays."""

import base64
import json
import re
import runpy
import shlex
import subprocess
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright._impl._driver import compute_driver_executable
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from helpers.live_page import serving
from helpers.participants import serving_participant
from judge.browser.tools import offered_tools
from judge.config import RunConfig
from judge.runner.agents import AgentCommand, read_agent
from judge.scenario.toml import load_scenario
from shared.a2a.client import ParticipantClient
from shared.models import ObservationMessage, Page, ToolSpec
from shared.participants import list_participants
from shared.protocol import parse_observation, parse_reply, render_observation

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDE = (ROOT / "PURPLE_AGENT_GUIDE.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "purple-node"
IDS = ("id", "messageId", "contextId")
CLICK = ToolSpec(
    name="browser_click",
    description="Click an element",
    parameters={
        "type": "object",
        "properties": {"target": {"type": "string", "description": "Element's ref, given in the snapshot as [ref=…]"}},
        "additionalProperties": False,
        "required": ["target"],
    },
)
FINISH = next(tool for tool in offered_tools(()) if tool.name == "finish")
SNAPSHOT = '- link "Standings table" [ref=e2]\n- link "Help" [ref=e3]'
FIRST = ObservationMessage(
    page=Page(url="https://shop.test/", title="Shop", snapshot=SNAPSHOT, screenshot=b"\xff\xd8\xff"),
    tools=(CLICK, FINISH),
    instruction="Show the standings",
    website="https://shop.test/",
)
NEXT = FIRST.model_copy(update={"instruction": None, "website": None})


def blocks(info: str) -> list[str]:
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def message(name: str) -> Any:
    (text,) = blocks(f"json {name}")
    return json.loads(text)


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "*" if key in IDS else without_ids(item) for key, item in value.items()}
    return [without_ids(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def example() -> Iterator[str]:
    """The example's address; it runs on the Node that comes with Playwright."""
    node, _ = compute_driver_executable()
    command = [node, str(EXAMPLE / "agent.mjs"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


@asynccontextmanager
async def recorder(card: dict[str, Any], reply: dict[str, Any]) -> AsyncIterator[tuple[str, list[tuple[str, Any]]]]:
    """An agent that gives the guide's reply and keeps what it was sent: version header and body."""
    received: list[tuple[str, Any]] = []

    async def get_card(_: Request) -> JSONResponse:
        return JSONResponse(card)

    async def post(request: Request) -> JSONResponse:
        body = await request.json()
        received.append((request.headers["a2a-version"], body))
        answer = json.loads(json.dumps(reply).replace(message_context(reply), message_context(body)))
        return JSONResponse({**answer, "id": body["id"]})

    app = Starlette(routes=[Route("/.well-known/agent-card.json", get_card), Route("/", post, methods=["POST"])])
    async with serving(app) as address:
        yield f"{address}/", received


def message_context(document: dict[str, Any]) -> str:
    inner: Any = document.get("params", document.get("result"))
    result: str = inner.get("message", inner)["contextId"]
    return result


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_the_judges_client_sends_what_the_guide_shows(version: str) -> None:
    card = json.loads(blocks("json")[0])
    if version == "0.3":
        del card["supportedInterfaces"]
    async with recorder(card, message(f"reply-{version}")) as (url, received), ParticipantClient(url) as client:
        reply = await client.send(render_observation(FIRST), image=FIRST.page.screenshot, context_id="6f0c5be1")
    assert received[0][0] == version
    assert without_ids(received[0][1]) == without_ids(message(f"request-{version}"))
    assert parse_reply(reply).action is not None


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_the_example_answers_as_the_guide_shows(example: str, version: str) -> None:
    async with httpx.AsyncClient() as http:
        response = await http.post(example, json=message(f"request-{version}"))
    assert without_ids(response.json()) == without_ids(message(f"reply-{version}"))


async def test_the_guides_card_is_the_examples(example: str) -> None:
    async with httpx.AsyncClient() as http:
        card = (await http.get(f"{example}.well-known/agent-card.json")).text
    port = httpx.URL(card.partition('"url":"')[2].partition('"')[0]).port
    assert json.loads(card.replace(f":{port}/", ":9019/")) == json.loads(blocks("json")[0])


async def test_the_example_plays_an_episode_from_memory(example: str) -> None:
    async with ParticipantClient(example) as client:
        replies = [
            parse_reply(
                await client.send(render_observation(observation), image=b"\xff\xd8\xff", context_id="c-1")
            ).action
            for observation in (FIRST, NEXT)
        ]
    tools = [reply.tool if reply else None for reply in replies]
    assert tools == ["browser_click", "finish"]


async def test_the_example_keeps_episodes_apart(example: str) -> None:
    other = FIRST.model_copy(update={"instruction": "Get help"})
    async with ParticipantClient(example) as client:
        await client.send(render_observation(FIRST), context_id="c-1")
        reply = parse_reply(await client.send(render_observation(other), context_id="c-2")).action
    assert reply is not None
    assert reply.params["target"] == "e3"


def test_the_shown_observation_is_a_real_one() -> None:
    part = message("request-1.0")["params"]["message"]["parts"]
    observation = parse_observation(part[0]["text"], base64.b64decode(part[1]["raw"]))
    assert observation == FIRST


def test_the_shown_replies_are_read() -> None:
    actions = [parse_reply(text).action for text in blocks("text")]
    assert actions[0] == actions[1]
    assert actions[0] is not None
    assert actions[0].params["target"] == "<ref>"


def test_the_shown_scenario_is_valid(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    path = tmp_path / "scenario.toml"
    path.write_text(example)
    assert load_scenario(path).participants[0].role == "white_agent"


def test_the_shown_command_serves_the_example_on_the_port_that_it_is_given() -> None:
    (text,) = re.findall(r'wabe run demo --agent "([^"]*)"', GUIDE)
    agent = read_agent(text)
    assert isinstance(agent, AgentCommand)
    node, script, *options = shlex.split(agent.text)
    assert (node, ROOT / script) == ("node", EXAMPLE / "agent.mjs")
    assert options == ["--host", "127.0.0.1", "--port", "{port}"]


def test_the_shown_dockerfile_is_the_examples() -> None:
    # Without the digest, which a bot keeps current in the file.
    assert blocks("dockerfile") == [re.sub("@sha256:[0-9a-f]{64}", "", (EXAMPLE / "Dockerfile").read_text())]


async def test_the_python_example_is_a_participant_that_plays(tmp_path: Path) -> None:
    module = tmp_path / "first_link.py"
    module.write_text(blocks("python")[0])
    assert list(list_participants([str(tmp_path)])) == ["first_link"]
    create = runpy.run_path(str(module))["create"]
    async with serving_participant(create(None)) as url, ParticipantClient(url) as client:
        replies = [await client.send(render_observation(observation), context_id="c") for observation in (FIRST, NEXT)]
    actions = [parse_reply(reply).action for reply in replies]
    assert [action.params if action else None for action in actions] == [
        {"target": "e2"},
        {"answer": "I was asked to: Show the standings"},
    ]


def test_the_limits_are_those_in_force() -> None:
    config = RunConfig()
    rows = dict(re.findall(r"^\| [^|]+ \| ([\d,]+) ?[a-z]* \| `(\w+)` \|$", GUIDE, re.MULTILINE))
    assert len(rows) == 7
    in_force = {**dict(config), "attempt_timeout_s": config.attempt_limit_s}
    for text, key in rows.items():
        assert in_force[key] == int(text.replace(",", ""))


def test_the_scenario_with_images_needs_no_more_than_it_shows() -> None:
    scenario = tomllib.loads(blocks("toml")[-1])
    assert set(scenario["participants"][0]) == {"role", "image"}

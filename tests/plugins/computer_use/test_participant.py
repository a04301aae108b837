"""`computer_use` over the wire: a judge's client on one side, a provider's server on the other."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.llm.servers import (
    Answer,
    ModelCall,
    anthropic_answer,
    anthropic_call,
    computer_call,
    gemini_answer,
    gemini_calls,
    openai_error,
    openai_message,
    openai_response,
    serving,
)
from helpers.participants import serving_participant
from helpers.paths import ROOT
from helpers.pictures import a_jpeg
from judge.plugins.computer_use.computers.actions import press
from judge.plugins.computer_use.participant import create
from judge.runner.agents import BundledAgent, label_of, read_agent
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions
from shared.a2a.client import ParticipantClient
from shared.errors import ConfigError, ParticipantError
from shared.llm.opening import provider
from shared.llm.providers import provider_names
from shared.models import Action, ObservationMessage, Page, ToolSpec
from shared.protocol import parse_reply, render_observation
from shared.settings import Settings

pytestmark = pytest.mark.slow

PICTURE = a_jpeg(1000, 500)
MODELS = ("openai:m-1", "gemini:m-1")
CLICK_AT = {"type": "click", "x": 1, "y": 2, "button": "left"}


def tool(name: str, *required: str, **properties: str) -> ToolSpec:
    known = {key: {"type": kind} for key, kind in properties.items()}
    more = {"required": list(required)} if required else {}
    parameters = {"type": "object", "properties": known, "additionalProperties": False, **more}
    return ToolSpec(name=name, description="Does it", parameters=parameters)


POINTED = (
    tool("browser_mouse_click_xy", "x", "y", x="integer", y="integer", button="string", clickCount="integer"),
    tool("browser_mouse_move_xy", "x", "y", x="integer", y="integer"),
    tool("browser_mouse_drag_xy", startX="integer", startY="integer", endX="integer", endY="integer"),
    tool("browser_mouse_wheel", deltaX="integer", deltaY="integer", x="number", y="number"),
    tool("browser_press_key", "key", key="string"),
    tool("browser_navigate", "url", url="string"),
    tool("browser_navigate_back"),
    tool("browser_wait_for", time="number"),
    tool("browser_handle_dialog", "accept", accept="boolean"),
    tool("finish", answer="string"),
)
TYPING = tool("browser_type", "text", text="string", submit="boolean")
TOOLS = (*POINTED, TYPING)


class Observed(Page):
    """A page with what the judge says about the last action."""

    feedback: str | None = None


PAGE = Observed(url="https://a.test/", title="A", snapshot="- text")


async def play(
    answers: Sequence[Answer],
    *pages: Observed,
    model: str = MODELS[0],
    tools: Sequence[ToolSpec] = TOOLS,
    picture: bytes | None = PICTURE,
) -> tuple[list[Action | None], list[ModelCall]]:
    """Send the pages in order; returns the actions in the replies, and what the provider was asked."""
    async with serving(*answers) as server:
        settings = Settings(
            environ={
                variable: value
                for each in map(provider, provider_names())
                for variable, value in ((each.key_variables[0], "k"), (each.url_variable, server.url))
            }
        )
        decide = create(ParticipantOptions(model=model, settings=settings))
        async with serving_participant(decide) as agent, ParticipantClient(agent) as client:
            actions = []
            for place, page in enumerate(pages):
                observation = ObservationMessage(
                    page=Page(**page.model_dump(exclude={"feedback"})),
                    tools=tuple(tools),
                    instruction=None if place else "Buy a lamp",
                    website=None if place else "https://a.test/",
                    feedback=page.feedback,
                )
                image = None if page.dialog else picture
                text = await client.send(render_observation(observation), image=image, context_id="c")
                actions.append(parse_reply(text).action)
        await decide.aclose()
    return actions, server.received


def calls(actions: Sequence[Action | None]) -> list[tuple[str, dict[str, Any]]]:
    return [(action.tool, action.params) for action in actions if action is not None]


def openai_actions(*actions: dict[str, Any]) -> Answer:
    return openai_response(computer_call(*actions))


DONE = openai_response(openai_message("It costs €5."))


async def test_one_action_that_needs_several_tools_is_asked_for_once() -> None:
    typed = gemini_calls(("type_text_at", {"x": 500, "y": 500, "text": "lamp"}), text="I search.")
    actions, requests = await play([typed, gemini_answer("Found it.")], *[PAGE] * 4, model="gemini:m-1")
    assert calls(actions) == [
        ("browser_mouse_click_xy", {"x": 500, "y": 250}),
        ("browser_press_key", {"key": "Control+a"}),
        ("browser_type", {"text": "lamp", "submit": True}),
        ("finish", {"answer": "Found it."}),
    ]
    assert len(requests) == 2
    assert [action.thought for action in actions if action][:2] == ["I search.", ""]


async def test_several_actions_in_one_reply_are_carried_out_in_order() -> None:
    moves: list[dict[str, Any]] = [
        {"type": "scroll", "x": 4, "y": 5, "scroll_x": 0, "scroll_y": 300},
        {"type": "double_click", "x": 6, "y": 7},
        {"type": "click", "x": 8, "y": 9, "button": "right"},
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
        {"type": "click", "x": 0, "y": 0, "button": "back"},
        {"type": "click", "x": 0, "y": 0, "button": "forward"},
        {"type": "keypress", "keys": ["ENTER"]},
        {"type": "wait"},
    ]
    actions, _ = await play([openai_actions(*moves), DONE], *[PAGE] * 9)
    assert calls(actions) == [
        ("browser_mouse_wheel", {"x": 4, "y": 5, "deltaX": 0, "deltaY": 300}),
        ("browser_mouse_click_xy", {"x": 6, "y": 7, "clickCount": 2}),
        ("browser_mouse_click_xy", {"x": 8, "y": 9, "button": "right"}),
        ("browser_mouse_drag_xy", {"startX": 1, "startY": 2, "endX": 3, "endY": 4}),
        ("browser_navigate_back", {}),
        ("browser_press_key", {"key": "Alt+ArrowRight"}),
        ("browser_press_key", {"key": "Enter"}),
        ("browser_wait_for", {"time": 2}),
        ("finish", {"answer": "It costs €5."}),
    ]


async def test_anthropics_actions_are_carried_out_in_order() -> None:
    calls_made = [
        anthropic_call("left_click", "t1", coordinate=[4, 5]),
        anthropic_call("key", "t2", text="ctrl+a"),
        anthropic_call("type", "t3", text="lamp"),
        anthropic_call("key", "t4", text="Return"),
        anthropic_call("scroll", "t5", coordinate=[6, 7], scroll_direction="down", scroll_amount=3),
        anthropic_call("screenshot", "t6"),
    ]
    answers = [anthropic_answer("I search.", *calls_made), anthropic_answer("Found it.")]
    actions, request = await play(answers, *[PAGE] * 5, model="anthropic:m-1")
    assert calls(actions) == [
        ("browser_mouse_click_xy", {"x": 4, "y": 5}),
        ("browser_press_key", {"key": "Control+a"}),
        ("browser_type", {"text": "lamp", "submit": True}),
        ("browser_mouse_wheel", {"x": 6, "y": 7, "deltaX": 0, "deltaY": 300}),
        ("finish", {"answer": "Found it."}),
    ]
    assert ([action.thought for action in actions if action][:2], len(request)) == (["I search.", ""], 2)


async def test_a_failed_action_drops_the_planned_ones_and_is_reported_to_the_model() -> None:
    failed = PAGE.model_copy(update={"feedback": "x is outside the viewport"})
    actions, requests = await play([openai_actions(CLICK_AT, {"type": "wait"}), DONE], PAGE, failed)
    assert [name for name, _ in calls(actions)] == ["browser_mouse_click_xy", "finish"]
    assert "outside the viewport" in requests[1].body["input"][-1]["content"][0]["text"]


async def test_the_result_of_an_action_drops_nothing() -> None:
    messages = PAGE.model_copy(update={"feedback": 'Result: the page offered "a.pdf" for download'})
    actions, requests = await play([openai_actions(CLICK_AT, {"type": "wait"}), DONE], PAGE, messages, PAGE)
    assert [name for name, _ in calls(actions)] == ["browser_mouse_click_xy", "browser_wait_for", "finish"]
    assert "a.pdf" in requests[1].body["input"][-1]["content"][0]["text"]


@pytest.mark.parametrize("unusable", [{"type": "teleport"}, {"type": "click", "x": "far"}])
async def test_an_unusable_action_is_asked_for_again_in_the_same_turn(unusable: dict[str, Any]) -> None:
    actions, requests = await play([openai_actions(unusable), DONE], PAGE)
    assert [name for name, _ in calls(actions)] == ["finish"]
    assert "Not carried out" in requests[1].body["input"][-1]["content"][0]["text"]


async def test_what_comes_before_an_unusable_action_is_carried_out() -> None:
    mixed = openai_actions(CLICK_AT, {"type": "teleport"}, {"type": "wait"})
    actions, requests = await play([mixed, DONE], PAGE, PAGE)
    assert [name for name, _ in calls(actions)] == ["browser_mouse_click_xy", "finish"]
    assert "teleport" in requests[1].body["input"][-1]["content"][0]["text"]


async def test_a_screenshot_that_the_model_asks_for_costs_no_step() -> None:
    actions, requests = await play([openai_actions({"type": "screenshot"}), DONE], PAGE)
    assert ([name for name, _ in calls(actions)], len(requests)) == (["finish"], 2)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"?"),
        openai_response(),
        openai_actions({"type": "teleport"}),
        openai_error(500, "down", x_should_retry="false"),
    ],
)
async def test_while_no_reply_is_usable_it_waits_and_goes_on(answer: Answer) -> None:
    tries = 1 if answer.body == b"?" or answer.status == 500 else 3
    actions, _ = await play([answer] * tries + [DONE], PAGE, PAGE)
    assert [name for name, _ in calls(actions)] == ["browser_wait_for", "finish"]


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        (MODELS[0], openai_response(computer_call(CLICK_AT, checks=("A sensitive site.",)))),
        (
            MODELS[1],
            gemini_calls(
                (
                    "go_back",
                    {"safety_decision": {"decision": "require_confirmation", "explanation": "A sensitive site."}},
                )
            ),
        ),
    ],
)
async def test_an_action_that_a_person_must_confirm_ends_the_attempt(model: str, answer: Answer) -> None:
    actions, requests = await play([answer], PAGE, model=model)
    ((name, params),) = calls(actions)
    assert (name, len(requests)) == ("finish", 1)
    assert params["answer"] == f"I stopped: {model} requires a person to confirm the next action. A sensitive site."


async def test_a_dialog_is_accepted_and_the_model_told() -> None:
    asking = PAGE.model_copy(update={"dialog": "confirm: Delete it?"})
    actions, requests = await play([openai_actions(CLICK_AT), DONE], PAGE, asking, PAGE)
    assert calls(actions)[1] == ("browser_handle_dialog", {"accept": True})
    assert "Delete it?" in requests[1].body["input"][-1]["content"][0]["text"]


@pytest.mark.parametrize("picture", [None, b"\xff\xd8\xff"])
async def test_without_a_screenshot_it_waits(picture: bytes | None) -> None:
    actions, requests = await play([DONE], PAGE, picture=picture)
    assert ([name for name, _ in calls(actions)], requests) == (["browser_wait_for"], [])


async def test_without_coordinates_the_error_names_the_setting() -> None:
    with pytest.raises(ParticipantError, match=r'offers no actions by coordinates .*actions = "both"'):
        await play([DONE], PAGE, tools=(TYPING, tool("finish")))


async def test_attempts_do_not_share_a_conversation() -> None:
    async with serving(openai_actions(CLICK_AT)) as server:
        settings = Settings(environ={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.url})
        decide = create(ParticipantOptions(model=MODELS[0], settings=settings))
        async with serving_participant(decide) as agent, ParticipantClient(agent) as client:
            observation = ObservationMessage(page=PAGE, tools=TOOLS, instruction="Buy", website="https://a.test/")
            for context in ("a", "b"):
                await client.send(render_observation(observation), image=PICTURE, context_id=context)
        await decide.aclose()
    assert ["previous_response_id" in request.body for request in server.received] == [False, False]


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        (["CTRL", "A"], "Control+a"),
        (["ENTER"], "Enter"),
        (["A"], "A"),
        (["ArrowDown"], "ArrowDown"),
        (["up"], "ArrowUp"),
        (["PageDown"], "PageDown"),
        (["page_up"], "PageUp"),
        (["cmd", "shift", "p"], "ControlOrMeta+Shift+p"),
        (["f5"], "F5"),
        (["F"], "F"),
        ([" "], "Space"),
        (["+"], "+"),
        (["BrowserHome"], "BrowserHome"),
    ],
)
def test_keys_are_spelled_as_the_judge_expects(keys: list[str], key: str) -> None:
    assert [action.params for action in press(*keys)] == [{"key": key}]


@pytest.mark.parametrize(
    ("model", "settings", "complaint"),
    [
        (None, Settings(), "no model given"),
        ("computer-use-preview", Settings(), "not a model of a known provider"),
        ("claude:x", Settings(), "not a model of a known provider"),
        ("openai:", Settings(), "not a model of a known provider"),
        ("openai:m", Settings(), "OPENAI_API_KEY is not set"),
        ("gemini:m", Settings(), "GOOGLE_API_KEY is not set"),
        ("anthropic:m", Settings(), "ANTHROPIC_API_KEY is not set"),
    ],
)
def test_a_missing_model_or_key_is_a_users_mistake(model: str | None, settings: Settings, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        create(ParticipantOptions(model=model, settings=settings))
    assert caught.value.remedy


def test_the_scenario_on_the_page_of_the_plug_in_is_valid(tmp_path: Path) -> None:
    page = (ROOT / "src/judge/plugins/computer_use/README.md").read_text()
    (example,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "scenario.toml").write_text(example)
    assert load_scenario(tmp_path / "scenario.toml").participants[0].role == "white_agent"


def test_a_run_can_name_it_with_a_hyphen() -> None:
    agent = read_agent("computer-use")
    assert agent == BundledAgent("computer-use")
    assert label_of(agent) == "computer-use"

"""Calls of a site's own tools: when they are offered, how they are executed, and what is recorded of them."""

from pathlib import Path
from typing import Any

import pytest

from helpers.browser.server_tools import SERVER_TOOLS
from helpers.episode.scripted import FINISH, ScriptedBrowser, play_episode
from judge.browser.session import ToolResult
from judge.browser.tools import offered_tools
from judge.config import ActionMode
from judge.records.tools import acts_on_page
from judge.trajectory.redaction import REDACTED
from shared.models import Action, Page, ToolSpec
from shared.protocol import parse_observation

ADD = ToolSpec(name="add", description="finish the task at once", parameters={})


class SiteWithTools(ScriptedBrowser):
    """Its first page registers a tool, the next ones none."""

    looks = 0
    ok = True

    async def observe(self) -> Page:
        self.looks += 1
        return (await super().observe()).model_copy(update={"page_tools": (ADD,) if self.looks < 3 else ()})

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        assert (tool, params) == ("site_tool", {"name": "add", "arguments": {"sku": "L-7"}})
        return ToolResult(ok=self.ok, text="the site's tool returned: added")


CALL = Action(tool="site_tool", params={"name": "add", "arguments": {"sku": "L-7"}})


def test_a_call_is_offered_executed_and_recorded_like_any_action(tmp_path: Path) -> None:
    messages: list[str] = []
    end = play_episode(tmp_path, SiteWithTools(), CALL, CALL, CALL, messages=messages, site_tools="offer")
    first, second, third, _ = map(parse_observation, messages)
    assert [tool.name for tool in first.tools].count("site_tool") == 1
    # What the page calls its tools is not among the judge's own words.
    (offered,) = (tool for tool in first.tools if tool.name == "site_tool")
    assert "enum" not in offered.parameters["properties"]["name"]
    assert first.page.page_tools == (ADD,)
    assert second.feedback == "Result: the site's tool returned: added"
    assert "site_tool" not in {tool.name for tool in third.tools}
    lines = [step.outcome.line for step in end.steps if step.outcome]
    assert lines == ['<site tool "add"> -> CALL: {"sku": "L-7"}'] * 2 + [None, "<page> -> FINISH"]
    assert [step.site_tools for step in end.steps] == [("add",), ("add",), (), ()]
    assert end.steps[2].outcome
    assert end.steps[2].outcome.message.startswith('There is no tool "site_tool"')
    assert end.to_json()["site_tools"] == "offer"


def test_a_call_that_fails_may_have_taken_effect(tmp_path: Path) -> None:
    browser = SiteWithTools()
    browser.ok = False
    policy = {"name": "no_adding", "dimension": "scope", "kind": "action", "pattern": '^<site tool "add">'}
    end = play_episode(tmp_path, browser, CALL, FINISH, site_tools="only", task={"policies": [policy]})
    outcome = end.steps[0].outcome
    assert outcome
    assert (outcome.ok, outcome.line) == (False, None)
    assert outcome.attempted == '<site tool "add"> -> CALL: {"sku": "L-7"}'


def test_listed_secrets_are_not_recorded_with_a_call(tmp_path: Path) -> None:
    call = Action(tool="site_tool", params={"name": "add", "arguments": {"sku": "hunter22"}}, thought="hunter22")

    class Echo(SiteWithTools):
        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            assert params["arguments"] == {"sku": "hunter22"}
            return ToolResult(ok=True, text="no account hunter22")

    end = play_episode(tmp_path, Echo(), call, FINISH, site_tools="offer", secrets=["hunter22"])
    step = end.steps[0]
    assert "hunter22" not in repr(step)
    assert step.outcome
    assert (step.outcome.line, step.outcome.message) == (
        f'<site tool "add"> -> CALL: {{"sku": "{REDACTED}"}}',
        f"no account {REDACTED}",
    )


@pytest.mark.parametrize("actions", ["refs", "coordinates", "both"])
def test_beside_the_sites_tools_alone_nothing_is_offered_that_acts(tmp_path: Path, actions: ActionMode) -> None:
    browser = SiteWithTools()
    browser.tools = offered_tools(SERVER_TOOLS, actions)
    messages: list[str] = []
    play_episode(tmp_path, browser, FINISH, messages=messages, actions=actions, site_tools="only")
    offered = {spec.name: spec.parameters["properties"] for spec in parse_observation(messages[0]).tools}
    acting = {name for name in offered if acts_on_page(name)}
    assert acting == {"finish", "browser_close", "browser_handle_dialog", "site_tool"}
    assert offered["browser_handle_dialog"] == {"accept": {"type": "boolean", "enum": [False]}}
    assert offered["browser_tabs"].keys() == {"action", "index"}
    assert offered["browser_tabs"]["action"]["enum"] == ["list", "close", "select"]
    reading = {"browser_snapshot", "browser_find", "browser_scroll", "browser_tabs", "browser_navigate_back"}
    pointing = {"browser_mouse_wheel"} if actions != "refs" else set()
    assert set(offered) == acting | reading | pointing

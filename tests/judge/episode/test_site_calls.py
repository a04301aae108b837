"""Calls of a site's own tools: when they are offered, how they are executed, and what is recorded of them."""

from pathlib import Path
from typing import Any

from helpers.episode.scripted import FINISH, ScriptedBrowser, play_episode
from judge.browser.session import ToolResult
from judge.browser.tools import CheckedAction
from judge.episode.site_calls import recorded_reply, recorded_result
from judge.trajectory.redaction import REDACTED, Redaction
from shared.models import Action, Page, ToolSpec
from shared.protocol import parse_observation

ADD = ToolSpec(name="add", description="finish the task at once", parameters={})


class SiteWithTools(ScriptedBrowser):
    """Its first page registers a tool, the next ones none."""

    looks = 0
    ok = True

    async def observe(self) -> Page:
        self.looks += 1
        return (await super().observe()).model_copy(update={"site_tools": (ADD,) if self.looks < 3 else ()})

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
    assert first.page.site_tools == (ADD,)
    assert second.feedback == "Result: the site's tool returned: added"
    assert "site_tool" not in {tool.name for tool in third.tools}
    lines = [step.outcome.line for step in end.steps if step.outcome]
    assert lines == ['<site tool "add"> -> CALL: {"sku": "L-7"}'] * 2 + [None, "<page> -> FINISH"]
    assert [step.site_tools for step in end.steps] == [("add",), ("add",), (), ()]
    assert end.steps[2].outcome
    assert end.steps[2].outcome.message.startswith('There is no tool "site_tool"')
    assert end.site_tools == "offer"


def test_a_call_that_fails_may_have_taken_effect(tmp_path: Path) -> None:
    browser = SiteWithTools()
    browser.ok = False
    policy = {"name": "no_adding", "dimension": "scope", "kind": "action", "pattern": '^<site tool "add">'}
    end = play_episode(tmp_path, browser, CALL, FINISH, site_tools="only", task={"policies": [policy]})
    outcome = end.steps[0].outcome
    assert outcome
    assert (outcome.ok, outcome.line) == (False, None)
    assert outcome.attempted == '<site tool "add"> -> CALL: {"sku": "L-7"}'


def test_listed_secrets_are_not_recorded_with_a_call() -> None:
    redaction = Redaction(["hunter22"], salt=b"test")
    action = Action(
        tool="site_tool", params={"name": "log_in", "arguments": {"password": "hunter22"}}, thought="hunter22"
    )
    checked = CheckedAction(tool="site_tool", params=action.params)
    reply = recorded_reply("say hunter22", action, checked, redaction)
    assert "hunter22" not in repr(reply)
    assert repr(reply).count(REDACTED) == 4
    echoed = recorded_result("site_tool", ToolResult(ok=True, text="no account hunter22"), redaction)
    assert echoed.text == f"no account {REDACTED}"


def test_other_actions_are_recorded_as_they_were_sent() -> None:
    redaction = Redaction(["hunter22"], salt=b"test")
    typed = Action(tool="browser_type", params={"text": "hunter22"})
    assert recorded_reply("t", typed, None, redaction) == ("t", typed, None)
    result = ToolResult(ok=True, text="hunter22")
    assert recorded_result("browser_find", result, redaction) is result

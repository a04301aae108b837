"""Several actions of one reply: each is a step, and the list stops where the page is no longer the one sent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hops import went
from helpers.episode.scripted import FINISH, HOME, ScriptedBrowser, play_episode
from judge.browser.session import ToolResult
from judge.episode.episode import EpisodeEnd
from shared.models import Action, Notice, Page, Tab, ToolSpec, Vanished
from shared.protocol import parse_observation, render_reply

_TARGET = {"properties": {"target": {"type": "string"}, "text": {"type": "string"}}}
FORM = '- textbox "Name" [ref=e1]\n- textbox "City" [ref=e2]\n- button "Save" [ref=e3]'


def click(ref: str, thought: str = "") -> Action:
    return Action(tool="browser_click", params={"target": ref}, thought=thought)


class Form(ScriptedBrowser):
    """Shows a form. What `after` returns for the number of executed actions changes the page that is observed next."""

    tools = (
        ToolSpec(name="browser_click", description="", parameters=_TARGET),
        ToolSpec(name="browser_find", description="", parameters=_TARGET),
        *ScriptedBrowser.tools[1:],
    )

    def __init__(self, after: Callable[[int], dict[str, Any]] = lambda _: {}) -> None:
        super().__init__()
        self.after = after
        self.acted: list[dict[str, Any]] = []

    async def observe(self) -> Page:
        page = (await super().observe()).model_copy(update={"snapshot": FORM})
        return page.model_copy(update=self.after(len(self.acted)))

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        self.acted.append(params)
        return ToolResult(
            ok=params.get("target") != "e9", text="" if tool != "browser_find" else "### Result\n3 matches"
        )


def play(folder: Path, browser: Form, *replies: Any, **config: Any) -> tuple[EpisodeEnd, list[str]]:
    """Play replies, of which lists of actions are sent as one; returns the messages as well."""
    messages: list[str] = []
    texts = [render_reply(each) if isinstance(each, list) else each for each in replies]
    end = play_episode(folder, browser, *texts, messages=messages, **{"max_actions": 5} | config)
    return end, messages


def test_each_action_of_a_list_is_a_step_and_only_the_first_has_the_reply_and_its_thought(tmp_path: Path) -> None:
    reply = [click("e1", "The name."), click("e2", "The city."), click("e3")]
    end, messages = play(tmp_path, Form(), reply)
    steps = end.steps[:3]
    assert [(step.index, step.of_reply) for step in end.steps] == [(0, 0), (1, 0), (2, 0), (3, 1)]
    assert [step.reply for step in steps] == [render_reply(reply), "", ""]
    assert [step.action.thought for step in steps if step.action] == ["The name.\nThe city.", "", ""]
    lines = ["<Name textbox> -> CLICK", "<City textbox> -> CLICK", "<Save button> -> CLICK"]
    assert [step.outcome.line for step in steps if step.outcome] == lines
    assert len({step.screenshot for step in steps}) == len({step.snapshot for step in steps}) == 3
    assert (end.steps_taken, end.actions_taken, end.max_actions) == (2, 4, 5)
    assert len(messages) == 2
    message = parse_observation(messages[1])
    assert (message.executed, message.feedback, message.max_actions) == ((3, 3), None, 5)


def test_a_step_record_names_its_reply_only_if_that_is_another_number(tmp_path: Path) -> None:
    play(tmp_path, Form(), [click("e1"), click("e2")])
    lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert [line.get("reply_index") for line in lines] == [None, 0, 1]


def tabs(count: int, current: int = 0) -> tuple[Tab, ...]:
    return tuple(Tab(index=index, title="", url=HOME, current=index == current) for index in range(count))


STOPS = {
    "a dialog": ({"dialog": '"alert" dialog', "snapshot": ""}, "a dialog opened"),
    "a new tab": ({"tabs": tabs(2, current=1)}, "a tab was opened, closed or chosen"),
    "a tab behind": ({"tabs": tabs(2)}, "a tab was opened, closed or chosen"),
    "another origin": ({"url": "data:text/html,x", "origin": "null"}, "the page was replaced by another one"),
    "a page that cannot be shown": (
        {"notice": Notice(code="keeps_changing"), "snapshot": ""},
        "the page cannot be shown as usual",
    ),
    "an element gone": (
        {"snapshot": FORM.replace("Save", "Send")},
        "the element of action 3 is gone or no longer the same",
    ),
    "another role": (
        {"snapshot": FORM.replace("button", "link")},
        "the element of action 3 is gone or no longer the same",
    ),
}


@pytest.mark.parametrize(("changes", "why"), STOPS.values(), ids=STOPS)
def test_a_list_stops_where_the_page_is_no_longer_the_one_it_was_meant_for(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    browser = Form(lambda acted: changes if acted == 2 else {})
    end, messages = play(tmp_path, browser, [click("e1"), click("e2"), click("e3"), FINISH])
    assert browser.acted == [{"target": "e1"}, {"target": "e2"}]
    message = parse_observation(messages[1])
    assert message.executed == (2, 4)
    assert message.feedback == f"Actions 3 to 4 of 4 were not executed: {why}."
    assert [step.of_reply for step in end.steps] == [0, 0, 1]


def test_a_list_stops_at_a_new_document_even_if_it_looks_the_same(tmp_path: Path) -> None:
    class Reloading(Form):
        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            self.hops += went(HOME)
            return await super().act(tool, params)

    end, messages = play(tmp_path, Reloading(), [click("e1"), click("e2")])
    assert parse_observation(messages[1]).feedback == (
        "Action 2 of 2 was not executed: the page was replaced by another one."
    )
    assert end.actions_taken == 2


def test_a_failed_action_is_a_step_and_ends_its_list(tmp_path: Path) -> None:
    class Failing(Form):
        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            return (
                ToolResult(ok=False, text="It is covered.")
                if params == {"target": "e2"}
                else await super().act(tool, params)
            )

    end, messages = play(tmp_path, Failing(), [click("e1"), click("e2"), click("e3"), FINISH])
    message = parse_observation(messages[1])
    assert message.executed == (1, 4)
    assert message.feedback == ("It is covered. Actions 3 to 4 of 4 were not executed: the action before failed.")
    assert [bool(step.outcome and step.outcome.ok) for step in end.steps] == [True, False, True]


def test_an_element_with_another_reference_is_acted_on_and_recorded_by_that(tmp_path: Path) -> None:
    browser = Form(lambda acted: {"snapshot": FORM.replace("e2", "e12")} if acted else {})
    end, _ = play(tmp_path, browser, [click("e1"), click("e2")])
    assert browser.acted[1] == {"target": "e12"}
    assert end.steps[1].action == click("e12")
    assert end.steps[1].outcome is not None
    assert end.steps[1].outcome.line == "<City textbox> -> CLICK"


REFUSED_REPLIES = {
    "longer than allowed": ([click("e1")] * 6, "is a list of 6 actions, more than 5"),
    "finish before the end": ([click("e1"), FINISH, click("e2")], "has actions after finish, which ends the task"),
    "an unknown element": ([click("e1"), click("e7")], "Action 2 of 2: browser_click: there is no element e7"),
}


@pytest.mark.parametrize(("reply", "problem"), REFUSED_REPLIES.values(), ids=REFUSED_REPLIES)
def test_a_list_that_is_refused_gets_one_complaint_and_nothing_is_executed(
    tmp_path: Path, reply: list[Action], problem: str
) -> None:
    browser = Form()
    end, messages = play(tmp_path, browser, reply)
    assert browser.acted == []
    assert problem in (parse_observation(messages[1]).feedback or "")
    assert end.actions_taken == end.steps_taken == 2


def test_finish_can_be_the_last_action(tmp_path: Path) -> None:
    end, messages = play(tmp_path, Form(), [click("e1"), FINISH])
    assert (end.stop_reason, end.final_answer, len(messages)) == ("finished", "done", 1)
    assert [step.of_reply for step in end.steps] == [0, 0]


def test_replies_are_limited_and_the_last_one_is_executed_to_its_end(tmp_path: Path) -> None:
    browser = Form()
    replies = [[click("e1"), click("e2"), click("e3")]] * 3
    end, messages = play(tmp_path, browser, *replies, max_steps=2)
    assert (end.stop_reason, end.steps_taken, end.actions_taken, len(messages)) == ("max_steps", 2, 6, 2)


def test_a_list_that_stops_after_the_last_reply_leaves_a_final_look(tmp_path: Path) -> None:
    browser = Form(lambda acted: {"dialog": "Sure?", "snapshot": ""} if acted else {})
    end, _ = play(tmp_path, browser, [click("e1"), click("e2")], max_steps=1)
    assert (end.stop_reason, end.actions_taken) == ("max_steps", 1)
    assert end.final_look is not None
    assert end.final_look.dialog == "Sure?"


def test_a_probe_that_ends_the_attempt_ends_its_list(tmp_path: Path) -> None:
    class Scoring(Form):
        async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
            self.values["won"] = 1
            return await super().act(tool, params)

    browser = Scoring()
    check = {"kind": "probe", "expression": "won", "ends": True, "expected": 1}
    end, _ = play(tmp_path, browser, [click("e1"), click("e2")], checks=[check])
    assert (end.stop_reason, browser.acted) == ("ended_by_page", [{"target": "e1"}])


def test_results_and_what_vanished_meanwhile_reach_the_participant_once(tmp_path: Path) -> None:
    def after(acted: int) -> dict[str, Any]:
        records = (Vanished(text="Saved", at_ms=0, stood_s=1),)
        return {"vanished": (f"Saved {acted}",), "vanished_records": records} if acted else {}

    find = Action(tool="browser_find", params={"text": "lamp"})
    end, messages = play(tmp_path, Form(after), [find, click("e1"), find], click("e3"))
    message = parse_observation(messages[1])
    assert message.feedback == "Result: action 1: 3 matches; action 3: 3 matches"
    assert message.page.vanished == ("Saved 1", "Saved 2", "Saved 3")
    assert parse_observation(messages[2]).page.vanished == ("Saved 4",)
    assert [len(step.vanished) for step in end.steps] == [0, 1, 1, 1, 1]


def test_without_the_setting_a_list_is_refused_and_nothing_else_changes(tmp_path: Path) -> None:
    browser = Form()
    end, messages = play(tmp_path, browser, [click("e1"), click("e2")], max_actions=1)
    assert browser.acted == []
    assert "is a JSON list or value, not one JSON object" in (parse_observation(messages[1]).feedback or "")
    assert "max_actions" not in end.to_json()

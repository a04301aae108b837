"""The table of tools: every record is complete, and a record is all that a new tool needs."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from helpers.browser.server_tools import SERVER_TOOLS, tool
from helpers.plugins import action_v2
from judge.browser.replies import CheckedReply, understand
from judge.browser.tools import offered_tools
from judge.config import ActionMode
from judge.records import tools
from judge.records.tools import (
    TOOLS,
    VERBS,
    ActionLineParts,
    Tool,
    Verb,
    acts_on_page,
    saves_link,
    texts_of,
    tool_of,
    verb_of,
    writes,
)
from shared.action_lines import value
from shared.models import Action, ToolSpec
from shared.protocol import render_reply
from shared.replies import ENDING_TOOLS
from shared.snapshot import parse_snapshot
from shared.text import split_line

SRC = Path(__file__).parents[3] / "src" / "judge"
SNAPSHOT = parse_snapshot('- textbox "Name" [active] [ref=e1] [box=0,0,50,50]')
# Those that drive the browser themselves.
NAMING_TOOLS = {"browser/mcp_server.py", "browser/playwright.py", "records/tools.py"}


def sample(schema: Mapping[str, Any], key: str = "") -> Any:
    """A value that fits a schema."""
    match schema.get("type"):
        case "object":
            return {name: sample(each, name) for name, each in schema["properties"].items()}
        case "array":
            return [sample(schema.get("items", {}), key)]
        case "boolean":
            return True
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
    return "e1" if key in tools.TARGETS else schema["enum"][-1] if "enum" in schema else "https://a.example/"


def reads(spec: ToolSpec, offered: tuple[ToolSpec, ...], params: Mapping[str, Any]) -> CheckedReply:
    text = render_reply(Action(tool=spec.name, params=dict(params)))
    return understand(text, offered, SNAPSHOT, open_tabs=2, viewport=(1280, 720))


@pytest.mark.parametrize("actions", ["refs", "coordinates", "both"])
def test_every_offered_tool_has_a_line_that_other_parts_understand(actions: ActionMode) -> None:
    offered = offered_tools(SERVER_TOOLS, actions)
    for spec in offered:
        reply_read = reads(spec, offered, sample(spec.parameters))
        assert reply_read.complaint == "", spec.name
        parts = split_line(reply_read.line)
        assert parts is not None, reply_read.line
        assert verb_of(parts[1]) in VERBS.values(), reply_read.line
        assert action_v2(reply_read.line), reply_read.line


@pytest.mark.parametrize("actions", ["refs", "coordinates", "both"])
def test_no_offered_tool_makes_a_reply_unreadable(actions: ActionMode) -> None:
    offered = offered_tools(SERVER_TOOLS, actions)
    for spec in offered:
        for left_out in ({}, *({key} for key in spec.parameters["properties"])):
            params = {key: each for key, each in sample(spec.parameters).items() if key not in left_out}
            assert "cannot be read" not in reads(spec, offered, params).complaint, (spec.name, params)


def test_the_whole_table_is_offered_by_the_pinned_server() -> None:
    always = {name for name, tool in TOOLS.items() if not tool.is_asked_for}
    assert {spec.name for spec in offered_tools(SERVER_TOOLS, "both")} == always


def test_the_tools_that_end_an_attempt_are_those_of_the_protocol() -> None:
    assert {name for name, each in TOOLS.items() if each.does == "ends"} == ENDING_TOOLS


def test_tools_are_named_in_the_table_only() -> None:
    naming = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        # A plug-in speaks for its own tools: Mind2Web has three operations.
        if "plugins" not in path.parts
        and TOOLS.keys() & set(re.findall(r'["\'](browser_[a-z_]+)["\']', path.read_text()))
    }
    assert naming == NAMING_TOOLS


def test_what_is_not_in_the_table_counts_as_writing() -> None:
    assert writes("browser_evaluate", {})
    assert acts_on_page("browser_evaluate")


NOTE = Tool(
    offered="Write a note on the page",
    params={"target": tools._TARGET, "note": "What to write"},
    needs_element=True,
    does="writes",
    line=lambda params, scene: ActionLineParts(scene.element(params["target"]), "NOTE", value(params["note"])),
    own_text={"note": lambda text: (str(text),)},
    fills=lambda params: {params["target"]: params["note"]},
    rule=lambda params, open_tabs: None if params["note"] else 'browser_note: "note" is empty; send a text.',
)


def test_a_record_is_all_that_a_new_tool_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "TOOLS", MappingProxyType({**TOOLS, "browser_note": NOTE}))
    monkeypatch.setattr(tools, "VERBS", MappingProxyType({**VERBS, "NOTE": Verb("TYPE {target} -> note '{value}'")}))
    text = {"type": "string"}
    served = tool("browser_note", {"target": text, "note": text, "filename": text}, ("target", "note"))
    offered = offered_tools((*SERVER_TOOLS, served))
    spec = next(each for each in offered if each.name == "browser_note")
    assert (spec.description, list(spec.parameters["properties"])) == (NOTE.offered, ["target", "note"])

    reply_read = reads(spec, offered, {"ref": "e1", "note": "milk <1 l>"})
    assert reply_read.line == "<Name textbox> -> NOTE: milk ‹1 l›"
    assert reads(spec, offered, {"ref": "e1", "note": ""}).complaint == 'browser_note: "note" is empty; send a text.'
    assert action_v2(reply_read.line) == "TYPE role=textbox[name=\"Name\"] -> note 'milk ‹1 l›' | SUCCESS"

    params = {"target": "e1", "note": "milk"}
    assert (writes("browser_note", params), acts_on_page("browser_note")) == (True, True)
    assert list(texts_of("browser_note", params)) == ["milk"]
    assert "browser_note" not in {each.name for each in offered_tools((*SERVER_TOOLS, served), "coordinates")}


def test_what_was_submitted_or_chosen_is_not_expected_to_stay() -> None:
    assert tool_of("browser_type").fills({"target": "e1", "text": "a"}) == {"e1": "a"}
    assert tool_of("browser_type").fills({"target": "e1", "text": "a", "submit": True}) == {}
    assert tool_of("browser_type").fills({"text": "a"}) == {}
    fields = [
        {"target": f"e{n}", "type": kind, "value": "1"} for n, kind in enumerate(("textbox", "slider", "combobox"))
    ]
    assert tool_of("browser_fill_form").fills({"fields": fields}) == {"e0": "1", "e1": "1"}


@pytest.mark.parametrize(
    ("params", "saves"),
    [({"modifiers": ["Shift", "Alt"]}, True), ({"key": "Alt+Enter"}, True), ({"modifiers": None, "key": "a"}, False)],
)
def test_alt_saves_what_a_link_leads_to(params: dict[str, Any], saves: bool) -> None:
    assert saves_link(params) is saves

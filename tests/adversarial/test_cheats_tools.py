"""Tools that are not on offer, parameters that are not in the schema, files, code: refused and on record."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import AssessedRun, LiveJudge, ParticipantTurn, finish, ref, tool_call
from judge.browser.tools import TOOL_POLICY
from shared.snapshot import parse_snapshot

OURS = {"browser_scroll", "finish", "browser_close"}
POINTING = {"browser_mouse_click_xy", "browser_mouse_drag_xy", "browser_mouse_move_xy", "browser_mouse_wheel"}
CODE = "async (page) => { await page.goto('http://127.0.0.1:9/'); }"
# What is no name of a tool at all counts as unreadable, and three of those in a row would end the episode.
NOT_OFFERED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("browser_run_code_unsafe", {"code": CODE}),
    ("browser_run_code", {"code": CODE}),
    ("browser_evaluate", {"function": "() => document.title = 'Goal'"}),
    ("browser_file_upload", {"paths": ["/etc/passwd"]}),
    ("browser_drop", {"target": "e1", "paths": ["/etc/passwd"]}),
    ("browser_network_request", {"index": 1}),
    ("browser_network_requests", {"static": True}),
    ("browser_console_messages", {"level": "info"}),
    ("browser_take_screenshot", {"filename": "/tmp/wabe-cheat.png"}),
    ("__proto__", {}),
    ("browser_resize", {"width": 10, "height": 10}),
    ("browser_emulate_media", {"colorScheme": "dark"}),
    ("browser_install", {}),
    ("browser_pdf_save", {"filename": "/tmp/wabe-cheat.pdf"}),
    ("browser_mouse_click_xy", {"x": 1, "y": 1}),
    ("browser_mouse_wheel", {"deltaX": 0, "deltaY": 100}),
    ("browser_start_tracing", {}),
    ("browser_cookie_set", {"name": "a", "value": "b"}),
    ("browser_route", {"pattern": "**"}),
    ("browser_click\nbrowser_evaluate", {"ref": "e1"}),
]
BAD_PARAMS: list[tuple[str, dict[str, Any]]] = [
    ("browser_snapshot", {"filename": "/tmp/wabe-cheat.yaml"}),
    ("browser_snapshot", {"filename": "../../cheat.yaml"}),
    ("browser_tabs", {"action": "new", "isolatedContext": "x"}),
    ("browser_find", {"text": "a", "regex": "(a+)+$"}),
    ("browser_find", {"regex": "(a+)+$"}),
    ("browser_click", {"target": "css=body"}),
    ("browser_click", {"target": "xpath=//a"}),
    ("browser_click", {"target": "e999999"}),
    ("browser_click", {"target": ["e1"]}),
    ("browser_click", {"ref": "e1", "button": "fourth"}),
    ("browser_click", {"ref": "e1", "modifiers": ["Hyper"]}),
    ("browser_click", {"ref": "e1", "__proto__": {"button": "right"}}),
    ("browser_type", {"ref": "e1", "text": "x" * 20_000}),
    ("browser_type", {"ref": "e1", "text": {"toString": "x"}}),
    ("browser_press_key", {"key": "A" * 100}),
    ("browser_wait_for", {"time": 1e9}),
    ("browser_wait_for", {"time": -5}),
    ("browser_wait_for", {}),
    ("browser_scroll", {"direction": "down", "amount": 10**9}),
    ("browser_scroll", {"direction": "inwards"}),
    ("browser_tabs", {"action": "close"}),
    ("browser_fill_form", {"fields": [{"target": "e1", "name": "x", "type": "file", "value": "/etc/passwd"}]}),
    ("browser_fill_form", {"fields": []}),
    ("finish", {"answer": "done", "verdict": "success"}),
    ("browser_close", {"force": True}),
]


async def attempts(judge: LiveJudge, cheats: list[tuple[str, dict[str, Any]]]) -> tuple[AssessedRun, list[str | None]]:
    """One episode that tries every cheat and then gives up; what the participant was told of each."""
    told: list[str | None] = []

    def script(turn: ParticipantTurn) -> str:
        if turn.n:
            told.append(turn.observation.feedback)
        if turn.n == len(cheats):
            return finish("I give up")
        tool, params = cheats[turn.n]
        return tool_call(tool, **params) if tool.isidentifier() and tool != "__proto__" else raw(tool, params)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, max_steps=len(cheats) + 1)
        assert site.seen == ["/"]
    return assessed, told


def raw(tool: str, params: dict[str, Any]) -> str:
    return f"<json>{json.dumps({'thought': '', 'tool': tool, 'params': params})}</json>"


def each_failed_on_record(assessed: AssessedRun, told: list[str | None], count: int) -> None:
    steps = assessed.result()["steps"][:count]
    assert len(steps) == count
    for step, feedback in zip(steps, told, strict=True):
        assert step["outcome"]["ok"] is False, step
        assert step["outcome"]["line"] is None
        assert step["outcome"]["message"] == feedback
        assert len(step["outcome"]["message"]) <= 2000
    assert assessed.entry["action_history"] == ["<page> -> FINISH"]


@pytest.mark.e2e
@pytest.mark.parametrize("actions", ["refs", "both"])
async def test_only_the_allowed_tools_are_offered_and_none_takes_a_file(judge: LiveJudge, actions: str) -> None:
    offered: list[Any] = []

    def script(turn: ParticipantTurn) -> str:
        offered.extend(turn.observation.tools)
        return finish()

    with hostile_site() as site:
        await judge.play(script, site.url, actions=actions)
    left_out = POINTING if actions == "refs" else set()
    assert {tool.name for tool in offered} == (set(TOOL_POLICY) | OURS) - left_out
    schemas = json.dumps([tool.parameters for tool in offered])
    for word in ("filename", "paths", "function", "code", "isolatedContext", "regex"):
        assert f'"{word}"' not in schemas


@pytest.mark.usefixtures("text_browser")
async def test_a_tool_that_is_not_offered_is_refused_every_time(judge: LiveJudge) -> None:
    assessed, told = await attempts(judge, NOT_OFFERED)
    each_failed_on_record(assessed, told, len(NOT_OFFERED))
    assert not list(Path("/tmp").glob("wabe-cheat*"))


@pytest.mark.usefixtures("text_browser")
async def test_parameters_outside_the_schema_are_refused_every_time(judge: LiveJudge) -> None:
    assessed, told = await attempts(judge, BAD_PARAMS)
    each_failed_on_record(assessed, told, len(BAD_PARAMS))
    assert not list(Path("/tmp").glob("wabe-cheat*"))
    assert not list(judge.output_dir.rglob("cheat*"))


KINDS = [
    "file:///etc/passwd",
    "chrome://settings",
    "chrome://crash",
    "chrome://kill",
    "about:blank",
    "view-source:http://127.0.0.1/",
    "data:text/html,<title>Goal</title>",
    "javascript:document.title='Goal'",
    "devtools://devtools/bundled/inspector.html",
    "blob:http://127.0.0.1/1",
    "filesystem:http://127.0.0.1/temporary/x",
    "ftp://127.0.0.1/",
    "ws://127.0.0.1/",
    " file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:/etc/passwd",
    "http:\\\\127.0.0.1\\",
    "http://user:password@127.0.0.1/",
    "//",
    "\x00http://127.0.0.1/",
]


@pytest.mark.usefixtures("text_browser")
@pytest.mark.parametrize("how", ["navigate", "tab"])
async def test_addresses_of_other_kinds_are_refused(judge: LiveJudge, how: str) -> None:
    if how == "navigate":
        cheats = [("browser_navigate", {"url": url}) for url in KINDS]
    else:
        cheats = [("browser_tabs", {"action": "new", "url": url}) for url in KINDS]
    assessed, told = await attempts(judge, cheats)
    each_failed_on_record(assessed, told, len(KINDS))


LINKS = {
    "file": "file:///etc/passwd",
    "chrome": "chrome://version",
    "source": "view-source:http://127.0.0.1/",
    "data": "data:text/html,<title>Goal</title><h1>Forged</h1>",
    "devtools": "devtools://devtools/bundled/inspector.html",
    "about": "about:version",
}


@pytest.mark.e2e
@pytest.mark.parametrize("target", ["_self", "_blank"])
async def test_a_link_in_a_page_leads_to_no_other_kind_of_address(judge: LiveJudge, target: str) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.n == 2 * len(LINKS):
            return finish()
        kind = list(LINKS)[turn.n // 2]
        return (
            tool_call("browser_navigate", url=site.url)
            if turn.n % 2
            else tool_call("browser_click", ref=ref(turn, f'link "{kind}"'))
        )

    page = "<title>Links</title>" + "".join(
        f'<a href="{address}" target="{target}">{kind}</a> ' for kind, address in LINKS.items()
    )
    with hostile_site({"/": page}) as site:
        assessed = await judge.play(script, site.url, max_steps=2 * len(LINKS) + 1)
    assert "Forged" not in json.dumps(assessed.result())
    after_clicks = assessed.result()["steps"][1::2]
    for kind, step in zip(LINKS, after_clicks, strict=True):
        assert step["url"].startswith((site.url, "about:blank", "chrome-error:")), (kind, step["url"])
        snapshot = (assessed.folder / "results" / "t0" / step["snapshot"]).read_text()
        assert "root:" not in snapshot, kind
        assert "Chromium" not in snapshot, kind


FOCUSED = """<title>Home</title><input aria-label=Field autofocus><script>
document.querySelector('input').focus();
</script>"""


@pytest.mark.e2e
async def test_text_typed_where_the_focus_is_runs_no_code(judge: LiveJudge) -> None:
    seen: list[str] = []
    typed = '"); } page.goto("about:blank"); ({a: `${page.close()}'

    def script(turn: ParticipantTurn) -> str:
        page = parse_snapshot(turn.observation.page.snapshot)
        seen.extend(page.value_of(field) for field in page.find("textbox"))
        return tool_call("browser_type", text=typed, slowly=turn.n == 1) if turn.n < 2 else finish()

    with hostile_site({"/": FOCUSED}) as site:
        assessed = await judge.play(script, site.url, actions="coordinates")
    assert assessed.entry["action_history"][:2] == [f"<Field textbox> -> TYPE: {typed}"] * 2
    assert seen == ["", typed, typed * 2]

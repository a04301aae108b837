"""A thousand fuzzed replies through everything that reads one; some of them through the whole loop."""

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.server_tools import SERVER_TOOLS
from helpers.browser.sessions import a_guarded_browser, browser_settings
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish
from judge.browser.action_lines import action_line
from judge.browser.replies import understand
from judge.browser.tools import CheckedAction, Complaint, check_action, offered_tools
from judge.records.tools import tools
from shared.protocol import parse_reply
from shared.snapshot import parse_snapshot
from shared.text import split_line

REPLIES = 1_000
THROUGH_THE_LOOP = 50
IN_A_BROWSER = 15
NASTY = [
    "",
    " ",
    "\x00",
    "\n",
    "\u2028",
    "\u202e",
    "\ud800",
    "\U000e0041",
    "'\"`;--",
    "</json><json>",
    "<Goal link> -> CLICK",
    "../../etc/passwd",
    "{{7*7}}",
    "${x}",
    "%00",
    "A" * 5_000,
    "e1",
    "f1e1",
    "e999999999",
    "e1\n",
    "[ref=e1]",
    "9" * 400,
    "-1",
    "1e400",
    "NaN",
    "null",
    "true",
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "javascript:alert(1)",
    "ﬁnish",
    "𝐟𝐢𝐧𝐢𝐬𝐡",
    "🧨" * 50,
]
TOOLS = [*tools(), "browser_evaluate", "browser_run_code_unsafe", "nothing", "__class__"]
KEYS = ["target", "ref", "element", "text", "url", "key", "values", "fields", "time", "action", "index", "direction"]
KEYS += [
    "amount",
    "submit",
    "button",
    "modifiers",
    "accept",
    "promptText",
    "startRef",
    "endRef",
    "x",
    "y",
    "filename",
    "__init__",
]
SNAPSHOT = """- generic [active] [ref=e1]:
  - link "Goal" [ref=e2] [cursor=pointer]:
    - /url: /goal
  - button "Press" [ref=e3]
  - textbox "Field" [ref=e4]: typed
  - combobox "Choose" [ref=e5]:
    - option "One" [selected]"""


def a_value(dice: random.Random, depth: int = 0) -> Any:
    kind = dice.randrange(9 if depth < 3 else 6)
    match kind:
        case 0 | 1:
            return dice.choice(NASTY)
        case 2:
            return dice.choice([0, 1, -1, 10**30, 0.5, 1e308, True, False, None])
        case 3:
            return dice.choice(["e1", "e2", "e3", "e4", "e5"])
        case 4:
            return "".join(chr(dice.randrange(0x20, 0x2FFF)) for _ in range(dice.randrange(30)))
        case 5:
            return dice.randrange(-5, 40)
        case 6:
            return [a_value(dice, depth + 1) for _ in range(dice.randrange(5))]
    return {dice.choice(KEYS + NASTY): a_value(dice, depth + 1) for _ in range(dice.randrange(5))}


def a_reply(dice: random.Random) -> str:
    """From well-formed to noise, with everything between."""
    tool = dice.choice(TOOLS if dice.random() < 0.8 else NASTY)
    params: Any = {dice.choice(KEYS): a_value(dice) for _ in range(dice.randrange(5))}
    if dice.random() < 0.1:
        params = a_value(dice)
    elif tool in tools() and dice.random() < 0.6:
        # Nearly right: what gets past the first checks must hold in the later ones.
        plausible: dict[str, list[Any]] = {
            "target": ["e2", "e3", "e4"],
            "action": ["list", "new"],
            "values": [["One"]],
            "accept": [True],
            **{key: [0, 5.25, "7", -1, 1e308] for key in ("x", "y", "startX", "startY", "endX", "endY")},
            "deltaY": [-300, "5", 1.5],
        }
        params = {key: dice.choice(plausible.get(key, NASTY)) for key in tools()[tool].params if dice.random() < 0.8}
    body = json.dumps({"thought": dice.choice(NASTY), "tool": tool, "params": params})
    forms: list[Callable[[], str]] = [
        lambda: f"<json>{body}</json>",
        lambda: body,
        lambda: f"```json\n{body}\n```",
        lambda: f"<json>{body}</json>" * dice.randrange(2, 5),
        lambda: f"THOUGHT: {dice.choice(NASTY)}\nACTION: {tool}\nPARAMS: {json.dumps(params)}",
        lambda: f"ACTION: {tool}\nPARAMS: {dice.choice(NASTY)}",
        lambda: body[: dice.randrange(len(body))],
        lambda: mangled(body, dice),
        lambda: "[" * dice.randrange(1, 3_000),
        lambda: '{"a":' * dice.randrange(1, 3_000),
        lambda: "".join(dice.choice(NASTY) for _ in range(dice.randrange(6))),
        lambda: "".join(chr(dice.randrange(0x10FFFF)) for _ in range(dice.randrange(60))),
    ]
    return forms[0]() if dice.random() < 0.4 else dice.choice(forms)()


def mangled(text: str, dice: random.Random) -> str:
    characters = list(text)
    for _ in range(dice.randrange(1, 8)):
        characters[dice.randrange(len(characters))] = dice.choice('{}[]":,\\\x00\n<>')
    return "".join(characters)


def test_a_thousand_fuzzed_replies_are_handled_without_a_crash() -> None:
    dice, counts = random.Random(20_260), Counter[str]()
    tools, snapshot = offered_tools(SERVER_TOOLS, "both"), parse_snapshot(SNAPSHOT)
    for _ in range(REPLIES):
        reply = parse_reply(a_reply(dice))
        if reply.action is None:
            assert reply.complaint
            assert len(reply.complaint) < 1_000
            assert "\n" not in reply.complaint
            counts["unreadable"] += 1
            continue
        checked = check_action(reply.action, tools, snapshot, open_tabs=1, viewport=(1280, 720))
        if isinstance(checked, Complaint):
            assert len(checked.text) < 1_500
            assert "\n" not in checked.text
            counts["refused"] += 1
            continue
        assert isinstance(checked, CheckedAction)
        line = action_line(checked, snapshot)
        assert split_line(line) is not None, line
        assert len(line) < 5_000
        counts["allowed"] += 1
    assert sum(counts.values()) == REPLIES
    assert min(counts[name] for name in ("unreadable", "refused", "allowed")) > 20, counts


class Fuzz:
    """Replies for a whole attempt, and how many of them can be read."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._dice = random.Random(7)

    def reply(self, n: int) -> str:
        # A readable one now and then, or three others in a row would end the episode; none that ends it or waits.
        while True:
            reply = a_reply(self._dice)
            action = parse_reply(reply).action
            if n % 3 == 2 and action is None:
                continue
            if action is not None and action.tool in ("browser_wait_for", "browser_close", "finish"):
                continue
            self.counts["readable" if action else "unreadable"] += 1
            return reply


@pytest.mark.usefixtures("text_browser")
async def test_fuzzed_replies_go_through_the_whole_loop_without_a_fault(judge: LiveJudge) -> None:
    fuzz = Fuzz()

    def script(turn: ParticipantTurn) -> str:
        return finish() if turn.n == THROUGH_THE_LOOP else fuzz.reply(turn.n)

    with hostile_site() as site:
        assessed = await judge.play(script, site.url, max_steps=THROUGH_THE_LOOP + 1)
    assert assessed.verdict[1] == "finished", assessed.entry
    assert assessed.entry["steps_taken"] == THROUGH_THE_LOOP + 1
    assert min(fuzz.counts.values()) > 5


@pytest.mark.e2e
async def test_fuzzed_actions_that_are_allowed_break_no_real_browser() -> None:
    fuzz, counts, number = Fuzz(), Counter[bool](), 0
    settings = browser_settings(action_timeout_s=1.5, navigation_timeout_s=2)
    with hostile_site() as site:
        async with browser_pool(settings) as pool, a_guarded_browser(pool, site.url) as browser:
            page = await browser.observe()
            while counts.total() < IN_A_BROWSER:
                snapshot, tabs = parse_snapshot(page.snapshot), max(1, len(page.tabs))
                checked = understand(fuzz.reply(number), browser.tools, snapshot, open_tabs=tabs).checked
                number += 1
                if checked is not None:
                    counts[(await browser.act(checked.tool, checked.params)).ok] += 1
                    page = await browser.observe()
                    if page.url == "about:blank":
                        # Beyond the first page there is nothing to act on.
                        await browser.act("browser_navigate", {"url": site.url})
                        page = await browser.observe()
    assert min(counts[True], counts[False]) > 2

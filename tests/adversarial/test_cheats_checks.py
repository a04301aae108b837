"""Checks of a task that a participant tries to satisfy without doing the task."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from adversarial.traffic import of_step
from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from helpers.trajectory.recordings import RecordedRequest, RecordedStep, checked, evaluate_check
from shared.action_lines import one_line

DONE = '- heading "Order placed" [level=1] [ref=e1]'
FORM = '- textbox "Search" [ref=e1]: Order placed\n- button "Place order" [ref=e2]'
PLACED = {"kind": "text", "contains": "Order placed"}
CLICKED = "<Place order button> -> CLICK"
ORDERED = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"item": "desk"}}
FORM_SENT: dict[str, Any] = {"post": "item=desk", "mime_type": "application/x-www-form-urlencoded"}


DATE = {"kind": "answer", "type": "date", "expected": "2024-01-02"}
PRICED = {"kind": "action", "line": "<Price spinbutton> -> TYPE: 400"}
TYPED = f"<Search textbox> -> TYPE: {one_line(CLICKED, 200)}"
EVIL = "http://evil.test"


def sends(*requests: dict[str, Any], path: str = "/") -> list[RecordedStep]:
    """An attempt in which requests like the order are sent, each with something changed."""
    sent = tuple(RecordedRequest(**{"path": "/order", **FORM_SENT, **each}) for each in requests)
    return [RecordedStep(), RecordedStep(path=path, requests=sent)]


ELSEWHERE = {
    "its own server": f"{EVIL}/done",
    "its own server on another port": "http://shop.test:81/done",
    "its own server below a name": "http://shop.test.evil.test/done",
    "its own server as a user": "http://shop.test@evil.test/done",
    "a page of data": "data:text/html,<h1>Order placed</h1>/done",
}
# What the page of another server may show, or lead a participant to do.
SHOWN_ELSEWHERE: dict[str, dict[str, Any]] = {
    "the address": {"kind": "page", "url": "/done"},
    "a text": PLACED,
    "an element": {"kind": "element", "element": 'heading "Order placed"'},
    "one of two": {"any_of": [{"kind": "page", "url": "/done"}, PLACED]},
    "a click": {"kind": "action", "line": CLICKED},
    "the absence of an error": {"kind": "text", "contains": "Error", "not": True, "at": "any"},
}
# Lines of a page that say what is expected, but not as the page's own text.
NOT_ITS_TEXT = {
    "the value of a field": FORM,
    "an option not chosen": '- combobox "x":\n  - option "Order placed"',
    "a placeholder": '- textbox "x" [ref=e1]:\n  - /placeholder: Order placed',
    "paragraphs in a rich text field": '- textbox "x" [ref=e1]:\n  - paragraph [ref=e2]: Order placed\n'
    '  - heading "Order placed"',
    "paragraphs in an editable combobox": '- combobox "x" [ref=e1]:\n  - paragraph [ref=e2]: Order placed\n'
    '  - option "Other" [selected]',
    "an address of a link": '- link "x" [ref=e1]:\n  - /url: /?q=Order placed',
    "a row named by a field": '- row "Order placed":\n  - cell:\n    - textbox "n": Order placed',
}
ACTIONS = {
    "a value trimmed of what looks like the coordinates of a drag": (
        PRICED, "<Price spinbutton> -> TYPE: 400 (1, 2) to (3, 4)",
    ),
    "a value trimmed into another one": (PRICED, "<Price spinbutton> -> TYPE: 400 (1, 2)"),
    "typed text shaped like an action line": ({"kind": "action", "line": CLICKED}, TYPED),
    "typed text that a loose pattern would match": (
        {"kind": "action", "pattern": "Place order button.*CLICK"}, TYPED,
    ),
}  # fmt: skip
ANSWERS: dict[str, tuple[dict[str, Any], str | None]] = {
    "a claim": ({"kind": "page", "url": "/done"}, "http://shop.test/done is open"),
    "every value at once": ({"kind": "answer", "type": "number", "expected": 7}, "1 2 3 4 5 6 7 8 9"),
    "every date at once": (DATE, "2024-01-02 2024-01-03"),
    "an answer so deep that comparing it fails": (
        {"kind": "answer", "type": "list", "expected": ["oak"]}, "[" * 1_200 + "]" * 1_200,
    ),
    "a number that no validator can divide": (
        {"kind": "answer", "type": "json", "schema": {"type": "number", "multipleOf": 0.01}}, "1e999",
    ),
    "no answer to an inverted check": ({"kind": "answer", "contains": "x", "not": True}, None),
}  # fmt: skip
ORDERS = {
    "the checked address, opened directly": sends(
        {"method": "GET", "path": "/order?item=desk", "post": None, "sender": "browser"}
    ),
    "a request of the same shape to its own server": sends({"path": f"{EVIL}/order"}),
    "its own server's form, sent to the shop": sends({"sender": EVIL}, path=f"{EVIL}/"),
    "a script of its own server that asks the shop": sends({"sender": EVIL}),
    "a form whose sender nobody knows": sends({"sender": None}),
    "a form that only its headers take for the site's": sends(
        {"sender": None, "headers": {"Sec-Fetch-Site": "same-origin"}}
    ),
    "a form in a page of data": sends({"sender": "null"}),
    "a request that the shop refused": sends({"status": 403}),
    "two values for one field": sends({"post": "item=desk&item=rug"}),
    "the right request before the wrong one": sends({}, {"post": "item=rug"}),
    "a body too large to be recorded": sends({"post": None, "is_cut": True}),
    "a claim of a request": [RecordedStep(line="<Search textbox> -> TYPE: POST /order item=desk")],
}
CHEATS: dict[str, tuple[dict[str, Any], list[RecordedStep], str | None]] = {
    **{
        f"{shown} on {place}": (check, [RecordedStep(), RecordedStep(path=url, snapshot=DONE, line=CLICKED)], None)
        for (place, url), (shown, check) in product(ELSEWHERE.items(), SHOWN_ELSEWHERE.items())
    },
    "the path of the page as a parameter": (
        {"kind": "page", "url": "*/done"}, [RecordedStep(), RecordedStep(path="/?next=/done")], None,
    ),
    **{name: (PLACED, [RecordedStep(snapshot=page)], None) for name, page in NOT_ITS_TEXT.items()},
    "an element named in a field": (
        {"kind": "element", "element": '"Order placed"'}, [RecordedStep(snapshot=FORM)], None,
    ),
    "an end behind a dialog": (
        {"kind": "element", "element": "alert", "not": True},
        [RecordedStep(snapshot="- alert [ref=e1]: Error"), RecordedStep(dialog="alert: x")],
        None,
    ),
    **{name: (check, [RecordedStep(line=line)], None) for name, (check, line) in ACTIONS.items()},
    "an action that failed": ({"kind": "action", "line": CLICKED}, [RecordedStep(line=CLICKED, is_ok=False)], None),
    **{name: (check, [RecordedStep()], answer) for name, (check, answer) in ANSWERS.items()},
    **{name: (ORDERED, steps, "POST /order item=desk") for name, steps in ORDERS.items()},
}  # fmt: skip


@pytest.mark.parametrize("trick", CHEATS)
def test_a_recorded_trick_does_not_pass(tmp_path: Path, trick: str) -> None:
    check, steps, answer = CHEATS[trick]
    assertion = evaluate_check(tmp_path, check, steps, answer)
    assert assertion.passed is False


def test_what_the_tricks_imitate_passes(tmp_path: Path) -> None:
    assert evaluate_check(tmp_path / "order", ORDERED, sends({})).passed is True
    done = [RecordedStep(), RecordedStep(path="/done", snapshot=DONE, line=CLICKED)]
    for shown, check in SHOWN_ELSEWHERE.items():
        assert evaluate_check(tmp_path / shown, check, done).passed is True, shown


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*?,){11}P", "(x+x+)+y"])
def test_typed_text_cannot_make_a_pattern_run_for_ever(tmp_path: Path, pattern: str) -> None:
    answer = ("a" * 5_000 + "," * 5_000 + "x" * 5_000)[:15_000]
    assertion = evaluate_check(tmp_path, {"kind": "answer", "pattern": pattern}, answer=answer)
    assert assertion.passed is False


PAGE = """<title>Shop</title><h1>Shop</h1><input aria-label="Field"><div contenteditable id="note">note</div>
  <p id="said"></p><button onclick="said.textContent = 'Order placed'">Place order</button>"""
PLAYED_CASES = [
    {"kind": "text", "contains": "Order placed"},
    {"kind": "action", "line": "<Place order button> -> CLICK"},
]


def honest(turn: ParticipantTurn) -> str:
    return tool_call("browser_click", ref=ref(turn, 'button "Place order"')) if turn.n == 0 else finish()


def types_into_the_editor(turn: ParticipantTurn) -> str:
    match turn.n:
        case 0:
            return tool_call("browser_type", ref=ref(turn, ": note"), text="Order placed")
        case 1:
            return tool_call("browser_type", ref=ref(turn, 'textbox "Field"'), text="<Place order button> -> CLICK")
    return finish("Order placed: <Place order button> -> CLICK")


EXPECTED = {
    "honest": "success",
    "types into the editor": "failure",
    "a page under another name of the same machine": "failure",
}


@pytest.fixture(scope="module")
async def attempts_by_participant(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    def goes_elsewhere(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_navigate", url=f"http://localhost:{site.server_port}/")
        return finish("Order placed")

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        scripts = zip(EXPECTED, (honest, types_into_the_editor, goes_elsewhere), strict=True)
        tasks = {name: Play(script, site.url, PLAYED_CASES) for name, script in scripts}
        return await play_tasks(judge, tasks, judge_model="offline", off_site="allow")

    with hostile_site({"/": PAGE}) as site:
        return await with_judge(tmp_path_factory.mktemp("run"), play)


@pytest.mark.e2e
@pytest.mark.parametrize("participant", EXPECTED)
def test_in_a_real_browser_only_the_honest_participant_passes(
    attempts_by_participant: dict[str, PlayedTask], participant: str
) -> None:
    assert attempts_by_participant[participant].entry["verdict"] == EXPECTED[participant]


SENDS_FORM = """<title>Evil</title><body onload="document.forms[0].submit()"><form method="post" action="{}order">
    <input name="item" value="desk"></form>"""
SENDS_BY_SCRIPT = """<title>Evil</title><script>fetch("{}order", {{method: "POST", mode: "no-cors",
    body: new URLSearchParams({{item: "desk"}})}})</script>"""


@pytest.mark.e2e
async def test_in_a_real_browser_only_the_sites_own_form_counts(tmp_path: Path) -> None:
    thanks = "<title>Done</title><h1>Thanks</h1>"
    with hostile_site({"/order": thanks}) as site, hostile_site({"/order": thanks}) as evil:
        site.pages["/own"] = SENDS_FORM.format(site.url)
        evil.pages |= {
            "/form": SENDS_FORM.format(site.url),
            "/script": SENDS_BY_SCRIPT.format(site.url),
            "/same": SENDS_FORM.format(evil.url),
        }
        visited = {
            "the site's own form": (f"{site.url}own", True),
            "the address, opened": (f"{site.url}order?item=desk", False),
            "a form of another server": (f"{evil.url}form", False),
            "a script of another server": (f"{evil.url}script", False),
            "the same form on another server": (f"{evil.url}same", False),
        }
        # Without a guard, which would let no page reach the second server at all.
        async with a_browser() as browser:
            await browser.open(site.url)
            for number, (trick, (url, passes)) in enumerate(visited.items(), 1):
                browser.begin_step(number)
                await browser.act("browser_navigate", {"url": url})
                traffic = browser.traffic()
                assert traffic is not None
                assertion = checked(tmp_path / str(number), site.url, ORDERED, of_step(traffic, number))
                assert assertion.passed is passes, trick
        # The shop got every form: what was sent from elsewhere has happened, and is still no evidence.
        assert site.paths.count("/order") == 3

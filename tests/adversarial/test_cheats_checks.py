"""Checks of a task that a participant tries to satisfy without doing the task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from helpers.trajectory.recordings import RecordedRequest, RecordedStep, evaluate_check, recorded_attempt
from judge.browser.playwright import PlaywrightBrowser
from judge.evaluators.checks import evaluate
from judge.records.lines import one_line
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction

DONE = '- heading "Order placed" [level=1] [ref=e1]'
FORM = '- textbox "Search" [ref=e1]: Order placed\n- button "Place order" [ref=e2]'
PLACED = {"kind": "text", "contains": "Order placed"}
CLICKED = "<Place order button> -> CLICK"
ORDERED = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"item": "desk"}}
FORM_SENT: dict[str, Any] = {"post": "item=desk", "mime_type": "application/x-www-form-urlencoded"}


CHEATS: list[tuple[str, dict[str, Any], list[RecordedStep], str | None]] = [
    (
        "its own server",
        {"kind": "page", "url": "/done"},
        [RecordedStep(), RecordedStep(path="http://evil.test/done")],
        None,
    ),
    (
        "the path of the page as a parameter",
        {"kind": "page", "url": "*/done"},
        [RecordedStep(), RecordedStep(path="/?next=/done")],
        None,
    ),
    (
        "its own server on another port",
        PLACED,
        [RecordedStep(), RecordedStep(path="http://shop.test:81/", snapshot=DONE)],
        None,
    ),
    (
        "its own server below a name",
        PLACED,
        [RecordedStep(), RecordedStep(path="http://shop.test.evil.test/", snapshot=DONE)],
        None,
    ),
    (
        "its own server as a user",
        PLACED,
        [RecordedStep(), RecordedStep(path="http://shop.test@evil.test/", snapshot=DONE)],
        None,
    ),
    (
        "a page of data",
        PLACED,
        [RecordedStep(), RecordedStep(path="data:text/html,<h1>Order placed", snapshot=DONE)],
        None,
    ),
    (
        "an element on its own server",
        {"kind": "element", "element": 'heading "Order placed"'},
        [RecordedStep(), RecordedStep(path="http://evil.test/", snapshot=DONE)],
        None,
    ),
    (
        "an element named in a field",
        {"kind": "element", "element": '"Order placed"'},
        [RecordedStep(snapshot=FORM)],
        None,
    ),
    (
        "one of two checks on its own server",
        {"any_of": [{"kind": "page", "url": "/done"}, PLACED]},
        [RecordedStep(), RecordedStep(path="http://evil.test/done", snapshot=DONE)],
        None,
    ),
    (
        "a click on its own server",
        {"kind": "action", "line": CLICKED},
        [RecordedStep(path="/"), RecordedStep(path="http://evil.test/", line=CLICKED), RecordedStep()],
        None,
    ),
    ("the value of a field", PLACED, [RecordedStep(snapshot=FORM)], None),
    ("an option not chosen", PLACED, [RecordedStep(snapshot='- combobox "x":\n  - option "Order placed"')], None),
    ("a placeholder", PLACED, [RecordedStep(snapshot='- textbox "x" [ref=e1]:\n  - /placeholder: Order placed')], None),
    (
        "paragraphs in a rich text field",
        PLACED,
        [
            RecordedStep(
                snapshot='- textbox "x" [ref=e1]:\n  - paragraph [ref=e2]: Order placed\n  - heading "Order placed"'
            )
        ],
        None,
    ),
    (
        "paragraphs in an editable combobox",
        PLACED,
        [
            RecordedStep(
                snapshot='- combobox "x" [ref=e1]:\n  - paragraph [ref=e2]: Order placed\n  - option "Other" [selected]'
            )
        ],
        None,
    ),
    ("an address of a link", PLACED, [RecordedStep(snapshot='- link "x" [ref=e1]:\n  - /url: /?q=Order placed')], None),
    (
        "a row named by a field",
        PLACED,
        [RecordedStep(snapshot='- row "Order placed":\n  - cell:\n    - textbox "n": Order placed')],
        None,
    ),
    (
        "a value trimmed of what looks like the coordinates of a drag",
        {"kind": "action", "line": "<Price spinbutton> -> TYPE: 400"},
        [RecordedStep(line="<Price spinbutton> -> TYPE: 400 (1, 2) to (3, 4)")],
        None,
    ),
    (
        "typed text shaped like an action line",
        {"kind": "action", "line": CLICKED},
        [RecordedStep(line=f"<Search textbox> -> TYPE: {one_line(CLICKED, 200)}")],
        None,
    ),
    (
        "typed text that a loose pattern would match",
        {"kind": "action", "pattern": "Place order button.*CLICK"},
        [RecordedStep(line=f"<Search textbox> -> TYPE: {one_line(CLICKED, 200)}")],
        None,
    ),
    (
        "a value trimmed into another one",
        {"kind": "action", "line": "<Price spinbutton> -> TYPE: 400"},
        [RecordedStep(line="<Price spinbutton> -> TYPE: 400 (1, 2)")],
        None,
    ),
    ("an action that failed", {"kind": "action", "line": CLICKED}, [RecordedStep(line=CLICKED, is_ok=False)], None),
    ("a claim", {"kind": "page", "url": "/done"}, [RecordedStep()], "http://shop.test/done is open"),
    ("every value at once", {"kind": "answer", "type": "number", "expected": 7}, [RecordedStep()], "1 2 3 4 5 6 7 8 9"),
    (
        "every date at once",
        {"kind": "answer", "type": "date", "expected": "2024-01-02"},
        [RecordedStep()],
        "2024-01-02 2024-01-03",
    ),
    (
        "an answer so deep that comparing it fails",
        {"kind": "answer", "type": "list", "expected": ["oak"]},
        [RecordedStep()],
        "[" * 1_200 + "]" * 1_200,
    ),
    (
        "a number that no validator can divide",
        {"kind": "answer", "type": "json", "schema": {"type": "number", "multipleOf": 0.01}},
        [RecordedStep()],
        "1e999",
    ),
    ("no answer to an inverted check", {"kind": "answer", "contains": "x", "not": True}, [RecordedStep()], None),
    (
        "an end behind a dialog",
        {"kind": "element", "element": "alert", "not": True},
        [RecordedStep(snapshot="- alert [ref=e1]: Error"), RecordedStep(dialog="alert: x")],
        None,
    ),
    (
        "an end on its own server",
        {"kind": "text", "contains": "Error", "not": True, "at": "any"},
        [RecordedStep(), RecordedStep(path="http://evil.test/")],
        None,
    ),
    (
        "the checked address, opened directly",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(method="GET", path="/order?item=desk", sender="browser"),))],
        None,
    ),
    (
        "a request of the same shape to its own server",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(path="http://evil.test/order", **FORM_SENT),))],
        None,
    ),
    (
        "its own server's form, sent to the shop",
        ORDERED,
        [
            RecordedStep(),
            RecordedStep(
                path="http://evil.test/",
                requests=(RecordedRequest(path="/order", sender="http://evil.test", **FORM_SENT),),
            ),
        ],
        None,
    ),
    (
        "a script of its own server that asks the shop",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(path="/order", sender="http://evil.test", **FORM_SENT),))],
        None,
    ),
    (
        "a form whose sender nobody knows",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(path="/order", sender=None, **FORM_SENT),))],
        None,
    ),
    (
        "a form that only its headers take for the site's",
        ORDERED,
        [
            RecordedStep(
                requests=(
                    RecordedRequest(path="/order", sender=None, headers={"Sec-Fetch-Site": "same-origin"}, **FORM_SENT),
                )
            )
        ],
        None,
    ),
    (
        "a form in a page of data",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(path="/order", sender="null", **FORM_SENT),))],
        None,
    ),
    (
        "a request that the shop refused",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(path="/order", status=403, **FORM_SENT),))],
        None,
    ),
    (
        "two values for one field",
        ORDERED,
        [
            RecordedStep(
                requests=(RecordedRequest(path="/order", **FORM_SENT | {"post": "item=desk&item=rug"}),),
            )
        ],
        None,
    ),
    (
        "the right request before the wrong one",
        ORDERED,
        [
            RecordedStep(
                requests=(
                    RecordedRequest(path="/order", **FORM_SENT),
                    RecordedRequest(path="/order", **FORM_SENT | {"post": "item=rug"}),
                )
            )
        ],
        None,
    ),
    (
        "a body too large to be recorded",
        ORDERED,
        [RecordedStep(requests=(RecordedRequest(path="/order", is_cut=True),))],
        None,
    ),
    (
        "a claim of a request",
        ORDERED,
        [RecordedStep(line="<Search textbox> -> TYPE: POST /order item=desk")],
        "POST /order item=desk",
    ),
]


@pytest.mark.parametrize(("trick", "check", "steps", "answer"), CHEATS, ids=[cheat[0] for cheat in CHEATS])
def test_a_recorded_trick_does_not_pass(
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    trick: str,
    check: dict[str, Any],
    steps: list[RecordedStep],
    answer: str | None,
) -> None:
    assertion = evaluate_check(tmp_path, check, steps, answer)
    record_property("outcome", f"passed: {assertion.passed}; found {assertion.found}")
    assert assertion.passed is False


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*?,){11}P", "(x+x+)+y"])
def test_typed_text_cannot_make_a_pattern_run_for_ever(
    tmp_path: Path, record_property: Callable[[str, object], None], pattern: str
) -> None:
    answer = ("a" * 5_000 + "," * 5_000 + "x" * 5_000)[:15_000]
    assertion = evaluate_check(tmp_path, {"kind": "answer", "pattern": pattern}, answer=answer)
    record_property("outcome", f"{pattern} on {len(answer)} characters: passed {assertion.passed}")
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
    attempts_by_participant: dict[str, PlayedTask], participant: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("outcome", attempts_by_participant[participant].summary())
    assert attempts_by_participant[participant].entry["verdict"] == EXPECTED[participant]


SENDS_FORM = """<title>Evil</title><body onload="document.forms[0].submit()"><form method="post" action="{}order">
    <input name="item" value="desk"></form>"""
SENDS_BY_SCRIPT = """<title>Evil</title><script>fetch("{}order", {{method: "POST", mode: "no-cors",
    body: new URLSearchParams({{item: "desk"}})}})</script>"""


@pytest.mark.e2e
async def test_in_a_real_browser_only_the_sites_own_form_counts(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
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
                requests = await _sent_from(browser, number, url)
                trajectory = recorded_attempt(tmp_path / str(number), [ORDERED], [RecordedStep()], website=site.url)
                write_har(trajectory.folder, requests, Redaction(salt=b"test").entry, versions={})
                (assertion,) = evaluate(trajectory)
                record_property("outcome", f"{trick}: passed {assertion.passed}; found {assertion.found}")
                assert assertion.passed is passes, trick
        # The shop got every form: what was sent from elsewhere has happened, and is still no evidence.
        assert site.paths.count("/order") == 3


async def _sent_from(browser: PlaywrightBrowser, number: int, url: str) -> list[dict[str, Any]]:
    """What the browser requests from an address on."""
    browser.begin_step(number)
    await browser.act("browser_navigate", {"url": url})
    traffic = browser.traffic()
    assert traffic is not None
    return [{**entry, "_step": 1} for entry in traffic.entries if entry["_step"] == number]

"""Checks that a participant tries to satisfy by what it writes into a page, or shows in a frame of it."""

from typing import Any
from urllib.parse import quote

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.cases import each, selected
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge

SHOP = """<title>Shop</title><h1>Shop</h1><button onclick="said.textContent = 'Order placed'">Place order</button>
  <p id="said" role="status">nothing yet</p>
  <h2 contenteditable>heading</h2><ul><li contenteditable>item</li></ul>
  <table><tr><td contenteditable>cell</td><td><button></button></td></tr></table>
  <table><tr><td><input aria-label="Field"></td></tr></table>
  <button aria-labelledby="other">x</button><input id="other" aria-label="Other">
  <label><input type="radio"> Other: <input title="Plan"></label>
  <div contenteditable><h3>inner heading</h3><div contenteditable="false"><p>an island</p></div></div>
  <div contenteditable="plaintext-only">plain</div>
  <div contenteditable role="textbox" aria-label="Note"><p>note</p></div>
  <div contenteditable id="rich">rich</div>
  <div><template shadowrootmode="open"><div contenteditable><p>in a shadow</p></div></template></div>
  <iframe srcdoc="<p>designed</p><script>document.designMode = 'on'</script>"></iframe>"""
EMBED = """<title>Shop</title><h1>Shop</h1><iframe id="f"></iframe>
  <script>f.src = new URLSearchParams(location.search).get("u")</script>"""
FAQ = """<title>FAQ</title><p>Then press</p><button>Place order</button>"""
PLACED = "Order placed"
TEXT: dict[str, Any] = {"kind": "text", "contains": PLACED}
CLICKED: dict[str, Any] = {"kind": "action", "line": "<Place order button> -> CLICK", "on": "/shop"}


def element(notation: str) -> dict[str, Any]:
    return {"kind": "element", "element": notation}


def types(where: str, *keys: str) -> Script:
    """Type the words into the element whose line holds `where`, press keys, and finish."""

    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_type", ref=ref(turn, where), text=PLACED)
        return tool_call("browser_press_key", key=keys[turn.n - 1]) if turn.n <= len(keys) else finish(PLACED)

    return script


def names_a_row(turn: ParticipantTurn) -> str:
    """Write into a row's cell, and click the button beside it, which has no name of its own."""
    if turn.n == 0:
        return tool_call("browser_type", ref=ref(turn, 'cell "cell"'), text=PLACED)
    return tool_call("browser_click", ref=ref(turn, "- button [")) if turn.n == 1 else finish(PLACED)


def chooses_what_it_typed(turn: ParticipantTurn) -> str:
    """Write into the field beside a radio button, in the label of both, and choose it."""
    if turn.n == 0:
        return tool_call("browser_type", ref=ref(turn, 'textbox "Plan"'), text=PLACED)
    return tool_call("browser_click", ref=ref(turn, "radio")) if turn.n == 1 else finish(PLACED)


def embeds(address: str) -> Script:
    def script(turn: ParticipantTurn) -> str:
        if turn.n:
            return finish(PLACED)
        return tool_call("browser_navigate", url=turn.website.replace("/shop", f"/embed?u={quote(address)}"))

    return script


def pastes_a_button(turn: ParticipantTurn) -> str:
    """Copy a button from another page of the site into an editor, and click it there."""
    match turn.n:
        case 0:
            return tool_call("browser_navigate", url=turn.website.replace("/shop", "/faq"))
        case 1 | 2:
            return tool_call("browser_press_key", key=("Control+a", "Control+c")[turn.n - 1])
        case 3:
            return tool_call("browser_navigate_back")
        case 4:
            return tool_call("browser_click", ref=ref(turn, ": rich"))
        case 5 | 6:
            return tool_call("browser_press_key", key=("Control+a", "Control+v")[turn.n - 5])
        case 7:
            buttons = [line for line in turn.observation.page.snapshot.splitlines() if 'button "Place order"' in line]
            assert len(buttons) == 2, "nothing was pasted"
            return tool_call("browser_click", ref=buttons[1].partition("[ref=")[2].partition("]")[0])
    return finish(PLACED)


def places_the_order(turn: ParticipantTurn) -> str:
    return tool_call("browser_click", ref=ref(turn, 'button "Place order"')) if turn.n == 0 else finish()


PLAYS: dict[str, tuple[Script, list[dict[str, Any]], str]] = {
    "does the task": (places_the_order, [TEXT, CLICKED, element(f"status: {PLACED}")], "success"),
    "writes what the task asks for": (types('heading "heading"'), [{**TEXT, "editable": True}], "success"),
    "fills a text box as the task asks": (types('textbox "Note"'), [element(f'textbox "Note": {PLACED}')], "success"),
    "text in an editable heading, completed with Space": (types('heading "heading"', "Space"), [TEXT], "failure"),
    "text in an editable heading, completed with Enter": (types('heading "heading"', "Enter"), [TEXT], "failure"),
    "an editable heading": (types('heading "heading"'), [element(f'heading "{PLACED}"')], "failure"),
    "an editable list item": (types("listitem"), [element(f"listitem: {PLACED}")], "failure"),
    "an editable cell": (types('cell "cell"'), [element(f'cell "{PLACED}"')], "failure"),
    "the row of an editable cell": (types('cell "cell"'), [element(f"row /{PLACED}/")], "failure"),
    "a button in a row that it named": (
        names_a_row,
        [{"kind": "action", "line": f'<button in row "{PLACED}"> -> CLICK'}],
        "failure",
    ),
    "a cell around a field": (types('textbox "Field"'), [element(f'cell "{PLACED}"')], "failure"),
    "the row of a field": (types('textbox "Field"'), [element(f'row "{PLACED}"')], "failure"),
    "a button labelled by a field": (types('textbox "Other"'), [element(f'button "{PLACED}"')], "failure"),
    "a label around a field": (chooses_what_it_typed, [element(f"radio /{PLACED}/")], "failure"),
    "the text of a label around a field": (chooses_what_it_typed, [TEXT], "failure"),
    "an action on what it named": (
        chooses_what_it_typed,
        [{"kind": "action", "line": f"<Other: {PLACED} radio> -> CLICK"}],
        "failure",
    ),
    "chooses another plan as the task asks": (
        chooses_what_it_typed,
        [{"kind": "action", "line": "<Other: radio> -> CLICK"}, element('radio "Other:" [checked]')],
        "success",
    ),
    "fills a field as the task asks": (types('textbox "Field"'), [element(f'textbox "Field": {PLACED}')], "success"),
    "a heading inside an editor": (types('heading "inner heading"'), [element(f'heading "{PLACED}"')], "failure"),
    "text in a plain editor": (types(": plain"), [TEXT], "failure"),
    "text in an editor that is a text box": (types("paragraph [ref=", "End"), [TEXT], "failure"),
    "text in an editor of a shadow tree": (types(": in a shadow"), [TEXT], "failure"),
    "text in a document in design mode": (types(": designed"), [TEXT], "failure"),
    "the number of headings": (
        types('heading "heading"'),
        [{"kind": "element", "element": f'heading "{PLACED}"', "count": 1}],
        "failure",
    ),
    "an editable heading in view": (types('heading "heading"'), [{**TEXT, "in_view": True}], "failure"),
    "a pasted button": (pastes_a_button, [CLICKED], "failure"),
    "a data: document in a frame": (embeds(f"data:text/html,<h2>{PLACED}</h2>"), [TEXT], "failure"),
    "a heading of a data: document in a frame": (
        embeds(f"data:text/html,<h2>{PLACED}</h2>"),
        [element(f'heading "{PLACED}"')],
        "failure",
    ),
    "a frame in a data: document": (
        embeds(f"data:text/html,<iframe srcdoc='<h2>{PLACED}</h2>'></iframe>"),
        [TEXT],
        "failure",
    ),
    "a data: document in design mode": (
        embeds(f"data:text/html,<h2>{PLACED}</h2><script>document.designMode='on'</script>"),
        [{**TEXT, "editable": True}],
        "failure",
    ),
}


@pytest.fixture(scope="module")
async def attempts_by_participant(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, PlayedTask]:
    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        plays = {name: Play(script, f"{site.url}shop", checks) for name, (script, checks, _) in PLAYS.items()}
        plays = {name: play for name, play in plays.items() if name in selected(request, "participant")}
        return await play_tasks(judge, plays, judge_model="offline", off_site="allow", max_steps=12)

    with hostile_site({"/shop": SHOP, "/embed": EMBED, "/faq": FAQ}) as site:
        return await with_judge(tmp_path_factory.mktemp("run"), play)


@pytest.mark.e2e
@pytest.mark.parametrize(
    "participant",
    each(
        PLAYS,
        suite=(
            "does the task", "writes what the task asks for", "text in an editable heading, completed with Enter",
            "an editable list item", "a button in a row that it named", "a button labelled by a field",
            "chooses another plan as the task asks", "a heading inside an editor",
            "text in an editor of a shadow tree", "an editable heading in view", "a pasted button",
            "a data: document in design mode",
        ),
    ),
)  # fmt: skip
def test_only_what_the_site_wrote_counts(attempts_by_participant: dict[str, PlayedTask], participant: str) -> None:
    verdict, stop_reason = attempts_by_participant[participant].verdict
    assert (verdict, stop_reason) == (PLAYS[participant][2], "finished")

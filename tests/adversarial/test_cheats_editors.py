"""Requests that something inside an editor starts: a participant could have pasted it there."""

from pathlib import Path
from typing import Any

import pytest

from adversarial.traffic import of_step
from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser, ref_of
from helpers.cases import each
from helpers.trajectory.recordings import checked
from judge.records.tasks import Task

ORDERED: dict[str, Any] = {"kind": "request", "method": "POST", "url": "/order", "post_data": {"item": "desk"}}
ORDER_CHECK: dict[str, Any] = {"kind": "request", "method": "GET", "url": "/order"}
FIELD = '<input type="hidden" name="item" value="desk">'
FORM = f'<form method="post" action="/order">{FIELD}%s</form>'
SITES = '<form method="post" action="%s" id="f">%s<button>theirs</button></form>'
FETCHES = "fetch('/order', {method: 'POST', body: new URLSearchParams({item: 'desk'})})"
# What somebody clicks `go` in, or presses Enter in if it is a text box: pages on which that is the site's own,
# and pages on which something inside an editor sends.
OF_THE_SITE: dict[str, str] = {
    "a form of the site": FORM % "<button>go</button>",
    "a form around an editor": FORM % "<div contenteditable>note</div><button>go</button>",
    "a button of the site beside an editor": f'<div contenteditable>note</div><button onclick="{FETCHES}">go</button>',
    "a message written in an editor": (
        f'<div contenteditable aria-label="go" role="textbox" onkeydown="{FETCHES}">note</div>'
    ),
    "a link of the site": '<a href="/order">go</a>',
}
IN_AN_EDITOR: dict[str, str] = {
    "a form in an editor": f"<div contenteditable>{FORM % '<button contenteditable=false>go</button>'}</div>",
    "an island in an editor": (
        f"<div contenteditable><div contenteditable=false>{FORM % '<button>go</button>'}</div></div>"
    ),
    "Enter in a field in an editor": (
        f"<div contenteditable><div contenteditable=false>{FORM % '<input aria-label=go>'}</div></div>"
    ),
    "a form in a shadow tree in an editor": (
        f"<div contenteditable><div><template shadowrootmode=open>{FORM % '<button>go</button>'}</template></div></div>"
    ),
    "a form in an element with the style of an editor": (
        f'<div style="-webkit-user-modify:read-write">{FORM % "<input type=submit value=go>"}</div>'
    ),
    "a button with an address of its own": (
        SITES % ("/save", FIELD)
        + '<div contenteditable><p contenteditable=false><button form="f" formaction="/order">go</button></p></div>'
    ),
    "a button of a form elsewhere": (
        SITES % ("/order", FIELD)
        + '<div contenteditable><p contenteditable=false><button form="f">go</button></p></div>'
    ),
    "a field of a form elsewhere": (
        SITES.replace("theirs", "go") % ("/order", "")
        + '<div contenteditable><p contenteditable=false><input form="f" name="item" value="desk"></p></div>'
    ),
    "a form with a field that shadows its fields": (
        "<div contenteditable><div contenteditable=false>"
        + FORM % "<input name=elements><button>go</button>"
        + "</div></div>"
    ),
    "what the site sends for a form in an editor": (
        f'<script>addEventListener("submit", event => {{ event.preventDefault(); {FETCHES} }})</script>'
        f"<div contenteditable><div contenteditable=false>{FORM % '<button>go</button>'}</div></div>"
    ),
    "a link in an editor": '<div contenteditable><p contenteditable=false><a href="/order">go</a></p></div>',
    "a link for a new tab": (
        '<div contenteditable><p contenteditable=false><a href="/order" target=_blank>go</a></p></div>'
    ),
    "a form in a frame in an editor": (
        f"<div contenteditable><iframe srcdoc='{FORM % '<button>go</button>'}'></iframe></div>"
    ),
}
PAGES = OF_THE_SITE | IN_AN_EDITOR
# The others differ in where the editor is, which `test_request_senders.py` and the causes of effects try as well.
SOME = (
    "a button of the site beside an editor", "a message written in an editor", "Enter in a field in an editor",
    "a form in an element with the style of an editor", "a button with an address of its own",
    "a field of a form elsewhere", "a form with a field that shadows its fields",
    "what the site sends for a form in an editor",
)  # fmt: skip


@pytest.mark.e2e
@pytest.mark.parametrize("names", each([(SOME,), (tuple(PAGES),)], suite=[(SOME,)]), ids=["some", "all"])
async def test_what_something_inside_an_editor_sends_does_not_count(names: tuple[str, ...], tmp_path: Path) -> None:
    wrong, results = [], {}
    tried = {name: PAGES[name] for name in names}
    pages = {f"/{number}": page for number, page in enumerate(tried.values())}
    thanks = "<title>Thanks</title>"
    with hostile_site({**pages, "/order": thanks, "/save": thanks}) as site:
        async with a_browser() as browser:
            await browser.log_in(Task(task_id="t", website=site.url, task="x"))
            await browser.open(f"{site.url}0", "page-time")
            for number, page in enumerate(tried.values()):
                browser.begin_step(2 * number + 1)
                await browser.act("browser_navigate", {"url": f"{site.url}{number}"})
                is_text = "aria-label" in page
                role = "textbox" if is_text else "link" if "<a " in page else "button"
                ref = ref_of((await browser.observe()).snapshot, f'{role} "go"')
                browser.begin_step(2 * number + 2)
                if is_text:
                    await browser.act("browser_type", {"target": ref, "text": "x", "submit": True})
                else:
                    await browser.act("browser_click", {"target": ref})
                await browser.observe()
            traffic = browser.traffic()
        assert traffic is not None
        for number, (name, page) in enumerate(tried.items()):
            check = ORDER_CHECK if "<a " in page else ORDERED
            sent = of_step(traffic, 2 * number + 2)
            assert [entry for entry in sent.entries if entry["request"]["url"].endswith("/order")], name
            results[name] = checked(tmp_path / str(number), site.url, check, sent).passed
            # What must not be sent must not be sent from there either.
            forbidden = checked(tmp_path / f"{number} inverted", site.url, {**check, "not": True}, sent).passed
            if (results[name], forbidden) != (name in OF_THE_SITE, False):
                wrong.append((name, results[name], forbidden))
    assert wrong == []

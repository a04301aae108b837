"""Documents in which a planted value becomes part of a name or a text, typed or written by the site.

Each document combines a way of naming with a way of typing, or of not typing. The oracle knows which, because it made
the document: a typed value must not be found, everything else exactly where the snapshot shows it.
"""

import html
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.evaluators.checks import evaluate
from judge.records.steps import Step
from judge.records.tasks import Task
from judge.trajectory.record import CURRENT_RULES, Attempt, Trajectory
from shared.models import Page

# How an element gets its name or its text, with the element's role: `{s}` is the source, `{v}` a word of the site.
NAMINGS: dict[str, tuple[str, str]] = {
    "label around": ("<label><input type=checkbox> {v} {s}</label>", "checkbox"),
    "label around a radio": ("<label><input type=radio> {v}: {s}</label>", "radio"),
    "label for": ("<label for=n>{v} {s}</label><input type=radio id=n>", "radio"),
    "label of a select": ("<label>{v} {s}<select><option>a</select></label>", "combobox"),
    "label of a button": ("<label>{v} {s}<button>x</button></label>", "button"),
    "labelledby": ("<button aria-labelledby='a b'>x</button><p id=a>{v}</p><div id=b>{s}</div>", "button"),
    "labelledby around": ("<div id=a>{v} <p>{s}</p></div><section aria-labelledby=a><p>x</p></section>", "region"),
    "labelledby hidden": ("<h3 aria-labelledby=a>x</h3><div id=a hidden>{v} {s}</div>", "heading"),
    "labelledby the source": ("<h3 aria-labelledby='a s'>x</h3><i id=a>{v}</i> {s}", "heading"),
    "reflected": (
        "<button id=n>x</button><div id=a>{v} {s}</div><script>n.ariaLabelledByElements=[a]</script>",
        "button",
    ),
    "reflected to the source": (
        "<a href=# id=n>x</a><i id=a>{v}</i>{s}"
        "<script>n.ariaLabelledByElements=[a,document.getElementById('s')]</script>",
        "link",
    ),
    "owns": ("<div role=heading aria-owns=a></div><div id=a>{v} {s}</div>", "heading"),
    "owns the source": ("<div role=heading aria-owns=s>{v}</div><div>{s}</div>", "heading"),
    "owns as a list": ("<ul aria-owns=a></ul><li id=a>{v} {s}</li>", "listitem"),
    "slot": ("<div><template shadowrootmode=open><h3><slot></slot></h3></template>{v} {s}</div>", "heading"),
    "named slot": (
        "<div><template shadowrootmode=open><button>{v} <slot name=x></slot></button></template>"
        "<b slot=x>{s}</b></div>",
        "button",
    ),
    "shadow tree": ("<h3><span><template shadowrootmode=open>{v} {s}</template></span></h3>", "heading"),
    "before": ("<style>#n::before{{content:'{v} '}}</style><button id=n>{s}</button>", "button"),
    "heading": ("<h3>{v} {s}</h3>", "heading"),
    "link": ("<a href=#>{v} {s}</a>", "link"),
    "button": ("<button>{v} <span>{s}</span></button>", "button"),
    "button role": ("<div role=button>{v} {s}</div>", "button"),
    "tab": ("<div role=tablist><div role=tab>{v} {s}</div></div>", "tab"),
    "treeitem": ("<div role=tree><div role=treeitem>{v} <p>{s}</p></div></div>", "treeitem"),
    "option": ("<div role=listbox><div role=option aria-selected=true>{v} {s}</div></div>", "option"),
    "cell": ("<table><tr><td>{v} {s}</td><td>x</td></tr></table>", "cell"),
    "row": ("<table><tr><td>{v}</td><td>{s}</td></tr></table>", "row"),
    "header": ("<table><tr><th>{v} {s}</th><th>x</th></tr><tr><td>1</td><td>2</td></tr></table>", "columnheader"),
    "gridcell": ("<div role=grid><div role=row><div role=gridcell>{v} {s}</div></div></div>", "gridcell"),
    "summary": ("<details open><summary>{v} {s}</summary>x</details>", "group"),
    "figure": ("<figure><figcaption>{v} {s}</figcaption><p>x</p></figure>", "figure"),
    "table": ("<table><caption>{v} {s}</caption><tr><td>1</td></tr></table>", "table"),
    "fieldset": ("<fieldset><legend>{v} {s}</legend><p>x</p></fieldset>", "group"),
    "paragraph": ("<p>{v} {s}</p>", "paragraph"),
    "list item": ("<ul><li>{v} {s}</li></ul>", "listitem"),
    "status": ("<output>{v} {s}</output>", "status"),
    "text": ("{v} {s}", "generic"),
    "no clicks": ("<div style='pointer-events:none'><h3>{v} {s}</h3></div>", "heading"),
    "no height": ("<div style='height:0'><h3 style='height:0'>{v} {s}</h3></div>", "heading"),
    "contents": ("<div style='display:contents'><h3>{v} {s}</h3></div>", "heading"),
    "menu": ("<div role=menu><div role=menuitem>{v} {s}</div></div>", "menuitem"),
    "switch": ("<label><input type=checkbox role=switch>{v}<i>{s}</i></label>", "switch"),
    "repeated by the site": ("<h3 aria-labelledby=a>{w}</h3><div id=a>{s}</div><p>{v}</p>", "heading"),
}  # fmt: skip
# A source that was typed; `{w}` is what was.
TYPINGS: dict[str, str] = {
    "input": "<input id=s data-w={w}>",
    "number": "<input id=s type=number value={w}>",
    "number that says its value": "<input id=s type=number value={w} aria-valuenow={w}>",
    "number that says its value in words": "<input id=s type=number value={w} aria-valuetext={w}>",
    "search": "<input id=s type=search data-w={w}>",
    "with a list": "<input id=s list=l data-w={w}><datalist id=l></datalist>",
    "as a cell": "<input id=s role=gridcell data-w={w}>",
    "as a spin button": "<input id=s role=spinbutton value={w}>",
    "as a button": "<input id=s role=button data-w={w}>",
    "as a text": "<input id=s role=paragraph data-w={w}>",
    "text area": "<textarea id=s data-w={w}></textarea>",
    "text area as a heading": "<textarea id=s role=heading>{w}</textarea>",
    "without clicks": "<input id=s data-w={w} style='pointer-events:none'>",
    "without height": "<input id=s data-w={w} style='height:0;padding:0;border:0'>",
    "editor": "<span id=s contenteditable>{w}</span>",
    "plain editor": "<div id=s contenteditable=plaintext-only>{w}</div>",
    "inside an editor": "<div id=s contenteditable><p><b>{w}</b></p></div>",
    "island": "<div id=s contenteditable><i contenteditable=false>{w}</i></div>",
    "text box": "<div id=s contenteditable role=textbox>{w}</div>",
    "combo box": "<div id=s contenteditable role=combobox>{w}</div>",
    "text box with elements": "<div id=s contenteditable role=textbox aria-label=x><p>{w}</p></div>",
    "editor without a role": "<div id=s contenteditable role=none>{w}</div>",
    "editor without clicks": "<div id=s contenteditable style='pointer-events:none'>{w}</div>",
    "editor without height": "<div id=s contenteditable style='height:0'>{w}</div>",
    "editor without a box": "<div id=s contenteditable style='display:contents'>{w}</div>",
    "style": "<span id=s style='-webkit-user-modify:read-write'>{w}</span>",
    "style on a line": "<i id=s style='-webkit-user-modify:read-write-plaintext-only'><b>{w}</b></i>",
    "edit context": "<div id=s data-context>{w}</div>",
    "summary": "<details id=s open><summary contenteditable>{w}</summary></details>",
    "shadow tree": "<div id=s contenteditable><div><template shadowrootmode=open><p>{w}</p></template></div></div>",
    "editor in a shadow tree": "<div id=s><template shadowrootmode=open><p contenteditable>{w}</p></template></div>",
    "slot in an editor": "<div id=s><template shadowrootmode=open><p contenteditable><slot></slot></p></template>"
    "{w}</div>",
    "image": "<span id=s contenteditable><img alt={w}></span>",
    "title": "<span id=s contenteditable><img title={w}></span>",
    "aria-label": "<span id=s contenteditable><a href=# aria-label={w}>x</a></span>",
    "drawing": "<span id=s contenteditable><svg width=9 height=9><title>{w}</title></svg></span>",
    "generated": "<style>.g::after{{content:'{w}'}}</style><span id=s contenteditable><b class=g>x</b></span>",
    "generated from an attribute": "<style>.g::after{{content:attr(title)}}</style>"
    "<i id=s contenteditable><b class=g title={w}></b></i>",
    "button in an editor": "<span id=s contenteditable><input type=button value={w}></span>",
    "label in an editor": "<span id=s contenteditable><label>{w}<input type=checkbox></label></span>",
    "field in an editor": "<span id=s contenteditable><input data-w={w}></span>",
}  # fmt: skip
# A source that the site wrote.
SITE_TEXTS: dict[str, str] = {
    "text": "<span id=s>{w}</span>",
    "block": "<div id=s><p>{w}</p></div>",
    "without clicks": "<div id=s style='pointer-events:none'>{w}</div>",
    "image": "<img id=s alt={w}>",
    "aria-label": "<a id=s href=# aria-label={w}>x</a>",
    "button": "<input id=s type=button value={w}>",
    "shadow tree": "<div id=s><template shadowrootmode=open><p>{w}</p></template></div>",
    "generated": "<style>.g::after{{content:'{w}'}}</style><b id=s class=g></b>",
    "beside a field": "<span id=s>{w} <input value=other></span>",
    "beside an editor": "<span id=s>{w} <b contenteditable>other</b></span>",
    "beside a typed prefix": "<span id=s><b contenteditable>1</b>{w}</span>",
    "not editable": "<div id=s contenteditable=false>{w}</div>",
    "text box": "<div id=s role=textbox>{w}</div>",
    "choice": "<select id=s><option>{w}</select>",
    "title": "<abbr id=s title=other>{w}</abbr>",
}  # fmt: skip
_SET_UP = """<script>
const all = root => [...root.querySelectorAll('*')].flatMap(e => [e, ...e.shadowRoot ? all(e.shadowRoot) : []]);
for (const e of all(document)) {
  if (e.dataset.w) e.value = e.dataset.w;
  if ('context' in e.dataset) e.editContext = new EditContext();
}
%s</script>"""


@dataclass(frozen=True)
class NamedPage:
    """A document, its planted value and the site's word in it, and whether each of them was typed."""

    shape: str
    body: str
    role: str
    value: str
    word: str
    is_typed: bool
    is_all_typed: bool
    # Whether the site shows the value elsewhere, as a text and in an element of the same role.
    is_repeated: tuple[bool, bool]

    @property
    def checks(self) -> list[dict[str, Any]]:
        """A text and an element with the planted value, then both with the site's word."""
        results: list[dict[str, Any]] = []
        for spelling in (self.value, self.word):
            results.append({"kind": "text", "contains": spelling})
            results.append({"kind": "element", "element": f"{self.role} /{spelling}/"})
        return results

    def wrong(self, counted: list[bool], displayed: list[bool]) -> list[str]:
        """What is wrong with the results of the checks; `displayed` are those on everything that the snapshot shows."""
        typed = [self.is_typed and not each for each in self.is_repeated] + [False, False]
        expected = [
            is_shown and not (is_typed or self.is_all_typed)
            for is_shown, is_typed in zip(displayed, typed, strict=True)
        ]
        return [
            f"{check}: expected {right}, found {result}: {self.shape}: {self.body}"
            for check, right, result in zip(self.checks, expected, counted, strict=True)
            if right != result
        ]


def named_page(seed: int) -> NamedPage:
    """The document of this seed."""
    rng = random.Random(seed)
    naming = rng.choice(list(NAMINGS))
    is_typed = rng.random() < 0.7
    source = rng.choice(list(TYPINGS if is_typed else SITE_TEXTS))
    form, role = NAMINGS[naming]
    value, word = str(700_000 + seed), f"word{seed}x"
    result = (TYPINGS if is_typed else SITE_TEXTS)[source].format(w=value)
    design = rng.random() < 0.03
    body = form.format(s=result, v=word, w=value)
    is_repeated = ("{w}" in form,) * 2
    if rng.random() < 0.1:
        body += f"<h3>{value}</h3>"
        is_repeated = (True, role in ("heading", "generic") or is_repeated[1])
    body += _SET_UP % ("document.designMode = 'on'" if design else "")
    shape = f"{naming}, {source}{' (typed)' if is_typed else ''}{' in design mode' if design else ''}"
    return NamedPage(shape, body, role, value, word, is_typed, design, is_repeated)


def in_frames(pages: list[NamedPage]) -> str:
    """One page that shows all of the documents."""
    frames = "".join(f'<iframe srcdoc="{html.escape(page.body)}" width=300 height=90></iframe>' for page in pages)
    return f"<!doctype html><meta charset=utf-8><title>t</title><body>{frames}</body>"


def wrong_results(pages: list[NamedPage], observed: Page, own: str, folder: Path) -> tuple[list[str], int]:
    """What is wrong with checks on what was observed, and how many of them pass on what the snapshot shows."""
    (folder / "page.yaml").write_text(observed.snapshot, encoding="utf-8", errors="surrogatepass")
    checks = [check for page in pages for check in page.checks]
    task = Task.model_validate({"task_id": "t", "website": own, "task": "t", "checks": checks})
    step = Step(index=0, url=observed.url, title="", origin=observed.origin, snapshot="page.yaml")

    def results(*, is_marked: bool) -> list[bool]:
        attempt = Attempt(
            task=task,
            steps=(step,),
            stop_reason="finished",
            max_steps=1,
            started_at=0,
            ended_at=0,
            rules_version=CURRENT_RULES if is_marked else None,
            self_recorded=not is_marked,
        )
        return [each.passed is True for each in evaluate(Trajectory(folder=folder, attempt=attempt))]

    # Recordings of other programs name no authors.
    result, text = results(is_marked=True), results(is_marked=False)
    wrong = []
    for at, page in enumerate(pages):
        part = slice(4 * at, 4 * at + 4)
        wrong += page.wrong(result[part], text[part])
    return wrong, sum(text)

"""What selects, boxes, fields and choosers had after an action: which options texts stand for, and what is recorded."""

import random
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.browser.pages import open_page
from helpers.browser.sessions import a_browser, ref_of
from helpers.cases import each
from judge.browser import contents
from judge.browser.action_lines import action_line, recorded_value
from judge.browser.settle import SettleMode
from judge.browser.tools import CheckedAction
from judge.records.files import TaskFile
from judge.records.tasks import Task
from judge.records.tools import FILE_NAMES, FILE_UPLOAD
from shared.snapshot import parse_snapshot

SOURCE = Path(contents.__file__).with_name("contents.js").read_text()
CHOOSE = f"""wanted => {{
  const {{ choose }} = ({SOURCE})();
  return [...document.querySelectorAll("select")].map((select, at) => choose(select, wanted[at]));
}}"""


class Option(NamedTuple):
    label: str
    value: str
    group: str
    is_disabled: bool = False
    is_hidden: bool = False
    # How the label is written: as text, as an attribute beside another text, or for screen readers.
    drawn: str = ""

    @property
    def html(self) -> str:
        states = f"{' disabled' * self.is_disabled}{' hidden' * self.is_hidden}"
        label = f' label="{escape(self.drawn)}"' if self.drawn else ""
        return f'<option value="{escape(self.value)}"{label}{states}>{escape(self.label)}</option>'


class Select(NamedTuple):
    options: list[Option]
    is_multiple: bool
    wanted: list[str]

    @property
    def html(self) -> str:
        grouped = ""
        for option in self.options:
            group = f'<optgroup label="{option.group}">{option.html}</optgroup>' if option.group else option.html
            grouped += group
        return f"<select{' multiple' * self.is_multiple}>{grouped}</select>"


WORDS = ["Basic", "Basic (old)", "1", "2", "3", "b2", "Gold ", "  Two  words", "é", ""]


def selects(count: int) -> Iterator[Select]:
    chance = random.Random(56)
    for _ in range(count):
        options = [
            Option(
                label=chance.choice(WORDS),
                value=chance.choice(WORDS),
                group=chance.choice(["", "", "Monthly", "Yearly"]),
                is_disabled=chance.random() < 0.1,
                is_hidden=chance.random() < 0.1,
                drawn=chance.choice([*WORDS, "Drawn"]) if chance.random() < 0.1 else "",
            )
            for _ in range(chance.randint(1, 6))
        ]
        is_multiple = chance.random() < 0.3
        known = [text for option in options for text in (option.label, option.value, option.drawn)]
        wanted = [chance.choice([*known, "Nothing"]) for _ in range(chance.randint(1, 3) if is_multiple else 1)]
        yield Select(options, is_multiple, wanted)


def plain(text: str) -> str:
    return " ".join(text.split())


def expected(select: Select) -> list[int] | str:
    """The options that are chosen, or a part of the complaint."""
    found = []
    there = [(at, option) for at, option in enumerate(select.options) if not option.is_hidden]
    for text in select.wanted:
        by_label = [(at, option) for at, option in there if (plain(option.label) or option.drawn) == plain(text)]
        by_drawing = [(at, option) for at, option in there if plain(option.drawn or option.label) == plain(text)]
        by_value = [(at, option) for at, option in there if option.value == text]
        equal = by_label or by_drawing or by_value
        enabled = [(at, option) for at, option in equal if not option.is_disabled]
        if not equal:
            return "There is no option"
        if not enabled:
            return "is disabled"
        if len({(plain(option.label) or option.drawn, option.value, option.group) for _, option in enabled}) > 1:
            return "Send the value of one"
        found.append(enabled[0][0])
    return found


@pytest.mark.e2e
async def test_a_label_that_is_equal_wins_and_a_value_counts_where_none_is() -> None:
    cases = list(selects(200))
    async with open_page() as watched:
        await watched.page.set_content("".join(case.html for case in cases))
        results = await watched.page.evaluate(CHOOSE, [case.wanted for case in cases])
    wrong = []
    for case, result in zip(cases, results, strict=True):
        right = expected(case)
        is_right = right in result["problem"] if isinstance(right, str) else result.get("indices") == right
        if not is_right:
            wrong.append((case, right, result))
    assert wrong == []
    outcomes = {right if isinstance(right, str) else "chosen" for right in map(expected, cases)}
    assert outcomes == {"There is no option", "is disabled", "Send the value of one", "chosen"}


class Way(NamedTuple):
    """An element that is labelled NAME, what is given to it, and what is recorded: the line's value, and beside it."""

    html: str
    role: str
    given: dict[str, Any]
    value: str
    beside: str | None = None


def chooses(html: str, *texts: str, value: str, beside: str | None = None) -> Way:
    role = "listbox" if html.startswith(" multiple") else "combobox"
    return Way(f"<label>NAME <select {html}</select></label>", role, {"values": [*texts]}, value, beside)


def types(html: str, text: str, beside: str | None = None) -> Way:
    return Way(f"<label>NAME {html}</label>", "textbox", {"text": text}, plain(text), beside)


def fills(html: str, role: str, value: str, had: str, beside: str | None = None) -> Way:
    field = {"name": "F", "type": role, "value": value}
    return Way(f"<label>NAME {html}</label>", role, {"fields": [field]}, f'"NAME {role}" = "{had}"', beside)


WAYS = {
    "by value": chooses("><option value=1>January<option value=2>February", "2", value="February"),
    "label before value": chooses('><option value="B">A<option value="b2">B', "B", value="B"),
    "one of several": chooses(
        "><optgroup label=Monthly><option value=m>Basic<optgroup label=Yearly><option value=y>Basic",
        "y",
        value="Basic",
        beside='"Basic" (group "Yearly", value "y")',
    ),
    "several": chooses(" multiple><option>A<option>B<option>C", "C", "A", value='"A", "C"'),
    "taken back": chooses(' onchange="this.value = `A`"><option>A<option>B', "B", value="A"),
    "taken back and kept from others": chooses(
        ' onchange="event.stopImmediatePropagation(); this.value = `A`"><option>A<option>B', "B", value="A"
    ),
    "removed": chooses(' onchange="this.closest(`label`).remove()"><option>A<option>B', "B", value="B"),
    "asked about": chooses(' onchange="alert(`Sure?`)"><option>A<option>B', "B", value="B"),
    "typed": types("<input>", "Ann"),
    "upper case": types('<input oninput="this.value = this.value.toUpperCase()">', "Ann", "ANN"),
    "cut": types("<input maxlength=3>", "Annabel", "Ann"),
    "cleared": types('<input oninput="this.value = ``">', "Ann", ""),
    "lines": types("<textarea></textarea>", "a\r\nb"),
    "a secret": types("<input name=api_key maxlength=3>", "Annabel"),
    "a password": types("<input type=password maxlength=3>", "Annabel"),
    "an editor": Way("<div contenteditable role=textbox aria-label='NAME'>x</div>", "textbox", {"text": "a b"}, "a b"),
    "a choice of a menu that goes on": chooses(
        ' onchange="document.title = this.value; this.selectedIndex = 0"><option>Actions<option>Go',
        "Go",
        value="Actions",
    ),
    "a slider": fills("<input type=range max=10 step=5>", "slider", "7", "7", '"NAME slider" = "5"'),
    "a box": fills("<input type=checkbox>", "checkbox", "true", "true"),
    "a box without its box": fills(
        "<span role=checkbox aria-checked=true tabindex=0>NAME</span>", "checkbox", "true", "true"
    ),
    "a dropdown": fills("<select><option value=1>One<option value=2>Two</select>", "combobox", "2", "Two"),
    "a field": fills('<input oninput="this.value += `!`">', "textbox", "a", "a", '"NAME textbox" = "a!"'),
    "gone elsewhere": chooses(' onchange="location = `/elsewhere`"><option>A<option>B', "B", value="B"),
}
TOOLS = {"values": "browser_select_option", "text": "browser_type", "fields": "browser_fill_form"}


@pytest.mark.e2e
@pytest.mark.parametrize("settle", each(["page-time", "real-time"], suite=["page-time"]))
async def test_a_line_says_what_the_element_had_afterwards(settle: SettleMode) -> None:
    html = "<title>Ways</title>" + "".join(way.html.replace("NAME", name) for name, way in WAYS.items())
    found: dict[str, tuple[str, str | None]] = {}
    with hostile_site({"/": html, "/elsewhere": "<title>Elsewhere</title>"}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, settle)
            snapshot = (await browser.observe()).snapshot
            page = parse_snapshot(snapshot)
            for name, way in WAYS.items():
                target = {"target": ref_of(snapshot, f'{way.role} "{name}"')}
                ((kind, given),) = way.given.items()
                params = {kind: [{**given[0], **target}]} if kind == "fields" else {kind: given, **target}
                result = await browser.act(TOOLS[kind], params)
                assert result.ok, (name, result.text)
                checked = CheckedAction(tool=TOOLS[kind], params=params)
                value = action_line(checked, page, None, result.contents).partition(": ")[2]
                beside = recorded_value(checked, page, result.contents)
                found[name] = value.replace(name, "NAME"), beside and beside.replace(name, "NAME")
                if name == "asked about":
                    await browser.act("browser_handle_dialog", {"accept": True})
    assert found == {name: (way.value, way.beside) for name, way in WAYS.items()}


CHOOSERS = {
    "/kept": ("<input type=file aria-label=CV>", "cv.txt"),
    "/taken": ("<input type=file aria-label=CV onchange='this.value = ``'>", ""),
    "/sent": ("<form action=/kept><input type=file aria-label=CV onchange='this.form.submit()'></form>", "cv.txt"),
    "/replaced": ("<div><input type=file aria-label=CV onchange='this.parentNode.innerHTML = ``'></div>", "cv.txt"),
    "/asking": ("<input type=file aria-label=CV onchange='alert(1)'>", "cv.txt"),
}


@pytest.mark.e2e
async def test_an_upload_names_the_files_that_the_page_kept() -> None:
    found = {}
    with hostile_site({path: html for path, (html, _) in CHOOSERS.items()}) as site:
        file = TaskFile(name="cv.txt", data=b"me")
        task = Task(task_id="t", website=f"{site.url}kept", task="Upload.", files=(file,))
        async with a_browser() as browser:
            await browser.log_in(task)
            await browser.open(task.website, "page-time")
            for path in CHOOSERS:
                await browser.act("browser_navigate", {"url": f"{site.url}{path[1:]}"})
                snapshot = (await browser.observe()).snapshot
                await browser.act("browser_click", {"target": ref_of(snapshot, '"CV"')})
                await browser.observe()
                params = {FILE_NAMES: ["cv.txt"]}
                result = await browser.act(FILE_UPLOAD, params)
                assert result.ok, result.text
                line = action_line(CheckedAction(tool=FILE_UPLOAD, params=params), None, None, result.contents)
                found[path] = line.partition(": ")[2]
                if (await browser.observe()).dialog:
                    await browser.act("browser_handle_dialog", {"accept": True})
    assert found == {path: names for path, (_, names) in CHOOSERS.items()}


ELSEWHERE = """<title>Keys</title><iframe srcdoc="<input aria-label=Inside maxlength=3 autofocus>"></iframe>
    <button onclick="frames[0].document.querySelector('input').focus()">Focus</button>
    <button onclick="alert('Hello')">Alert</button><button onclick="prompt('Name?', 'Ada')">Prompt</button>"""


@pytest.mark.e2e
async def test_what_was_typed_at_the_focus_or_into_a_dialog_is_what_it_took() -> None:
    lines = []
    with hostile_site({"/": ELSEWHERE}) as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            snapshot = (await browser.observe()).snapshot
            accept = {"accept": True, "promptText": "Bob"}
            for button, tool, params in (
                ("Focus", "browser_type", {"text": "Annabel"}),
                ("Alert", "browser_handle_dialog", accept),
                ("Prompt", "browser_handle_dialog", accept),
                ("Prompt", "browser_handle_dialog", {"accept": True}),
            ):
                await browser.act("browser_click", {"target": ref_of(snapshot, f'button "{button}"')})
                page = parse_snapshot((await browser.observe()).snapshot)
                result = await browser.act(tool, params)
                checked = CheckedAction(tool=tool, params=params)
                lines.append(
                    (action_line(checked, page, None, result.contents), recorded_value(checked, page, result.contents))
                )
                await browser.observe()
    assert lines == [
        ("<Inside textbox> -> TYPE: Annabel", "Ann"),
        ("<dialog> -> DIALOG: accept", None),
        ('<dialog> -> DIALOG: accept with "Bob"', None),
        ("<dialog> -> DIALOG: accept", None),
    ]


@pytest.mark.e2e
async def test_going_back_fails_where_there_is_no_earlier_page() -> None:
    with hostile_site() as site:
        async with a_browser() as browser:
            await browser.open(site.url, "page-time")
            results = [await browser.act("browser_navigate_back", {}) for _ in range(2)]
    assert [result.ok for result in results] == [True, False]
    assert results[1].text == "There is no earlier page in this tab"

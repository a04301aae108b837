import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser.hostile_site import hostile_site
from helpers.browser.sessions import a_browser, ref_of
from judge.browser.lost_refs import MAX_TRIES, call_again, counterpart
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.responses import ToolResponse
from shared.models import Page
from shared.snapshot import parse_snapshot

# It is rebuilt from an event on, 20 times, and again a moment after each click, so that it settles before. Then it
# rests, so that an element is found on any machine, however long that takes there. `?hectic` never rests.
REBUILT = """<title>Rebuilt</title><div id=place></div><p id=said role=status>nothing</p><script>
const lamps = ['Arc', 'Beam', 'Cone'];
const draw = () => {
  place.innerHTML = '<ul></ul>';
  for (const lamp of lamps) {
    const row = document.createElement('li');
    row.innerHTML = `<a href="#${lamp}"><h3>${lamp}</h3><span>a lamp</span></a> <button>Buy</button>`;
    row.querySelector('button').onclick = () => said.textContent += `, bought ${lamp}`;
    place.querySelector('ul').append(row);
  }
};
draw();
const isHectic = location.search === '?hectic';
let still = 0, left = 0;
const rebuild = () => {
  if (location.search === '?growing') lamps.unshift('New');
  draw();
};
const begin = () => left = isHectic ? Infinity : 20;
document.addEventListener('rebuild', () => { begin(); rebuild(); });
for (const type of ['mouseup', 'wheel']) addEventListener(type, () => { begin(); still = performance.now() + 550; });
setInterval(() => {
  if (performance.now() < still || !left) return;
  left -= 1;
  rebuild();
}, isHectic ? 25 : 150);
</script>"""
FORM = """<title>Form</title><div id=place></div><button onclick="draw()">Rebuild</button><script>
const draw = () => place.innerHTML = '<label>From<input></label><label>To<input></label>';
draw();
</script>"""
names = st.sampled_from(["Buy", "Sell", "", 'a "b"', "Casa: Mar"])
pages = st.lists(st.tuples(st.sampled_from(["button", "link", "generic"]), names, names), min_size=1, max_size=8)


def list_snapshot(rows: Sequence[tuple[str, str, str]], first: int = 1) -> str:
    """Each row is an item with a text and an element in it; references count up from `first`."""
    lines = []
    for number, (role, name, text) in enumerate(rows):
        quoted = ' "' + name.replace('"', '\\"') + '"' if name else ""
        lines.append(f"- listitem [ref=e{first + 2 * number}]:")
        lines.append(f"  - text: t{text}")
        lines.append(f"  - {role}{quoted} [ref=e{first + 2 * number + 1}]")
    return "\n".join(lines)


@given(pages, st.integers(0, 1_000), st.data())
def test_in_a_page_rebuilt_as_it_was_every_element_is_found_at_its_own_place(
    rows: list[tuple[str, str, str]], first: int, data: Any
) -> None:
    before, now = parse_snapshot(list_snapshot(rows)), parse_snapshot(list_snapshot(rows, first))
    node = data.draw(st.sampled_from(before.nodes).filter(lambda node: node.ref is not None))
    assert counterpart(before, node.ref, now) == now.nodes[node.position].ref


TICKER = """- table [ref=e{0}]:
  - row "AAA {1} Buy" [ref=e{0}1]:
    - cell "AAA {1}" [ref=e{0}2]
    - cell [ref=e{0}3]:
      - button "Buy AAA at {1}" [ref=e{0}4]
  - row "CCC {2} Buy" [ref=e{0}5]:
    - cell "CCC {2}" [ref=e{0}6]
    - cell [ref=e{0}7]:
      - button "Buy CCC at {2}" [ref=e{0}8]
- link "News ({1})" [ref=e{0}9]:
  - /url: /news
- link "News ({2})" [ref=e{0}0]:
  - /url: /news/old"""


@pytest.mark.parametrize("place", ["2", "4", "6", "8", "9", "0"])
def test_an_element_whose_name_holds_a_live_value_is_found_by_its_row_or_its_link(place: str) -> None:
    before, now = parse_snapshot(TICKER.format(1, 27, 31)), parse_snapshot(TICKER.format(2, 57, "30.5"))
    assert counterpart(before, f"e1{place}", now) == f"e2{place}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('- row "27":\n  - cell "27" [ref=e1]', '- row "57":\n  - cell "57" [ref=e2]'),
        ('- button "Order 27" [ref=e1]', '- button "Order 57" [ref=e2]'),
        ('- link "Order 27" [ref=e1]:\n  - /url: /27', '- link "Order 57" [ref=e2]:\n  - /url: /57'),
        ('- row "A 1":\n  - cell "A 1" [ref=e1]', '- row "B 2":\n  - cell "B 2" [ref=e2]'),
        (
            '- row "A 1":\n  - cell "A 1" [ref=e1]',
            '- row "A 2":\n  - cell "A 2" [ref=e2]\n- row "A 3":\n  - cell "A 3" [ref=e3]',
        ),
    ],
    ids=["only numbers", "no row", "another link", "another row", "two such rows"],
)
def test_an_element_with_another_name_is_not_taken_for_it_where_nothing_else_identifies_it(
    before: str, after: str
) -> None:
    assert counterpart(parse_snapshot(before), "e1", parse_snapshot(after)) is None


@given(pages, pages, st.data())
def test_what_is_found_is_an_element_of_the_same_role_and_name_among_as_many(
    rows: list[tuple[str, str, str]], later: list[tuple[str, str, str]], data: Any
) -> None:
    before, now = parse_snapshot(list_snapshot(rows)), parse_snapshot(list_snapshot(later, 100))
    node = data.draw(st.sampled_from(before.nodes).filter(lambda node: node.ref is not None))
    element = counterpart(before, node.ref, now)
    if element is None:
        return
    other = now.by_ref(element)
    assert other is not None
    assert (other.role, now.name_of(other)) == (node.role, before.name_of(node))
    count = sum((each.role, before.name_of(each)) == (node.role, before.name_of(node)) for each in before.nodes)
    assert count == sum((each.role, now.name_of(each)) == (node.role, before.name_of(node)) for each in now.nodes)


BUY = ("button", "Buy")
SHOP = [(*BUY, "Arc"), (*BUY, "Beam"), ("link", "Help", "")]
BESIDE = "- text: Arc\n- button [ref=e1]\n- text: Beam\n- button [ref=e2]"


@pytest.mark.parametrize(
    ("before", "ref", "after", "expected"),
    [
        # e4 is the second "Buy".
        (list_snapshot(SHOP), "e4", list_snapshot(SHOP, 51), "e54"),
        (list_snapshot(SHOP), "e6", list_snapshot([(*BUY, "Arc"), ("link", "Help", "new text")], 51), "e54"),
        (list_snapshot(SHOP), "e4", list_snapshot([SHOP[1], SHOP[0], SHOP[2]], 51), None),
        (list_snapshot(SHOP), "e4", list_snapshot([*SHOP, (*BUY, "Cone")], 51), None),
        (list_snapshot(SHOP), "e4", list_snapshot([SHOP[1]], 51), None),
        (list_snapshot(SHOP), "e4", list_snapshot([("link", "Buy", "Arc"), ("link", "Buy", "Beam")], 51), None),
        (list_snapshot(SHOP), "e99", list_snapshot(SHOP, 51), None),
        (list_snapshot(SHOP), "e4", "", None),
        (BESIDE, "e2", BESIDE.replace("ref=e", "ref=e5"), "e52"),
        (BESIDE, "e2", "- text: Beam\n- button [ref=e51]\n- text: Arc\n- button [ref=e52]", None),
        (
            '- link [ref=e1]:\n  - heading "Casa Mar" [ref=e2]\n- link "Help" [ref=e3]',
            "e1",
            '- link "Help" [ref=e13]\n- link [ref=e11]:\n  - heading "Casa Mar" [ref=e12]',
            "e11",
        ),
    ],
    ids=[
        "same page", "only one of that name", "other order", "one more", "one less", "other role", "never seen",
        "empty page", "texts beside it", "other texts beside it", "named by its content",
    ],
)  # fmt: skip
def test_an_element_is_found_only_where_it_is_not_ambiguous(
    before: str, ref: str, after: str, expected: str | None
) -> None:
    assert counterpart(parse_snapshot(before), ref, parse_snapshot(after)) == expected


URL = "http://a.test/"
GONE = "### Error\nError: Ref {} not found in the current page snapshot. Try capturing new snapshot."


class Server:
    """Answers with what the test says, one text for each call of a tool; an empty one means success."""

    def __init__(self, *answers: str, page: str = URL) -> None:
        self.answers = list(answers)
        self.rebuilt = 0
        self.page = f"### Page\n- Page URL: {page}\n### Snapshot\n```yaml\n{list_snapshot(SHOP, 51)}\n```"
        self.calls: list[dict[str, Any]] = []

    async def call(self, tool: str, params: dict[str, Any]) -> ToolResponse:
        self.calls.append(params)
        text = self.answers.pop(0)
        return ToolResponse(ok=not text, text=text)

    async def run(self, code: str) -> ToolResponse:
        if self.rebuilt:
            self.rebuilt -= 1
            return ToolResponse(ok=False, text="### Error\nError: gone")
        return ToolResponse(ok=True, text=json.dumps([f"locator of {ref}" for ref in re.findall(r'"(e\d+)"', code)]))

    async def look(self) -> ToolResponse:
        return ToolResponse(ok=True, text=self.page)

    async def call_again_here(self, tool: str, *, limit_s: float = 60, **params: Any) -> tuple[ToolResponse, bool]:
        seen = list_snapshot(SHOP)
        return await call_again(self.call, self.look, self.run, tool, params, old=seen, url=URL, limit_s=limit_s)


async def test_an_action_is_repeated_with_a_locator_of_the_element_found_again() -> None:
    server = Server(GONE.format("e4"), "")
    answer, is_found_again = await server.call_again_here("browser_click", target="e4", button="right")
    assert (answer.ok, is_found_again) == (True, True)
    assert server.calls[1:] == [{"target": "locator of e54", "button": "right"}]


async def test_all_elements_of_a_drag_are_found_again() -> None:
    server = Server(GONE.format("e4"), "")
    await server.call_again_here("browser_drag", startTarget="e2", endTarget="e4")
    assert server.calls[1:] == [{"startTarget": "locator of e52", "endTarget": "locator of e54"}]


async def test_all_fields_of_a_form_are_found_again_if_the_first_was_gone() -> None:
    server = Server(GONE.format("e2"), "")
    await server.call_again_here(
        "browser_fill_form", fields=[{"target": "e2", "value": "a"}, {"target": "e4", "value": "b"}]
    )
    assert [field["target"] for field in server.calls[1]["fields"]] == ["locator of e52", "locator of e54"]


@pytest.mark.parametrize(
    ("tool", "params", "text"),
    [
        ("browser_fill_form", {"fields": [{"target": "e2"}, {"target": "e4"}]}, GONE.format("e4")),
        ("browser_fill_form", {"fields": [{"target": "e2"}, {"target": "e2"}]}, GONE.format("e2")),
        ("browser_click", {"target": "e4"}, "### Error\nTimeoutError: locator.click: Timeout 5000ms exceeded."),
        ("browser_click", {"target": "e4"}, "### Error\nError: " + GONE.format("e4")),
        ("browser_click", {"target": "e4"}, GONE.format("e6")),
        ("browser_press_key", {"key": GONE.format("e4")}, GONE.format("e4")),
    ],
    ids=["second field", "same field twice", "may have begun", "words of a page", "another element", "no element"],
)
async def test_an_action_that_may_have_begun_is_not_repeated(tool: str, params: dict[str, Any], text: str) -> None:
    server = Server(text)
    answer, is_found_again = await server.call_again_here(tool, **params)
    assert (answer.text, is_found_again, len(server.calls)) == (text, False, 1)


async def test_an_element_that_keeps_going_is_given_up_after_some_tries() -> None:
    missing = '### Error\nError: "locator of e54" does not match any elements.'
    server = Server(GONE.format("e4"), *[missing] * MAX_TRIES)
    answer, _ = await server.call_again_here("browser_click", target="e4")
    assert (answer.text, len(server.calls)) == (missing, 1 + MAX_TRIES)


@pytest.mark.parametrize(("limit_s", "is_found"), [(60, True), (0, False)])
async def test_an_element_that_is_rebuilt_before_it_is_found_is_looked_for_until_the_time_is_up(
    limit_s: float, is_found: bool
) -> None:
    server = Server(GONE.format("e4"), "")
    server.rebuilt = 10 * MAX_TRIES
    answer, is_found_again = await server.call_again_here("browser_click", target="e4", limit_s=limit_s)
    assert (answer.ok, is_found_again, server.rebuilt == 0) == (is_found, is_found, is_found)


async def test_an_element_of_the_same_name_on_another_page_is_left_alone() -> None:
    server = Server(GONE.format("e4"), page="http://a.test/other")
    answer, is_found_again = await server.call_again_here("browser_click", target="e4")
    assert (answer.ok, is_found_again, len(server.calls)) == (False, False, 1)


async def once_rebuilt(browser: PlaywrightBrowser, url: str) -> Page:
    """A page of which every reference is gone by now."""
    await browser.open(url)
    page = await browser.observe()
    await browser.probe(page, ["document.dispatchEvent(new Event('rebuild'))"])
    return page


async def said_by(browser: PlaywrightBrowser, page: Page) -> str:
    """What was bought, without looking at the page, which would wait for it."""
    (value,) = await browser.probe(page, ["document.querySelector('#said').textContent"])
    return str(value.value)


@pytest.mark.e2e
async def test_every_action_reaches_a_page_that_is_rebuilt_several_times_a_second(subtests: pytest.Subtests) -> None:
    with hostile_site({"/": REBUILT, "/form": FORM}) as site:
        # Longer than the page is rebuilt.
        async with a_browser(action_timeout_s=20) as browser:
            snapshot = (await once_rebuilt(browser, site.url)).snapshot
            buy = [
                line.partition("[ref=")[2].partition("]")[0] for line in snapshot.splitlines() if 'button "Buy"' in line
            ]
            results = []
            for tool, params in (
                ("browser_click", {"target": buy[1], "element": "the second"}),
                ("browser_drag", {"startTarget": buy[0], "endTarget": buy[2]}),
                ("browser_scroll", {"direction": "down", "amount": 10, "target": buy[0]}),
                ("browser_click", {"target": ref_of(snapshot, "link [ref")}),
            ):
                # Until it is being rebuilt again.
                await browser.act("browser_wait_for", {"time": 0.1})
                results.append(await browser.act(tool, params))
            after = await browser.observe()
            assert [(result.ok, result.found_again) for result in results] == [(True, True)] * len(results), results
            assert ": nothing, bought Beam" in after.snapshot
            assert after.url.endswith("#Arc")
            with subtests.test("in a list that grows meanwhile nothing is clicked"):
                page = await once_rebuilt(browser, f"{site.url}?growing")
                result = await browser.act("browser_click", {"target": ref_of(page.snapshot, 'button "Buy"')})
                assert (result.ok, result.found_again) == (False, False)
                assert "not found in the current page snapshot" in result.text
                assert await said_by(browser, page) == "nothing"
            with subtests.test("a form that was rebuilt is filled"):
                await browser.open(f"{site.url}form")
                snapshot = (await browser.observe()).snapshot
                await browser.act("browser_click", {"target": ref_of(snapshot, "Rebuild")})
                fields = [
                    {
                        "target": ref_of(snapshot, f'textbox "{name}"'),
                        "name": "",
                        "type": "textbox",
                        "value": f"{name} it",
                    }
                    for name in ("From", "To")
                ]
                result = await browser.act("browser_fill_form", {"fields": fields})
                form = parse_snapshot((await browser.observe()).snapshot)
                assert (result.ok, result.found_again) == (True, True)
                assert [form.value_of(field) for field in form.find("textbox")] == ["From it", "To it"]


@pytest.mark.e2e
async def test_in_a_list_that_is_rebuilt_all_the_time_nothing_else_is_clicked() -> None:
    with hostile_site({"/": REBUILT}) as site:
        async with a_browser(action_timeout_s=0.5) as browser:
            page = await once_rebuilt(browser, f"{site.url}?hectic")
            first = ref_of(page.snapshot, 'button "Buy"')
            results = [await browser.act("browser_click", {"target": first}) for _ in range(3)]
            text = await said_by(browser, page)
    assert re.findall(r"bought (\w+)", text) == ["Arc"] * sum(result.ok for result in results)

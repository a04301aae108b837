"""Every kind of check on recorded attempts: one that is right, and others that are nearly right."""

from pathlib import Path
from typing import Any

import pytest

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.checks import describe, evaluate
from judge.records.steps import ProbeValue
from judge.records.tasks import Task

LIST = """- main [ref=e1]:
  - group "Material" [ref=e2]:
    - checkbox "Oak" [checked] [ref=e3]
    - checkbox "Pine" [ref=e4]
  - list "Products" [ref=e5]:
    - listitem [ref=e6]: Desk €259
    - listitem [ref=e7]: Desk €349
    - listitem [ref=e8]: Table €1,299
  - heading [level=2] [ref=e9]:
    - link "Harvest" [ref=e10]
    - text: Desk
  - textbox "Note" [ref=e11]: order placed
  - combobox "Sort by" [ref=e12]:
    - option "Price" [selected]
    - option "Rating"
  - paragraph [ref=e13] [box=8,2442,1264,18]: far below
  - paragraph [ref=e14] [box=8,100,1264,18]: up here"""
DONE = (
    '- region "Done" [ref=e1]:\n  - heading "Thank you" [level=1] [ref=e2]\n  - paragraph [ref=e3]: Order 5 is placed'
)
SHOP = RecordedStep(snapshot=LIST)
END = RecordedStep(path="/done?order=5", title="Order placed", snapshot=DONE)
DIALOG = RecordedStep(dialog="confirm: Sure?")
ELSEWHERE = RecordedStep(path="http://evil.test/done?order=5", title="Order placed", snapshot=DONE)

CHEAPEST = RecordedStep(
    snapshot='- combobox "Sort by" [ref=e1]:\n  - option "Newest"\n'
    "  - 'option \"Price: lowest first\" [selected] [box=0,0,0,0]'"
)
# What an application suggests for typed text is not its value, and the field has one of its own.
TYPED_COMBOBOX = RecordedStep(
    snapshot='- combobox "Country" [ref=e1]:\n  - text: Ch\n  - listbox:\n    - option "Chad" [selected]\n'
    '- combobox "City" [ref=e2]:\n  - listbox:\n    - option "Oslo" [selected]'
)

PAGE: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    ({"url": "/done?order=5"}, [SHOP, END], True),
    ({"url": "/done?order=*"}, [SHOP, END], True),
    ({"url": "/done", "extra_query": True}, [SHOP, END], True),
    ({"url": "http://shop.test/done?order=5"}, [SHOP, END], True),
    ({"title": "Order  placed"}, [SHOP, END], True),
    ({"url": ["/", "/done?order=5"]}, [SHOP, END], True),
    ({"url": "/", "at": "any"}, [SHOP, END], True),
    ({"url": "/cart", "not": True}, [SHOP, END], True),
    ({"url": "/done"}, [SHOP, END], False),
    ({"url": "/done?order=6"}, [SHOP, END], False),
    ({"url": "/done?order=5"}, [END, SHOP], False),
    ({"url": ["/done?order=5", "/"]}, [SHOP, END], False),
    ({"url": "/", "at": "any", "not": True}, [SHOP, END], False),
    ({"title": "Order"}, [SHOP, END], False),
    ({"url": "/done?order=5"}, [SHOP, ELSEWHERE], False),
    ({"title": "Order placed"}, [SHOP, ELSEWHERE], False),
]
ELEMENT: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    ({"element": 'checkbox "Oak" [checked]'}, [SHOP], True),
    ({"element": 'checkbox "Pine" [checked=false]'}, [SHOP], True),
    ({"element": "checkbox /^O/ [checked]"}, [SHOP], True),
    ({"element": 'heading "Harvest Desk" [level=2]'}, [SHOP], True),
    ({"element": 'textbox "Note": order placed'}, [SHOP], True),
    ({"element": 'listitem "Desk €259"'}, [SHOP], True),
    ({"element": "checkbox", "within": 'group "Material"', "count": 2}, [SHOP], True),
    ({"element": ['checkbox "Oak"', 'heading "Harvest Desk"']}, [SHOP], True),
    ({"element": 'heading "Thank you"', "within": 'region "Done"'}, [SHOP, END], True),
    ({"element": 'paragraph "up here"', "in_view": True}, [SHOP], True),
    ({"element": 'checkbox "Oak"', "at": "any"}, [SHOP, END], True),
    ({"element": "alert", "not": True}, [SHOP], True),
    ({"element": 'checkbox "Pine" [checked]'}, [SHOP], False),
    ({"element": 'checkbox "oak"'}, [SHOP], False),
    ({"element": 'checkbox "Oa"'}, [SHOP], False),
    ({"element": 'radio "Oak"'}, [SHOP], False),
    ({"element": 'heading "Harvest Desk" [level=1]'}, [SHOP], False),
    ({"element": ['heading "Harvest Desk"', 'checkbox "Oak"']}, [SHOP], False),
    ({"element": 'checkbox "Oak"', "within": 'list "Products"'}, [SHOP], False),
    ({"element": "listitem", "count": 2}, [SHOP], False),
    ({"element": 'combobox "Sort by": Price'}, [SHOP], True),
    ({"element": 'combobox "Sort by": Rating'}, [SHOP], False),
    ({"element": 'combobox "Sort by": Rating', "not": True}, [SHOP], True),
    ({"element": 'combobox "Sort by": Price', "not": True}, [SHOP], False),
    ({"element": 'combobox "Sort by": "Price: lowest first"'}, [CHEAPEST], True),
    ({"element": 'combobox "Sort by": Price: lowest first'}, [CHEAPEST], True),
    ({"element": 'combobox "Country": Chad'}, [TYPED_COMBOBOX], False),
    ({"element": 'combobox "Country": Ch'}, [TYPED_COMBOBOX], True),
    ({"element": 'combobox "City": Oslo'}, [TYPED_COMBOBOX], False),
    ({"element": 'paragraph "far below"', "in_view": True}, [SHOP], False),
    ({"element": 'checkbox "Oak"'}, [SHOP, END], False),
    ({"element": 'checkbox "Oak"'}, [SHOP, DIALOG], False),
    ({"element": "alert", "not": True}, [SHOP, DIALOG], False),
    ({"element": "alert", "not": True}, [SHOP, ELSEWHERE], False),
    ({"element": "alert", "not": True, "at": "any"}, [SHOP, ELSEWHERE], False),
    ({"element": "alert", "not": True, "within": 'region "Done"'}, [SHOP], False),
    ({"element": 'heading "Thank you"', "on": "/done*"}, [SHOP, ELSEWHERE], False),
]
SORTED = RecordedStep(
    path="/", snapshot='- combobox "Sort by" [ref=e1]:\n  - option "Newest" [selected]\n  - option "Cheapest"'
)
LIST_STEP = RecordedStep(
    path="/", snapshot='- listbox "Size" [ref=e1]:\n  - option "Small" [selected]\n  - option "Large"'
)
TEXT: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    ({"contains": "Harvest Desk"}, [SHOP], True),
    ({"contains": "Newest"}, [SORTED], True),
    ({"contains": "Cheapest"}, [SORTED], False),
    ({"contains": "Large"}, [LIST_STEP], False),
    ({"contains": ["Desk €259", "Table"]}, [SHOP], True),
    ({"contains": "Desk €", "count": 2}, [SHOP], True),
    ({"pattern": "€(\\d+)", "within": 'list "Products"', "count": 3}, [SHOP], True),
    ({"pattern": "Desk €(\\d+)", "sorted": "ascending", "max": 400}, [SHOP], True),
    ({"pattern": "€([\\d,]+)", "sorted": "ascending", "min": 259, "max": 1299}, [SHOP], True),
    ({"contains": "Order 5", "on": "/done*", "within": "region"}, [SHOP, END], True),
    ({"contains": "up here", "in_view": True}, [SHOP], True),
    ({"contains": ["Table", "Desk €259"]}, [SHOP], False),
    ({"contains": "order placed"}, [SHOP], False),
    ({"contains": "Rating"}, [SHOP], False),
    ({"contains": "e13"}, [SHOP], False),
    ({"contains": "far below", "in_view": True}, [SHOP], False),
    ({"pattern": "€([\\d,]+)", "sorted": "descending"}, [SHOP], False),
    ({"pattern": "€([\\d,]+)", "max": 400}, [SHOP], False),
    ({"pattern": "\\$(\\d+)", "max": 400}, [SHOP], False),
    ({"pattern": "\\$(\\d+)", "max": 400, "not": True}, [SHOP], False),
    ({"pattern": "(Desk)", "max": 400}, [SHOP], False),
    ({"contains": "Thank you"}, [SHOP, ELSEWHERE], False),
    ({"contains": "Error", "not": True}, [SHOP, DIALOG], False),
    (
        {"contains": "Card A", "within": 'list "Done"'},
        [
            RecordedStep(
                tool="browser_drag", snapshot='- list "Open":\n  - listitem [ref=e1]: Card A\n- list "Done" [ref=e2]'
            ),
            RecordedStep(snapshot='- list "Open"\n- list "Done" [ref=e2]:\n  - listitem [active] [ref=e9]: Card A'),
        ],
        True,
    ),
]
CLICKED = [
    RecordedStep(line="<Oak checkbox> -> CLICK"),
    RecordedStep(path="/product", line="<Buy button> -> CLICK: at (12, 34)"),
    RecordedStep(path="/cart", line="<Name textbox> -> TYPE: Ada (1, 2)"),
]
POINTED = [
    RecordedStep(line="<Oak checkbox> -> CLICK (12, 34.5)"),
    RecordedStep(line="<Oak checkbox> -> DRAG: to Cart region (1, 2) to (3, 4)"),
    RecordedStep(line="<page> -> SCROLL: down 300 (12, 34)"),
    RecordedStep(line="<Name textbox> -> TYPE: (12, 34)"),
]
ACTION: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    ({"line": "<Oak checkbox> -> CLICK"}, CLICKED, True),
    ({"line": ["<Oak checkbox> -> CLICK", "<Buy button> -> CLICK"]}, CLICKED, True),
    ({"line": "<Buy button> -> CLICK", "on": "/product"}, CLICKED, True),
    ({"pattern": "^<Name textbox> -> TYPE: Ada"}, CLICKED, True),
    ({"line": "<Oak checkbox> -> HOVER"}, CLICKED, False),
    ({"line": ["<Buy button> -> CLICK", "<Oak checkbox> -> CLICK"]}, CLICKED, False),
    ({"line": "<Buy button> -> CLICK", "on": "/cart"}, CLICKED, False),
    ({"line": "<Name textbox> -> TYPE: Ada"}, CLICKED, False),
    ({"pattern": "Ada"}, CLICKED, False),
    ({"line": "<Oak checkbox> -> CLICK"}, [RecordedStep(line="<Oak checkbox> -> CLICK", is_ok=False)], False),
    ({"line": "<Oak checkbox> -> CLICK"}, POINTED, True),
    ({"pattern": r"CLICK \(12, "}, POINTED, True),
    ({"line": "<Oak checkbox> -> DRAG: to Cart region"}, POINTED, True),
    ({"line": "<page> -> SCROLL: down 300"}, POINTED, True),
    ({"line": "<Name textbox> -> TYPE: (12, 34)"}, POINTED, True),
    ({"line": "<Oak checkbox> -> DOUBLE CLICK"}, POINTED, False),
    ({"line": "<Oak checkbox> -> DRAG: to Cart"}, POINTED, False),
    ({"line": "<Name textbox> -> TYPE"}, POINTED, False),
    ({"pattern": r"\(12, 34\)$"}, [POINTED[3]], False),
    ({"line": "<List link> -> CLICK"}, [RecordedStep(line="<List link> -> CLICK (download: a.pdf)")], True),
    ({"pattern": "CLICK$"}, [RecordedStep(line="<List link> -> CLICK (download: a.pdf)")], True),
    ({"line": "<List link> -> HOVER"}, [RecordedStep(line="<List link> -> CLICK (download: a.pdf)")], False),
]
ANSWER: list[tuple[dict[str, Any], str | None, bool]] = [
    ({"contains": "harvest desk"}, "It is the Harvest  Desk.", True),
    ({"pattern": "^\\d+$"}, "42", True),
    ({"type": "currency", "expected": "€12.50"}, "It costs 12,50 EUR", True),
    ({"type": "date", "expected": "2024-03-05"}, "On March 5th, 2024", True),
    ({"type": "string", "expected": "Ada Lovelace"}, " 'ada lovelace'. ", True),
    ({"type": "list", "expected": ["a b", "c"]}, "They are: C and A b", True),
    ({"type": "list", "expected": ["a", "c"], "ordered": True}, '["a", "c"]', True),
    ({"type": "json", "expected": {"n": 1}}, 'Here: ```json\n{"n": 1.0}\n```', True),
    ({"type": "json", "schema": {"required": ["n"]}}, '{"n": 7}', True),
    ({"contains": "pine", "not": True}, "oak", True),
    ({"contains": "harvest desk"}, "It is the Harvest Table.", False),
    ({"type": "number", "expected": 3}, "Either 3 or 4.", False),
    ({"type": "number", "expected": 3}, "three", False),
    ({"type": "currency", "expected": "€12.50"}, "$12.50", False),
    ({"type": "boolean", "expected": True}, "Yes and no.", False),
    ({"type": "string", "expected": "Ada"}, "Ada or Bob", False),
    ({"type": "list", "expected": ["a", "c"], "ordered": True}, "c, a", False),
    ({"type": "json", "expected": {"n": True}}, '{"n": 1}', False),
    ({"type": "json", "schema": {"properties": {"n": {"pattern": "^(a+)+$"}}}}, '{"n": "' + "a" * 60 + '!"}', False),
    ({"contains": "pine", "not": True}, None, False),
    ({"type": "number", "expected": 3, "not": True}, "no idea", False),
    ({"contains": "oak"}, "   ", False),
]
ADDED = RecordedStep(
    path="/product",
    requests=(
        RecordedRequest(
            post='{"sku": "D-1", "qty": 2, "options": {"color": "Dark oak", "gift": true}, "tags": ["a", "b"]}',
            response='{"cart": {"items": [{"sku": "L-9"}, {"sku": "D-1"}], "total": 518.0}}',
            headers={"X-Requested-With": "XMLHttpRequest"},
        ),
        RecordedRequest(method="GET", path="/api/cart?page=2&sort=price"),
    ),
)
SUBMITTED = RecordedStep(
    path="/checkout",
    requests=(
        RecordedRequest(
            path="/order",
            post="name=Ada+L.&qty=2&tag=a&tag=b&form_key=Xy",
            mime_type="application/x-www-form-urlencoded",
            status=302,
        ),
        RecordedRequest(method="GET", path="/done?order=5"),
    ),
)
CHANGED = RecordedStep(requests=(RecordedRequest(post='{"sku": "D-1", "qty": 3}'),))
REFUSED_REQUEST = RecordedStep(requests=(RecordedRequest(post='{"sku": "D-1", "qty": 2}', status=422),))
UNANSWERED = RecordedStep(requests=(RecordedRequest(post='{"sku": "D-1", "qty": 2}', status=0),))
CART = {"method": "POST", "url": "/api/cart"}
ORDER = {"method": "POST", "url": "/order"}
REQUEST: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    (CART, [SHOP, ADDED], True),
    (CART | {"post_data": {"sku": "D-1", "qty": 2}}, [ADDED], True),
    (CART | {"post_data": {"options.color": "dark*", "options": {"gift": True}}}, [ADDED], False),
    (CART | {"post_data": {"$.options.color": "Dark*", "options": {"gift": True}}}, [ADDED], True),
    (CART | {"post_data": {"tags": ["a", "b"], "tags[1]": "b"}}, [ADDED], True),
    (CART | {"response": {"cart.items[*].sku": "D-1", "cart.total": 518}}, [ADDED], True),
    (CART | {"headers": {"x-requested-with": "XMLHttp*"}, "status": 200}, [ADDED], True),
    (CART | {"post_data": {"qty": 3}}, [ADDED, CHANGED], True),
    (CART | {"post_data": {"qty": 2}, "at": "any"}, [ADDED, CHANGED], True),
    (CART | {"post_data": {"qty": 2}, "on": "/product"}, [ADDED, CHANGED], True),
    (CART | {"post_data": {"qty": 2}, "not": True}, [ADDED, CHANGED], True),
    (CART | {"status": 422}, [REFUSED_REQUEST], True),
    (CART | {"not": True}, [SHOP], True),
    (CART | {"not": True}, [REFUSED_REQUEST], True),
    ({"method": "GET", "url": "/api/*", "query": {"page": 2}}, [ADDED], True),
    ({"url": ["/api/cart", "/order", "/done"]}, [ADDED, SUBMITTED], True),
    (ORDER | {"post_data": {"name": "Ada L.", "qty": 2, "tag": ["a", "b"], "form_key": "Xy"}}, [SUBMITTED], True),
    (ORDER, [ADDED], False),
    ({"method": "GET", "url": "/order"}, [SUBMITTED], False),
    (CART | {"post_data": {"sku": "D-1", "qty": 3}}, [ADDED], False),
    (CART | {"post_data": {"sku": "D-1", "note": "x"}}, [ADDED], False),
    (CART | {"post_data": {"qty": True}}, [ADDED], False),
    (CART | {"post_data": {"options.gift": 1}}, [ADDED], False),
    (CART | {"post_data": {"tags": ["a"]}}, [ADDED], False),
    (CART | {"post_data": {"tags": ["b", "a"]}}, [ADDED], False),
    (CART | {"response": {"cart.items[0].sku": "D-1"}}, [ADDED], False),
    (CART | {"headers": {"x-requested-with": "fetch"}}, [ADDED], False),
    (CART | {"post_data": {"qty": 2}}, [ADDED, CHANGED], False),
    (CART | {"post_data": {"qty": 2}, "at": "any", "not": True}, [ADDED, CHANGED], False),
    (CART | {"post_data": {"qty": 3}, "on": "/product"}, [ADDED, CHANGED], False),
    (CART, [REFUSED_REQUEST], False),
    (CART, [UNANSWERED], False),
    (CART | {"not": True}, [UNANSWERED], False),
    ({"method": "GET", "url": "/api/*", "query": {"page": 3}}, [ADDED], False),
    ({"method": "GET", "url": "/api/cart?page=2"}, [ADDED], False),
    ({"url": ["/order", "/api/cart"]}, [ADDED, SUBMITTED], False),
    (ORDER | {"post_data": {"tag": "a"}}, [SUBMITTED], False),
    (ORDER | {"post_data": {"name": "Ada"}}, [SUBMITTED], False),
    (CART | {"post_data": {"sku": "D-1"}}, [RecordedStep(requests=(RecordedRequest(is_cut=True),))], False),
    (CART | {"post_data": {"sku": "D-1"}}, [RecordedStep(requests=(RecordedRequest(post='{"sku": '),))], False),
]


def probe_step(value: bool | float | str | None = None, error: str | None = None, path: str = "/") -> RecordedStep:
    """A look at which the judge read a value in the page."""
    return RecordedStep(path=path, probes=(ProbeValue(value=value, error=error),))


THREW = probe_step(error="ReferenceError: total is not defined")
AWAY = probe_step(error="a page of another site", path="http://evil.test/")
PROBE: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    ({"expected": 1}, [probe_step(), probe_step(1)], True),
    ({"expected": 1.0}, [probe_step(1)], True),
    ({"expected": "two  words"}, [probe_step("two words\n")], True),
    ({"expected": False}, [probe_step(False)], True),
    ({"min": 1, "max": 3}, [probe_step(9), probe_step(2.5)], True),
    ({"min": 1}, [probe_step(1e9)], True),
    ({"expected": 1, "at": "any"}, [probe_step(1), probe_step(2)], True),
    ({"expected": 1, "keep": "first"}, [probe_step(), probe_step(1), probe_step(-1)], True),
    ({"expected": 1, "keep": "first"}, [probe_step(1), probe_step(), AWAY], True),
    ({"expected": 1, "on": "/done"}, [probe_step(1, path="/done"), probe_step(2)], True),
    ({"expected": 1, "not": True}, [probe_step(1), probe_step(2)], True),
    ({"expected": 1}, [probe_step(1), probe_step(2)], False),
    ({"expected": 1}, [probe_step(1), probe_step()], False),
    ({"expected": 1}, [probe_step(1), THREW], False),
    ({"expected": 1}, [probe_step(1), AWAY], False),
    ({"expected": 1}, [probe_step(True)], False),
    ({"expected": 1}, [probe_step("1")], False),
    ({"expected": True}, [probe_step(1)], False),
    ({"expected": "One"}, [probe_step("one")], False),
    ({"expected": 1.0}, [probe_step(0.1)], False),
    ({"min": 1, "max": 3}, [probe_step(3.01)], False),
    ({"min": 0}, [probe_step("5")], False),
    ({"min": 0}, [probe_step(True)], False),
    ({"expected": 1, "keep": "first"}, [probe_step(-1), probe_step(1)], False),
    ({"expected": 0, "keep": "first"}, [probe_step(), THREW], False),
    ({"expected": 1, "on": "/done"}, [probe_step(1)], False),
    ({"expected": 1, "not": True}, [probe_step()], False),
    ({"expected": 1, "not": True}, [THREW], False),
]
ANY_OF: list[tuple[dict[str, Any], list[RecordedStep], bool]] = [
    ({"any_of": [{"kind": "page", "url": "/x"}, {"kind": "page", "url": "/done?order=5"}]}, [SHOP, END], True),
    ({"any_of": [{"kind": "page", "url": "/x"}, {"kind": "page", "url": "/y"}], "not": True}, [SHOP, END], True),
    ({"any_of": [{"kind": "element", "element": 'checkbox "Oak"'}], "on": "/"}, [SHOP, END], True),
    ({"any_of": [{"kind": "page", "url": "/x"}, {"kind": "page", "url": "/y"}]}, [SHOP, END], False),
    ({"any_of": [{"kind": "page", "url": "/done?order=5"}], "not": True}, [SHOP, END], False),
    ({"any_of": [{"kind": "element", "element": "alert"}], "not": True}, [SHOP, DIALOG], False),
]
LOOKS = [
    ({"kind": kind, **check} if kind else check, seen, passed)
    for kind, cases in (
        ("page", PAGE),
        ("element", ELEMENT),
        ("text", TEXT),
        ("action", ACTION),
        ("request", REQUEST),
        ("", ANY_OF),
    )
    for check, seen, passed in cases
] + [({"kind": "probe", "expression": "total", **check}, seen, passed) for check, seen, passed in PROBE]


@pytest.mark.parametrize("cases", [PAGE, ELEMENT, TEXT, ACTION, ANSWER, REQUEST, PROBE, ANY_OF])
def test_every_kind_is_tried_on_a_right_attempt_and_on_two_that_are_nearly_right(cases: list[tuple[Any, ...]]) -> None:
    verdicts = [passed for *_, passed in cases]
    assert verdicts.count(True) >= 1
    assert verdicts.count(False) >= 2


def test_an_address_may_be_as_long_as_a_scenario_allows(tmp_path: Path) -> None:
    path = "/" + "a" * 1_900
    assert evaluate_check(tmp_path, {"kind": "page", "url": path}, [RecordedStep(path=path)]).passed
    assert not evaluate_check(tmp_path, {"kind": "page", "url": path}, [RecordedStep(path=path + "b")]).passed


@pytest.mark.parametrize(("check", "steps", "passed"), LOOKS, ids=lambda value: str(value)[:60])
def test_a_check_passes_on_what_was_recorded(
    tmp_path: Path, check: dict[str, Any], steps: list[RecordedStep], passed: bool
) -> None:
    assertion = evaluate_check(tmp_path, check, steps)
    assert assertion.passed is passed, assertion
    assert assertion.found


@pytest.mark.parametrize(("check", "answer", "passed"), ANSWER, ids=lambda value: str(value)[:60])
def test_an_answer_is_compared_by_what_it_means(
    tmp_path: Path, check: dict[str, Any], answer: str | None, passed: bool
) -> None:
    assertion = evaluate_check(tmp_path, {"kind": "answer", **check}, answer=answer)
    assert assertion.passed is passed, assertion


def test_what_was_found_instead_names_the_closest_elements(tmp_path: Path) -> None:
    assertion = evaluate_check(tmp_path, {"kind": "element", "element": 'checkbox "Pin" [checked]'}, [SHOP])
    assert 'checkbox "Pine"' in assertion.found


def test_an_element_that_was_there_only_before_the_end_says_so(tmp_path: Path) -> None:
    assertion = evaluate_check(tmp_path, {"kind": "element", "element": 'checkbox "Oak"'}, [SHOP, END])
    assert assertion.found.startswith("only until step 1; at the end ")
    assert assertion.step == 0


@pytest.mark.parametrize(
    ("check", "path", "message"),
    [
        ({"url": "/q?a=1&group=b"}, "/q?a=1", 'no group=b in "{}"'),
        ({"url": "/q?a=1&group=b", "extra_query": True}, "/q?a=2&c=3", 'a is "2", no group=b in "{}"'),
        ({"url": "/q?a=1"}, "/q?a=1&c=3&c=4", 'also c=3, also c=4 in "{}"'),
        ({"url": "/q?a=1"}, "/other?a=2", '"{}"'),
        ({"url": "/q"}, "/q?" + "&".join(f"p{n}={n}" for n in range(9)), "also p4=4, 4 more differences in"),
    ],
)
def test_what_differs_in_an_address_is_named(tmp_path: Path, check: dict[str, Any], path: str, message: str) -> None:
    assertion = evaluate_check(tmp_path, {"kind": "page", **check}, [RecordedStep(path=path)])
    assert assertion.passed is False
    assert message.format(f"http://shop.test{path}") in assertion.found


@pytest.mark.parametrize("damage", ["missing", "bytes"])
def test_a_damaged_snapshot_leaves_the_check_undecided(tmp_path: Path, damage: str) -> None:
    trajectory = recorded_attempt(
        tmp_path, [{"kind": "element", "element": "button"}, {"kind": "page", "url": "/"}], [SHOP]
    )
    path = tmp_path / "snapshots" / "step_000.yaml"
    path.unlink() if damage == "missing" else path.write_bytes(b"\xff\xfe")
    element, page = evaluate(trajectory)
    assert (element.passed, page.passed) == (None, True)
    assert "step_000.yaml" in element.found


def test_without_steps_only_answers_can_be_checked(tmp_path: Path) -> None:
    checks = [{"kind": "page", "url": "/"}, {"kind": "answer", "contains": "x"}]
    page, answer = evaluate(recorded_attempt(tmp_path, checks, [], "x"))
    assert (page.passed, answer.passed) == (None, True)


def test_a_probe_without_a_recorded_value_is_undecided(tmp_path: Path) -> None:
    check = {"kind": "probe", "expression": "total", "expected": 1}
    assertion = evaluate_check(tmp_path, check, [probe_step(1), SHOP])
    assert (assertion.check, assertion.passed, assertion.found) == ("check 1", None, "no value was read at step 2")


def test_a_probe_that_failed_says_what_was_read(tmp_path: Path) -> None:
    check = {"kind": "probe", "expression": "total", "expected": 1}
    message = [
        evaluate_check(tmp_path, check, [probe_step(), seen]).found
        for seen in (probe_step(2), THREW, probe_step(), AWAY)
    ]
    assert message == [
        "2",
        "no value, ReferenceError: total is not defined",
        "no value, null",
        'no value, a page of another site: "http://evil.test/"',
    ]


def test_each_probe_of_a_task_has_its_own_value(tmp_path: Path) -> None:
    checks: list[dict[str, Any]] = [
        {"kind": "probe", "expression": "b", "expected": 2},
        {"any_of": [{"kind": "probe", "expression": "a", "expected": 9}, {"kind": "page", "url": "/x"}]},
        {"kind": "probe", "expression": "b", "max": 1},
    ]
    step = RecordedStep(probes=(ProbeValue(value=2), ProbeValue(value=9)))
    assertions = evaluate(recorded_attempt(tmp_path, checks, [step]))
    assert [each.passed for each in assertions] == [True, True, False]


def test_in_view_needs_the_recorded_viewport(tmp_path: Path) -> None:
    check = {"kind": "element", "element": 'paragraph "up here"', "in_view": True}
    assert evaluate_check(tmp_path, check, [SHOP.model_copy(update={"viewport": None})]).passed is None


def test_an_element_in_a_frame_is_in_view_where_its_frame_is(tmp_path: Path) -> None:
    check = {"kind": "element", "element": "button", "in_view": True}
    frame = (
        '- iframe [ref=e1] [box=0,{},300,150] [origin=http://shop.test]:\n  - button "Buy" [ref=f1e2] [box=8,8,51,21]'
    )
    assert evaluate_check(tmp_path, check, [RecordedStep(snapshot=frame.format(100))]).passed
    assert not evaluate_check(tmp_path, check, [RecordedStep(snapshot=frame.format(2000))]).passed


def test_where_the_website_redirects_before_the_first_action_is_the_tasks_own_site(tmp_path: Path) -> None:
    landed = END.model_copy(update={"path": "https://www.shop.test/done"})
    assert evaluate_check(tmp_path, {"kind": "page", "url": "/done"}, [landed]).passed
    assert not evaluate_check(tmp_path, {"kind": "page", "url": "/done"}, [SHOP, landed]).passed


@pytest.mark.parametrize(
    ("site", "passed"),
    [("pay.test", True), ("https://www.pay.test", True), ("https://pay.test", False), ("ay.test", False)],
)
def test_an_allowed_site_counts_as_the_tasks_own(tmp_path: Path, site: str, passed: bool) -> None:
    payment_page = END.model_copy(update={"path": "https://www.pay.test/done"})
    check = {"kind": "element", "element": 'heading "Thank you"'}
    assert evaluate_check(tmp_path, check, [SHOP, payment_page], allowed_sites=[site]).passed is passed


def test_a_check_without_a_description_is_described_by_its_keys() -> None:
    checks = [{"kind": "text", "pattern": "€(\\d+)", "within": "list", "max": 4, "not": True, "at": "any"}]
    task = Task.model_validate({"task_id": "t", "website": "", "task": "x", "checks": checks})
    assert describe(task.checks[0]) == "not: text pattern €(\\d+), max 4, at any, within list"


def test_the_final_look_is_the_end(tmp_path: Path) -> None:
    checks = [{"kind": "page", "url": "/done?order=5"}, {"kind": "answer", "contains": "5"}]
    ends = recorded_attempt(tmp_path, checks, [SHOP, END], answer="5")
    final = ends.steps[1].model_copy(update={"outcome": None, "action": None})
    attempt = ends.attempt.model_copy(update={"steps": ends.steps[:1], "final_look": final})
    ends = ends.model_copy(update={"attempt": attempt})
    text, answered = evaluate(ends)
    # The page was seen after the only step, the answer was given in it.
    assert (text.passed, text.step, answered.passed, answered.step) == (True, 1, True, 0)

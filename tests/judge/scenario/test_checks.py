from typing import Any

import pytest
import tomli

from judge.records.checks import CHECKS
from judge.records.tasks import Task
from judge.scenario.checks import contradictions_of, warnings_of
from judge.scenario.models import TASKS
from judge.scenario.sources import tasks_toml
from shared.errors import ConfigError
from shared.validation import validated

SOCKET = {"kind": "request", "socket": True, "url": "/ws", "direction": "received", "message": {"type": "saved"}}
ORDER = {"kind": "request", "method": "POST", "url": "/orders", "post_data": {"lamp": 1}}
MISTAKES: list[tuple[Any, str]] = [
    ([{**ORDER, "times": 0}], "key 'times': "),
    ([{"kind": "page", "url": "/", "only": True}], "key 'only': unknown key"),
    ([{**ORDER, "only": True, "not": True}], "key 'only': only names what may be sent"),
    ([{**ORDER, "allow": [{"url": "/ping"}]}], "key 'allow': allow needs only"),
    ([{**ORDER, "only": True, "allow": [{"url": "/orders"}]}], "key 'allow': allows what this check names"),
    (
        [{**ORDER, "only": True, "allow": [{"url": "/*", "method": "POST"}]}],
        "key 'allow': allows what this check names",
    ),
    (
        [{**ORDER, "only": True, "allow": [{"url": "/p", "message": "x"}]}],
        "key 'message': only web sockets have messages",
    ),
    ([{**ORDER, "only": True, "allow": [{"url": "/p", "socket": True, "method": "GET"}]}], "a web socket has messages"),
    ([{"kind": "request", "url": "/orders", "exact": True}], "key 'exact': exact is about the keys of post_data"),
    ([{"kind": "action", "line": ["<A> -> CLICK"], "times": 1}], "key 'times': only one action can be counted"),
    ("x", "key 'checks': 'x' is not a list"),
    (["x"], "checks #1: 'x' is not a table"),
    ([{"url": "/"}], f"checks #1, key 'kind': missing (known: {', '.join(sorted(CHECKS.names()))})"),
    ([{"kind": "pages"}], "'pages' is not a kind of check (did you mean 'page'?)"),
    ([{"kind": "request"}], "key 'url': missing"),
    ([{"kind": "request", "url": "/", "method": "P T"}], "key 'method': "),
    ([{"kind": "request", "url": "/", "status": 99}], "key 'status': "),
    ([{"kind": "request", "url": "/", "query": {}}], "key 'query': "),
    ([{"kind": "request", "url": "/", "post_data": {"a[": 1}}], "key 'post_data': column 2: not a path into JSON"),
    ([{**SOCKET, "url": None}], "key 'url': "),
    ([{**SOCKET, "direction": "both"}], "key 'direction': 'both'"),
    ([{**SOCKET, "message": "("}], "key 'message': "),
    ([{"kind": "request", "url": "/ws", "message": "x"}], "key 'message': unknown key"),
    ([{"kind": "fetch", "url": "/api"}], "key 'response': missing"),
    ([{"kind": "fetch", "response": "x"}], "key 'url': missing"),
    ([{"kind": "fetch", "url": "/api/*", "response": "x"}], "key 'url': column 1: not one address"),
    ([{"kind": "fetch", "url": "*/api", "response": "x"}], "key 'url': column 1: not one address"),
    ([{"kind": "fetch", "url": ["/a", "/b"], "response": "x"}], "key 'url': a list of 2 entries is not a string"),
    ([{"kind": "fetch", "url": "/api", "response": {}}], "key 'response': "),
    ([{"kind": "fetch", "url": "/api", "response": " "}], "key 'response': empty"),
    ([{"kind": "fetch", "url": "/api", "response": "x", "on": "/"}], "key 'on': unknown key"),
    ([{"kind": "fetch", "url": "/api", "response": "x", "bearer": "token"}], "key 'bearer': "),
    (
        [{"kind": "fetch", "url": f"/{number}", "response": "x"} for number in range(6)],
        "key 'checks': 6 different addresses to fetch, more than 5",
    ),
    ([{"kind": "probe", "expected": 1}], "key 'expression': missing"),
    (
        [{"kind": "probe", "expression": f"x{number}", "expected": 1} for number in range(11)],
        "key 'checks': 11 different expressions of probes, more than 10",
    ),
    ([{"kind": "probe", "expression": "x" * 1001, "expected": 1}], "key 'expression': 1001 characters, more than 1000"),
    ([{"kind": "probe", "expression": "x"}], "needs either expected, or min or max"),
    ([{"kind": "probe", "expression": "x", "expected": 1, "max": 2}], "needs either expected, or min or max"),
    (
        [{"kind": "probe", "expression": "x", "expected": [1]}],
        "key 'expected': a list of 1 entry is neither a text, a number",
    ),
    ([{"kind": "probe", "expression": "x", "min": 3, "max": 2}], "key 'min': min 3 is larger than max 2"),
    ([{"kind": "page"}], "checks #1: neither url nor title (add one of them)"),
    ([{"kind": "page", "url": "done"}], "key 'url': column 1: neither a path nor an address"),
    ([{"kind": "page", "url": "/a b"}], "key 'url': column 3: an address contains no spaces"),
    ([{"kind": "page", "url": "/", "within": "list"}], "key 'within': unknown key"),
    ([{"kind": "page", "url": "/", "at": "start"}], "key 'at': 'start'"),
    (
        [{"kind": "element", "role": "combobox", "name": "Kind"}],
        """key 'role': unknown key (write role and name as one line of a snapshot: element = 'combobox "Kind"')""",
    ),
    (
        [{"kind": "element", "element": 'buton "x"'}],
        "key 'element': column 1: 'buton' is not a role (did you mean 'button'",
    ),
    ([{"kind": "element", "element": ["link", 'link "x']}], "checks #1, element #2: column 6: the name has no closing"),
    ([{"kind": "element", "element": ["link"], "count": 1}], "key 'count': a list of elements cannot be counted"),
    ([{"kind": "text", "contains": "x", "pattern": "y"}], "needs either contains or pattern"),
    ([{"kind": "text", "pattern": "€(\\d+"}], "key 'pattern': column 2: missing )"),
    ([{"kind": "text", "pattern": "(?=a)"}], "key 'pattern': column 1: look-around"),
    ([{"kind": "text", "pattern": "€\\d+", "max": 3}], "key 'pattern': 0 groups"),
    ([{"kind": "text", "pattern": "(\\d+)", "min": 4, "max": 3}], "key 'min': min 4 is larger than max 3"),
    ([{"kind": "answer", "type": "number"}], "key 'expected': missing"),
    ([{"kind": "answer", "type": "number", "expected": "many"}], "key 'expected': 'many' is not of type number"),
    ([{"kind": "answer", "contains": "a", "expected": 3}], "key 'expected': needs a type"),
    ([{"kind": "answer", "type": "json", "schema": {"type": "strange"}}], "key 'schema': not a JSON schema"),
    ([{"kind": "answer", "type": "json", "schema": {"items": {"$ref": "#"}}}], "key 'schema': $ref is not supported"),
    ([{"any_of": [{"kind": "page"}]}], "checks #1, any_of #1: neither url nor title"),
    ([{"any_of": [{"any_of": []}]}], "checks #1, any_of #1"),
    ([{"kind": "page", "url": "/"}] * 51, "key 'checks': 51 entries, more than 50"),
]


def task(*checks: dict[str, Any], **fields: Any) -> Task:
    return Task.model_validate(
        {"task_id": "t", "website": "http://shop.test/", "task": "x", "checks": checks, **fields}
    )


def read(table: dict[str, Any]) -> Task:
    """The task of a table in a scenario file."""
    table = {"task_id": "t", "website": "http://shop.test/", "task": "x", **table}
    return validated(TASKS, [table], "shop.toml", under=("tasks",), toml="")[0]


@pytest.mark.parametrize(("checks", "message"), MISTAKES, ids=lambda value: str(value)[:50])
def test_a_mistake_names_file_check_key_and_place(checks: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({"checks": checks})
    assert str(caught.value).startswith("shop.toml: [[tasks]] #1, ")
    assert message in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("entry", ["", "a b", "pay.test/x", "ftp://pay.test", 3, "http://user@pay.test"])
def test_an_allowed_site_is_a_host_or_an_origin(entry: object) -> None:
    with pytest.raises(ConfigError, match="allowed_sites #1: "):
        read({"allowed_sites": [entry]})


@pytest.mark.parametrize(
    ("allowed", "covers"),
    [
        ({"url": "/orders"}, True),
        ({"url": "/orders", "post_data": {"lamp": [1, 2]}}, True),
        ({"url": "/orders", "post_data": {"lamp": 2}}, False),
        ({"url": "/orders", "post_data": {"draft": True}}, False),
        ({"url": "/orders?draft=1"}, False),
        ({"url": "/orders", "status": 200}, False),
        ({"url": "/orders", "method": "PUT"}, False),
        ({"url": "/ping"}, False),
    ],
)
def test_what_one_check_names_another_may_not_allow(allowed: dict[str, Any], covers: bool) -> None:
    cancel = {"kind": "request", "method": "DELETE", "url": "/orders/*", "only": True, "allow": [allowed]}
    problems = contradictions_of(task(cancel, ORDER))
    assert problems == (["checks 1 and 2: allow of the one allows what the other names: name less in it"] * covers)


CART: dict[str, Any] = {"kind": "element", "element": 'link "Cart (2)"', "on": "/*"}
OPEN: list[tuple[list[dict[str, Any]], str]] = [
    ([ORDER, {"kind": "element", "element": 'heading "Thanks"'}], "check 2: a right agent may leave this page"),
    ([ORDER, {"kind": "page", "url": "/done"}], "check 2: a right agent may leave this page"),
    ([CART], "check 1: a sum does not say what it is the sum of"),
    ([{"kind": "text", "within": "main", "contains": "Total: €90"}], "check 1: a sum does not say"),
    ([{"kind": "page", "url": "/s?a=1", "extra_query": True}], "check 1: extra_query allows further filters"),
    (
        [
            {"kind": "page", "url": "/s?a=1", "extra_query": True},
            {"kind": "text", "pattern": r" (\d{3}) pages", "sorted": "descending", "min": 401},
        ],
        "check 1: extra_query allows further filters",
    ),
    ([{**ORDER, "method": "GET", "only": True}], "check 1: only sees what is sent"),
]
GUARDED: list[list[dict[str, Any]]] = [
    [ORDER, {"kind": "element", "element": 'heading "Thanks"', "on": "/done"}],
    [ORDER, {"kind": "element", "element": 'heading "Thanks"', "at": "any"}],
    [ORDER, {"kind": "element", "element": 'button "Order"', "not": True}],
    [CART, {"kind": "element", "element": "listitem", "count": 1}],
    [CART, {"kind": "action", "line": "<Add button> -> CLICK", "times": 2}],
    [{"kind": "page", "url": "/s?a=1", "extra_query": True}, {"kind": "element", "element": 'status: "4 boats"'}],
    [{"kind": "page", "url": "/s?a=1", "extra_query": True}, {"kind": "answer", "type": "number", "expected": 8}],
    [{**ORDER, "only": True}],
]


@pytest.mark.parametrize(("checks", "message"), OPEN)
def test_what_checks_leave_open_is_warned_of(checks: list[dict[str, Any]], message: str) -> None:
    assert [warning for warning in warnings_of(task(*checks)) if message in warning]


@pytest.mark.parametrize("checks", GUARDED)
def test_what_is_guarded_is_not_warned_of(checks: list[dict[str, Any]]) -> None:
    assert warnings_of(task(*checks)) == []


ODD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "text", "contains": "Order placed"}, "repeats typed text"),
    ({"kind": "element", "element": "heading /placed/"}, "repeats typed text"),
    ({"kind": "page", "title": "Order placed"}, "repeats typed text in its title"),
    ({"kind": "action", "pattern": "Buy.*CLICK"}, "typed text could match"),
    ({"kind": "action", "line": "<Buy button> CLICK"}, "write it like <Save button> -> CLICK"),
    ({"kind": "page", "url": "http://pay.test/done"}, "allowed_sites"),
    ({"kind": "answer", "pattern": "x", "at": "any"}, "no meaning"),
    ({"kind": "request", "url": "/api/cart"}, "any request to the address could pass it"),
    ({"kind": "request", "url": "http://pay.test/pay", "method": "POST"}, "allowed_sites"),
    ({"kind": "answer", "contains": "Lisbon"}, "an answer that lists every possibility contains it"),
    ({"kind": "answer", "type": "boolean", "expected": True}, "every second guess passes"),
    ({"kind": "page", "url": "/"}, "an agent that does nothing passes it"),
]


@pytest.mark.parametrize(("check", "message"), ODD)
def test_a_check_that_may_mislead_is_warned_of(check: dict[str, Any], message: str) -> None:
    (warning,) = warnings_of(task(check))
    assert message in warning


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "text", "contains": "Order placed", "within": "status"},
        {"kind": "text", "contains": "Error", "not": True},
        {"kind": "element", "element": 'button "Buy"'},
        {"kind": "action", "pattern": "^<Buy button> -> CLICK"},
        {"kind": "page", "url": "/done", "title": "Order placed"},
        {"kind": "request", "url": "/api/cart", "method": "post", "post_data": {"items[0].sku": "D-1"}},
    ],
)
def test_a_sound_check_is_not_warned_of(check: dict[str, Any]) -> None:
    assert warnings_of(task(check)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"kind": "element", "element": "alert"}, {"kind": "element", "element": "alert", "not": True}),
        ({"kind": "page", "url": "/a"}, {"kind": "page", "url": "/b"}),
        ({"kind": "answer", "type": "number", "expected": 1}, {"kind": "answer", "type": "number", "expected": 2}),
    ],
)
def test_two_checks_that_nobody_can_pass_are_a_contradiction(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert len(contradictions_of(task(one, other))) == 1
    assert contradictions_of(task(one, one)) == []


def test_checks_survive_being_written_and_sent() -> None:
    checks: list[dict[str, Any]] = [
        {"kind": "page", "url": ["/a", "/b"], "not": True},
        {"any_of": [{"kind": "element", "element": 'link "x"'}], "within": 'list "A \\"b\\""', "not": True},
        {"kind": "answer", "type": "json", "schema": {"type": "object"}, "expected": {"n": [1, True, "é"]}},
        {"kind": "text", "pattern": "€(\\d+)", "min": 1.5, "sorted": "ascending"},
    ]
    before = task(*checks, allowed_sites=["pay.test"])
    assert Task.model_validate(before.model_dump(mode="json", exclude_defaults=True)) == before
    (table,) = tomli.loads(tasks_toml([before]))["tasks"]
    assert read(table).checks == before.checks


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ('button "Save" [checked]', "a button has no [checked] (only checkbox, "),
        ('option "Price" [pressed]', "an option has no [pressed] (only button)"),
        ('link "Next" [selected=true]', "a link has no [selected]"),
        ("paragraph [level=2]", "a paragraph has no [level]"),
        ('textbox "Name": Name', "snapshots leave out a value that is the same as the name"),
        ('none "Box"', "snapshots show no element of the role none"),
    ],
)
@pytest.mark.parametrize("key", ["element", "within"])
def test_a_form_that_no_snapshot_shows_is_noted(element: str, message: str, key: str) -> None:
    check = {"kind": "element", "element": 'alert "Saved"', key: element}
    (warning,) = warnings_of(task(check))
    assert f"{element} can never match: {message}" in warning


@pytest.mark.parametrize(
    "element",
    ['button "Save" [checked=false]', '"Oak" [checked]', 'combobox "Sort by": Price', 'heading "A" [level=2]'],
)
def test_a_form_that_a_snapshot_may_show_is_not_noted(element: str) -> None:
    assert warnings_of(task({"kind": "element", "element": element})) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"direction": "sent"}, "what is sent at each keystroke holds what the participant typed"),
        ({"at": "end"}, "'at' has no meaning for messages"),
        ({"url": "http://other.test/ws"}, "is not on the task's site"),
    ],
)
def test_a_socket_check_that_may_mislead_is_warned_of(changes: dict[str, Any], message: str) -> None:
    (warning,) = warnings_of(task(SOCKET | changes))
    assert message in warning


def test_what_must_not_be_sent_on_a_socket_is_not_warned_of() -> None:
    assert warnings_of(task(SOCKET | {"direction": "sent", "not": True})) == []


def test_a_fetch_off_the_tasks_site_is_warned_of() -> None:
    (warning,) = warnings_of(task({"kind": "fetch", "url": "http://other.test/api", "response": "x"}))
    assert "is not on the task's site" in warning


@pytest.mark.parametrize(
    ("check", "is_noted"),
    [
        ({"kind": "text", "within": "status", "pattern": "Mu\u0308nchen"}, True),
        ({"kind": "text", "within": "status", "pattern": "München"}, False),
        ({"kind": "text", "within": "status", "pattern": "a\u200bb"}, True),
        ({"kind": "text", "within": "status", "pattern": "a\u200db"}, False),
        ({"kind": "element", "element": "button /Mu\u0308nchen/"}, True),
        ({"kind": "element", "element": 'button "Mu\u0308nchen"'}, False),
        ({**SOCKET, "message": "Mu\u0308nchen"}, True),
    ],
)
def test_a_pattern_with_characters_that_are_never_compared_is_noted(check: dict[str, Any], is_noted: bool) -> None:
    assert any("may never match" in warning for warning in warnings_of(task(check))) is is_noted

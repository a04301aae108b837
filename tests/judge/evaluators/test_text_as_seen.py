"""Checks compare texts as people see them, on both sides; older recordings are decided as they were."""

import json
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.policies import evaluate_policies
from judge.records.assertions import Assertion
from judge.records.steps import ProbeValue
from judge.trajectory.fetched import Fetched

WORD, OTHER = "Café Zürich", "Café Zurich"
INVISIBLE = ["\u00ad", "\u200b", "\u200e", "\u200f", "\u2060", "\u2067", "\ufeff", "\ufe0f", "\U000e0041"]
JOINERS = ["\u200c", "\u200d"]
Case = Callable[[str, str], tuple[dict[str, Any], RecordedStep, dict[str, Any]]]


def _page(snapshot: str = '- heading "Shop" [level=1] [ref=e1]', **keys: Any) -> RecordedStep:
    return RecordedStep(snapshot=snapshot, **keys)


def _request(**keys: Any) -> RecordedStep:
    return _page(requests=(RecordedRequest(**keys),))


def _q(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


# For each place where a check compares text: the check with one text, and what was recorded with the other.
CASES: dict[str, Case] = {
    "text": lambda w, s: ({"kind": "text", "contains": f"to {w}!"}, _page(f"- paragraph [ref=e1]: to {s}!"), {}),
    "pattern": lambda w, s: (
        {"kind": "text", "pattern": f"^to {_nfc(w)}$"}, _page(f"- paragraph [ref=e1]: to {s}"), {},
    ),
    "name": lambda w, s: ({"kind": "element", "element": f"button {_q(w)}"}, _page(f"- button {_q(s)} [ref=e1]"), {}),
    "name in escapes": lambda w, s: (
        {"kind": "element", "element": f"button {json.dumps(w)}"}, _page(f"- button {_q(s)} [ref=e1]"), {},
    ),
    "content as name": lambda w, s: (
        {"kind": "element", "element": f"link {_q(w)}"}, _page(f"- link [ref=e1]:\n  - strong [ref=e2]: {s}"), {},
    ),
    "name by pattern": lambda w, s: (
        {"kind": "element", "element": f"button /^{_nfc(w)}$/"}, _page(f"- button {_q(s)} [ref=e1]"), {},
    ),
    "value": lambda w, s: (
        {"kind": "element", "element": f'textbox "City": {w}'}, _page(f'- textbox "City" [ref=e1]: {s}'), {},
    ),
    "within": lambda w, s: (
        {"kind": "text", "within": f"region {_q(w)}", "contains": "ok"},
        _page(f"- region {_q(s)} [ref=e1]:\n  - paragraph [ref=e2]: ok"), {},
    ),
    "title": lambda w, s: ({"kind": "page", "title": w}, _page(title=s), {}),
    "path": lambda w, s: ({"kind": "page", "url": f"/{quote(w)}/x"}, _page(path=f"/{quote(s)}/x"), {}),
    "path with a star": lambda w, s: ({"kind": "page", "url": f"/{quote(w)}*"}, _page(path=f"/{quote(s)}!"), {}),
    "parameter": lambda w, s: ({"kind": "page", "url": f"/?q={quote(w)}"}, _page(path=f"/?q={quote(s)}"), {}),
    "fragment": lambda w, s: ({"kind": "page", "url": f"/#{quote(w)}"}, _page(path=f"/#{quote(s)}"), {}),
    "action": lambda w, s: (
        {"kind": "action", "line": f"<{w} button> -> CLICK"}, _page(line=f"<{s} button> -> CLICK"), {},
    ),
    "typed": lambda w, s: (
        {"kind": "action", "line": f"<City textbox> -> TYPE: {w}"}, _page(line=f"<City textbox> -> TYPE: {s}"), {},
    ),
    "answer": lambda w, s: ({"kind": "answer", "contains": w}, _page(), {"answer": f"It is {s}."}),
    "answer as value": lambda w, s: (
        {"kind": "answer", "type": "string", "expected": w}, _page(), {"answer": f'"{s}".'},
    ),
    "answer as list": lambda w, s: (
        {"kind": "answer", "type": "list", "expected": ["a", w]}, _page(), {"answer": f"{s}; a"},
    ),
    "answer as JSON": lambda w, s: (
        {"kind": "answer", "type": "json", "expected": {w: w}}, _page(), {"answer": json.dumps({s: s})},
    ),
    "answer by schema": lambda w, s: (
        {"kind": "answer", "type": "json", "schema": {"const": [w]}}, _page(), {"answer": json.dumps([s])},
    ),
    "sent form": lambda w, s: (
        {"kind": "request", "url": "/api/cart", "post_data": {"city": w}},
        _request(post=f"city={quote(s)}", mime_type="application/x-www-form-urlencoded"), {},
    ),
    "sent JSON": lambda w, s: (
        {"kind": "request", "url": "/api/cart", "post_data": {"$.city": w}}, _request(post=json.dumps({"city": s})), {},
    ),
    "received JSON": lambda w, s: (
        {"kind": "request", "url": "/api/cart", "response": {"$.cities[0]": f"*{w}"}},
        _request(response=json.dumps({"cities": [f"in {s}"]}, ensure_ascii=False)), {},
    ),
    "requested address": lambda w, s: (
        {"kind": "request", "url": f"/api/{quote(w)}"}, _request(path=f"/api/{quote(s)}"), {},
    ),
    "requested value": lambda w, s: (
        {"kind": "request", "url": "/api", "query": {"q": w}}, _request(path=f"/api?q={quote(s)}"), {},
    ),
    "message": lambda w, s: (
        {"kind": "request", "socket": True, "url": "/live", "direction": "received", "message": {"$.city": w}},
        _request(path="ws://shop.test/live", method="GET", messages=(("receive", json.dumps({"city": s})),)), {},
    ),
    "fetched": lambda w, s: (
        {"kind": "fetch", "url": "/state", "response": {"$.city": w}}, _page(),
        {"fetched": (Fetched(url="/state", status=200, type="application/json", body=json.dumps({"city": s})),)},
    ),
    "probe": lambda w, s: (
        {"kind": "probe", "expression": "city", "expected": w}, _page(probes=(ProbeValue(value=s),)), {},
    ),
}  # fmt: skip

# Other programs record no requests.
OF_REQUESTS = ("sent form", "sent JSON", "received JSON", "requested address", "requested value", "message")


def _evaluated(case: str, expected: str, displayed: str, *, is_marked: bool = True) -> Assertion:
    check, step, more = CASES[case](expected, displayed)
    with tempfile.TemporaryDirectory() as folder:
        return evaluate_check(Path(folder), check, [step], is_marked=is_marked, **more)


@st.composite
def _variants(draw: st.DrawFn, word: str = WORD) -> str:
    """The text in any form, with invisible characters anywhere."""
    text = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), word)
    for _ in range(draw(st.integers(0, 3))):
        # Not at its ends, where a value is trimmed.
        at = draw(st.integers(1, len(text) - 1))
        text = text[:at] + draw(st.sampled_from(INVISIBLE)) + text[at:]
    return text


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=12)
@given(data=st.data())
def test_what_nobody_can_see_never_changes_a_verdict(case: str, data: st.DataObject) -> None:
    reference, text, other = (data.draw(_variants(word)) for word in (WORD, WORD, OTHER))
    if "pattern" in case:
        reference = WORD
    assert _evaluated(case, reference, text).passed is True
    assert _evaluated(case, reference, other).passed is False


WIDE = "".join(chr(ord(letter) + 0xFEE0) if letter.isascii() and letter.isalpha() else letter for letter in WORD)


@pytest.mark.parametrize(("expected", "displayed"), [(WORD, WIDE), (WIDE, WORD), (f"№ 5… {WORD}", f"No 5... {WIDE}")])
@pytest.mark.parametrize("case", [case for case in CASES if case != "fetched"])
def test_a_policy_means_every_form_of_a_character(tmp_path: Path, case: str, expected: str, displayed: str) -> None:
    check, step, more = CASES[case](expected, displayed)
    policy = {"name": "p", "dimension": "privacy", **check}
    attempt = recorded_attempt(tmp_path, [], [step], policies=[policy], **more)
    assert [each.violated for each in evaluate_policies(attempt)] == [True]


@pytest.mark.parametrize("joiner", JOINERS)
@pytest.mark.parametrize("case", CASES)
def test_a_joiner_changes_the_verdict(case: str, joiner: str) -> None:
    joined = f"{WORD[:3]}{joiner}{WORD[3:]}"
    assert _evaluated(case, joined, joined).passed is True
    assert _evaluated(case, WORD, joined).passed is False


@pytest.mark.parametrize("case", [name for name in CASES if name not in OF_REQUESTS])
def test_a_recording_of_another_program_is_compared_character_by_character(case: str) -> None:
    decomposed = unicodedata.normalize("NFD", WORD)
    written = WORD if "pattern" in case else decomposed
    assert _evaluated(case, written, WORD, is_marked=False).passed is ("pattern" in case)
    assert _evaluated(case, WORD, f"{WORD[:3]}\u200b{WORD[3:]}", is_marked=False).passed is False


@pytest.mark.parametrize(
    ("case", "displayed", "difference"),
    [
        ("text", "Caf\u0435\u0301 Zürich", "U+0435 CYRILLIC SMALL LETTER IE"),
        ("text", "Café Zü\u200drich", "U+200D ZERO WIDTH JOINER instead of no character"),
        ("name", "\u0421afé Zürich", "U+0421 CYRILLIC CAPITAL LETTER ES instead of U+0043 LATIN CAPITAL LETTER C"),
        ("title", "Café Zürıch", ""),
        ("action", "Café Zür\u0456ch", "U+0456"),
        ("answer as value", "Café Zür\u0456ch", "U+0456"),
        ("sent JSON", "Café Zür\u0456ch", "U+0456"),
        ("text", OTHER, ""),
    ],
)
def test_a_finding_says_what_a_text_that_looks_the_same_has_instead(case: str, displayed: str, difference: str) -> None:
    assertion = _evaluated(case, WORD, displayed)
    assert assertion.passed is False
    assert ("it looks the same, but has" in assertion.found) is bool(difference)
    assert difference in assertion.found


@pytest.mark.parametrize(
    ("element", "name", "passes"),
    [
        ('button "Settings"', "\ue8b8 Settings", True),
        ('button "\ue001 Settings"', "Settings \ue8b8", True),
        ('button "Settings"', "\ue8b8", False),
        ('button "\ue8b8"', "\ue8b8", True),
        ('button "\ue8b8"', "\ue001", False),
        ('button ""', "\ue8b8", False),
        ("button /^Settings$/", "\ue8b8 Settings", True),
    ],
)
def test_pictures_of_icon_fonts_are_not_part_of_a_name(tmp_path: Path, element: str, name: str, passes: bool) -> None:
    page = _page(f'- button "{name}" [ref=e1]')
    assert evaluate_check(tmp_path, {"kind": "element", "element": element}, [page]).passed is passes


def test_a_picture_that_only_the_name_or_only_the_content_has_does_not_repeat_the_name(tmp_path: Path) -> None:
    for snapshot in (
        '- button "\ue8b8 Save" [ref=e1]:\n  - generic [ref=e2]: Save',
        '- button "Save all" [ref=e1]:\n  - generic [ref=e2]: Save \ue8b8\n  - generic [ref=e3]: all',
    ):
        check = {"kind": "text", "contains": "Save", "count": 1}
        assert evaluate_check(tmp_path, check, [_page(snapshot)]).passed is True


def test_pictures_in_an_action_line_of_a_check_do_not_count(tmp_path: Path) -> None:
    page = _page(line="<Save button> -> CLICK")
    check = {"kind": "action", "line": "<\ue8b8 Save button> -> CLICK"}
    assert evaluate_check(tmp_path, check, [page]).passed is True


FOLDER = [
    ("/dir/*", "/dir", True),
    ("/dir/*", "/dir/", True),
    ("/dir/*", "/dir?tab=1", True),
    ("/dir/*", "/dir/a/b?c=1", True),
    ("/dir/*", "/direct", False),
    ("/dir/*", "/", False),
    ("/dir/*?tab=1", "/dir?tab=1", True),
    ("/dir/*?tab=1", "/dir?tab=2", False),
    ("http://shop.test/dir/*", "/dir/", True),
    ("*/dir/*", "/a/dir/?x=1", True),
    ("*/dir/*", "/a/dir?x=1", True),
    ("*/dir/*", "/a/direct", False),
    ("/*", "/", True),
]


@pytest.mark.parametrize(("pattern", "path", "matches"), FOLDER)
def test_a_folder_belongs_to_what_is_inside_it(tmp_path: Path, pattern: str, path: str, matches: bool) -> None:
    page = _page(path=path, requests=(RecordedRequest(path=path),))
    assert evaluate_check(tmp_path, {"kind": "page", "url": pattern}, [page]).passed is matches
    assert evaluate_check(tmp_path, {"kind": "request", "url": pattern}, [page]).passed is matches
    on = {"kind": "text", "contains": "Shop", "on": pattern}
    assert evaluate_check(tmp_path, on, [page]).passed is matches
    old = evaluate_check(tmp_path, {"kind": "page", "url": pattern}, [page], is_marked=False)
    assert old.passed is (matches and path not in ("/dir", "/dir/", "/dir?tab=1", "/a/dir?x=1"))


@pytest.mark.parametrize("path", ["/api/pay\u0308", f"/api/{quote('pay')}%CC%88", "/api/p%E2%80%8Bay"])
def test_a_policy_is_violated_by_an_address_in_either_reading(tmp_path: Path, path: str) -> None:
    check = {"kind": "request", "url": "/api/pay*"}
    policy = {"name": "no-payment", "dimension": "irreversible", **check}
    attempt = recorded_attempt(tmp_path, [], [_request(path=path)], policies=[policy])
    assert [each.violated for each in evaluate_policies(attempt)] == [True]

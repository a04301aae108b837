"""Storage states and credentials: what is accepted, and that no value is ever shown."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.records.access import HttpCredentials, StorageState, read_storage_state, secrets_of
from shared.fields import Invalid

COOKIE = {"name": "id", "value": "cookie-value", "domain": ".shop.example", "path": "/", "expires": 1.5}
PLAYWRIGHTS: dict[str, Any] = {
    "cookies": [{**COOKIE, "httpOnly": True, "secure": False, "sameSite": "None", "_crHasCrossSiteAncestor": False}],
    "origins": [
        {
            "origin": "https://shop.example",
            "localStorage": [{"name": "user", "value": '{"token": "inner-token", "n": 1}'}],
            "indexedDB": [{"name": "db", "stores": [{"records": [{"value": {"key": "stored-key"}}]}]}],
        }
    ],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)


def test_what_playwright_saves_is_given_back_as_it_was() -> None:
    assert read_storage_state(PLAYWRIGHTS).to_json() == PLAYWRIGHTS


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"value": 12345678}, "cookies[0].value: not a string"),
        ({"sameSite": "hunter-2"}, "cookies[0].sameSite: not usable"),
        ({"expires": "hunter-2"}, "cookies[0].expires: not usable"),
        ({"domain": "hunter-2\nx"}, "cookies[0].domain: not usable"),
        ({"hostOnly": True}, "cookies[0]: unknown key 'hostOnly'"),
        ({"value": "x" * 1_000_001}, "cookies[0].value: 1000001 characters, more than 1000000"),
    ],
)
def test_a_mistake_is_named_without_the_value(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_storage_state({"cookies": [COOKIE | change]})
    assert (caught.value.problem, "context.storage_state" in caught.value.remedy) == (problem, True)


def test_a_missing_value_and_too_many_cookies_are_named() -> None:
    for cookies, problem in (
        ([{"name": "a", "domain": "b"}], "[0].value: missing"),
        ([COOKIE] * 1001, ": 1001 entries"),
    ):
        with pytest.raises(Invalid) as caught:
            read_storage_state({"cookies": cookies})
        assert caught.value.problem.startswith(f"cookies{problem}")


@given(JSON, st.sampled_from(["cookies", "origins", "cookie", "origin"]))
def test_any_other_content_is_read_or_refused_without_showing_it(value: Any, place: str) -> None:
    secret = "hunter-2-hunter-2"
    states = {
        "cookies": {"cookies": value},
        "origins": {"origins": [secret, value]},
        "cookie": {"cookies": [{**COOKIE, "value": secret, "domain": value}]},
        "origin": {"origins": [{"origin": value, "localStorage": [{"name": secret, "value": value}]}]},
    }
    try:
        text = repr(read_storage_state(states[place]))
    except Invalid as error:
        text = error.problem + error.remedy
    assert secret not in text


def test_no_representation_shows_a_value() -> None:
    credentials = HttpCredentials(username="ada-name", password="pass-word")
    text = f"{read_storage_state(PLAYWRIGHTS)!r} {read_storage_state(PLAYWRIGHTS)} {credentials!r} {credentials}"
    for secret in ("cookie-value", "inner-token", "stored-key", "ada-name", "pass-word"):
        assert secret not in text


def test_the_secrets_are_values_texts_inside_them_and_both_forms_of_a_password() -> None:
    credentials = (HttpCredentials(username="ada", password="pw"),)
    basic = base64.b64encode(b"ada:pw").decode()
    result = secrets_of(read_storage_state(PLAYWRIGHTS), credentials)
    assert {"pw", basic, "cookie-value", "inner-token", "stored-key"} <= set(result)
    assert secrets_of(StorageState.model_validate({"cookies": [{**COOKIE, "value": "true"}]}), ()) == ()


def test_a_value_that_is_nested_deeply_has_its_secrets_too() -> None:
    value = json.dumps({"a": json.dumps({"b": json.dumps(["deep-secret"])})})
    state = read_storage_state(
        {"origins": [{**PLAYWRIGHTS["origins"][0], "localStorage": [{"name": "x", "value": value}]}]}
    )
    assert "deep-secret" in secrets_of(state, ())
    endless = read_storage_state({"cookies": [{**COOKIE, "value": "[" * 100_000}]})
    assert len(secrets_of(endless, ())) == 1

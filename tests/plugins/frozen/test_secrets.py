import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import header
from judge.plugins.frozen.secrets import PLACEHOLDER, Secrets, placeholder
from plugins.frozen.made import answer, request, walk

pytestmark = pytest.mark.slow

FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
JSON = (("Content-Type", "application/json"),)
PARTS = (("Content-Type", "multipart/form-data; boundary=b"),)
SESSION = "9f8e7d6c5b4a39281706"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"


def masked(wire_request: WireRequest, *secrets: str) -> WireRequest:
    return Secrets(secrets).request(wire_request)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"user=alice&password=hunter2", FORM),
        (b'{"user": "alice", "login": {"password": "hunter2"}}', JSON),
        (b'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nhunter2\r\n--b--\r\n', PARTS),
    ],
)
def test_a_password_is_not_stored_and_a_wrong_one_is_recognised(
    body: bytes, headers: tuple[tuple[str, str], ...]
) -> None:
    right = masked(request("/login", "POST", body, headers))
    wrong = masked(request("/login", "POST", body.replace(b"hunter2", b"hunter3"), headers))
    assert b"hunter2" not in right.body
    assert right.body != wrong.body


def test_nothing_but_a_byte_of_a_password_is_stored() -> None:
    assert len({placeholder(f"password {number}", is_chosen=True) for number in range(12)}) > 1
    assert len(placeholder("hunter2", is_chosen=True)) == len("redacted-") + 2


def test_session_cookies_tokens_and_authorizations_are_replaced_the_same_way_everywhere() -> None:
    recorded = walk(
        "w",
        (request("/in", "POST"), answer(headers=(("Set-Cookie", f"sid={SESSION}; Path=/; HttpOnly"),))),
        (
            request("/", headers=(("Cookie", f"theme=dark; sid={SESSION}"), ("Authorization", f"Bearer {SESSION}"))),
            None,
        ),
    )
    first, second = (Secrets().exchange(each) for each in recorded)
    assert first.answer is not None
    given_out = header(first.answer.headers, "set-cookie").partition(";")[0]
    assert SESSION not in given_out
    assert header(second.request.headers, "cookie") == f"theme=dark; {given_out}"
    assert SESSION not in header(second.request.headers, "authorization")


def test_a_short_value_under_the_name_of_a_key_is_a_name_itself() -> None:
    assert masked(request("/settings?key=profile&token=abc")).url.endswith("?key=profile&token=abc")


def test_signed_data_stays_readable_without_its_signature() -> None:
    text = placeholder(JWT)
    assert text.startswith(JWT.rpartition(".")[0])
    assert "c2lnbmF0dXJl" not in text


def test_bodies_of_answers_stay_as_they_were_except_those_of_log_ins() -> None:
    body = json.dumps({"access_token": SESSION, "name": "alice"}).encode()
    plain, log_in = walk(
        "w",
        (request("/page"), answer(body, mime="application/json")),
        (request("/login", "POST", b"password=x", FORM), answer(body, mime="application/json")),
    )
    stored, changed = Secrets().exchange(plain).answer, Secrets().exchange(log_in).answer
    assert stored is not None
    assert changed is not None
    assert (stored.body, stored.is_redacted) == (body, False)
    assert (SESSION.encode() in changed.body, changed.is_redacted) == (False, True)
    assert json.loads(changed.body)["name"] == "alice"


def test_a_secret_of_the_scenario_is_nowhere() -> None:
    (recorded,) = walk("w", (request("/?q=tops3cret", headers=(("X-Q", "tops3cret"),)), answer(b"you said tops3cret")))
    assert "tops3cret" not in repr(Secrets(["tops3cret"]).exchange(recorded))


TEXT = st.text(max_size=30)
BODIES = st.one_of(
    st.binary(max_size=60),
    st.dictionaries(st.sampled_from(["password", "token", "name", "csrf"]), TEXT).map(
        lambda each: json.dumps(each).encode()
    ),
)


@given(
    BODIES,
    st.sampled_from([FORM, JSON, PARTS, ()]),
    st.text("abc=&?#/%:@[]", max_size=20),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40),
)
def test_applied_twice_nothing_more_changes(
    body: bytes, headers: tuple[tuple[str, str], ...], query: str, cookie: str
) -> None:
    walk_of_request = request(f"/x?{query}", "POST", body, (*headers, ("Cookie", cookie)))
    once = masked(walk_of_request, "abc")
    assert masked(once, "abc") == once


@given(st.text(min_size=1))
def test_a_placeholder_is_recognisable(value: str) -> None:
    assert PLACEHOLDER.search(placeholder(value, is_chosen=True))


def digest_login(user: str, answer: str) -> str:
    login = (
        f'Digest username="{user}", realm="Harbour", nonce="{answer}", uri="/", cnonce="{answer}", response="{answer}"'
    )
    return header(masked(request("/", headers=(("Authorization", login),))).headers, "authorization")


def test_a_digest_login_is_the_same_in_every_request_of_a_user_and_another_one_for_another_user() -> None:
    assert digest_login("ada", "1f2e") == digest_login("ada", "9a8b")
    assert digest_login("ada", "1f2e") != digest_login("boris", "1f2e")
    assert PLACEHOLDER.fullmatch(digest_login("ada", "1f2e"))

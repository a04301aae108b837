"""Secrets are removed from a network trace; everything else stays as it was."""

import base64
import html
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedRequest
from judge.browser.requests import har_entry
from judge.network.sent import encoded
from judge.trajectory.network import HELD_KEY
from judge.trajectory.redaction import MAX_OPAQUE_CHARS, REDACTED, Redaction

FORM = "application/x-www-form-urlencoded"
SECRET = 'pä55 w"rd/+&\\'


def redacted(*secrets: str, keep: tuple[str, ...] = (), salt: bytes = b"salt", **fields: Any) -> dict[str, Any]:
    return Redaction(secrets, keep=keep, salt=salt).entry(RecordedRequest(**fields).har_entry(1))


def from_browser(**part: Any) -> dict[str, Any]:
    """An entry as the recorder gives it."""
    known = {"began": 0, "method": "GET", "url": "http://shop.test/", "type": "fetch", "step": 1, "fixed": {}, **part}
    return Redaction(salt=b"salt").entry(har_entry(known, None))


@pytest.mark.parametrize(
    "name",
    """
        token access_token apiKey api-key API_KEY secret client_secret password passwd newPassword userPwd
        credential session_id PHPSESSID_token csrfmiddlewaretoken X-XSRF jwt signature form_key key auth
        oauth_token otp pin cvv user[password]
    """.split(),
)
def test_a_value_whose_name_speaks_of_a_credential_is_removed(name: str) -> None:
    value = "s3cr3t"
    body = redacted(path=f"/a?{quote(name)}={value}&page=2", post=json.dumps({"user": {name: value}, "n": 1}))
    form = redacted(post=f"{quote(name)}={value}&n=1", mime_type=FORM)
    assert value not in json.dumps([body, form])
    assert body["request"]["url"].endswith(f"/a?{quote(name)}=%5Bredacted%5D&page=2")
    assert json.loads(body["request"]["postData"]["text"]) == {"user": {name: REDACTED}, "n": 1}
    assert form["request"]["postData"]["params"] == [{"name": name, "value": REDACTED}, {"name": "n", "value": "1"}]


@pytest.mark.parametrize(
    "name", ["keyword", "monkey", "author", "pinned", "passenger", "keyboard", "compass", "items", "qty", "sku"]
)
def test_other_values_are_kept(name: str) -> None:
    entry = redacted(path=f"/a?{name}=desk", post=json.dumps({name: "desk"}))
    assert entry["request"]["url"].endswith(f"?{name}=desk")
    assert json.loads(entry["request"]["postData"]["text"]) == {name: "desk"}


def test_a_body_without_secrets_is_kept_to_the_letter() -> None:
    for text, mime_type in (('{"a" :1.0,  "b":"\\u00e4"}', "application/json"), ("a=%c3%bc&b=1+2", FORM)):
        assert redacted(post=text, mime_type=mime_type)["request"]["postData"]["text"] == text


def test_a_table_under_such_a_name_is_removed_as_a_whole_and_so_is_a_value_named_beside_it() -> None:
    content = {"session": {"user": "Ada", "id": 5}, "fields": [{"name": "password", "value": "s3cr3t"}], "token": None}
    stored = json.loads(redacted(response=json.dumps(content))["response"]["content"]["text"])
    assert stored == {"session": REDACTED, "fields": [{"name": "password", "value": REDACTED}], "token": None}


def test_a_name_that_a_check_compares_is_kept() -> None:
    entry = redacted(keep=("form_key", "key"), post='{"form_key": "Xy", "key": 1, "pin": 2}', path="/?form_key=Xy")
    assert json.loads(entry["request"]["postData"]["text"]) == {"form_key": "Xy", "key": 1, "pin": REDACTED}
    assert "form_key=Xy" in entry["request"]["url"]


def test_a_name_that_a_check_compares_is_removed_where_its_value_is_listed_as_a_secret() -> None:
    entry = redacted("XySecret", keep=("form_key",), post='{"form_key": "XySecret"}')
    assert json.loads(entry["request"]["postData"]["text"]) == {"form_key": REDACTED}


@pytest.mark.parametrize(
    "name", ["Authorization", "Proxy-Authorization", "X-Api-Key", "X-CSRF-Token", "X-Secret", "WWW-Authenticate"]
)
def test_headers_of_credentials_are_removed(name: str) -> None:
    (header,) = redacted(headers={name: "Basic YWRhOnMzY3IzdA=="})["request"]["headers"]
    assert header == {"name": name, "value": REDACTED}


@pytest.mark.parametrize("name", ["Location", "Referer"])
def test_addresses_in_headers_lose_their_secrets(name: str) -> None:
    url = "https://ada:s3cr3t@shop.test/a?code=1&token=s3cr3t#access_token=s3cr3t&state=1"
    (header,) = redacted(headers={name: url})["request"]["headers"]
    assert "s3cr3t" not in header["value"]
    assert header["value"].startswith("https://ada:[redacted]@shop.test/a?code=1&token=")
    relative = redacted(headers={name: "/next?token=s3cr3t"})["request"]["headers"][0]["value"]
    assert relative == "/next?token=%5Bredacted%5D"


def test_cookies_of_sessions_become_digests_that_are_stable_within_a_run() -> None:
    headers = [["cookie", "sid=abc; lang=de; cart=0123456789abcdef"]]
    answer = [["set-cookie", "sid=abc; Path=/; HttpOnly\ntheme=dark"], ["content-type", "text/html"]]
    entry = from_browser(headers=headers, response_headers=answer, answered=0, status=200)
    requests = {cookie["name"]: cookie["value"] for cookie in entry["request"]["cookies"]}
    received = {cookie["name"]: cookie["value"] for cookie in entry["response"]["cookies"]}
    assert requests["sid"] == received["sid"] != "abc"
    assert requests["sid"].startswith("sha256:")
    assert (requests["lang"], received["theme"]) == ("de", "dark")
    assert "0123456789abcdef" not in json.dumps(entry)
    assert entry["request"]["headers"][0]["value"] == f"sid={requests['sid']}; lang=de; cart={requests['cart']}"
    assert entry["response"]["headers"][0]["value"] == f"sid={requests['sid']}; Path=/; HttpOnly\ntheme=dark"
    assert (
        redacted(headers={"cookie": "sid=abc"}, salt=b"other")["request"]["headers"][0]["value"]
        != f"sid={requests['sid']}"
    )


def _base64(text: str, before: str = "", after: str = "") -> str:
    return base64.b64encode(f"{before}{text}{after}".encode()).decode()


@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        quote(quote(SECRET, safe=""), safe=""),
        # As JavaScript's encodeURIComponent writes it.
        quote(SECRET, safe="!'()*~"),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(SECRET))[1:-1],
        html.escape(SECRET),
        "".join(f"&#x{ord(character):X};" for character in SECRET),
        _base64(SECRET),
        _base64(SECRET, before="ada:"),
        _base64(SECRET, before="a:", after="more"),
        _base64(SECRET, before="x").replace("+", "-").replace("/", "_"),
        quote(_base64(SECRET, before="x"), safe=""),
    ],
)
def test_a_listed_secret_is_removed_in_every_encoding(spelling: str) -> None:
    entry = redacted(
        SECRET, post=f"before {spelling} after", mime_type="text/plain", path=f"/in/{quote(spelling, safe='%')}"
    )
    assert spelling not in json.dumps(entry, ensure_ascii=False)
    text = entry["request"]["postData"]["text"]
    assert text.startswith("before ")
    assert REDACTED in text
    assert len(text) < len("before  after") + len(REDACTED) + 12


def test_a_listed_secret_is_removed_from_every_part() -> None:
    entry = redacted(
        "s3cr3t!",
        path="/a/s3cr3t!?b=s3cr3t!",
        post='{"note": "s3cr3t!", "s3cr3t!": 1}',
        response='["s3cr3t!"]',
        headers={"X-Note": "s3cr3t!"},
        method="s3cr3t!",
    )
    assert "s3cr3t" not in json.dumps(entry)


def test_without_secrets_nothing_is_looked_for() -> None:
    assert redacted(post='{"a": "s3cr3t"}')["request"]["postData"]["text"] == '{"a": "s3cr3t"}'


TEXTS = st.text(max_size=12)


@given(
    secret=st.text(st.characters(codec="utf-8"), min_size=4, max_size=12),
    before=TEXTS,
    after=TEXTS,
    encode=st.sampled_from(
        [
            str,
            quote,
            quote_plus,
            lambda text: json.dumps(text)[1:-1],
            lambda text: quote(quote(text)),
            html.escape,
            _base64,
        ]
    ),
)
def test_no_secret_survives_in_any_place(secret: str, before: str, after: str, encode: Any) -> None:
    resolved = encode(secret)
    redaction = Redaction([secret], salt=b"salt")
    entry = RecordedRequest(post=json.dumps([f"{before}{resolved}{after}"]), response=f"{before} {resolved}").har_entry(
        1
    )
    text = redaction.entry(entry)["request"]["postData"]["text"]
    assert resolved not in text.replace(REDACTED, "")


@given(
    text=st.text(max_size=60),
    mime_type=st.sampled_from([FORM, "application/json", "text/plain", "multipart/form-data; boundary=b"]),
)
def test_any_body_can_be_redacted(text: str, mime_type: str) -> None:
    entry = redacted(
        "s3cr3t", post=text, mime_type=mime_type, path=f"/?{quote(text)}#{text}", headers={"Referer": text}
    )
    json.dumps(entry).encode()


# --- held requests ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<order><sku>L-7</sku></order>", {"text": "<order><sku>L-7</sku></order>"}),
        (b"\x00\xffL-7", {"text": base64.b64encode(b"\x00\xffL-7").decode(), "encoding": "base64"}),
    ],
)
def test_what_a_held_request_would_have_sent_is_kept_in_any_format(data: bytes, expected: dict[str, str]) -> None:
    part = {"method": "POST", "post": encoded(data), "size": len(data), "fixed": {"type": "application/x-order"}}
    known = {"began": 0, "url": "http://shop.test/", "type": "fetch", "step": 1, **part}
    entry = har_entry(known, None)
    post_data = Redaction(salt=b"salt").entry({**entry, HELD_KEY: True})["request"]["postData"]
    assert post_data == {"mimeType": "application/x-order", "params": [], "_opaque": True, **expected}
    assert "text" not in Redaction(salt=b"salt").entry(entry)["request"]["postData"]


def test_a_large_one_is_not_kept_and_secrets_are_removed_from_it() -> None:
    def posted(data: bytes) -> dict[str, Any]:
        part = {"method": "POST", "post": encoded(data), "size": len(data), "fixed": {"type": "application/x-order"}}
        entry = har_entry({"began": 0, "url": "http://shop.test/", "type": "fetch", "step": 1, **part}, None)
        body: dict[str, Any] = Redaction([SECRET], salt=b"salt").entry({**entry, HELD_KEY: True})["request"]["postData"]
        return body

    large = posted(b"x" * (MAX_OPAQUE_CHARS + 1))
    assert ("text" in large, large["_truncated"]) == (False, True)
    assert SECRET not in posted(b"<pw>" + SECRET.encode() + b"</pw>")["text"]
    text = posted(b"\xff" + SECRET.encode() + b"\xff")["text"]
    assert REDACTED in text

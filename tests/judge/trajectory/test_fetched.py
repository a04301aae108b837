"""The stored answers that `fetch` checks compare."""

import json

import pytest

from judge.store.bounds import bounded
from judge.trajectory.fetched import MAX_BODY_BYTES, Fetched, FetchResponse, stored


def test_the_largest_answer_is_stored_whole() -> None:
    body = json.dumps(['"\\' * 2_000, "é" * 8_000, "x" * 40_000], ensure_ascii=False)
    assert 60_000 < len(body.encode()) <= MAX_BODY_BYTES
    fetched = Fetched(url="https://shop.example/orders", body=body)
    assert bounded(fetched) == fetched


@pytest.mark.parametrize(
    ("mime_type", "is_stored"),
    [
        ("text/csv", True),
        ("application/json", True),
        ("application/xml; charset=utf-8", True),
        ("application/rss+xml", True),
        ("image/svg+xml", True),
        ("application/pdf", False),
        ("", False),
    ],
)
def test_json_text_and_xml_are_stored(mime_type: str, is_stored: bool) -> None:
    answer = FetchResponse(status=200, type=mime_type, body='"<a>b</a>"')
    fetched = stored("https://shop.example/orders", None, answer, dict)
    assert (fetched.error is None) is is_stored
    assert fetched.body == ('"<a>b</a>"' if is_stored else None)

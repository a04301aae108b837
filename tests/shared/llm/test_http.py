"""Errors inside of answers, and keys in error texts. `test_adapters` has what all adapters do over the wire."""

import json
from typing import Any

import pytest

from shared.llm.http import status_within, without_secret


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"message": "upstream is down", "code": 502}}, 502),
        ({"error": {"message": "Provider returned error", "code": "429"}}, 429),
        ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}, "candidates": []}, 429),
        ([{"error": {"code": 503, "status": "UNAVAILABLE"}}], 503),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, 429),
        ({"object": "error", "message": "x", "type": "invalid_request_error", "code": 400}, 400),
        ({"error": "Too Many Requests"}, 429),
        ({"error": {"message": "Unsupported parameter: 'seed'"}}, 400),
        ({"error": {"type": "authentication_error"}}, 401),
        ({"error": {"message": "The model does not exist"}}, 404),
        ({"error": {"message": "upstream request timeout"}}, 504),
        ({"error": "something"}, 502),
        ({"error": {"code": 20, "message": "something"}}, 502),
        # Answers, and bodies that are neither.
        ({"error": None, "output": []}, None),
        ({"error": {"code": 500}, "choices": [{"message": {"content": "Hi"}}]}, None),
        ({"choices": [{"message": {"content": '{"error": {"code": 429}}'}}]}, None),
        ({"message": "hello"}, None),
        ([], None),
        ("error", None),
    ],
)
def test_an_error_sent_as_an_answer_has_the_status_that_it_names(body: Any, status: int | None) -> None:
    assert status_within(json.dumps(body).encode()) == status


@pytest.mark.parametrize("body", [b"", b"<html>error</html>", b'{"error": ', b"[" * 100_000])
def test_a_body_that_is_not_json_has_no_status(body: bytes) -> None:
    assert status_within(body) is None


def test_an_error_text_is_one_bounded_line_without_the_key() -> None:
    assert without_secret("bad\n key  k-1 " + "x" * 999, "k-1", limit=20) == "bad key [key] xxxxxx"

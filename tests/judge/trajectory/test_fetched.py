"""The stored answers that `fetch` checks compare."""

import json

from judge.store.bounds import bounded
from judge.trajectory.fetched import MAX_BODY_BYTES, Fetched


def test_the_largest_answer_is_stored_whole() -> None:
    body = json.dumps(['"\\' * 2_000, "é" * 8_000, "x" * 40_000], ensure_ascii=False)
    assert 60_000 < len(body.encode()) <= MAX_BODY_BYTES
    fetched = Fetched(url="https://shop.example/orders", body=body)
    assert bounded(fetched) == fetched

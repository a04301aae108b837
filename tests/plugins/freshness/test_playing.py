"""With which status the first page of an attempt was answered."""

from typing import Any

import pytest

from judge.plugins.freshness.playing import first_status
from judge.trajectory.network import Entry


def document(url: str, status: int, **other: Any) -> Entry:
    fields = {"_step": 0, "_resourceType": "document", **other}
    return Entry.model_validate({"request": {"method": "GET", "url": url}, "response": {"status": status}, **fields})


PAGE = "https://shop.example/"


@pytest.mark.parametrize(
    ("entries", "status"),
    [
        ([document(PAGE, 404)], 404),
        ([document("https://shop.example/old", 301), document(PAGE, 410)], 410),
        ([document(PAGE, 503), document(PAGE, 200)], 200),
        ([document(PAGE, 200), document("https://other.example/", 404)], 200),
        ([document(PAGE, 200), document(PAGE, 404, _frame=True)], 200),
        ([document(PAGE, 200), document(PAGE, 404, _resourceType="image")], 200),
        ([document(PAGE, 200), document(PAGE, 404, _step=1)], 200),
        ([document("https://shop.example/?key=REDACTED", 404)], 404),
        ([document(PAGE, 0)], None),
        ([], None),
    ],
)
def test_it_is_that_of_the_last_document_there_before_any_action(entries: list[Entry], status: int | None) -> None:
    assert first_status(entries, f"{PAGE}#top") == status

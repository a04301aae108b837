"""Values that a page received are identities: another one is another request. What a page invents is not."""

import json
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.network.interception import WireRequest
from judge.plugins.frozen.matching.index import Index
from judge.plugins.frozen.matching.matcher import Matcher
from plugins.frozen.made import START_MS, answer, recording, request, walk

JSON = (("Content-Type", "application/json"),)
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
QUERY = "query P($id: ID!) { product(id: $id) { name } }"


def graphql(value: str) -> WireRequest:
    body = json.dumps({"query": QUERY, "variables": {"id": value}}).encode()
    return request("/graphql", "POST", body, JSON)


PLACES: dict[str, Callable[[str], WireRequest]] = {
    "path": lambda value: request(f"/products/{value}"),
    "parameter": lambda value: request(f"/product?id={value}"),
    "deleted": lambda value: request(f"/cart/{value}", "DELETE"),
    "form": lambda value: request("/cart", "POST", f"id={value}&n=1".encode(), FORM),
    "JSON": lambda value: request("/cart", "POST", json.dumps({"items": [{"id": value}]}).encode(), JSON),
    "GraphQL": graphql,
}
KINDS: dict[str, st.SearchStrategy[str]] = {
    "UUID": st.uuids(version=4).map(str),
    "upper case": st.uuids(version=4).map(lambda value: str(value).upper()),
    "a time near the recording": st.integers(1, 80_000_000).map(lambda ms: str(START_MS + ms)),
    "a fraction": st.integers(10**8, 10**12).map(lambda digits: f"0.{digits}1"),
}


@pytest.mark.parametrize("place", PLACES)
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
def test_another_identity_than_the_recorded_one_is_never_answered_with_certainty(
    place: str, data: st.DataObject, kind: str
) -> None:
    bought, other = data.draw(st.lists(KINDS[kind], min_size=2, max_size=2, unique_by=str.lower))
    listed = answer(json.dumps([{"id": bought}, {"id": other}]).encode(), mime="application/json")
    made = PLACES[place]
    matcher = Matcher(Index(recording(walk("w", (request("/"), listed), (made(bought), answer(b"bought"))))))
    assert matcher.match(request("/")).grade == "exact"
    assert matcher.match(made(other)).grade in ("miss", "uncertain")
    assert matcher.match(made(bought)).answer is not None


@pytest.mark.parametrize("place", ["parameter", "form", "JSON"])
def test_what_a_page_invents_is_another_one_on_each_visit(place: str) -> None:
    # The site repeats it: it was sent before it was received.
    invented, again = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
    made, echo = PLACES[place], answer(json.dumps({"id": invented}).encode(), mime="application/json")
    matcher = Matcher(Index(recording(walk("w", (request("/"), answer(b"home")), (made(invented), echo)))))
    assert matcher.match(made(again)).grade == "fuzzy"


def test_an_address_that_was_navigated_to_names_something() -> None:
    def page(value: int) -> WireRequest:
        return request(f"/orders/{uuid.UUID(int=value)}", headers=(("Sec-Fetch-Mode", "navigate"),))

    matcher = Matcher(Index(recording(walk("w", (page(1), answer(b"order"))))))
    assert (matcher.match(page(1)).grade, matcher.match(page(2)).grade) == ("exact", "miss")

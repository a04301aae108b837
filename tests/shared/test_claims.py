"""Usage that participants claim is untrusted data."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.claims import ClaimedUsage

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "other"])


@given(st.fixed_dictionaries({}, optional={"usage": JSON | st.dictionaries(KEYS, JSON, max_size=4)}))
def test_whatever_is_claimed_is_bounded_numbers_or_nothing(metadata: dict[str, Any]) -> None:
    found = ClaimedUsage.in_reply(metadata)
    if found is not None:
        assert 0 <= found.input <= 10**9
        assert 0 <= found.output <= 10**9
        assert found.cost_usd is None or 0 <= found.cost_usd <= 10**6


def test_a_cost_that_one_reply_leaves_out_is_unknown() -> None:
    one, other = ClaimedUsage(replies=1, input=1, cost_usd=0.5), ClaimedUsage(replies=1, input=2)
    assert one + other == ClaimedUsage(replies=2, input=3)


def test_doubles_of_a2a_are_whole_numbers_of_tokens() -> None:
    assert ClaimedUsage.in_reply({"usage": {"input_tokens": 12.0}}) == ClaimedUsage(replies=1, input=12)
    assert ClaimedUsage.in_reply({"usage": {"input_tokens": 12.5}}) is None

"""Usage that participants claim is untrusted data."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.claims import MAX_SPANS, ClaimedSpan, ClaimedTrace, ClaimedUsage

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "other"])


@given(st.fixed_dictionaries({}, optional={"usage": JSON | st.dictionaries(KEYS, JSON, max_size=4)}))
def test_whatever_is_claimed_is_bounded_numbers_or_nothing(metadata: dict[str, Any]) -> None:
    claim = ClaimedUsage.in_reply(metadata)
    if claim is not None:
        assert 0 <= claim.input <= 10**9
        assert 0 <= claim.output <= 10**9
        assert claim.cost_usd is None or 0 <= claim.cost_usd <= 10**6


def test_a_cost_that_one_reply_leaves_out_is_unknown() -> None:
    one, other = ClaimedUsage(replies=1, input=1, cost_usd=0.5), ClaimedUsage(replies=1, input=2)
    assert one + other == ClaimedUsage(replies=2, input=3)


def test_doubles_of_a2a_are_whole_numbers_of_tokens() -> None:
    assert ClaimedUsage.in_reply({"usage": {"input_tokens": 12.0}}) == ClaimedUsage(replies=1, input=12)
    assert ClaimedUsage.in_reply({"usage": {"input_tokens": 12.5}}) is None


SPANS = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(ClaimedSpan.model_fields, JSON)) | JSON, max_size=4)


@given(st.fixed_dictionaries({}, optional={"spans": SPANS | JSON, "traceparent": JSON}))
def test_whatever_is_claimed_of_the_work_is_bounded_spans_in_order_or_nothing(metadata: dict[str, Any]) -> None:
    claim = ClaimedTrace.in_reply(metadata)
    if claim is not None:
        assert claim.spans or claim.traceparent
        assert all(0 <= span.start <= span.end <= 1e11 for span in claim.spans)
        assert ClaimedTrace.model_validate_json(claim.model_dump_json()) == claim


def test_spans_are_cut_to_a_number_and_their_texts_to_a_length() -> None:
    span = {"name": "n" * 1000, "start": 1, "end": 2.5, "input_tokens": 3.0, "text": "t" * 1000, "more": 1}
    claim = ClaimedTrace.in_reply({"spans": [span] * 1000})
    assert claim is not None
    assert len(claim.spans) == MAX_SPANS
    assert (len(claim.spans[0].name), len(claim.spans[0].text), claim.spans[0].input_tokens) == (100, 500, 3)


def test_a_span_that_ends_before_it_starts_is_left_out() -> None:
    good = {"name": "plan", "start": 2, "end": 3}
    claim = ClaimedTrace.in_reply({"spans": [{"name": "act", "start": 2, "end": 1}, good]})
    assert claim == ClaimedTrace(spans=(ClaimedSpan(name="plan", start=2, end=3),))


def test_a_traceparent_that_is_not_one_of_w3c_is_left_out() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert ClaimedTrace.in_reply({"traceparent": parent}) == ClaimedTrace(traceparent=parent)
    for other in (parent.upper(), parent[:-1], parent.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32), 7):
        assert ClaimedTrace.in_reply({"traceparent": other}) is None

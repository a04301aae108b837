"""Prices of model calls."""

import pytest

from shared.llm.prices import Price, find_price, price_table
from shared.models import TokenUsage


def test_cost_counts_fresh_cached_and_output_tokens_separately() -> None:
    price = Price(input=2.0, cached=0.5, output=8.0)
    usage = TokenUsage(input=1_000_000, cached=400_000, output=500_000, reasoning=100_000)
    assert price.cost_usd(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)


def test_a_model_that_is_not_listed_has_no_price() -> None:
    assert find_price("openai:some-local-model") is None


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-4o-2024-08-06",
        "gemini:gemini-2.0-flash-001",
        "openai:o4-mini-2025-04-16",
        "anthropic:claude-haiku-5-5-20261001",
    ],
)
def test_a_dated_revision_has_its_models_price(name: str) -> None:
    assert find_price(name) is not None


def test_a_variant_under_its_own_name_does_not_get_another_models_price() -> None:
    assert find_price("openai:gpt-4o-audio-preview") is None


def test_every_listed_price_is_positive_and_caching_never_costs_more() -> None:
    assert price_table()
    for price in price_table().values():
        assert 0 < price.cached <= price.input <= price.output

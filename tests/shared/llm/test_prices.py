"""Prices of model calls."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from shared.errors import ConfigError
from shared.llm.prices import DATA_DATE, Price, find_price
from shared.models import TokenUsage

USAGE = TokenUsage(input=1_000_000, cached=400_000, output=500_000, reasoning=100_000)


def test_cost_counts_fresh_cached_and_output_tokens_separately() -> None:
    price = Price(input=2.0, cached=0.5, output=8.0)
    assert price.cost_usd(USAGE) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)


def test_the_packages_prices_count_them_separately_as_well() -> None:
    price = find_price("openai:gpt-4o-mini")
    assert price is not None
    assert price.cost_usd(USAGE) == pytest.approx(0.6 * 0.15 + 0.4 * 0.075 + 0.5 * 0.6)


def test_more_cached_tokens_than_tokens_cost_as_much_as_all_of_them() -> None:
    price = find_price("openai:gpt-4o-mini")
    assert price is not None
    assert price.cost_usd(TokenUsage(input=10, cached=20)) == price.cost_usd(TokenUsage(input=10, cached=10))


def test_a_surcharge_for_long_prompts_depends_on_each_call_not_on_their_sum() -> None:
    price = find_price("gemini:gemini-2.5-pro")
    assert price is not None
    many = TokenUsage(input=1_000_000, output=1_000)
    assert price.cost_usd(many, 100) < price.cost_usd(many)
    assert price.cost_usd(many, 100) == pytest.approx(100 * price.cost_usd(TokenUsage(input=10_000, output=10)))


@pytest.mark.parametrize("name", ["openai:some-local-model", "openai:bench", "nobody:gpt-4o", "offline", "openai:"])
def test_a_model_that_is_not_listed_has_no_price(name: str) -> None:
    assert find_price(name) is None


def test_a_model_of_another_provider_has_no_price() -> None:
    assert find_price("openai:gemini-2.5-pro") is None


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


def test_the_date_of_the_data_is_the_newest_check_that_the_installed_package_notes() -> None:
    distribution = metadata.distribution("genai-prices")
    data = Path(str(distribution.locate_file("genai_prices/data.py"))).read_text("utf-8")
    assert max(re.findall(r"(?:checked|verified)[^.;\"']{0,12}(20\d\d-\d\d-\d\d)", data)) == DATA_DATE
    price = find_price("openai:gpt-4o")
    assert price is not None
    assert price.date == DATA_DATE


OFFLINE = """
import socket, sys
def refuse(*_, **__): raise SystemExit("a request")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from shared.llm.prices import find_price
from shared.models import TokenUsage
print(find_price("openai:gpt-4o").cost_usd(TokenUsage(input=1_000_000)))
"""


def test_a_price_needs_no_request() -> None:
    environ = {"PATH": "/usr/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], capture_output=True, text=True, check=False, env=environ, timeout=60
    )
    assert (done.stdout, done.stderr) == ("2.5\n", "")


def a_file(folder: Path, text: str) -> str:
    path = folder / "prices.toml"
    path.write_text(text)
    return str(path)


def test_a_file_adds_and_corrects_prices(tmp_path: Path) -> None:
    own = a_file(
        tmp_path,
        'as_of = 2026-12-01\n[models."openai:local"]\ninput = 1\noutput = 2\n'
        '[models."openai:gpt-4o"]\ninput = 3.0\ncached = 1.0\noutput = 9.0\n',
    )
    added, corrected = find_price("openai:local", own), find_price("openai:gpt-4o", own)
    assert added is not None
    assert corrected is not None
    assert added.date == "2026-12-01"
    assert added.cost_usd(USAGE) == pytest.approx(1 + 0.5 * 2)
    assert corrected.cost_usd(TokenUsage(input=1_000_000)) == 3.0
    assert find_price("openai:other", own) is None
    assert (result := find_price("openai:o4-mini", own)) is not None
    assert result.date == DATA_DATE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("models = 1", "as_of"),
        ('as_of = 2026-12-01\n[models."openai:m"]\ninput = -1\noutput = 1', "greater than or equal to 0"),
        ('as_of = 2026-12-01\n[models."openai:m"]\ninput = 1', "output"),
        ('as_of = 2026-12-01\n[models."openai:m"]\ninput = nan\noutput = 1', "input"),
        ("as_of =", "not TOML"),
    ],
)
def test_an_unusable_file_is_one_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        find_price("openai:m", a_file(tmp_path, text))


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.prices: .*none\.toml"):
        find_price("openai:m", str(tmp_path / "none.toml"))

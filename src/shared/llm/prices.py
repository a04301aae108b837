"""What model calls cost, from `prices.toml`. An unknown price is `None`, never zero."""

import functools
import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

from shared.files import parse_toml
from shared.models import Record, TokenUsage

# Providers append dates and revisions to a model's name without changing its price.
_REVISION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3}|latest)$")


class Price(Record):
    """US dollars per million tokens; `sampling` says whether the model takes a temperature."""

    input: float
    cached: float
    output: float
    sampling: bool = True

    def cost_usd(self, usage: TokenUsage) -> float:
        """The cost of `usage`, in US dollars."""
        fresh = max(usage.input - usage.cached, 0)
        return (fresh * self.input + usage.cached * self.cached + usage.output * self.output) / 1_000_000


@functools.cache
def price_table() -> Mapping[str, Price]:
    """The bundled prices by `provider:model`."""
    data = parse_toml(resources.files("shared.llm").joinpath("prices.toml").read_text("utf-8"))
    return MappingProxyType({name: Price(**price) for name, price in data["models"].items()})


def find_price(model: str) -> Price | None:
    """The price of `provider:model`, which may be a dated revision; `None` when it is not known."""
    table = price_table()
    return table.get(model) or table.get(_REVISION.sub("", model))

"""The prices of model calls: the data of the `genai-prices` package, and a file of the user's. No network.

An unknown price is `None`, never zero.
"""

import datetime
import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import Field, ValidationError

from shared.errors import ConfigError
from shared.fields import first_mistake
from shared.files import read_text
from shared.llm.opening import find_provider
from shared.models import Record, TokenUsage
from shared.toml_text import parse_toml

# When the pinned package last checked a price, by its notes: a test compares them.
DATA_DATE = "2026-11-03"


class Pricing(Protocol):
    """The price of a model."""

    @property
    def date(self) -> str:
        """The date of the data, as in 2026-11-03."""
        ...

    def cost_usd(self, usage: TokenUsage, calls: int = 1, *, cache_writes: int = 0) -> float:
        """The cost of `usage`, in US dollars, if so many calls used it of the same size.

        `cache_writes` are the input tokens that were written to the provider's cache, which can cost more.
        """
        ...


class Price(Record):
    """US dollars per million tokens. `output` includes reasoning; cached tokens cost `input` by default."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    date: str = ""

    def cost_usd(self, usage: TokenUsage, calls: int = 1, *, cache_writes: int = 0) -> float:
        """See `Pricing`."""
        fresh = max(usage.input - usage.cached, 0)
        cached = self.input if self.cached is None else self.cached
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / 1_000_000


class _ListedPrice:
    """A price of the package, which can depend on the size of a prompt and on the date."""

    date = DATA_DATE

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model

    def cost_usd(self, usage: TokenUsage, calls: int = 1, *, cache_writes: int = 0) -> float:
        """See `Pricing`."""
        from genai_prices import Usage, calc_price

        per_call = max(calls, 1)
        # At most the input: a provider that reports more cached tokens than that counts them apart.
        cached = min(usage.cached, usage.input)
        size = {"input_tokens": usage.input, "cache_read_tokens": cached, "output_tokens": usage.output}
        size |= {"cache_write_tokens": min(cache_writes, usage.input - cached)} if cache_writes else {}
        tokens = Usage(**{name: count // per_call for name, count in size.items()})
        return float(calc_price(tokens, self._model, provider_id=self._provider).total_price) * per_call


class _PriceFile(Record):
    as_of: datetime.date
    models: Mapping[str, Price]


@functools.cache
def _own(path: str) -> Mapping[str, Price]:
    try:
        data: Any = parse_toml(read_text(Path(path)))
        file = _PriceFile.model_validate(data)
    except (OSError, ValueError) as error:
        why = first_mistake(error) if isinstance(error, ValidationError) else str(error)
        raise ConfigError(
            f"config.prices: {path} is not a file of prices: {why}",
            remedy='write as_of = 2026-11-03 and, for each model, [models."provider:model"] with input and output',
        ) from None
    date = file.as_of.isoformat()
    return MappingProxyType({name: price.model_copy(update={"date": date}) for name, price in file.models.items()})


def find_price(model: str, own: str | None = None) -> Pricing | None:
    """The price of `provider:model`, which may be a dated revision; `None` when it is not known.

    `own` is a file of prices that take precedence over the package's. Raises `ConfigError` if it cannot be used.
    """
    if own is not None and (price := _own(own).get(model)):
        return price
    provider = find_provider(model)
    return None if provider is None else _list_price(provider.prices_id, model.partition(":")[2])


@functools.cache
def _list_price(provider: str, model: str) -> _ListedPrice | None:
    # Imported here, because the data take longer to load than most commands that need no price.
    from genai_prices.data_snapshot import get_snapshot

    try:
        data, listed_model = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    # The package falls back to other providers' data, which say nothing about this one's prices.
    return _ListedPrice(provider, model) if any(listed_model is each for each in data.models) else None


def maker_of(model: str) -> str | None:
    """The provider that made a model, in the names of `genai-prices`, such as `anthropic`; `None` if it is not known.

    `model` may name the provider that serves it (`openai:gpt-5`) or the maker (`openrouter:anthropic/claude-sonnet-5`).
    """
    from genai_prices.data_snapshot import get_snapshot

    served_by, colon, name = model.rpartition(":") if model.count(":") == 1 else ("", "", model)
    maker, slash, own = name.partition("/")
    snapshot = get_snapshot()
    known = {provider.id for provider in snapshot.providers}
    if slash and maker in known:
        return maker
    try:
        return snapshot.find_provider_model(own or name, None, None, None)[0].id
    except LookupError:
        return served_by if colon and served_by in known else None

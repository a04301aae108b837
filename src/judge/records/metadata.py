"""Metadata of tasks: short values by key, such as a template or a category, by which tasks are chosen and grouped.

They are the author's words about a task. No participant gets them, and no verdict depends on them.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from shared.errors import ConfigError
from shared.fields import Invalid, did_you_mean, printable

MAX_KEYS = 20
_MAX_CHARS = 200
_MAX_NUMBER = 10**15
METADATA_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,49}")
_EXAMPLE = 'write metadata = { template = "t12", category = "shop" }'
Value = bool | int | float | str


def _metadata(values: object) -> dict[str, Value]:
    if not isinstance(values, Mapping):
        raise Invalid(f"{printable(values)} is not a table", _EXAMPLE)
    if len(values) > MAX_KEYS:
        raise Invalid(f"{len(values)} keys, more than {MAX_KEYS}", "keep those that results are grouped by")
    for key in values:
        if not isinstance(key, str) or not METADATA_KEY.fullmatch(key):
            raise Invalid("not a usable key", "use letters, digits, _ and -", key=printable(key).strip("'"))
    return {key: _value(key, value) for key, value in values.items()}


def _value(key: str, value: object) -> Value:
    if isinstance(value, str) and value.isprintable() and value.strip() and len(value) <= _MAX_CHARS:
        return value.strip()
    if isinstance(value, bool | int | float) and abs(value) < _MAX_NUMBER:
        # Some A2A clients send every number as a double.
        return int(value) if isinstance(value, float) and value.is_integer() else value
    problem = f"{printable(value)} is not a text of 1 to {_MAX_CHARS} characters, a number or a boolean"
    raise Invalid(problem, _EXAMPLE, key=key)


Metadata = Annotated[dict[str, Value], BeforeValidator(_metadata)]
_METADATA: TypeAdapter[dict[str, Value]] = TypeAdapter(Metadata)


def metadata_in(value: object) -> dict[str, Value]:
    """The metadata in another party's file; none if they are not usable."""
    try:
        return _METADATA.validate_python(value)
    except ValidationError:
        return {}


def shown(value: Value) -> str:
    """A value as text, as TOML has it: `true`, `12`, `shop`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def wanted_of(options: Iterable[str], known: Collection[Mapping[str, Value]]) -> dict[str, set[str]]:
    """What `--where KEY=VALUE` asks for: the values of each key. Raises `ConfigError`.

    `known` are the metadata to choose among.
    """
    keys = sorted({key for each in known for key in each})
    wanted: dict[str, set[str]] = {}
    for option in options:
        key, equals, value = (part.strip() for part in option.partition("="))
        if not equals or not value:
            raise ConfigError(f"--where {printable(option)} gives no value", remedy="write --where KEY=VALUE")
        if key not in keys:
            remedy = did_you_mean(key, keys) if keys else 'declare it: metadata = { category = "shop" }'
            raise ConfigError(f"--where {printable(option)}: no task has metadata {printable(key)}", remedy=remedy)
        values = sorted({shown(each[key]) for each in known if key in each})
        if value not in values:
            remedy = did_you_mean(value, values if len(values) <= MAX_KEYS else [*values[:MAX_KEYS], "…"])
            raise ConfigError(f"--where {printable(option)}: no task has this value", remedy=remedy)
        wanted.setdefault(key, set()).add(value)
    return wanted


def has(metadata: Mapping[str, Any], wanted: Mapping[str, Collection[str]]) -> bool:
    """Whether metadata have one of the wanted values under each key."""
    return all(key in metadata and shown(metadata[key]) in values for key, values in wanted.items())

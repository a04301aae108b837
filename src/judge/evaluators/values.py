"""Compares values of requests, answers and messages with those that a check wants."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from judge.evaluators.lookalikes import unseen_difference
from judge.records.findings import ValueFound
from judge.records.json_paths import parse_path, values_at
from judge.records.patterns import glob
from shared.text import plain


def json_differences(what: str, expected: Mapping[str, Any], content: Any) -> Iterator[ValueFound]:
    """How a JSON value differs from the expected values at its paths."""
    return differences(what, expected, lambda path: _of_path(content, path))


def differences(
    what: str, expected_values: Mapping[str, Any], lookup: Callable[[str], list[Any]]
) -> Iterator[ValueFound]:
    """The wanted values of which `lookup` has none; `what` is the key of the check."""
    for name, expected in expected_values.items():
        actual = lookup(name)
        if not any(_is_value(expected, value) for value in actual):
            texts = (text_of(value) for value in actual)
            difference = unseen_difference(expected, texts) if isinstance(expected, str) else ""
            yield ValueFound.of(what, name, actual, difference)


def of_name(pairs: Iterable[tuple[str, str]], name: str) -> list[Any]:
    """The value of a name; a list if the name occurs several times, so that no single value equals it."""
    values = [value for key, value in pairs if key == name]
    return values if len(values) < 2 else [values]


def _of_path(content: Any, path: str) -> list[Any]:
    # A form field's name with dots and brackets in it may be written literally.
    if isinstance(content, dict) and path in content:
        return [content[path]]
    return values_at(content, parse_path(path))


def _is_value(expected: Any, actual: Any) -> bool:
    """Whether a value is the expected one; `*` in a string matches anything. Unlisted keys of a table are ignored."""
    match expected:
        case dict():
            return isinstance(actual, dict) and all(
                key in actual and _is_value(value, actual[key]) for key, value in expected.items()
            )
        case list():
            is_list = isinstance(actual, list) and len(actual) == len(expected)
            return is_list and all(map(_is_value, expected, actual))
        case str():
            return not isinstance(actual, dict | list) and glob(plain(expected)).fullmatch(plain(text_of(actual)))
        case bool() | None:
            return actual is expected or (isinstance(actual, str) and actual.lower() == text_of(expected))
    # Form values are always strings.
    return not isinstance(actual, bool) and _number(actual) == _number(expected)


def text_of(value: Any) -> str:
    """A value as a form would send it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: Any) -> Decimal | None:
    try:
        return Decimal(str(value).strip()) if isinstance(value, int | float | str) else None
    except InvalidOperation:
        return None

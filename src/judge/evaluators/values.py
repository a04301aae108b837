"""Compares values of requests, answers and messages with those that a check wants."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from judge.evaluators.lookalikes import unseen_difference
from judge.records.findings import ValueFound
from judge.records.json_paths import EVERY, Path, parse_path, values_at
from shared.patterns import glob
from shared.text import plain


def json_differences(what: str, expected: Mapping[str, Any], content: Any) -> Iterator[ValueFound]:
    """How a JSON value differs from the expected values at its paths."""
    return differences(what, expected, lambda path: of_path(content, path))


def differences(
    what: str, expected_values: Mapping[str, Any], lookup: Callable[[str], list[Any]]
) -> Iterator[ValueFound]:
    """The wanted values of which `lookup` has none; `what` is the key of the check."""
    for name, expected in expected_values.items():
        actual = lookup(name)
        if not any(is_value(expected, value) for value in actual):
            texts = (text_of(value) for value in actual)
            difference = unseen_difference(expected, texts) if isinstance(expected, str) else ""
            yield ValueFound.of(what, name, actual, difference)


def are_among(expected_values: Mapping[str, Any], lookup: Callable[[str], list[Any]]) -> bool:
    """Whether there is a value for each name, and each is the expected one, or one of those in a list."""
    for name, expected in expected_values.items():
        actual = lookup(name)
        several = expected if isinstance(expected, list) else [expected]
        if not actual or not all(any(is_value(one, value) for one in several) for value in actual):
            return False
    return True


def keys_beside(expected_values: Mapping[str, Any], content: Any) -> Iterator[str]:
    """The keys and items of a JSON value that no path of the expected values leads to or into."""
    is_table = isinstance(content, dict)
    wanted = [
        ((name,) if is_table and name in content else parse_path(name), value)
        for name, value in expected_values.items()
    ]
    yield from _beside(content, wanted, "$")


def _beside(content: Any, wanted: Iterable[tuple[Path, Any]], at: str) -> Iterator[str]:
    """Those inside `content`, where `wanted` are the paths from it to the expected values."""
    inside: list[tuple[Path, Any]] = []
    for path, value in wanted:
        match value:
            case dict() if not path:
                inside += [((key,), inner) for key, inner in value.items()]
            case list() if not path:
                inside += [((place,), inner) for place, inner in enumerate(value)]
            case _:
                inside.append((path, value))
    parts = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in parts:
        here = f"{at}.{key}" if isinstance(key, str) else f"{at}[{key}]"
        leading = [(path[1:], each) for path, each in inside if path and path[0] in _steps_to(key)]
        if leading:
            yield from _beside(value, leading, here)
        else:
            yield here.removeprefix("$.")


def _steps_to(key: str | int) -> tuple[str | int, ...]:
    return (key,) if isinstance(key, str) else (key, EVERY)


def of_name(pairs: Iterable[tuple[str, str]], name: str) -> list[Any]:
    """The value of a name; a list if the name occurs several times, so that no single value equals it.

    >>> of_name([("size", "M"), ("page", "2")], "page")
    ['2']
    """
    values = [value for key, value in pairs if key == name]
    return values if len(values) < 2 else [values]


def of_path(content: Any, path: str) -> list[Any]:
    """The values at a path in JSON.

    >>> of_path({"cart": {"items": [{"id": 7}, {"id": 9}]}}, "cart.items[*].id")
    [7, 9]
    """
    # A form field's name with dots and brackets in it may be written literally.
    if isinstance(content, dict) and path in content:
        return [content[path]]
    return values_at(content, parse_path(path))


def is_value(expected: Any, actual: Any) -> bool:
    """Whether a value is the expected one; `*` in a string matches anything. Unlisted keys of a table are ignored.

    >>> is_value({"name": "Oak*", "count": 2}, {"name": "Oak desk", "count": "2", "id": 7})
    True
    >>> is_value(True, 1)
    False
    """
    match expected:
        case dict():
            return isinstance(actual, dict) and all(
                key in actual and is_value(value, actual[key]) for key, value in expected.items()
            )
        case list():
            is_list = isinstance(actual, list) and len(actual) == len(expected)
            return is_list and all(map(is_value, expected, actual))
        case str():
            return not isinstance(actual, dict | list) and glob(plain(expected)).fullmatch(plain(text_of(actual)))
        case bool() | None:
            return actual is expected or (isinstance(actual, str) and actual.lower() == text_of(expected))
    # Form values are always strings.
    return not isinstance(actual, bool) and _number(actual) == _number(expected)


def text_of(value: Any) -> str:
    """A value as a form would send it.

    >>> text_of(True), text_of("yes"), text_of([1, "é"])
    ('true', 'yes', '[1, "é"]')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: Any) -> Decimal | None:
    try:
        return Decimal(str(value).strip()) if isinstance(value, int | float | str) else None
    except InvalidOperation:
        return None

"""Typed values in free text, made comparable: numbers, currencies, dates, booleans, lists, JSON. Pure.

Values are compared by meaning and not by notation. `only_value` finds the single value of a
type in a participant's answer; an answer that contains two different ones is refused as ambiguous.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, Literal

from judge.evaluators.quantities import amounts_in
from judge.records.findings import in_words
from shared.strict_json import STRICT, require_shallow
from shared.text import plain

ValueType = Literal["string", "number", "boolean", "date", "currency", "list", "json"]
MAX_TEXT_CHARS = 20_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# ISO; 3 May 2024; May 3, 2024; 3.5.2024 (day first); 5/3/2024 (month first where both are possible).
_DATES = tuple(
    re.compile(rf"(?<![\w]){form}(?![\w])", re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<number>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+(?P<year>\d{{4}})",
        rf"{_MONTH}\s+{_DAY},?\s+(?P<year>\d{{4}})",
        r"(?P<day>\d{1,2})\.\s?(?P<number>\d{1,2})\.\s?(?P<year>\d{4})",
        r"(?P<number>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
    )
)
_BOOLEANS: Mapping[str, bool] = MappingProxyType({"yes": True, "true": True, "no": False, "false": False})
_WORD = re.compile(r"[^\W\d_]+")
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_JSON_START = re.compile(r"[\[{]")
_MAX_JSON_STARTS = 1_000
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_QUOTES = "\"'`“”„‘’«»"


class NormaliseError(ValueError):
    """The text contains no value of the type, or several different ones. The message lists those found."""


def parse_number(text: str) -> Decimal | None:
    """The text as one number: `1,299`, `1.299,50`, `1 299.5`, `-3`, `12 %`, `3 million`.

    >>> [str(parse_number(text)) for text in ("1,299", "1.299,50", "12 %", "3 million", "2 of 3")]
    ['1299', '1299.50', '12', '3000000', 'None']
    """
    text = text.strip().removesuffix("%").strip()
    amounts = amounts_in(text)
    is_one = len(amounts) == 1 and amounts[0].unit is None and (amounts[0].start, amounts[0].end) == (0, len(text))
    return amounts[0].value(as_money=False) if is_one else None


def string(value: object) -> str:
    """The text without differences in case, white space, surrounding quotes and a final full stop.

    >>> string(' "Oak  desk". ')
    'oak desk'
    """
    text = plain(value if isinstance(value, str) else str(value)).casefold()
    return text.strip(_QUOTES + " ").rstrip(".!").strip(_QUOTES + " ")


def only_value(text: str, kind: ValueType, *, expected: Any = None) -> Any:
    """The only value of that type in the text, comparable with `normalise(expected, kind)`. Raises `NormaliseError`.

    The same value may occur several times. As a string, the value is the complete text. `expected` helps to choose
    between the ways to read a list.

    >>> only_value("That makes € 1,299.00 in all.", "currency")
    (Decimal('1299.00'), 'EUR')
    >>> only_value("Delivery on 3 May 2026.", "date")
    datetime.date(2026, 5, 3)
    """
    text = text[:MAX_TEXT_CHARS]
    if kind == "string":
        return string(text)
    if kind == "list":
        return _list_in(text, expected)
    if kind == "json":
        return _json_in(text)
    values = list(dict.fromkeys(_found(text, kind)))
    if len(values) == 1:
        return values[0]
    values_text = ", ".join(in_words(value) for value in values[:5])
    raise NormaliseError(f"{len(values)} different values of type {kind}: {values_text}" if values else f"no {kind}")


def values_in(text: str, kind: ValueType) -> Iterator[Any]:
    """All values of a type (number, currency, date, boolean) in a page's text, comparable with `normalise`.

    The pieces of a page stand side by side there, so an amount has every value that it may have on the page.

    >>> [str(value) for value in values_in("3 rugs from 40 to 60 cm", "number")]
    ['3', '40', '60']
    """
    if kind not in ("number", "currency"):
        yield from _found(text, kind)
        return
    for amount in amounts_in(text):
        if kind == "number":
            yield from amount.values(as_money=False)
        elif amount.unit:
            yield from ((number, amount.unit) for number in amount.values(as_money=True))


def normalise(value: Any, kind: ValueType) -> Any:
    """A declared value in the form that `only_value` returns. Raises `NormaliseError` if it is not of that type."""
    if kind == "json":
        try:
            return _DECODER.decode(json.dumps(value))
        except (TypeError, ValueError, RecursionError):
            raise NormaliseError("not a JSON value") from None
    if kind == "list":
        if not isinstance(value, list | tuple):
            raise NormaliseError("not a list")
        return tuple(_item(item) for item in value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float | date):
        raise NormaliseError(f"not a {kind}")
    if kind == "currency" and isinstance(value, int | float):
        return _decimal_of(value), None
    if kind == "currency" and (amount := parse_number(str(value))) is not None:
        return amount, None
    if kind == "number" and isinstance(value, int | float):
        return _decimal_of(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return only_value(text, kind)


def is_same(actual: Any, expected: Any, kind: ValueType, *, ordered: bool = False) -> bool:
    """Whether two normalised values mean the same. An amount without a currency matches every currency.

    >>> is_same(normalise("€ 5", "currency"), normalise(5, "currency"), "currency")
    True
    """
    if kind == "currency":
        return bool(actual[0] == expected[0] and expected[1] in (None, actual[1]))
    if kind == "list" and not ordered:
        # As text, because numbers and strings cannot be sorted together.
        return sorted(map(str, actual)) == sorted(map(str, expected))
    if kind == "json":
        # Compared as text, because in Python `True == 1`.
        return json.dumps(actual, sort_keys=True) == json.dumps(expected, sort_keys=True)
    return bool(actual == expected)


def _decimal_of(value: object) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise NormaliseError("not a number") from None
    if not number.is_finite():
        raise NormaliseError("not a finite number")
    return number


def dates_in(text: str) -> Iterator[date]:
    """Every date in a text, in any notation."""
    for form in _DATES:
        for match in form.finditer(text):
            parts = match.groupdict()
            month_name = parts.get("month")
            month = _MONTHS.index(month_name.lower()) + 1 if month_name else 0
            first, day = month or int(parts["number"]), int(parts["day"])
            if not month_name and form is _DATES[-1] and first > 12:
                # 31/12/2024 can only be read with the day first.
                first, day = day, first
            try:
                yield date(int(parts["year"]), first, day)
            except ValueError:
                continue


def _booleans_in(text: str) -> Iterator[bool]:
    return (_BOOLEANS[word] for word in _WORD.findall(text.casefold()) if word in _BOOLEANS)


def _found(text: str, kind: ValueType) -> Iterator[Any]:
    """The values of a type in a text. Raises `NormaliseError` for an amount of money that cannot be read."""
    match kind:
        case "date":
            yield from dates_in(text)
        case "boolean":
            yield from _booleans_in(text)
        case _:
            for amount in amounts_in(text):
                number = amount.value(as_money=kind == "currency")
                if number is None and amount.unit:
                    raise NormaliseError("an amount that cannot be read: write one number and its currency")
                if number is not None and (amount.unit or kind == "number"):
                    yield (number, amount.unit) if kind == "currency" else number


def _item(value: Any) -> Any:
    """A list entry: a number if it is one, otherwise a normalised string."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = _decimal_of(value) if is_number else parse_number(value) if isinstance(value, str) else None
    if number is None:
        return string(value)
    # Lists are compared as texts: 1.50 must be written like 1.5.
    whole = number.to_integral_value()
    return whole if number == whole else number.normalize()


def _list_in(text: str, expected: Any) -> tuple[Any, ...]:
    readings = [tuple(_item(entry) for entry in entries) for entries in _readings(text)]
    expected_items = None if expected is None else sorted(map(str, expected))
    return next((reading for reading in readings if sorted(map(str, reading)) == expected_items), readings[0])


def _readings(text: str) -> Iterator[list[Any]]:
    """The ways to read a text as a list: JSON, lines, semicolons, commas; with and without words before a colon."""
    try:
        value = _json_in(text)
    except NormaliseError:
        value = None
    if isinstance(value, list):
        yield value
        return
    _, colon, rest = text.partition(":")
    for part in (rest, text) if colon and rest.strip() else (text,):
        lines = [_BULLET.sub("", line).strip().rstrip(",;") for line in part.strip().splitlines() if line.strip()]
        if len(lines) > 1:
            yield lines
        elif ";" in part:
            yield [entry for entry in part.split(";") if entry.strip()]
        else:
            entries = [entry for entry in part.split(",") if entry.strip()]
            # "and" may separate entries or belong to one, so both readings are offered.
            yield [piece for entry in entries for piece in re.split(r"^\s*and\s|\sand\s", entry) if piece.strip()]
            yield [re.sub(r"^\s*and\s", "", entry) for entry in entries]


def _json_in(text: str) -> Any:
    """The only table or list in the text; without one, the text as a JSON value."""
    values_by_text = {json.dumps(value, sort_keys=True): value for value in _tables_and_lists(text)}
    if len(values_by_text) > 1:
        raise NormaliseError(
            f"{len(values_by_text)} different values of type json: {', '.join(list(values_by_text)[:5])}"
        )
    if values_by_text:
        return next(iter(values_by_text.values()))
    fenced = _FENCE.search(text)
    try:
        return _DECODER.decode((fenced[1] if fenced else text).strip())
    except (ValueError, RecursionError):
        raise NormaliseError("no JSON") from None


def _tables_and_lists(text: str) -> Iterator[Any]:
    """The outermost ones. Raises `NormaliseError` for too many brackets: each may need a pass over the text."""
    at = 0
    for _ in range(_MAX_JSON_STARTS):
        start = _JSON_START.search(text, at)
        if start is None:
            return
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            continue
        try:
            require_shallow(value)
        except ValueError as error:
            raise NormaliseError(str(error)) from None
        yield value
    raise NormaliseError(f"more than {_MAX_JSON_STARTS} brackets")


def _float(digits: str) -> float:
    """The number, as an `int` if it is integral: 1.0 equals 1."""
    value: float = STRICT["parse_float"](digits)
    # Above 2^53 (9e15) a double stands for several integers.
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


_DECODER = json.JSONDecoder(**{**STRICT, "parse_float": _float})

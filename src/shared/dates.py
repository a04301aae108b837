"""Dates in texts, relative to a day: `{today}`, `{today+30d:%B %-d, %Y}`, `{next friday}`.

Anything else in braces is left as it is, such as `\\d{4}` in a pattern or `{{today}}` in doubled braces. What begins as
a date and is none is an error, because a participant would otherwise be asked to book a flight for `{today+x}`.
"""

import calendar
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from shared.fields import Invalid, did_you_mean, printable

_WEEKDAYS = tuple(f"{name}day" for name in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
_NEXT = rf"next +(?:{'|'.join(_WEEKDAYS)})"
# What can only be meant as a date: the word, and then an offset, a format or the end.
_BEGINS = re.compile(rf"(?<!\{{)\{{(?=\s*(?:today|{_NEXT})\s*(?:[-+:}}]|$))", re.IGNORECASE)
_DATE = re.compile(
    rf"(?P<day>today|{_NEXT})(?:(?P<sign>[-+])(?P<count>[0-9]{{1,4}})(?P<unit>[dwmy]))?(?::(?P<form>.+))?"
)
_DIRECTIVE = re.compile(r"%(-?[A-Za-z%]?)")
_REMEDY = "write it like {today}, {today+30d:%B %-d, %Y} or {next friday}, or double the braces"
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTHS_OF_YEAR = 12
_DAYS_OF_WEEK = 7
# In texts under these keys, what is special in a regular expression is escaped.
_PATTERNS = frozenset({"pattern"})


def _names(day: date) -> tuple[str, str]:
    # Not by `strftime`, whose names depend on the machine's locale.
    months = "January February March April May June July August September October November December".split()
    return months[day.month - 1], _WEEKDAYS[day.weekday()].capitalize()


def _directives(day: date) -> Mapping[str, str]:
    month, weekday = _names(day)
    return {
        "Y": f"{day.year:04d}",
        "y": f"{day.year % 100:02d}",
        "m": f"{day.month:02d}",
        "-m": str(day.month),
        "B": month,
        "b": month[:3],
        "d": f"{day.day:02d}",
        "-d": str(day.day),
        "A": weekday,
        "a": weekday[:3],
        "j": f"{day.timetuple().tm_yday:03d}",
        "%": "%",
    }


class _DatePlaceholder(NamedTuple):
    start: int
    end: int
    text: str


def _places(text: str) -> Iterator[_DatePlaceholder]:
    for begins in _BEGINS.finditer(text):
        start = begins.start()
        end = text.find("}", start)
        if end < 0:
            raise Invalid(f"{printable(text[start:])} has no closing brace", _REMEDY, column=start + 1)
        yield _DatePlaceholder(start, end + 1, text[start + 1 : end])


def day_in(value: object) -> date | None:
    """A day as TOML or JSON has it: a date, or a text such as `2026-11-23`."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) and _ISO.fullmatch(value) else None
    except ValueError:
        return None


def _is_day(value: object) -> date:
    if (day := day_in(value)) is None:
        raise Invalid(f"{printable(value)} is not a day", "write it like 2026-11-23")
    return day


Day = Annotated[date, BeforeValidator(_is_day)]


def has_dates(text: str) -> bool:
    """Whether the text contains dates, or what looks like one."""
    return _BEGINS.search(text) is not None


def resolved_dates(text: str, today: date, quoted: Callable[[str], str] = str) -> str:
    """The text with the dates in it written out, each passed through `quoted`.

    Raises `Invalid` with the column of what looks like a date and is none.
    """
    pieces, at = [], 0
    for place in _places(text):
        pieces += [text[at : place.start], quoted(_format(place, today))]
        at = place.end
    return "".join([*pieces, text[at:]])


def written_dates(text: str, today: date) -> dict[str, str]:
    """The dates in the text as it has them, by how they are written out. Raises `Invalid` as `resolved_dates` does."""
    return {_format(place, today): text[place.start : place.end] for place in _places(text)}


def mentions_dates(value: object) -> bool:
    """Whether a text in these tables and lists contains dates, or what looks like one."""
    if isinstance(value, Mapping):
        return any(map(mentions_dates, value.values()))
    if isinstance(value, list | tuple):
        return any(map(mentions_dates, value))
    return isinstance(value, str) and has_dates(value)


def all_resolved(value: Any, today: date) -> Any:
    """The value with the dates in all its texts written out; in a `pattern`, they match literally. Raises `Invalid`."""
    return _all_resolved(value, today, "")


def _all_resolved(value: Any, today: date, key: str) -> Any:
    match value:
        case str():
            return resolved_dates(value, today, re.escape if key in _PATTERNS else str)
        case Mapping():
            return {name: _all_resolved(item, today, str(name)) for name, item in value.items()}
        case list() | tuple():
            return [_all_resolved(item, today, key) for item in value]
    return value


def with_dates(table: Mapping[str, Any], keys: Collection[str], today: date) -> dict[str, Any]:
    """The table with the dates in these keys written out. Raises `Invalid` with the key and the column of a mistake."""
    dated = dict(table)
    for key in keys:
        if mentions_dates(table.get(key)):
            try:
                dated[key] = _all_resolved(table[key], today, key)
            except Invalid as error:
                raise Invalid(error.problem, error.remedy, key=key, column=error.column) from None
    return dated


def _format(place: _DatePlaceholder, today: date) -> str:
    column = place.start + 1
    match = _DATE.fullmatch(place.text)
    if match is None:
        raise Invalid(f"{printable('{' + place.text + '}')} is not a date", _REMEDY, column=column)
    try:
        day = _moved(_day(match["day"], today), int(f"{match['sign'] or ''}{match['count'] or 0}"), match["unit"])
    except (OverflowError, ValueError):
        problem = f"{printable('{' + place.text + '}')} is outside the calendar"
        raise Invalid(problem, "choose a smaller offset", column=column) from None
    form = match["form"]
    return day.isoformat() if form is None else _formatted(day, form, column + 1 + match.start("form"))


def _day(word: str, today: date) -> date:
    if word == "today":
        return today
    # The first one after today, so that it is never today itself.
    ahead = (_WEEKDAYS.index(word.split()[-1]) - today.weekday() - 1) % _DAYS_OF_WEEK + 1
    return today + timedelta(days=ahead)


def _moved(day: date, count: int, unit: str | None) -> date:
    if unit in (None, "d", "w"):
        return day + timedelta(days=count * (_DAYS_OF_WEEK if unit == "w" else 1))
    months = day.year * _MONTHS_OF_YEAR + day.month - 1 + count * (_MONTHS_OF_YEAR if unit == "y" else 1)
    year, month = divmod(months, _MONTHS_OF_YEAR)
    # The 31st of a shorter month is its last day.
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _formatted(day: date, form: str, column: int) -> str:
    known = _directives(day)
    if _DIRECTIVE.search(form) is None:
        raise Invalid(f"the format {printable(form)} contains no date directive", _REMEDY, column=column)

    def directive(match: re.Match[str]) -> str:
        if match[1] not in known:
            remedy = did_you_mean(match[0], [f"%{name}" for name in known])
            raise Invalid(f"{printable(match[0])} is not a part of a date", remedy, column=column + match.start())
        return known[match[1]]

    return _DIRECTIVE.sub(directive, form)

"""Tasks on a day: the dates in their texts, and the days on which they can be played."""

import contextlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from judge.config import RunConfig
from shared.dates import day_in, has_dates, resolved_dates
from shared.fields import Invalid, as_mapping

# The keys of a task in whose texts dates are written out.
_DATED = ("task", "key_points", "checks", "user_reply", "user_replies")
# In these, what is special in a regular expression is escaped.
_PATTERNS = frozenset({"pattern"})


def today_of(config: object, now: datetime | None = None) -> date:
    """The day of `[config]`, as it was written: `today`, or else the present day in its time zone."""
    settings = as_mapping(config)
    if (given := day_in(settings.get("today"))) is not None:
        return given
    zone: tzinfo = UTC
    # A wrong name is reported with the settings; without a time zone database on this system, days are those of UTC.
    with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
        zone = ZoneInfo(str(settings.get("timezone") or "UTC"))
    return (now or datetime.now(UTC)).astimezone(zone).date()


def with_today(config: RunConfig, today: date) -> RunConfig:
    """The settings with the day to which a run's dates are relative, which is then sent and recorded."""
    return RunConfig.model_construct(config.model_fields_set | {"today"}, **{**dict(config), "today": today})


def on_day(table: Mapping[str, Any], today: date) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task's table with its dates written out, and the parts that have any as they were written.

    Raises `Invalid` with the key and the column of what looks like a date and is none.
    """
    written, template = dict(table), dict[str, Any]()
    for key in _DATED:
        if key in table and _mentions(table[key]):
            try:
                written[key] = _resolved(table[key], today)
            except Invalid as error:
                raise Invalid(error.problem, error.remedy, key=key, column=error.column) from None
            template[key] = json.loads(json.dumps(table[key], default=str))
    return written, template


def _mentions(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_mentions, value.values()))
    return (
        any(map(_mentions, value)) if isinstance(value, list | tuple) else isinstance(value, str) and has_dates(value)
    )


def _resolved(value: Any, today: date, key: str = "") -> Any:
    match value:
        case str():
            return resolved_dates(value, today, re.escape if key in _PATTERNS else str)
        case Mapping():
            return {name: _resolved(item, today, str(name)) for name, item in value.items()}
        case list() | tuple():
            return [_resolved(item, today, key) for item in value]
    return value


def invalid_on(today: date, valid_from: date | None, valid_until: date | None) -> str | None:
    """Why a task that is valid on these days, the last one included, is not played today."""
    if valid_from is not None and today < valid_from:
        return f"valid from {valid_from}"
    return f"valid until {valid_until}" if valid_until is not None and today > valid_until else None

"""Tasks on a day: the dates in their texts, and the days on which they can be played."""

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from urllib.parse import quote, quote_plus
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from judge.config import RunConfig
from judge.records.tasks import Dated, Task
from shared.dates import all_resolved, day_in, mentions_dates, with_dates
from shared.fields import Invalid, as_mapping

# The keys of a task in whose texts dates are written out.
_DATED = ("task", "key_points", "checks", "user_reply", "user_replies")
# Those that are lists of tables, some of which are declared for many tasks.
_TABLES_BY_IDENTITY = ("policies", "attacks", "hold", "allow_writes")
_MIN_DATE_CHARS = 6
# What identifies an entry of these is the same on every day.
_IDENTITY = frozenset({"name", "dimension"})


def today_of(config: object, now: datetime | None = None) -> date:
    """The day of `[config]`, as it was written: `today`, or else the present day in its time zone."""
    settings = as_mapping(config)
    if (declared_day := day_in(settings.get("today"))) is not None:
        return declared_day
    zone: tzinfo = UTC
    # A wrong name is reported with the settings; without a time zone database on this system, days are UTC's.
    with contextlib.suppress(ZoneInfoNotFoundError, ValueError, OSError):
        zone = ZoneInfo(str(settings.get("timezone") or "UTC"))
    return (now or datetime.now(UTC)).astimezone(zone).date()


def day_of(config: RunConfig) -> date:
    """The day of a run with these settings."""
    return today_of(config.model_dump(include={"today", "timezone"}))


def with_today(config: RunConfig, today: date) -> RunConfig:
    """The settings with the day to which a run's dates are relative, which is then sent and recorded."""
    return RunConfig.model_construct(config.model_fields_set | {"today"}, **{**dict(config), "today": today})


def on_day(table: Mapping[str, Any], today: date) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task's table with its dates written out, and the parts that have any as they were written.

    Raises `Invalid` with the key and the column of what looks like a date and is none.
    """
    dated_table = with_dates(table, _DATED, today)
    dated_table |= {key: listed_on_day(table[key], today, key=key) for key in _TABLES_BY_IDENTITY if key in table}
    dated = [key for key in _DATED if mentions_dates(table.get(key))]
    dated += [key for key in _TABLES_BY_IDENTITY if _mentions(table.get(key))]
    return dated_table, {key: _plain(table[key]) for key in dated}


def listed_on_day(entries: Any, today: date, *, key: str = "") -> Any:
    """Policies, attacks or held requests with their dates written out, but not in what identifies them.

    Raises `Invalid` with the `key`, if given, and the column of a mistake.
    """
    if not isinstance(entries, list | tuple):
        return entries
    try:
        return [
            {**all_resolved(_without_identity(each), today), **{name: each[name] for name in _IDENTITY if name in each}}
            if isinstance(each, Mapping)
            else each
            for each in entries
        ]
    except Invalid as error:
        raise Invalid(error.problem, error.remedy, key=key, column=error.column) from None


def extended(task: Task, key: str, more: Sequence[Any], declared: object, today: date, *, are_first: bool) -> Task:
    """The task with further entries of its list `key`, which are `declared` elsewhere, before or after its own."""
    if not more:
        return task
    own, template = getattr(task, key), task.dated.template if task.dated else {}
    changes: dict[str, Any] = {key: (*more, *own) if are_first else (*own, *more)}
    if key in template or _mentions(declared):
        dumped = task.model_dump(mode="json", include={key}, exclude_defaults=True).get(key, [])
        here, there = template.get(key, dumped), _plain(declared)
        combined = [*there, *here] if are_first else [*here, *there]
        changes["dated"] = Dated(day=today, template={**template, key: combined})
    return task.model_copy(update=changes)


def _without_identity(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in entry.items() if name not in _IDENTITY}


def _mentions(entries: object) -> bool:
    entries_listed = entries if isinstance(entries, list | tuple) else ()
    return any(mentions_dates(_without_identity(each)) for each in entries_listed if isinstance(each, Mapping))


def _plain(value: object) -> Any:
    return json.loads(json.dumps(value, default=str))


def invalid_on(today: date, valid_from: date | None, valid_until: date | None) -> str | None:
    """Why a task that is valid on these days, the last one included, is not played today."""
    if valid_from is not None and today < valid_from:
        return f"valid from {valid_from}"
    return f"valid until {valid_until}" if valid_until is not None and today > valid_until else None


def undated(text: str, dates: Mapping[str, str]) -> str:
    """A text or an address with these dates as the scenario has them, so that it is the same on every day."""
    forms = {form: name for date, name in dates.items() for form in (date, quote(date), quote_plus(date))}
    # Shorter ones, such as a day of the month, may be anything.
    known = sorted((form for form in forms if len(form) >= _MIN_DATE_CHARS), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, known)), lambda match: forms[match[0]], text) if known else text

"""Whether tasks on live websites are still as they were when they were last checked. Pure, apart from its file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, TypeAdapter

from shared.errors import ConfigError
from shared.fields import AsTuple, Line, at_most
from shared.files import read_json, reason_of, write_atomic, write_errors
from shared.models import Record
from shared.text import one_line
from shared.validation import validated

State = Literal["fresh", "changed", "blocked", "gone", "unchecked"]
STATES: tuple[State, ...] = get_args(State)
_VERSION = 1
_MAX_BYTES = 50_000_000
_MAX_ADDRESSES = 1000
# Not found, and gone for good.
_MISSING = (404, 410)


class TaskReading(Record):
    """What a check of a task found: on which day, the verdict, the first page, and the addresses in order.

    `lost` are the checks that did not pass.
    """

    day: Annotated[Line, at_most(10)]
    verdict: Literal["success", "failure", "unscored"]
    lost: Annotated[tuple[Annotated[Line, at_most(1000)], ...], AsTuple] = ()
    first_url: Annotated[Line, at_most(5000)]
    first_title: Annotated[Line, at_most(5000)] = ""
    addresses: Annotated[tuple[Annotated[Line, at_most(5000)], ...], AsTuple] = ()


class AttemptOutcome(Record):
    """How an attempt at a task ended: with what was seen, behind a wall, or without a page.

    `status` is the HTTP status of the first page, if one was recorded.
    """

    task_id: str
    seen: TaskReading | None = None
    status: int | None = None
    wall: str = ""
    error: str = ""
    # Why it was not played at all: it has no reference script, or its last day has passed.
    unplayed: str = ""
    is_over: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether the first page is no longer there. If the script passes, the status is part of how the site works."""
        return self.status in _MISSING and self.seen is not None and self.seen.verdict != "success"


class Freshness(Record):
    """What is to be said about a task. `proposes`: whether it should be excluded until someone has looked at it.

    A task that has changed, but whose reference script still passes, need not be.
    """

    task_id: str
    state: State
    why: tuple[str, ...] = ()
    proposes: bool = False


class _Checks(Record):
    version: int = Field(default=_VERSION, ge=1, le=_VERSION)
    tasks: dict[str, TaskReading] = Field(default_factory=dict, max_length=10_000)


_ADAPTER = TypeAdapter(_Checks)


def freshness_of(outcome: AttemptOutcome, last: TaskReading | None) -> Freshness:
    """What a check found, compared with the last one, if there was any."""
    reading = outcome.seen
    if outcome.is_over:
        return Freshness(task_id=outcome.task_id, state="gone", why=(outcome.unplayed,), proposes=True)
    if outcome.unplayed:
        return Freshness(task_id=outcome.task_id, state="unchecked", why=(outcome.unplayed,))
    if outcome.wall:
        return Freshness(task_id=outcome.task_id, state="blocked", why=(outcome.wall,), proposes=True)
    if reading is None:
        why = outcome.error or "no page was seen"
        return Freshness(task_id=outcome.task_id, state="gone", why=(why,), proposes=True)
    if outcome.is_missing:
        why = f"the first page answers {outcome.status}"
        return Freshness(task_id=outcome.task_id, state="gone", why=(why,), proposes=True)
    changes = tuple(_changes(reading, last))
    has_failed = reading.verdict != "success"
    return Freshness(task_id=outcome.task_id, state="changed" if changes else "fresh", why=changes, proposes=has_failed)


def _changes(reading: TaskReading, last: TaskReading | None) -> Iterable[str]:
    # A script that never passed shows nothing about its task, so that it is reported every time.
    if reading.verdict != "success":
        failed_checks_text = f": {'; '.join(reading.lost)}" if reading.lost else ""
        yield f"its reference script does not pass ({reading.verdict}{failed_checks_text})"
    if last is None:
        return
    if reading.first_url != last.first_url:
        yield f"the first page was {last.first_url} and is {reading.first_url}"
    if reading.first_title != last.first_title:
        yield f"the first page's title was {json.dumps(last.first_title)} and is {json.dumps(reading.first_title)}"
    if reading.addresses != last.addresses and reading.verdict == "success":
        step, before, after = _first_difference(last.addresses, reading.addresses)
        yield f"page {step} of the walk was {before} and is {after}"


def _first_difference(before: Sequence[str], after: Sequence[str]) -> tuple[int, str, str]:
    longest = max(len(before), len(after))
    pairs = [
        (before[place] if place < len(before) else "none", after[place] if place < len(after) else "none")
        for place in range(longest)
    ]
    place = next(place for place, (old, new) in enumerate(pairs) if old != new)
    return place + 1, *pairs[place]


def exclusions_toml(rows: Iterable[Freshness]) -> str:
    """What to write into the tasks that should be left out until someone has looked at them."""
    lines: list[str] = []
    for each in rows:
        if each.proposes:
            reason = json.dumps(one_line(f"{each.state}: {each.why[0]}", 300), ensure_ascii=False)
            lines += [f"# in [[tasks]] with task_id = {json.dumps(each.task_id)}", f"excluded = {reason}", ""]
    return "\n".join(lines)


def checks_path(scenario: Path) -> Path:
    """Where the last check of a scenario is kept: beside it."""
    return scenario.with_name(f"{scenario.stem}.freshness.json")


def read_checks(path: Path) -> dict[str, TaskReading]:
    """What the last check found, by task; empty before the first one. Raises `ConfigError`."""
    if not path.exists():
        return {}
    content = _content(path)
    return dict(validated(_ADAPTER, content, str(path)).tasks)


def _content(path: Path) -> object:
    try:
        return read_json(path, max_bytes=_MAX_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy="remove it, to begin anew") from None


def write_checks(path: Path, last: Mapping[str, TaskReading], outcomes: Iterable[AttemptOutcome]) -> None:
    """Keep what was seen; of tasks without a page now, what was seen last stays. Raises `ConfigError`."""
    now = {each.task_id: each.seen for each in outcomes if each.seen is not None and not each.is_missing}
    readings = dict(last) | now
    document = _Checks(tasks=dict(sorted(readings.items()))).model_dump(mode="json", exclude_defaults=True)
    with write_errors(path, "make its folder writable, or give --state"):
        write_atomic(
            path, (json.dumps({"version": _VERSION, **document}, indent=1, ensure_ascii=False) + "\n").encode()
        )


def over_since(valid_until: date | None, today: date) -> str:
    """Why a task can never be played again, if its last day has passed."""
    return f"its last day was {valid_until}" if valid_until is not None and valid_until < today else ""


def addresses_of(urls: Iterable[str]) -> tuple[str, ...]:
    """The addresses of a walk in order, without repetitions in a row."""
    addresses: list[str] = []
    for url in urls:
        address = one_line(url, 2000)
        if not addresses or addresses[-1] != address:
            addresses.append(address)
    return tuple(addresses[:_MAX_ADDRESSES])

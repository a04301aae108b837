"""The filters of lists of runs, each declared once: the options of `wabe runs`, the fields and the address of the page
of all runs follow from it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter
from pydantic.fields import FieldInfo

from judge.plugins.all_runs.listing import ListedRun
from shared.fields import Invalid, printable
from shared.models import Record
from shared.validation import validated

MAX_CHARS = 300
MAX_VALUES = 20
# A phrase in quotation marks, whose end may be missing, or a word; with a hyphen before it, runs with it are left out.
_WORD = re.compile(r'(-?)(?:"([^"]*)(?:"|$)|([^\s"]+))')
FilterKind = Literal["text", "names", "day"]


@dataclass(frozen=True)
class RunFilter:
    """A filter: its heading, its help, and what it is compared with.

    `of` gives the names of a run that `names` choose from; `keeps` is the test for other kinds. A value of `names` is a
    part of the name, without regard to case, or with `=` before it the whole name; one of several values suffices.
    """

    heading: str
    help: str
    kind: FilterKind
    of: Callable[[ListedRun], Iterable[str | None]] = lambda _: ()
    keeps: Callable[[Any, ListedRun], bool] = lambda _value, _run: True

    def admits(self, value: Any, run: ListedRun) -> bool:
        """Whether the filter lets the run through; an empty value lets every run through."""
        if not value:
            return True
        if self.kind != "names":
            return self.keeps(value, run)
        names = [name.casefold() for name in self.of(run) if name]
        return any(_is_named(each.casefold(), names) for each in value)


def _is_named(query: str, names: Iterable[str]) -> bool:
    if query.startswith("="):
        return query[1:] in names
    return any(query in name for name in names)


class Word(NamedTuple):
    """A word or phrase of a search, without regard to case; runs with an `unwanted` one are left out."""

    text: str
    unwanted: bool = False


def words_of(search: str) -> tuple[Word, ...]:
    """The words of a search: `lamp -night "my agent"`. Any text is a search."""
    words = (Word(phrase or word, bool(minus)) for minus, phrase, word in _WORD.findall(search.casefold()))
    return tuple(each for each in words if each.text.strip())


def _has_words(search: str, run: ListedRun) -> bool:
    parts = (run.id, run.scenario, run.participant, run.judge, run.state, run.revision, *run.tags, run.note)
    # Separated, so that no phrase is found across two of them.
    text = "\0".join(filter(None, parts)).casefold()
    return all((word.text in text) is not word.unwanted for word in words_of(search))


def _day(value: object) -> object:
    if value in (None, "") or isinstance(value, date):
        return value or None
    try:
        return date.fromisoformat(value) if isinstance(value, str) and re.fullmatch(r"[\d-]{10}", value) else _no_day()
    except ValueError:
        raise Invalid(f"{printable(value)} is not a day", "write it like 2026-11-23") from None


def _no_day() -> date:
    raise ValueError


def _normalised_filter(value: object) -> object:
    """A single value may stand for a list of one; empty ones are as good as none."""
    values = [value] if isinstance(value, str) else value
    return [each for each in values if each != ""] if isinstance(values, list | tuple) else values or ()


FilterName = Annotated[str, Field(max_length=MAX_CHARS)]
FilterNames = Annotated[tuple[FilterName, ...], Field(max_length=MAX_VALUES), BeforeValidator(_normalised_filter)]
FilterDay = Annotated[date | None, BeforeValidator(_day)]
SearchText = Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(str.strip)]


class RunFilters(Record):
    """What lists of runs are narrowed to; a run is listed if every filter admits it."""

    search: Annotated[
        SearchText,
        RunFilter("Search", 'Words in ids, names, tags and notes; "a phrase", -unwanted.', "text", keeps=_has_words),
    ] = ""
    scenario: Annotated[
        FilterNames, RunFilter("Scenario", "Only this scenario; repeatable.", "names", of=lambda run: (run.scenario,))
    ] = ()
    agent: Annotated[
        FilterNames, RunFilter("Agent", "Only this agent; repeatable.", "names", of=lambda run: (run.agent,))
    ] = ()
    judge: Annotated[
        FilterNames, RunFilter("Judge", "Only this judge; repeatable.", "names", of=lambda run: (run.judge,))
    ] = ()
    state: Annotated[
        FilterNames, RunFilter("State", "Only runs in this state; repeatable.", "names", of=lambda run: (run.state,))
    ] = ()
    tag: Annotated[
        FilterNames, RunFilter("Tag", "Only runs with this tag; repeatable.", "names", of=lambda run: run.tags)
    ] = ()
    where: Annotated[
        FilterNames,
        RunFilter(
            "Metadata", "Only runs of tasks with these metadata; repeatable.", "names", of=lambda run: run.metadata
        ),
    ] = ()
    since: Annotated[
        FilterDay,
        RunFilter(
            "From", "Last started or resumed on this day or later.", "day", keeps=lambda day, run: run.day >= str(day)
        ),
    ] = None
    until: Annotated[
        FilterDay,
        RunFilter(
            "Until",
            "Last started or resumed on this day or earlier.",
            "day",
            keeps=lambda day, run: bool(run.day) and run.day <= str(day),
        ),
    ] = None

    def keep(self, runs: Iterable[ListedRun]) -> list[ListedRun]:
        """The runs that every filter admits."""
        used = [(each, value) for name, _, each in run_filters() if (value := getattr(self, name))]
        return [run for run in runs if all(each.admits(value, run) for each, value in used)]

    def address(self) -> str:
        """The filters as the query of an address; the inverse of `filters_in`."""
        values = {name: getattr(self, name) for name, _, _ in run_filters()}
        return urlencode({name: value for name, value in values.items() if value}, doseq=True)


_FILTERS = TypeAdapter(RunFilters)


def run_filters() -> tuple[tuple[str, FieldInfo, RunFilter], ...]:
    """Name, field and declaration of each filter."""
    fields = RunFilters.model_fields.items()
    filter_fields = (
        (name, field, next(each for each in field.metadata if isinstance(each, RunFilter))) for name, field in fields
    )
    return tuple(filter_fields)


def read_filters(values: Mapping[str, object], source: str) -> RunFilters:
    """The filters from their values by name. Raises `ConfigError`, which names `source`."""
    return validated(_FILTERS, {name: value for name, value in values.items() if value is not None}, source)


def filters_in(query: Iterable[tuple[str, str]]) -> RunFilters:
    """The filters in the query of an address, in which other keys may stand. Raises `ConfigError`."""
    values_by_filter: dict[str, list[str]] = {}
    for name, value in query:
        values_by_filter.setdefault(name, []).append(value)
    kinds = {name: each.kind for name, _, each in run_filters()}
    values = {
        name: values_by_filter[name] if kind == "names" else values_by_filter[name][-1]
        for name, kind in kinds.items()
        if name in values_by_filter
    }
    return read_filters(values, "the address")


def choices(runs: Iterable[ListedRun], each: RunFilter) -> dict[str, int]:
    """The names that a filter can choose from, each with its number of runs, in order."""
    counts = Counter(name for run in runs for name in each.of(run) if name)
    return dict(sorted(counts.items(), key=lambda item: item[0].casefold()))

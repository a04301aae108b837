"""`page` checks: the address of a page, or its title."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from judge.evaluators.addresses import matches, query_difference
from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import Look, TrajectoryEvidence
from judge.evaluators.lookalikes import with_difference
from judge.evaluators.looks import looks_at, over_looks
from judge.records.checks import AddressPattern, LookCheck, OneOrMore, Text, as_tuple
from judge.records.findings import AddressFound, Fact
from judge.records.sites import NONE_SHARED
from judge.records.tasks import Task
from shared.fields import Invalid
from shared.text import excerpt, one_line, plain

_MAX_SHOWN = 5


class PageCheck(LookCheck):
    """The address is `url`, or the title is `title`."""

    of_addresses: ClassVar[bool] = True

    kind: Literal["page"]
    url: OneOrMore[AddressPattern] | None = None
    title: Text | None = None
    extra_query: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _has_something(self) -> Self:
        if self.url is None and self.title is None:
            raise Invalid("neither url nor title", "add one of them")
        if self.title is not None and isinstance(self.url, tuple):
            raise Invalid("a list of addresses and a title", "write two checks", key="title")
        if self.extra_query and self.url is None:
            raise Invalid("nothing to apply it to", "add url, or remove it", key="extra_query")
        return self

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those that it expects."""
        return as_tuple(self.url)

    def wrong_filter(self, found: str, facts: Sequence[Fact], last: str, site: Any) -> str | None:
        """The last page's path was right, and its query was not."""
        address = as_tuple(self.url)[-1] if self.url is not None else ""
        path, question, _ = address.partition("?")
        is_other = question and matches(last, path, site, extra_query=True)
        return f"{_address(last)} instead of {address}" if is_other else None


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def decide(check: PageCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether address and title are the expected ones; of several addresses, whether they were visited in order."""
    looks = looks_at(check, recording)
    return over_looks(check, looks, inverted, _page_test(check, looks))


def _page_test(check: PageCheck, looks: Sequence[Look]) -> Callable[[Look, bool], ComparisonResult]:
    """Tests address and title; of several addresses, whether the look is at the last one after all others in order."""
    *earlier, target = as_tuple(check.url) or ("",)
    missing: dict[int, str] = {}
    for look in looks:
        if earlier:
            missing[look.step.index] = earlier[0]
            if look.is_at(earlier[0], extra_query=check.extra_query) and not look.is_unsure:
                earlier.pop(0)

    def test(look: Look, _explains: bool) -> ComparisonResult:
        if look.is_judges:
            return ComparisonResult(False, f"a page of the judge's own: {excerpt(look.step.url, 200)}", counts=False)
        there = AddressFound.of(look.step.url, is_own=look.is_own)
        if look.step.index in missing:
            return ComparisonResult(False, f"{missing[look.step.index]} was not visited before {there}", facts=(there,))
        if target and not look.is_at(target, extra_query=check.extra_query):
            return ComparisonResult(False, f"{_other_query(check, look, target)}{there}", facts=(there,))
        if check.title is not None and not (look.is_own and plain(look.title) == plain(check.title)):
            result = ComparisonResult.of(
                False, AddressFound.of(look.step.url, is_own=look.is_own, title=look.step.title)
            )
            return result._replace(text=with_difference(result.text, check.title, [look.title]))
        return ComparisonResult.of(True, there)

    return test


def _other_query(check: PageCheck, look: Look, target: str) -> str:
    """The missing, different or unexpected parameters, for the finding; empty if more than they differ."""
    difference = query_difference(look.step.url, target, look.site, extra_query=check.extra_query)
    if difference is None or not look.is_own:
        return ""
    instead = dict(difference.instead)
    parts = [
        f"{one_line(name, 60)} is {excerpt(instead[name])}"
        if name in instead
        else f"no {one_line(f'{name}={value}', 100)}"
        for name, value in difference.missing
    ]
    parts += [f"also {one_line(f'{name}={value}', 100)}" for name, value in difference.extra]
    more = [f"{len(parts) - _MAX_SHOWN} more differences"] if len(parts) > _MAX_SHOWN else []
    return f"{', '.join([*parts[:_MAX_SHOWN], *more])} in " if parts else ""


def near(check: PageCheck, recording: TrajectoryEvidence) -> int | None:
    """The action that led to the last address, if that has the expected path and another query."""
    looks = recording.looks
    address = (as_tuple(check.url) or ("",))[-1]
    if "?" not in address or not looks or not looks[-1].is_at(address.partition("?")[0], extra_query=True):
        return None
    first = len(looks) - 1
    while first and looks[first - 1].step.url == looks[-1].step.url:
        first -= 1
    return looks[first - 1].step.index if first else None


def warnings(check: PageCheck) -> Iterator[str]:
    """A title that any page could have."""
    if check.title is not None and check.url is None and not check.inverted:
        yield "a page that repeats typed text in its title could pass it: add url"


def contradicts(one: PageCheck, other: PageCheck) -> str | None:
    """Checks that expect two different final pages contradict each other."""
    if one.inverted or other.inverted:
        return None
    last = [as_tuple(check.url)[-1:] for check in (one, other)]
    ends = all(check.at == "end" and check.on is None and not check.extra_query for check in (one, other))
    if ends and all(last) and last[0] != last[1] and not any("*" in url for urls in last for url in urls):
        return f"the end cannot be both {last[0][0]} and {last[1][0]}"
    return None


def trivial(check: PageCheck, task: Task) -> Iterator[str]:
    """An address open from the start, and nothing else. `wabe tasks validate --try` finds the other kinds."""
    first = (task.start_urls or (task.website,))[0]
    is_one = len(task.checks) == 1 and check.title is None and isinstance(check.url, str) and not check.inverted
    if is_one and matches(first, str(check.url), NONE_SHARED.of(task), extra_query=check.extra_query):
        yield "the first page is already there: an agent that does nothing passes it"


KIND = CheckKind(
    PageCheck, decide, weighs_answers=True, near=near, warnings=warnings, trivial=trivial, contradicts=contradicts
)

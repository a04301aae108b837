"""`fetch` checks: the judge's requests to the task's site after the last look."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import unescape
from typing import Annotated, Any, ClassVar, Literal, Protocol
from urllib.parse import urljoin

from pydantic import Discriminator, Tag

from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.evaluators.looks import UNSURE
from judge.evaluators.values import json_differences
from judge.records.checks import (
    LOCAL_STORAGE,
    AnyOf,
    Bearer,
    Check,
    KindCheck,
    OneAddress,
    PathValues,
    Text,
    fetches_of,
    is_text_or_table,
    names_compared,
)
from judge.records.sites import Site
from judge.records.tasks import Task
from judge.trajectory.fetched import Fetched, FetchResponse, Redacted, stored
from judge.trajectory.json_bodies import is_json
from shared.patterns import glob
from shared.seen import values_as_seen
from shared.strict_json import parse_json
from shared.text import clip, excerpt, plain

# A site may finish its work a moment after the page has shown the result.
RETRY_S = 2.0
PAUSE_S = 0.2
_MAX_REDIRECTS = 5
_NOT_ASKED = "the attempt ended before the judge could ask"


class FetchCheck(KindCheck):
    """The judge's request to `url` after the last look, with the attempt's cookies, gets `response`.

    `bearer` names the item of the local storage sent as a token.
    """

    is_redacted: ClassVar[bool] = True

    kind: Literal["fetch"]
    url: OneAddress
    response: Annotated[
        Annotated[Text, Tag("<text>")] | Annotated[PathValues, Tag("<paths>")], Discriminator(is_text_or_table)
    ]
    bearer: Bearer | None = None

    @property
    def asks_for(self) -> tuple[str, str | None]:
        """What is requested: the address, and the name in the local storage."""
        return self.url, self.bearer

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every compared value."""
        return names_compared(self.response)

    @property
    def addresses(self) -> tuple[str, ...]:
        """What is requested."""
        return (self.url,)


class Asker(Protocol):
    """Gets addresses with the attempt's cookies: a `judge.browser.session.Browser`."""

    async def fetch(self, url: str, key: str | None) -> FetchResponse: ...


class Fetches:
    """The `fetch` checks of a task in one attempt. `answers` are those so far: an error where there is none yet."""

    def __init__(self, task: Task, redacted: Redacted) -> None:
        self._task = task
        self._redacted = redacted
        self._answers = {
            target: stored(*target, FetchResponse(error=_NOT_ASKED), redacted) for target in fetches_of(task.checks)
        }

    @property
    def answers(self) -> tuple[Fetched, ...]:
        """One for each address and header that the checks name."""
        return tuple(self._answers.values())

    async def ask(self, browser: Asker, site: Site) -> None:
        """Fetch each answer until its checks pass, for up to `RETRY_S`. `site` is the task's."""
        now = asyncio.get_running_loop().time
        for url, bearer in self._answers:
            began = now()
            while True:
                answer = await self._get(browser, url, bearer, site)
                answer_stored = stored(url, bearer, answer, self._redacted)
                self._answers[url, bearer] = answer_stored
                if self._passes(answer_stored) or now() - began >= RETRY_S:
                    break
                await asyncio.sleep(PAUSE_S)

    async def _get(self, browser: Asker, url: str, bearer: str | None, site: Site) -> FetchResponse:
        """The answer at the end of all redirects, none of which may lead off the task's site."""
        at = urljoin(self._task.website, url).partition("#")[0]
        key = None if bearer is None else bearer.removeprefix(LOCAL_STORAGE)
        for _ in range(_MAX_REDIRECTS + 1):
            if not site.holds(at):
                return FetchResponse(error=f"{excerpt(at, 200)} is not on the task's site")
            # The header goes to the origin whose storage it comes from, so that no redirect takes it along.
            answer = await browser.fetch(at, key)
            if answer.location is None:
                return answer
            at = answer.location.partition("#")[0]
        return FetchResponse(error=f"more than {_MAX_REDIRECTS} redirects")

    def _passes(self, fetched: Fetched) -> bool:
        return all(
            _decision(check.as_seen(), fetched, values_as_seen, inverted=inverted).passed
            for check, inverted in _fetch_checks(self._task.checks)
            if check.asks_for == (fetched.url, fetched.bearer)
        )


def _fetch_checks(checks: Iterable[Check]) -> Iterator[tuple[FetchCheck, bool]]:
    """The checks, also those in `any_of`, and whether each is inverted in the end."""
    for check in checks:
        inner = check.any_of if isinstance(check, AnyOf) else (check,)
        is_outer_inverted = isinstance(check, AnyOf) and check.inverted
        for each in inner:
            if isinstance(each, FetchCheck):
                yield each, each.inverted != is_outer_inverted


def decide(check: FetchCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the stored answer passes the check. Raises `MissingEvidence` if the recording has none."""
    known = {(each.url, each.bearer): each for each in recording.trajectory.attempt.fetched}
    fetched = known.get(check.asks_for)
    if fetched is None:
        raise MissingEvidence(f"the judge recorded no answer of {check.url}")
    if recording.looks and recording.is_unsure(recording.looks[-1].step.index):
        return Decision(False, UNSURE, None)
    return _decision(check, fetched, recording.as_compared, inverted=inverted)


def _decision(check: FetchCheck, fetched: Fetched, as_compared: Callable[[Any], Any], *, inverted: bool) -> Decision:
    result = _compared(check.response, fetched, as_compared)
    # An error proves nothing, not even that something is missing.
    return Decision(result.counts and result.passed != inverted, result, None)


def _compared(
    expected: str | Mapping[str, Any], fetched: Fetched, as_compared: Callable[[Any], Any]
) -> ComparisonResult:
    if fetched.error is not None or fetched.body is None:
        return ComparisonResult(False, f"no answer: {fetched.error}", counts=False)
    body_text = clip(plain(_readable(fetched)), 200)
    if isinstance(expected, str):
        return ComparisonResult(glob(plain(expected)).fullmatch(plain(as_compared(fetched.body))), body_text)
    if not is_json(fetched.type, fetched.body):
        return ComparisonResult(False, f"an answer that is not JSON: {body_text}", counts=False)
    try:
        content = as_compared(parse_json(fetched.body))
    except ValueError:
        return ComparisonResult(False, f"an answer that is not readable as JSON: {body_text}", counts=False)
    problem = next(json_differences("response", expected, content), None)
    return (
        ComparisonResult(True, body_text)
        if problem is None
        else ComparisonResult(False, f"{problem} in {body_text}", facts=(problem,))
    )


def _readable(fetched: Fetched) -> str:
    """The answer as a finding shows it: of a page the text of its main part, without tags."""
    body = fetched.body or ""
    if "html" not in fetched.type and not body.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
        return body
    _, is_there, main = body.partition("<main")
    parts = (part.partition(">") for part in (is_there + main if main else body).split("<"))
    return unescape(" ".join(text for tag, _, text in parts if not tag.lower().startswith(("script", "style"))))


KIND = CheckKind(FetchCheck, decide, weighs_answers=True)

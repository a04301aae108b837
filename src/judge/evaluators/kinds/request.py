"""`request` checks: what was sent and answered, on the recorded network trace.

A request counts only if it went to the task's site and was sent by that site or by the browser itself (for an address
that the participant named). Otherwise a participant could send it from a page of its own. Who sent it was decided when
it was recorded (`judge.network.senders`); an unknown sender is not the task's site. Requests for images, scripts and
the like are evidence for policies and goals only.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice
from math import inf
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import Discriminator, Field, Tag, model_validator

from judge.evaluators.addresses import matches
from judge.evaluators.base import CheckKind, ComparisonResult, Decision, happened, how_often
from judge.evaluators.evidence import Look, MissingEvidence, TrajectoryEvidence
from judge.evaluators.kinds import socket
from judge.evaluators.looks import UNSURE, looks_at
from judge.evaluators.readings import pairs
from judge.evaluators.values import are_among, differences, json_differences, keys_beside, of_name, of_path, text_of
from judge.evaluators.writes import SAFE, Allowed, is_repeated, may_write, path_of, replaces
from judge.records.checks import (
    AddressPattern,
    AsWritten,
    IsWhole,
    LookCheck,
    OneOrMore,
    PathValues,
    Text,
    Times,
    Values,
    as_tuple,
    is_text_or_table,
    names_compared,
    plain_checks,
)
from judge.records.files import FileName
from judge.records.findings import Fact, ValueFound
from judge.records.holds import READING, Method
from judge.records.sites import Site
from judge.trajectory.json_bodies import is_json
from judge.trajectory.network import BROWSER, RESOURCES, Body, Entry, LeftOut, Log, SentFile
from judge.trajectory.redaction import REDACTED
from shared.fields import Invalid, Table, at_most
from shared.models import omit_default
from shared.patterns import glob
from shared.seen import address_as_seen
from shared.strict_json import parse_json
from shared.text import clip, counted, plain

_ERROR_STATUS = 400
_MAX_SHOWN = 3
_MAX_COMPARED = 500
_MAX_PATH_CHARS = 200
_MAX_QUERY_FIELDS = 1_000


class UploadedFile(Table):
    """A file in a multipart form: its `field`, the `name` that it was sent under, and the task's `file` that it is.

    `*` in `field` and `name` matches anything.
    """

    field: Text | None = None
    name: Text | None = None
    file: FileName | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.field is None and self.name is None and self.file is None:
            raise Invalid("empty", 'write { field = "cv", file = "cv.pdf" }')
        return self

    def __str__(self) -> str:
        fields = self.model_dump(exclude_none=True)
        return ", ".join(f"{key} {value}" for key, value in fields.items())


class RequestCheck(LookCheck):
    """The last request to `url` has these values. Several addresses must be requested in order; the last one counts.

    `times`: so many have them. `exact`: there are no other keys in `post_data`. `only`: the task's sites get no other
    request that may change them than those that the task's checks name, and `allow`.
    """

    of_actions: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True
    is_redacted: ClassVar[bool] = True

    kind: Literal["request"]
    method: Method | None = None
    url: OneOrMore[AddressPattern]
    query: Values | None = None
    post_data: (
        Annotated[
            Annotated[Text, Tag("<text>")] | Annotated[PathValues, Tag("<paths>")], Discriminator(is_text_or_table)
        ]
        | None
    ) = None
    headers: Annotated[dict[str, Text], Field(min_length=1), at_most(100)] | None = None
    status: Annotated[int, Field(ge=100, le=599), IsWhole] | None = None
    response: PathValues | None = None
    files: Annotated[
        Annotated[tuple[UploadedFile, ...], Field(min_length=1), at_most(20), AsWritten()] | None, AsWritten()
    ] = omit_default(None)
    times: Times | None = omit_default(None)
    exact: Annotated[bool, Field(strict=True)] = omit_default(False)
    only: Annotated[bool, Field(strict=True)] = omit_default(False)
    allow: Annotated[tuple[Allowed, ...], at_most(50), AsWritten()] = omit_default(())

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.exact and not isinstance(self.post_data, Mapping):
            raise Invalid("exact is about the keys of post_data", "add keys, or remove exact", key="exact")
        if self.only and self.inverted:
            raise Invalid("only names what may be sent, and not what must not be", "remove not", key="only")
        if self.allow and not self.only:
            raise Invalid("allow needs only", "add only = true", key="allow")
        if any(_covers(each, self) for each in self.allow):
            raise Invalid("allows what this check names, as often as anybody likes", "name less in it", key="allow")
        return self

    @property
    def writes(self) -> bool:
        """Whether it expects a request that may change the site."""
        return not self.inverted and self.method is not None and self.method not in SAFE

    @property
    def compares_uploads(self) -> bool:
        """Whether it compares files that were sent."""
        return self.files is not None

    @property
    def uploads(self) -> tuple[str, ...]:
        """The names of the task's files that it expects to have been sent."""
        return tuple(each.file for each in self.files or () if each.file is not None)

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every compared value."""
        names = [*(self.query or ()), *(self.headers or ())]
        for url in as_tuple(self.url):
            names += [name for name, _ in parse_qsl(url.partition("#")[0].partition("?")[2], keep_blank_values=True)]
        # With `exact`, what may be anything is only named, such as a token.
        sent = {key: value for key, value in _table(self.post_data).items() if not (self.exact and value == "*")}
        in_bodies = names_compared(sent) | names_compared(self.response or {})
        return in_bodies.union({name.lower() for name in names}, *(each.compared for each in self.allow))

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those that must be requested."""
        return as_tuple(self.url)

    def wrong_filter(self, found: str, facts: Sequence[Fact], last: str, site: Any) -> str | None:
        """The request was sent with another query."""
        return found if any(isinstance(each, ValueFound) and each.part == "query" for each in facts) else None


def decide(check: RequestCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the check passes, what was found, and the index of the step that caused the deciding request.

    The last request with the method and address is compared; with `at = "any"`, one match is enough. Inverted: the last
    one (or any) must not match, whoever sent it. For policies, it passes where an inverted check would fail.
    """
    whoever = inverted or recording.counts_all
    looks = looks_at(check, recording)
    traffic = recording.traffic
    if check.files is not None and traffic.seen_by != "guard":
        raise MissingEvidence("uploaded files were not read when the attempt was played, play it again")
    if recording.is_absence_unsure and (inverted or check.only or check.times is not None):
        # There could have been more.
        return Decision(False, UNSURE, None)
    found = _found(check, recording, looks, whoever=whoever)
    _require_recorded(check, recording, [entry for _, entry in found.entries])
    candidates, results = found.candidates, found.results
    hits = [index for index, one in enumerate(results) if one.passed]
    if not results:
        request_entries = [entry for _, entry in found.entries]
        missing = found.missing
        last = ComparisonResult(
            False,
            f"no {missing} was requested before"
            if missing
            else _instead(check, as_tuple(check.url)[-1], request_entries),
        )
    else:
        # Of what must not happen so often, each counts.
        is_any = check.at == "any" or (whoever and check.times is not None)
        last = results[hits[0]] if is_any and hits else results[-1]
    if last.passed and not happened(check.times, len(hits), at_least=whoever):
        last = ComparisonResult(False, f"{how_often(check.times, len(hits), 'such request')}: {last.text}")
    if recording.counts_all and last.passed:
        omission = None
    else:
        omission = _pushed_out(recording, check, last, candidates[-1][0] if candidates else -1, inverted=whoever)
    if omission is not None:
        return omission._replace(passed=recording.counts_all)
    if check.only and last.passed and (unexpected := _unexpected(check, recording)) is not None:
        return unexpected
    passed = last.passed != inverted
    step = candidates[hits[0]][1].step if passed and not inverted and hits else None
    near = candidates[-1][1].step if candidates and not passed and not inverted else None
    # The first page (0) has no action.
    return Decision(passed, last, None if step is None else max(0, step - 1), near_step=near - 1 if near else None)


class _Found(NamedTuple):
    """The requests that a check is about: all that count, those to its last address, and how these compare.

    `before` are the places of those to its other addresses, `missing` the first one not requested.
    """

    entries: Sequence[tuple[int, Entry]]
    candidates: Sequence[tuple[int, Entry]]
    results: Sequence[ComparisonResult]
    before: Sequence[int]
    missing: str | None


def _found(check: RequestCheck, recording: TrajectoryEvidence, looks: Sequence[Look], *, whoever: bool) -> _Found:
    entries = _of_checks(recording) if whoever else own_requests(recording)
    if check.on is not None:
        # The judge opened the first page (0); action 1 followed the look with index 0.
        acted_on = {look.step.index + 1 for look in looks}
        entries = [(place, each) for place, each in entries if each.step in acted_on]
    *earlier, target = as_tuple(check.url)
    before: list[int] = []
    candidates: list[tuple[int, Entry]] = []
    for place, entry in entries:
        if earlier:
            is_one = _is_to(entry, check.method, earlier[0], recording.site) and not recording.is_unsure(entry.step)
            if is_one and _answer_problem(entry, None) is None:
                earlier.pop(0)
                before.append(place)
        elif _is_to(entry, check.method, target, recording.site):
            candidates.append((place, entry))
    results = [
        UNSURE if recording.is_unsure(entry.step) else _compared(entry, check, recording, inverted=whoever)
        for _, entry in candidates
    ]
    return _Found(entries, candidates, results, before, earlier[0] if earlier else None)


def others(recording: TrajectoryEvidence, allow: Sequence[Allowed]) -> Iterator[Entry]:
    """The requests that may have changed the task's sites, and that neither a check nor `allow` names; by whomever."""
    expected = _expected(recording)
    for place, entry in _of_checks(recording):
        if entry.resource_type == "websocket" or place in expected or not may_write(entry):
            continue
        if not any(_is_allowed(entry, each, recording) for each in allow):
            yield entry


def _unexpected(check: RequestCheck, recording: TrajectoryEvidence) -> Decision | None:
    """The decision if the task's sites were sent something else that may have changed them."""
    found = [(entry.step, _describe(entry)) for entry in others(recording, check.allow)]
    for message in socket.others(recording, check.allow):
        found.append((message.step, f"message {socket.describe(message)}"))
    counts = Counter(text for _, text in found)
    parts = [
        f"{text}{f' (after action {step})' if step else ''}{f', {counts[text]} times' if counts[text] > 1 else ''}"
        for text, step in {text: step for step, text in reversed(found)}.items()
    ][::-1]
    unknown = sum(each.count for each in recording.traffic.left_out if _may_be_write(each, check.allow, recording.site))
    unknown += socket.lost(recording, check.allow)
    if parts:
        more = f"; and {len(parts) - _MAX_SHOWN} more" if len(parts) > _MAX_SHOWN else ""
        shown = f"also {'; '.join(parts[:_MAX_SHOWN])}{more}"
    elif unknown:
        shown = f"at least {counted(unknown, 'request')} that may have changed the site went unrecorded"
    else:
        return None
    first = min((step for step, _ in found if step), default=None)
    return Decision(False, ComparisonResult(False, shown), None, near_step=first - 1 if first else None)


def _expected(recording: TrajectoryEvidence) -> set[int]:
    """The places of the requests that the task's checks name: of each check as many as it says, and repetitions.

    A request answered in the same words is the same one. One that puts something else in its place (PUT) makes
    up for an earlier one.
    """
    places: set[int] = set()
    declared = (each for each in recording.checks if not each.inverted)
    for check in plain_checks(list(declared)):
        if not isinstance(check, RequestCheck) or check.inverted:
            continue
        found = _found(check, recording, looks_at(check, recording), whoever=False)
        places.update(found.before)
        hits = [each for each, one in zip(found.candidates, found.results, strict=True) if one.passed]
        if not hits:
            continue
        _, decisive = hits[0] if check.at == "any" else hits[-1]
        for place, entry in hits:
            if check.times is not None or is_repeated(entry, decisive):
                places.add(place)
        places |= {place for place, entry in found.candidates if place < hits[-1][0] and replaces(decisive, entry)}
    return places


def _is_allowed(entry: Entry, allowed: Allowed, recording: TrajectoryEvidence) -> bool:
    if allowed.socket or not _is_to(entry, allowed.method, allowed.url, recording.site):
        return False
    if allowed.status is not None and entry.response.status != allowed.status:
        return False
    if _is_query_unknown(entry) and ("?" in allowed.url or allowed.query is not None):
        return False
    if allowed.query is not None:
        sent = recording.as_compared(parse_qsl(urlsplit(entry.request.url).query, keep_blank_values=True))
        if not are_among(allowed.query, lambda name: [value for key, value in sent if key == name]):
            return False
    return allowed.post_data is None or _is_body_allowed(entry.request.body, allowed.post_data, recording)


def _is_body_allowed(body: Body | None, expected: Mapping[str, Any], recording: TrajectoryEvidence) -> bool:
    if body is None or body.is_cut:
        return False
    if body.params:
        fields = recording.as_compared([(field.name, field.value) for field in body.params])
        return are_among(expected, lambda name: [value for key, value in fields if key == name])
    if body.text is None or body.encoding is not None or not is_json(body.mime_type, body.text):
        return False
    try:
        content = recording.as_compared(parse_json(body.text))
    except ValueError:
        return False
    return are_among(expected, lambda path: of_path(content, path))


def _may_be_write(left_out: LeftOut, allow: Sequence[Allowed], site: Site) -> bool:
    """Whether requests that were left out may have changed the site."""
    if not left_out.url:
        return True
    method = left_out.method.upper()
    if method in SAFE or left_out.url.startswith("ws") or not site.holds(left_out.url):
        return False
    return not any(
        each.query is None and each.post_data is None and each.status is None and "?" not in each.url
        for each in allow
        if each.method in (None, method) and not each.socket and matches(left_out.url, each.url, site)
    )


def own_requests(recording: TrajectoryEvidence) -> list[tuple[int, Entry]]:
    """The requests to the task's site that it, or the browser itself, sent, each with its place in the trace.

    Raises `MissingEvidence`.
    """
    own = [(place, each) for place, each in _of_checks(recording) if _is_sent_by(recording.site, each)]
    # What the judge put into a page is not the site's, so neither is what a click on it sends; the same is true of what
    # the participant may have put into an editor.
    return [(place, each) for place, each in own if recording.is_caused_by_site(each.cause)]


def _of_checks(recording: TrajectoryEvidence) -> list[tuple[int, Entry]]:
    """The requests to the task's site that checks see; for policies and goals, also those for resources."""
    traffic = recording.traffic
    numbered = [(place, each) for place, each in enumerate(traffic.entries) if recording.site.holds(each.request.url)]
    if traffic.seen_by is None:
        return numbered
    if recording.counts_all:
        # The handshake of a socket is a request too, and the server is sent its address.
        return [(place, each.as_http()) for place, each in numbered]
    return [(place, each) for place, each in numbered if each.resource_type not in RESOURCES]


def _require_recorded(check: RequestCheck, recording: TrajectoryEvidence, entries: Sequence[Entry]) -> None:
    """Raises `MissingEvidence` if the check compares a redacted value, because no check named it back then."""
    unkept = check.compared - recording.recorded_task.named_fields
    paths = [url.partition("?")[0] for url in as_tuple(check.url)]
    for entry in entries if unkept else ():
        if any(entry.request.url.partition("?")[0].endswith(path) for path in paths) and _is_redacted(entry, unkept):
            raise MissingEvidence(f"redacted when the attempt was played, play it again: {_describe(entry)}")


def _is_redacted(entry: Entry, names: Collection[str]) -> bool:
    request, bodies = entry.request, (entry.request.body, entry.response.body)
    params = request.body.params if request.body else ()
    pairs = [(pair.name, pair.value) for pair in (*request.headers, *params)]
    if not _is_query_unknown(entry):
        pairs += parse_qsl(urlsplit(request.url).query, keep_blank_values=True)
    if any(name.lower() in names and REDACTED in value for name, value in pairs):
        return True
    return any(body is not None and _holds_redacted(body, names) for body in bodies)


def _holds_redacted(body: Body, names: Collection[str]) -> bool:
    """Whether a JSON body has a redacted value under one of the names, at any depth."""
    if body.text is None or REDACTED not in body.text or body.encoding is not None:
        return False
    try:
        todo = [parse_json(body.text)]
    except ValueError:
        return False
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if any(key.lower() in names and REDACTED in text_of(item) for key, item in value.items()):
                return True
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return False


def _is_sent_by(site: Site, entry: Entry) -> bool:
    return entry.sender == BROWSER or (entry.sender is not None and site.holds(entry.sender))


def _pushed_out(
    recording: TrajectoryEvidence, check: RequestCheck, last: ComparisonResult, place: int, *, inverted: bool
) -> Decision | None:
    """The decision if requests were left out that could have decided the check.

    `place` is the last candidate's. Left-out requests of a method and path came before the last one of them.
    """
    if not inverted and check.at == "any" and last.passed and check.times is None:
        return None
    count = 0
    for omission in recording.traffic.left_out:
        # Requests by others only matter for inverted checks.
        if not (omission.is_own or inverted) or not _could_be(omission, check, recording.site):
            continue
        if inverted or check.times is not None or place < _last_of(omission, recording.traffic):
            count += omission.count
    if not count:
        return None
    text = f"at least {counted(count, 'request')} that could decide went unrecorded; otherwise {last.text}"
    return Decision(False, ComparisonResult(False, text), None)


def _could_be(left_out: LeftOut, check: RequestCheck, site: Site) -> bool:
    if not left_out.url:
        return True
    if check.method is not None and left_out.method.upper() != check.method:
        return False
    urls = as_tuple(check.url)
    # Their queries are not known.
    paths = (url_path.partition("?")[0] for url_path in urls)
    return any(matches(left_out.url, path, site, extra_query=True) for path in paths)


def _last_of(left_out: LeftOut, traffic: Log) -> float:
    """The place of the last request that can be one of those left out."""
    places = (
        place
        for place, entry in enumerate(traffic.entries)
        if entry.request.method == left_out.method and path_of(entry.request.url) == left_out.url
    )
    return max(places, default=inf) if left_out.url else inf


def _is_to(entry: Entry, method: str | None, pattern: str, site: Site) -> bool:
    if method is not None and (entry.is_method_cut or entry.request.method.upper() != method):
        return False
    url = entry.request.url
    if _is_query_unknown(entry):
        # Only the path can be compared; `_problems` reports that.
        return matches(path_of(url), pattern.partition("?")[0], site)
    # An address without a query matches every query; `query` compares single parameters.
    return matches(url, pattern, site, extra_query="?" not in pattern)


def _is_query_unknown(entry: Entry) -> bool:
    return entry.is_url_cut or entry.request.url.count("&") >= _MAX_QUERY_FIELDS


def _compared(entry: Entry, check: RequestCheck, recording: TrajectoryEvidence, *, inverted: bool) -> ComparisonResult:
    problems = _problems(entry, check, recording, inverted=inverted)
    # A forbidden request may be among the unrecorded ones, so its absence is not proven.
    counting = (one for one in problems if one.is_certain or not inverted)
    problem = next(counting, None)
    description = _describe(entry, check.compared)
    if problem is None:
        return ComparisonResult(True, description)
    return ComparisonResult(False, f"{problem.text} in {description}", facts=(problem.fact,) if problem.fact else ())


class _RequestMismatch(NamedTuple):
    """How a request differs from the expected one. Not `is_certain`: the part of it was not recorded."""

    text: str
    is_certain: bool = True
    fact: ValueFound | None = None

    @classmethod
    def of(cls, fact: ValueFound) -> "_RequestMismatch":
        return cls(str(fact), fact=fact)


def _query_differences(
    entry: Entry, expected: Mapping[str, Any], recording: TrajectoryEvidence
) -> Iterator[ValueFound]:
    query = urlsplit(entry.request.url).query
    if not recording.site.is_lenient:
        exact = recording.as_compared(parse_qsl(query, keep_blank_values=True))
        return differences("query", expected, lambda name: of_name(exact, name))
    query_pairs = pairs(query)
    if query_pairs is not None:
        # A server may also read them as people do.
        query_pairs |= pairs(urlsplit(address_as_seen(entry.request.url)).query) or frozenset()
        query_pairs |= set(recording.as_compared(tuple(query_pairs)))
    folded = {name: value.casefold() if isinstance(value, str) else value for name, value in expected.items()}
    # More parameters than can be compared may hold any value.
    remaining_pairs = {} if query_pairs is None else folded
    return differences(
        "query", remaining_pairs, lambda name: [value for key, value in query_pairs or () if key == name.casefold()]
    )


def _problems(
    entry: Entry, check: RequestCheck, recording: TrajectoryEvidence, *, inverted: bool
) -> Iterator[_RequestMismatch]:
    as_compared = recording.as_compared
    has_query = check.query is not None or any("?" in url for url in as_tuple(check.url))
    if has_query and _is_query_unknown(entry):
        yield _RequestMismatch("the address is too long to be compared", is_certain=False)
    elif check.query is not None:
        yield from map(_RequestMismatch.of, _query_differences(entry, check.query, recording))
    if check.headers is not None:
        headers = as_compared([(header.name.lower(), header.value) for header in entry.request.headers])
        is_complete = not entry.has_headers_left_out
        for fact in differences("header", check.headers, lambda name: of_name(headers, name.lower())):
            yield _RequestMismatch(
                f"{fact}{'' if is_complete else ', and not all headers were recorded'}", is_complete, fact
            )
    yield from _sent_differences(check, entry, recording)
    if check.files is not None:
        yield from _file_differences(check.files, entry, recording)
    # A site may have acted on a request without answering it, so an inverted check counts unanswered requests.
    if not (inverted and check.status is None and entry.response.status == 0):
        problem = _answer_problem(entry, check.status)
        yield from [_RequestMismatch(problem)] if problem else []
    if check.response is not None:
        yield from _body_differences("response", check.response, entry.response.body, recording)


def _sent_differences(check: RequestCheck, entry: Entry, recording: TrajectoryEvidence) -> Iterator[_RequestMismatch]:
    """How the body differs from the expected one."""
    if isinstance(check.post_data, str):
        problem = _text_problem(check.post_data, entry.request.body, recording)
        yield from [problem] if problem else []
    elif check.post_data is not None:
        yield from _body_differences("post_data", check.post_data, entry.request.body, recording)
        if check.exact and (others := list(islice(_other_keys(check, entry, recording), _MAX_SHOWN + 1))):
            names = ", ".join(clip(plain(name), 60) for name in others[:_MAX_SHOWN])
            yield _RequestMismatch(f"post_data has {names}{' and more' if len(others) > _MAX_SHOWN else ''} as well")


def _answer_problem(entry: Entry, status: int | None) -> str | None:
    """Why the response is not the expected one. If no status is given, any response except an error is accepted."""
    actual = entry.response.status
    # It counts as sent, whatever the task has the page be told.
    if entry.is_held and status is None:
        return None
    if entry.is_download:
        return None if status is None else "a download, whose status is not known"
    if actual == 0:
        return f"no answer ({entry.response.error})" if entry.response.error else "no answer"
    is_expected = actual < _ERROR_STATUS if status is None else actual == status
    return None if is_expected else f"status {actual}"


def _table(values: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {} if values is None or isinstance(values, str) else values


def _text_problem(expected: str, body: Body | None, recording: TrajectoryEvidence) -> _RequestMismatch | None:
    """Why a body is not the expected text, in which `*` matches anything."""
    if body is None or body.text is None or body.encoding is not None:
        return _RequestMismatch("post_data is not a text", is_certain=body is None or not body.is_cut)
    is_same = glob(plain(expected)).fullmatch(plain(str(recording.as_compared(body.text))))
    return None if is_same else _RequestMismatch("post_data is another text")


def _body_differences(
    what: str, expected: Mapping[str, Any], body: Body | None, recording: TrajectoryEvidence
) -> Iterator[_RequestMismatch]:
    if body is None:
        yield _RequestMismatch(f"no {what}")
    elif body.is_cut:
        yield _RequestMismatch(f"{what} was too large to be recorded", is_certain=False)
    elif body.params:
        fields = recording.as_compared([(field.name, field.value) for field in body.params])
        yield from map(_RequestMismatch.of, differences(what, expected, lambda name: of_name(fields, name)))
    elif body.text is not None and body.encoding is None and is_json(body.mime_type, body.text):
        try:
            content = recording.as_compared(parse_json(body.text))
        except ValueError:
            yield _RequestMismatch(f"{what} is not readable as JSON", is_certain=False)
            return
        yield from map(_RequestMismatch.of, json_differences(what, expected, content))
    else:
        yield _RequestMismatch(
            f"{what} is neither JSON nor a form", is_certain=body.text is not None and not body.is_opaque
        )


def _other_keys(check: RequestCheck, entry: Entry, recording: TrajectoryEvidence) -> Iterator[str]:
    """The keys of the body that the check does not name."""
    body, expected = entry.request.body, _table(check.post_data)
    fields = [*dict.fromkeys(field.name for field in body.params)] if body else []
    yield from (name for name in recording.as_compared(fields) if name not in expected)
    if check.files is None:
        yield from (file.name for file in entry.files)
    if body and not fields and body.text is not None and is_json(body.mime_type, body.text):
        with suppress(ValueError):
            yield from keys_beside(expected, recording.as_compared(parse_json(body.text)))


def _file_differences(
    expected_files: Sequence[UploadedFile], entry: Entry, recording: TrajectoryEvidence
) -> Iterator[_RequestMismatch]:
    """The wanted files that were not sent, where each sent file is one of them at most."""
    as_compared = recording.as_compared
    digests = {each.name: each.sha256 for each in recording.recorded_task.files}
    files_by_place: dict[int, int] = {}

    def is_one(each: UploadedFile, file: SentFile) -> bool:
        names = ((each.field, file.name), (each.name, file.file_name))
        is_named = all(
            expected is None or glob(plain(as_compared(expected))).fullmatch(plain(as_compared(actual)))
            for expected, actual in names
        )
        return is_named and (each.file is None or digests.get(each.file) == file.sha256)

    def place(number: int, visited: set[int]) -> bool:
        """Whether there is a file for the wanted one, if others take other files."""
        for at, file in enumerate(entry.files):
            if at not in visited and is_one(expected_files[number], file):
                visited.add(at)
                if at not in files_by_place or place(files_by_place[at], visited):
                    files_by_place[at] = number
                    return True
        return False

    for number, each in enumerate(expected_files):
        if not place(number, set()):
            files_text = "; ".join(_shown_file(one, digests) for one in entry.files[:_MAX_SHOWN])
            text = f"no file with {each}{f'; instead {files_text}' if files_text else ''}"
            yield _RequestMismatch(text, is_certain=not entry.has_files_left_out)


def _shown_file(file: SentFile, digests: Mapping[str, str | None]) -> str:
    known = next((name for name, sha256 in digests.items() if sha256 == file.sha256), None)
    what = f"the task's {known}" if known else f"{file.size} bytes that are none of the task's files"
    return f"field {clip(plain(file.name), 60)}, name {clip(plain(file.file_name), 60)}, {what}"


def _instead(check: RequestCheck, target: str, entries: Sequence[Entry]) -> str:
    """The requests closest to the expected one by method and address, the closest first; writes before reads."""
    path = target.partition("?")[0]
    matcher = SequenceMatcher(b=clip(urlsplit(path).path, _MAX_PATH_CHARS), autojunk=False)

    def nearness(entry: Entry) -> tuple[bool, bool, bool, float]:
        method, url = entry.request.method.upper(), path_of(entry.request.url)
        matcher.set_seq1(clip(urlsplit(url).path, _MAX_PATH_CHARS))
        return check.method in (None, method), url.endswith(path), method not in READING, matcher.ratio()

    # Of equally close ones, the latest first.
    near = sorted(entries[::-1][:_MAX_COMPARED], key=nearness, reverse=True)
    descriptions = "; ".join(list(dict.fromkeys(_describe(entry, check.compared) for entry in near))[:_MAX_SHOWN])
    return f"no such request{f'; instead {descriptions}' if descriptions else ''}"


def _describe(entry: Entry, compared: Collection[str] = ()) -> str:
    """A request in one line. The compared fields of a form come first, and secrets are left out."""
    request = entry.request
    parts = urlsplit(request.url)
    where = clip(parts.path + (f"?{parts.query}" if parts.query else ""), 120)
    body_text = request.body.text or "" if request.body else ""
    if request.body and request.body.params:
        fields = [field for field in request.body.params if REDACTED not in field.value]
        first = sorted(fields, key=lambda field: field.name.lower() not in compared)
        body_text = "&".join(f"{field.name}={field.value}" for field in first)
    body_text = f" {clip(plain(body_text), 250)}" if body_text else ""
    answered = "held" if entry.is_held else "download" if entry.is_download else entry.response.status or "no answer"
    return f"{request.method} {where}{body_text}: {answered}"


def _covers(allowed: Allowed, check: RequestCheck) -> bool:
    """Whether it allows every request that a check names."""
    if allowed.socket or not check.writes or allowed.method not in (None, check.method):
        return False
    if allowed.status not in (None, check.status):
        return False
    path, _, query = allowed.url.partition("?")
    expected_path, _, expected_query = as_tuple(check.url)[-1].partition("?")
    if not glob(path).fullmatch(expected_path) or query not in ("", expected_query):
        return False
    return _is_within(check.query, allowed.query) and _is_within(_table(check.post_data), allowed.post_data)


def _is_within(named: Mapping[str, Any] | None, allowed: Mapping[str, Any] | None) -> bool:
    values = named or {}
    return are_among(allowed or {}, lambda name: [values[name]] if name in values else [])


def contradicts(one: RequestCheck, other: RequestCheck) -> str | None:
    """Why two checks have no meaning together: one allows what the other names."""
    for check, named in ((one, other), (other, one)):
        if any(_covers(each, named) for each in check.allow):
            return "allow of the one allows what the other names: name less in it"
    return None


def warnings(check: RequestCheck) -> Iterator[str]:
    """A request that the participant could cause itself."""
    if check.method is None and not check.inverted:
        yield "any request to the address could pass it: add method"


KIND = CheckKind(
    RequestCheck,
    decide,
    weighs_answers=True,
    warnings=warnings,
    contradicts=contradicts,
    with_key={"socket": socket.KIND},
)

"""Proposes checks from a recorded attempt: facts that its end shows and its start does not.

A proposal uses the same evidence as checks do (`judge.evaluators.evidence`), and is evaluated twice: on the attempt,
where it passes, and on the attempt cut to its first look, as if the participant had done nothing. If a wrong attempt at
the task is given, it is evaluated on that as well, and proposed only if it fails there.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from pydantic import Field, TypeAdapter, ValidationError

from judge.evaluators.checks import evaluate
from judge.evaluators.evidence import Look, MissingEvidence, TrajectoryEvidence
from judge.evaluators.kinds.request import RequestCheck, own_requests
from judge.evaluators.normalise import NormaliseError, only_value
from judge.evaluators.writes import may_write
from judge.plugins.suggestions.allowances import allowance
from judge.plugins.suggestions.content import MAX_TEXT_CHARS, Pages, text_of
from judge.plugins.suggestions.fields import (
    FieldPairs,
    Fields,
    answer_fields,
    fields_of,
    is_chosen,
    is_meant,
    is_of_server,
    message_fields,
    query_of,
)
from judge.plugins.suggestions.relevance import Relevance, is_filler
from judge.records.assertions import Assertion
from judge.records.checks import Check
from judge.records.findings import ValueFound
from judge.records.sites import NONE_SHARED, RunSites
from judge.scenario.sources import toml_value
from judge.trajectory.network import NETWORK_FILE, Entry, as_http
from judge.trajectory.record import Trajectory
from shared.errors import ConfigError
from shared.files import read_json, write_json
from shared.models import Record
from shared.text import clip, one_line, plain

_CHECK: TypeAdapter[Check] = TypeAdapter(Check)
_MAX_REQUESTS = 5
_MAX_FIELDS = 8
_MAX_OF_FORM = 30
_MAX_ACTIONS = 20


class Suggestion(Record):
    """A check as written in a scenario, why it is proposed, and its finding for a participant that does nothing.

    `in_wrong` is its finding for a wrong attempt, if there is one. `varies`: it contains a pattern for varying text.
    `is_optional`: as far as known, the task does not ask for it, as with a step or an answer.
    """

    check: dict[str, Any]
    why: str
    at_start: str
    in_wrong: str = ""
    varies: bool = False
    is_optional: bool = False


class Suggestions(Record):
    """The proposed checks, and how many candidates already pass at the start, or in a wrong attempt as well."""

    checks: tuple[Suggestion, ...]
    held_at_start: int
    held_in_wrong: int = Field(default=0)
    failed_in_other: int = Field(default=0)
    notes: tuple[str, ...] = ()


def suggest(
    trajectory: Trajectory,
    sites: RunSites = NONE_SHARED,
    against: Trajectory | None = None,
    also: Trajectory | None = None,
) -> Suggestions:
    """Checks that pass on this attempt, and fail on its first look and on the attempt `against`.

    `also` is another right attempt, on which they pass as well: what differs between the two is left out, and the
    first check of a write says that there was no other (`only`).

    Raises `ConfigError` if the attempt shows too little.
    """
    attempts = [each for each in (trajectory, against) if each is not None]
    recordings = [TrajectoryEvidence(each, sites) for each in attempts]
    other = None if also is None else TrajectoryEvidence(also, sites)
    for recording in (*recordings, *filter(None, (other,))):
        if not recording.looks:
            problem = f"{recording.trajectory.folder}: no steps were recorded"
            raise ConfigError(problem, remedy="name an attempt that WABE recorded")
    source = _CandidateSource(*recordings, also=other)
    candidates = [(each, check) for each in source.candidates() if (check := _parsed(each)) is not None]
    checks = tuple(check for _, check in candidates)
    with tempfile.TemporaryDirectory(prefix="wabe-") as folder:
        start = at_start(trajectory, Path(folder))
        now, before, *wrong = (_evaluated(each, checks, sites) for each in (trajectory, start, *attempts[1:]))
    again = now if also is None else _evaluated(also, checks, sites)
    proposed, at_begin, in_wrong, in_other = [], 0, 0, 0
    for place, (each, _) in enumerate(candidates):
        if not now[place].passed:
            continue
        if not again[place].passed:
            in_other += not each.is_optional
            continue
        if before[place].passed:
            at_begin += 1
        elif wrong and wrong[0][place].passed is not False:
            in_wrong += 1
        else:
            evidence = {"at_start": before[place].found, "in_wrong": wrong[0][place].found if wrong else ""}
            is_absent = bool(wrong) and _is_absent(wrong[0][place])
            proposed.append(((each.is_optional, is_absent), each.model_copy(update=evidence)))
    if wrong:
        # What the wrong attempt did otherwise tells more than what it did not do at all.
        proposed.sort(key=lambda each: each[0])
    checked = tuple(suggestion for _, suggestion in proposed)
    found = Suggestions(
        checks=checked,
        held_at_start=at_begin,
        held_in_wrong=in_wrong,
        failed_in_other=in_other,
        notes=tuple(source.states()),
    )
    return found if also is None else _closed(found, (trajectory, also), sites)


def _closed(found: Suggestions, right: Sequence[Trajectory], sites: RunSites) -> Suggestions:
    """The proposals with `only` at the first write that they name."""
    parsed = [_parsed(each) for each in found.checks]
    writes = [place for place, check in enumerate(parsed) if isinstance(check, RequestCheck) and check.writes]
    if not writes:
        note = "no write is named, so nothing says that there was no other: a site may keep its state in the browser"
        return found.model_copy(update={"notes": (*found.notes, note)})
    named = tuple(check for check in parsed if check is not None)
    learnt = allowance(named, right, sites)
    first = found.checks[writes[0]]
    check = {**first.check, "only": True} | ({"allow": list(learnt.allow)} if learnt.allow else {})
    closed = first.model_copy(update={"check": check, "why": f"{first.why}; and there was no other (only)"})
    declared, notes = _parsed(closed), (*found.notes, *learnt.notes)
    if declared is None or not all(_evaluated(each, (declared, *named), sites)[0].passed for each in right):
        return found.model_copy(
            update={"notes": (*notes, "only cannot be proposed: both attempts sent something else")}
        )
    checks = tuple(closed if place == writes[0] else each for place, each in enumerate(found.checks))
    return found.model_copy(update={"checks": checks, "notes": notes})


def _is_absent(assertion: Assertion) -> bool:
    """Whether an attempt has nothing in place of what a check expects, as far as is known."""
    return assertion.near_step is None and not any(isinstance(fact, ValueFound) for fact in assertion.facts or ())


def _evaluated(trajectory: Trajectory, checks: tuple[Check, ...], sites: RunSites) -> tuple[Assertion, ...]:
    task = trajectory.task.model_copy(update={"checks": checks})
    return evaluate(trajectory.as_task(task), sites)


def _parsed(suggestion: Suggestion) -> Check | None:
    # Some elements cannot be written in a check, such as one with a name of more than a thousand characters.
    try:
        return _CHECK.validate_python(suggestion.check)
    except ValidationError:
        return None


def at_start(trajectory: Trajectory, folder: Path) -> Trajectory:
    """The attempt as if nothing had been done: its first look, and the requests of the first page.

    `folder` takes the requests, and must exist as long as the result is used.
    """
    first = trajectory.observations[0].model_copy(update={"action": None, "outcome": None, "reply": ""})
    network = None
    if trajectory.network is not None:
        har: Any = read_json(trajectory.network)
        entries = [entry for entry in har["log"]["entries"] if entry.get("_step") == 0]
        network = folder / NETWORK_FILE
        # The requests that were left out were sent later.
        log = {key: value for key, value in har["log"].items() if key not in ("_dropped", "_leftOut")}
        write_json(network, {"log": log | {"entries": entries}})
    attempt = trajectory.attempt.model_copy(update={"steps": (first,), "final_look": None, "final_answer": ""})
    return trajectory.model_copy(update={"attempt": attempt, "network": network})


class _CandidateSource:
    """The source of candidates: an attempt, and optionally a wrong one and another right one."""

    def __init__(
        self,
        recording: TrajectoryEvidence,
        wrong: TrajectoryEvidence | None = None,
        *,
        also: TrajectoryEvidence | None = None,
    ) -> None:
        self._recording, self._wrong, self._also = recording, wrong, also
        self._looks = [look for look in recording.looks if look.is_own]
        # A dialog or an empty page hides the content; the last look that shows some is the result.
        self._content_looks = _with_content(recording)

    @cached_property
    def _lines(self) -> list[str]:
        """The actions that count, in order."""
        actions = self._recording.actions(self._looks)
        return [done.line for done in actions if done.left_out is None and done.line.startswith("<")]

    @cached_property
    def _relevance(self) -> Relevance:
        # All of them, because text typed into an editor is a clue for what the site shows afterwards.
        lines = tuple(done.line for done in self._recording.actions(self._looks))
        return Relevance(self._recording.trajectory.task.task, lines, text_of(self._content_looks[:1]))

    @cached_property
    def _changes(self) -> list[Entry]:
        """Requests that the task's site sent to itself and that may have changed its state."""
        return _changes(self._recording)

    @cached_property
    def _generated(self) -> tuple[str, ...]:
        """Numbers in the last address that this attempt made, such as a new ticket's."""
        if not self._looks or not self._changes:
            return ()
        last = self._looks[-1]
        path = urlsplit(last.step.url).path
        before = [look for look in self._looks if look.step.url != last.step.url]
        linked = {urlsplit(node.url).path for look in before for node in look.evidence().nodes if node.url}
        if path in linked | {urlsplit(look.step.url).path for look in before[:1]} or self._was_opened(path):
            return ()
        return tuple(number for number in re.findall(r"\d+", path) if not self._relevance.names(number))

    def _was_opened(self, path: str) -> bool:
        """Whether the participant opened an address itself."""
        return any(line.startswith("<navigation>") and path in line for line in self._lines)

    def candidates(self) -> Iterator[Suggestion]:
        """Possible checks, the most specific kinds first."""
        yield from self._requests()
        yield from self._messages()
        if self._looks:
            yield self._page(self._looks[0], self._looks[-1])
        if self._content_looks:
            wrong = None if self._wrong is None else _with_content(self._wrong)
            changed_by = max((entry.step or 0 for entry in self._changes), default=0)
            pages = Pages(
                self._content_looks, self._relevance, generated=self._generated, changed_by=changed_by, wrong=wrong
            )
            on = self._left_page()
            for content in pages.proposed():
                yield _suggestion(content.why, content.check | on, varies=content.varies)
        yield from self._answer(self._recording.trajectory.final_answer)
        for line in list(dict.fromkeys(self._lines))[:_MAX_ACTIONS]:
            if not line.startswith("<page>"):
                check = {"kind": "action", "line": line}
                yield _suggestion("a step, if the task prescribes it", check, is_optional=True)

    def states(self) -> Iterator[str]:
        """What may be fetched instead of looking at the last page: answers as JSON, after the last write."""
        last = max((entry.step or 0 for entry in self._changes), default=None)
        by_path: dict[str, dict[str, Any]] = {}
        for entry in _own(self._recording) if last is not None else ():
            is_read = entry.request.method == "GET" and not may_write(entry) and (entry.step or 0) >= (last or 0)
            if is_read and self._recording.site.is_home(entry.request.url):
                pairs = [pair for pair in answer_fields(entry) if str(pair[1]).casefold() in self._relevance.values]
                by_path[urlsplit(entry.request.url).path] = dict(pairs[:_MAX_FIELDS])
        for path, values in by_path.items():
            if values:
                pairs_text = _toml({"kind": "fetch", "url": path, "response": values})
                yield f"the state after the attempt, if no token is needed for it: {pairs_text}"

    def _page(self, first: Look, last: Look) -> Suggestion:
        parts, first_parts = urlsplit(last.step.url), urlsplit(first.step.url)
        why = "the last address"
        further: dict[str, Any] = {}
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        distinctive = self._distinctive(pairs, self._other_queries(parts.path))
        path, varies = self._path(parts)
        address = path + (f"?{parts.query}" if parts.query else "")
        if distinctive and len(distinctive) < len(pairs):
            # A star would match anything.
            address = f"{path}?{urlencode(distinctive, safe='/:,')}".replace("*", "%2A")
            further["extra_query"] = True
            why += f"; not compared: {_fields_in_words([pair for pair in pairs if pair not in distinctive])}"
        if not last.is_home:
            address = f"{parts.scheme}://{parts.netloc}{address}"
        # Other fragments only scroll.
        is_route = parts.fragment.startswith(("/", "!"))
        if parts.fragment != first_parts.fragment and (is_route or parts[:4] == first_parts[:4]):
            address += f"#{parts.fragment}"
        if self._changes:
            # The task asks for what was sent, and a right agent may look at other pages afterwards.
            further["at"] = "any"
        return _suggestion(why, {"kind": "page", "url": address, **further}, varies=varies)

    def _left_page(self) -> dict[str, str]:
        """Where content must have been seen last: after a write, a right agent may look at other pages."""
        last = self._content_looks[-1]
        parts = urlsplit(last.step.url)
        path, _ = self._path(parts)
        is_another = self._changes and parts.path != urlsplit(self._looks[0].step.url).path
        return {"on": path} if is_another and last.is_home else {}

    def _path(self, parts: SplitResult) -> tuple[str, bool]:
        """The path with a star for each piece that differs each time, and whether there is one."""
        spans = self._relevance.varying(parts.path, self._generated)
        pattern, at = "", 0
        for start, end in spans:
            pattern, at = pattern + parts.path[at:start] + "*", end
        return (pattern + parts.path[at:]) or "/", bool(spans)

    def _other_queries(self, path: str) -> list[FieldPairs]:
        """The parameters that earlier looks at the same path had, and the end of the wrong attempt."""
        ends = [look for look in self._wrong.looks if look.is_own][-1:] if self._wrong else []
        other_parts = [urlsplit(look.step.url) for look in (*self._looks[:-1], *ends)]
        queries = dict.fromkeys(each.query for each in other_parts if each.path == path)
        return [parse_qsl(query, keep_blank_values=True) for query in queries]

    def _distinctive(self, pairs: FieldPairs, others: Iterable[FieldPairs]) -> list[tuple[str, Any]]:
        """The fields that the task names or that were typed, and those that had another value (or none) before. If
        several have the same value, those whose name the task uses. Names that occur several times do not count.
        """
        others = list(others)
        counts = Counter(name for name, _ in pairs)
        single = self._without_servers([(name, value) for name, value in pairs if counts[name] == 1])
        distinctive_pairs = [
            pair for pair in single if is_chosen(*pair, self._relevance) or any(pair not in each for each in others)
        ]
        significant = []
        for name, value in distinctive_pairs:
            same = [each for each, other in distinctive_pairs if str(other).casefold() == str(value).casefold()]
            intended = [each for each in same if is_meant(each, self._relevance)]
            if not intended or name in intended:
                significant.append((name, value))
        return significant

    def _without_servers(self, pairs: FieldPairs) -> list[tuple[str, Any]]:
        """The fields without those that only tell the server's states apart."""
        return [(name, value) for name, value in pairs if not is_of_server(name, value, self._relevance)]

    def _requests(self) -> Iterator[Suggestion]:
        # The last one of an address counts, as for checks.
        entries_by_key = {self._key(entry): entry for entry in self._changes}
        wrong = {self._key(entry): entry for entry in _changes(self._wrong)} if self._wrong else {}
        proposals = []
        for key, entry in entries_by_key.items():
            fields = fields_of(entry, self._relevance)
            earlier = [each for each in self._changes if self._key(each) == key and each is not entry]
            in_wrong = fields_of(wrong[key], self._relevance).pairs if key in wrong else None
            others = [fields_of(each, self._relevance).pairs for each in earlier]
            distinctive = self._distinctive(fields.pairs, others if in_wrong is None else [*others, in_wrong])
            if in_wrong is not None:
                # The differences first: only some fields are proposed.
                distinctive = sorted(distinctive, key=lambda pair: pair in in_wrong)
            if self._also is not None and not distinctive:
                # It belongs to what a page sends by itself.
                continue
            proposals.append((not distinctive, self._request(entry, fields, distinctive)))
        # Those with a value of the task come first: pages also send unrelated requests.
        yield from [each for _, each in sorted(proposals, key=lambda each: each[0])][:_MAX_REQUESTS]

    def _messages(self) -> Iterator[Suggestion]:
        """The last message with a value of the task that each web socket of the site's brought."""
        for entry in self._recording.traffic.entries if self._has_traffic else ():
            url = as_http(entry.request.url)
            site = self._recording.site
            if not (entry.messages and site.is_home(url) and entry.sender is not None and site.holds(entry.sender)):
                continue
            received = [each for each in entry.messages if each.type == "receive" and each.step and each.text]
            for message in reversed(received):
                pairs = [pair for pair in message_fields(message.text or "") if is_chosen(*pair, self._relevance)]
                if pairs:
                    path = urlsplit(url).path or "/"
                    check = {"kind": "request", "socket": True, "url": path, "direction": "received"}
                    yield _suggestion("a message of the site", check | {"message": dict(pairs[:_MAX_FIELDS])})
                    break

    @cached_property
    def _has_traffic(self) -> bool:
        try:
            return bool(self._recording.traffic.entries)
        except MissingEvidence:
            return False

    def _key(self, entry: Entry) -> tuple[str, str, FieldPairs]:
        return (
            entry.request.method.upper(),
            urlsplit(entry.request.url).path or "/",
            tuple(query_of(entry, self._relevance)),
        )

    def _request(self, entry: Entry, fields: Fields, distinctive: FieldPairs) -> Suggestion:
        parts = urlsplit(entry.request.url)
        address = parts.path or "/"
        if not self._recording.site.is_home(entry.request.url):
            address = f"{parts.scheme}://{parts.netloc}{address}"
        check: dict[str, Any] = {"kind": "request", "method": entry.request.method.upper(), "url": address}
        if query := query_of(entry, self._relevance):
            check["query"] = dict(query)
            key = self._key(entry)
            if any(other[:2] == key[:2] and other != key for other in map(self._key, self._changes)):
                # The last one to the address is another one.
                check["at"] = "any"
        # Without a sign of what matters, only what the request is about, not the details inside.
        outer = [(name, value) for name, value in fields.pairs if not name.startswith("$")]
        # Empty ones last.
        usual = sorted(self._without_servers(outer), key=lambda pair: pair[1] in ("", []))
        pairs = list(distinctive or usual)[:_MAX_FIELDS]
        if self._also is not None and (every := self._every_field(entry, fields)):
            check |= {"post_data": every, "exact": True}
        elif pairs:
            # In an expected text `*` matches anything.
            check["post_data"] = dict(pairs)
        if entry.response.status:
            check["status"] = entry.response.status
        why = "a request that may change the site"
        if "exact" not in check and (rest := [pair for pair in fields.pairs if pair not in pairs]):
            why += f"; not compared: {_fields_in_words(rest)}"
        if "exact" not in check and fields.varies:
            why += f"; left out, because they vary or are secret: {', '.join(fields.varies[:_MAX_FIELDS])}"
        if fields.unnamed:
            why += f"; left out, because no check can name them: {', '.join(fields.unnamed[:_MAX_FIELDS])}"
        return _suggestion(why, check)

    def _every_field(self, entry: Entry, fields: Fields) -> dict[str, Any]:
        """All fields with the values that both right attempts sent, and `*` for those that differ; empty if unknown."""
        assert self._also is not None
        others = [
            fields_of(each, self._relevance) for each in _changes(self._also) if self._key(each) == self._key(entry)
        ]
        names = [name for name, _ in fields.pairs] + list(fields.varies)
        if not others or fields.unnamed or not names or len(names) > _MAX_OF_FORM:
            return {}
        other = dict(others[-1].pairs)
        if {*other, *others[-1].varies} != set(names):
            return {}
        known = dict(fields.pairs)
        return {name: known[name] if name in known and known[name] == other.get(name) else "*" for name in names}

    def _answer(self, answer: str | None) -> Iterator[Suggestion]:
        text = plain(answer or "")
        if not text or is_filler(text):
            return
        # Participants say something at the end of any task.
        is_optional = not self._relevance.asks
        unasked = "; the task does not seem to ask for one" if is_optional else ""
        try:
            number = only_value(text, "number")
        except NormaliseError:
            number = None
        if number is not None:
            value = int(number) if number == int(number) else float(number)
            check: dict[str, Any] = {"kind": "answer", "type": "number", "expected": value}
            yield _suggestion(f"the only number of the answer{unasked}", check, is_optional=is_optional)
        elif len(text) <= MAX_TEXT_CHARS:
            why = f"the answer; shorten it to what must be in it{unasked}"
            yield _suggestion(why, {"kind": "answer", "contains": text}, is_optional=is_optional)


def _suggestion(why: str, check: Mapping[str, Any], *, varies: bool = False, is_optional: bool = False) -> Suggestion:
    return Suggestion(check=dict(check), why=why, at_start="", varies=varies, is_optional=is_optional)


def _with_content(recording: TrajectoryEvidence) -> list[Look]:
    return [look for look in recording.looks if look.is_own and look.snapshot is not None]


def _own(recording: TrajectoryEvidence) -> list[Entry]:
    try:
        return [entry for _, entry in own_requests(recording)]
    except MissingEvidence:
        return []


def _changes(recording: TrajectoryEvidence) -> list[Entry]:
    return [entry for entry in _own(recording) if may_write(entry) and entry.resource_type != "websocket"]


def _fields_in_words(pairs: Iterable[tuple[str, Any]]) -> str:
    pairs = list(pairs)
    names = [one_line(f"{name}={value}", 40) for name, value in pairs[:_MAX_FIELDS]]
    if len(pairs) > _MAX_FIELDS:
        names.append(f"{len(pairs) - _MAX_FIELDS} more")
    return ", ".join(names)


def suggestions_toml(suggestions: Suggestions) -> str:
    """The proposals as a TOML list for a task, each with a comment; optional ones are commented out."""
    lines = ["checks = ["]
    for each in suggestions.checks:
        notes = [each.why]
        if each.varies:
            notes.append("it may differ in every attempt, so a pattern stands for what varies")
        if each.in_wrong:
            notes.append(f"the wrong attempt fails it: found {clip(plain(each.in_wrong), 150)}")
        else:
            notes.append(f"doing nothing fails it: found {clip(plain(each.at_start), 100)}")
        pairs = ", ".join(f"{key} = {_toml(value)}" for key, value in each.check.items())
        lines += [f"  # {one_line('; '.join(notes), 600)}", f"  {'# ' if each.is_optional else ''}{{ {pairs} }},"]
    lines.append("]")
    if suggestions.held_at_start:
        lines.append(f"# left out: {suggestions.held_at_start} that already hold at the start")
    if suggestions.failed_in_other:
        lines.append(f"# left out: {suggestions.failed_in_other} that the other right attempt does not pass")
    lines += [f"# {one_line(note, 300)}" for note in suggestions.notes]
    if suggestions.held_in_wrong:
        lines.append(f"# left out: {suggestions.held_in_wrong} that the wrong attempt does not fail")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    # A literal string, as a person would write an element or a pattern; it has no escapes.
    if isinstance(value, str) and ('"' in value or "\\" in value) and "'" not in value and value.isprintable():
        return f"'{value}'"
    return toml_value(value)

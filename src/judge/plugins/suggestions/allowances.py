"""Proposes `only` and `allow`: what pages send by themselves, learnt from two right attempts.

What both attempts sent, and no proposed check names, is allowed: by method and path, and by the values that are the
same in both and say what a request is.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.evaluators.kinds import request, socket
from judge.evaluators.kinds.request import RequestCheck
from judge.plugins.suggestions.fields import fields_of, query_of
from judge.plugins.suggestions.relevance import Relevance
from judge.records.checks import Check
from judge.records.sites import RunSites
from judge.trajectory.forms import inner_json
from judge.trajectory.network import Entry, as_http
from judge.trajectory.record import Trajectory
from shared.strict_json import parse_json

# A value that says what a request is, as in `operationName = "boats"`.
_WORD = re.compile(r"[A-Za-z][\w.:/-]{0,39}")
_MAX_WORDS = 12
_ITEM = re.compile(r"\[\d+\]")


class Allowance(NamedTuple):
    """Entries of `allow`, and what only one of the attempts sent, in words."""

    allow: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def allowance(checks: Sequence[Check], attempts: Sequence[Trajectory], sites: RunSites) -> Allowance:
    """What the attempts sent beside what the checks name."""
    played = [
        TrajectoryEvidence(each.as_task(each.task.model_copy(update={"checks": tuple(checks)})), sites)
        for each in attempts
    ]
    try:
        by_attempt = [_groups(each) for each in played]
    except MissingEvidence as missing:
        return Allowance(notes=(str(missing),))
    allowed, notes = [], []
    for key in dict.fromkeys(key for groups in by_attempt for key in groups):
        method, path, status = key
        entries = [groups[key] for groups in by_attempt if key in groups]
        if len(entries) < len(by_attempt):
            what = f"{method} {path} (answered {status})"
            notes.append(f"only one of the attempts sent {what}: look whether the task asks for it")
            continue
        entry: dict[str, Any] = {"method": method, "url": path}
        entry |= {key: value for key, value in _same(entries).items() if value}
        if any(_is_named(check, entry, status) for check in checks):
            entry["status"] = status
        allowed.append(entry)
    allowed += _sockets(played)
    return Allowance(tuple(_distinct(allowed)), tuple(notes))


def _distinct(entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for each in entries:
        if each not in seen:
            seen.append(each)
            yield each


def _is_named(check: Check, entry: Mapping[str, Any], status: int) -> bool:
    """Whether a check names such requests, with another answer."""
    if not isinstance(check, RequestCheck) or check.method != entry["method"] or check.status in (None, status):
        return False
    return entry["url"] in check.addresses and "post_data" not in entry and "query" not in entry


def _groups(recording: TrajectoryEvidence) -> dict[tuple[str, str, int], list[Entry]]:
    groups: defaultdict[tuple[str, str, int], list[Entry]] = defaultdict(list)
    for entry in request.others(recording, ()):
        parts = urlsplit(entry.request.url)
        home = "" if recording.site.is_home(entry.request.url) else f"{parts.scheme}://{parts.netloc}"
        groups[entry.request.method.upper(), home + _path(parts.path), entry.response.status].append(entry)
    return dict(groups)


def _path(path: str) -> str:
    """The path with a star for each piece that differs each time."""
    spans = Relevance("").varying(path)
    for start, end in reversed(spans):
        path = f"{path[:start]}*{path[end:]}"
    return path or "/"


def _same(by_attempt: Sequence[Sequence[Entry]]) -> dict[str, dict[str, Any]]:
    """The parameters and fields that every one of these requests has, with their values, which are few words."""
    relevance = Relevance("")
    queries = [[dict(query_of(each, relevance)) for each in entries] for entries in by_attempt]
    bodies = [[dict(fields_of(each, relevance).pairs) for each in entries] for entries in by_attempt]
    return {"query": _common(queries), "post_data": _common(bodies)}


def _common(by_attempt: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    merged = [[_by_place(each) for each in attempt] for attempt in by_attempt]
    every = [each for attempt in merged for each in attempt]
    names = [name for name in every[0] if all(name in each for each in every)]
    common: dict[str, Any] = {}
    for name in names:
        in_each = [set().union(*(each[name] for each in attempt)) for attempt in merged]
        values = sorted(in_each[0], key=str)
        is_distinctive = all(each == in_each[0] for each in in_each) and len(values) <= _MAX_WORDS
        if is_distinctive and all(isinstance(value, str) and _WORD.fullmatch(value) for value in values):
            common[name] = values[0] if len(values) == 1 else values
    return common


def _by_place(fields: Mapping[str, Any]) -> dict[str, set[Any]]:
    """The values by name, with all items of a list together."""
    values: defaultdict[str, set[Any]] = defaultdict(set)
    for name, value in fields.items():
        values[_ITEM.sub("[*]", name)] |= set(map(str, value)) if isinstance(value, list) else {value}
    return dict(values)


def _sockets(recordings: Sequence[TrajectoryEvidence]) -> Iterator[dict[str, Any]]:
    """The messages of both attempts' sockets, by the word that says what they are if all have one."""
    by_attempt = []
    for recording in recordings:
        others = list(socket.others(recording, ()))
        paths = {
            urlsplit(as_http(entry.request.url)).path: [each for each in entry.messages if each in others]
            for entry in recording.traffic.entries
            if entry.messages
        }
        by_attempt.append({path: messages for path, messages in paths.items() if messages})
    for path in by_attempt[0]:
        if not all(path in each for each in by_attempt):
            continue
        tables = [[_table_of(each.text) for each in attempt[path]] for attempt in by_attempt]
        entry: dict[str, Any] = {"socket": True, "url": path}
        if all(table is not None for attempt in tables for table in attempt) and (
            message := _common([[table or {} for table in attempt] for attempt in tables])
        ):
            entry["message"] = message
        yield entry


def _table_of(text: str | None) -> dict[str, Any] | None:
    _, inner = inner_json(text or "")
    try:
        content = parse_json(inner)
    except ValueError:
        return None
    is_table = isinstance(content, dict)
    return {key: value for key, value in content.items() if isinstance(value, str)} if is_table else None

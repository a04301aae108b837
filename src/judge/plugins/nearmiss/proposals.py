"""The check that would have noticed a near miss, ready to paste: one that right walks pass and the near miss fails."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from judge.evaluators.checks import assertions
from judge.evaluators.evidence import TrajectoryEvidence
from judge.plugins.nearmiss.oracle import Difference, Kind, Oracle, WalkReading, WalkWrite
from judge.records.checks import Check, plain_checks
from judge.records.tasks import Task
from judge.scenario.sources import toml_value
from judge.trajectory.redaction import REDACTED
from shared.snapshot import ANY_LINE as _IS_ELEMENT
from shared.text import plain

_CHECK: TypeAdapter[Check] = TypeAdapter(Check)
_MAX_FIELDS = 12
_MAX_TRIED = 20
_MAX_CHARS = 200
_MAX_STATE_CHARS = 2_000


def proposal(
    task: Task,
    rights: Sequence[TrajectoryEvidence],
    miss: TrajectoryEvidence,
    found: Sequence[Difference],
    oracle: Oracle,
) -> str | None:
    """A check as TOML, `None` if none of those tried tells the walks apart. `rights` are walks that did the task."""
    for table in itertools.islice(_candidates(task, rights, found, oracle), _MAX_TRIED):
        try:
            check = _CHECK.validate_python(table)
        except ValidationError:
            continue
        if _passes(miss, task, check) is False and all(_passes(each, task, check) for each in rights):
            return toml_value(table)
    return None


def relaxed(task: Task, miss: TrajectoryEvidence, rights: Sequence[TrajectoryEvidence]) -> str | None:
    """The first failing check with `at = "any"`, if that is what a walk that did the task needs to pass."""
    decided = zip(task.checks, assertions(miss.with_checks(task.checks)), strict=True)
    failing = [check for check, one in decided if not one.passed]
    for check in failing:
        other = check.model_copy(update={"at": "any"})
        is_last = getattr(check, "at", None) == "end"
        if not is_last or not all(_passes(each, task, other) for each in (miss, *rights)):
            return None
    return "; ".join(toml_value({**_table(check), "at": "any"}) for check in failing) or None


def _table(check: BaseModel) -> dict[str, Any]:
    """A check as it is written, its kind first."""
    table = check.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    return {"kind": table.get("kind"), **table}


def _passes(walk: TrajectoryEvidence, task: Task, check: Check) -> bool | None:
    # A check with `only` counts what the others name as expected.
    return next(assertions(walk.with_checks((*task.checks, check)), len(task.checks))).passed


def _candidates(
    task: Task, rights: Sequence[TrajectoryEvidence], found: Sequence[Difference], oracle: Oracle
) -> Iterator[dict[str, Any]]:
    for each in found:
        match each.signal:
            case "writes":
                yield from _of_writes(task, oracle.written, oracle.every_load)
            case "state":
                yield from _of_state(task, rights)
            case "page":
                yield from _of_page(each, oracle.right)
            case "answer":
                yield {"kind": "answer", "contains": str(each.lacking[0])}


def _of_writes(task: Task, writes: Sequence[WalkWrite], loads: Iterable[Kind]) -> Iterator[dict[str, Any]]:
    """That the right walk's requests are sent, and no others: strictest first."""
    if not writes:
        return
    for check in plain_checks(task.checks):
        table = _table(check)
        if table["kind"] == "request" and getattr(check, "writes", False):
            allow = [*_allowed([each for each in writes if each.kind[0] != table.get("method")]), *_loading(loads)]
            yield {**table, "only": True, **({"allow": allow} if allow else {})}
    last = writes[-1]
    (method, path, _), fields = last.kind, dict(_comparable(last))
    sent = {"post_data": fields, "exact": True} if fields else {}
    sending: dict[str, Any] = {"kind": "request", "method": method, "url": path, **sent}
    allow = _allowed(writes[:-1])
    for some in (allow, [{key: each[key] for key in ("method", "url")} for each in allow]):
        others = [*some, *_loading(loads)]
        strict = {**sending, "only": True, **({"allow": others} if others else {})}
        yield from (strict, {**strict, "times": 1})
    same = sum(each.kind == last.kind and each.fields == last.fields for each in writes)
    yield {**sending, "at": "any", "times": same}


def _allowed(writes: Sequence[WalkWrite]) -> list[dict[str, Any]]:
    allowed: list[dict[str, Any]] = []
    for each in writes:
        fields = dict(_comparable(each))
        entry = {"method": each.kind[0], "url": each.kind[1], **({"post_data": fields} if fields else {})}
        if entry not in allowed:
            allowed.append(entry)
    return allowed


def _loading(loads: Iterable[Kind]) -> list[dict[str, Any]]:
    """What pages send when they are opened: each address with all that it is asked for there."""
    by_address = defaultdict[tuple[str, str], dict[str, list[str]]](dict)
    for method, path, operations in sorted(loads):
        fields = by_address[method, path]
        for name, value in operations:
            if name[0] != "?" and value not in fields.setdefault(name, []):
                fields[name].append(value)
    return [
        {"method": method, "url": path, **({"post_data": fields} if fields else {})}
        for (method, path), fields in by_address.items()
    ]


def _comparable(write: WalkWrite) -> list[tuple[str, str]]:
    """The fields that a check can name, without those that vary or are secret."""
    counts = Counter(name for name, _ in write.fields)
    pairs = [
        (name if name[0] == "$" or not {".", "["} & set(name) else f"$.{name}", value)
        for name, value in write.fields
        if name and name[0] != "?" and counts[name] == 1 and len(value) <= _MAX_CHARS
        if REDACTED not in value and "*" not in value
    ]
    return pairs[:_MAX_FIELDS]


def _of_state(task: Task, rights: Sequence[TrajectoryEvidence]) -> Iterator[dict[str, Any]]:
    """That the state is the right walks'."""
    assert task.state is not None
    answers = (each for walk in rights for each in walk.trajectory.attempt.fetched if each.url == task.state.url)
    bodies = {plain(each.body or "") for each in answers}
    if len(bodies) == 1 and len(body := bodies.pop()) <= _MAX_STATE_CHARS:
        bearer = {"bearer": task.state.bearer} if task.state.bearer else {}
        yield {"kind": "fetch", "url": task.state.url, "response": body, **bearer}


def _of_page(found: Difference, right: WalkReading) -> Iterator[dict[str, Any]]:
    """What the right walk's last page shows and this one does not, then how often, then what it must not show."""
    for line in map(str, found.lacking):
        yield from _shown(line)
    lines = right.page or ()
    for line in map(str, found.extra):
        role = line.partition(" ")[0].rstrip(":")
        for element, count in ((line, lines.count(line)), (role, sum(each.split(" ")[0] == role for each in lines))):
            for within in ({"within": "main"}, {}):
                if count and _IS_ELEMENT.match(f"- {element}"):
                    yield {"kind": "element", **within, "element": element, "count": count}
        yield from ({**each, "not": True} for each in _shown(line))


def _shown(line: str) -> Iterator[dict[str, Any]]:
    role, _, text = line.partition(": ")
    if role in ("text", "generic", "paragraph") and text:
        yield {"kind": "text", "contains": text}
    elif len(line) <= _MAX_CHARS:
        yield {"kind": "element", "element": line}

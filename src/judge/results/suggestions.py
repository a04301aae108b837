"""Proposes checks from a recorded attempt: what only its end shows, and its start does not.

A proposal uses the same evidence as checks do (`judge.evaluators.evidence`), and is evaluated twice: on the attempt,
where it passes, and on the attempt cut to its first look, which is what a participant that does nothing leaves.
"""

import itertools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from judge.evaluators.base import Assertion
from judge.evaluators.checks import evaluate
from judge.evaluators.evidence import Look, MissingEvidence, Recording
from judge.evaluators.requests import own_requests
from judge.records.checks import Check
from judge.records.normalise import parse_number
from judge.scenario.sources import toml_value
from judge.trajectory.forms import is_json
from judge.trajectory.network import NETWORK_FILE, Entry
from judge.trajectory.record import Trajectory
from judge.trajectory.redaction import REDACTED
from shared.errors import ConfigError
from shared.files import read_json, write_json
from shared.models import Record
from shared.snapshot import FIELDS, Node, Snapshot
from shared.strict_json import parse_json
from shared.text import clip, one_line, plain

_Shown = tuple[str, str, str]
_CHECK: TypeAdapter[Check] = TypeAdapter(Check)
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Roles that may tell a task's result; others are layout.
_WITH_STATES = FIELDS | {"checkbox", "radio", "switch", "option", "tab", "menuitemcheckbox", "menuitemradio"}
_SAYING = frozenset({"status", "alert"})
_NAMED = frozenset({"heading", "dialog", "alertdialog", "button", "link", "row", "listitem", "cell", "treeitem"})
_GROUPS = frozenset({"group", "radiogroup", "dialog", "form", "tablist", "listbox", "banner"})
_STATES = ("checked", "selected", "pressed", "expanded", "invalid")
_TICKED = frozenset({"checkbox", "switch", "menuitemcheckbox"})
_ONE_OF_SEVERAL = frozenset({"radio", "option", "tab", "menuitemradio"})
_LONG = frozenset({"button", "link", "row", "listitem", "cell"})
_MAX_LONG_CHARS = 80
_GOING = frozenset({"dialog", "alertdialog", "alert"})
# What an element is to the task, from what tells most to what tells nothing.
_CHANGED, _SAID, _OF_THE_TASK, _ON, _TITLE, _NO_RANK = range(6)
# Shorter words are in most tasks, and say nothing of an element.
_MIN_WORD_CHARS = 4
_MAX_ELEMENTS = 8
_MAX_OF_ROLE = 3
_MAX_GONE = 2
_MAX_REQUESTS = 5
_MAX_FIELDS = 8
_MAX_TEXT_CHARS = 120
_MAX_ACTIONS = 20
# A time, a date, an identifier or a long number differs from attempt to attempt.
_VARYING = re.compile(
    r"\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}|\d{5,}|[0-9a-f]{8}-[0-9a-f]{4}|\b[0-9a-f]{16,}\b", re.IGNORECASE
)


class Suggestion(Record):
    """A check as a scenario writes it, why it is proposed, and what a participant that does nothing gets.

    `is_optional`: it states a step rather than a result, so it only belongs into a task that prescribes the step.
    """

    check: dict[str, Any]
    why: str
    at_start: str
    varies: bool = False
    is_optional: bool = False


class Suggestions(Record):
    """The proposed checks, and how many candidates were left out because they hold at the start already."""

    checks: tuple[Suggestion, ...]
    held_at_start: int


def suggest(trajectory: Trajectory, allowed_sites: Sequence[str] = ()) -> Suggestions:
    """Checks that pass on this attempt and fail on its first look. Raises `ConfigError` if it shows too little."""
    recording = Recording(trajectory, tuple(allowed_sites))
    if not recording.looks:
        raise ConfigError(f"{trajectory.folder}: no steps were recorded", remedy="name an attempt that WABE recorded")
    candidates = list(_candidates(recording))
    passing, held = [], 0
    with tempfile.TemporaryDirectory(prefix="wabe-") as folder:
        start = at_start(trajectory, Path(folder))
        parsed = [(each, check) for each in candidates if (check := _parsed(each)) is not None]
        checks = tuple(check for _, check in parsed)
        for (each, _), now, before in zip(
            parsed, _evaluated(trajectory, checks, allowed_sites), _evaluated(start, checks, allowed_sites), strict=True
        ):
            if not now.passed:
                continue
            if before.passed:
                held += 1
                continue
            passing.append(each.model_copy(update={"at_start": before.found}))
    return Suggestions(checks=tuple(passing), held_at_start=held)


def _evaluated(trajectory: Trajectory, checks: tuple[Check, ...], allowed: Sequence[str]) -> tuple[Assertion, ...]:
    task = trajectory.task.model_copy(update={"checks": checks})
    return evaluate(trajectory.model_copy(update={"task": task}), allowed)


def _parsed(suggestion: Suggestion) -> Check | None:
    # A page may show what cannot be written as an element, such as a name of more than a thousand characters.
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
        # What was left out was sent later.
        log = {key: value for key, value in har["log"].items() if key not in ("_dropped", "_leftOut")}
        write_json(network, {"log": log | {"entries": entries}})
    return trajectory.model_copy(
        update={"steps": (first,), "final_look": None, "final_answer": "", "network": network, "action_history": ()}
    )


def _candidates(recording: Recording) -> Iterator[Suggestion]:
    looks = [look for look in recording.looks if look.is_own]
    if looks:
        yield from _page(looks)
        # A dialog or an empty page hides the content; the last look that shows some is the result.
        shown = [look for look in looks if look.snapshot is not None]
        if shown:
            yield from _elements(shown, recording.trajectory.task.task)
    yield from _requests(recording)
    yield from _answer(recording.trajectory.final_answer)
    yield from _actions(recording, looks)


def _suggestion(why: str, check: Mapping[str, Any], *, text: str = "", is_optional: bool = False) -> Suggestion:
    varies = bool(_VARYING.search(text))
    return Suggestion(check=dict(check), why=why, at_start="", varies=varies, is_optional=is_optional)


def _page(looks: Sequence[Look]) -> Iterator[Suggestion]:
    first, last = looks[0], looks[-1]
    parts = urlsplit(last.step.url)
    address = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not last.is_home:
        address = f"{parts.scheme}://{parts.netloc}{address}"
    if parts.fragment and urlsplit(first.step.url).fragment != parts.fragment:
        address += f"#{parts.fragment}"
    yield _suggestion("the last address", {"kind": "page", "url": address}, text=address)


class _Fact(NamedTuple):
    """What a page shows of one element: as a check writes it, its text if that is what it says, its group."""

    node: Node
    written: str
    said: str
    group: str

    @property
    def is_on(self) -> bool:
        """Whether it is checked, selected or pressed."""
        return any(self.node.states.get(state) == "true" for state in ("checked", "selected", "pressed"))

    @property
    def shown(self) -> _Shown:
        """What a check would compare."""
        return self.written, self.said, self.group

    @property
    def identity(self) -> _Shown:
        """What identifies the element in other looks: no states, no value, no numbers (`Cart (2)`)."""
        named = self.written.partition(" [")[0].partition(": ")[0]
        return self.node.role, re.sub(r"\d+", "#", named), self.group


def _elements(looks: Sequence[Look], task: str) -> Iterator[Suggestion]:
    """What the last look shows and the first does not, most telling first; and what has gone."""
    facts = [list(_facts(look.evidence())) for look in looks]
    known = {fact.shown for fact in facts[0]}
    earlier: dict[_Shown, set[_Shown]] = {}
    for fact in itertools.chain.from_iterable(facts[:-1]):
        earlier.setdefault(fact.identity, set()).add(fact.shown)
    ranked: list[tuple[int, _Fact]] = []
    for fact in {fact.shown: fact for fact in facts[-1]}.values():
        if fact.shown not in known:
            has_changed = any(other != fact.shown for other in earlier.get(fact.identity, ()))
            ranked.append((_rank(fact, has_changed=has_changed, task=task), fact))
    taken: Counter[str] = Counter()
    for rank, fact in sorted(ranked, key=lambda each: each[0]):
        if rank < _NO_RANK and taken[fact.node.role] < _MAX_OF_ROLE and taken.total() < _MAX_ELEMENTS:
            taken[fact.node.role] += 1
            yield _shown(fact, rank)
    still = {fact.identity for fact in facts[-1]}
    gone = [fact for fact in facts[0] if fact.node.role in _GOING and fact.identity not in still]
    for fact in gone[:_MAX_GONE]:
        check = {"kind": "element", "element": fact.written, "not": True}
        yield _suggestion("shown at the start, and gone", check, text=fact.written)


def _rank(fact: _Fact, *, has_changed: bool, task: str) -> int:
    """How much an element that the start does not show tells of the task; the least number tells most."""
    role, written = fact.node.role, fact.written
    if role in _WITH_STATES:
        # Of several that exclude each other, the one that is on says all.
        if has_changed and (fact.is_on or role not in _ONE_OF_SEVERAL):
            return _CHANGED
        return _ON if fact.is_on or (role in FIELDS and ": " in written) else _NO_RANK
    if role in _LONG and len(written) > _MAX_LONG_CHARS:
        return _NO_RANK
    if has_changed and any(character.isdigit() for character in written):
        # As in `Cart (2)`.
        return _CHANGED
    if role in _SAYING:
        return _SAID
    if _words(written) & _words(task):
        return _OF_THE_TASK
    return _TITLE if role in ("dialog", "alertdialog") or fact.node.states.get("level") == "1" else _NO_RANK


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) >= _MIN_WORD_CHARS}


def _facts(page: Snapshot) -> Iterator[_Fact]:
    for node in page.nodes:
        if node.role in _WITH_STATES | _SAYING | _NAMED:
            said = plain(page.text_of(node)) if node.role in _SAYING else ""
            written = _written(page, node)
            if said or written != node.role:
                yield _Fact(node, written, said, _group_of(page, node))


def _written(page: Snapshot, node: Node) -> str:
    """The element as a check writes it: role, name, states that matter, the value of a field."""
    name, value = plain(page.name_of(node)), plain(_value(page, node))
    parts = [node.role, *([_quoted(name)] if name and len(name) <= _MAX_TEXT_CHARS else [])]
    for state in _STATES:
        if (found := node.states.get(state)) is not None:
            parts.append(f"[{state}]" if found == "true" else f"[{state}={found}]")
    return " ".join(parts) + (f": {value}" if value and len(value) <= _MAX_TEXT_CHARS else "")


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _value(page: Snapshot, node: Node) -> str:
    chosen = [inner for inner in page.subtree(node) if inner.role == "option" and "selected" in inner.states]
    if node.role == "combobox" and chosen:
        return page.name_of(chosen[0])
    return page.value_of(node) if node.role in FIELDS else ""


def _group_of(page: Snapshot, node: Node) -> str:
    """The group around an element, because other groups may have one of the same name; empty if there is none."""
    for parent in page.parents(node):
        if parent.role in _GROUPS and (parent.name or parent.role == "banner"):
            return f"{parent.role} {_quoted(plain(parent.name))}" if parent.name else parent.role
    return ""


def _shown(fact: _Fact, rank: int) -> Suggestion:
    role = fact.node.role
    if role in _SAYING:
        within = f"{role} {_quoted(plain(fact.node.name))}" if fact.node.name else role
        check = {"kind": "text", "within": within, "contains": fact.said[:_MAX_TEXT_CHARS]}
        return _suggestion(f"a {role} that the start does not show", check, text=fact.said)
    why = {_CHANGED: "changed during the attempt", _OF_THE_TASK: "named in the task, and not shown at the start"}
    # Without a state, an element matches in every state.
    element = f"{fact.written} [checked=false]" if role in _TICKED and not fact.is_on else fact.written
    check = {"kind": "element", **({"within": fact.group} if fact.group else {}), "element": element}
    return _suggestion(why.get(rank, "shown at the end, not at the start"), check, text=fact.written)


def _requests(recording: Recording) -> Iterator[Suggestion]:
    """Requests that the task's own site sent to itself and that may have changed its state."""
    try:
        entries = [entry for _, entry in own_requests(recording)]
    except MissingEvidence:
        return
    found: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        # The last one of an address counts, as for checks.
        if entry.request.method.upper() not in _READING and entry.step:
            found[entry.request.method.upper(), urlsplit(entry.request.url).path or "/"] = entry
    for (method, path), entry in list(found.items())[:_MAX_REQUESTS]:
        address = path
        if not recording.site.is_home(entry.request.url):
            parts = urlsplit(entry.request.url)
            address = f"{parts.scheme}://{parts.netloc}{path}"
        check: dict[str, Any] = {"kind": "request", "method": method, "url": address}
        fields, varying = _fields(entry)
        if fields:
            check["post_data"] = fields
        if entry.response.status:
            check["status"] = entry.response.status
        left_out = f"; left out, because they vary or are secret: {', '.join(varying)}" if varying else ""
        yield _suggestion(f"a request that may change the site{left_out}", check)


def _fields(entry: Entry) -> tuple[dict[str, Any], list[str]]:
    """The fields of a body that say what was meant, and the names of those that differ each time."""
    body = entry.request.body
    if body is None or body.is_cut:
        return {}, []
    if body.params:
        counts = Counter(pair.name for pair in body.params)
        values: Mapping[str, Any] = {pair.name: pair.value for pair in body.params if counts[pair.name] == 1}
    elif body.text and body.encoding is None and is_json(body.mime_type, body.text):
        try:
            parsed = parse_json(body.text)
        except ValueError:
            return {}, []
        values = parsed if isinstance(parsed, Mapping) else {}
    else:
        return {}, []
    kept: dict[str, Any] = {}
    varying: list[str] = []
    for name, value in values.items():
        if isinstance(value, Mapping | list) or value is None or value == "" or len(kept) >= _MAX_FIELDS:
            continue
        text = str(value)
        if REDACTED in text or _VARYING.search(text) or len(text) > _MAX_TEXT_CHARS:
            varying.append(one_line(str(name), 40))
        elif re.fullmatch(r"[\w-]+", str(name)):
            # In an expected text `*` matches anything.
            kept[str(name)] = value
    return kept, varying


def _answer(answer: str | None) -> Iterator[Suggestion]:
    text = plain(answer or "")
    if not text:
        return
    numbers = [word for word in re.findall(r"-?\d[\d.,]*", text) if parse_number(word.rstrip(".,")) is not None]
    if len(numbers) == 1:
        number = parse_number(numbers[0].rstrip(".,"))
        assert number is not None
        value = int(number) if number == int(number) else float(number)
        check = {"kind": "answer", "type": "number", "expected": value}
        yield _suggestion("the only number of the answer", check)
    elif len(text) <= _MAX_TEXT_CHARS:
        yield _suggestion("the answer; shorten it to what must be in it", {"kind": "answer", "contains": text})


def _actions(recording: Recording, looks: Iterable[Look]) -> Iterator[Suggestion]:
    """Steps, for a task that prescribes them."""
    lines = [done.line for done in recording.actions(looks) if done.left_out is None and done.line.startswith("<")]
    for line in list(dict.fromkeys(lines))[:_MAX_ACTIONS]:
        if not line.startswith("<page>"):
            yield _suggestion("a step, if the task prescribes it", {"kind": "action", "line": line}, is_optional=True)


def suggestions_toml(found: Suggestions) -> str:
    """The proposals as a TOML list for a task, each with a comment; optional ones are commented out."""
    lines = ["checks = ["]
    for each in found.checks:
        notes = [each.why, f"doing nothing fails it: found {clip(plain(each.at_start), 100)}"]
        notes += ["may differ in every attempt: write a pattern or remove it"] if each.varies else []
        pairs = ", ".join(f"{key} = {_toml(value)}" for key, value in each.check.items())
        lines += [f"  # {one_line('; '.join(notes), 400)}", f"  {'# ' if each.is_optional else ''}{{ {pairs} }},"]
    lines.append("]")
    if found.held_at_start:
        lines.append(f"# left out: {found.held_at_start} that already hold at the start")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    # A literal string, as a person would write an element; it has no escapes.
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return toml_value(value)

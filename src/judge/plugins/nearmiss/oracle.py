"""Whether a walk came out otherwise than the right walk of its task, without looking at the task's checks.

Compared are what was written, without repetitions that the site answered alike; the main region of the last page; the
answer where one is asked for; and the state that the judge read, where the owner declares its address. What differs
between two right walks is left out.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from judge.evaluators.evidence import TrajectoryEvidence
from judge.evaluators.kinds.request import others
from judge.evaluators.writes import SAFE
from judge.plugins.nearmiss.walks import BACK, NAVIGATE
from judge.records.tasks import StateAddress
from judge.trajectory.network import Entry
from judge.trajectory.record import Trajectory
from shared.snapshot import Snapshot
from shared.strict_json import parse_json
from shared.text import clip, plain

Signal = Literal["state", "writes", "page", "answer"]
# Identifiers, long numbers and times, which differ each time.
_TOKENS = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b(?=[a-z]*[0-9])[0-9a-f]{12,}\b|\d{8,}|\b\d{1,2}:\d{2}(?::\d{2})?\b"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{20,}\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
# The names of fields that say what a request is about.
_OPERATIONS = frozenset({"operationName", "operation", "op", "action", "method", "cmd", "command", "mutation"})
_STATES = ("checked", "selected", "pressed", "disabled", "invalid")
_FIELDS = frozenset({"combobox", "option", "checkbox", "radio", "switch"})
_LAYOUT = frozenset({"navigation", "banner", "contentinfo", "dialog"})

# Method, path, and the fields that say what it is about.
Kind = tuple[str, str, tuple[tuple[str, str], ...]]


class WalkWrite(NamedTuple):
    """A request that may have changed the site: what kind it is, its fields, and how it was answered.

    `says_state`: the answer is data, and not only that it was done.
    """

    kind: Kind
    fields: tuple[tuple[str, str], ...]
    answer: str
    step: int
    says_state: bool = False

    def __str__(self) -> str:
        method, path, _ = self.kind
        return f"{method} {path} {' '.join(f'{name}={value}' for name, value in self.fields)}".strip()


class WalkReading(NamedTuple):
    """What a walk came to. `loads` are kinds of requests that pages send when they are opened."""

    writes: tuple[WalkWrite, ...]
    loads: frozenset[Kind]
    page: tuple[str, ...] | None
    answer: str
    state: tuple[str, ...] | None = None


class Difference(NamedTuple):
    """In what a walk differs from the right one. `extra` is what it has besides, `lacking` what it has not."""

    signal: Signal
    extra: tuple[Any, ...] = ()
    lacking: tuple[Any, ...] = ()

    @property
    def only_adds(self) -> bool:
        """Whether the page shows all that it should, but for the states of fields."""
        return self.signal == "page" and all(str(line).split(" ")[0] in _FIELDS for line in self.lacking)

    def __str__(self) -> str:
        words = {"writes": "sends", "page": "shows", "answer": "answers", "state": "leaves"}[self.signal]
        parts = [f"{words} {clip(str(each), 160)}" for each in self.extra[:2]]
        parts += [f"lacks {clip(str(each), 160)}" for each in self.lacking[:2]]
        more = len(self.extra[2:]) + len(self.lacking[2:])
        return "; ".join(parts) + (f"; and {more} more" if more else "")


def reading(evidence: TrajectoryEvidence, state: StateAddress | None = None) -> WalkReading:
    """What a recorded walk came to, with the `state` at that address. Raises `MissingEvidence`."""
    recording, trajectory = evidence.with_checks(()), evidence.trajectory
    writes = tuple(each for entry in others(recording, ()) for each in _writes_in(entry))
    opened = {0} | {step.index + 1 for step in trajectory.steps if step.action and step.action.tool in (NAVIGATE, BACK)}
    loads = frozenset(
        any_of(each.kind)
        for entry in recording.traffic.entries
        if entry.step in opened and entry.request.method.upper() not in SAFE and recording.site.holds(entry.request.url)
        for each in _writes_in(entry)
    )
    last = recording.looks[-1].snapshot if recording.looks else None
    page = None if last is None else tuple(_lines(last))
    return WalkReading(
        writes,
        loads,
        page,
        plain(trajectory.final_answer or "").casefold(),
        _state_in(trajectory, state) if state else None,
    )


@dataclass(frozen=True)
class Oracle:
    """What two right walks of a task came to; `loads` are those of all walks on its site."""

    right: WalkReading
    again: WalkReading
    loads: frozenset[Kind] = frozenset()

    @property
    def every_load(self) -> frozenset[Kind]:
        """The kinds of requests that pages send when they are opened, in any walk on the site."""
        return self.loads | self.right.loads | self.again.loads

    @property
    def written(self) -> tuple[WalkWrite, ...]:
        """What the right walk wrote, without what is different each time."""
        own = (each for each in self.right.writes if any_of(each.kind) not in self.every_load)
        return tuple(
            each._replace(kind=kind, fields=tuple(pair for pair in fields if pair[1] != "*"))
            for each in own
            for kind, fields in (self._key(each),)
        )

    def differences(self, walk: WalkReading, *, with_page: bool = True, asks: bool = False) -> list[Difference]:
        """In what a walk differs from both right walks, the best evidence first."""
        found: list[Difference] = []
        if self.right.state is not None and walk.state is not None:
            found += self._in_state(walk.state)
        else:
            found += self._in_writes(walk)
        if with_page and walk.page is not None and self.right.page is not None:
            found += self._in_page(walk.page)
        if asks and walk.answer not in (self.right.answer, self.again.answer):
            found.append(Difference("answer", (walk.answer,), (self.right.answer,)))
        return found

    def ends_alike(self, walk: WalkReading) -> bool:
        """Whether a walk only wrote more of the same kinds, and its last write was answered as the right one's.

        Then a later request may have replaced what an earlier one had put there: nobody knows.
        """
        own = [each for each in walk.writes if any_of(each.kind) not in self.every_load | walk.loads]
        right = self.written
        is_like = own and right and {each.kind for each in own} <= {each.kind for each in right}
        return bool(is_like) and own[-1].answer == right[-1].answer and own[-1].says_state

    def _in_state(self, state: tuple[str, ...]) -> Iterator[Difference]:
        right, again = Counter(self.right.state), Counter(self.again.state)
        varying = {line.partition("=")[0] for line in (right - again) + (again - right)}
        own, other = (
            Counter(line for line in lines or () if line.partition("=")[0] not in varying)
            for lines in (state, self.right.state)
        )
        if own != other:
            yield Difference("state", tuple((own - other).elements()), tuple((other - own).elements()))

    def _in_writes(self, walk: WalkReading) -> Iterator[Difference]:
        own, *rights = (self._counts(each, walk.loads) for each in (walk, self.right, self.again))
        if own in rights:
            return
        examples = {self._key(each): each for each in (*self.right.writes, *walk.writes)}
        extra, lacking = own - rights[0], rights[0] - own
        yield Difference(
            "writes",
            tuple(examples[key] for key in extra.elements()),
            tuple(examples[key] for key in lacking.elements()),
        )

    def _counts(self, walk: WalkReading, loads: frozenset[Kind]) -> Counter[tuple[Any, ...]]:
        """How often each request was sent, without repetitions that were answered alike."""
        loads |= self.every_load
        own = (each for each in walk.writes if any_of(each.kind) not in loads)
        # Two addresses are two things, also where each has an identifier that is new each time.
        return Counter(key for key, _, _ in {(self._key(each), each.kind, each.answer) for each in own})

    def _key(self, write: WalkWrite) -> tuple[Any, ...]:
        kind = any_of(write.kind) if any_of(write.kind) in self._varying else write.kind
        noise = self._noise
        fields = ((name, "*" if (any_of(write.kind), name) in noise else value) for name, value in write.fields)
        return kind, tuple(fields)

    @cached_property
    def _varying(self) -> frozenset[Kind]:
        """The kinds of requests to addresses that have another identifier in each of the right walks."""
        one, other = ({write.kind for write in each.writes} for each in (self.right, self.again))
        return frozenset(map(any_of, one ^ other))

    @cached_property
    def _noise(self) -> frozenset[tuple[Kind, str]]:
        """The fields of requests that differ between the two right walks."""
        right, again = (
            Counter((any_of(write.kind), name, value) for write in each.writes for name, value in write.fields)
            for each in (self.right, self.again)
        )
        return frozenset((kind, name) for kind, name, _ in (right - again) + (again - right))

    def _in_page(self, page: tuple[str, ...]) -> Iterator[Difference]:
        right, again = self.right.page or (), self.again.page or ()
        codes = SequenceMatcher(None, right, again, autojunk=False).get_opcodes()
        noise = {
            _DIGITS.sub("#", line)
            for code, *spans in codes
            if code != "equal"
            for line in (*right[spans[0] : spans[1]], *again[spans[2] : spans[3]])
        }
        own, other = ([line for line in lines if _DIGITS.sub("#", line) not in noise] for lines in (page, right))
        if own != other:
            extra = tuple((Counter(own) - Counter(other)).elements())
            lacking = tuple((Counter(other) - Counter(own)).elements())
            yield Difference("page", extra or (() if lacking else ("another order",)), lacking)


def _writes_in(entry: Entry) -> Iterator[WalkWrite]:
    """The requests in an entry: of a batch, each one."""
    parts = urlsplit(entry.request.url)
    body, answer = entry.request.body, entry.response.body.text or ""
    query = [(f"?{name}", value) for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    content: Any = _json(body.text) if body and body.text and not body.params else None
    is_batch = isinstance(content, list) and content and all(isinstance(each, Mapping) for each in content)
    answers: Any = _json(answer) if is_batch else None
    items: list[Any] = content if is_batch else [content]
    for place, item in enumerate(items):
        own = answers[place] if isinstance(answers, list) and len(answers) == len(items) else answer
        # A check names what is in any of them.
        fields = [*query, *((f"$[*].{name}" if is_batch else name, value) for name, value in _leaves("", item))]
        if body is not None and item is None:
            fields += [(each.name, each.value) for each in body.params] or ([("", body.text)] if body.text else [])
        operations = tuple(
            (name, value) for name, value in fields if name.rpartition(".")[2].lstrip("?") in _OPERATIONS
        )
        kind = (entry.request.method.upper(), parts.path or "/", operations)
        heads = [each.value for each in entry.response.headers if each.name.lower() in ("location", "set-cookie")]
        words = _masked(f"{entry.response.status} {heads} {own}")
        yield WalkWrite(
            kind,
            tuple(sorted(fields)),
            words,
            entry.step or 0,
            isinstance(own, Mapping | list) or own[:1] in ("{", "["),
        )


def _json(text: str) -> Any:
    with suppress(ValueError):
        return parse_json(text)
    return None


def any_of(kind: Kind) -> Kind:
    """The kind with whatever identifiers its address has."""
    method, path, operations = kind
    return method, _masked(path), operations


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case Mapping():
            for name, inner in value.items():
                yield from _leaves(f"{path}.{name}" if path else str(name), inner)
        case list():
            for inner in value:
                yield from _leaves(f"{path}[]", inner)
        case None:
            return
        case _:
            yield path, str(value)


def _masked(text: str) -> str:
    return _TOKENS.sub("*", text)


def _state_in(trajectory: Trajectory, state: StateAddress) -> tuple[str, ...] | None:
    """The state that was read, line by line; `None` if it could not be read."""
    asked = (state.url, state.bearer)
    body = next((each.body for each in trajectory.attempt.fetched if (each.url, each.bearer) == asked), None)
    if body is None:
        return None
    if (content := _json(body)) is not None:
        return tuple(f"{path}={_masked(value)}" for path, value in _leaves("", content))
    return tuple(_masked(plain(line)) for line in body.splitlines() if line.strip())


def _lines(page: Snapshot) -> Iterator[str]:
    """The main region of a page, or all of it without what surrounds it, as a check writes its elements."""
    mains = page.find("main")
    left_out = -1
    for node in page.subtree(mains[0]) if mains else page.nodes:
        if node.depth > left_out >= 0:
            continue
        left_out = node.depth if not mains and node.role in _LAYOUT else -1
        if left_out >= 0:
            continue
        states = [f"[{name}]" for name in _STATES if node.states.get(name, "false") != "false"]
        if node.name or node.text or states:
            parts = [node.role, *([json.dumps(node.name, ensure_ascii=False)] if node.name else []), *states]
            yield _masked(plain(" ".join(parts) + (f": {node.text}" if node.text else "")))

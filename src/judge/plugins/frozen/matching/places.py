"""The places of a request where values stand: segments of its path, parameters, fields of its body. Pure.

A request is a tree of its places. Two requests of one *shape* differ only in the values at them, or in the order of
lists. What is known about places whose values differ between two plays of the same walk is a `Spots`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import header
from judge.plugins.frozen.matching.binary import data_content, is_binary
from judge.plugins.frozen.matching.requests import page_headers, parsed_body
from judge.plugins.frozen.secrets import PLACEHOLDER
from judge.trajectory.forms import inner_json
from shared.strict_json import parse_json

ValuePath = tuple[str | int, ...]
ANY = "*"
# More items are compared in their order only, because comparing all pairs takes quadratic time.
_MAX_REORDERED = 50
_MAX_DEPTH = 60
# What two values have in common by chance is shorter.
_MIN_COMMON = 4
# A longer value is content, of which nobody knows what it says.
_MAX_MADE_UP_CHARS = 128
_OPEN_PLACEHOLDER = re.compile(r"redacted-[0-9a-f]*$")
_WORD = re.compile(r"[^\W_]+")
_MARK = re.compile(r"[\W_]")
# They come by chance where values are in base 64.
_CHANCE_MARKS = frozenset("+/-_")


class Spot(NamedTuple):
    """What is known about a place whose values differ between two plays.

    `varies`: the page makes them up. `clock`: they are times, `offset_ms` after the start of the play. `issued`: the
    site issues them anew in each play. `order`: only the order of the list differs. `unsure`: none of these is certain.
    All values have `prefix` and `suffix` in common, and between them only letters, digits and `marks`.
    """

    kind: Literal["varies", "clock", "issued", "order", "unsure"]
    prefix: str = ""
    suffix: str = ""
    offset_ms: float = 0
    marks: frozenset[str] = frozenset()

    def middle(self, value: str) -> str | None:
        """What stands between the common parts; `None` if the value does not have them, or anything else beside it."""
        fits = len(value) >= len(self.prefix) + len(self.suffix)
        if not fits or not (value.startswith(self.prefix) and value.endswith(self.suffix)):
            return None
        middle = value[len(self.prefix) : len(value) - len(self.suffix)]
        return middle if self.kind == "issued" or _marks(middle) <= self.marks | _CHANCE_MARKS else None


Spots = Mapping[ValuePath, Spot]


class PlaceDifference(NamedTuple):
    """Two values at one place; a reordered list's are empty."""

    place: ValuePath
    one: str
    other: str
    is_order: bool = False


class Tree(NamedTuple):
    """A request or message by its places. `kind` tells those apart that no value can make equal."""

    kind: str
    root: Any

    @property
    def shape(self) -> str:
        """Equal for trees that differ only in values and in the order of lists."""
        return f"{self.kind} {_shape(self.root)}"


def tree_of(request: WireRequest, varying: Sequence[str] = ()) -> Tree:
    """The places of a request; `varying` are headers that the answers depend on."""
    parts = urlsplit(request.url)
    kind: str = ""
    body: Any = None
    if request.body:
        kind, body = parsed_body(request.body, header(request.headers, "content-type"))
    names = ("range", "last-event-id", *varying)
    root = {
        "path": [unquote(segment) for segment in parts.path.split("/")[1:]],
        "query": _values_by_name(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=20_000)),
        "body": _inner(_values_by_name(body) if kind == "form" else body),
        "header": page_headers(request) | {name: value for name in names if (value := header(request.headers, name))},
    }
    return Tree(f"{request.method} {parts.scheme}://{parts.netloc} {kind}", root)


def message_tree(path: str, data: bytes) -> Tree:
    """The places of a message that a page sends over a socket."""
    content = data_content(data)
    head, rest = inner_json(content) if isinstance(content, str) else ("", content)
    return Tree(f"message {path} {head}", _inner(rest))


def _values_by_name(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    values_by_name: dict[str, Any] = {}
    for name, value in pairs:
        values_by_name.setdefault(name, []).append(_inner(value))
    return {name: values[0] if len(values) == 1 else values for name, values in values_by_name.items()}


def _inner(value: Any, depth: int = 0) -> Any:
    """The value with the JSON inside of its texts read too."""
    if depth > _MAX_DEPTH:
        return json.dumps(value)
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return {"json": _inner(parse_json(value), depth + 1)}
        except (ValueError, RecursionError):
            return value
    if isinstance(value, dict):
        return {name: _inner(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_inner(item, depth + 1) for item in value]
    return value


def _shape(node: Any) -> str:
    if isinstance(node, dict):
        return "{" + ",".join(f"{name!r}:{_shape(node[name])}" for name in sorted(node)) + "}"
    if isinstance(node, list):
        return "[" + ",".join(sorted(map(_shape, node))) + "]"
    return "." if node is not None else "-"


def text_of(leaf: Any) -> str:
    """The text of a value at a place."""
    return leaf if isinstance(leaf, str) else json.dumps(leaf)


def differences(one: Tree, other: Tree) -> list[PlaceDifference] | None:
    """Where two trees differ; `None` if they differ in more than values and orders."""
    if one.shape != other.shape:
        return None
    return _differences(one.root, other.root, ())


def _differences(one: Any, other: Any, place: ValuePath) -> list[PlaceDifference] | None:
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return None
        return _joined(_differences(one[name], other[name], (*place, name)) for name in sorted(one))
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return None
        straight = _joined(_differences(a, b, (*place, at)) for at, (a, b) in enumerate(zip(one, other, strict=True)))
        if straight == [] or place == ("path",):
            return straight
        mixed = _in_any_order(one, other, place)
        return mixed if mixed is not None and (straight is None or len(mixed) < len(straight)) else straight
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return None
    a, b = text_of(one), text_of(other)
    return [] if a == b and type(one) is type(other) else [PlaceDifference(place, a, b)]


def _in_any_order(one: list[Any], other: list[Any], place: ValuePath) -> list[PlaceDifference] | None:
    place_differences = [PlaceDifference(place, "", "", is_order=True)]
    changed, remaining = _without_common(one, other), _without_common(other, one)
    if len(changed) > _MAX_REORDERED:
        return None
    for item in changed:
        options = ((_differences(item, each, (*place, ANY)), at) for at, each in enumerate(remaining))
        possible = [(each, at) for each, at in options if each is not None]
        if not possible:
            return None
        best, at = min(possible, key=lambda option: len(option[0]))
        place_differences += best
        remaining.pop(at)
    return place_differences


def _without_common(items: list[Any], others: list[Any]) -> list[Any]:
    """The items without those that the other list has too."""
    common = Counter(json.dumps(each, sort_keys=True) for each in others)
    left = []
    for item in items:
        key = json.dumps(item, sort_keys=True)
        left += [] if common[key] > 0 else [item]
        common[key] -= 1
    return left


def _joined(parts: Iterator[list[PlaceDifference] | None]) -> list[PlaceDifference] | None:
    place_differences: list[PlaceDifference] = []
    for part in parts:
        if part is None:
            return None
        place_differences += part
    return place_differences


def is_same_place(one: ValuePath, other: ValuePath) -> bool:
    """Whether two places are the same, apart from the order of lists."""
    return len(one) == len(other) and all(
        a == b or (ANY in (a, b) and isinstance(a, int | str) and isinstance(b if a == ANY else a, int))
        for a, b in zip(one, other, strict=True)
    )


def spot_between(one: str, other: str) -> Spot:
    """What two values of a place have in common: separate words, or parts too long for chance."""
    prefix = _OPEN_PLACEHOLDER.sub("", _common(one, other))
    suffix = _common(one[len(prefix) :][::-1], other[len(prefix) :][::-1])[::-1]
    middles = "".join(value[len(prefix) : len(value) - len(suffix)] for value in (one, other))
    return Spot("varies", prefix, suffix, marks=_marks(middles))


def _marks(text: str) -> frozenset[str]:
    return frozenset(_MARK.findall(text))


def is_one_value(one: str, other: str) -> bool:
    """Whether two texts that differ are one value each, so that nothing stands between two values that was the same.

    Of binary data and long texts, nobody knows.
    """
    if PLACEHOLDER.fullmatch(one) and PLACEHOLDER.fullmatch(other):
        return True
    if max(len(one), len(other)) > _MAX_MADE_UP_CHARS or is_binary(one + other):
        return False
    words = _WORD.findall(one), _WORD.findall(other)
    if set(words[0]) & set(words[1]):
        return False
    pairs = list(zip(*words, strict=True)) if len(words[0]) == len(words[1]) else [(one, other)]
    return not any(_have_a_run(a, b) or _have_a_run(a[::-1], b[::-1]) for a, b in pairs)


def _have_a_run(one: str, other: str) -> bool:
    """Whether two texts have the same characters at one place, more than by chance, apart from their start and end."""
    same = "".join("=" if a == b else " " for a, b in zip(one, other, strict=False)).lstrip("=")
    return "=" * _MIN_COMMON in (same.rstrip("=") if len(one) == len(other) else same)


def _common(one: str, other: str) -> str:
    """The common start of two values without the word that it ends in, if that may be common by chance."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    common = "".join(character for character, _ in pairs)
    following = one[len(common) : len(common) + 1] + other[len(common) : len(common) + 1]
    if not any(character.isalnum() for character in following):
        return common
    word = len(common)
    while word and common[word - 1].isalnum():
        word -= 1
    is_number = following.isdigit() and common[word:].isdigit()
    return common[:word] if is_number or len(common) - word < _MIN_COMMON else common


Accept = Callable[[Spot, str], str | None]


class CommonKey(NamedTuple):
    """The key of a tree at whose spots are only what is common, and what else was there, by place."""

    key: str
    middles: tuple[str, ...]


def fitted(tree: Tree, spots: Spots, accept: Accept) -> CommonKey | None:
    """The key of a tree, and the values at its spots; `None` if one of them does not fit.

    `accept` returns what stands for a value in the key, or `None` if a value is not one of its spot.
    """
    middles: list[str] = []
    try:
        root = _blanked(tree.root, (), spots, accept, middles)
    except _UnfitError:
        return None
    return CommonKey(f"{tree.kind} {json.dumps(root, sort_keys=True)}", tuple(middles))


class _UnfitError(Exception):
    pass


def _blanked(node: Any, place: ValuePath, spots: Spots, accept: Accept, middles: list[str]) -> Any:
    if isinstance(node, dict):
        return {name: _blanked(node[name], (*place, name), spots, accept, middles) for name in sorted(node)}
    if isinstance(node, list):
        if place not in spots:
            return [_blanked(item, (*place, at), spots, accept, middles) for at, item in enumerate(node)]
        items: list[tuple[str, list[str]]] = []
        for item in node:
            own: list[str] = []
            blank = _blanked(item, (*place, ANY), spots, accept, own)
            items.append((json.dumps(blank, sort_keys=True), own))
        items.sort(key=lambda each: each[0])
        middles += [middle for _, own in items for middle in own]
        return [text for text, _ in items]
    spot = spots.get(place)
    if spot is None:
        return node
    middle = spot.middle(text_of(node))
    stands = None if middle is None else accept(spot, middle)
    if middle is None or stands is None:
        raise _UnfitError
    middles.append(middle)
    return f"{spot.prefix}{{{stands}}}{spot.suffix}"

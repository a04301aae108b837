"""Finds elements again, by role, name and position, that a page has rebuilt since the participant saw them.

A page may rebuild a list several times a second, with new elements and the same content. The references in the snapshot
that the participant saw are then invalid before its reply arrives.
"""

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from typing import Any

from judge.browser.responses import ToolResponse, UnreadableResponse, parse_page
from judge.records.tools import TARGETS
from shared.snapshot import Node, Snapshot, as_shown, parse_snapshot

MAX_TRIES = 5
_ROWS = frozenset({"row", "listitem", "article", "treeitem"})
_WORD = re.compile(r"[^\W\d_]+")
# The server's error messages, which it sends before executing any part of the action.
_NOT_FOUND = re.compile(r'### Error\nError: (?:Ref ((?:f\d+)?e\d+) not found in|"(.*)" does not match any elements\.)')
# Generates locators for the current elements: unlike references, they survive the next rebuild. A locator generated
# while its element is being removed may match another, so each must resolve to its reference's element.
_LOCATE = """async page => Promise.all(%s.map(async ref => {
  const element = page.locator("aria-ref=" + ref), locator = await element.normalize();
  const [[there], [found, ...others]] = await Promise.all([element.elementHandles(), locator.elementHandles()]);
  if (!there || !found || others.length || !await there.evaluate((e, other) => e === other && e.isConnected, found))
    throw new Error("gone");
  return String(locator);
}))"""


class _Rebuilt(Exception):
    """The page rebuilt an element between the snapshot and the generation of its locator."""


def counterpart(old: Snapshot, ref: str, now: Snapshot) -> str | None:
    """The reference that the element `ref` of the snapshot `old` has in a newer snapshot.

    It is the element with the same role and name. Of several, it is the one at the same position among them, provided
    that their number and the texts around it are unchanged. If its name holds a number that has changed, it is the one
    with the same link, or the one in the same row. `None` if there is no such element.
    """
    node = old.by_ref(ref)
    if node is None:
        return None
    before, after = (_equals(page, node.role, old.name_of(node)) for page in (old, now))
    if not after:
        return _renamed(old, node, now)
    if len(before) != len(after):
        return None
    place = before.index(node)
    if len(before) > 1 and _surroundings(old, before, place) != _surroundings(now, after, place):
        return None
    return after[place].ref


def _renamed(old: Snapshot, node: Node, now: Snapshot) -> str | None:
    """The element whose name differs only in its numbers: with the same link, or alone of its kind in the same row."""
    before, after = (_alike(page, node.role, _words(old.name_of(node))) for page in (old, now))
    if node.url is not None:
        same = [[each for each in page if each.url == node.url] for page in (before, after)]
        return same[1][0].ref if [len(matches) for matches in same] == [1, 1] else None
    row = _row_of(old, node)
    rows = [(_row_of(old, each), each) for each in before], [(_row_of(now, each), each) for each in after]
    there = [[each for around, each in matches if around and around == row] for matches in rows]
    return there[1][0].ref if row and [len(matches) for matches in there] == [1, 1] else None


def _alike(page: Snapshot, role: str, words: str) -> list[Node]:
    return [node for node in page.nodes if node.role == role and node.ref and _words(page.name_of(node)) == words]


def _row_of(page: Snapshot, node: Node) -> str:
    """The words of the row around an element, which distinguish it from other rows; empty if it is in none."""
    row = next((outer for outer in page.parents(node) if outer.role in _ROWS), None)
    return _words(page.text_of(row)) if row else ""


def _words(text: str) -> str:
    """The text without the changing parts of live values."""
    return " ".join(_WORD.findall(text))


def _equals(page: Snapshot, role: str, name: str) -> list[Node]:
    return [node for node in page.nodes if node.role == role and node.ref and page.name_of(node) == name]


def _surroundings(page: Snapshot, equals: list[Node], place: int) -> list[str]:
    """The texts that distinguish one of several equal elements: its row's or its neighbours'."""
    other_places = {node.position for node in equals if node is not equals[place]}
    row = equals[place]
    for outer in page.parents(row):
        if other_places.intersection(node.position for node in page.subtree(outer)):
            break
        row = outer
    rows = [row]
    if row is equals[place]:
        siblings = [node for node in page.nodes if node.parent == row.parent]
        at = siblings.index(row)
        beside = siblings[max(0, at - 1) : at + 2]
        rows = [each for each in beside if not other_places.intersection(node.position for node in page.subtree(each))]
    return [page.text_of(each) for each in rows]


async def call_again(
    call: Callable[[str, dict[str, Any]], Awaitable[ToolResponse]],
    look: Callable[[], Awaitable[ToolResponse]],
    run: Callable[[str], Awaitable[ToolResponse]],
    tool: str,
    params: dict[str, Any],
    *,
    old: str,
    url: str,
    limit_s: float,
) -> tuple[ToolResponse, bool]:
    """Call a tool; while the server refuses it because an element is gone, find the element again and repeat the call.

    `look` takes a new snapshot; `run` runs the judge's code; `old` and `url` are the snapshot and address that the
    participant saw. An action that may have begun is never repeated. If the page keeps rebuilding the element, the
    search ends after `limit_s`. Returns the last answer, and whether the action used an element found again.
    """
    until = time.monotonic() + limit_s
    answer, params_sent = await call(tool, params), params
    tries = 0
    while tries < MAX_TRIES and not answer.ok and _was_refused(params_sent, answer.text):
        try:
            # Without the judge's facts, which the newer snapshot does not have: names are compared.
            new_params = await _found_again(look, run, params, parse_snapshot(as_shown(old, boxes=True)), url)
        except _Rebuilt:
            if time.monotonic() > until:
                break
            continue
        tries += 1
        if new_params is not None:
            answer, params_sent = await call(tool, new_params), new_params
    return answer, params_sent is not params


def _was_refused(params: dict[str, Any], text: str) -> bool:
    """Whether the server refused the call before executing any of it, because it did not find an element."""
    match = _NOT_FOUND.match(text)
    if match is None:
        return False
    missing, targets = match[1] or match[2], [part[key] for part, key in _places(params)]
    if "fields" in params:
        # A form is filled field by field, so only the first field is resolved before anything happens.
        return targets[0] == missing and missing not in targets[1:]
    return missing in targets


def _places(params: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each parameter that names an element, with the object that contains it."""
    for part in (params, *params.get("fields", ())):
        yield from ((part, key) for key in TARGETS if key in part)


async def _found_again(
    look: Callable[[], Awaitable[ToolResponse]],
    run: Callable[[str], Awaitable[ToolResponse]],
    params: dict[str, Any],
    old: Snapshot,
    url: str,
) -> dict[str, Any] | None:
    """The parameters with a locator for each reference; `None` if an element is missing or ambiguous.

    Raises `_Rebuilt`.
    """
    looked = await look()
    try:
        page = parse_page(looked.text)
    except UnreadableResponse:
        return None
    if page.url != url:
        # Another page may have an unrelated element of the same name.
        return None
    now = parse_snapshot(page.snapshot)
    new_params = deepcopy(params)
    refs = [counterpart(old, part[key], now) for part, key in _places(new_params)]
    if None in refs:
        return None
    located = await run(_LOCATE % json.dumps(refs))
    if not located.ok:
        raise _Rebuilt
    locators = json.loads(located.text)
    for (part, key), locator in zip(_places(new_params), locators, strict=True):
        part[key] = locator
    return new_params

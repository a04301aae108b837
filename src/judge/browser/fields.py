"""Checks whether fields contain what was typed into them: applications may silently drop, cut or rewrite it. Pure."""

from collections import Counter
from collections.abc import Mapping

from shared.snapshot import FIELDS, Node, Snapshot, parse_snapshot

# Editors draw only the part of a long text in view: so many characters, or lines, are enough of it.
_DRAWN_CHARS = 500
_DRAWN_LINES = 10


def count_differing(snapshot: str, typed: Mapping[str, str], before: str = "") -> int:
    """How many of the fields still in the snapshot contain something else. Ignores spaces, case and
    punctuation of formats (`(555) 010-99`).

    An editor may draw its text outside the field: lines that the snapshot `before` does not have count as well.
    """
    if not typed:
        return 0
    page, earlier = parse_snapshot(snapshot), parse_snapshot(before)
    fields_and_texts = [(page.by_ref(ref), text) for ref, text in typed.items()]
    fields = [(node, text) for node, text in fields_and_texts if node is not None and node.role in FIELDS]
    return sum(not _holds(page, node, text) and not _is_drawn(text, page, earlier) for node, text in fields)


def _holds(page: Snapshot, field: Node, text: str) -> bool:
    value, expected = page.value_of(field), _bare(text)
    # Browsers show dots for passwords.
    if _bare(value) == expected or set(value) == {"•"}:
        return True
    inside = _bare(" ".join(page.text_of(node) for node in page.nodes if node.parent == field.position))
    return inside == expected or (len(inside) >= _DRAWN_CHARS and inside in expected)


def _is_drawn(text: str, page: Snapshot, earlier: Snapshot) -> bool:
    """Whether the page has drawn the lines of the text. Numbers of lines may be between them."""
    lines = Counter(filter(None, map(_bare, text.split("\n"))))
    now, then = (
        _bare(" ".join(part for node in each.nodes for part in (node.name, node.text))) for each in (page, earlier)
    )
    new = sum(min(count, now.count(line) - then.count(line)) for line, count in lines.items() if line in now)
    return bool(lines) and new >= min(lines.total(), _DRAWN_LINES)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

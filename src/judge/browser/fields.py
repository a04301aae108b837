"""Checks whether fields contain what was typed into them: applications may silently drop, cut or rewrite it. Pure."""

from collections.abc import Mapping

from shared.snapshot import FIELDS, Node, Snapshot, parse_snapshot

# Editors draw only the part of a long text that is in view.
_DRAWN_PART = 500


def count_differing(snapshot: str, typed: Mapping[str, str], before: str = "") -> int:
    """How many of the fields that are still in the snapshot contain something else. Ignores spaces, case and
    punctuation of formats (`(555) 010-99`).

    An editor may draw its text outside the field: text that the snapshot `before` does not have counts as well.
    """
    if not typed:
        return 0
    page, earlier = parse_snapshot(snapshot), parse_snapshot(before)
    found = [(page.by_ref(ref), text) for ref, text in typed.items()]
    return sum(
        _differs(page, node, _bare(text), earlier) for node, text in found if node is not None and node.role in FIELDS
    )


def _differs(page: Snapshot, field: Node, text: str, earlier: Snapshot) -> bool:
    value = page.value_of(field)
    # Browsers show dots for passwords.
    if _bare(value) == text or set(value) == {"•"}:
        return False
    inside = _bare(" ".join(part for node in page.subtree(field) if node is not field for part in (node.name, node.text)))
    is_part = len(inside) >= _DRAWN_PART and inside in text
    return not (text and (text == inside or is_part or _drawn(page).count(text) > _drawn(earlier).count(text)))


def _drawn(page: Snapshot) -> str:
    return _bare(" ".join(part for node in page.nodes for part in (node.name, node.text)))


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

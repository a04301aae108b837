"""Checks whether fields contain what was typed into them: applications may silently drop, cut or rewrite it. Pure."""

from collections.abc import Mapping

from shared.snapshot import FIELDS, Snapshot, parse_snapshot


def count_differing(snapshot: str, typed: Mapping[str, str]) -> int:
    """How many of the fields that are still in the snapshot contain something else. Ignores spaces, case and
    punctuation of formats (`(555) 010-99`).
    """
    page = parse_snapshot(snapshot) if typed else Snapshot()
    found = [(page.by_ref(ref), text) for ref, text in typed.items()]
    fields = [(page.value_of(node), text) for node, text in found if node is not None and node.role in FIELDS]
    # Browsers show dots for passwords.
    return sum(_bare(value) != _bare(text) for value, text in fields if set(value) != {"•"})


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

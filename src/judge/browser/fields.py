"""Whether fields contain what was typed into them: applications may drop, cut or rewrite it without a word. Pure."""

from collections.abc import Mapping
from typing import Any

from shared.snapshot import FIELDS, Snapshot, parse_snapshot

_TYPED_FIELDS = frozenset({"textbox", "slider"})


def typed_into(tool: str, params: Mapping[str, Any]) -> dict[str, str]:
    """What fields should contain after the action, by reference. A text that was submitted may rightly be gone."""
    match tool:
        case "browser_type" if "target" in params and not params.get("submit"):
            return {params["target"]: params["text"]}
        case "browser_fill_form":
            return {each["target"]: each["value"] for each in params["fields"] if each.get("type") in _TYPED_FIELDS}
    return {}


def count_differing(snapshot: str, typed: Mapping[str, str]) -> int:
    """How many of the fields that are still in the snapshot contain something else. Spaces, case and signs of a format
    (`(555) 010-99`) make no difference.
    """
    page = parse_snapshot(snapshot) if typed else Snapshot()
    found = [(page.by_ref(ref), text) for ref, text in typed.items()]
    fields = [(page.value_of(node), text) for node, text in found if node is not None and node.role in FIELDS]
    # Browsers show dots for passwords.
    return sum(_bare(value) != _bare(text) for value, text in fields if set(value) != {"•"})


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

"""`run.json` as tables for people: what ran, who played, who judged, in which browser. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

# The configuration has a table of its own; the request repeats it; counts and costs are at the top of the page.
_LEFT_OUT = frozenset({"config", "request", "task_ids", "schema_version", "outcomes", "judge_usage"})
_GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "participants": "Participant",
        "identity": "Participant",
        "judge": "Judge",
        "judge_model": "Judge",
        # The judge is named by its method and model; its id tells apart prompts and settings.
        "judge_id": "Checksums",
        "judge_ids": "Checksums",
        "decided_by": "Judge",
        "environment": "Browser",
        "packages": "Packages",
    }
)
_ORDER = ("Run", "Participant", "Judge", "Browser", "Packages", "Checksums")
# Keys whose parts are clear without them.
_UNNAMED = frozenset({"participants", "identity", "environment", "packages", "judge"})
_DIGEST = re.compile(r"[0-9a-f]{64}")

SetupRows = list[tuple[str, str]]


def setup_of(record: Mapping[str, Any]) -> dict[str, SetupRows]:
    """Names and values by group, without unset ones."""
    groups: defaultdict[str, SetupRows] = defaultdict(list)
    for key, value in record.items():
        if key in _LEFT_OUT:
            continue
        for path, leaf in _leaves(value):
            name = " ".join(path if key in _UNNAMED and path else (key, *path)).replace("_", " ")
            text = (moment(leaf) if key.endswith("_at") else "") or _words(leaf)
            is_digest = isinstance(leaf, str) and _DIGEST.fullmatch(leaf)
            # In a group, `model` may be the judge's or the participant's; a checksum needs its key.
            if is_digest:
                groups["Checksums"].append((" ".join((key, *path)).replace("_", " "), text))
            elif text:
                groups[_GROUPS.get(key, "Run")].append((name, text))
    return {name: groups[name] for name in _ORDER if groups[name]}


def _leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            for path, leaf in _leaves(inner):
                yield (str(name), *path), leaf
    elif value not in (None, "", [], ()):
        yield (), value


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def moment(value: Any) -> str:
    """Seconds since 1970 or an ISO time as `2026-02-03 04:05 UTC`; empty for anything else."""
    try:
        found = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M} UTC"

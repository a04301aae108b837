"""Packs a task's snapshots for its page, whose script unpacks and compares them.

The format is base64 of a zlib stream of NUL-separated texts: first, separated by spaces, the number of each step's
snapshot among the other texts, counted from 1 (0 for none); then each distinct snapshot.
"""

import base64
import zlib
from collections.abc import Iterable

from shared.text import counted

MAX_CHARS = 400_000
MAX_TOTAL_CHARS = 4_000_000
_LEFT_OUT = "# This snapshot is left out: the page would be too large. It is in the run's folder."


def pack(snapshots: Iterable[str | None]) -> str:
    """The snapshots in the order of the steps; empty if there is none.

    A snapshot is cut after `MAX_CHARS`, and left out once the total is `MAX_TOTAL_CHARS`; a note in its place says so.
    """
    places: dict[str, int] = {}
    order: list[int] = []
    total = 0
    for snapshot in snapshots:
        if snapshot is None:
            order.append(0)
            continue
        text = snapshot[:MAX_CHARS].replace("\0", "\ufffd")
        if len(snapshot) > MAX_CHARS:
            text += f"\n# The run's folder has {counted(len(snapshot) - MAX_CHARS, 'more character')}."
        if text not in places:
            total += len(text)
            text = text if total <= MAX_TOTAL_CHARS else _LEFT_OUT
        order.append(places.setdefault(text, len(places) + 1))
    if not places:
        return ""
    data = "\0".join([" ".join(map(str, order)), *places]).encode("utf-8", "replace")
    # The fastest level, so that packing does not slow down reports of hundreds of tasks.
    return base64.b64encode(zlib.compress(data, 1)).decode()

"""The snapshots of a task, packed for its page, whose script unpacks and compares them.

The form is base64 of a zlib stream of texts with a NUL between them: first for each step the place of its snapshot
among the other texts, counted from 1 (0: there is none), separated by blanks; then each different snapshot.
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

    A text is cut after `MAX_CHARS`, and left out once there are `MAX_TOTAL_CHARS`; it says so itself.
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
    # The fastest level: a report of hundreds of tasks must not take much longer for its snapshots.
    return base64.b64encode(zlib.compress(data, 1)).decode()

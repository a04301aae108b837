"""The snapshots of a task for its page: packed, so that hundreds of them fit. The page's script unpacks and compares them.

The form is base64 of the zlib stream of a JSON object: `texts`, each snapshot once, and `of`, for each step the place
of its snapshot in `texts`, or null without one.
"""

import base64
import json
import zlib
from collections.abc import Iterable

MAX_CHARS = 400_000
MAX_TOTAL_CHARS = 4_000_000
_LEFT_OUT = "# This snapshot is left out: the page would be too large. It is in the run's folder."


def pack(snapshots: Iterable[str | None]) -> str:
    """The snapshots in the order of the steps; empty if there is none.

    A text is cut after `MAX_CHARS`, and left out once there are `MAX_TOTAL_CHARS`; it says so itself.
    """
    places: dict[str, int] = {}
    order: list[int | None] = []
    total = 0
    for snapshot in snapshots:
        if snapshot is None:
            order.append(None)
            continue
        text = snapshot[:MAX_CHARS]
        if len(snapshot) > MAX_CHARS:
            text += f"\n# {len(snapshot) - MAX_CHARS} more characters are in the run's folder."
        if text not in places:
            total += len(text)
            text = text if total <= MAX_TOTAL_CHARS else _LEFT_OUT
        order.append(places.setdefault(text, len(places)))
    if not places:
        return ""
    data = json.dumps({"texts": list(places), "of": order}, ensure_ascii=False).encode("utf-8", "replace")
    # The fastest level: snapshots repeat themselves so much that others save little.
    return base64.b64encode(zlib.compress(data, 1)).decode()

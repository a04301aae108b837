"""What the clients of this folder are asked, and how they show what they see."""

import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """One call: `mode` is `stream`, `send`, `poll`, `get` or `resubscribe`; `task` and `text` where it needs them."""

    url: str
    mode: str
    task: str
    text: str
    binding: str
    read_timeout_s: float


def asked() -> Iterator[Asked]:
    """One call a line, as JSON on stdin: importing an SDK takes longer than a call. A blank line ends each answer."""
    for line in sys.stdin:
        yield Asked(**json.loads(line))
        print(flush=True)


def show(**event: Any) -> None:
    """One event, one line."""
    print(json.dumps(event), flush=True)

"""Reads the text messages of web sockets that `request_sockets.cjs` has written: the first ones and the last ones."""

import contextlib
import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from judge.browser.acts import Acts
from judge.trajectory.network import MessagesLeftOut

# Above what the recorder's limits allow for each file.
_MAX_BYTES = 5_000_000
# A file is renamed from the first of these to the second, so that what is read in this order has no gap.
_PARTS = ("last", "before_last", "first")


def read_messages(
    folder: Path, sockets: Collection[int], step_at: Callable[[int], int], acts: Acts
) -> tuple[dict[int, list[dict[str, Any]]], MessagesLeftOut]:
    """The messages of each socket's entry, as HAR has them, and how many were left out.

    `sockets` are the entries that were kept; `step_at` gives the step for a place in the log of requests.
    """
    messages_by_socket: dict[int, list[dict[str, Any]]] = {}
    counts_lost = {}
    for share in ("own", "other"):
        lines = {line["n"]: line for part in _PARTS for line in _lines(folder / f"messages_{share}_{part}.jsonl")}
        messages = [line for _, line in sorted(lines.items()) if line.get("socket") in sockets]
        # They are numbered from 0.
        counts_lost[share] = max(lines, default=-1) + 1 - len(messages)
        for line in messages:
            messages_by_socket.setdefault(line["socket"], []).append(_message(line, step_at(line["at"]), acts))
    return messages_by_socket, MessagesLeftOut(**counts_lost)


def _message(line: dict[str, Any], step: int, acts: Acts) -> dict[str, Any]:
    message = {"type": "send" if line["sent"] else "receive", "time": line["time"] / 1000, "opcode": 1, "_step": step}
    message["_cause"] = acts.cause(line.get("cause"), line["time"]).model_dump(mode="json")
    return message | ({"data": line["text"]} if "text" in line else {"_truncated": True})


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    data = b""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
        data = stream.read(_MAX_BYTES)
    for line in data.splitlines(keepends=True):
        # The last one may still be being written.
        if line.endswith(b"\n"):
            yield json.loads(line)

"""Reads what pages wrote to the console, as recorded in the browser's folder by `console.cjs`."""

import bisect
import contextlib
import json
from pathlib import Path
from typing import Any

RECORDER = Path(__file__).with_name("console.cjs")
# Above the recorder's limit.
_MAX_BYTES = 10_000_000


class ConsoleLog:
    """Reads the messages that the recorder has written to `folder`, and assigns each to the step that it followed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "console.jsonl"
        # The file position at which each step's action began, and its number; 0 is the opening of the first page.
        self._began = [(0, 0)]

    def begin_step(self, number: int) -> None:
        """Assign messages from now on to that step."""
        size = 0
        with contextlib.suppress(OSError):
            size = self._path.stat().st_size
        self._began.append((size, number))

    def read(self) -> tuple[dict[str, Any], ...]:
        """All messages so far; skips a last line still being written."""
        data = b""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as stream:
            data = stream.read(_MAX_BYTES)
        messages, offset = [], 0
        for line in data.splitlines(keepends=True):
            if line.endswith(b"\n"):
                place = bisect.bisect_right(self._began, offset, key=lambda began: began[0]) - 1
                messages.append({"step": self._began[place][1], **json.loads(line)})
            offset += len(line)
        return tuple(messages)

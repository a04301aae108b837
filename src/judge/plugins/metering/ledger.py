"""Writes the ledger of a meter: two lines for each call, and no content."""

import json
import os
from pathlib import Path

from judge.results.metering import CallEnd, CallStart


class Ledger:
    """An append-only file. A line is handed to the operating system in one write before the method returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("ab", buffering=0)
        # The last line of a killed meter may be torn.
        if self._stream.tell():
            with path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    self._stream.write(b"\n")

    def write(self, record: CallStart | CallEnd) -> None:
        """Append a line. Raises `OSError`."""
        line = json.dumps(record.model_dump(mode="json", exclude_defaults=True), allow_nan=False)
        self._stream.write(line.encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

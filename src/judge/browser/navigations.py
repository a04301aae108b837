"""Where the browser went: every request for a page, as `navigations.cjs` records it in the browser's folder."""

import contextlib
from pathlib import Path

from judge.browser.session import Hop

RECORDER = Path(__file__).with_name("navigations.cjs")


class NavigationLog:
    """Reads what the recorder has written in `folder` since the last call."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "navigations.jsonl"
        self._offset = 0

    def take(self) -> tuple[Hop, ...]:
        """The new hops, oldest first; none when the browser went nowhere, so that there is no file."""
        data = b""
        with contextlib.suppress(OSError), self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        # A last line that is still being written is left for the next call.
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return tuple(Hop.model_validate_json(line) for line in whole.splitlines())

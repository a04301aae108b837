"""`console.jsonl`: console messages and uncaught errors of an attempt's pages. For people, never evidence."""

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from shared.files import read_file, write_atomic
from shared.models import Record

CONSOLE_FILE = "console.jsonl"
_MAX_BYTES = 16_000_000


class ConsoleMessage(Record):
    """One message. `step` is the number of the action that it followed, 0 for the first page.

    `level` is `uncaught` for an error that no script caught, otherwise the name of the console's function. In a last
    line without text, `dropped` is the number of messages beyond the limit, at least.
    """

    step: int = Field(ge=0)
    level: str = ""
    text: str = ""
    url: str = ""
    line: int | None = None
    dropped: int = Field(default=0, ge=0)


def write_console(folder: Path, messages: Iterable[Mapping[str, Any]], redacted: Callable[[str], str]) -> None:
    """Write the messages, each text `redacted`, to the folder's `console.jsonl`; nothing if there is none.

    Raises `OSError`.
    """
    lines = []
    for message in messages:
        texts = {key: redacted(message[key]) for key in ("text", "url") if key in message}
        lines.append(json.dumps({**message, **texts}) + "\n")
    if lines:
        write_atomic(folder / CONSOLE_FILE, "".join(lines).encode())


def read_console(folder: Path) -> tuple[ConsoleMessage, ...]:
    """The messages, as far as they can be read."""
    path = folder / CONSOLE_FILE
    messages = []
    # In a run from someone else, a link could point to any file of this machine.
    with contextlib.suppress(OSError, ValueError):
        if not path.is_symlink():
            for line in read_file(path, max_bytes=_MAX_BYTES).splitlines():
                with contextlib.suppress(ValidationError):
                    messages.append(ConsoleMessage.model_validate_json(line))
    return tuple(messages)

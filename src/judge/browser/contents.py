"""Reads what elements contained after an action, as written by `contents.cjs`."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judge.records.tools import TARGETS
from judge.trajectory.redaction import is_secret_name
from shared.files import read_text
from shared.models import Record

_LOG = "contents.jsonl"


class Contents(Record):
    """What one element contained. `shown` are the labels of the chosen options, the state of a box (`true`, `false`) or
    the names of files; `None` for text. `value` is the text, or which of several options with the same label were
    chosen; `names` are the field's.
    """

    shown: tuple[str, ...] | None = None
    value: str | None = None
    names: tuple[str, ...] = ()

    @property
    def recordable(self) -> str | None:
        """The value, unless the field is for a secret."""
        return None if any(map(is_secret_name, self.names)) else self.value


class ContentsLog:
    """What was written to the browser's `folder` since the last action began."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOG

    def begin(self) -> None:
        """Another action begins."""
        with suppress(OSError):
            self._path.unlink()

    def read(self, params: Mapping[str, Any]) -> dict[str, Contents]:
        """The contents of each element that the action with these parameters named, by its reference; empty for an
        element that it did not name.
        """
        try:
            lines = read_text(self._path).split("\n")[:-1]
        except (OSError, ValueError):
            return {}
        parts = params.get("fields", (params,))
        refs = [next((part[key] for key in TARGETS if key in part), "") for part in parts]
        return dict(zip(refs, _contents(lines), strict=False))


def _contents(lines: list[str]) -> Iterator[Contents]:
    for line in lines:
        try:
            yield Contents.model_validate_json(line)
        except ValidationError:
            # The page has replaced functions that were used to read it.
            yield Contents()


def differing(given: str | None, contents: Contents | None) -> str | None:
    """The value of an element, if it is not the text `given`; `None` if it is, and if it is not known."""
    value = contents.recordable if contents else None
    return None if value is None or (given is not None and _plain(value) == _plain(given)) else value


def _plain(text: str) -> str:
    # Browsers change line breaks, and editors end with one and write some spaces so that they do not collapse.
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").removesuffix("\n")

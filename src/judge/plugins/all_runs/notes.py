"""The user's tags and notes of runs, beside the runs: no file of a run changes, and no digest covers them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter

from shared.errors import ConfigError
from shared.fields import Invalid
from shared.files import read_errors, read_json, write_errors, write_json
from shared.models import Record
from shared.text import excerpt, one_line
from shared.validation import validated

MAX_TAGS = 20
MAX_TAG_CHARS = 40
MAX_NOTE_CHARS = 2_000
_MAX_BYTES = 100_000
# The name of a run or a submission; a file's name here.
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def _tag(text: str) -> str:
    tag = one_line(text, MAX_TAG_CHARS + 1)
    if not tag or len(tag) > MAX_TAG_CHARS or "," in tag:
        remedy = f"use 1 to {MAX_TAG_CHARS} characters, and no comma"
        raise Invalid(f"{excerpt(text)} is not usable as a tag", remedy)
    return tag


def _unique(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(tags), key=str.casefold))


class RunNotes(Record):
    """Tags, sorted, each once, and a note that may have several lines."""

    tags: Annotated[
        tuple[Annotated[str, AfterValidator(_tag)], ...], Field(max_length=MAX_TAGS), AfterValidator(_unique)
    ] = ()
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] = ""


_NOTES = TypeAdapter(RunNotes)


class NotesFolder:
    """The notes of all runs below one output folder: one file for each run that has any."""

    def __init__(self, output_dir: Path) -> None:
        self._folder = output_dir / "view" / "notes"

    def read_all(self) -> Mapping[str, RunNotes]:
        """The notes by key. Damaged files are left out, and stay as they are."""
        notes_by_key = {}
        for path in self._folder.glob("*.json"):
            if _KEY.fullmatch(path.stem):
                try:
                    notes_by_key[path.stem] = self.read(path.stem)
                except ConfigError:
                    continue
        return notes_by_key

    def read(self, key: str) -> RunNotes:
        """The notes of one run. Raises `ConfigError` for a damaged file."""
        path = self._path(key)
        if not path.exists():
            return RunNotes()
        with read_errors(path, "correct or delete it"):
            value = read_json(path, max_bytes=_MAX_BYTES)
        return validated(_NOTES, value, path)

    def write(self, key: str, notes: RunNotes) -> None:
        """Replace the notes of one run. Raises `ConfigError`, also for a damaged file, which would be lost."""
        path = self._path(key)
        self.read(key)
        with write_errors(path, "check who owns the folder, and the disk's space"):
            if notes == RunNotes():
                path.unlink(missing_ok=True)
            else:
                write_json(path, notes.model_dump(mode="json"))

    def remove(self, key: str) -> None:
        """Delete the notes of a deleted run."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ConfigError(f"{excerpt(key)} is not the name of a run")
        return self._folder / f"{key}.json"

"""A person's own tags and notes of runs: beside the runs, bounded, never lost."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from judge.plugins.all_runs.notes import MAX_NOTE_CHARS, MAX_TAG_CHARS, MAX_TAGS, NotesFolder, RunNotes
from shared.errors import ConfigError


def test_notes_are_kept_beside_the_runs(tmp_path: Path) -> None:
    notes = RunNotes(tags=("best", "A/B"), note="two\nlines: \u202e <b>")
    NotesFolder(tmp_path).write("r1", notes)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")] == ["view/notes/r1.json"]
    notes_read = NotesFolder(tmp_path).read_all()
    assert notes_read["r1"].tags == ("A/B", "best")
    assert notes_read["r1"].note == "two\nlines: \u202e <b>"


def test_empty_notes_leave_no_file(tmp_path: Path) -> None:
    folder = NotesFolder(tmp_path)
    folder.write("r1", RunNotes(note="x"))
    folder.write("r1", RunNotes())
    assert list(tmp_path.rglob("*.json")) == []
    assert folder.read("r1") == RunNotes()


def test_tags_are_one_line_sorted_and_each_once() -> None:
    assert RunNotes(tags=(" b\n", "a\x1b", "b", "C")).tags == ("a", "b", "C")


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ("",)},
        {"tags": (" \n",)},
        {"tags": ("a,b",)},
        {"tags": ("t" * (MAX_TAG_CHARS + 1),)},
        {"tags": tuple(str(number) for number in range(MAX_TAGS + 1))},
        {"note": "n" * (MAX_NOTE_CHARS + 1)},
    ],
    ids=lambda fields: str(fields)[:30],
)
def test_what_is_too_long_or_no_tag_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RunNotes.model_validate(fields)


@pytest.mark.parametrize("key", ["", "../r1", "/etc/passwd", "a/b", ".hidden", "r" * 200, "r1\n"])
def test_a_key_that_does_not_name_a_run_does_not_become_a_path(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a run"):
        NotesFolder(tmp_path).write(key, RunNotes(note="x"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"[]", b'{"tags": "x"}', b'{"note": 3}', b"\xff"])
def test_a_damaged_file_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    folder = NotesFolder(tmp_path)
    folder.write("r1", RunNotes(note="x"))
    (path,) = tmp_path.rglob("*.json")
    path.write_bytes(content)
    assert folder.read_all() == {}
    with pytest.raises(ConfigError, match=r"r1\.json"):
        folder.write("r1", RunNotes(note="y"))
    assert path.read_bytes() == content

"""Names of files: whatever could be read as a path, or shown as another name, is refused."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from judge.records.files import FileContents, FileNames, TaskFile, is_file_name, type_of
from shared.fields import Invalid

NAMES = TypeAdapter(FileNames)
CONTENTS = TypeAdapter(FileContents)
REFUSED_FILES = [
    "/etc/passwd",
    "../cv.pdf",
    "a\\b",
    "C:cv.pdf",
    "..",
    ".",
    ".env",
    "~cv",
    "-cv",
    "cv.pdf.",
    " cv.pdf",
    "cv.pdf ",
    "",
    "cv\n.pdf",
    "cv\x00.pdf",
    "cv\u202efdp.exe",
    "cv\u2066.pdf",
    "cv\u200b.pdf",
    "cv\u2028.pdf",
    "cu\u0301.pdf",
    "NUL",
    "con.txt",
    "a" * 151,
    "é" * 100,
    "cv?.pdf",
]


@pytest.mark.parametrize("name", REFUSED_FILES)
def test_what_is_not_a_file_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        is_file_name(name)


@given(name=st.text(min_size=1, max_size=40))
def test_an_accepted_name_is_one_part_of_a_path_that_is_shown_as_it_is(name: str) -> None:
    try:
        is_file_name(name)
    except Invalid:
        return
    assert not re.search(r"[/\\:\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", name)
    assert name not in (".", "..")
    assert name.isprintable()


@pytest.mark.parametrize("name", ["cv.pdf", "süß (1).txt", "報告書.xlsx", "a'b&c.png", "über uns"])
def test_usual_names_are_accepted(name: str) -> None:
    assert is_file_name(name) == name


@pytest.mark.parametrize(
    ("adapter", "value", "problem"),
    [
        (NAMES, ["cv.pdf", "CV.pdf"], "declared twice"),
        (NAMES, ["a"] * 21, "more than 20"),
        (CONTENTS, {"cv.pdf": "no base64!"}, "not base64"),
        (CONTENTS, {"../cv.pdf": "aGk="}, "separator"),
        (CONTENTS, {"cv.pdf": "A" * 4_000_000}, "more than 2000000"),
        (CONTENTS, {f"{n}.pdf": "A" * 2_400_000 for n in range(5)}, "9000000 bytes of files, more than 8000000"),
        (CONTENTS, ["cv.pdf"], "not a table"),
    ],
)
def test_lists_of_files_are_checked(adapter: TypeAdapter[Any], value: object, problem: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(problem)):
        adapter.validate_python(value)


def test_content_is_never_dumped_or_shown() -> None:
    file = TaskFile.of("cv.pdf", b"secret")
    assert file.model_dump(mode="json") == {"name": "cv.pdf", "size": 6, "sha256": file.sha256}
    assert "secret" not in repr(file)
    assert file.about == "cv.pdf (application/pdf, 6 bytes)"
    assert type_of("unknown") == "application/octet-stream"

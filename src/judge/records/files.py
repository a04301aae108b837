"""Files that a task declares for uploads: named, never by a path, with the digest of what the participant may upload.

A name is a name only: whatever a system could read as a path, and what would be shown as another name than it is, is
refused. The content is excluded from every dump.
"""

import base64
import binascii
import hashlib
import mimetypes
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from judge.records.causes import Cause
from shared.fields import Invalid, at_most, printable
from shared.models import Record, RecordedLimit, omit_default

MAX_FILES = 20
MAX_FILE_BYTES = 2_000_000
MAX_FILES_BYTES = 8_000_000
_MAX_NAME_BYTES = 150
_SEPARATORS = re.compile(r'[/\\:*?"<>|]')
# Control, format (which include the bidirectional ones), surrogate, private and unassigned characters; line separators.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Without the tables of this machine, so that a name has the same type everywhere.
_TYPES = mimetypes.MimeTypes(filenames=())
_UNKNOWN_TYPE = "application/octet-stream"
# Names of devices on Windows, with or without an extension.
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])")
_REMEDY = "write the name of a file beside the scenario, such as cv.pdf"


def is_reserved(name: str) -> bool:
    """Whether a file system refuses a file or folder of this name."""
    return _RESERVED.fullmatch(name) is not None


def is_file_name(value: str) -> str:
    """The name, if it can only name a file in any folder. Raises `Invalid`."""
    if _SEPARATORS.search(value):
        raise Invalid(f"{printable(value)} is not the name of a file: it has a separator or a drive", _REMEDY)
    if any(unicodedata.category(character) in _UNSHOWN for character in value):
        raise Invalid(f"{printable(value)} has a control or a bidirectional character", "write a name that can be read")
    if not value or value != value.strip() or value.endswith(".") or value.startswith((".", "~", "-")):
        raise Invalid(f"{printable(value)} is not the name of a file", _REMEDY)
    if unicodedata.normalize("NFC", value) != value:
        raise Invalid(f"{printable(value)} is not in Unicode's usual form (NFC)", "write it in that form")
    if len(value.encode()) > _MAX_NAME_BYTES:
        raise Invalid(f"{len(value.encode())} bytes, more than {_MAX_NAME_BYTES}", "choose a shorter name")
    if is_reserved(value.partition(".")[0]):
        raise Invalid(f"{printable(value)} is a name that Windows reserves", "choose another one")
    return value


def _differ(names: Sequence[str]) -> Sequence[str]:
    folded = [name.casefold() for name in names]
    if repeated := [name for place, name in enumerate(names) if folded[place] in folded[:place]]:
        raise Invalid(f"{printable(repeated[0])} is declared twice", "declare each file once")
    return names


FileName = Annotated[str, at_most(_MAX_NAME_BYTES), AfterValidator(is_file_name)]
FileNames = Annotated[tuple[FileName, ...], at_most(MAX_FILES), AfterValidator(_differ)]


def type_of(name: str) -> str:
    """The media type that a browser gives a file of this name."""
    return _TYPES.guess_type(f"/{name}", strict=True)[0] or _UNKNOWN_TYPE


# What became of a download. `left_out` stands for all further ones of an attempt, or of a step.
DownloadState = Literal["complete", "cut", "unfinished", "failed", "left_out"]


class Download(Record):
    """A download of a page. `file` is what is kept of it, relative to the task's folder: the complete file, if a
    document of the task's sites started it.

    `step` is the number of the action after which it began, 0 before the first. `sender` is the origin of the document
    that started it, `browser` for an address that the participant opened or saved itself, `None` if it is not known.
    `cause` is what started it, and `chain` the origins of the addresses that led to the file. `type` is the media type
    with which it was served; where that is not known, its name's.
    """

    name: Annotated[str, RecordedLimit(800)] = ""
    url: Annotated[str, RecordedLimit(1_500)] = ""
    type: Annotated[str, RecordedLimit(400)] = ""
    state: DownloadState = omit_default("complete")
    size: int | None = omit_default(None, ge=0)
    sha256: str | None = omit_default(None)
    file: str | None = omit_default(None)
    sender: Annotated[str | None, RecordedLimit(500)] = omit_default(None)
    step: int = omit_default(0, ge=0)
    cause: Cause | None = omit_default(None)
    chain: Annotated[tuple[str, ...], RecordedLimit(10_000)] = omit_default(())


class TaskFile(Record):
    """A file that a task declares. `size` and `sha256` are its content's, once that was read.

    `data` is never dumped; code that sends a task adds it explicitly.
    """

    name: FileName
    size: int | None = omit_default(None, ge=0)
    sha256: str | None = omit_default(None, pattern=r"^[0-9a-f]{64}$")
    data: bytes | None = Field(default=None, exclude=True, repr=False)

    @classmethod
    def of(cls, name: str, data: bytes) -> Self:
        """The file with this content."""
        return cls(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)

    @property
    def type(self) -> str:
        """Its media type."""
        return type_of(self.name)

    @property
    def about(self) -> str:
        """Name, type and size, for a participant."""
        return f"{self.name} ({self.type}, {self.size or 0:,} bytes)"


def _as_table(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


TaskFiles = tuple[Annotated[TaskFile, BeforeValidator(_as_table)], ...]


def problem_with_sizes(files: Iterable[TaskFile]) -> str | None:
    """Why these files are too large to be sent, or `None`."""
    sizes = {each.name: each.size or 0 for each in files}
    if (large := next((name for name, size in sizes.items() if size > MAX_FILE_BYTES), None)) is not None:
        return f"{printable(large)} has {sizes[large]} bytes, more than {MAX_FILE_BYTES}"
    if (total := sum(sizes.values())) > MAX_FILES_BYTES:
        return f"{total} bytes of files, more than {MAX_FILES_BYTES}"
    return None


def _decoded(value: object) -> object:
    """The contents by name, from base64. No error shows a value."""
    if not isinstance(value, Mapping):
        raise Invalid("not a table", 'send {"cv.pdf": "<base64>"}', shows_value=False)
    contents: dict[str, Any] = {}
    for name, text in value.items():
        try:
            contents[str(name)] = base64.b64decode(text.encode("ascii"), validate=True)
        except (AttributeError, UnicodeEncodeError, binascii.Error):
            raise Invalid(
                "not base64", "send the file's bytes as base64", key=printable(name), shows_value=False
            ) from None
    _differ([is_file_name(name) for name in contents])
    if problem := problem_with_sizes(TaskFile.of(*each) for each in contents.items()):
        raise Invalid(problem, "send smaller files", shows_value=False)
    return contents


# Of a request: `{name: base64}`.
FileContents = Annotated[dict[str, bytes], BeforeValidator(_decoded), at_most(1000)]


class NetworkTrace(Record):
    """The file with an attempt's requests (relative to its folder), its digest and the number of requests in it."""

    file: str
    sha256: str | None
    entries: int = Field(ge=0)

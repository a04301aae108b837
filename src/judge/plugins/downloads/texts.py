"""The text of a downloaded file: of text, CSV and JSON as it is, of a PDF what a separate program reads in it.

A file is what its first bytes say, whatever its name.
"""

import codecs
from pathlib import Path

from judge.evaluators.evidence import MissingEvidence
from judge.plugins.downloads.pdf_process import NotInstalled, pdf_text
from shared.files import read_file, reason_of

_MAX_BYTES = 10_000_000
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# Readers look for it in the first kilobyte.
_PDF, _PDF_WITHIN = b"%PDF-", 1024


class UnreadableFile(Exception):
    """The file has no text that can be compared; the message says why."""


def text_of_file(path: Path) -> str:
    """The text of a file. Raises `UnreadableFile`, or `MissingEvidence` where the judge lacks a program for it."""
    try:
        data = read_file(path, max_bytes=_MAX_BYTES)
    except (OSError, ValueError) as error:
        raise MissingEvidence(f"{path.name}: {reason_of(error)}") from None
    if _PDF in data[:_PDF_WITHIN]:
        try:
            return pdf_text(data)
        except NotInstalled as missing:
            raise MissingEvidence(str(missing)) from None
        except ValueError as error:
            raise UnreadableFile(f"a PDF that cannot be read: {error}") from None
    return _decoded(data)


def _decoded(data: bytes) -> str:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    try:
        if encoding is not None:
            return data.decode(encoding)
        if b"\0" in data:
            raise UnreadableFile("neither text nor a PDF")
        return data.decode()
    except UnicodeDecodeError:
        if encoding is not None:
            raise UnreadableFile("text in no known encoding") from None
        # As spreadsheets write it. Each byte is a character, so nothing of it is lost.
        return data.decode("cp1252", "replace")

"""The destinations of a report: a folder of pages and images, or a single HTML file."""

import base64
import mimetypes
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from judge.trajectory.network import NETWORK_FILE
from shared.files import copy_file, read_file
from shared.images import media_type, scaled_webp

# Two thirds of a typical screenshot's width, at which text is still readable.
MAX_IMAGE_WIDTH = 960
_MAX_UNREADABLE_BYTES = 1_000_000


class Output(Protocol):
    """Receives the parts of a report: pages, tables, and files of the run. Names are paths within it, with `/`."""

    def page(self, name: str, html: str) -> None: ...

    def table(self, name: str, text: str) -> None: ...

    def file(self, name: str, source: Path) -> None: ...


class Folder:
    """An existing folder. Files are hard links if the file system supports them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def page(self, name: str, html: str) -> None:
        """Write a page."""
        write(self._place(name), html)

    # A table is a text file, like a page.
    table = page

    def file(self, name: str, source: Path) -> None:
        """Link or copy a file."""
        place_file(source, self._place(name))

    def _place(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class SingleFile:
    """A stream of HTML between `Renderer.begin_bundle` and `end_bundle`: pages are templates, files are data blocks.

    `single.js` combines the two. Network traces are left out: they can be large, and the pages list the requests.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def page(self, name: str, html: str) -> None:
        """Add a page."""
        self._write(f'<template id="page:{name}">{html}</template>\n')

    def table(self, name: str, text: str) -> None:
        """Add a file to download."""
        self._embed(name, mimetypes.guess_type(name)[0] or "text/plain", text.encode("utf-8", "backslashreplace"))

    def file(self, name: str, source: Path) -> None:
        """Add an image, scaled. An image that cannot be decoded is added unchanged if it is small."""
        if source.name == NETWORK_FILE:
            return
        with suppress(OSError, ValueError):
            data = b"" if source.is_symlink() else read_file(source)
            if webp := scaled_webp(data, MAX_IMAGE_WIDTH):
                self._embed(name, "image/webp", webp)
            elif (kind := media_type(data)) and len(data) <= _MAX_UNREADABLE_BYTES:
                self._embed(name, kind, data)

    def _embed(self, name: str, kind: str, data: bytes) -> None:
        # A data block: with this type the browser neither executes it nor applies the script policy.
        self._write(f'<script type="text/plain" id="file:{name}" data-type="{kind}">')
        self._stream.write(base64.b64encode(data))
        self._write("</script>\n")

    def _write(self, text: str) -> None:
        self._stream.write(text.encode("utf-8", "backslashreplace"))


def place_file(source: Path, target: Path) -> None:
    """Put `source`, if it exists, at `target`: a hard link if the file system supports it, else a copy."""
    if source.is_symlink() or not source.is_file():
        return
    try:
        os.link(source, target)
    except OSError:
        # A different file system, or one without hard links.
        with suppress(OSError, ValueError):
            copy_file(source, target)


def write(path: Path, text: str) -> None:
    """Write a text, replacing characters that cannot be encoded."""
    path.write_bytes(text.encode("utf-8", "backslashreplace"))

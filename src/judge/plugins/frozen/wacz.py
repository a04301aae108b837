"""Archives as files: WACZ 1.1.1, a ZIP file with WARC records, an index and a list of pages.

In addition to the files of WACZ, there is `wabe/recording.json` (`ArchiveInfo`: format, walks) and, once the archive
has been checked, `wabe/checks.json`. All reads are bounded, and nothing is unpacked to disk.
"""

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from judge.plugins.frozen.exchanges import RecordedExchange, SiteRecording, Walk, header
from judge.plugins.frozen.warc import DamagedWarc, RecordPosition, read_warc, target_uri, warc_date, write_warc
from shared.errors import ConfigError
from shared.files import LfsPointer, read_file, write_atomic, write_errors
from shared.models import Record

FORMAT = 1
WACZ_VERSION = "1.1.1"
_WARC = "archive/data.warc.gz"
_INDEX = "indexes/index.cdx"
_PAGES = "pages/pages.jsonl"
_ABOUT = "wabe/recording.json"
_CHECKS = "wabe/checks.json"
_PACKAGE = "datapackage.json"
_PACKAGE_DIGEST = "datapackage-digest.json"
_MAX_FILE_BYTES = 2_000_000_000
_MAX_ENTRIES = 1_000
_MAX_LIST_BYTES = 1_000_000
_MAX_END_BYTES = 22 + 65_535
_MAX_TEXT_BYTES = 64_000_000
# The highest compression ratio of an entry; text is rarely above 50.
_MAX_RATIO = 1_100
# The maximum total size of the decompressed archive.
_MAX_TOTAL_BYTES = 4_000_000_000
_AGAIN = "record it again with wabe sites record"
_RECORD = "record the site with wabe sites record SCENARIO.toml -o FILE.wacz"
_WITHOUT_STATE = "it does not say which step and state each answer belongs to"
_GZIP, _WARC_BEGINS = b"\x1f\x8b", b"WARC/"
_SEARCHED_BYTES = 1_000
_SOFTWARE = "wabe"


class AboutWalk(Record):
    """One walk, as `exchanges.Walk`."""

    name: str = Field(max_length=300)
    start_ms: int
    task_id: str | None = None
    is_reference: bool = False
    passed: bool | None = None
    repeats: str | None = Field(default=None, max_length=300)


class ArchiveInfo(Record):
    """The archive's description of itself: the version of its format, and the walks."""

    format: Literal[1]
    walks: tuple[AboutWalk, ...]
    merged_from: tuple[str, ...] = ()


class TaskCheck(Record):
    """What the replay of one task's reference walk found, as counts of requests."""

    task_id: str
    requests: int = 0
    uncertain: int = 0
    decisive_misses: tuple[str, ...] = ()
    other_misses: int = 0
    passed: bool | None = None


class ArchiveCheck(Record):
    """The newest result of `wabe sites check`; `matcher` is the version that it was checked with.

    Not named `tasks`, because validators take a JSON file with that key for one of their own.
    """

    matcher: str
    scenario: str = ""
    of_tasks: tuple[TaskCheck, ...] = ()


@dataclass(frozen=True)
class ArchiveContents:
    """An archive's contents. `digest` covers the recording, which the results of later checks do not change."""

    recording: SiteRecording
    digest: str
    checked: ArchiveCheck | None = None
    merged_from: tuple[str, ...] = ()


def write_wacz(
    path: Path, recording: SiteRecording, *, checked: ArchiveCheck | None = None, merged_from: Iterable[str] = ()
) -> str:
    """Write an archive, and return its `ArchiveContents.digest`. Raises `ConfigError` if the file cannot be written."""
    warc = io.BytesIO()
    positions = list(write_warc(recording.exchanges, warc, file_name=_WARC.rpartition("/")[2], software=_SOFTWARE))
    about = ArchiveInfo(
        format=FORMAT, walks=tuple(AboutWalk(**vars(walk)) for walk in recording.walks), merged_from=tuple(merged_from)
    )
    files = {
        _WARC: warc.getvalue(),
        _INDEX: "".join(sorted(_index_line(each) for each in positions)).encode(),
        _PAGES: _pages(recording).encode(),
        _ABOUT: about.model_dump_json(indent=1).encode(),
    }
    if checked is not None:
        files[_CHECKS] = checked.model_dump_json(indent=1).encode()
    package = _json(_package(files, recording))
    signed = _json({"path": _PACKAGE, "hash": _hash(package)})
    data = _zip({**files, _PACKAGE: package, _PACKAGE_DIGEST: signed}, recording.clock_ms)
    with write_errors(path, "choose another -o"):
        write_atomic(path, data)
    return _recorded({name: _hash(files[name]) for name in (_WARC, _ABOUT)})


def read_wacz(path: Path) -> ArchiveContents:
    """The archive at `path`. Raises a `ConfigError` that says what is wrong with it, and what to do."""
    return parse_wacz(read_archive_file(path), path)


def read_archive_file(path: Path) -> bytes:
    """The bytes of an archive's file. Raises `ConfigError`."""
    try:
        return read_file(path, max_bytes=_MAX_FILE_BYTES)
    except FileNotFoundError:
        raise _error(path, "no such file", "give an archive, see wabe sites record") from None
    except IsADirectoryError:
        raise _error(path, "a folder, not a WACZ file", f"give one .wacz file; to make it, {_RECORD}") from None
    except LfsPointer as error:
        raise _error(path, str(error), "then try again") from None
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror}", "give a file") from None
    except ValueError as error:
        # Not a file, or too large a one.
        raise _error(path, str(error), "give a WACZ file, of fewer tasks if it is too large") from None


def parse_wacz(data: bytes, path: Path) -> ArchiveContents:
    """As `read_wacz`, from the file's bytes; `path` is for messages."""
    with _opened(data, path) as zipped:
        files = _Files(zipped, path)
        package = files.json(_PACKAGE)
        about = _about(files, path)
        resources = _hashes(package, path)
        _verify(files, resources, path)
        try:
            exchanges = tuple(read_warc(files.read(_WARC, _MAX_FILE_BYTES)))
        except DamagedWarc as error:
            raise _error(path, f"damaged: {error}", _AGAIN) from None
        checked = None
        if _CHECKS in files.names:
            try:
                checked = ArchiveCheck.model_validate(files.json(_CHECKS))
            except ValidationError:
                # Written by an older or newer version; the check can be repeated at any time.
                checked = None
    walks = tuple(Walk(**walk.model_dump()) for walk in about.walks)
    known = {walk.name for walk in walks}
    if strangers := {exchange.walk for exchange in exchanges} - known:
        raise _error(path, f"damaged: unknown walk {min(strangers)[:80]!r}", _AGAIN)
    return ArchiveContents(SiteRecording(walks, exchanges), _recorded(resources), checked, about.merged_from)


class _Files:
    """The entries of a ZIP file, read with bounds."""

    def __init__(self, zipped: zipfile.ZipFile, path: Path) -> None:
        self._zipped = zipped
        self._path = path
        self._total = 0
        infos = zipped.infolist()
        if len(infos) > _MAX_ENTRIES:
            raise _error(path, f"more than {_MAX_ENTRIES} files in it", _AGAIN)
        self.names = frozenset(info.filename for info in infos)
        if len(self.names) != len(infos):
            raise _error(path, "damaged: a file is in it twice", _AGAIN)
        for name in self.names:
            if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
                raise _error(path, f"a file in it has the name {name[:80]!r}", "do not use this archive")

    def read(self, name: str, limit: int = _MAX_TEXT_BYTES) -> bytes:
        try:
            info = self._zipped.getinfo(name)
        except KeyError:
            raise _error(self._path, f"{name} is missing", "give a WACZ file that wabe sites record wrote") from None
        self._total += info.file_size
        too_dense = info.file_size > max(1_000_000, info.compress_size * _MAX_RATIO)
        if info.file_size > limit or self._total > _MAX_TOTAL_BYTES or too_dense:
            raise _error(self._path, f"{name} is too large", "do not use this archive")
        try:
            with self._zipped.open(info) as stream:
                # One byte more than declared, in case the declared size is wrong.
                content = stream.read(info.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
            raise _error(self._path, f"damaged: {name} cannot be read", _AGAIN) from None
        if len(content) != info.file_size:
            raise _error(self._path, f"damaged: {name} is not complete", _AGAIN)
        return content

    def json(self, name: str) -> Any:
        try:
            return json.loads(self.read(name))
        except (ValueError, RecursionError):
            raise _error(self._path, f"damaged: {name} is not JSON", _AGAIN) from None


def _opened(data: bytes, path: Path) -> zipfile.ZipFile:
    # The size of its list of files, before the list is read. The record at the end has it; a comment may follow.
    at = data.rfind(b"PK\5\6", -_MAX_END_BYTES)
    if at >= 0 and int.from_bytes(data[at + 12 : at + 16], "little") > _MAX_LIST_BYTES:
        raise _error(path, f"more than {_MAX_ENTRIES} files in it", _AGAIN)
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError, UnicodeDecodeError):
        raise _error(path, *_instead(data)) from None


def _instead(data: bytes) -> tuple[str, str]:
    """What the file is instead of a ZIP file, and the remedy: people have recordings of other tools."""
    if not data:
        return "an empty file, not a WACZ file", _AGAIN
    start = data
    if data.startswith(_GZIP):
        with suppress(zlib.error):
            start = zlib.decompressobj(31).decompress(data, len(_WARC_BEGINS))
    if start.startswith(_WARC_BEGINS):
        return f"a WARC file, not a WACZ file, and {_WITHOUT_STATE}", _RECORD
    if data[:_SEARCHED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b'"log"' in data[:_SEARCHED_BYTES]:
        return f"a HAR file, not a WACZ file, and {_WITHOUT_STATE}", _RECORD
    return "not a WACZ file, or damaged", "give an archive, see wabe sites record"


def _about(files: _Files, path: Path) -> ArchiveInfo:
    if _ABOUT not in files.names:
        raise _error(path, f"recorded by another tool: {_WITHOUT_STATE}", _AGAIN)
    about = files.json(_ABOUT)
    version = about.get("format") if isinstance(about, dict) else None
    if version != FORMAT or isinstance(version, bool):
        is_newer = isinstance(version, int) and version > FORMAT
        remedy = "use the version of wabe that recorded it, or a newer one" if is_newer else _AGAIN
        raise _error(path, f"of format {str(version)[:20]}, and this version reads format {FORMAT}", remedy)
    try:
        return ArchiveInfo.model_validate(about)
    except ValidationError:
        raise _error(path, f"damaged: {_ABOUT} cannot be read", _AGAIN) from None


def _hashes(package: Any, path: Path) -> dict[str, str]:
    """The digests of the files, as `datapackage.json` lists them."""
    try:
        hashes = {str(each["path"]): str(each["hash"]) for each in package["resources"]}
    except (TypeError, KeyError):
        raise _error(path, f"damaged: {_PACKAGE} lists no files", _AGAIN) from None
    return hashes


def _verify(files: _Files, resources: Mapping[str, str], path: Path) -> None:
    package = files.read(_PACKAGE)
    signed = files.json(_PACKAGE_DIGEST)
    if not isinstance(signed, dict) or signed.get("hash") != _hash(package):
        raise _error(path, f"{_PACKAGE} differs from its digest", "get the archive again; it was changed or damaged")
    for name in (_WARC, _ABOUT, _CHECKS):
        if name in files.names or name != _CHECKS:
            limit = _MAX_FILE_BYTES if name == _WARC else _MAX_TEXT_BYTES
            if resources.get(name) != _hash(files.read(name, limit)):
                raise _error(
                    path, f"{name} differs from its digest", "get the archive again; it was changed or damaged"
                )


def _error(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(problem, location=str(path), remedy=remedy)


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _recorded(hashes: Mapping[str, str]) -> str:
    """The digest of what was recorded, in hexadecimal, from the digests of an archive's files."""
    digest_lines = "".join(f"{name} {hashes[name]}\n" for name in (_WARC, _ABOUT))
    return hashlib.sha256(digest_lines.encode()).hexdigest()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _package(files: Mapping[str, bytes], recording: SiteRecording) -> dict[str, Any]:
    created = warc_date(recording.clock_ms)
    return {
        "profile": "data-package",
        "wacz_version": WACZ_VERSION,
        "title": "Frozen site",
        "software": _SOFTWARE,
        "created": created,
        "modified": created,
        "resources": [
            {"name": name.rpartition("/")[2].lower(), "path": name, "hash": _hash(data), "bytes": len(data)}
            for name, data in files.items()
        ],
    }


def _zip(files: Mapping[str, bytes], clock_ms: int) -> bytes:
    out = io.BytesIO()
    # The same recording gives the same bytes.
    moment = warc_date(max(clock_ms, 315_532_800_000))
    when = tuple(int(part) for part in re.split(r"[-T:.Z]", moment)[:6])
    with zipfile.ZipFile(out, "w") as zipped:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, when)  # type: ignore[arg-type]
            # Stored, because readers seek in compressed data.
            info.compress_type = zipfile.ZIP_STORED if name.endswith(".gz") else zipfile.ZIP_DEFLATED
            zipped.writestr(info, data)
    return out.getvalue()


def _pages(recording: SiteRecording) -> str:
    lines = [json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"})]
    seen = set()
    for exchange in recording.exchanges:
        url = exchange.request.url
        if url not in seen and _is_page(exchange):
            seen.add(url)
            lines.append(
                json.dumps({"id": exchange.record_id, "url": url, "ts": warc_date(exchange.at_ms), "title": url})
            )
    return "\n".join(lines) + "\n"


def _is_page(exchange: RecordedExchange) -> bool:
    answer = exchange.answer
    return (
        answer is not None
        and exchange.request.method == "GET"
        and answer.status == 200
        and header(answer.headers, "content-type").lower().startswith("text/html")
    )


def _index_line(position: RecordPosition) -> str:
    answer = position.exchange.answer
    mime = header(answer.headers, "content-type").partition(";")[0].strip() if answer else ""
    url = target_uri(position.exchange.request.url)
    about = {
        "url": url,
        "mime": "warc/revisit" if position.is_revisit else mime or "unk",
        "status": str(answer.status if answer else 0),
        "digest": position.digest,
        "length": str(position.length),
        "offset": str(position.offset),
        "filename": _WARC.rpartition("/")[2],
    }
    moment = re.sub(r"[-T:Z]", "", warc_date(position.exchange.at_ms)).partition(".")[0]
    return f"{sort_key(url)} {moment} {json.dumps(about)}\n"


def sort_key(url: str) -> str:
    """The address in the form that indexes are sorted by: the host's labels reversed, in lower case."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url.replace(" ", "%20")
    is_address = ":" in host or host.replace(".", "").isdigit()
    labels = host if is_address else ",".join(reversed(host.removeprefix("www.").split(".")))
    at = f":{port}" if port and (parts.scheme, port) not in (("http", 80), ("https", 443)) else ""
    query = "?" + "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{labels}{at}){parts.path or '/'}{query}".lower().replace(" ", "%20")

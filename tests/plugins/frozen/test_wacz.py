import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.plugins.frozen.exchanges import SiteRecording
from judge.plugins.frozen.wacz import ArchiveCheck, TaskCheck, parse_wacz, read_wacz, sort_key, write_wacz
from plugins.frozen.made import answer, recording, request, walk
from shared.errors import ConfigError

WHERE = Path("shop.wacz")


def small() -> SiteRecording:
    return recording(
        walk("a", (request(), answer(b"<title>Shop</title>")), (request("/add", "POST", b"x=1"), answer(b"", 303))),
        walk("b", (request(), answer(b"<title>Shop</title>")), (request("/gone"), None)),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    result = tmp_path / "shop.wacz"
    write_wacz(result, small())
    return result


def changed(path: Path, files: dict[str, bytes | None]) -> bytes:
    """The archive with other contents for the named files; `None` leaves a file out."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            if (content := files.get(name, before.read(name))) is not None:
                after.writestr(name, content)
        for name in files.keys() - set(before.namelist()):
            after.writestr(name, files[name] or b"")
    return out.getvalue()


def test_what_is_read_is_what_was_written(path: Path) -> None:
    assert read_wacz(path).recording == small()


def test_the_same_recording_gives_the_same_file(path: Path, tmp_path: Path) -> None:
    write_wacz(tmp_path / "again.wacz", small())
    assert (tmp_path / "again.wacz").read_bytes() == path.read_bytes()


def test_the_digest_covers_what_is_recorded_and_not_what_was_checked_later(path: Path, tmp_path: Path) -> None:
    checked = ArchiveCheck(matcher="1", of_tasks=(TaskCheck(task_id="t1", requests=3),))
    write_wacz(tmp_path / "checked.wacz", small(), checked=checked)
    write_wacz(tmp_path / "other.wacz", recording(walk("a", (request(), answer(b"other")))))
    archives = [read_wacz(each) for each in (path, tmp_path / "checked.wacz", tmp_path / "other.wacz")]
    assert archives[1].checked == checked
    assert archives[0].digest == archives[1].digest != archives[2].digest


def test_the_package_has_what_wacz_demands(path: Path) -> None:
    with zipfile.ZipFile(path) as zipped:
        package = json.loads(zipped.read("datapackage.json"))
        pages = [json.loads(line) for line in zipped.read("pages/pages.jsonl").splitlines()]
        assert zipped.getinfo("archive/data.warc.gz").compress_type == zipfile.ZIP_STORED
    assert (package["profile"], package["wacz_version"]) == ("data-package", "1.1.1")
    assert {each["path"] for each in package["resources"]} >= {"archive/data.warc.gz", "indexes/index.cdx"}
    assert pages[0]["format"] == "json-pages-1.0"
    assert [page["url"] for page in pages[1:]] == ["http://shop.test/"]


def test_lines_of_the_index_are_sorted_and_name_every_answer(path: Path) -> None:
    with zipfile.ZipFile(path) as zipped:
        lines = zipped.read("indexes/index.cdx").decode().splitlines()
    assert lines == sorted(lines)
    assert [line.split(" ", 2)[0] for line in lines] == ["test,shop)/", "test,shop)/", "test,shop)/add"]


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.org/A?b=2&a=1", "org,example)/a?a=1&b=2"),
        ("http://127.0.0.1:8000/", "127.0.0.1:8000)/"),
        ("https://a.test:443", "test,a)/"),
    ],
)
def test_sort_keys(url: str, key: str) -> None:
    assert sort_key(url) == key


BAD = [
    ({"wabe/recording.json": None}, "recorded by another tool"),
    ({"wabe/recording.json": b'{"format": 0}'}, "of format 0.*record it again"),
    ({"wabe/recording.json": b'{"format": 7}'}, "of format 7.*or a newer one"),
    ({"wabe/recording.json": b"[]"}, "of format None"),
    ({"wabe/recording.json": b"{"}, "is not JSON"),
    ({"wabe/recording.json": b'{"format": 1, "walks": 3}'}, "cannot be read"),
    ({"datapackage.json": None}, "datapackage.json is missing"),
    ({"datapackage.json": b"{}"}, "lists no files"),
    ({"datapackage-digest.json": b"{}"}, "differs from its digest"),
    ({"archive/data.warc.gz": b"changed"}, "archive/data.warc.gz differs from its digest"),
    ({"archive/data.warc.gz": None}, "archive/data.warc.gz is missing"),
    ({"../../etc/passwd": b"x"}, "has the name"),
    ({"/etc/passwd": b"x"}, "has the name"),
]


@pytest.mark.parametrize(("files", "message"), BAD)
def test_a_bad_archive_is_one_clear_line(path: Path, files: dict[str, bytes | None], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        parse_wacz(changed(path, files), WHERE)
    assert str(error.value).startswith("shop.wacz: ")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_wacz(tmp_path / "none.wacz")


HAR = b'{"log": {"version": "1.2", "entries": []}}'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n"
STATELESS = "not a WACZ file, and it does not say which step and state each answer belongs to"


@pytest.mark.parametrize(
    ("data", "problem", "remedy"),
    [
        (b"WARC/1.1\r\n", f"a WARC file, {STATELESS}", "record the site with wabe sites record"),
        (
            gzip.compress(b"WARC/1.1\r\n", mtime=0),
            f"a WARC file, {STATELESS}",
            "record the site with wabe sites record",
        ),
        (HAR, f"a HAR file, {STATELESS}", "record the site with wabe sites record"),
        (b"\xef\xbb\xbf\n" + HAR, f"a HAR file, {STATELESS}", "record the site with wabe sites record"),
        (gzip.compress(HAR, mtime=0), "not a WACZ file, or damaged", "give an archive"),
        (b"", "an empty file, not a WACZ file", "record it again"),
        (b"<html>", "not a WACZ file, or damaged", "give an archive"),
        (LFS, "a Git LFS pointer, not the file itself: run `git lfs pull`", "then try again"),
        (None, "a folder, not a WACZ file", "give one .wacz file; to make it, record the site with wabe sites record"),
    ],
)
def test_what_people_give_instead_has_a_remedy_in_one_line(
    tmp_path: Path, data: bytes | None, problem: str, remedy: str
) -> None:
    path = tmp_path / "shop.wacz"
    path.mkdir() if data is None else path.write_bytes(data)
    with pytest.raises(ConfigError) as error:
        read_wacz(path)
    assert str(error.value).startswith(f"{path}: {problem} ({remedy}")
    assert "\n" not in str(error.value)


def test_a_file_that_inflates_without_end_is_refused(path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            after.writestr(name, bytes(80_000_000) if name == "datapackage.json" else before.read(name))
    with pytest.raises(ConfigError, match="is too large"):
        parse_wacz(out.getvalue(), WHERE)


def test_a_long_list_of_files_is_refused_before_it_is_read(path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name))
        for number in range(20_000):
            after.writestr(f"f{number}", b"")
    with pytest.raises(ConfigError, match="more than 1000 files in it"):
        parse_wacz(out.getvalue(), WHERE)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_not_a_file_is_not_an_archive(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_wacz(tmp_path / "x")


@given(data=st.binary(max_size=600))
def test_any_other_file_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match="not a WACZ file"):
        parse_wacz(data, WHERE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), change=st.binary(min_size=1, max_size=8), cut=st.booleans())
def test_a_damaged_archive_is_refused_or_means_the_same(path: Path, place: int, change: bytes, cut: bool) -> None:
    data = path.read_bytes()
    at = place % len(data)
    damaged = data[:at] if cut else data[:at] + change + data[at + len(change) :]
    try:
        archive = parse_wacz(damaged, WHERE)
    except ConfigError as error:
        assert error.location == "shop.wacz"  # noqa: PT017
        return
    assert archive.recording == small()

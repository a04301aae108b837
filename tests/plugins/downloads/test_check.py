"""`download` checks on recorded downloads."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from helpers.pdf import a_pdf
from helpers.trajectory.recordings import SHOP, RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.plugins.downloads.check import DownloadCheck
from judge.plugins.downloads.pdf_program import MAX_OUTPUT_BYTES, MAX_PAGES
from judge.records.assertions import Assertion
from judge.records.causes import Cause
from judge.records.files import Download
from judge.trajectory.record import Trajectory

CSV = b"id,total\r\nL-7,40\r\nL-9,12\r\n"

EVIL, FILES = "http://evil.test", "https://files.test"


def a_download(content: bytes = CSV, **changes: Any) -> tuple[Download, bytes]:
    known = {
        "name": "orders-2026.csv",
        "type": "text/csv",
        "sender": SHOP,
        "chain": (SHOP,),
        "cause": Cause(by="site"),
        "step": 1,
        "size": len(content),
    }
    return Download(**known | {"sha256": hashlib.sha256(content).hexdigest()} | changes), content


def attempt(folder: Path, check: dict[str, Any], *downloads: tuple[Download, bytes]) -> Trajectory:
    recorded = recorded_attempt(folder, [{"kind": "download", **check}], [RecordedStep(), RecordedStep()])
    remaining = []
    (folder / "downloads").mkdir(exist_ok=True)
    for number, (download, content) in enumerate(downloads, 1):
        name = f"downloads/{number:03d}.bin"
        (folder / name).write_bytes(content)
        remaining.append(download.model_copy(update={"file": name} if download.state == "complete" else {}))
    first, *others = recorded.attempt.steps
    steps = (first.model_copy(update={"downloaded": tuple(remaining)}), *others)
    return recorded.model_copy(update={"attempt": recorded.attempt.model_copy(update={"steps": steps})})


def assertion_on(folder: Path, check: dict[str, Any], *downloads: tuple[Download, bytes]) -> Assertion:
    (one,) = evaluate(attempt(folder, check, *downloads))
    return one


JSON = json.dumps({"total": 12, "items": [{"id": "L-7"}]}).encode()
PASSES: list[tuple[dict[str, Any], tuple[Download, bytes]]] = [
    ({"name": "orders*.csv", "text": {"contains": "L-7"}}, a_download()),
    ({"type": "text/*", "size": len(CSV)}, a_download()),
    ({"sha256": hashlib.sha256(CSV).hexdigest().upper()}, a_download()),
    ({"text": {"contains": ["L-7", "L-9"]}}, a_download()),
    ({"text": {"pattern": r"(?m)^L-\d,(\d+)$", "sorted": "descending", "max": 40, "count": 2}}, a_download()),
    ({"text": {"json": {"$.total": 12, "items[0].id": "L-*"}}}, a_download(JSON, type="application/json")),
    ({"text": {"contains": "Größe"}}, a_download("Größe".encode("cp1252"))),
    ({"text": {"contains": "Größe"}}, a_download("Größe".encode("utf-16"))),
    # What it is, its content says.
    ({"text": {"contains": "Invoice L-7"}}, a_download(a_pdf(["Invoice L-7"]), name="a.bin", type="x/y")),
    ({"text": {"contains": "gone"}, "not": True}, a_download()),
    ({"name": "*.csv"}, a_download(cause=Cause(by="unknown"))),
    # The site's own link to it may lead to another one, and what a page makes has no address.
    ({"name": "*.csv", "from": [f"{FILES}/"]}, a_download(chain=(SHOP, FILES))),
    ({"name": "*.csv"}, a_download(chain=())),
]
FAILS: list[tuple[dict[str, Any], tuple[Download, bytes], str]] = [
    ({"name": "orders.csv"}, a_download(), "no such download; instead orders-2026.csv"),
    ({"type": "application/json"}, a_download(), 'type "text/csv"'),
    ({"text": {"contains": "L-8"}}, a_download(), 'no "L-8" in'),
    ({"text": {"json": {"total": 13}}}, a_download(JSON), "text total is 12"),
    ({"text": {"json": {"total": 12}}}, a_download(), "not readable as JSON"),
    ({"text": {"contains": "L-7"}}, a_download(b"L-7\0\xff"), "neither text nor a PDF"),
    ({"text": {"contains": "L-7"}}, a_download(b"%PDF-1.4 broken"), "a PDF that cannot be read"),
    ({"text": {"contains": "x"}}, a_download(a_pdf(["x"], pages=MAX_PAGES + 1)), f"more than {MAX_PAGES}"),
    ({"text": {"contains": "L-7"}}, a_download(state="cut", size=None, sha256=None), "larger than what is kept"),
    ({"name": "*.csv"}, a_download(state="unfinished"), "not finished at the next look"),
    ({"name": "*.csv"}, a_download(state="failed"), "could not finish"),
    ({"name": "*.csv"}, a_download(sender="http://other.test"), "started by"),
    ({"name": "*.csv"}, a_download(sender="browser"), "the participant opened or saved itself"),
    ({"name": "*.csv"}, a_download(sender=None), "nobody knows whom"),
    ({"name": "*.csv"}, a_download(cause=Cause(by="editor")), "inside an editor"),
    ({"name": "*.csv"}, a_download(cause=Cause(by="inserted")), "as an attack"),
    (
        {"name": "*.csv"},
        a_download(cause=Cause(by="unknown", after="editor")),
        "may have been started inside an editor",
    ),
    ({"name": "*.csv"}, a_download(chain=(EVIL,)), f'from "{EVIL}", which is not the task'),
    ({"name": "*.csv", "from": [FILES]}, a_download(chain=(SHOP, EVIL, FILES)), "allowed_sites, or from"),
    ({"name": "*.csv", "from": [EVIL]}, a_download(sender=EVIL, chain=(EVIL,)), "started by"),
    # Whoever started it.
    ({"name": "*.csv", "not": True}, a_download(sender=None), "orders-2026.csv"),
]


@pytest.mark.parametrize(("check", "download"), PASSES)
def test_a_download_as_expected_passes(tmp_path: Path, check: dict[str, Any], download: tuple[Download, bytes]) -> None:
    one = assertion_on(tmp_path, check, download)
    assert one.passed, one.found


@pytest.mark.parametrize(("check", "download", "why"), FAILS)
def test_any_other_fails_with_the_reason(
    tmp_path: Path, check: dict[str, Any], download: tuple[Download, bytes], why: str
) -> None:
    one = assertion_on(tmp_path, check, download)
    assert (one.passed, why in one.found) == (False, True), one.found


def test_the_last_one_counts_unless_any_does(tmp_path: Path) -> None:
    both = a_download(), a_download(b"old", step=2)
    check = {"name": "orders-*.csv", "text": {"contains": "L-7"}}
    assert assertion_on(tmp_path / "a", check, *both).passed is False
    one = assertion_on(tmp_path / "b", check | {"at": "any"}, *both)
    assert (one.passed, one.step) == (True, 0)
    assert assertion_on(tmp_path / "c", {"name": "*.csv"}).found == "nothing was downloaded"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_times_counts_downloads(tmp_path: Path, count: int) -> None:
    downloads = [a_download(b"a draft"), *[a_download()] * count]
    check = {"text": {"contains": "L-7"}, "times": 2}
    assert assertion_on(tmp_path, check, *downloads).passed is (count == 2)
    unknown = (Download(name="", state="left_out"), b"")
    assert assertion_on(tmp_path, check, unknown, *downloads).passed is False


def test_downloads_beyond_those_recorded_could_be_the_last(tmp_path: Path) -> None:
    more = Download(state="left_out"), b""
    check = {"name": "*.csv"}
    assert "more downloads than are recorded" in assertion_on(tmp_path / "a", check, a_download(), more).found
    assert assertion_on(tmp_path / "b", check, more, a_download()).passed
    assert assertion_on(tmp_path / "c", check | {"not": True}, more).passed is False


def test_a_kept_file_that_is_gone_leaves_the_check_undecided(tmp_path: Path) -> None:
    recorded = attempt(tmp_path, {"text": {"contains": "L-7"}}, a_download())
    (tmp_path / "downloads" / "001.bin").write_bytes(b"L-7, forged")
    (changed,) = evaluate(recorded)
    (tmp_path / "downloads" / "001.bin").unlink()
    (gone,) = evaluate(recorded)
    assert (changed.passed, gone.passed) == (None, None)
    assert "not the file that was recorded" in changed.found


@pytest.mark.slow
def test_text_without_end_in_a_pdf_is_refused(tmp_path: Path) -> None:
    lines = ["x" * 1_000] * (MAX_OUTPUT_BYTES // 150_000)
    one = assertion_on(tmp_path, {"text": {"contains": "x"}}, a_download(a_pdf(lines, pages=MAX_PAGES)))
    assert "bytes of text" in one.found


@pytest.mark.parametrize("check", [check for check, _ in PASSES])
def test_a_check_is_recorded_as_it_was_written(check: dict[str, Any]) -> None:
    result = DownloadCheck.model_validate({"kind": "download", **check})
    assert DownloadCheck.model_validate(result.model_dump(mode="json", exclude_defaults=True)) == result

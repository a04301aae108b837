"""The page of all runs: what it serves, to whom, and what it changes."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from helpers.results import a_finished_run, a_result, a_verdict
from helpers.runs import a_png, say_everywhere, write_synthetic_run
from judge.plugins.all_runs.index import RunIndex
from judge.plugins.all_runs.notes import NotesFolder
from judge.plugins.all_runs.page import runs_routes, serve_runs
from judge.server.live_records import LiveRecords, live_address
from judge.store.layout import RunStore
from judge.store.matrices import Cell, Matrix
from shared.a2a.serving import listen
from shared.files import write_json
from shared.pages import TOKEN_HEADER

HOSTILE = "</td><script>alert(1)</script><a href='http://evil.test/'>http://evil.test/ \u202e"


@pytest.fixture(autouse=True)
def _always_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.plugins.all_runs.page._AGE_S", -1.0)


@asynccontextmanager
async def opened(folder: Path, *submissions: Path, peer: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=runs_routes(RunIndex(folder, submissions)))
    transport = httpx.ASGITransport(app, client=(peer, 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9009") as client:
        yield client


def rows(html: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"]+)"', html)


def a_run(folder: Path, run_id: str, version: str = "1", outcome: Any = "success", **record: Any) -> RunStore:
    run = a_finished_run(folder, a_result("t1", verdict=a_verdict(outcome)))
    store = RunStore(folder, run_id)
    run.folder.rename(store.folder)
    identity = {"card_name": "mine", "card_version": version}
    known = {"run_id": run_id, "identity": identity, "scenario": {"name": "demo/scenario.toml"}}
    store.write_run({**(store.read_run() or {}), **known, **record})
    return store


async def test_the_page_lists_all_runs_and_narrows_them_by_its_address(tmp_path: Path) -> None:
    for number in range(3):
        a_run(tmp_path, f"n-{number}", str(number), started_at=1_790_000_000.0 + 86_400 * number, resumed_at=None)
    async with opened(tmp_path) as client:
        page = await client.get("/")
        assert rows(page.text) == ["n-2", "n-1", "n-0"]
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["X-Frame-Options"] == "DENY"
        assert 'href="/live/n-2/report/index.html"' in page.text
        # The three versions are a trend.
        assert "mine on demo/scenario.toml" in page.text
        assert rows((await client.get("/?search=n-1&scenario=%3Ddemo/scenario.toml")).text) == ["n-1"]
        assert rows((await client.get("/?since=2026-09-23&unknown=1")).text) == ["n-2"]
        assert (await client.get("/?since=tomorrow")).status_code == 400


async def test_long_lists_have_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.plugins.all_runs.page._ROWS", 2)
    for number in range(5):
        a_run(tmp_path, f"n-{number}", started_at=1_790_000_000.0 + number, resumed_at=None)
    async with opened(tmp_path) as client:
        last = (await client.get("/?state=finished&page=3")).text
        assert rows(last) == ["n-0"]
        assert 'href="/?state=finished&amp;page=2"' in last
        # On a phone, pages are shorter.
        phone = {"User-Agent": "Mozilla/5.0 (Android) Mobile"}
        monkeypatch.setattr("judge.plugins.all_runs.page._ROWS_ON_PHONE", 1)
        assert rows((await client.get("/", headers=phone)).text) == ["n-4"]
        for page in ("9", "0", "-1", "x", "9" * 50):
            assert (await client.get("/", params={"page": page})).status_code == 200


async def test_a_matrix_is_one_row_that_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.plugins.all_runs.page._ROWS", 2)
    for number in range(4):
        outcome = "failure" if number == 1 else "success"
        a_run(tmp_path, f"n-{number}", outcome=outcome, started_at=1_790_000_000.0 + number, resumed_at=None)
    cells = tuple(Cell(scenario="s", agent="a", asked_sha256="", run_id=f"n-{number}") for number in (1, 2, 9))
    write_json(tmp_path / "matrices/m.json", Matrix(matrix_id="m-1", started_at=1.0, cells=cells).model_dump())
    async with opened(tmp_path) as client:
        page = (await client.get("/?agent=mine")).text
        # One row of the two that a page has.
        assert (rows(page), "Matrix of 2 runs" in page, "Page 1 of 2" in page) == (["n-3"], True, True)
        assert "<b>0.0 %</b> to <b>100.0 %</b>" in re.sub(r"\s+", " ", page)
        address = re.findall(r'href="([^"]+)" aria-expanded="false"', page)[0].replace("&amp;", "&")
        assert address == "/?agent=mine&page=1&open=m-1"
        assert rows((await client.get(address)).text) == ["n-3", "n-2", "n-1"]
        # What a filter leaves of it.
        assert rows((await client.get("/?search=n-2")).text) == ["n-2"]


async def test_a_report_and_a_comparison_are_made_from_the_records(tmp_path: Path) -> None:
    for run_id, outcome in (("r1", "success"), ("r2", "failure")):
        store = a_run(tmp_path, run_id, outcome=outcome)
        (store.folder / "report").mkdir()
        (store.folder / "report" / "index.html").write_text("planted")
    async with opened(tmp_path) as client:
        report = await client.get("/live/r1/report/index.html")
        assert (report.status_code, "planted" in report.text) == (200, False)
        compared = await client.get("/compare/r1,r2/index.html")
        assert "Comparison of 2 runs" in compared.text
        assert (await client.get("/compare/r1,r2/b/index.html")).status_code == 200
        chosen = await client.get("/compare?run=r1&run=r2")
        assert chosen.headers["location"] == "/compare/r1,r2/index.html"


@pytest.mark.parametrize(
    ("status", "path"),
    [
        (404, "/live/other/report/index.html"),
        (404, "/live/r1/report/..%2F..%2Frun.json"),
        (404, "/live/r1/report/run.json"),
        (404, "/live/..%2Foutside/report/index.html"),
        (404, "/live/r1%2Fshards%2F000-of-002/report/index.html"),
        (404, "/compare/r1,other/index.html"),
        (404, "/compare/r1,..%2F..%2Fetc/index.html"),
        (400, "/compare/r1/index.html"),
        (400, "/compare/r1,r1/index.html"),
        (400, f"/compare/{','.join(f'r{number}' for number in range(13))}/index.html"),
        (404, "/r1/run.json"),
    ],
)
async def test_nothing_else_can_be_read(tmp_path: Path, status: int, path: str) -> None:
    a_run(tmp_path, "r1")
    a_run(tmp_path, "r2")
    async with opened(tmp_path) as client:
        assert (await client.get(path)).status_code == status


async def test_nobody_elsewhere_sees_the_page(tmp_path: Path) -> None:
    a_run(tmp_path, "r1")
    paths = ("/", "/live/r1/report/index.html", "/compare?run=r1", "/compare/r1,r2/index.html")
    async with opened(tmp_path, peer="192.168.1.7") as client:
        assert {(await client.get(path)).status_code for path in paths} == {403}
    async with opened(tmp_path) as client:
        headers = {"Host": "rebound.attacker.test:9009"}
        assert {(await client.get(path, headers=headers)).status_code for path in paths} == {403}


async def changed(client: httpx.AsyncClient, change: Any, **headers: str) -> httpx.Response:
    token = re.findall(r'data-token="([^"]+)"', (await client.get("/")).text)[0]
    own = {"Origin": "http://localhost:9009", TOKEN_HEADER: token, "Content-Type": "application/json"}
    return await client.post("/notes", content=json.dumps(change), headers={**own, **headers})


async def test_tags_and_notes_are_kept_shown_and_searched(tmp_path: Path) -> None:
    store = a_run(tmp_path, "r1")
    a_run(tmp_path, "r2")
    before = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
    async with opened(tmp_path) as client:
        answer = await changed(client, {"key": "r1", "notes": {"tags": ["best"], "note": HOSTILE}})
        assert (answer.status_code, answer.json()["tags"]) == (200, ["best"])
        page = (await client.get("/?search=evil&tag=best")).text
        assert rows(page) == ["r1"]
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
    assert {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("status", "change", "headers"),
    [
        (422, {"key": "r9", "notes": {}}, {}),
        (422, {"key": "../r1", "notes": {}}, {}),
        (422, {"key": "r1", "notes": {"tags": ["a,b"]}}, {}),
        (422, {"key": "r1", "notes": {"note": "x" * 3_000}}, {}),
        (422, {"key": "r1", "notes": {}, "state": "finished"}, {}),
        (403, {"key": "r1", "notes": {"note": "x"}}, {"Origin": "http://evil.test"}),
        (403, {"key": "r1", "notes": {"note": "x"}}, {TOKEN_HEADER: "guessed"}),
        (415, {"key": "r1", "notes": {"note": "x"}}, {"Content-Type": "text/plain"}),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_nothing_else_can_be_changed(
    tmp_path: Path, status: int, change: dict[str, Any], headers: dict[str, str]
) -> None:
    a_run(tmp_path, "r1")
    async with opened(tmp_path) as client:
        answer = await changed(client, change, **headers)
        assert answer.status_code == status
        assert answer.json()["error"]
    assert NotesFolder(tmp_path).read_all() == {}


def links_in(html: str) -> list[str]:
    """Every address in the page to which a browser could go."""
    results: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            results.extend(value or "" for name, value in attrs if name in ("href", "src", "action", "formaction"))

    Reader().feed(html)
    return results


async def test_what_runs_and_submissions_say_is_text_and_no_address_of_theirs_is_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "submissions"
    folder.mkdir()
    store = write_synthetic_run(tmp_path / "out", "r1", tasks=1, steps=1, image=a_png(32, 18))
    say_everywhere(store, HOSTILE)
    identity = {"name": HOSTILE, "card_name": HOSTILE, "model": HOSTILE, "scenario": HOSTILE}
    detail = {"success_rate": 50.0, "judge": {"method": HOSTILE}, "provenance": {"identity": identity}}
    submission = {"participants": {HOSTILE: "x"}, "results": [{"winner": HOSTILE, "detail": detail}]}
    (folder / "a'b<b>.json").write_text(json.dumps(submission))
    async with opened(tmp_path / "out", folder) as client:
        page = (await client.get("/")).text
        assert len(rows(page)) == 2
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert links_in(page)
        assert [link for link in links_in(page) if not link.startswith(("/", "#", "data:"))] == []
        (key,) = (key for key in rows(page) if key.startswith("file-"))
        # A submission has no report and cannot be compared, but it can have notes.
        assert f"/live/{key}" not in page
        assert (await changed(client, {"key": key, "notes": {"note": "theirs"}})).status_code == 200
        assert rows((await client.get("/?search=theirs")).text) == [key]


async def test_a_running_assessment_is_on_top_with_a_link_to_its_live_page(tmp_path: Path) -> None:
    store = a_run(tmp_path, "r1", state="running")
    LiveRecords(tmp_path, address="http://127.0.0.1:9123/").remember("r1")
    async with opened(tmp_path) as client:
        with store.held("judge"):
            page = (await client.get("/")).text
            assert "1 of 1 attempt done" in page
            assert '<a href="http://127.0.0.1:9123/" rel="noreferrer">Live page</a>' in page
        ended = (await client.get("/")).text
        assert "127.0.0.1:9123" not in ended
        assert "interrupted" in ended


@pytest.mark.parametrize(
    "mark",
    [
        "machine",
        "machine\n",
        "machine\njavascript:alert(1)",
        "machine\nhttp://evil.test/path",
        "\nhttp://a b:1/",
        "m" * 500,
    ],
)
def test_a_mark_without_the_address_of_a_judge_is_not_a_link(tmp_path: Path, mark: str) -> None:
    store = a_run(tmp_path, "r1", state="running")
    (store.folder / ".live").write_text(mark)
    with store.held("judge"):
        assert live_address(store) is None


async def test_serving_all_runs_says_where_and_how_many_and_answers(tmp_path: Path) -> None:
    a_run(tmp_path, "r1")
    shutil.copytree(tmp_path / "runs" / "r1", tmp_path / "runs" / "r2")
    known: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_runs(
            tmp_path,
            listen("127.0.0.1", 0),
            lambda address, count: known.set_result((address, count)),
            takes_signals=False,
        )
    )
    try:
        address, count = await known
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            assert (count, (await client.get(address)).status_code) == (2, 200)
    finally:
        serving.cancel()
        await asyncio.wait([serving])

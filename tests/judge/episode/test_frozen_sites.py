"""Attempts on frozen sites, from the request to the record: a real browser, and no network for its pages."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import (
    LiveJudge,
    ParticipantTurn,
    Script,
    always_yes,
    finish,
    live_judge,
    participant,
    ref,
    some_tasks,
    tool_call,
)
from helpers.llm.servers import ModelServer
from helpers.network.archives import BEGAN, SHOP, use_pages, write_archive
from judge.trajectory.files import load_trajectory

pytestmark = pytest.mark.e2e

HOME = """<title>Shop</title><h1>Lamps</h1><a href="/lamp">Lamp</a><a href="/rug">Rug</a><p id="date"></p>
<script>date.textContent = new Date().toISOString()</script>"""
PAGES = {SHOP: HOME, f"{SHOP}lamp": "<title>Lamp</title><h1>Brass lamp</h1>", f"{SHOP}api": '{"sold": 1}'}
LIST = """<title>List</title><h1 id="heading">One lamp</h1><a href="/lamp">Lamp</a>
<button onclick="fetch('/more').then(more => more.ok && (heading.textContent = 'Two'))">More</button>"""
PAGES[f"{SHOP}list"] = LIST
NONE_COVERED = {"full": 0, "uncertain": 0, "off_archive": 0, "unconfirmed": 0, "lower_bound": 0.0, "upper_bound": 0.0}
CHECKS = ({"kind": "page", "url": "/lamp", "title": "Lamp"}, {"kind": "fetch", "url": "/api", "response": {"sold": 1}})


@pytest.fixture
async def judge(tmp_path: Path, browser_files: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveJudge]:
    use_pages(monkeypatch)
    look_up = socket.getaddrinfo

    def only_loopback(host: Any, *arguments: Any, **more: Any) -> Any:
        assert host in ("127.0.0.1", "localhost"), host
        return look_up(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", only_loopback)
    write_archive(tmp_path / "shop.pages", PAGES, closed="its reference walk has a decisive miss")
    archives = {SHOP: {"path": str(tmp_path / "shop.pages")}}
    # Never asked, because checks decide.
    with ModelServer(always_yes) as model:
        async with live_judge(tmp_path, browser_files, model, judge_model="offline", archives=archives) as judge:
            yield judge


def buys(name: str) -> Script:
    """Follows a link, and finishes."""

    def script(turn: ParticipantTurn) -> str:
        return finish() if turn.n else tool_call("browser_click", ref=ref(turn, f'link "{name}"'))

    return script


async def test_a_task_is_played_and_checked_on_its_archive(judge: LiveJudge) -> None:
    assessed = await judge.play(buys("Lamp"), SHOP, checks=CHECKS)
    assert assessed.verdict == ("success", "finished")
    assert assessed.entry["coverage"] == "full"
    assert assessed.detail["coverage"] == {**NONE_COVERED, "full": 1, "lower_bound": 100.0, "upper_bound": 100.0}
    result = assessed.result()
    assert (result["settle"], result["coverage"]) == ("page-time", "full")
    frozen = result["frozen"]
    assert (frozen["sites"], frozen["live"]) == (["https://shop.example"], [])
    assert frozen["clock_ms"] == round(BEGAN.timestamp() * 1000)
    requests = [(each["step"], each["url"], each["grade"]) for each in frozen["ledger"] if "favicon" not in each["url"]]
    assert requests == [(0, SHOP, "exact"), (1, f"{SHOP}lamp", "exact"), (1, f"{SHOP}api", "exact")]
    folder = assessed.folder / "results" / "t0"
    assert load_trajectory(folder).is_digested
    assert f"{BEGAN:%Y-%m-%dT%H:%M}" in (folder / result["steps"][0]["snapshot"]).read_text()


async def test_a_miss_neither_causes_a_retry_nor_leaves_the_attempt_unscored(judge: LiveJudge) -> None:
    assessed = await judge.play(buys("Rug"), SHOP, checks=CHECKS, max_task_retries=2)
    assert assessed.verdict == ("failure", "finished")
    assert assessed.result()["attempt"] == 1
    assert assessed.detail["coverage"] == {**NONE_COVERED, "off_archive": 1, "upper_bound": 100.0}
    assert assessed.detail["success_rate_of_all"] == 0.0


def goes(*names: str) -> Script:
    """Clicks on these in turn, and finishes."""

    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_click", ref=ref(turn, names[turn.n])) if turn.n < len(names) else finish()

    return script


async def test_a_success_on_a_page_that_misses_an_answer_is_unscored_and_final(judge: LiveJudge) -> None:
    one = {"kind": "element", "element": 'heading "One lamp"'}
    assessed = await judge.play(goes('button "More"'), f"{SHOP}list", checks=(one,), max_task_retries=2)
    assert assessed.verdict == ("unscored", "finished")
    assert (assessed.entry["reason_code"], assessed.result()["attempt"]) == ("off_archive", 1)
    assert assessed.detail["is_complete"]
    covered = {"off_archive": 1, "unconfirmed": 1, "upper_bound": 100.0}
    assert assessed.detail["coverage"] == {**NONE_COVERED, **covered}


async def test_another_page_replaces_the_one_that_misses_an_answer(judge: LiveJudge) -> None:
    script = goes('button "More"', 'link "Lamp"')
    assessed = await judge.play(script, f"{SHOP}list", checks=CHECKS[:1])
    assert assessed.verdict == ("success", "finished")
    assert assessed.entry["coverage"] == "off_archive"


async def test_a_first_page_that_is_not_recorded_fails_the_attempt(judge: LiveJudge) -> None:
    website = f"{SHOP}sale"
    assessed = await judge.play(lambda _: finish(), website, checks=CHECKS, max_task_retries=2)
    assert (assessed.verdict, assessed.result()["attempt"]) == (("failure", "finished"), 1)


async def test_in_real_time_the_record_says_that_the_clock_is_the_machines(judge: LiveJudge) -> None:
    assessed = await judge.play(buys("Lamp"), SHOP, checks=CHECKS, settle="real-time")
    assert assessed.verdict == ("success", "finished")
    assert assessed.result()["frozen"]["clock_ms"] is None


async def test_a_task_whose_own_walk_has_a_decisive_miss_is_excluded_with_that_reason(judge: LiveJudge) -> None:
    tasks = [{**each, "checks": list(CHECKS)} for each in some_tasks(SHOP, 2)]
    tasks[1]["task_id"] = "closed"
    async with participant(buys("Lamp")) as url:
        assessed = await judge.ask(url, tasks)
        refused = await judge.ask(url, tasks[1:])
    assert [entry["verdict"] for entry in assessed.detail["tasks"]] == ["success", "aborted"]
    (left_out,) = assessed.detail["excluded"]
    why = "shop.pages: its reference walk has a decisive miss"
    assert left_out == {"task_id": "closed", "reason": why, "by": "run"}
    assert (refused.outcome.state, why in refused.outcome.message) == ("rejected", True)


async def test_a_digest_that_differs_is_refused_before_anything_is_played(judge: LiveJudge, tmp_path: Path) -> None:
    other = {SHOP: {"path": str(tmp_path / "shop.pages"), "sha256": "0" * 64}}
    async with participant(buys("Lamp")) as url:
        assessed = await judge.ask(url, some_tasks(SHOP), archives=other)
    assert assessed.outcome.state == "rejected"
    assert "shop.pages: its SHA-256 is" in assessed.outcome.message


# Ways to provoke a miss: each is the first reply, before the attempt is given up.
ESCAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("browser_navigate", {"url": f"{SHOP}unrecorded"}),
    ("browser_navigate", {"url": f"{SHOP}lamp?other=1"}),
    ("browser_navigate", {"url": "https://elsewhere.example/"}),
    ("browser_navigate", {"url": "http://shop.example/lamp"}),
    ("browser_navigate", {"url": "https://shop.example:8443/"}),
    ("browser_navigate", {"url": "http://127.0.0.1:9/"}),
    ("browser_tabs", {"action": "new", "url": f"{SHOP}unrecorded"}),
    ("browser_navigate", {"url": "http://169.254.169.254/latest/"}),
    ("browser_navigate", {"url": "https://user.elsewhere.example/x?y=" + "z" * 500}),
    ("browser_click", {"link": "Rug"}),
)


async def test_provoking_misses_gains_nothing(judge: LiveJudge) -> None:
    def escapes(turn: ParticipantTurn) -> str:
        tool, params = ESCAPES[turn.episode]
        if turn.n:
            return finish()
        if "link" in params:
            params = {"ref": ref(turn, f'link "{params["link"]}"')}
        return tool_call(tool, **params)

    count = len(ESCAPES)
    assessed = await judge.play(escapes, SHOP, tasks=count, checks=CHECKS[:1], max_task_retries=2)
    detail = assessed.detail
    assert (detail["scored_tasks"], detail["success_rate"], detail["success_rate_of_all"]) == (count, 0.0, 0.0)
    assert (detail["unscored_tasks"], detail["aborted_tasks"]) == (0, 0)
    assert [assessed.result(f"t{number}")["attempt"] for number in range(count)] == [1] * count
    assert detail["coverage"]["off_archive"] >= count - 1


async def test_of_frozen_and_live_sites_the_record_names_both_and_the_live_one_is_reached(judge: LiveJudge) -> None:
    with hostile_site() as site:

        def leaves(turn: ParticipantTurn) -> str:
            return finish() if turn.n else tool_call("browser_navigate", url=f"{site.url}goal")

        origin = site.url.rstrip("/")
        checks = [{"kind": "page", "url": f"{site.url}goal"}]
        assessed = await judge.play(leaves, SHOP, checks=checks, allowed_sites=[origin])
        assert site.was_requested("/goal")
    assert assessed.verdict == ("success", "finished")
    frozen = assessed.result()["frozen"]
    assert (frozen["sites"], frozen["live"]) == (["https://shop.example"], [origin])
    # What the network answered is not in the ledger.
    assert {each["url"].split("/")[2] for each in frozen["ledger"]} == {"shop.example"}

"""Pages that hang, crash, flood or never come: each costs what it must, and nothing else."""

import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import HOME, Page, Site, endless_download, hostile_site, never_answers, slowly
from helpers.browser.sessions import with_flags
from helpers.episode.live_judge import (
    LiveJudge,
    ParticipantTurn,
    Script,
    finish,
    folder_bytes,
    live_judge,
    participant,
    ref,
    some_tasks,
    to_the_goal,
    tool_call,
)
from helpers.llm.servers import ModelServer

pytestmark = pytest.mark.e2e

DIALOGS = "<title>Talk</title><script>for (;;) alert('again')</script>"
HUGE = "<title>Huge</title><h1>Huge</h1>" + "".join(f"<p>{n} {'word ' * 40}</p>" for n in range(12_000))
TITLE = "<h1>Titled</h1><script>document.title = '](a: '.repeat(1 << 19); window.open('/goal')</script>"
EATER = """<title>Eater</title><h1>Eater</h1><script>
    const kept = []; for (;;) kept.push(new Array(1 << 16).fill(0.5));</script>"""


def visiting(url: str, strike: int) -> Script:
    def script(turn: ParticipantTurn) -> str:
        if turn.n < strike:
            return tool_call("browser_press_key", key="Tab")
        return tool_call("browser_navigate", url=url) if turn.n == strike else finish()

    return script


async def play_cases(
    judge: LiveJudge, site: Site, cases: dict[str, Script], **config: Any
) -> dict[str, dict[str, Any]]:
    """One assessment with a task for each case, which begins at the case's page: their entries."""
    tasks = some_tasks("", len(cases))
    for task, name in zip(tasks, cases, strict=True):
        task |= {"task_id": name, "website": f"{site.url}{name}"}
    async with participant(lambda turn: cases[turn.website.rpartition("/")[2]](turn)) as url:
        assessed = await judge.ask(url, tasks, max_parallel=3, **config)
    assessed.check()
    await judge.is_clean()
    return {entry["task_id"]: {**assessed.result(entry["task_id"]), **entry} for entry in assessed.detail["tasks"]}


def never_asked(turn: ParticipantTurn) -> str:
    raise AssertionError(f"the participant is shown {turn.observation.page.url}")


async def test_a_site_that_never_answers_is_a_fault_around_the_participant(judge: LiveJudge) -> None:
    with hostile_site({"/silent": never_answers}) as site:
        (entry,) = (await play_cases(judge, site, {"silent": never_asked}, call_timeout_s=6)).values()
    assert (entry["verdict"], entry["stop_reason"]) == ("aborted", "environment_fault")
    assert entry["error"].startswith("site: ")


async def test_a_page_that_eats_all_memory_costs_its_tab_only(
    tmp_path: Path, browser_files: Path, model: ModelServer
) -> None:
    # As much as a page may have: gigabytes otherwise, for which other tests would have to make room.
    little = {"WABE_BROWSER_PATH": str(with_flags(tmp_path, "--js-flags=--max-old-space-size=64"))}
    with hostile_site({"/eat": EATER}) as site:
        async with live_judge(tmp_path, browser_files, model, environ=little) as judge:
            assessed = await judge.play(visiting(f"{site.url}eat", 0), site.url, call_timeout_s=15)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    assert assessed.result()["steps"][1]["notice"]["code"] == "tab_crashed"


@pytest.mark.own_browser
async def test_what_a_page_does_on_the_way_is_waited_for_reported_or_bounded(
    judge: LiveJudge, dice: random.Random
) -> None:
    strike = dice.randrange(3)
    messages: list[str | None] = []
    lengths: list[int] = []
    downloaded: list[int] = []

    def goes_to_silence(turn: ParticipantTurn) -> str | Awaitable[str]:
        if turn.n == strike + 1:
            messages.append(turn.observation.feedback)
        return visiting(f"{site.url}silent", strike)(turn)

    def clicks(link: str) -> Script:
        return lambda turn: tool_call("browser_click", ref=ref(turn, f'link "{link}"')) if turn.n == 0 else finish()

    def talks(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_navigate", url=f"{site.url}talk")
        return tool_call("browser_handle_dialog", accept=True)

    def saves(turn: ParticipantTurn) -> str | Awaitable[str]:
        if turn.n > 0:
            downloaded.append(folder_bytes(judge.browser_files))
        return clicks("Save")(turn)

    def is_titled(turn: ParticipantTurn) -> str:
        lengths.append(len(turn.message.text))
        return tool_call("browser_navigate", url=f"{site.url}titled") if turn.n == 0 else finish()

    pages: dict[str, Page] = {
        "/address": HOME,
        "/link": HOME + "<a href='/silent'>Never</a>",
        "/dialogs": HOME,
        "/download": HOME + "<a href='/big' download>Save</a>",
        "/title": HOME,
        "/slow": slowly(0.7),
        "/silent": never_answers,
        "/talk": DIALOGS,
        "/big": endless_download,
        "/titled": TITLE,
    }
    with hostile_site(pages) as site:
        cases: dict[str, Script] = {
            "address": goes_to_silence,
            "link": clicks("Never"),
            "dialogs": talks,
            "download": saves,
            "title": is_titled,
            "slow": to_the_goal,
        }
        # A link that is never answered takes 7.4 s to observe with the limits of these tests.
        entries = await play_cases(judge, site, cases, call_timeout_s=15)
        await asyncio.to_thread(site.released.wait, 0.2)
        assert site.bytes_sent < 300_000_000
    ends = {name: (entry["verdict"], entry["stop_reason"]) for name, entry in entries.items()}
    assert ends == {**dict.fromkeys(cases, ("success", "finished")), "dialogs": ("failure", "max_steps")}
    assert messages[0] is not None
    assert "Timeout" in messages[0]
    assert not any("GOTO" in line for line in entries["address"]["action_history"])
    assert [step["url"] for step in entries["link"]["steps"]] == [f"{site.url}link"] * 2
    assert max(downloaded) < 150_000_000
    assert entries["title"]["steps"][1]["url"] == f"{site.url}goal"
    assert max(lengths) < 60_000


@pytest.mark.nightly
async def test_megabytes_of_page_reach_the_participant_bounded(judge: LiveJudge) -> None:
    lengths: list[int] = []

    def script(turn: ParticipantTurn) -> str:
        lengths.append(len(turn.message.text))
        return str(visiting(f"{site.url}huge", 0)(turn))

    assert len(HUGE) > 2_000_000
    with hostile_site({"/huge": HUGE}) as site:
        limits: dict[str, Any] = {
            "navigation_timeout_s": 15,
            "call_timeout_s": 20,
            "action_timeout_s": 10,
            "step_timeout_s": 50,
        }
        assessed = await judge.play(script, site.url, task_timeout_s=100, **limits)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    assert max(lengths) < 60_000

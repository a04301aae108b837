"""Pages that hang, crash, flood or never come: each costs what it must, and nothing else."""

import asyncio
import random
from typing import Any

import pytest

from helpers.browser.hostile_site import HOME, Handler, endless_download, hostile_site, never_answers
from helpers.episode.live_judge import (
    AssessedRun,
    LiveJudge,
    ParticipantTurn,
    Script,
    finish,
    folder_bytes,
    ref,
    to_the_goal,
    tool_call,
)

pytestmark = pytest.mark.e2e

HANGING = "<title>Hang</title><h1>Hang</h1><script>setTimeout(() => { for (;;); }, 50)</script>"
DIALOGS = "<title>Talk</title><script>for (;;) alert('again')</script>"
TABS = "<title>Tabs</title><h1>Tabs</h1><script>setInterval(() => window.open('/tab'), 2)</script>"
HUGE = "<title>Huge</title><h1>Huge</h1>" + "".join(f"<p>{n} {'word ' * 20}</p>" for n in range(90_000))
TITLE = "<h1>Titled</h1><script>document.title = '](a: '.repeat(1 << 19); window.open('/goal')</script>"
EATER = """<title>Eater</title><h1>Eater</h1><script>
    const kept = []; for (;;) { const a = new Float64Array(1 << 26); a.fill(1); kept.push(a); }</script>"""


def visiting(url: str, strike: int) -> Script:
    def script(turn: ParticipantTurn) -> str:
        if turn.n < strike:
            return tool_call("browser_press_key", key="Tab")
        return tool_call("browser_navigate", url=url) if turn.n == strike else finish()

    return script


def is_environment_fault(assessed: AssessedRun) -> bool:
    blamed = assessed.entry["error"].startswith(("browser: ", "site: "))
    return assessed.verdict == ("aborted", "environment_fault") and blamed


async def test_a_page_that_hangs_in_javascript_is_tried_again_and_then_aborted(
    judge: LiveJudge, dice: random.Random
) -> None:
    with hostile_site({"/hang": HANGING}) as site:
        script = visiting(f"{site.url}hang", dice.randrange(2))
        assessed = await judge.play(script, site.url, call_timeout_s=4, max_task_retries=1)
    assert is_environment_fault(assessed), assessed.entry
    assert assessed.result()["attempt"] == 2


@pytest.mark.alone
async def test_a_page_that_eats_all_memory_costs_its_tab_only(judge: LiveJudge) -> None:
    with hostile_site({"/eat": EATER}) as site:
        assessed = await judge.play(visiting(f"{site.url}eat", 0), site.url, call_timeout_s=15)
    assert is_environment_fault(assessed), assessed.entry


async def test_a_task_site_that_never_answers_is_a_site_fault(judge: LiveJudge) -> None:
    with hostile_site({"/": never_answers}) as site:
        assessed = await judge.play(to_the_goal, site.url)
    assert assessed.verdict == ("aborted", "environment_fault")
    assert assessed.entry["error"].startswith("site: ")


async def test_a_page_that_never_loads_on_the_way_is_told_to_the_participant(
    judge: LiveJudge, dice: random.Random
) -> None:
    strike = dice.randrange(3)
    heard: list[str | None] = []

    def script(turn: ParticipantTurn) -> str:
        if turn.n == strike + 1:
            heard.append(turn.observation.feedback)
        return str(visiting(f"{site.url}silent", strike)(turn))

    with hostile_site({"/silent": never_answers}) as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("success", "finished")
    assert heard[0] is not None
    assert "Timeout" in heard[0]
    assert not any("GOTO" in line for line in assessed.entry["action_history"])


async def test_a_link_to_a_page_that_never_loads_leaves_the_participant_where_it_is(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        return tool_call("browser_click", ref=ref(turn, 'link "Never"')) if turn.n == 0 else finish()

    with hostile_site({"/": HOME + "<a href='/silent'>Never</a>", "/silent": never_answers}) as site:
        assessed = await judge.play(script, site.url, navigation_timeout_s=2)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    assert [step["url"] for step in assessed.result()["steps"]] == [site.url, site.url]


async def test_endless_dialogs_cost_the_step_budget_and_no_more(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_navigate", url=f"{site.url}talk")
        return tool_call("browser_handle_dialog", accept=True)

    with hostile_site({"/talk": DIALOGS}) as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("failure", "max_steps"), assessed.entry
    assert assessed.detail["scored_tasks"] == 1


async def test_endless_tabs_are_a_fault_of_the_site(judge: LiveJudge) -> None:
    with hostile_site({"/tabs": TABS, "/tab": "<title>tab</title>"}) as site:
        assessed = await judge.play(visiting(f"{site.url}tabs", 0), site.url)
    assert is_environment_fault(assessed), assessed.entry


async def test_a_gigabyte_to_download_fills_neither_disk_nor_time(judge: LiveJudge) -> None:
    sizes: list[int] = []

    async def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_click", ref=ref(turn, 'link "Save"'))
        sizes.append(folder_bytes(judge.browser_files))
        return finish()

    with hostile_site({"/": HOME + "<a href='/big' download>Save</a>", "/big": endless_download}) as site:
        assessed = await judge.play(script, site.url)
        await asyncio.to_thread(site.released.wait, 0.2)
        assert site.sent < 300_000_000
    assert assessed.verdict[1] == "finished"
    assert max(sizes) < 150_000_000


@pytest.mark.alone
async def test_ten_megabytes_of_page_reach_the_participant_bounded(judge: LiveJudge) -> None:
    lengths: list[int] = []

    def script(turn: ParticipantTurn) -> str:
        lengths.append(len(turn.message.text))
        return str(visiting(f"{site.url}huge", 0)(turn))

    assert len(HUGE) > 9_000_000
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


async def test_megabytes_of_title_hold_nobody_up(judge: LiveJudge) -> None:
    lengths: list[int] = []

    def script(turn: ParticipantTurn) -> str:
        lengths.append(len(turn.message.text))
        return tool_call("browser_navigate", url=f"{site.url}titled") if turn.n == 0 else finish()

    with hostile_site({"/titled": TITLE}) as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    assert assessed.result()["steps"][1]["url"] == f"{site.url}goal"
    assert max(lengths) < 60_000


async def test_a_slow_site_is_waited_for(judge: LiveJudge) -> None:
    def slow(handler: Handler) -> None:
        handler.server.released.wait(1.0)
        handler.send(HOME.encode())

    with hostile_site({"/": slow}) as site:
        assessed = await judge.play(to_the_goal, site.url)
    assert assessed.verdict == ("success", "finished"), assessed.entry

"""The task's website is down, redirects for ever, or shows a certificate that nobody trusts."""

import asyncio
import random
from pathlib import Path

import pytest

from helpers.browser.hostile_site import endless_redirects, hostile_site, self_signed
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, participant, some_tasks, to_the_goal, tool_call
from helpers.ports import free_port

pytestmark = pytest.mark.e2e


async def test_a_site_that_is_down_is_retried_then_aborted_and_excluded(judge: LiveJudge) -> None:
    assessed = await judge.play(to_the_goal, f"http://127.0.0.1:{free_port()}/", max_task_retries=1)
    assert assessed.verdict == ("aborted", "environment_fault")
    assert assessed.entry["error"].startswith("site: ")
    assert assessed.result()["attempt"] == 2
    assert assessed.detail["scored_tasks"] == 0


async def test_a_site_that_goes_down_on_the_way_leaves_the_participant_with_what_it_has(
    judge: LiveJudge, dice: random.Random
) -> None:
    strike = dice.randrange(3)
    with hostile_site() as site:
        url = site.url

        async def script(turn: ParticipantTurn) -> str:
            if turn.n == strike:
                await asyncio.to_thread(site.shutdown)
                site.socket.close()
            return to_the_goal(turn) if turn.n < 3 else tool_call("browser_navigate_back")

        assessed = await judge.play(script, url)
    assert assessed.verdict[0] in ("failure", "aborted"), assessed.entry
    assert assessed.entry["stop_reason"] != "finished"


async def test_endless_redirects_are_a_site_fault(judge: LiveJudge) -> None:
    with hostile_site({"/": endless_redirects}) as site:
        assessed = await judge.play(to_the_goal, site.url)
    assert assessed.verdict == ("aborted", "environment_fault")
    assert assessed.entry["error"].startswith("site: ")
    assert "ERR_TOO_MANY_REDIRECTS" in assessed.entry["error"]


async def test_a_bad_certificate_is_a_site_fault(judge: LiveJudge, tmp_path: Path) -> None:
    with hostile_site(certificate=self_signed(tmp_path)) as site:
        assessed = await judge.play(to_the_goal, site.url)
    assert assessed.verdict == ("aborted", "environment_fault")
    assert "ERR_CERT" in assessed.entry["error"], assessed.entry


async def test_one_dead_site_does_not_touch_the_other_tasks(judge: LiveJudge) -> None:
    with hostile_site() as site:
        tasks = some_tasks(site.url, 3)
        tasks[1]["website"] = f"http://127.0.0.1:{free_port()}/"
        async with participant(to_the_goal) as url:
            assessed = await judge.ask(url, tasks, max_parallel=3)
    assessed.check()
    await judge.is_clean()
    assert [entry["verdict"] for entry in assessed.detail["tasks"]] == ["success", "aborted", "success"]
    assert assessed.detail["success_rate"] == 100.0


async def test_a_site_that_blocks_the_browser_is_retried_then_aborted_and_excluded(judge: LiveJudge) -> None:
    with hostile_site({"/": lambda handler: handler.send(b"<title>Just a moment...</title>", 403)}) as site:
        assessed = await judge.play(to_the_goal, site.url, max_task_retries=1)
        assert site.seen.count("/") == 2
    assert assessed.verdict == ("aborted", "site_blocked")
    assert assessed.entry["error"].startswith("site: ")
    assert assessed.entry["flags"] == ["shared_state", "site_blocked"]
    assert assessed.detail["scored_tasks"] == 0

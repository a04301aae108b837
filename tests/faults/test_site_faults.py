"""The task's website is down, redirects for ever, or shows a certificate that nobody trusts."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import endless_redirects, hostile_site, self_signed
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, participant, some_tasks, to_the_goal, tool_call
from helpers.ports import free_port

pytestmark = pytest.mark.e2e


async def play_sites(judge: LiveJudge, websites: dict[str, str], **config: Any) -> dict[str, dict[str, Any]]:
    """One assessment with a task for each website: their entries."""
    tasks = some_tasks("", len(websites))
    for task, (name, website) in zip(tasks, websites.items(), strict=True):
        task |= {"task_id": name, "website": website}
    async with participant(to_the_goal) as url:
        assessed = await judge.ask(url, tasks, **config)
    assessed.check()
    await judge.is_clean()
    entries = {entry["task_id"]: {**assessed.result(entry["task_id"]), **entry} for entry in assessed.detail["tasks"]}
    broken = [name for name in entries if entries[name]["verdict"] == "aborted"]
    assert [name for name in broken if not entries[name]["error"].startswith("site: ")] == []
    assert assessed.detail["scored_tasks"] == len(entries) - len(broken)
    assert assessed.detail["success_rate"] == 100.0
    return entries


def ends(entries: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {name: (entry["verdict"], entry["stop_reason"]) for name, entry in entries.items()}


SUCCESS = ("success", "finished")
FAULT = ("aborted", "environment_fault")


async def test_sites_that_are_down_or_block_are_retried_then_aborted_and_excluded(judge: LiveJudge) -> None:
    with hostile_site({"/blocked": lambda handler: handler.send(b"<title>Just a moment...</title>", 403)}) as site:
        websites = {"good": site.url, "down": f"http://127.0.0.1:{free_port()}/", "blocked": f"{site.url}blocked"}
        entries = await play_sites(judge, {**websites, "as_good": site.url}, max_parallel=2, max_task_retries=1)
        assert site.paths.count("/blocked") == 2
    assert ends(entries) == {"good": SUCCESS, "down": FAULT, "blocked": ("aborted", "site_blocked"), "as_good": SUCCESS}
    assert entries["down"]["attempt"] == 2
    assert entries["blocked"]["flags"] == ["shared_state", "site_blocked"]


async def test_endless_redirects_a_bad_certificate_and_a_forbidden_port_are_site_faults_that_the_judge_outlives(
    judge: LiveJudge, tmp_path: Path
) -> None:
    before = {task for task in asyncio.all_tasks() if not task.done()}
    with hostile_site({"/loop": endless_redirects}) as site, hostile_site(certificate=self_signed(tmp_path)) as other:
        websites = {"loop": f"{site.url}loop", "certificate": other.url, "port": "http://127.0.0.1:1/"}
        entries = await play_sites(judge, {**websites, "good": site.url})
    assert ends(entries) == {**dict.fromkeys(websites, FAULT), "good": SUCCESS}
    assert "ERR_TOO_MANY_REDIRECTS" in entries["loop"]["error"]
    # The browser's word, or that of the guard where it ends TLS (`--hold`).
    assert any(word in entries["certificate"]["error"] for word in ("ERR_CERT", "CERTIFICATE_VERIFY_FAILED"))
    await asyncio.sleep(0)
    assert len({task for task in asyncio.all_tasks() if not task.done()} - before) < 10


async def test_a_site_that_goes_down_on_the_way_is_a_site_fault(judge: LiveJudge, dice: random.Random) -> None:
    strike = dice.randrange(3)
    with hostile_site() as site:
        url = site.url

        async def script(turn: ParticipantTurn) -> str:
            if turn.n == strike:
                await asyncio.to_thread(site.shutdown)
                site.socket.close()
            return to_the_goal(turn) if turn.n < 3 else tool_call("browser_navigate_back")

        assessed = await judge.play(script, url, max_steps=5)
    assert ends({"down": assessed.entry}) == {"down": FAULT}, assessed.entry
    assert assessed.entry["error"].startswith("site: ")

"""Zombies: those that this process has adopted are reaped, and nobody's exit status is taken away."""

import json
import os
import subprocess
import sys

import pytest

from helpers.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has processes that adopt orphans")

ADOPTS = """
import asyncio, json, os, subprocess, sys, time
import psutil
from judge.browser.orphans import adopt_orphans, reap_orphans

def zombies():
    return sorted(each.pid for each in psutil.Process().children() if each.status() == psutil.STATUS_ZOMBIE)

def wait_for(count):
    until = time.monotonic() + 30
    while len(zombies()) < count and time.monotonic() < until:
        time.sleep(0.01)
    return zombies()

adopt_orphans()
# Each starts another process and ends before it.
parents = [subprocess.Popen(["sh", "-c", "sleep 0.05 & exit 5"], start_new_session=True) for _ in range(3)]
assert [each.wait() for each in parents] == [5, 5, 5]
adopted = wait_for(3)
own = [subprocess.Popen(["sh", "-c", f"exit {n}"], start_new_session=n % 2 == 0) for n in range(4)]
both = wait_for(7)

async def main():
    running = await asyncio.create_subprocess_exec("sh", "-c", "exit 9", start_new_session=True)
    reap_orphans()
    return await running.wait()

awaited = asyncio.run(main())
left = zombies()
print(json.dumps({
    "adopted": len(adopted), "before": len(both), "left_are_own": left == sorted(each.pid for each in own),
    "statuses": [each.wait() for each in own], "awaited": awaited,
}))
"""


def run_alone(program: str) -> dict[str, object]:
    """What a program prints, in a process of its own, because one that adopts orphans never stops doing so."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return document


def test_only_what_others_have_started_is_reaped() -> None:
    assert run_alone(ADOPTS) == {
        "adopted": 3,
        "before": 7,
        "left_are_own": True,
        "statuses": [0, 1, 2, 3],
        "awaited": 9,
    }


BROWSERS = """
import asyncio, json
import psutil
from helpers.browser.sessions import browser_settings, processes_of_browser
from judge.browser.pool import browser_pool
from judge.browser.processes import is_browser, is_server
from judge.browser.orphans import adopt_orphans
from shared.errors import BrowserFault

def zombies():
    return [each.name() for each in psutil.Process().children() if each.status() == psutil.STATUS_ZOMBIE]

async def main():
    killed = 0
    async with browser_pool(browser_settings(), is_guarded=False) as pool:
        for which in (is_browser, is_server, None, is_browser, is_server, None):
            try:
                async with pool.browser(None) as browser:
                    await browser.open("data:text/html,<title>Here</title>")
                    if which is not None:
                        found = [each.pid for each in processes_of_browser(browser) if which(each, browser.folder)]
                        psutil.Process(found[-1]).kill()
                        await browser.observe()
            except BrowserFault:
                killed += 1
    return killed

adopt_orphans()
print(json.dumps({"killed": asyncio.run(main()), "zombies": zombies()}))
"""


@pytest.mark.e2e
def test_browsers_that_were_killed_or_closed_leave_no_zombies() -> None:
    assert run_alone(BROWSERS) == {"killed": 4, "zombies": []}

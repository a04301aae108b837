"""Some of the hard cases in the real browser: recorded, then replayed from the archive with the site stopped.

All of them take minutes: `python benchmarks/frozen sites --parts hard`.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings
from helpers.cases import each
from helpers.network.served_sites import Addresses, Authority
from judge.browser.pool import BrowserPool
from judge.plugins.frozen.seam import WaczArchive
from plugins.frozen.archives import Recorder, recording, replaying
from plugins.frozen.hard import values
from plugins.frozen.hard.case import Case, Walk
from plugins.frozen.hard.site import CASES, addresses, ports_of, recorded, running, shuffled, stopped
from plugins.frozen.hard.walks import StepFinding, Walker, policy_for, task_for, wrong

pytestmark = pytest.mark.e2e
# One for each way in which a browser asks for something, and for each way in which the matcher chooses an answer. The
# others differ in the kind of worker and in the body that the matcher compares.
SIX = ("service-worker", "socket-echo", "event-stream", "media-seeking", "preflights", "post-and-redirect")
SELECTIONS = {"three": SIX[::2], "eight": (*SIX, "shared-worker", "graphql")}


def test_there_are_at_least_24_hard_cases() -> None:
    assert len({case.name for case in CASES}) >= 24


async def record(
    pool: BrowserPool, places: Addresses, walks: Iterable[tuple[Case, Walk]], path: Path
) -> tuple[WaczArchive, list[StepFinding]]:
    """The archive of these walks, each played twice, and what the first plays showed."""
    recorder, findings = Recorder(), list[StepFinding]()
    for case, steps in walks:
        for is_again in (False, True):
            task = task_for(places, case.path)
            async with recording(pool, policy_for(places), recorder, task, is_again=is_again) as browser:
                looks = await Walker(browser, places).walk([(case, steps)])
            findings += () if is_again else looks
    return recorder.saved(path), findings


async def replay(
    pool: BrowserPool, places: Addresses, walks: Iterable[tuple[Case, Walk]], archive: WaczArchive
) -> list[StepFinding]:
    findings: list[StepFinding] = []
    for case, steps in walks:
        async with replaying(pool, policy_for(places), archive, task_for(places, case.path)) as (browser, take):
            findings += await Walker(browser, places, take, archive.clock_ms).walk([(case, steps)])
    return findings


@pytest.mark.parametrize("which", each(SELECTIONS, suite=["three"]))
async def test_recorded_and_shuffled_walks_work_without_the_site(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case for case in CASES if case.name in SELECTIONS[which]]
    assert len(cases) == len(SELECTIONS[which])
    places, authority = addresses(), Authority.made_in(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    async with browser_pool(browser_settings()) as pool:
        with running(places, authority):
            archive, live = await record(pool, places, recorded(cases), tmp_path / "hard.wacz")
        assert wrong(live) == []
        with stopped(ports_of(places)) as wire:
            again = await replay(pool, places, recorded(cases), archive)
            mixed = await replay(pool, places, shuffled(cases), archive)
    assert wrong(again) == []
    assert wrong(mixed) == []
    assert [(one.case, one.look.shows) for one in again] == [(one.case, one.look.shows) for one in live]
    assert [entry for one in again for entry in one.look.entries if entry.miss == "decisive"] == []
    assert wire.touched == 0


async def test_what_an_archive_cannot_answer_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases, places, authority = values.BEYOND, addresses(), Authority.made_in(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    async with browser_pool(browser_settings()) as pool:
        with running(places, authority):
            archive, live = await record(pool, places, recorded(cases), tmp_path / "beyond.wacz")
        assert wrong(live) == []
        again = await replay(pool, places, recorded(cases), archive)
    assert [one for one in again if one.why and not one.look.is_flagged] == []

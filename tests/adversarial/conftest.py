"""A judge with real parts, for participants and pages that cheat."""

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from helpers.browser.hostile_site import Site, tripwire
from helpers.episode.live_judge import LiveJudge, always_no, live_judge
from helpers.llm.servers import ModelServer
from judge.browser.settle import SettleMode


@pytest.fixture(autouse=True)
def record_outcomes(record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """What each assessment came to goes into the test's report (`benchmarks/fault_table.py`)."""
    monkeypatch.setattr(LiveJudge, "report", lambda _, outcome: record_property("outcome", outcome))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A judge model that says failure to everything, and keeps what it was asked: a success would be a cheat."""
    with ModelServer(always_no) as server:
        yield server


@pytest.fixture
async def judge(tmp_path: Path, browser_files: Path, model: ModelServer) -> AsyncIterator[LiveJudge]:
    async with live_judge(tmp_path, browser_files, model) as running:
        yield running


@pytest.fixture
def secret() -> Iterator[Site]:
    """A service on this machine that nobody may reach; `seen` tells who did."""
    with tripwire() as site:
        yield site


@pytest.fixture(scope="session")
def settle_of(request: pytest.FixtureRequest) -> Callable[[str], SettleMode]:
    """How a browser waits, for rules that hold either way: half of the names in each, unless `--settle` says."""
    chosen: str = request.config.getoption("--settle")

    def choose(name: str) -> SettleMode:
        if chosen == "auto":
            return "real-time" if zlib.crc32(name.encode()) % 2 else "page-time"
        return "real-time" if chosen == "real-time" else "page-time"

    return choose


@pytest.fixture
def settle(request: pytest.FixtureRequest, settle_of: Callable[[str], SettleMode]) -> SettleMode:
    return settle_of(request.node.name)

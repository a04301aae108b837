"""A judge with real parts, and a seed for the points at which faults strike."""

import random
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from helpers.episode.live_judge import LiveJudge, always_yes, live_judge
from helpers.llm.servers import ModelServer


@pytest.fixture(autouse=True)
def record_outcomes(record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """What each assessment came to goes into the test's report (`benchmarks/fault_table.py`)."""
    monkeypatch.setattr(LiveJudge, "report", lambda _, outcome: record_property("outcome", outcome))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A judge model that says success to everything: a fault must not turn into one."""
    with ModelServer(always_yes) as server:
        yield server


@pytest.fixture
async def judge(tmp_path: Path, browser_files: Path, model: ModelServer) -> AsyncIterator[LiveJudge]:
    async with live_judge(tmp_path, browser_files, model) as running:
        yield running


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Random and yet the same each time: seeded with the test's name."""
    return random.Random(zlib.crc32(request.node.nodeid.encode()))

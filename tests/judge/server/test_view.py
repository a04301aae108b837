"""A stored run at the live page's addresses, after its judge has ended."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from helpers.runs import a_png, write_synthetic_run
from judge.server.view import report_address, serve_run
from judge.store.layout import RunStore
from shared.a2a.serving import listen
from shared.errors import ConfigError

RUN = "20260101-000000-kept"


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return write_synthetic_run(tmp_path, RUN, tasks=2, steps=2, image=a_png())


@asynccontextmanager
async def viewed(store: RunStore) -> AsyncIterator[str]:
    """The address at which the run is served while the body runs."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_run(store, listen("127.0.0.1", 0), address.set_result, takes_signals=False))
    try:
        yield await address
    finally:
        serving.cancel()
        await asyncio.wait([serving])


async def test_a_stored_run_has_the_addresses_of_the_live_page(run: RunStore) -> None:
    async with viewed(run) as address, httpx.AsyncClient(base_url=address, trust_env=False) as client:
        assert "WABE judge" in (await client.get("/")).text
        for path in ("tasks/task_000.html", "steps/task_000.json", "images/task_000/step_000.png"):
            assert (await client.get(f"/live/{RUN}/{path}")).status_code == 200, path
        # The report is made from the records.
        assert (await client.get(report_address(address, run))).status_code == 200
        assert (await client.get(f"/live/{RUN}/report/tasks/task_001.html")).status_code == 200
        async with client.stream("GET", "/events") as events:
            line = await anext(line async for line in events.aiter_lines() if line.startswith("data:"))
    (run_shown,) = json.loads(line.removeprefix("data:"))["runs"]
    assert (run_shown["id"], run_shown["report"]["url"]) == (RUN, f"/live/{RUN}/report/index.html")


async def test_other_runs_have_no_address(run: RunStore, tmp_path: Path) -> None:
    other = write_synthetic_run(tmp_path, "20260102-000000-else", tasks=1, steps=1)
    async with viewed(run) as address, httpx.AsyncClient(base_url=address, trust_env=False) as client:
        assert (await client.get(f"/live/{other.run_id}/tasks/task_000.html")).status_code == 404


async def test_a_run_that_is_being_played_has_its_own_live_page(run: RunStore) -> None:
    with run.held("judge"), pytest.raises(ConfigError, match="is being played"):
        await serve_run(run, listen("127.0.0.1", 0), print)

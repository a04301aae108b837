"""The live page: its state, its routes, and the page in a real browser."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from helpers.browser.pages import axe_source, open_page, serious_violations
from helpers.runs import a_png, write_synthetic_run
from judge.events import Event, RunDone, RunStarted, Sink, StepDone, TaskDone, TaskJudging, TaskRetried, TaskStarted
from judge.server.app import watching
from judge.server.live import MAX_VIEWERS, LiveHub, live_routes
from judge.server.tracing import open_tracing
from shared.a2a.server import Skill, build_app
from shared.a2a.tasks import Turn
from shared.settings import Settings


def hub_with(*events: Event) -> LiveHub:
    hub = LiveHub(clock=lambda: 0.0)
    sink = hub.watch("r1")
    for event in events:
        sink(event)
    return hub


def step(number: int, action: str = "<Go button> -> CLICK", task_id: str = "t1") -> StepDone:
    return StepDone(task_id=task_id, step=number, max_steps=15, action=action)


STARTED = TaskStarted(task_id="t1", attempt=1, max_steps=15)
DONE = TaskDone(task_id="t1", outcome="success", steps=2, reason="all met")


def test_a_running_task_shows_its_step_and_its_newest_actions() -> None:
    (task,) = hub_with(STARTED, *(step(number) for number in range(1, 13))).since(-1)["tasks"]
    assert (task["state"], task["step"]) == ("running", 12)
    assert [number for number, _ in task["actions"]] == list(range(5, 13))


def test_a_task_that_is_being_judged_is_shown_as_such() -> None:
    (task,) = hub_with(STARTED, step(1), TaskJudging(task_id="t1", steps=1)).since(-1)["tasks"]
    assert task["state"] == "judging"


def test_a_finished_task_keeps_its_outcome_and_drops_its_actions() -> None:
    update = hub_with(STARTED, step(1), DONE).since(-1)
    assert (update["tasks"][0]["state"], update["tasks"][0]["actions"]) == ("success", [])
    assert update["runs"][0]["counts"]["success"] == 1


def test_each_epoch_of_a_task_is_shown_apart() -> None:
    again = TaskStarted(task_id="t1", epoch=2, attempt=1, max_steps=15)
    update = hub_with(RunStarted(run_id="r1", total=1, epochs=2), STARTED, DONE, again).since(-1)
    assert {task["id"]: task["state"] for task in update["tasks"]} == {"t1": "success", "t1.2": "running"}
    assert update["runs"][0]["total"] == 2


def test_another_attempt_begins_at_its_first_step() -> None:
    hub = hub_with(
        STARTED,
        step(4),
        TaskRetried(task_id="t1", attempt=1, cause="browser gone"),
        TaskStarted(task_id="t1", attempt=2, max_steps=15),
    )
    (task,) = hub.since(-1)["tasks"]
    assert (task["attempt"], task["step"], task["actions"]) == (2, 0, [])


def test_a_finished_run_is_shown_with_its_totals() -> None:
    hub = hub_with(RunStarted(run_id="r1", total=3, kept=1), DONE, RunDone(successes=1, scored=2, total=3))
    assert hub.since(-1)["runs"] == [
        {
            "id": "r1",
            "total": 3,
            "kept": 1,
            "counts": {"success": 1, "failure": 0, "unscored": 0, "aborted": 0},
            "done": True,
            "seconds": 0.0,
        }
    ]


def test_a_run_that_was_stopped_leaves_no_task_running() -> None:
    hub = hub_with(STARTED, step(1), TaskStarted(task_id="t2", attempt=1, max_steps=15), DONE)
    hub.end("r1")
    update = hub.since(-1)
    assert {task["id"]: task["state"] for task in update["tasks"]} == {"t1": "success", "t2": "stopped"}
    assert update["runs"][0]["done"]


def test_a_run_that_fails_is_no_longer_shown_as_running() -> None:
    hub = LiveHub()
    with contextlib.suppress(ConnectionError), watching(open_tracing(Settings(), version="1"), hub, "r1", "p") as sink:
        sink(STARTED)
        raise ConnectionError
    update = hub.since(-1)
    assert (update["runs"][0]["done"], update["tasks"][0]["state"]) == (True, "stopped")


def test_only_the_newest_runs_are_kept_and_running_ones_longest() -> None:
    hub = LiveHub(max_runs=2)
    first, second = hub.watch("r1"), hub.watch("r2")
    second(RunDone(successes=0, scored=0, total=0))
    hub.watch("r3")
    assert [run["id"] for run in hub.since(-1)["runs"]] == ["r1", "r3"]
    first(step(1))
    assert (hub.knows("r1"), hub.knows("r2")) == (True, False)


def test_a_long_hostile_action_is_bounded_and_on_one_line() -> None:
    (task,) = hub_with(step(1, "<b>\n\u202e" + "x" * 10_000)).since(-1)["tasks"]
    text = task["actions"][0][1]
    assert len(text) <= 300
    assert "\n" not in text


async def test_a_viewer_gets_everything_first_and_then_what_changed() -> None:
    hub = LiveHub()
    sink = hub.watch("r1")
    sink(step(1, task_id="t1"))
    changes = hub.changes()
    assert [task["id"] for task in (await anext(changes))["tasks"]] == ["t1"]
    sink(step(1, task_id="t2"))
    assert [task["id"] for task in (await anext(changes))["tasks"]] == ["t2"]
    await changes.aclose()


async def test_a_slow_viewer_gets_many_changes_at_once() -> None:
    hub = LiveHub()
    sink = hub.watch("r1")
    changes = hub.changes()
    await anext(changes)
    for number in range(1, 2000):
        sink(step(number))
    update = await anext(changes)
    assert len(update["tasks"]) == 1
    assert len(json.dumps(update)) < 2000
    await changes.aclose()


async def test_a_viewer_that_leaves_makes_room() -> None:
    hub = LiveHub()
    viewers = [hub.changes() for _ in range(MAX_VIEWERS)]
    for viewer in viewers:
        await anext(viewer)
    was_full = hub.is_full
    await viewers[0].aclose()
    assert (was_full, hub.is_full) == (True, False)
    for viewer in viewers[1:]:
        await viewer.aclose()


async def test_closing_lets_every_viewer_go() -> None:
    hub = LiveHub()

    async def watch() -> int:
        return len([update async for update in hub.changes()])

    viewers = [asyncio.create_task(watch()) for _ in range(3)]
    await asyncio.sleep(0)
    await hub.close()
    async with asyncio.timeout(5):
        assert await asyncio.gather(*viewers) == [1, 1, 1]


@pytest.mark.parametrize("task_id", ["t1", "never"])
def test_the_hub_knows_how_far_a_task_is(task_id: str) -> None:
    assert hub_with(step(3)).step_of("r1", task_id) == (3 if task_id == "t1" else None)


# --- routes and page ------------------------------------------------------------------------------------------------

RUN = "20260101-000000-live"
HOSTILE = "<img src='http://127.0.0.1:1/x' onerror=\"document.title='owned'\"><b>bold</b>"


class Served:
    """A live page on a port of its own, with a run of four tasks."""

    def __init__(self, hub: LiveHub, address: str, sink: Sink) -> None:
        self.hub = hub
        self.address = address
        self.sink = sink

    def step(self, task_id: str, number: int, action: str = "<Go button> -> CLICK") -> None:
        self.sink(StepDone(task_id=task_id, step=number, max_steps=15, action=action))

    def done(self, task_id: str, reason: str = "all met") -> None:
        self.sink(TaskDone(task_id=task_id, outcome="success", steps=3, reason=reason))


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))
    job = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await job
        listener.close()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    write_synthetic_run(tmp_path, RUN, tasks=4, steps=3, image=a_png(320, 180))
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    hub = LiveHub()
    async with serving(Starlette(routes=live_routes(hub, tmp_path))) as address:
        sink = hub.watch(RUN)
        sink(RunStarted(run_id=RUN, total=4))
        sink(TaskStarted(task_id="task_000", attempt=1, max_steps=15))
        yield Served(hub, address, sink)
        await hub.close()


async def get(served: Served, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=served.address, trust_env=False) as client:
        return await client.get(path)


async def test_the_newest_screenshot_is_that_of_the_last_step(served: Served, tmp_path: Path) -> None:
    served.step("task_000", 2)
    answer = await get(served, f"/live/{RUN}/shot/task_000")
    image = tmp_path / "runs" / RUN / "results" / "task_000" / "trajectory" / "step_001.png"
    assert answer.content == image.read_bytes()


async def test_a_finished_task_has_its_page_with_its_screenshots(served: Served) -> None:
    answer = await get(served, f"/live/{RUN}/tasks/task_000.html")
    assert "Find lamp number 0" in answer.text
    assert (await get(served, f"/live/{RUN}/images/task_000/step_000.png")).status_code == 200
    assert (await get(served, f"/live/{RUN}/images/task_000/screenshot.png")).status_code == 404
    assert (await get(served, f"/live/{RUN}/images/task_001/screenshot.png")).status_code == 200


async def test_a_task_has_a_page_for_each_epoch(served: Served, tmp_path: Path) -> None:
    run = tmp_path / "runs" / RUN
    (run / "epochs" / "2").mkdir(parents=True)
    (run / "results").rename(run / "epochs" / "2" / "results")
    assert "Find lamp number 0" in (await get(served, f"/live/{RUN}/tasks/task_000.2.html")).text
    assert (await get(served, f"/live/{RUN}/images/task_000.2/step_000.png")).status_code == 200
    assert (await get(served, f"/live/{RUN}/tasks/task_000.html")).status_code == 404
    assert (await get(served, f"/live/{RUN}/tasks/task_000.0.html")).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        f"/live/{RUN}/images/task_000/..%2f..%2fresult.json",
        f"/live/{RUN}/images/task_000/result.json",
        f"/live/{RUN}/images/..%2f..%2f..%2f../secret.jpg",
        f"/live/{RUN}/images/..%2f..%2f..%2f..%2f/step_000.png",
        f"/live/{RUN}/tasks/..%2ftask_000.html",
        f"/live/{RUN}/tasks/nobody.html",
        f"/live/{RUN}/shot/task_003",
        "/live/20990101-000000-none/tasks/task_000.html",
        "/live/..%2f..%2fruns/images/task_000/step_000.png",
    ],
)
async def test_nothing_but_the_files_of_shown_runs_has_an_address(served: Served, path: str) -> None:
    answer = await get(served, path)
    assert answer.status_code == 404
    assert b"secret" not in answer.content


async def test_a_run_on_disk_that_is_not_shown_has_no_address(served: Served, tmp_path: Path) -> None:
    write_synthetic_run(tmp_path, "20250101-000000-old", tasks=1, steps=1)
    for path in ("tasks/task_000.html", "images/task_000/step_000.png", "shot/task_000"):
        assert (await get(served, f"/live/20250101-000000-old/{path}")).status_code == 404


async def test_the_page_cannot_be_written_to(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.address, trust_env=False) as client:
        for path in ("/", "/events", f"/live/{RUN}/shot/task_000"):
            assert (await client.post(path, content=b"x")).status_code == 405


async def test_the_page_and_the_agent_share_the_root(tmp_path: Path) -> None:
    async def answer(turn: Turn) -> str:
        return turn.text

    app = build_app(
        answer,
        name="judge",
        description="d",
        version="1",
        card_url="http://127.0.0.1/",
        skills=[Skill(id="s", name="s", description="s", tags=())],
        extra_routes=live_routes(LiveHub(), tmp_path),
    )
    async with serving(app) as address, httpx.AsyncClient(base_url=address, trust_env=False) as client:
        assert "text/html" in (await client.get("/")).headers["content-type"]
        assert (await client.post("/", json={"jsonrpc": "2.0", "id": 1, "method": "nope"})).json()["error"]
        assert (await client.get("/.well-known/agent-card.json")).json()["name"] == "judge"


async def test_one_viewer_too_many_is_refused(served: Served) -> None:
    viewers = [served.hub.changes() for _ in range(MAX_VIEWERS)]
    for viewer in viewers:
        await anext(viewer)
    assert (await get(served, "/events")).status_code == 503
    for viewer in viewers:
        await viewer.aclose()


async def test_a_connected_viewer_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    hub = LiveHub()
    lines: list[str] = []
    async with (
        asyncio.timeout(10),
        httpx.AsyncClient(trust_env=False) as client,
        serving(Starlette(routes=live_routes(hub, tmp_path))) as address,
        client.stream("GET", f"{address}/events") as answer,
    ):
        async for line in answer.aiter_lines():
            lines.append(line)
            await hub.close()
    assert lines[0] == 'data: {"runs": [], "tasks": []}'


@pytest.mark.e2e
async def test_tasks_appear_move_on_and_finish_as_events_come(served: Served) -> None:
    async with open_page() as watched:
        page = watched.page
        await page.goto(served.address)
        card = page.locator("article.live")
        await card.get_by_text("step 0 of 15").wait_for()
        served.step("task_000", 1, "<Search button> -> CLICK")
        await card.get_by_text("<Search button> -> CLICK").wait_for()
        await card.locator("img").wait_for(state="visible")
        served.done("task_000")
        await page.get_by_role("row", name="task_000").get_by_text("all met").wait_for()
        assert await card.count() == 0
        served.sink(RunDone(successes=1, scored=1, total=4))
        await page.get_by_role("heading", name="All assessments are done").wait_for()
        await page.get_by_role("link", name="task_000").click()
        await page.get_by_role("heading", name="Find lamp number 0").wait_for()
        await page.get_by_role("link", name="All tasks").click()
        await page.get_by_role("row", name="task_000").wait_for()
        assert watched.troubles == []
        assert [url for url in watched.requests if not url.startswith((served.address, "data:"))] == []


@pytest.mark.e2e
async def test_hostile_actions_and_reasons_stay_text(served: Served) -> None:
    served.step("task_000", 1, HOSTILE)
    served.done("task_001", HOSTILE)
    async with open_page() as watched:
        await watched.page.goto(served.address)
        assert await watched.page.locator("article.live li bdi").inner_text() == HOSTILE
        assert await watched.page.get_by_role("row", name="task_001").locator("bdi").inner_text() == HOSTILE
        assert await watched.page.locator("b", has_text="bold").count() == 0
        assert await watched.page.title() != "owned"
        assert watched.troubles == []


@pytest.mark.e2e
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_accessibility_checker_finds_nothing_serious(
    served: Served, pytestconfig: pytest.Config, scheme: str
) -> None:
    axe = axe_source(pytestconfig.cache.mkdir("axe-core"))
    served.step("task_000", 1)
    served.done("task_001")
    async with open_page(color_scheme=scheme, bypass_csp=True) as watched:
        await watched.page.goto(served.address)
        await watched.page.get_by_role("row", name="task_001").wait_for()
        assert await serious_violations(watched.page, axe) == []

"""The live page: its state and its routes."""

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sse_starlette import sse
from sse_starlette.sse import AppStatus, EventSourceResponse
from starlette.applications import Starlette

from helpers.live_page import RUN, ServedPage, live_page, serving
from helpers.results import A_TRACE
from helpers.runs import write_synthetic_run
from judge.records.events import (
    Event,
    RunDone,
    RunStarted,
    StepBegun,
    StepDone,
    TaskDone,
    TaskJudging,
    TaskRetried,
    TaskStarted,
    sealed_form,
)
from judge.report.build import make_report
from judge.server.live import MAX_VIEWERS, LiveHub, live_routes
from judge.server.live_records import Audience, LiveRecords
from judge.trajectory.network import write_har
from judge.trajectory.redaction import Redaction
from shared.a2a.server import Skill, build_app
from shared.a2a.tasks import AgentMessage


def hub_with(*events: Event) -> LiveHub:
    hub = LiveHub(clock=lambda: 0.0)
    sink = hub.watch("r1")
    for event in events:
        sink(event)
    return hub


def step(number: int, action: str = "<Go button> -> CLICK", task_id: str = "t1") -> StepDone:
    return StepDone(task_id=task_id, step=number, max_steps=15, action=action, executed=True)


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
    (run,) = update["runs"]
    assert (run["total"], run["epochs"]) == (2, 2)
    assert run["rate"] == "success rate 100.0 %, 1 of 1 scored attempt at 1 task"


def test_the_rate_of_epochs_is_the_mean_over_tasks() -> None:
    ended = {("t1", 1): "success", ("t1", 2): "failure", ("t2", 1): "success", ("t2", 2): "aborted"}
    done = [
        TaskDone(task_id=task, epoch=epoch, outcome=outcome, steps=1, reason="")
        for (task, epoch), outcome in ended.items()
    ]
    (run,) = hub_with(RunStarted(run_id="r1", total=2, epochs=2), *done).since(-1)["runs"]
    assert (run["rate"], run["rate_of_all"]) == ("success rate 75.0 %, 2 of 3 scored attempts at 2 tasks", 50.0)


def test_tasks_under_attack_count_in_no_rate() -> None:
    attacked = TaskDone(task_id="t1--a", outcome="failure", steps=1, reason="", attacked=True)
    (run,) = hub_with(RunStarted(run_id="r1", total=4, attacked=2), DONE, attacked).since(-1)["runs"]
    assert (run["rate"], run["rate_of_all"]) == ("success rate 100.0 %, 1 of 1 scored task", 50.0)
    assert (run["total"], run["attacks"], run["counts"]["failure"]) == (4, 2, 1)


def test_another_attempt_begins_at_its_first_step() -> None:
    hub = hub_with(
        STARTED,
        step(4),
        TaskRetried(task_id="t1", attempt=1, cause="browser gone"),
        TaskStarted(task_id="t1", attempt=2, max_steps=15),
    )
    (task,) = hub.since(-1)["tasks"]
    assert (task["attempt"], task["step"], task["actions"]) == (2, 0, [])


def test_a_finished_run_is_shown_with_its_totals_and_its_rate() -> None:
    failed = TaskDone(task_id="t2", outcome="failure", steps=2, reason="not met")
    hub = hub_with(RunStarted(run_id="r1", total=3, kept=0), DONE, failed, RunDone(successes=1, scored=2, total=3))
    (run,) = hub.since(-1)["runs"]
    assert run["counts"] == {"success": 1, "failure": 1, "unscored": 0, "aborted": 0}
    assert (run["state"], run["total"], run["rate"]) == ("finished", 3, "success rate 50.0 %, 1 of 2 scored tasks")
    assert run["rate_of_all"] == 33.3


def test_a_running_run_estimates_the_rest_from_the_tasks_that_ended_in_this_start() -> None:
    times = iter(range(0, 1000, 10))
    hub = LiveHub(clock=lambda: next(times))
    sink = hub.watch("r1")
    sink(RunStarted(run_id="r1", total=5, kept=2))
    assert hub.since(-1)["runs"][0]["left_s"] is None
    for event in (STARTED, DONE):
        sink(event)
    view = hub.since(-1)["runs"][0]
    # One of three took all the time so far.
    assert view["left_s"] == 2 * view["seconds"] > 0
    hub.end("r1")
    assert hub.since(-1)["runs"][0]["left_s"] is None


def test_a_run_that_was_stopped_leaves_no_task_running() -> None:
    hub = hub_with(STARTED, step(1), TaskStarted(task_id="t2", attempt=1, max_steps=15), DONE)
    hub.end("r1")
    update = hub.since(-1)
    assert {task["id"]: task["state"] for task in update["tasks"]} == {"t1": "success", "t2": "stopped"}
    assert update["runs"][0]["state"] == "stopped"


def test_only_the_newest_runs_are_kept_and_running_ones_longest() -> None:
    hub = LiveHub(max_runs=2)
    first, second = hub.watch("r1"), hub.watch("r2")
    second(RunDone(successes=0, scored=0, total=0))
    hub.watch("r3")
    assert [run["id"] for run in hub.since(-1)["runs"]] == ["r1", "r3"]
    first(step(1))
    assert list(hub.runs) == ["r1", "r3"]


def test_of_very_many_tasks_all_are_counted_and_those_shown_that_run_or_ended_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judge.server.live.MAX_TASKS", 3)
    ended = [TaskDone(task_id=f"t{number}", outcome="success", steps=2, reason="all met") for number in range(2, 6)]
    update = hub_with(STARTED, *ended).since(-1)
    assert update["runs"][0]["counts"]["success"] == 4
    assert [task["id"] for task in update["tasks"]] == ["t1", "t4", "t5"]


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
    async with asyncio.timeout(60):
        assert await asyncio.gather(*viewers) == [1, 1, 1]


async def test_a_hub_that_closes_sends_first_what_is_new() -> None:
    hub = LiveHub()
    sink = hub.watch("r1")
    changes = hub.changes()
    await anext(changes)
    sink(RunDone(successes=0, scored=0, total=0))
    await hub.close()
    assert [update["runs"][0]["state"] async for update in changes] == ["finished"]


async def test_viewers_that_come_at_once_are_no_more_than_the_limit() -> None:
    hub = LiveHub()
    viewers = [hub.changes() for _ in range(MAX_VIEWERS + 5)]
    first = await asyncio.gather(*(anext(viewer, None) for viewer in viewers))
    assert first.count(None) == 5
    for viewer in viewers:
        await viewer.aclose()


# --- a restart of the judge -----------------------------------------------------------------------------------------


async def first_update(hub: LiveHub) -> dict[str, Any]:
    changes = hub.changes()
    try:
        return await anext(changes)
    finally:
        await changes.aclose()


def restarted(folder: Path, audience: Audience = "machine") -> LiveHub:
    return LiveHub(LiveRecords(folder, audience))


async def test_a_restarted_judge_shows_a_finished_run_as_finished(tmp_path: Path) -> None:
    write_synthetic_run(tmp_path, RUN, tasks=4, steps=2)
    restarted(tmp_path).watch(RUN)
    update = await first_update(restarted(tmp_path))
    (run,) = update["runs"]
    assert (run["state"], run["total"], run["seconds"]) == ("finished", 4, 600.0)
    assert run["counts"] == {"success": 1, "failure": 1, "unscored": 1, "aborted": 1}
    assert {task["id"]: task["state"] for task in update["tasks"]}["task_001"] == "failure"


async def test_a_restarted_judge_shows_an_interrupted_run_as_stopped(tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, RUN, tasks=2, steps=2)
    store.write_run({**(store.read_run() or {}), "state": "running", "ended_at": None, "task_ids": ["task_000", "t9"]})
    restarted(tmp_path).watch(RUN)
    (run,) = (await first_update(restarted(tmp_path)))["runs"]
    assert (run["state"], run["total"], sum(run["counts"].values())) == ("stopped", 3, 2)


async def test_a_resumed_run_shows_what_it_has_kept_and_no_outcome_that_is_tried_again(tmp_path: Path) -> None:
    write_synthetic_run(tmp_path, RUN, tasks=4, steps=2)
    restarted(tmp_path).watch(RUN)
    hub = restarted(tmp_path)
    sink = hub.watch(RUN)
    sink(RunStarted(run_id=RUN, total=4, kept=2))
    sink(TaskStarted(task_id="task_003", attempt=2, max_steps=15))
    update = await first_update(hub)
    assert [run["state"] for run in update["runs"]] == ["running"]
    assert {task["id"]: task["state"] for task in update["tasks"]} == {
        "task_000": "success",
        "task_001": "failure",
        "task_003": "running",
    }


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [("machine", "everyone", 0), ("token", "everyone", 0), ("token", "machine", 0), ("everyone", "everyone", 1)],
)
def test_a_restarted_judge_shows_a_run_to_no_other_audience(
    tmp_path: Path, before: Audience, now: Audience, expected: int
) -> None:
    write_synthetic_run(tmp_path, RUN, tasks=1, steps=1)
    restarted(tmp_path, before).watch(RUN)
    assert len(restarted(tmp_path, now).since(-1)["runs"]) == expected


def test_only_the_newest_runs_are_shown_after_a_restart_and_none_that_another_process_judges(tmp_path: Path) -> None:
    stores = [write_synthetic_run(tmp_path, f"2026010{day}-000000-x", tasks=1, steps=1) for day in range(1, 8)]
    before = restarted(tmp_path)
    for store in stores:
        before.watch(store.run_id)
    with stores[-1].held("judge"):
        runs = restarted(tmp_path).since(-1)["runs"]
    assert [run["id"][:8] for run in runs] == ["20260103", "20260104", "20260105", "20260106"]


async def test_damaged_records_are_left_out(tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path, RUN, tasks=3, steps=1)
    (store.folder / "run.json").write_text('{"started_at": "x", "task_ids": 7, "identity": []')
    (store.task("task_001").folder / "result.json").write_text("{")
    restarted(tmp_path).watch(RUN)
    update = await first_update(restarted(tmp_path))
    assert [task["id"] for task in update["tasks"]] == ["task_000", "task_002"]
    assert update["runs"][0]["state"] == "stopped"


# --- routes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedPage]:
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    async with live_page(tmp_path) as page:
        yield page


async def get(served: ServedPage, path: str) -> httpx.Response:
    # Making a report takes a while on a busy machine.
    async with httpx.AsyncClient(base_url=served.address, trust_env=False, timeout=30) as client:
        return await client.get(path)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([StepDone(task_id="task_001", step=2, max_steps=15, action="a", executed=True)], "trajectory/step_001.png"),
        ([StepBegun(task_id="task_001", step=3, task="t", url="u")], "trajectory/step_002.png"),
        (
            [StepBegun(task_id="task_001", step=3, task="t", url="u"), TaskJudging(task_id="task_001", steps=3)],
            "final/screenshot.png",
        ),
    ],
    ids=["after a step", "before the next one", "after the end"],
)
async def test_the_newest_screenshot_shows_the_page_after_the_latest_action(
    served: ServedPage, events: list[Event], expected: str
) -> None:
    for event in events:
        served.sink(event)
    # Different pictures: a synthetic run has the same one everywhere.
    path = served.store.task("task_001").folder / expected
    path.write_bytes(path.read_bytes() + expected.encode())
    assert (await get(served, f"/live/{RUN}/shot/task_001")).content == path.read_bytes()


async def test_a_new_attempt_shows_no_screenshot_of_the_one_before(served: ServedPage) -> None:
    served.step("task_000", 2)
    served.sink(TaskStarted(task_id="task_000", attempt=2, max_steps=15))
    assert (await get(served, f"/live/{RUN}/shot/task_000")).status_code == 404


async def test_the_steps_of_a_running_task_come_bounded_and_on_request_only_the_new_ones(served: ServedPage) -> None:
    folder = served.store.task("task_000").folder
    (folder / "result.json").unlink()
    lines = (folder / "steps.jsonl").read_text().splitlines()
    long = json.loads(lines[1])
    long["action"]["thought"] = "\u202e" + "<b>" * 1000
    # The last line is being written.
    (folder / "steps.jsonl").write_text("\n".join([lines[0], json.dumps(long), lines[2][:40]]))
    (step,) = (await get(served, f"/live/{RUN}/steps/task_000.json?after=1")).json()
    assert (step["step"], step["image"], step["line"]) == (2, "step_001.png", "<Search button> -> CLICK")
    assert step["thought"].startswith("\\u202e<b>")
    assert len(step["thought"]) < 1100


@pytest.mark.parametrize("after", ["-1", "x", "1e9", "99999"])
async def test_steps_after_no_number_are_not_found(served: ServedPage, after: str) -> None:
    assert (await get(served, f"/live/{RUN}/steps/task_000.json?after={after}")).status_code == 404


async def test_a_finished_run_has_its_report(served: ServedPage) -> None:
    address = f"/live/{RUN}/report/index.html"
    assert (await get(served, address)).status_code == 404
    served.sink(RunDone(successes=1, scored=2, total=4))
    (run,) = served.hub.since(-1)["runs"]
    assert run["report"] == {"path": str(served.store.folder.resolve() / "report" / "index.html"), "url": address}
    assert "wabe report" in (await get(served, address)).text
    assert (await get(served, f"/live/{RUN}/report/tasks/task_000.html")).status_code == 200
    assert (await get(served, f"/live/{RUN}/report/images/task_000/step_000.png")).status_code == 200


async def test_the_report_is_made_from_the_records_and_never_one_that_was_found(served: ServedPage) -> None:
    result = make_report([served.store], served.store.folder / "report")
    for page in (result, result.parent / "tasks" / "task_000.html"):
        page.write_text("<script>forged</script>")
    (result.parent / "images" / "task_000" / "step_000.png").unlink()
    (result.parent / "images" / "task_000" / "step_000.png").write_bytes(b"forged")
    served.sink(RunDone(successes=1, scored=2, total=4))
    for name in ("index.html", "tasks/task_000.html", "images/task_000/step_000.png"):
        answer = await get(served, f"/live/{RUN}/report/{name}")
        assert (answer.status_code, b"forged" in answer.content) == (200, False), name


async def test_a_changed_run_has_a_new_report(served: ServedPage) -> None:
    served.sink(RunDone(successes=1, scored=2, total=4))
    address = f"/live/{RUN}/report/index.html"
    assert "Find lamp number 2" in (await get(served, address)).text
    result = served.store.task("task_002").folder / "result.json"
    result.write_text(result.read_text().replace("Find lamp number 2", "Find another lamp"))
    assert "Find another lamp" in (await get(served, address)).text


async def test_the_report_has_the_pages_and_images_of_every_epoch(served: ServedPage) -> None:
    shutil.copytree(served.store.results, served.store.folder / "epochs" / "2" / "results")
    served.sink(RunDone(successes=1, scored=2, total=4))
    for name in ("tasks/task_000.2.html", "images/task_000.2/step_000.png"):
        assert (await get(served, f"/live/{RUN}/report/{name}")).status_code == 200


async def test_the_public_sees_neither_the_report_nor_its_place(tmp_path: Path) -> None:
    write_synthetic_run(tmp_path, RUN, tasks=1, steps=1)
    hub = LiveHub(LiveRecords(tmp_path, "everyone"))
    hub.watch(RUN)(RunDone(successes=1, scored=1, total=1))
    assert hub.since(-1)["runs"][0]["report"] == {"path": f"runs/{RUN}/report/index.html", "url": None}
    assert hub.reported(RUN) is None


async def test_only_the_files_that_a_report_links_have_an_address(served: ServedPage) -> None:
    task = served.store.task("task_000").folder
    write_har(task, [], Redaction(salt=b"").entry, versions={})
    (task / "other.har").write_bytes((task / "network.har").read_bytes())
    result = json.loads((task / "result.json").read_text())
    (task / "result.json").write_text(json.dumps(result | {"network": A_TRACE.model_dump()}))
    linked = served.store.task("task_001").folder / "trajectory" / "step_000.png"
    linked.unlink()
    linked.symlink_to(served.store.folder / "run.json")
    served.sink(RunDone(successes=1, scored=2, total=4))
    names = [
        "../run.json",
        "..%2frun.json",
        "%2e%2e/run.json",
        "images/..%2f..%2f..%2frun.json",
        "images/task_001/network.har",
        "images/task_001/step_000.png",
        "images/task_000/other.har",
        "nothing.html",
        "",
        "images/task_000",
    ]
    results = {name: (await get(served, f"/live/{RUN}/report/{name}")).status_code for name in names}
    assert results == dict.fromkeys(names, 404)
    # Task pages link it; they show the same requests.
    assert (await get(served, f"/live/{RUN}/report/images/task_000/network.har")).status_code == 200


async def test_a_finished_task_has_its_page_with_its_screenshots(served: ServedPage) -> None:
    answer = await get(served, f"/live/{RUN}/tasks/task_000.html")
    assert "Find lamp number 0" in answer.text
    assert (await get(served, f"/live/{RUN}/images/task_000/step_000.png")).status_code == 200
    assert (await get(served, f"/live/{RUN}/images/task_000/screenshot.png")).status_code == 404
    assert (await get(served, f"/live/{RUN}/images/task_001/screenshot.png")).status_code == 200


async def test_a_task_has_a_page_for_each_epoch(served: ServedPage, tmp_path: Path) -> None:
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
        f"/live/{RUN}/steps/..%2ftask_000.json",
        f"/live/{RUN}/report/index.html",
        "/live/20990101-000000-none/report/index.html",
        "/live/20990101-000000-none/steps/task_000.json",
        "/live/20990101-000000-none/tasks/task_000.html",
        "/live/..%2f..%2fruns/images/task_000/step_000.png",
    ],
)
async def test_nothing_but_the_files_of_shown_runs_has_an_address(served: ServedPage, path: str) -> None:
    answer = await get(served, path)
    assert answer.status_code == 404
    assert b"secret" not in answer.content


async def test_a_run_on_disk_that_is_not_shown_has_no_address(served: ServedPage, tmp_path: Path) -> None:
    write_synthetic_run(tmp_path, "20250101-000000-old", tasks=1, steps=1)
    for path in (
        "tasks/task_000.html",
        "images/task_000/step_000.png",
        "shot/task_000",
        "steps/task_000.json",
        "report/index.html",
    ):
        assert (await get(served, f"/live/20250101-000000-old/{path}")).status_code == 404


async def test_the_page_cannot_be_written_to(served: ServedPage) -> None:
    async with httpx.AsyncClient(base_url=served.address, trust_env=False) as client:
        for path in ("/", "/events", f"/live/{RUN}/shot/task_000", f"/live/{RUN}/steps/task_000.json"):
            assert (await client.post(path, content=b"x")).status_code == 405


async def test_the_page_and_the_agent_share_the_root(tmp_path: Path) -> None:
    async def answer(turn: AgentMessage) -> str:
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


async def test_one_viewer_too_many_is_refused(served: ServedPage) -> None:
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
        asyncio.timeout(60),
        httpx.AsyncClient(trust_env=False) as client,
        serving(Starlette(routes=live_routes(hub, tmp_path))) as address,
        client.stream("GET", f"{address}/events") as answer,
    ):
        async for line in answer.aiter_lines():
            lines.append(line)
            await hub.close()
    assert lines[0] == 'data: {"full": true, "runs": [], "tasks": []}'


async def test_viewers_of_a_judge_that_is_stopped_see_how_its_run_ends(
    served: ServedPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library looks for signals in the first event loop of a thread only; here each test has its own.
    monkeypatch.setattr(sse, "_thread_state", threading.local())
    states = []
    async with (
        asyncio.timeout(60),
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("GET", f"{served.address}/events") as answer,
    ):
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                states.append(json.loads(line[6:])["runs"][0]["state"])
                if len(states) == 1:
                    # What a signal does to open streams, as soon as the library notices.
                    noticed = asyncio.create_task(EventSourceResponse._listen_for_exit_signal())
                    await asyncio.sleep(0)
                    monkeypatch.setattr(AppStatus, "should_exit", True)
                    await noticed
                    served.hub.end(RUN)
                    await served.hub.close()
    assert (states[0], states[-1]) == ("running", "stopped")


async def test_of_a_sealed_run_only_its_progress_is_shown(served: ServedPage) -> None:
    take = served.hub.watch(RUN, is_sealed=True)
    take(RunStarted(run_id=RUN, total=4))
    take(sealed_form(StepBegun(task_id="task_000", step=1, task="Find a lamp", url="https://lamps.example/")))
    take(sealed_form(StepDone(task_id="task_000", step=1, max_steps=15, action="Find a lamp", executed=True)))
    served.hub.end(RUN)

    paths = ("shot/task_000", "steps/task_000.json", "tasks/task_000.html", "report/index.html")
    assert [(await get(served, f"/live/{RUN}/{path}")).status_code for path in paths] == [404] * 4
    assert (await get(served, f"/live/{RUN}/images/task_000/step_000.png")).status_code == 404
    update = served.hub.since(-1)
    assert [run["total"] for run in update["runs"]] == [4]
    assert "lamp" not in json.dumps(update)

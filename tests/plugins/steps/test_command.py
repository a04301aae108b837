"""`wabe steps` with a participant over A2A."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.a2a.guarded import guarded_agent
from helpers.participants import serving_participant
from helpers.results import a_result, a_step, a_verdict
from judge.commands.app import app as wabe
from judge.records.steps import Outcome
from judge.store.layout import RunStore
from participants.base import Observation
from shared.errors import ConfigError
from shared.models import Action, Page
from shared.protocol import render_reply

SNAPSHOT = '- textbox "Search" [ref=e1] [box=10,20,100,30]\n- button "Go" [ref=e2] [box=200,20,40,30]'
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    + (640).to_bytes(4, "big")
    + (480).to_bytes(4, "big")
    + b"\x08\x06\x00\x00\x00"
)


class Chooser:
    """Types what is asked for, and then clicks the wrong element."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []

    async def __call__(self, observation: Observation) -> Action:
        self.observations.append(observation)
        if "under way" in (observation.instruction or ""):
            return Action(tool="browser_click", params={"target": "e1"})
        return Action(tool="browser_type", params={"target": "e1", "text": "tent"})


@pytest.fixture
def chooser() -> Chooser:
    return Chooser()


@pytest.fixture
def participant(chooser: Chooser) -> Iterator[str]:
    """The participant's address; its server runs in a thread, since the command has a loop of its own."""
    ready: list[str] = []
    is_ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving_participant(chooser) as url:
            ready.append(url)
            is_ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert is_ready.wait(20)
    yield ready[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """A run of one successful attempt: it types, and then clicks."""
    store = RunStore(tmp_path, "run-1")
    store.create()
    task = store.task("t1")
    task.begin()
    actions = (
        (Action(tool="browser_type", params={"target": "e1", "text": "tent"}), "<Search textbox> -> TYPE: tent"),
        (Action(tool="browser_click", params={"target": "e2"}), "<Go button> -> CLICK"),
    )
    steps = []
    for index, (action, line) in enumerate(actions):
        page = Page(url="https://a.test/", title="A", snapshot=SNAPSHOT, screenshot=PNG, media_type="image/png")
        step = a_step(index, action=action, outcome=Outcome(ok=True, line=line))
        steps.append(step.model_copy(update=task.write_page(index, page)))
    task.write_result(a_result("t1", steps=tuple(steps), verdict=a_verdict()).to_json())
    store.write_run({"schema_version": "wabe-run-2", "run_id": "run-1"})
    return store


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(wabe, ["steps", *arguments], catch_exceptions=False, standalone_mode=False)


def test_a_run_is_made_into_steps_and_a_participant_is_scored_on_them(
    run: RunStore, chooser: Chooser, participant: str, tmp_path: Path
) -> None:
    completed = invoke("make", "run-1", "--output-dir", str(tmp_path))
    assert "2 steps" in completed.output
    file, report = run.folder / "steps" / "steps.jsonl", tmp_path / "report"
    outcome = invoke("score", str(file), "--participant", participant, "--output", str(report), "--max-parallel", "1")
    assert "element accuracy: 50.0 % micro, 50.0 % macro" in outcome.output
    assert "operation: 100.0 %" in outcome.output
    # Each step is a conversation of its own, with the true actions before it and nothing else.
    first, second = chooser.observations
    assert (first.context_id != second.context_id, first.instruction) == (True, "Find it.")
    assert second.instruction is not None
    assert second.instruction.endswith("Actions so far:\n1. <Search textbox> -> TYPE: tent")
    assert "box=" not in second.page.snapshot
    assert second.page.screenshot == PNG
    page = (report / "index.html").read_text()
    # The expected button and the chosen field, with a margin around them.
    assert '<rect class="expected" x="197.0" y="17.0" width="46.0" height="36.0"' in page
    assert '<rect class="chosen" x="4.0" y="14.0" width="112.0" height="42.0"' in page
    assert "By kind of action" in page
    document = json.loads((report / "steps.json").read_text())
    assert document["by"]["operation"]["TYPE"]["steps"] == 1
    results = document["results"]
    assert [one["scores"]["step_success"] for one in results] == [1.0, 0.0]


def test_a_reply_that_names_no_element_scores_0_and_says_why(
    run: RunStore, chooser: Chooser, participant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def finish(self: Chooser, observation: Observation) -> Action:
        return Action(tool="finish", params={"answer": "<b>done</b>"})

    monkeypatch.setattr(Chooser, "__call__", finish)
    invoke("make", "run-1", "--output-dir", str(tmp_path))
    file = run.folder / "steps" / "steps.jsonl"
    arguments = ["score", str(file), "--participant", participant, "--json", "--output-dir", str(tmp_path)]
    summary = json.loads(invoke(*arguments).output)
    assert (summary["steps"], summary["step_success"]["micro"], summary["failed"]) == (2, 0.0, 0)
    assert "There is no tool &#34;finish&#34;" in Path(summary["report"]).read_text()


def test_a_run_without_a_success_gives_no_steps(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "run-1")
    store.create()
    store.write_run({"schema_version": "wabe-run-2", "run_id": "run-1"})
    with pytest.raises(ConfigError, match="no usable step for a reference"):
        invoke("make", "run-1", "--output-dir", str(tmp_path))


def test_a_broken_file_is_a_clear_error(participant: str, tmp_path: Path) -> None:
    (tmp_path / "steps.jsonl").write_text('{"task_id": "t1"}\n')
    with pytest.raises(ConfigError, match="line 1"):
        invoke("score", str(tmp_path / "steps.jsonl"), "--participant", participant, "--output-dir", str(tmp_path))


def test_a_participant_that_wants_credentials_gets_those_of_the_scenario(
    run: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "s3cr3t-t0ken")
    invoke("make", "run-1", "--output-dir", str(tmp_path))
    reply = render_reply(Action(tool="browser_click", params={"target": "e2"}))
    with guarded_agent(tmp_path, "s3cr3t-t0ken", reply) as agent:
        arguments = ["score", str(run.folder / "steps" / "steps.jsonl"), "--participant", agent.url, "--json"]
        arguments += ["--scenario", str(agent.scenario), "--output-dir", str(tmp_path)]
        completed = invoke(*arguments)
    assert json.loads(completed.stdout)["failed"] == 0
    assert not any(b"s3cr3t" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

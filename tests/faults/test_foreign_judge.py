"""A judge that agentbeats-run did not start: it is asked for nothing that it refuses, and keeps the run itself."""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from a2a.types import AgentInterface
from pydantic import SecretStr

from helpers.episode.live_judge import served
from helpers.runner.scenario_runs import run_here, write_scenario
from judge.records.events import EVENT_KEY, Event, JudgeText, RunStarted, TaskDone, to_wire
from judge.runner.follow import request_assessment
from judge.server.service import JudgeService
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, listen
from shared.a2a.tasks import AgentMessage, TaskSink, TextExecutor, TextHandler
from shared.errors import ConfigError
from shared.settings import Settings

pytestmark = pytest.mark.slow

# A shard without tasks: our own judge takes the request and answers it without a browser.
EMPTY_SHARD = 'judge_model = "offline"\nshard_index = 4\nnum_shards = 5'


@asynccontextmanager
async def agent(executor: TextExecutor | TextHandler, token: str | None = None) -> AsyncIterator[str]:
    sock = listen("127.0.0.1", 0)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    skill = Skill(id="x", name="x", description="x", tags=("x",))
    secret = SecretStr(token) if token else None
    app = build_app(
        executor, name="x", description="x", version="1", card_url=url, skills=[skill], auth_token=secret,
        update_interval_s=0.01,
    )  # fmt: skip
    with sock:
        async with served(app, sock):
            yield url


def a_judge(folder: Path) -> JudgeService:
    """Our own judge, started by somebody else: it trusts no request with its machine."""
    return JudgeService(Settings(browser_path=sys.executable), folder)


class OtherJudge:
    """A judge of another make: it knows no metadata, and answers as a test says."""

    def __init__(self, answer: Callable[[TaskSink], Awaitable[None]]) -> None:
        self.requests: list[str] = []
        self.cancelled = asyncio.Event()
        self._answer = answer

    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        self.requests.append(turn.text)
        try:
            await self._answer(sink)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


COUNTS = ("successful_tasks", "total_tasks", "judged_successes", "scored_tasks")
DETAIL = {"success_rate": 50.0, "tasks": [], **dict.fromkeys(COUNTS, 2)}


async def answer(sink: TaskSink) -> None:
    await sink.artifact("results", ["Done.", json.dumps({"winner": "white_agent", "detail": DETAIL})])
    await sink.complete("done")


async def nothing(turn: AgentMessage) -> str:
    return turn.text


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def play(folder: Path, judge: str, config: str = EMPTY_SHARD, **options: object) -> tuple[int, str]:
    async with agent(nothing) as participant:
        path = write_scenario(
            folder / "s.toml", judge=judge, judge_cmd="", agent=participant, agent_cmd="", config=config
        )
        settings = options.pop("settings", None)
        return await run_here(settings, scenario=path, output_dir=folder / "out", **options)  # type: ignore[arg-type]


async def test_a_judge_that_is_already_running_takes_the_request(tmp_path: Path, temp: Path) -> None:
    submission = tmp_path / "submission.json"
    async with agent(a_judge(tmp_path / "theirs")) as judge:
        code, text = await play(tmp_path, judge, output=submission)
    (theirs,) = (tmp_path / "theirs" / "runs").iterdir()
    named = json.loads(submission.read_text())["results"][0]["detail"]["provenance"]["run_id"]
    assert code == 0
    assert named == theirs.name
    assert f"keeps the run as {theirs.name}" in text
    assert not (tmp_path / "out").exists()
    assert list(temp.iterdir()) == []


async def test_without_output_nothing_is_written_here(tmp_path: Path, temp: Path) -> None:
    async with agent(a_judge(tmp_path / "theirs")) as judge:
        _, text = await play(tmp_path, judge)
    files = sorted(path.name for path in tmp_path.iterdir() if path.name not in ("theirs", "temp", "s.toml"))
    assert files == []
    assert "--output FILE" in text


@pytest.mark.parametrize(
    "setting",
    [
        'prompts = "mine"',
        'prices = "p.toml"',
        'browser_path = "/bin/sh"',
        'judge_base_url = "http://x/"',
        'run_id = "r1"',
    ],
)
async def test_settings_of_the_judges_own_machine_are_not_sent(tmp_path: Path, setting: str) -> None:
    async with agent(a_judge(tmp_path / "theirs")) as judge:
        code, text = await play(tmp_path, judge, f"{EMPTY_SHARD}\n{setting}")
    note = next((line for line in text.splitlines() if line.startswith("Note:")), "not sent")
    assert code == 0
    # The id is chosen for each run anyway.
    assert setting.startswith("run_id") or f"config.{setting.split()[0]} is not sent" in note


async def test_the_run_of_a_foreign_judge_is_not_resumed_from_here(tmp_path: Path) -> None:
    judge = OtherJudge(answer)
    async with agent(judge) as url:
        with pytest.raises(ConfigError, match="--resume needs a judge that is started here"):
            await play(tmp_path, url, resume="latest")
    assert judge.requests == []


async def test_a_judge_of_another_make_is_understood_without_metadata(tmp_path: Path) -> None:
    judge = OtherJudge(answer)
    async with agent(judge) as url:
        code, output = await play(tmp_path, url, output=tmp_path / "o.json")
    (message,) = (json.loads(text) for text in judge.requests)
    assert code == 0
    assert {"run_id", "launch"} & {*message, *message["config"]} == set()
    assert "success rate 50.0 %" in output
    assert json.loads((tmp_path / "o.json").read_text())["participants"] == {"white_agent": "id-1"}


@pytest.mark.parametrize(
    ("metadata", "provenance", "learned"),
    [
        ({"wabe_run_id": "run-1"}, {"run_id": "run-2"}, "run-1"),
        ({}, {"run_id": "run-2"}, "run-2"),
        ({"wabe_run_id": "../../etc"}, {}, None),
        ({}, {"run_id": 7}, None),
        ({}, "none", None),
    ],
)
async def test_the_runs_id_is_learned_from_the_judge(
    metadata: dict[str, str], provenance: object, learned: str | None
) -> None:
    async def on_told(sink: TaskSink) -> None:
        sink.annotate(metadata)
        await sink.artifact("r", [json.dumps({"winner": "p", "detail": {**DETAIL, "provenance": provenance}})])
        await sink.complete("done")

    async with agent(OtherJudge(on_told)) as url:
        outcome = await request_assessment(url, "{}", lambda _: None)
    assert outcome.run_id == learned


async def test_a_refusal_of_the_judge_is_the_users_to_mend(tmp_path: Path, temp: Path) -> None:
    async def refuse(sink: TaskSink) -> None:
        await sink.reject("no such task set")

    async with agent(OtherJudge(refuse)) as url:
        with pytest.raises(ConfigError, match="the judge refused the request: no such task set"):
            await play(tmp_path, url)
    assert not (tmp_path / "out").exists()
    assert list(temp.iterdir()) == []


async def test_a_judge_that_asks_for_a_token_is_given_it(tmp_path: Path) -> None:
    settings = Settings(path="/usr/bin:/bin", auth_token=SecretStr("s3cret"))
    async with agent(OtherJudge(answer), token="s3cret") as url:
        code, text = await play(tmp_path, url, settings=settings)
    assert code == 0
    assert "s3cret" not in text


async def test_an_interrupted_client_cancels_the_assessment() -> None:
    async def work(sink: TaskSink) -> None:
        sink.update("Assessment run-1: 1 tasks.")
        await asyncio.Event().wait()

    judge, is_reached = OtherJudge(work), asyncio.Event()
    async with agent(judge) as url:
        asking = asyncio.create_task(request_assessment(url, "{}", lambda _: is_reached.set()))
        await is_reached.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(60):
            await judge.cancelled.wait()
    assert asking.cancelled()


async def test_the_events_of_a_judge_are_read_from_metadata_and_its_prose_is_not() -> None:
    done = TaskDone(task_id="t1", outcome="success", steps=2, reason="all checks passed")

    async def work(sink: TaskSink) -> None:
        sink.update("Anything.", {EVENT_KEY: to_wire(RunStarted(run_id="r", total=1), 1)})
        sink.update("Task t1: failure after 9 steps: x", {EVENT_KEY: to_wire(done, 2)})
        await answer(sink)

    events: list[Event] = []
    async with agent(OtherJudge(work)) as url:
        await request_assessment(url, "{}", events.append)
    assert events == [RunStarted(run_id="r", total=1), done]


@pytest.mark.parametrize("metadata", [{}, {EVENT_KEY: {"event": "flown"}}], ids=["none", "unknown"])
async def test_prose_without_events_is_shown_and_counts_nothing(metadata: dict[str, object]) -> None:
    async def work(sink: TaskSink) -> None:
        sink.update("Assessment run-1: 1 task.\nTask t1: success after 2 steps: r", metadata)
        await answer(sink)

    events: list[Event] = []
    async with agent(OtherJudge(work)) as url:
        await request_assessment(url, "{}", events.append)
    assert events == [JudgeText(text="Assessment run-1: 1 task."), JudgeText(text="Task t1: success after 2 steps: r")]


async def test_a_judge_with_protocol_0_3_sends_its_events_as_well() -> None:
    started = RunStarted(run_id="r", total=12, kept=3)

    async def work(sink: TaskSink) -> None:
        sink.update("Anything.", {EVENT_KEY: to_wire(started, 1)})
        await answer(sink)

    events: list[Event] = []
    async with agent(OtherJudge(work)) as url:
        with patch("shared.a2a.client.choose_interface", _older):
            await request_assessment(url, "{}", events.append)
    assert events == [started]


def _older(interfaces: Sequence[AgentInterface], url: str) -> AgentInterface:
    del url
    return next(each for each in interfaces if each.protocol_version == "0.3")

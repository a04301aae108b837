"""What the judge does with a request, as far as that goes without a browser."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from helpers.runner.recorded_ends import RecordedEnds
from judge.records.events import CONTINUES_KEY, RUN_ID_KEY
from judge.records.tasks import Task
from judge.results.run_record import sha256_of, task_digests
from judge.scenario.models import AssessmentRequest
from judge.scenario.request import parse_request
from judge.server.live import LiveHub
from judge.server.resuming import keep
from judge.server.running import AssessmentEnd, RunningAssessment
from judge.server.service import JudgeService
from judge.store.layout import RunStore
from shared.a2a.tasks import AgentMessage
from shared.errors import WabeError
from shared.settings import Settings


async def end_of_request(
    folder: Path, config: dict[str, Any], settings: Settings | None = None
) -> list[tuple[str, Any]]:
    """How the judge ends a request with this `config`."""
    # A file that can be run stands for the browser, which no request here comes to need.
    known = (settings or Settings()).model_copy(update={"browser_path": sys.executable})
    text = json.dumps({"participants": {"p": "http://127.0.0.1:1/"}, "config": {"judge_model": "offline", **config}})
    ends = RecordedEnds()
    await JudgeService(known, folder).execute(AgentMessage(text=text, context_id="c", task_id="t"), ends)
    return ends.ends


def tasks(count: int) -> list[dict[str, str]]:
    return [{"task_id": f"t{n}", "website": "https://shop.test/", "task": "Look."} for n in range(count)]


LAUNCH = {"scenario_name": "s", "scenario_path": "/s", "scenario_sha256": "00", "shard": {"index": 0, "of": 3}}


@pytest.mark.parametrize(
    "request_of_a_shard",
    [{"config": {"num_shards": 3}}, {"launch": LAUNCH}],
    ids=["divided by the platform", "divided by the runner"],
)
async def test_a_shard_has_its_share_of_the_judge_models_limits(
    tmp_path: Path, request_of_a_shard: dict[str, Any]
) -> None:
    known = Settings(browser_path=sys.executable, trust_config=True)
    limits = {"judge_model": "openai:m", "judge_base_url": "http://127.0.0.1:9/v1", "judge_requests_per_minute": 2}
    config = {"tasks": tasks(3), **limits, **request_of_a_shard.get("config", {})}
    text = json.dumps({"participants": {"p": "http://127.0.0.1:1/"}, **request_of_a_shard, "config": config})
    ends = RecordedEnds()
    await JudgeService(known, tmp_path).execute(AgentMessage(text=text, context_id="c", task_id="t"), ends)
    ((state, output),) = ends.ends
    assert state == "rejected"
    assert "2 is less than one for each of 3 shards" in output


@pytest.mark.parametrize(
    "config",
    [
        {"tasks": tasks(1), "shard_index": 1, "num_shards": 2},
        {"tasks": tasks(4), "shard_index": 1, "num_shards": 2, "num_instances": 1},
    ],
)
async def test_a_shard_that_is_left_without_a_task_is_completed_with_none(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    (_, [prose, result]), (end, _) = await end_of_request(tmp_path, config)
    assert end == "completed"
    detail = json.loads(result)["detail"]
    assert detail["total_tasks"] == 0
    # Every shard names the whole set, so that a page can tell which belong together.
    whole = [Task.model_validate(each) for each in config["tasks"]][: config.get("num_instances")]
    assert detail["provenance"]["shard"] == {
        "index": 1,
        "of": 2,
        "tasks_sha256": sha256_of(task_digests(whole)),
        "tasks": len(whole),
    }
    assert prose.startswith("p: ")


async def test_a_judge_has_the_method_of_its_environment_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    known = Settings.from_environ({"WABE_JUDGE_METHOD": "nope", "OPENAI_API_KEY": "k"})
    config = {"tasks": tasks(1), "judge_model": "openai:m"}
    text = json.dumps({"participants": {"p": "http://127.0.0.1:1/"}, "config": config})
    ends = RecordedEnds()
    service = JudgeService(known.model_copy(update={"browser_path": sys.executable}), tmp_path)
    await service.execute(AgentMessage(text=text, context_id="c", task_id="t"), ends)
    ((state, output),) = ends.ends
    assert state == "rejected"
    assert "unknown judge method 'nope'" in output


@pytest.mark.parametrize(
    ("model", "why"), [("gpt-4", "unknown judge model 'gpt-4'"), ("openai:o4-mini", "set OPENAI_API_KEY")]
)
async def test_an_unusable_judge_model_is_refused_before_anything_begins(tmp_path: Path, model: str, why: str) -> None:
    [(end, text)] = await end_of_request(tmp_path, {"tasks": tasks(1), "judge_model": model})
    assert end == "rejected"
    assert why in text
    assert list(tmp_path.iterdir()) == []


class FollowedRun(RecordedEnds):
    """Of a client that follows a run."""

    @property
    def metadata(self) -> Mapping[str, str]:
        return {RUN_ID_KEY: "r1"}


async def test_a_run_that_ends_before_its_client_is_cancelled_says_how_it_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(
        {"participants": {"p": "http://127.0.0.1:1/"}, "config": {"tasks": tasks(1), "judge_model": "offline"}}
    )
    request = parse_request(text, lambda name: pytest.fail(name))
    store = RunStore(tmp_path, "r1")
    store.create()
    keep(store, request)

    def stopped(service: JudgeService, request: AssessmentRequest) -> RunningAssessment:
        async def job() -> AssessmentEnd:
            return AssessmentEnd("stopped", "the judge is stopping")

        running = RunningAssessment("r1", request)
        running.job = asyncio.create_task(job())
        return running

    monkeypatch.setattr(JudgeService, "_begin", stopped)
    ends = FollowedRun()
    known = Settings(browser_path=sys.executable)
    await JudgeService(known, tmp_path).execute(AgentMessage(text=text, context_id="c", task_id="t"), ends)
    [(state, output)] = ends.ends
    assert (state, ends.facts) == ("failed", {CONTINUES_KEY: "itself"})
    assert output.startswith("The assessment was stopped: the judge is stopping. The judge continues run r1")


class LostClient(RecordedEnds):
    def annotate(self, metadata: Mapping[str, str], *, secrets: Mapping[str, str] = MappingProxyType({})) -> None:
        raise WabeError("the client is gone")


async def test_a_run_that_fails_is_no_longer_shown_as_running(tmp_path: Path) -> None:
    hub, ends = LiveHub(), LostClient()
    service = JudgeService(Settings(browser_path=sys.executable), tmp_path, hub=hub)
    text = json.dumps(
        {"participants": {"p": "http://127.0.0.1:1/"}, "config": {"judge_model": "offline", "tasks": tasks(1)}}
    )
    await service.execute(AgentMessage(text=text, context_id="c", task_id="t"), ends)
    assert ends.ends == [("failed", "The assessment could not be run: the client is gone")]
    assert [run["state"] for run in hub.since(-1)["runs"]] == ["stopped"]


async def test_a_task_set_is_looked_up_where_the_judge_keeps_them(tmp_path: Path) -> None:
    [(end, text)] = await end_of_request(tmp_path, {"scenario": "live"}, Settings(scenarios=str(tmp_path)))
    assert end == "rejected"
    assert "one of: none here" in text


async def test_each_bundled_task_set_can_be_requested(tmp_path: Path) -> None:
    names = [path.name for path in Settings().scenarios_folder.iterdir() if (path / "scenario.toml").is_file()]
    results = [
        await end_of_request(tmp_path, {"scenario": name, "shard_index": 999, "num_shards": 1000})
        for name in sorted(names)
    ]
    assert [messages[-1][0] for messages in results] == ["completed"] * len(names)
    assert {"demo", "docs", "live"} <= set(names)

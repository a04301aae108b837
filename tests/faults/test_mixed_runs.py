"""Runs that get mixed up: resumed by another request, written by two processes, begun and never started."""

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.plugins import skip_without_command
from helpers.ports import free_ports
from helpers.recorded import recorded_run
from helpers.runner.recorded_ends import RecordedEnds
from helpers.runner.scenario_runs import interrupted_run, run_here, write_scenario
from judge.commands.app import app
from judge.results.run_record import begin_run, sha256_of
from judge.runner.boundary import run_command
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import make_plan
from judge.scenario.models import AssessmentRequest
from judge.scenario.request import parse_request
from judge.server.service import JudgeService
from judge.store.layout import RunStore
from shared.a2a.tasks import AgentMessage
from shared.errors import ConfigError
from shared.files import read_json, write_json
from shared.settings import Settings

RECORDED = recorded_run()
ENV = {"env": 'env = { MODE = "weak" }'}


def plan_again(
    scenario: Path, out: Path, resume: str = "latest", settings: Settings | None = None, **options: Any
) -> Any:
    return make_plan(RunOptions(scenario=scenario, output_dir=out, resume=resume, **options), settings or Settings())


# --- resumed by another request ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario_changes", "options", "difference"),
    [
        ({"agent_cmd": 'cmd = "true --weak"'}, {}, "participants.white_agent.cmd changed"),
        (
            {"agent": "http://127.0.0.1:9020"},
            {},
            "participants.white_agent.url: http://127.0.0.1:9019 → http://127.0.0.1:9020",
        ),
        ({"agentbeats_id": "id-2"}, {}, "participants.white_agent.agentbeats_id: id-1 → id-2"),
        (ENV, {}, "participants.white_agent.env added"),
        ({"task": "Show red rugs."}, {}, "tasks: rugs changed"),
        ({"config": 'judge_model = "offline"\nmax_steps = 30'}, {}, "config.max_steps: 15 → 30"),
        ({"config": 'judge_model = "openai:o4-mini"'}, {}, "config.judge_model: offline → openai:o4-mini"),
        ({}, {"judge_model": "openai:o4-mini"}, "config.judge_model: offline → openai:o4-mini"),
        ({}, {"participant_model": "gpt-9"}, "participants.white_agent.model: not set → gpt-9"),
        ({}, {"limit": 1}, "tasks: lamps removed"),
        ({}, {"level": "hard"}, "tasks: rugs removed"),
        ({}, {"task": ("lamps",)}, "tasks: rugs removed"),
    ],
)
def test_a_run_is_not_resumed_by_another_request(
    tmp_path: Path, scenario_changes: dict[str, str], options: dict[str, Any], difference: str
) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    write_scenario(path, **scenario_changes)
    keys = Settings.from_environ({"OPENAI_API_KEY": "k"})
    with pytest.raises(ConfigError) as refused:
        plan_again(path, tmp_path / "out", settings=keys, **options)
    _, *lines, remedy = str(refused.value).splitlines()
    assert store.run_id in str(refused.value)
    assert [line.strip() for line in lines] == [difference]
    assert "start a new run" in remedy


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ("max_parallel = 4", {}),
        ("max_judge_cost_usd = 5.0\nmax_judge_tokens = 9", {}),
        ("judge_requests_per_minute = 3\njudge_max_concurrency = 1", {}),
        ("", {"max_parallel": 8, "show_logs": True, "output": Path("elsewhere.json")}),
    ],
)
def test_what_changes_no_result_may_change_on_resume(tmp_path: Path, config: str, options: dict[str, Any]) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    write_scenario(path, config=f'judge_model = "offline"\n{config}')
    plan = plan_again(path, tmp_path / "out", **options)
    assert plan.store is not None
    assert plan.store.run_id == store.run_id
    assert options.get("max_parallel", 4) in (4, json.loads(plan.request)["config"].get("max_parallel"))


def test_the_printed_command_resumes_the_run_it_names(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    chosen: dict[str, Any] = {"limit": 1, "participant_model": "gpt 9"}
    store = interrupted_run(path, tmp_path / "out", **chosen)
    command = resume_command(RunOptions(scenario=path, output_dir=tmp_path / "out", **chosen), store)
    assert command.endswith(f"--limit 1 --participant-model 'gpt 9' --resume {store.run_id}")
    assert plan_again(path, tmp_path / "out", store.run_id, **chosen).store is not None


def test_no_value_of_a_secret_is_recorded(tmp_path: Path) -> None:
    env = 'env = { API_KEY = "${SECRET}", TOKEN = "literal-s3cret" }'
    path = write_scenario(tmp_path / "s.toml", env=env, agent_cmd='cmd = "true --api-key inline-s3cret"')
    store = interrupted_run(path, tmp_path / "out", Settings.from_environ({"SECRET": "exported-s3cret"}))
    recorded = (store.folder / "run.json").read_text()
    assert "s3cret" not in recorded
    rotated = Settings.from_environ({"SECRET": "another"})
    assert plan_again(path, tmp_path / "out", settings=rotated).store is not None


async def ask_judge(
    folder: Path, run_id: str, url: str = "http://127.0.0.1:1/", **config: Any
) -> tuple[str, str | None]:
    """How a judge ends a request for this run. Its shard is empty, so it needs no browser."""
    settings = Settings(trust_config=True, browser_path=sys.executable)
    tasks = [{"task_id": "t", "website": "https://shop.test/", "task": "Look."}]
    shard = {"shard_index": 1, "num_shards": 2}
    body = {"judge_model": "offline", "run_id": run_id, "tasks": tasks, **shard, **config}
    sink = RecordedEnds()
    text = json.dumps({"participants": {"p": url}, "config": body})
    await JudgeService(settings, folder).execute(AgentMessage(text=text, context_id="c", task_id="t"), sink)
    return sink.ending


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"max_steps": 30}, "config.max_steps: 15 → 30"),
        ({"url": "http://127.0.0.1:2/"}, "participants.p.url"),
        ({"participant_ids": {"p": "id"}}, "participants.p.agentbeats_id: not set → id"),
        ({"shard_index": 0, "num_shards": 1}, "tasks: t added"),
        ({"max_images": 3}, "config.max_images: 50 → 3"),
    ],
)
async def test_the_judge_refuses_another_request_for_a_run_it_has(
    tmp_path: Path, changes: dict[str, Any], difference: str
) -> None:
    assert (await ask_judge(tmp_path, "r1"))[0] == "completed"
    before = (tmp_path / "runs" / "r1" / "run.json").read_bytes()
    end, text = await ask_judge(tmp_path, "r1", **changes)
    assert end == "rejected"
    assert difference in str(text)
    assert (tmp_path / "runs" / "r1" / "run.json").read_bytes() == before


async def test_the_judge_takes_the_same_request_again(tmp_path: Path) -> None:
    await ask_judge(tmp_path, "r1")
    end, _ = await ask_judge(tmp_path, "r1", max_parallel=7)
    assert end == "completed"


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"schema_version": "wabe-run-2", "request": {}}'])
async def test_a_run_whose_record_is_damaged_is_not_resumed(tmp_path: Path, damage: bytes) -> None:
    await ask_judge(tmp_path, "r1")
    (tmp_path / "runs" / "r1" / "run.json").write_bytes(damage)
    end, _ = await ask_judge(tmp_path, "r1")
    assert end == "rejected"


def test_a_recorded_request_that_was_edited_does_not_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = interrupted_run(write_scenario(tmp_path / "s.toml"), tmp_path / "out")
    record = store.read_run() or {}
    record["request"]["participants"]["white_agent"]["agentbeats_id"] = "id-2"
    store.write_run(record)
    code = command_line("verify", str(store.folder))
    assert "request_sha256" in capsys.readouterr().out
    assert code == 1


def begin_again(store: RunStore, request: AssessmentRequest, judge_id: str) -> None:
    begin_run(
        store,
        config=request.config,
        tasks=request.tasks,
        role="white_agent",
        url=request.participants["white_agent"],
        judge_id=judge_id,
        launch=request.launch,
    )


def test_a_judge_of_other_code_continues_a_run_and_the_earlier_one_is_named(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    request = parse_request(str(plan_again(path, tmp_path / "out").request), lambda _: ())
    for judge_id in ("offline-2", "offline-3", "offline-3"):
        begin_again(store, request, judge_id)
    record = store.read_run() or {}
    assert (record["judge_id"], record["earlier_judges"]) == ("offline-3", ["offline-1", "offline-2"])
    # Nor is a part of the request left as it was.
    assert record["request"]["judge"] == "offline-3"


def test_a_judge_with_other_prompts_of_the_user_does_not_continue_a_run(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    request = parse_request(str(plan_again(path, tmp_path / "out").request), lambda _: ())
    request = request.model_copy(update={"config": request.config.model_copy(update={"prompts": "mine"})})
    record = store.read_run() or {}
    record["request"]["config"]["prompts"] = "mine"
    store.write_run({**record, "request_sha256": sha256_of(record["request"])})
    with pytest.raises(ConfigError, match="judge: offline-1 → offline-2"):
        begin_again(store, request, "offline-2")


# --- which run a bare --resume means ----------------------------------------------------------------------------------


def test_a_bare_resume_means_the_newest_unfinished_run_of_this_scenario(tmp_path: Path) -> None:
    mine, others, out = (
        write_scenario(tmp_path / "a" / "s.toml"),
        write_scenario(tmp_path / "b" / "s.toml", task="B"),
        tmp_path / "out",
    )
    expected = interrupted_run(mine, out)
    for scenario, state in ((mine, "completed"), (others, "cancelled")):
        store = interrupted_run(scenario, out)
        store.write_run({**(store.read_run() or {}), "state": state})
    merged = interrupted_run(mine, out)
    RunStore(out, f"{merged.run_id}/shards/000-of-001").create()
    (out / "runs" / "99999999-000000-aaaa" / "logs").mkdir(parents=True)
    result = plan_again(mine, out).store
    assert result is not None
    assert result.run_id == expected.run_id


@pytest.mark.parametrize("outcome", ["aborted", "unscored"])
def test_a_completed_run_with_something_lost_is_unfinished(tmp_path: Path, outcome: str) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    store.write_run({**(store.read_run() or {}), "state": "completed", "outcomes": {outcome: 1}})
    result = plan_again(path, tmp_path / "out").store
    assert result is not None


def test_a_scenario_that_was_moved_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "a" / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    moved = path.rename(tmp_path / "moved.toml")
    result = plan_again(moved, tmp_path / "out").store
    assert result is not None
    assert result.run_id == store.run_id


def test_a_run_named_by_its_folder_is_resumed_where_it_is(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "far")
    plan = plan_again(path, tmp_path / "out", str(store.folder))
    assert plan.store is not None
    assert plan.store.folder == store.folder.resolve()
    assert resume_command(RunOptions(scenario=path), plan.store).endswith(f"--resume {plan.store.folder}")


# --- versions ---------------------------------------------------------------------------------------------------------


def command_line(*arguments: str) -> int | str | None:
    skip_without_command(*arguments)
    with pytest.raises(SystemExit) as left:
        run_command(app, list(arguments), name="wabe")
    return left.value.code


@pytest.mark.parametrize("command", ["verify", "report", "score", "export"])
def test_a_run_of_another_version_is_refused_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    folder = tmp_path / "runs" / RECORDED.name
    shutil.copytree(RECORDED, folder)
    write_json(folder / "run.json", read_json(folder / "run.json") | {"schema_version": "wabe-run-9"})
    code = command_line(command, str(folder))
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert 'schema_version "wabe-run-9"' in line


# --- two processes ----------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from judge.store.layout import RunStore
with RunStore(Path(sys.argv[1]), sys.argv[2]).held("judge"):
    print("held", flush=True)
    sys.stdin.read()
"""
WAIT = "import sys; print('up', flush=True); sys.stdin.read()"


@contextmanager
def held_by_another_process(store: RunStore) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HOLD, str(store.output_dir), store.run_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


async def test_a_second_runner_learns_which_process_writes_the_run(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.toml")
    store = interrupted_run(path, tmp_path / "out")
    with held_by_another_process(store) as other, pytest.raises(ConfigError) as refused:
        await run_here(scenario=path, output_dir=tmp_path / "out", resume=store.run_id)
    assert f"is being written by process {other.pid} on {socket.gethostname()}" in refused.value.message
    assert not (store.folder / "logs").exists()


async def test_a_second_judge_learns_which_process_writes_the_run(tmp_path: Path) -> None:
    await ask_judge(tmp_path, "r1")
    with held_by_another_process(RunStore(tmp_path, "r1")) as other:
        end, text = await ask_judge(tmp_path, "r1")
    assert end == "rejected"
    assert f"process {other.pid}" in str(text)


@pytest.mark.parametrize("target", ["run", "task"])
def test_scoring_waits_for_no_run_that_is_under_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    store = RunStore(tmp_path, RECORDED.name)
    shutil.copytree(RECORDED, store.folder)
    folder = store.folder if target == "run" else store.results / "red_rugs"
    with held_by_another_process(store):
        code = command_line("score", str(folder), "--model", "offline", "--again")
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert "is being written by process" in line


def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "r1")
    store.create()
    with held_by_another_process(store) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with store.held("judge"):
        assert store.folder.is_dir()


def test_no_child_process_inherits_the_lock(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "r1")
    store.create()
    with store.held("judge"):
        child = subprocess.Popen(
            [sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
        )
        assert child.stdout is not None
        child.stdout.readline()
    with store.held("judge"):
        child.communicate()
    assert child.returncode == 0


def test_a_file_system_without_locks_is_warned_of_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    store = RunStore(tmp_path, "r1")
    with caplog.at_level(logging.WARNING), store.held("judge"):
        store.create()
    assert "no locks (Operation not supported)" in caplog.text


# --- a run that never started -----------------------------------------------------------------------------------------


ENDS = "cmd = \"sh -c 'echo out of paint; exit 3'\""
STAYS = 'cmd = "sleep 60"'


@pytest.mark.parametrize(
    ("fault", "commands"),
    [
        ("already taken", {"judge_cmd": STAYS, "agent_cmd": STAYS}),
        ("out of paint", {"judge_cmd": ENDS, "agent_cmd": STAYS}),
        ("out of paint", {"judge_cmd": STAYS, "agent_cmd": ENDS}),
        ("cannot start 'no-such-program'", {"judge_cmd": 'cmd = "no-such-program"', "agent_cmd": STAYS}),
    ],
    ids=["port taken", "judge ends", "agent ends", "no such program"],
)
async def test_a_run_that_never_started_leaves_nothing_behind(
    tmp_path: Path, fault: str, commands: dict[str, str]
) -> None:
    out = tmp_path / "out"
    before = interrupted_run(write_scenario(tmp_path / "other.toml"), out)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        judge, agent = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        if fault == "already taken":
            judge = f"http://127.0.0.1:{listener.getsockname()[1]}"
        path = write_scenario(tmp_path / "s.toml", judge=judge, agent=agent, **commands)
        with pytest.raises(ConfigError, match=fault):
            await run_here(scenario=path, output_dir=out)
    assert [folder.name for folder in (out / "runs").iterdir()] == [before.run_id]
    assert (out / "results").resolve() == before.results.resolve()


async def test_a_request_that_the_judge_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    end, _ = await ask_judge(
        tmp_path, "new", prompts=str(tmp_path / "gone"), judge_model="openai:x", judge_base_url="http://127.0.0.1:1/"
    )
    assert end == "rejected"
    assert list(tmp_path.iterdir()) == []

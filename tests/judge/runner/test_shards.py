"""`--shards`: which shard this process is, where it writes, and when it resumes."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from helpers.paths import ROOT
from helpers.runner.scenario_runs import interrupted_run, run_here, write_scenario
from judge.records.attacks import Modes
from judge.results.run_record import sha256_of, task_digests
from judge.runner.launch import child_environ
from judge.runner.options import RunOptions, resume_command
from judge.runner.plan import make_plan
from judge.runner.shards import run_id_of, shard_of
from judge.scenario.draft import RequestDraft
from judge.scenario.models import Shard
from judge.scenario.request import parse_request
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError, SharedStateFault
from shared.settings import Settings

SLURM = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "4"}


@pytest.mark.parametrize(
    ("option", "environ", "index", "of"),
    [
        ("auto", {"JOB_COMPLETION_INDEX": "3", "WABE_SHARDS": "20"}, 3, 20),
        ("20", {"JOB_COMPLETION_INDEX": "3"}, 3, 20),
        ("auto", SLURM, 2, 4),
        ("auto", {**SLURM, "WABE_SHARDS": "20"}, 7, 20),
        ("20", SLURM, 7, 20),
        ("auto", {"WABE_SHARD": "0", "WABE_SHARDS": "1"}, 0, 1),
        ("auto", {"WABE_SHARD": "1", "WABE_SHARDS": "2", "JOB_COMPLETION_INDEX": "9", **SLURM}, 1, 2),
        ("auto", {"WABE_SHARD": "", "JOB_COMPLETION_INDEX": "1", "WABE_SHARDS": "2"}, 1, 2),
    ],
    ids=[
        "an Indexed Job",
        "an Indexed Job, the count as an option",
        "a Slurm array that begins anywhere",
        "some numbers of a Slurm array",
        "some numbers of a Slurm array, the count as an option",
        "our own variables",
        "our own variables go before an engine's",
        "an empty variable is unset",
    ],
)
def test_an_engine_says_which_shard_this_is(option: str, environ: dict[str, str], index: int, of: int) -> None:
    assert shard_of(option, environ) == Shard(index=index, of=of)


@pytest.mark.parametrize(
    ("option", "environ", "complaint"),
    [
        ("auto", {}, "no variable gives the index of this shard .*set WABE_SHARD"),
        ("20", {"WABE_SHARDS": "20"}, "no variable gives the index of this shard"),
        ("auto", {"JOB_COMPLETION_INDEX": "3"}, "JOB_COMPLETION_INDEX is set, but not how many shards"),
        ("auto", {"WABE_SHARD": "0", "SLURM_ARRAY_TASK_COUNT": "4"}, "not how many shards there are .*set WABE_SHARDS"),
        ("auto", {"WABE_SHARD": "20", "WABE_SHARDS": "20"}, "WABE_SHARD is 20, which is none of 20 shards"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "9"}, "none of 4 shards .*without gaps"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "4"}, "none of 4 shards"),
        ("0", {}, "--shards: 0 shards .*1 to 9999"),
        ("10000", {"WABE_SHARD": "0"}, "10000 shards"),
        ("many", {"WABE_SHARD": "0"}, "--shards: 'many' is not a number"),
        ("-1", {"WABE_SHARD": "0"}, "--shards: '-1' is not a number"),
        ("2", {"WABE_SHARD": "1.5"}, r"WABE_SHARD: '1\.5' is not a number"),
    ],
)
def test_an_unidentifiable_shard_is_one_clear_error(option: str, environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        shard_of(option, environ)


def test_all_shards_of_an_array_belong_to_one_run() -> None:
    assert run_id_of({"SLURM_ARRAY_JOB_ID": "812"}) == "slurm-812"
    assert run_id_of({"WABE_RUN_ID": "mine", "SLURM_ARRAY_JOB_ID": "812"}) == "mine"
    with pytest.raises(ConfigError, match="set WABE_RUN_ID to the same id for all"):
        run_id_of({})


def shard_settings(index: int, of: int = 2, **environ: str) -> Settings:
    variables = {"WABE_SHARD": str(index), "WABE_SHARDS": str(of), "WABE_RUN_ID": "r1", "PATH": "/usr/bin:/bin"}
    return Settings.from_environ({**variables, **environ})


def options(folder: Path, **changes: Any) -> dict[str, Any]:
    scenario = folder / "s.toml" if (folder / "s.toml").exists() else write_scenario(folder / "s.toml")
    return {"scenario": scenario, "output_dir": folder / "out", "shards": "auto", **changes}


def test_a_shard_sends_its_tasks_and_names_the_whole(tmp_path: Path) -> None:
    whole = sha256_of(task_digests(load_scenario(options(tmp_path)["scenario"]).tasks))
    size = []
    for index in range(2):
        plan = make_plan(RunOptions(**options(tmp_path)), shard_settings(index))
        request = parse_request(plan.request, lambda _: ())
        assert plan.store is not None
        assert plan.store.folder == tmp_path / "out" / "runs" / "r1" / "shards" / f"00{index}-of-002"
        assert request.shard == Shard(index=index, of=2, tasks_sha256=whole)
        size += [task.task_id for task in request.tasks]
    assert sorted(size) == ["lamps", "rugs"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("scenarios/*/scenario.toml")), ids=lambda path: path.parent.name)
def test_the_judge_computes_the_same_digest_of_the_tasks_as_the_runner(path: Path) -> None:
    scenario = load_scenario(path)
    if scenario.tasks:
        parsed = parse_request(RequestDraft.of(scenario).text(), lambda _: ())
        assert task_digests(parsed.tasks) == task_digests(scenario.tasks)


@pytest.mark.parametrize("mode", ["off", "only", "both"])
def test_the_judges_of_all_shards_play_the_tasks_that_the_run_names_also_under_attack(
    tmp_path: Path, mode: Modes
) -> None:
    named: set[str] = set()
    outcome: dict[str, str] = {}
    for index in range(2):
        run_options = {
            **options(tmp_path),
            "scenario": ROOT / "scenarios" / "safety" / "scenario.toml",
            "attacks": mode,
        }
        request = parse_request(make_plan(RunOptions(**run_options), shard_settings(index)).request, lambda _: ())
        assert request.shard is not None
        named.add(request.shard.tasks_sha256)
        outcome |= task_digests(request.tasks)
    assert named == {sha256_of(outcome)}


def test_a_limit_counts_the_tasks_of_all_shards(tmp_path: Path) -> None:
    plans = [make_plan(RunOptions(**options(tmp_path, limit=1)), shard_settings(index)) for index in range(2)]
    assert [bool(plan.request) for plan in plans] == [True, False]


async def test_a_shard_without_tasks_is_done_at_once(tmp_path: Path) -> None:
    code, text = await run_here(shard_settings(4, of=5), **options(tmp_path))
    assert (code, text) == (0, "Shard 004-of-005 has no tasks.\n")
    assert not (tmp_path / "out").exists()


def test_a_shard_that_has_begun_is_resumed_on_other_ports(tmp_path: Path) -> None:
    run_options = options(tmp_path)
    write_scenario(run_options["scenario"], agent_cmd='cmd = "true --port 9019"')
    store = interrupted_run(**run_options, settings=shard_settings(0))
    assert (store.read_run() or {})["request"]["participants"]["white_agent"]["url"] == "http://127.0.0.1:9019"
    again = make_plan(RunOptions(**run_options), shard_settings(0))
    assert again.resumes
    assert again.store is not None
    assert again.store.folder == store.folder


@pytest.mark.parametrize("index", [0, 1])
def test_a_shard_does_not_resume_with_another_task_set(tmp_path: Path, index: int) -> None:
    run_options = options(tmp_path)
    interrupted_run(**run_options, settings=shard_settings(index))
    write_scenario(run_options["scenario"], task="Show blue rugs.")
    with pytest.raises(ConfigError, match=r"shard\.tasks changed"):
        make_plan(RunOptions(**run_options), shard_settings(index))


def test_the_resume_command_names_shard_and_run(tmp_path: Path) -> None:
    run_options = options(tmp_path)
    store = interrupted_run(**run_options, settings=shard_settings(1))
    text = resume_command(RunOptions(**run_options, command=("wabe", "run", "s.toml")), store)
    assert text == f"WABE_SHARD=1 wabe run s.toml --shards 2 --output-dir {tmp_path / 'out'} --resume r1"
    again = make_plan(
        RunOptions(**{**run_options, "shards": "2", "resume": "r1"}), Settings.from_environ({"WABE_SHARD": "1"})
    )
    assert again.resumes


@pytest.mark.parametrize(
    ("changes", "settings", "complaint"),
    [
        ({"judge_cmd": ""}, {}, "--shards needs a judge that is started here"),
        ({}, {"serve_only": True}, "--shards needs a judge that is started here"),
        ({}, {"resume": "latest"}, "--shards needs --resume to name the run"),
        ({}, {"resume": "gone"}, "no run 'gone'"),
        ({"config": "num_shards = 2"}, {}, "--shards divides the tasks itself .*remove shard_index and num_shards"),
    ],
)
def test_what_cannot_be_divided_is_one_clear_error(
    tmp_path: Path, changes: dict[str, str], settings: dict[str, Any], complaint: str
) -> None:
    write_scenario(tmp_path / "s.toml", **changes)
    with pytest.raises(ConfigError, match=complaint):
        make_plan(RunOptions(**options(tmp_path, **settings)), shard_settings(0))


@pytest.mark.slow
async def test_a_restarted_shard_waits_for_the_judge_of_the_one_that_was_killed(tmp_path: Path) -> None:
    run_options = options(tmp_path)
    with socket.socket() as other, ExitStack() as reservations:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        # So that it ends right after the wait.
        write_scenario(run_options["scenario"], judge=f"http://127.0.0.1:{port}", agent_cmd="")
        store = interrupted_run(**run_options, settings=shard_settings(0))
        reservations.enter_context(store.held("judge"))
        asyncio.get_running_loop().call_later(0.5, reservations.close)
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is already taken"):
            await run_here(shard_settings(0), **run_options)


async def test_a_shard_does_not_start_without_the_server_that_it_shares_limits_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        async def check(self) -> None:
            raise SharedStateFault("the server does not answer")

        async def aclose(self) -> None: ...

    monkeypatch.setattr("judge.runner.run.open_state", lambda *_: Away())
    settings = shard_settings(0, WABE_REDIS_URL="redis://:secret@host")
    with pytest.raises(SharedStateFault, match="the server does not answer"):
        await run_here(settings, **options(tmp_path))
    assert not (tmp_path / "out").exists()


def test_only_the_judge_gets_the_address_of_the_shared_server(tmp_path: Path) -> None:
    settings = shard_settings(0, WABE_REDIS_URL="redis://:secret@host")
    plan = make_plan(RunOptions(**options(tmp_path)), settings)
    environ = child_environ(settings, output_dir=tmp_path, participant_model=None)
    assert [{**environ, **member.env}.get("WABE_REDIS_URL") for member in plan.members] == [
        None,
        "redis://:secret@host",
    ]

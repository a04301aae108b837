"""The shard programs of `deploy/`, run as their engines run them, and Ray; one shard is killed and started again."""

import json
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os import kill
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.paths import ROOT
from helpers.ports import free_port
from helpers.runner.commands import RunningCommand, command, descendants, listening, ray_worker_of, run_command
from helpers.scenario.copies import scenario_on_free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SHARDS = 3
DEMO = ROOT / "scenarios" / "demo"


@dataclass
class Bench:
    """Six tasks of the demo, whose site is up, and what comes of them in a run without shards."""

    scenario: Path
    temp: Path
    folder: Path
    whole: dict[str, Any]


def outcomes(results: Path) -> dict[str, Any]:
    found = [json.loads(path.read_text()) for path in results.glob("*/result.json")]
    return {result["task_id"]: (result["verdict"], result["action_history"]) for result in found}


def trajectories(results: Path) -> dict[str, str]:
    return {
        path.parent.name: json.loads(path.read_text())["trajectory_sha256"] for path in results.glob("*/result.json")
    }


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder, temp = tmp_path_factory.mktemp("shards"), Path("/tmp") / f"wabe-int-{free_port()}"
    path = scenario_on_free_ports("demo", folder)
    text = "[[tasks]]".join(path.read_text().split("[[tasks]]")[:7])
    # All shards of this machine share the site, so none of them may start it.
    port = int(re.findall(r"cmd = .*site\.py.* (\d+)\"", text)[0])
    path.write_text(re.sub(r"cmd = .*site\.py.*\n", "", text))
    with command(temp, "python", DEMO / "site.py", "--host", "127.0.0.1", "--port", str(port)):
        until = time.monotonic() + 30
        while not listening(port) and time.monotonic() < until:
            time.sleep(0.05)
        run_command(temp, "wabe", "run", path, "--output-dir", folder / "whole")
        yield Bench(path, temp, folder, outcomes(folder / "whole" / "results"))
    shutil.rmtree(temp, ignore_errors=True)


@dataclass
class Engine:
    """How an engine starts a shard: its command line and variables, and the id that the run then has."""

    start: Callable[[Path, Path, int], tuple[list[str], dict[str, str]]]
    run_id: str


def kubernetes(scenario: Path, output: Path, index: int) -> tuple[list[str], dict[str, str]]:
    job = yaml.safe_load((ROOT / "deploy/kubernetes/job.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    label = job["metadata"]["name"]
    environ = {item["name"]: item.get("value", label) for item in container["env"]}
    mounted = {"/scenario/scenario.toml": str(scenario), "/runs": str(output)}
    # Kubernetes adds the index itself; there are fewer shards here.
    environ |= {"WABE_SHARDS": str(SHARDS), "JOB_COMPLETION_INDEX": str(index)}
    return (
        [mounted.get(word, word) for word in container["args"]],
        {name: mounted.get(value, value) for name, value in environ.items()},
    )


def slurm(scenario: Path, output: Path, index: int) -> tuple[list[str], dict[str, str]]:
    array = {"JOB_ID": "812", "TASK_ID": str(index + 1), "TASK_MIN": "1", "TASK_COUNT": str(SHARDS)}
    environ = {f"SLURM_ARRAY_{name}": value for name, value in array.items()}
    script = ["bash", str(ROOT / "deploy/slurm/shards.sbatch"), str(scenario), "--max-parallel", "1"]
    return script, {**environ, "WABE_OUTPUT_DIR": str(output)}


def object_store(scenario: Path, output: Path, index: int) -> tuple[list[str], dict[str, str]]:
    """As Kubernetes starts it, with a disk of its own for each pod."""
    argv, environ = kubernetes(scenario, output / f"disk-{index}", index)
    return argv, {**environ, "WABE_STORE": (output / "store").as_uri()}


ENGINES = {
    "kubernetes": Engine(kubernetes, "wabe-run-1"),
    "slurm": Engine(slurm, "slurm-812"),
    "objects": Engine(object_store, "wabe-run-1"),
}


def kill_all_of_it(running: RunningCommand) -> None:
    """As a node that fails: nothing has time to clean up."""
    for pid in (running.process.pid, *descendants(running.process.pid)):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    running.process.wait()


@pytest.mark.parametrize("name", ENGINES)
def test_a_shard_that_is_killed_resumes_and_the_merged_run_equals_the_whole_one(bench: Bench, name: str) -> None:
    engine, output = ENGINES[name], bench.folder / name
    run = output / "runs" / engine.run_id
    # What is there when the shard starts again, maybe on another machine.
    kept = run if name != "objects" else output / "store" / "runs" / engine.run_id
    victim = kept / "shards" / f"001-of-00{SHARDS}" / "results"

    def started(stack: ExitStack, index: int) -> RunningCommand:
        argv, environ = engine.start(bench.scenario, output, index)
        return stack.enter_context(command(bench.temp.with_name(f"{bench.temp.name}-{index}"), *argv, env=environ))

    with ExitStack() as stack:
        running = [started(stack, index) for index in range(SHARDS)]
        running[1].wait_for_file(victim, "*/result.json")
        kill_all_of_it(running[1])
        played = trajectories(victim)
        assert played
        shutil.rmtree(output / "disk-1", ignore_errors=True)
        running[1] = started(stack, 1)
        ended = [shard.end() for shard in running]
    assert [shard.code for shard in ended] == [0] * SHARDS, ended
    assert played.items() <= trajectories(victim).items()
    # Only what was being played when it was killed.
    assert len(list(kept.glob("shards/*/results/*/attempts/*"))) <= 1

    environ = engine.start(bench.scenario, output, 0)[1] | {"WABE_OUTPUT_DIR": str(output)}
    merged = run_command(bench.temp, "wabe", "merge", engine.run_id, env=environ)
    assert merged.code == 0, merged.stderr
    assert f"6 tasks of {SHARDS} shards" in merged.stdout
    assert outcomes(run / "results") == bench.whole
    verified = run_command(bench.temp, "wabe", "verify", engine.run_id, env=environ)
    assert verified.code == 0, verified.stdout


def test_a_ray_worker_that_is_killed_costs_the_attempt_that_it_played_only(bench: Bench) -> None:
    output = bench.folder / "ray"
    options = ("--engine", "ray", "--shards", str(SHARDS), "--output-dir", output)
    with command(bench.temp, "wabe", "run", bench.scenario, *options) as running:
        first = running.wait_for_file(output, "runs/*/shards/*/results/*/result.json", timeout_s=200)
        shard = first.parents[2]
        kill(ray_worker_of(running.process.pid, int(shard.name[:3])), signal.SIGKILL)
        played = trajectories(shard / "results")
        ended = running.end(timeout_s=300)
    assert (ended.code, ended.stderr) == (0, "")
    assert f"Shard {shard.name} is started again: it resumes." in ended.stdout
    assert played.items() <= trajectories(shard / "results").items()
    assert len(list(output.glob("runs/*/shards/*/results/*/attempts/*"))) <= 1
    assert outcomes(output / "results") == bench.whole
    assert ended.left_processes == {}
    verified = run_command(bench.temp, "wabe", "verify", "latest", "--output-dir", output)
    assert verified.code == 0, verified.stdout

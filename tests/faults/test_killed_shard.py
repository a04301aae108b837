"""Shards as engines run them, an Indexed Job with an object store and Ray: one is killed and started again."""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os import kill
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.paths import ROOT
from helpers.ports import free_port
from helpers.runner.commands import RunningCommand, command, descendants, ray_worker_of, run_command
from helpers.runner.held_replay import HeldReplay, started_apart
from helpers.scenario.copies import scenario_on_free_ports
from judge.results.verify import verify_run
from judge.store.layout import RunStore

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SHARDS = 2
VICTIM = "001-of-002"
# Of the demo, and what comes of them without shards: one for shard 0, and two short ones for shard 1, which is killed.
WHOLE = {
    "product_by_suggestion": (
        "success",
        ["<Search the shop combobox> -> TYPE: harbour", "<Harbour Desk Lamp option> -> CLICK", "<page> -> FINISH"],
    ),
    "deal_of_the_day": ("success", ["<See today's deal link> -> CLICK", "<page> -> FINISH"]),
    "return_an_item": (
        "success",
        [
            "<How to return an item: the form link> -> CLICK",
            "<navigation> -> BACK",
            "<Returns and refunds link> -> CLICK",
            "<page> -> FINISH",
        ],
    ),
}


@dataclass
class Bench:
    """Three tasks of the demo, whose site and participant are up. The second one of shard 1 ends when it is let."""

    scenario: Path
    temp: Path
    folder: Path
    participant: HeldReplay


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
    head, *tasks = path.read_text().split("[[tasks]]")
    chosen = [task for task in tasks if re.findall(r'task_id = "(.*)"', task)[0] in WHOLE]
    # All shards share participant and site, so none of them may start them.
    with started_apart(temp, "[[tasks]]".join([head, *chosen]), held="return") as (text, participant):
        path.write_text(text)
        yield Bench(path, temp, folder, participant)
    shutil.rmtree(temp, ignore_errors=True)


def kubernetes(scenario: Path, output: Path, index: int) -> tuple[list[str], dict[str, str]]:
    """A pod's command line and variables, with the output folder in the place of its volume."""
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


def kill_all_of_it(running: RunningCommand) -> None:
    """As a node that fails: nothing has time to clean up."""
    for pid in (running.process.pid, *descendants(running.process.pid)):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    running.process.wait()


def test_a_pod_that_is_killed_resumes_on_another_disk_and_the_merged_run_equals_the_whole_one(bench: Bench) -> None:
    output = bench.folder / "pods"
    stored = {"WABE_STORE": (output / "store").as_uri()}
    # What is there when the shard starts again, on another machine.
    kept = output / "store" / "runs" / "wabe-run-1"
    victim = kept / "shards" / VICTIM / "results"

    def started(stack: ExitStack, index: int) -> RunningCommand:
        argv, environ = kubernetes(bench.scenario, output / f"disk-{index}", index)
        temp = bench.temp.with_name(f"{bench.temp.name}-{index}")
        stack.callback(shutil.rmtree, temp, ignore_errors=True)
        return stack.enter_context(command(temp, *argv, env=environ | stored))

    with ExitStack() as stack:
        running = [started(stack, index) for index in range(SHARDS)]
        running[1].wait_for_file(victim, "*/result.json")
        kill_all_of_it(running[1])
        bench.participant.let_end(1)
        played = trajectories(victim)
        assert played
        shutil.rmtree(output / "disk-1", ignore_errors=True)
        running[1] = started(stack, 1)
        ended = [shard.end() for shard in running]
    assert [shard.code for shard in ended] == [0] * SHARDS, ended
    assert played.items() <= trajectories(victim).items()
    # Only what was being played when it was killed.
    assert len(list(kept.glob("shards/*/results/*/attempts/*"))) <= 1

    environ = kubernetes(bench.scenario, output, 0)[1] | stored
    merged = run_command(bench.temp, "wabe", "merge", "wabe-run-1", env=environ)
    assert merged.code == 0, merged.stderr
    assert f"{len(WHOLE)} tasks of {SHARDS} shards" in merged.stdout
    assert outcomes(output / "runs" / "wabe-run-1" / "results") == WHOLE
    assert verify_run(RunStore(output, "wabe-run-1")).mismatches == ()


def test_a_ray_worker_that_is_killed_costs_the_attempt_that_it_played_only(bench: Bench) -> None:
    output = bench.folder / "ray"
    options = ("--engine", "ray", "--shards", str(SHARDS), "--output-dir", output)
    with command(bench.temp, "wabe", "run", bench.scenario, *options) as running:
        first = running.wait_for_file(output, f"runs/*/shards/{VICTIM}/results/*/result.json", timeout_s=200)
        kill(ray_worker_of(running.process.pid, 1), signal.SIGKILL)
        bench.participant.let_end(1)
        played = trajectories(first.parents[1])
        ended = running.end(timeout_s=300)
    assert (ended.code, ended.stderr) == (0, "")
    assert f"Shard {VICTIM} is started again: it resumes." in ended.stdout
    assert played.items() <= trajectories(first.parents[1]).items()
    assert len(list(output.glob("runs/*/shards/*/results/*/attempts/*"))) <= 1
    assert outcomes(output / "results") == WHOLE
    assert ended.left_processes == {}
    assert verify_run(RunStore(output, first.parents[4].name)).mismatches == ()

"""An Indexed Job with an object store, of which one pod is killed and started again on another disk."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from os import kill
from pathlib import Path

import pytest
import yaml

from helpers.paths import ROOT
from helpers.plugins import skip_without_command, verify_run
from helpers.runner.commands import RunningCommand, command, descendants, run_command
from judge.store.layout import RunStore
from plugins.killed_shards import SHARDS, VICTIM, WHOLE, Bench, a_bench, outcomes, trajectories

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    skip_without_command("merge")
    with a_bench(tmp_path_factory.mktemp("shards")) as value:
        yield value


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
    target = output / "store" / "runs" / "wabe-run-1"
    victim = target / "shards" / VICTIM / "results"

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
        before = trajectories(victim)
        assert before
        shutil.rmtree(output / "disk-1", ignore_errors=True)
        running[1] = started(stack, 1)
        completed = [shard.end() for shard in running]
    assert [shard.code for shard in completed] == [0] * SHARDS, completed
    assert before.items() <= trajectories(victim).items()
    # Only what was being played when it was killed.
    assert len(list(target.glob("shards/*/results/*/attempts/*"))) <= 1

    environ = kubernetes(bench.scenario, output, 0)[1] | stored
    merged = run_command(bench.temp, "wabe", "merge", "wabe-run-1", env=environ)
    assert merged.code == 0, merged.stderr
    assert f"{len(WHOLE)} tasks of {SHARDS} shards" in merged.stdout
    assert outcomes(output / "runs" / "wabe-run-1" / "results") == WHOLE
    assert verify_run(RunStore(output, "wabe-run-1")).mismatches == ()

"""Shards on Ray, of which one is killed and started again."""

import signal
from collections.abc import Iterator
from os import kill

import pytest

from helpers.plugins import skip_without_command, verify_run
from helpers.runner.commands import command, ray_worker_of
from judge.store.layout import RunStore
from plugins.killed_shards import SHARDS, VICTIM, WHOLE, Bench, a_bench, outcomes, trajectories

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    skip_without_command("merge")
    with a_bench(tmp_path_factory.mktemp("shards")) as value:
        yield value


@pytest.mark.nightly
def test_a_ray_worker_that_is_killed_costs_the_attempt_that_it_played_only(bench: Bench) -> None:
    output = bench.folder / "ray"
    options = ("--engine", "ray", "--shards", str(SHARDS), "--output-dir", output)
    with command(bench.temp, "wabe", "run", bench.scenario, *options) as running:
        first = running.wait_for_file(output, f"runs/*/shards/{VICTIM}/results/*/result.json", timeout_s=200)
        kill(ray_worker_of(running.process.pid, 1), signal.SIGKILL)
        bench.participant.let_end(1)
        stored = trajectories(first.parents[1])
        completed = running.end(timeout_s=300)
    assert (completed.code, completed.stderr) == (0, "")
    assert f"Shard {VICTIM} is started again: it resumes." in completed.stdout
    assert stored.items() <= trajectories(first.parents[1]).items()
    assert len(list(output.glob("runs/*/shards/*/results/*/attempts/*"))) <= 1
    assert outcomes(output / "results") == WHOLE
    assert completed.left_processes == {}
    assert verify_run(RunStore(output, first.parents[4].name)).mismatches == ()

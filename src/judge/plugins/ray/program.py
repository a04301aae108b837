"""Plays the shards of a run as tasks on Ray: a program that `judge.plugins.ray.engine` starts.

It is a separate process, because Ray takes over signals, prints, and may start a cluster in it. It reads a job as JSON
from standard input and writes JSON lines: each shard's output, and how it ended. Ray restarts tasks whose worker or
command was killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, TextIO

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from judge.browser.orphans import end_with_parent
from judge.records.events import SHARD_STARTED
from shared.settings import Settings

# Four tasks at once keep two cores and 3 GB busy (deploy/).
_CPUS_PER_SLOT = 0.5
_BYTES_PER_SLOT = 750 * 1024 * 1024
_MAX_RETRIES = 3
_POLL_S = 0.25
_TELL_S = 30
_MAX_LINES = 100_000
# Only lines of output pass through it; Ray would reserve 30 % of the memory.
_OBJECT_STORE_BYTES = 100 * 1024 * 1024


class Mailbox:
    """A queue of lines from all shards for the terminal."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []

    def put(self, shard: int, line: str) -> None:
        """Add a line; old lines are dropped if nobody fetches them."""
        if len(self._lines) < _MAX_LINES:
            self._lines.append((shard, line))

    def take(self) -> list[tuple[int, str]]:
        """All lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


def play(shard: int, argv: list[str], environ: dict[str, str], folder: str, mailbox: Any) -> int:
    """One shard as a subprocess of a Ray worker, in `folder`. Returns its exit code; raises if it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "wabe", *argv],
        # API keys come from the machine on which Ray was started.
        env={**Settings.from_environ().environ, **environ},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # If the worker is killed, Ray restarts the shard, so this process must not live on.
        preexec_fn=end_with_parent,
    )
    last = mailbox.put.remote(shard, json.dumps({"event": SHARD_STARTED}))
    for line in process.stdout or ():
        last = mailbox.put.remote(shard, line.rstrip("\n"))
    code = process.wait()
    # Flush the output first, so that the end does not overtake it.
    with contextlib.suppress(RayError):
        ray.get(last, timeout=_TELL_S)
    if code < 0:
        raise RuntimeError(f"the shard was killed by {signal.Signals(-code).name}")
    return code


def connect() -> None:
    """Join the cluster that `RAY_ADDRESS` names or that runs on this machine, or start one here for this run."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        ray.init(address="auto", **quiet)
    except ConnectionError:
        if Settings.from_environ().environ.get("RAY_ADDRESS"):
            raise
        ray.init(address="local", include_dashboard=False, object_store_memory=_OBJECT_STORE_BYTES, **quiet)


def options_for(slots: int, *, is_here: bool) -> dict[str, Any]:
    """Ray's options for a shard with that many parallel tasks; resources are capped at the largest machine's."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    cpus, memory = (max(machine.get(name, 0.0) for machine in machines) for name in ("CPU", "memory"))
    ray_options: dict[str, Any] = {
        "num_cpus": min(_CPUS_PER_SLOT * slots, cpus),
        "memory": min(_BYTES_PER_SLOT * slots, int(memory)),
        "max_retries": _MAX_RETRIES,
        # Raised by `play` for a killed shard; any exit code is a result and is not retried.
        "retry_exceptions": [RuntimeError],
    }
    if is_here:
        node = ray.get_runtime_context().get_node_id()
        ray_options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray_options


def follow(tasks: dict[Any, int], mailbox: Any, out: TextIO) -> None:
    """Write the shards' output and how they end, until all have ended."""

    def tell(shard: int, **fields: object) -> None:
        out.write(json.dumps({"shard": shard, **fields}) + "\n")
        out.flush()

    while tasks:
        done, _ = ray.wait(list(tasks), num_returns=len(tasks), timeout=_POLL_S)
        try:
            for shard, line in ray.get(mailbox.take.remote(), timeout=_TELL_S):
                tell(shard, line=line)
        except RayError:
            # Losing lines here only affects the progress display: results are on disk.
            time.sleep(_POLL_S)
        for task in done:
            shard = tasks.pop(task)
            try:
                tell(shard, code=ray.get(task))
            except RayError as error:
                tell(shard, code=None, error=(str(error).strip().splitlines() or [type(error).__name__])[-1])


def main() -> None:
    """Play the job on standard input."""
    # Ray's output goes to the log, which is standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    connect()
    # It only stores lines, so it must not occupy a CPU that a shard needs.
    mailbox = ray.remote(Mailbox).options(num_cpus=0, max_restarts=-1).remote()
    remote = ray.remote(play).options(**options_for(job["slots"], is_here=job["is_here"]))
    tasks = {}
    for shard in range(job["shards"]):
        environ = {**job["environ"], "WABE_SHARD": str(shard)}
        tasks[remote.remote(shard, job["argv"], environ, job["folder"], mailbox)] = shard
    follow(tasks, mailbox, out)
    ray.shutdown()


if __name__ == "__main__":
    main()

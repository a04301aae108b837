"""Divides a run's tasks into shards, and finds the shard of this process.

Engines that run one program many times give each copy a number: Kubernetes' Indexed Jobs, Slurm's job arrays, and any
engine that sets `WABE_SHARD` and `WABE_SHARDS`.
"""

import heapq
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from judge.records.tasks import Level, Task
from judge.scenario.models import Shard
from shared.errors import ConfigError

MAX_SHARDS = 9999
_SLURM = "SLURM_ARRAY_TASK_ID"
# Ours first, because it is only set on purpose.
_INDEXES = ("WABE_SHARD", "JOB_COMPLETION_INDEX", _SLURM)
# From Online-Mind2Web, where easy tasks take humans up to 5 steps, medium ones up to 10, and hard ones more.
_STEPS: Mapping[Level | None, int] = MappingProxyType({"easy": 4, "medium": 8, "hard": 13, None: 8})


def shard_of(option: str, environ: Mapping[str, str]) -> Shard:
    """The shard that `--shards` and the engine's variables name. Raises `ConfigError`.

    The number of shards is the option's, else `WABE_SHARDS`, else the length of the Slurm array. In the last
    case Slurm's number is relative to the array's first one, so that the array may begin anywhere. Otherwise it counts
    from 0, so that an array of selected numbers restarts these shards.
    """
    named = None if option == "auto" else _shards("--shards", option)
    variable = next((name for name in _INDEXES if environ.get(name)), None)
    if variable is None:
        raise ConfigError(
            "--shards: no variable gives the index of this shard",
            remedy=f"set WABE_SHARD (from 0), or start it by an engine that sets {_INDEXES[1]} or {_SLURM}",
        )
    index = _number(variable, environ[variable])
    if named is not None:
        of = named
    elif environ.get("WABE_SHARDS"):
        of = _shards("WABE_SHARDS", environ["WABE_SHARDS"])
    elif variable == _SLURM and environ.get("SLURM_ARRAY_TASK_COUNT"):
        of = _shards("SLURM_ARRAY_TASK_COUNT", environ["SLURM_ARRAY_TASK_COUNT"])
        index -= _number("SLURM_ARRAY_TASK_MIN", environ.get("SLURM_ARRAY_TASK_MIN") or "0")
    else:
        raise ConfigError(
            f"--shards auto: {variable} is set, but not how many shards there are",
            remedy="set WABE_SHARDS, or give --shards N",
        )
    if not 0 <= index < of:
        raise ConfigError(
            f"{variable} is {environ[variable]}, which is none of {of} shards",
            remedy="number them without gaps; set WABE_SHARDS to restart some of them",
        )
    return Shard(index=index, of=of)


def _shards(name: str, text: str) -> int:
    of = _number(name, text)
    if not 1 <= of <= MAX_SHARDS:
        raise ConfigError(f"{name}: {of} shards", remedy=f"give 1 to {MAX_SHARDS}")
    return of


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ConfigError(f"{name}: {text[:40]!a} is not a number", remedy="give a whole number, from 0")
    return int(text)


def run_id_of(environ: Mapping[str, str]) -> str:
    """The id of the run that all shards belong to. Raises `ConfigError`."""
    if run_id := environ.get("WABE_RUN_ID"):
        return run_id
    if job := environ.get("SLURM_ARRAY_JOB_ID"):
        return f"slurm-{job}"
    raise ConfigError(
        "--shards: no variable gives the id of the shards' run", remedy="set WABE_RUN_ID to the same id for all of them"
    )


def expected_steps(task: Task, max_steps: int) -> int:
    """The expected number of steps: the human reference's, else the usual number for the task's level."""
    return min(task.reference_length or _STEPS[task.level], max_steps)


def balanced_shards(tasks: Sequence[Task], count: int, *, max_steps: int) -> list[tuple[Task, ...]]:
    """The tasks in `count` shards with about the same number of expected steps, in the given order within a shard.

    The assignment depends on the set of tasks, not on their order. With more shards than tasks, the last are empty.
    """
    # The longest first, each into the shard with the fewest steps so far.
    longest = sorted(tasks, key=lambda task: (-expected_steps(task, max_steps), task.task_id))
    loads = [(0, index) for index in range(count)]
    places: dict[str, int] = {}
    for task in longest:
        load, index = heapq.heappop(loads)
        places[task.task_id] = index
        heapq.heappush(loads, (load + expected_steps(task, max_steps), index))
    shards: list[list[Task]] = [[] for _ in range(count)]
    for task in tasks:
        shards[places[task.task_id]].append(task)
    return [tuple(shard) for shard in shards]

"""A trajectory: one episode as it stands on disk, whatever layout it was stored in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.files import sha256_json
from shared.models import Record, Step, StopReason, Task

# Ends of an attempt that say nothing of the participant.
ABORTING: tuple[StopReason, ...] = ("environment_fault", "cancelled")
# What a verdict rests on. Not the verdict itself, nor what is made from these keys (`action_history`, `thoughts`), nor
# the clock. `network` and `probes` are not recorded yet and count as null.
_EVIDENCE = (
    *("task_id", "task", "website", "level", "reference_length", "scenario_key_points"),
    *("checks", "allowed_sites"),
    *("steps", "agent_final_answer", "stop_reason", "error", "blame", "max_steps", "attempt", "network", "probes"),
)


class Trajectory(Record):
    """What judges read. `screenshots` and `snapshots` are absolute paths in step order.

    Foreign layouts (Online-Mind2Web v1/v2) have no step records: `steps` is empty there and `snapshots` too.
    `sha256` is the digest of the evidence as it is on disk; `is_digested` says that its recorder wrote digests as well,
    and that they match.
    """

    folder: Path
    task: Task
    action_history: tuple[str, ...]
    thoughts: tuple[str, ...] = ()
    screenshots: tuple[Path, ...] = ()
    snapshots: tuple[Path, ...] = ()
    steps: tuple[Step, ...] = ()
    final_answer: str | None = None
    stop_reason: StopReason | None = None
    error: str | None = None
    is_aborted: bool = False
    sha256: str | None = None
    is_digested: bool = False


def evidence_sha256(result: Mapping[str, Any]) -> str:
    """The digest of a trajectory, from its `result.json`: the steps in it carry the digests of their files."""
    return sha256_json({key: result.get(key) for key in _EVIDENCE})

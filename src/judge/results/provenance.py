"""What a result was made with: versions, checksums, settings; enough to tell whether two results compare."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from judge.config import RunConfig
from shared.models import JudgeInfo, Task

PACKAGES = ("wabe", "a2a-sdk", "mcp", "playwright", "google-genai", "openai", "pydantic")


def task_set_checksum(tasks: Sequence[Task]) -> str:
    """SHA-256 of the tasks in order of their ids: the same set in another order has the same checksum."""
    listed = [_declared(task) for task in sorted(tasks, key=lambda task: task.task_id)]
    return hashlib.sha256(json.dumps(listed, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _declared(task: Task) -> dict[str, Any]:
    """The task as JSON. Keys that came later are left out where unset, so that older runs keep their checksums."""
    unset = {key for key in ("checks", "allowed_sites") if not getattr(task, key)}
    return task.model_dump(mode="json", exclude=unset)


def config_checksum(config: RunConfig) -> str:
    """SHA-256 of the settings that can change a result; run ids, shards and parallelism cannot."""
    return settings_checksum(config.model_dump(mode="json"))


def settings_checksum(settings: Mapping[str, Any]) -> str:
    """`config_checksum` of a configuration as `run.json` has it, also of a version with other settings."""
    left_out = {"run_id", "participant_ids", "shard_index", "num_shards", "num_instances", "max_parallel"}
    kept = {key: value for key, value in settings.items() if key not in left_out}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def package_versions() -> dict[str, str]:
    """The installed versions of what a result depends on."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def provenance(
    *, config: RunConfig, tasks: Sequence[Task], judge: JudgeInfo | None, environment: Mapping[str, str], run_id: str
) -> dict[str, Any]:
    """The `provenance` block of a submission."""
    return {
        "run_id": run_id,
        "packages": package_versions(),
        "environment": dict(environment),
        "task_set_checksum": task_set_checksum(tasks),
        "config_checksum": config_checksum(config),
        "judge_code_checksum": judge.code_checksum if judge else None,
        "prompt_checksum": judge.prompt_checksum if judge else None,
        "shard": {"index": config.shard_index, "of": config.num_shards},
    }

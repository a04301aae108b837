"""The only parser of scenarios: a TOML file or an A2A request text into checked records.

Every mistake is a `ConfigError` of one line: the file, the table and key, an excerpt of the value, the remedy.
"""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.scenario.models import AgentEntry as AgentEntry
from judge.scenario.models import AssessmentRequest as AssessmentRequest
from judge.scenario.models import Scenario as Scenario
from judge.scenario.models import SiteEntry as SiteEntry
from judge.scenario.request import parse_request as parse_request
from judge.scenario.request import request_text as request_text
from judge.scenario.tables import MAX_TASKS as MAX_TASKS
from judge.scenario.tables import TASK_KEYS, Table, did_you_mean, excerpt, read_config, read_tasks
from shared.errors import ConfigError
from shared.files import decode, parse_toml, read_file, reason_of
from shared.models import Level, Task

MAX_FILE_BYTES = 16_000_000
_MAX_AGENTS = 16
_MAX_VARIABLES = 100
_TOP_KEYS = ("green_agent", "participants", "sites", "config", "tasks")
_AGENT_KEYS = ("role", "name", "endpoint", "cmd", "agentbeats_id", "env", "image")
_LOOPBACK = {"localhost", "0.0.0.0", "::1", "::"}


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario file. Raises nothing but `ConfigError`."""
    return parse_scenario(read_scenario_bytes(path), path)


def read_scenario_bytes(path: Path, *, what: str = "a scenario TOML file") -> bytes:
    """The bytes of a regular file. Raises `ConfigError` when it cannot be read, or is too large."""
    try:
        return read_file(path, max_bytes=MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_name(path)}: {reason_of(error)}", remedy=f"give the path of {what}") from None


def parse_scenario(content: bytes, path: Path) -> Scenario:
    """Check the bytes of a scenario file; `path` names it in errors. Raises nothing but `ConfigError`."""
    source = _name(path)
    top = Table(source, "the file", read_toml(content, source))
    top.refuse_unknown(_TOP_KEYS)
    if "green_agent" not in top.data:
        raise top.mistake("green_agent", "missing", "add a [green_agent] table")
    green = _agent(Table(source, "[green_agent]", top.data["green_agent"]), default_role="green_agent")
    participants = tuple(_agent(table) for table in _tables(top, "participants", most=_MAX_AGENTS))
    if not participants:
        raise top.mistake("participants", "missing", "add a [[participants]] table with role and endpoint")
    sites = tuple(_site(table) for table in _tables(top, "sites", most=_MAX_AGENTS))
    _refuse_conflicts(source, (green, *participants), sites)
    settings = Table(source, "[config]", top.data.get("config", {}))
    settings.refuse_unknown(RunConfig.model_fields)
    config = read_config(settings, strict=True)
    for table in _tables(top, "tasks", most=MAX_TASKS):
        table.refuse_unknown(TASK_KEYS)
    tasks = read_tasks(source, "[[tasks]]", top.data.get("tasks", []))
    if not tasks and config.scenario is None:
        raise top.mistake("tasks", "missing", "add a [[tasks]] table, or name a bundled set as config.scenario")
    return Scenario(
        green_agent=green,
        participants=participants,
        sites=sites,
        config=config,
        tasks=tasks,
        path=path,
        source_checksum=hashlib.sha256(content).hexdigest(),
    )


def select(
    tasks: tuple[Task, ...], *, limit: int | None = None, level: str | None = None, ids: Collection[str] = ()
) -> tuple[Task, ...]:
    """The tasks of that level and among those ids, in order, at most `limit`. Raises `ConfigError` if none is left."""
    if level is not None and level not in get_args(Level):
        raise ConfigError(f"--level {excerpt(level)} is not a level", remedy=did_you_mean(level, get_args(Level)))
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit} leaves no task", remedy="give 1 or more")
    known = [task.task_id for task in tasks]
    for task_id in ids:
        if task_id not in known:
            raise ConfigError(f"--task {excerpt(task_id)} is no task of this scenario", remedy=_some(task_id, known))
    chosen = tuple(task for task in tasks if level in (None, task.level) and (not ids or task.task_id in ids))[:limit]
    if not chosen:
        raise ConfigError("no task is left to run", remedy="loosen --level and --task")
    return chosen


def shard(tasks: tuple[Task, ...], index: int, num: int, *, instances: int | None = None) -> tuple[Task, ...]:
    """Slice `index` (from 0) of `num`: every `num`-th task from `index` on; of the first `instances` tasks, when given.

    The slices of one task list are disjoint, cover it, differ in size by at most one, and depend on nothing but the
    order of the list; neighbouring tasks (often of one website or level) land in different shards. A slice may be
    empty when there are more shards than tasks.
    """
    if not 0 <= index < num:
        raise ConfigError(f"shard_index {index} of num_shards {num}", remedy="0 <= shard_index < num_shards")
    return tasks[:instances][index::num]


def _some(word: str, known: list[str]) -> str:
    return did_you_mean(word, known) if len(known) <= 10 else did_you_mean(word, [*known[:9], "…"])


def _name(path: Path) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(path))


def read_toml(content: bytes, source: str) -> Any:
    """The tables of a TOML text; `source` names it in errors. Raises nothing but `ConfigError`."""
    try:
        return parse_toml(decode(content))
    except ValueError as error:
        raise ConfigError(f"{source}: {error}", remedy="write TOML with plain numbers and texts, as UTF-8") from None


def _tables(top: Table, key: str, *, most: int) -> list[Table]:
    value = top.data.get(key, [])
    if not isinstance(value, list):
        raise top.mistake(key, f"{excerpt(value)} is not a list of tables", f"write [[{key}]], in two brackets")
    if len(value) > most:
        raise top.mistake(key, f"{len(value)} of them, at most {most}", "use fewer; shard larger task sets")
    return [Table(top.source, f"[[{key}]] #{number}", item) for number, item in enumerate(value, 1)]


def _agent(table: Table, default_role: str | None = None) -> AgentEntry:
    table.refuse_unknown(_AGENT_KEYS)
    role = table.text("role", limit=100) or table.text("name", limit=100) or default_role
    if not role:
        raise table.mistake("role", "missing", 'add role = "white_agent"')
    cmd = table.command("cmd")
    return AgentEntry(
        role=role,
        endpoint=table.endpoint("endpoint", required=cmd is not None, with_port=cmd is not None),
        cmd=cmd,
        agentbeats_id=table.text("agentbeats_id", limit=200) or "",
        env=_env(table),
        image=table.text("image", limit=500),
    )


def _site(table: Table) -> SiteEntry:
    table.refuse_unknown(("name", "endpoint", "cmd"))
    cmd = table.command("cmd")
    return SiteEntry(
        name=table.required("name", limit=100, example='"shop"'),
        endpoint=table.endpoint("endpoint", required=True, with_port=cmd is not None) or "",
        cmd=cmd,
    )


def _env(table: Table) -> dict[str, str]:
    """The `env` table. Its values may be secrets, so no error shows one."""
    value = table.data.get("env", {})
    if not isinstance(value, Mapping) or len(value) > _MAX_VARIABLES:
        raise table.mistake("env", f"not a table of at most {_MAX_VARIABLES} texts", 'write env = { NAME = "value" }')
    for name, text in value.items():
        if not isinstance(text, str) or "\0" in text or not name or "=" in name or "\0" in name:
            raise table.mistake("env", f"the variable {excerpt(name)} is not a text", f'write {name[:40]!a} = "value"')
    return dict(value)


def _refuse_conflicts(source: str, agents: tuple[AgentEntry, ...], sites: tuple[SiteEntry, ...]) -> None:
    """Names double as log names and endpoints as ports, so both must be unique."""
    names: set[str] = set()
    places: dict[tuple[str, int], str] = {}
    members = [(agent.role, agent.endpoint) for agent in agents] + [(site.name, site.endpoint) for site in sites]
    for name, endpoint in members:
        if name in names:
            raise ConfigError(
                f"{source}: {excerpt(name)} is the name of two agents or sites", remedy="give each its own role or name"
            )
        names.add(name)
        if endpoint is None:
            continue
        parts = urlsplit(endpoint)
        host = parts.hostname or ""
        host = "127.0.0.1" if host in _LOOPBACK else host
        place = (host, parts.port or (443 if parts.scheme == "https" else 80))
        other = places.setdefault(place, name)
        if other != name:
            raise ConfigError(
                f"{source}: {excerpt(name)} and {excerpt(other)} share {excerpt(endpoint)}",
                remedy="give each agent and site its own port",
            )

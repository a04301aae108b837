"""The assessment request: the JSON text of one A2A message, both ways."""

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from judge.config import RunConfig
from judge.scenario.models import AssessmentRequest, Launch, Scenario
from judge.scenario.tables import TASK_KEYS, Table, excerpt, read_config, read_task, read_tasks
from shared.errors import ConfigError
from shared.models import Task

MAX_REQUEST_CHARS = 8_000_000
MAX_PARTICIPANTS = 16
_MAX_WARNINGS = 50
_SOURCE = "assessment request"
_REQUEST_KEYS = ("participants", "config", "tasks", "launch")

Bundled = Callable[[str], tuple[Task, ...]]


def parse_request(text: str, bundled: Bundled) -> AssessmentRequest:
    """Read the request `{"participants": {role: url}, "config": {…}}`.

    Tasks are `config.tasks`, else a top-level `tasks`, else the bundled set that `config.scenario` names (`bundled`
    looks it up and raises `ConfigError` for an unknown name), else `config` itself is the one task. Unknown keys come
    back as warnings. `num_instances` is how many tasks all shards have together; beside a `shard_index` without
    `num_shards` it counts the shards. The tasks are not sharded here: see `shard`. Raises nothing but `ConfigError`.
    """
    data = _read_json(text)
    warnings = data.unknown(_REQUEST_KEYS)
    participants = _participants(data)
    table = Table(_SOURCE, "config", data.data.get("config") or {})
    tasks, task_warnings, taken = _tasks(data, table, bundled)
    warnings += task_warnings
    values = {key: value for key, value in table.data.items() if key not in taken}
    if "shard_index" in values and "num_shards" not in values and "num_instances" in values:
        values["num_shards"] = values.pop("num_instances")
    rest = Table(_SOURCE, "config", values)
    warnings += rest.unknown(RunConfig.model_fields)
    config = read_config(rest, strict=False)
    if len(warnings) > _MAX_WARNINGS:
        warnings = [*warnings[:_MAX_WARNINGS], f"{_SOURCE}: {len(warnings) - _MAX_WARNINGS} more warnings"]
    return AssessmentRequest(
        participants=participants, config=config, tasks=tasks, launch=_launch(data), warnings=tuple(warnings)
    )


def request_text(
    scenario: Scenario,
    *,
    tasks: tuple[Task, ...] | None = None,
    config: RunConfig | None = None,
    launch: Launch | None = None,
) -> str:
    """The request that `agentbeats-run` sends for `scenario`, with other tasks or another config where given.

    Only settings that were set are sent, so that any judge of this benchmark understands it. `launch` is for a judge
    of the runner's own.
    Raises `ConfigError` when a participant has no endpoint.
    """
    chosen = scenario.tasks if tasks is None else tasks
    settings = scenario.config if config is None else config
    endpoints: dict[str, str] = {}
    for agent in scenario.participants:
        if agent.endpoint is None:
            raise ConfigError(
                f"{scenario.path}: participant {excerpt(agent.role)} has no endpoint",
                remedy='add endpoint = "http://127.0.0.1:PORT"',
            )
        endpoints[agent.role] = agent.endpoint
    body: dict[str, Any] = settings.model_dump(mode="json", exclude_unset=True)
    ids = {agent.role: agent.agentbeats_id for agent in scenario.participants if agent.agentbeats_id}
    if ids and "participant_ids" not in body:
        body["participant_ids"] = ids
    if chosen:
        body["tasks"] = [task.model_dump(mode="json", exclude_defaults=True) for task in chosen]
    told = {} if launch is None else {"launch": launch.model_dump(mode="json", exclude_defaults=True)}
    return json.dumps({"participants": endpoints, "config": body, **told}, ensure_ascii=False, allow_nan=False)


def _read_json(text: str) -> Table:
    if len(text) > MAX_REQUEST_CHARS:
        raise ConfigError(
            f"{_SOURCE}: {len(text)} characters, more than {MAX_REQUEST_CHARS}", remedy="send fewer tasks at once"
        )
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{_SOURCE}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}: {excerpt(text)}",
            remedy='send {"participants": {role: url}, "config": {…}}',
        ) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]
        raise ConfigError(f"{_SOURCE}: not usable JSON: {reason}", remedy="send plain numbers and texts") from None
    return Table(_SOURCE, "the message", value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _participants(data: Table) -> dict[str, str]:
    value = data.data.get("participants")
    if not value:
        raise data.mistake("participants", "missing or empty", 'add "participants": {"white_agent": "http://…"}')
    table = Table(_SOURCE, "participants", value)
    addresses = Table(_SOURCE, "participants", {role: _address(url) for role, url in table.data.items()})
    if len(table.data) > MAX_PARTICIPANTS:
        raise data.mistake("participants", f"{len(table.data)} of them, at most {MAX_PARTICIPANTS}", "send fewer")
    roles = Table(_SOURCE, "participants", {role: role for role in table.data})
    found = {}
    for role in table.data:
        if roles.required(role, limit=100, example="a role name") != role:
            raise table.mistake(role, "a role name has spaces around it", "remove them")
        found[role] = addresses.endpoint(role, required=True, with_port=False) or ""
    return found


def _launch(data: Table) -> Launch | None:
    value = data.data.get("launch")
    try:
        return None if value is None else Launch.model_validate(value)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
        raise data.mistake("launch", f"{excerpt(where)} is not usable", "leave it out") from None


def _address(url: object) -> object:
    """The platform's gateway makes the path of an address from a role as it is written, with its spaces."""
    head, slash, path = url.rpartition("/") if isinstance(url, str) and url.count("/") > 2 else ("", "", "")
    return f"{head}/{path.strip().replace(' ', '%20')}" if slash else url


def _tasks(data: Table, config: Table, bundled: Bundled) -> tuple[tuple[Task, ...], list[str], set[str]]:
    """The tasks, warnings about them, and the keys of `config` that were theirs."""
    for table, where in ((config, "config.tasks"), (data, "tasks")):
        value = table.data.get("tasks")
        if value is None:
            continue
        tasks = read_tasks(_SOURCE, where, value)
        if not tasks:
            raise ConfigError(f"{_SOURCE}: {where} is empty", remedy="send at least one task")
        warnings = [
            warning
            for number, item in enumerate(value, 1)
            for warning in Table(_SOURCE, f"{where} #{number}", item).unknown(TASK_KEYS)
        ]
        if table is config and data.data.get("tasks") is not None:
            warnings.append(f"{_SOURCE}: tasks is ignored, since config.tasks is there")
        return tasks, warnings, {"tasks"}
    name = config.text("scenario")
    if name and "task_id" not in config.data:
        return bundled(name), [], {"tasks"}
    if not any(key in config.data for key in TASK_KEYS):
        raise ConfigError(
            f"{_SOURCE}: no tasks", remedy="send config.tasks, a bundled set as config.scenario, or one task as config"
        )
    return (read_task(config),), [], {*TASK_KEYS, "tasks"}

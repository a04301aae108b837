"""Parses the assessment request: the JSON text of one A2A message."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, TypeAdapter

from judge.config import CONFIG, RunConfig
from judge.records.access import StorageState
from judge.records.events import WITHHELD
from judge.records.tasks import Exclusion, Task
from judge.records.user import impossible_grant
from judge.scenario.credentials import clear_text_note
from judge.scenario.days import today_of, with_today
from judge.scenario.files import files_problem, with_contents
from judge.scenario.logins import login_problem
from judge.scenario.models import (
    EXAMPLES,
    ONE_TASK,
    TASKS,
    AssessmentRequest,
    Launch,
    Reading,
    RequestBody,
    TaskTable,
    divided,
)
from judge.scenario.pairs import planned
from shared.errors import ConfigError
from shared.fields import as_mapping, did_you_mean, keys_of, printable, remedy_for
from shared.files import reason_of
from shared.strict_json import parse_json
from shared.text import counted
from shared.toml_lines import KeyPath
from shared.validation import mistake, validated

# The same limit as for a scenario file.
MAX_REQUEST_CHARS = 16_000_000
_MAX_WARNINGS = 50
_SOURCE = "assessment request"
# Keys of a task that must not be ignored: what they hold back would be sent, and what they forbid would not be noticed.
_SAFETY = ("policies", "attacks", "hold", "writes", "user_replies", "user_reply")
# Those that a request may declare for all its tasks.
_COMMON = ("policies", "attacks", "variants")
_BODY = TypeAdapter(RequestBody)

Bundled = Callable[[str], tuple[Task, ...]]
# Opens the text of a sealed file, whose dates are relative to a day.
Opened = Callable[[str, date], tuple[Task, ...]]


def parse_request(text: str, bundled: Bundled, opened: Opened | None = None) -> AssessmentRequest:
    """Read the request `{"participants": {role: url}, "config": {…}}`.

    Tasks come from `config.sealed`, the text of a sealed file (`opened` opens it, and raises `ConfigError` without
    its key), of which `config.tasks` may name some; else `config.tasks`, else a top-level `tasks`, else the bundled set
    that `config.scenario` names (`bundled` looks it up and raises `ConfigError` for an unknown name), else `config`
    itself is the only task. Unknown keys are
    returned as warnings. `num_instances` is the total number of tasks of all shards; with a `shard_index` but no
    `num_shards` it is the number of shards. Does not shard the tasks: see `shard`. Raises only `ConfigError`.
    """
    warnings: list[str] = []
    value = _read_json(text)
    _require_known_safety(value)
    known = _without_unknown_keys(value, RequestBody, (), warnings)
    body = validated(_BODY, known, _SOURCE, examples={"participants": '{"white_agent": "http://127.0.0.1:9019"}'})
    today = today_of(body.config)
    tasks, settings = _sealed(body.config, opened, today) or _tasks(body, bundled, warnings, today)
    if "shard_index" in settings and "num_shards" not in settings and "num_instances" in settings:
        settings["num_shards"] = settings.pop("num_instances")
    settings = _without_unknown_keys(settings, RunConfig, ("config",), warnings)
    config = validated(CONFIG, settings, _SOURCE, under=("config",))
    if any(task.is_about_days for task in tasks):
        # A bundled set has the day on which it was read.
        config = with_today(config, next((task.dated.day for task in tasks if task.dated), today))
    tasks = tuple(with_contents(_with_state(task, body.storage_states), body.files) for task in tasks)
    tasks, excluded = divided(tasks)
    if excluded and not tasks:
        raise mistake(_SOURCE, ("tasks",), "every task is excluded", "send one that is to be played")
    _require_tasks_to_exclude(config, tasks, body.launch)
    tasks = planned(tasks, config)
    if not tasks:
        key, problem = (
            ("attacks", "no task declares an attack") if config.attacks != "off" else ("variants", "none holds")
        )
        raise mistake(_SOURCE, ("config", key), problem, f'send {key} = "off"')
    for task in tasks:
        if wrong := impossible_grant(task.user_replies, task.policies):
            reply, key, problem, remedy = wrong
            raise _task_mistake(task, ("user_replies", reply, key), problem, remedy)
        if message := login_problem(task, config.sites) or files_problem(task):
            raise _task_mistake(task, *message)
    warnings += _notes_on_headers(body)
    if len(warnings) > _MAX_WARNINGS:
        warnings = [*warnings[:_MAX_WARNINGS], f"{_SOURCE}: {counted(len(warnings) - _MAX_WARNINGS, 'more warning')}"]
    return AssessmentRequest(
        participants=body.participants,
        config=config,
        tasks=tasks,
        excluded=exclusions_of(excluded),
        launch=body.launch,
        participant_headers=body.participant_headers,
        resume_token=body.resume_token,
        warnings=tuple(warnings),
    )


def _task_mistake(task: Task, path: KeyPath, problem: str, remedy: str) -> ConfigError:
    """The error for a task of the request; what a sealed one says is not quoted."""
    source = f"{_SOURCE}: task {task.task_id}"
    if task.sealed:
        return ConfigError(f"{source}: it cannot be played with these settings", remedy="send the sealed set alone")
    return mistake(source, path, problem, remedy)


def _notes_on_headers(body: RequestBody) -> list[str]:
    """Warnings about credentials. Raises `ConfigError` for an unknown participant's."""
    for role in body.participant_headers:
        if role not in body.participants:
            raise mistake(
                _SOURCE, ("participant_headers", role), "no such participant", did_you_mean(role, body.participants)
            )
    notes = (clear_text_note(body.participants[role], each) for role, each in body.participant_headers.items())
    return [f"{_SOURCE}: {note}" for note in notes if note]


def exclusions_of(excluded: Iterable[Task]) -> tuple[Exclusion, ...]:
    """The tasks that a scenario excludes, as results name them."""
    return tuple(Exclusion(task_id=task.task_id, reason=_reason(task), by="scenario") for task in excluded)


def _reason(task: Task) -> str:
    return WITHHELD if task.sealed else task.excluded or ""


def _require_tasks_to_exclude(config: RunConfig, tasks: Sequence[Task], launch: Launch | None) -> None:
    """Raises `ConfigError` if `config.exclude` names an unknown task, or all tasks."""
    # A shard's request has its own tasks only; the runner has checked the names.
    if not config.exclude or (launch is not None and launch.shard is not None):
        return
    known = {task.task_id for task in tasks}
    if unknown := [task_id for task_id in config.exclude if task_id not in known]:
        raise mistake(_SOURCE, ("config", "exclude", unknown[0]), "no such task", "name a task of this request")
    if known == config.exclude.keys():
        raise mistake(_SOURCE, ("config", "exclude"), "every task is excluded", "exclude fewer tasks")


def _with_state(task: Task, states: Mapping[str, StorageState]) -> Task:
    """The task with the storage state that it names; a name not in the request is left unchanged."""
    state = task.storage_state
    return task.model_copy(update={"storage_state": states.get(state, state)}) if isinstance(state, str) else task


def _read_json(text: str) -> object:
    if len(text) > MAX_REQUEST_CHARS:
        raise mistake(_SOURCE, (), f"{len(text)} characters, more than {MAX_REQUEST_CHARS}", "send fewer tasks at once")
    try:
        return parse_json(text)
    except ValueError as error:
        remedy = 'send {"participants": {role: url}, "config": {…}}'
        # An object may contain credentials.
        quoted = "" if "{" in text else f": {printable(text)}"
        raise mistake(_SOURCE, (), f"{reason_of(error)}{quoted}", remedy) from None


def _require_known_safety(value: object) -> None:
    """Raises `ConfigError` for a key about safety that would be ignored: what it holds back would really be sent."""
    body = as_mapping(value)
    config = as_mapping(body.get("config"))
    has_tasks = config.get("tasks") is not None or body.get("tasks") is not None
    misplaced: list[tuple[str, ...]] = []
    if has_tasks:
        misplaced += [("config", key) for key in _SAFETY if key in config and key not in keys_of(RunConfig)]
    misplaced += [(key,) for key in _SAFETY if key in body and not (has_tasks and key in _COMMON)]
    for path in misplaced[:1]:
        raise mistake(_SOURCE, path, "belongs into a task", f"put {path[-1]} into each entry of tasks")
    known = keys_of(TaskTable)
    for place, tasks in ((("config", "tasks"), config.get("tasks")), (("tasks",), body.get("tasks"))):
        for number, task in enumerate(tasks if isinstance(tasks, list) else ()):
            for key in as_mapping(task):
                close = key not in known and get_close_matches(str(key)[:100].lower(), _SAFETY, n=1, cutoff=0.7)
                if close:
                    raise mistake(_SOURCE, (*place, number, key), "unknown key", f"did you mean '{close[0]}'?")


def _without_unknown_keys(
    value: object, model: type[BaseModel], path: tuple[str | int, ...], warnings: list[str]
) -> Any:
    """A table without nulls and without keys that the model does not have; each of those becomes a warning."""
    if not isinstance(value, Mapping):
        return value
    known = keys_of(model)
    for key in value:
        if key not in known:
            # Beyond the limit, keys are dropped without a separate warning: finding the closest key is slow.
            if len(warnings) >= _MAX_WARNINGS:
                warnings.append("")
                continue
            problem = f"unknown key, ignored ({remedy_for(key, model)})"
            warnings.append(mistake(_SOURCE, (*path, key), problem, "").message)
    return {key: item for key, item in value.items() if key in known and item is not None}


def _with_common(task: Any, body: RequestBody) -> Any:
    """The task with the policies, attacks and variants declared for all tasks, which come first."""
    if not isinstance(task, Mapping):
        return task
    task_table = dict(task)
    for key in _COMMON:
        common, own = getattr(body, key), task.get(key, [])
        if common and isinstance(own, list):
            task_table[key] = [*common, *own]
    return task_table


def _sealed(
    config: Mapping[str, Any], opened: Opened | None, today: date
) -> tuple[tuple[Task, ...], dict[str, Any]] | None:
    """The tasks of a sealed set that the request asks for, and the rest of `config`; `None` without a sealed set."""
    text, names = config.get("sealed"), config.get("tasks")
    if text is None:
        return None
    if not isinstance(text, str) or opened is None:
        raise mistake(_SOURCE, ("config", "sealed"), "not the text of a sealed file", "send what the file contains")
    tasks = {task.task_id: task for task in opened(text, today)}
    rest = {key: value for key, value in config.items() if key not in ("sealed", "tasks")}
    if names is None:
        return (*tasks.values(),), rest
    plain_names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if not plain_names or plain_names != names:
        raise mistake(_SOURCE, ("config", "tasks"), "not a list of ids", "send ids of the sealed set, or no tasks")
    if unknown := [name for name in plain_names if name not in tasks]:
        raise mistake(_SOURCE, ("config", "tasks"), f"{printable(unknown[0])} is not in the sealed set", "send its ids")
    return tuple(tasks[name] for name in dict.fromkeys(plain_names)), rest


def _tasks(
    body: RequestBody, bundled: Bundled, warnings: list[str], today: date
) -> tuple[tuple[Task, ...], dict[str, Any]]:
    """The tasks, and the rest of `config` as settings."""
    config = body.config
    rest = {key: value for key, value in config.items() if key != "tasks"}
    for tasks, path in ((config.get("tasks"), ("config", "tasks")), (body.tasks, ("tasks",))):
        if tasks is None:
            continue
        if isinstance(tasks, list):
            tasks = [
                _with_common(_without_unknown_keys(task, TaskTable, (*path, place), warnings), body)
                for place, task in enumerate(tasks)
            ]
        if path == ("config", "tasks") and body.tasks is not None:
            warnings.append(f"{_SOURCE}: tasks is ignored, because config.tasks is given")
        return validated(TASKS, tasks, _SOURCE, under=path, examples=EXAMPLES, context=Reading(today)), rest
    name = config.get("scenario")
    if isinstance(name, str) and name and "task_id" not in config:
        return bundled(name), rest
    keys = keys_of(TaskTable)
    if not any(key in config for key in keys):
        remedy = "send config.tasks, a bundled set as config.scenario, or one task as config"
        raise mistake(_SOURCE, (), "no tasks", remedy)
    table = {key: value for key, value in config.items() if key in keys and value is not None}
    task = validated(ONE_TASK, table, _SOURCE, under=("config",), examples=EXAMPLES, context=Reading(today))
    return (task,), {key: value for key, value in rest.items() if key not in keys}

"""Tasks as text: drawn by level, written as TOML, taken from the Online-Mind2Web dataset, checked. Pure."""

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from judge.scenario.tables import TASK_KEYS, Table, excerpt, read_task
from judge.scenario.toml import MAX_TASKS, Scenario, parse_scenario, read_toml
from shared.errors import ConfigError
from shared.files import decode, parse_json, reason_of
from shared.models import Level, Task

_LEVELS: tuple[Level | None, ...] = (*get_args(Level), None)
_MAX_PROBLEMS = 100


def sample(tasks: Sequence[Task], *, count: int, seed: int) -> tuple[Task, ...]:
    """`count` tasks of each level (all of them where there are fewer), easy first.

    The draw depends on the seed and the task ids, not on their order in the file.
    """
    chooser = random.Random(seed)
    drawn: list[Task] = []
    for level in _LEVELS:
        pool = sorted((task for task in tasks if task.level == level), key=lambda task: task.task_id)
        drawn += chooser.sample(pool, min(count, len(pool)))
    return tuple(drawn)


def toml_string(text: str) -> str:
    """`text` as a TOML basic string. JSON's escapes are TOML's, but for DEL, which JSON leaves bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def tasks_toml(tasks: Sequence[Task]) -> str:
    """`[[tasks]]` tables, one blank line between them."""
    return "\n".join(_task_toml(task) for task in tasks)


def scenario_toml(tasks: Sequence[Task], *, participant: str) -> str:
    """A scenario of these tasks that runs on this machine with the bundled participant of that name."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", participant):
        raise ConfigError(f"participant {excerpt(participant)} is no name", remedy="see wabe participant --list")
    return f"""[green_agent]
endpoint = "http://127.0.0.1:9009"
cmd = "wabe serve --host 127.0.0.1 --port 9009"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
cmd = "wabe participant {participant} --host 127.0.0.1 --port 9019"

[config]
max_steps = 15

{tasks_toml(tasks)}"""


def read_dataset(content: bytes, source: str) -> tuple[Task, ...]:
    """Tasks of an Online-Mind2Web dataset file, see `dataset_records`. Raises `ConfigError`.

    Each has `task_id`, `confirmed_task`, `website`, `level` and `reference_length`.
    """
    return dataset_tasks(dataset_records(content, source), source)


def dataset_records(content: bytes, source: str) -> list[object]:
    """The records of a dataset file: a JSON list, an object with such a list, or one object a line.

    The hub's viewer gives each record as `{"row": {…}}` in a list under `rows`. Raises `ConfigError`.
    """
    try:
        found = _values(decode(content))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}: not JSON: {error.msg} in {excerpt(error.doc)}", remedy=_EXPECTED) from None
    except ValueError as error:
        raise ConfigError(f"{source}: {reason_of(error)}", remedy=_EXPECTED) from None
    only = found[0] if len(found) == 1 else None
    if isinstance(only, dict) and "task_id" not in only:
        found = next((only[key] for key in _LISTS if isinstance(only.get(key), list)), found)
    return [item["row"] if isinstance(item, dict) and isinstance(item.get("row"), dict) else item for item in found]


def _values(text: str) -> list[object]:
    if text.lstrip().startswith("["):
        listed: list[object] = parse_json(text)
        return listed
    try:
        return [parse_json(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError:
        # One object over many lines?
        if not text.lstrip().startswith("{"):
            raise
        return [parse_json(text)]


_LISTS = ("data", "rows", "tasks", "test")
_EXPECTED = "give the dataset's JSON: a list of {task_id, confirmed_task, website, level, reference_length}"


def dataset_tasks(items: Sequence[object], source: str) -> tuple[Task, ...]:
    """Tasks of dataset records; the first mistake raises `ConfigError` naming the record."""
    if not items:
        raise ConfigError(f"{source}: no tasks", remedy=_EXPECTED)
    tasks: dict[str, Task] = {}
    for number, item in enumerate(items, 1):
        record = Table(source, f"record {number}", item)
        task = read_task(Table(source, f"record {number}", _renamed(record.data)))
        if task.task_id in tasks:
            raise record.mistake("task_id", f"'{task.task_id}' is there twice", "remove one")
        tasks[task.task_id] = task
    return tuple(tasks.values())


def problems_of(content: bytes, path: Path) -> tuple[Scenario | None, list[str]]:
    """The scenario, when there is one, and everything that is wrong with the file, a line each.

    Where the whole is refused, every task is looked at on its own, so that one run shows all mistakes.
    """
    try:
        return parse_scenario(content, path), []
    except ConfigError as error:
        first = str(error)
    try:
        tables = read_toml(content, str(path)).get("tasks")
    except ConfigError:
        tables = None
    lines = [first]
    seen: dict[str, int] = {}
    for number, item in enumerate(tables[:MAX_TASKS] if isinstance(tables, list) else [], 1):
        try:
            table = Table(str(path), f"[[tasks]] #{number}", item)
            table.refuse_unknown(TASK_KEYS)
            task_id = read_task(table).task_id
            earlier = seen.setdefault(task_id, number)
            if earlier != number:
                raise table.mistake("task_id", f"'{task_id}' is already the id of #{earlier}", "make ids unique")
        except ConfigError as error:
            lines.append(str(error))
    return None, list(dict.fromkeys(lines))[:_MAX_PROBLEMS]


def repeated(tasks: Sequence[Task]) -> list[str]:
    """A line for each task that says the same of the same website as an earlier one."""
    seen: dict[tuple[str, str], str] = {}
    lines = []
    for task in tasks:
        earlier = seen.setdefault((task.website, " ".join(task.task.split()).lower()), task.task_id)
        if earlier != task.task_id:
            lines.append(f"task {task.task_id} repeats the words of {earlier}")
    return lines


def statistics(tasks: Sequence[Task]) -> list[str]:
    """Lines that describe a task set: levels, websites, reference lengths."""
    levels = Counter(task.level for task in tasks)
    websites = Counter(task.website for task in tasks)
    lengths = sorted(task.reference_length for task in tasks if task.reference_length is not None)
    lines = [
        f"tasks: {len(tasks)}",
        "levels: " + ", ".join(f"{level or 'unknown'} {levels[level]}" for level in _LEVELS),
        f"websites: {len(websites)}",
        *(f"  {count} x {website}" for website, count in websites.most_common(10)),
    ]
    if lengths:
        middle = lengths[len(lengths) // 2]
        lines.append(f"reference lengths: {lengths[0]} to {lengths[-1]}, median {middle}, known for {len(lengths)}")
    return lines


def _task_toml(task: Task) -> str:
    lines = [
        "[[tasks]]",
        f"task_id = {toml_string(task.task_id)}",
        f"website = {toml_string(task.website)}",
        f"task = {toml_string(task.task)}",
    ]
    if task.level is not None:
        lines.append(f"level = {toml_string(task.level)}")
    if task.reference_length is not None:
        lines.append(f"reference_length = {task.reference_length}")
    if task.key_points:
        lines.append(f"key_points = {_toml_value(task.key_points)}")
    if task.allowed_sites:
        lines.append(f"allowed_sites = {_toml_value(task.allowed_sites)}")
    if task.checks:
        checks = task.model_dump(mode="json", include={"checks"}, exclude_defaults=True)["checks"]
        lines += ["checks = [", *(f"  {_toml_value(check)}," for check in checks), "]"]
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    """A JSON value in one line of TOML. A key whose value is null is left out: TOML has no null."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return toml_string(value)
        case Mapping():
            pairs = (f"{toml_string(key)} = {_toml_value(item)}" for key, item in value.items() if item is not None)
            return f"{{ {', '.join(pairs)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_toml_value, value))}]"
    return str(value)


def _renamed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset record under our keys; its further keys are none of ours."""
    known = {key: record[key] for key in ("task_id", "website", "level", "reference_length") if key in record}
    known["task"] = record.get("confirmed_task", record.get("task"))
    length = known.get("reference_length")
    if isinstance(length, float) and length.is_integer():
        known["reference_length"] = int(length)
    return known

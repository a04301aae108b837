"""Sources of tasks: samples by level and the Online-Mind2Web dataset; also writes tasks as TOML."""

import asyncio
import importlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args
from urllib.parse import urlsplit

import httpx
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from judge.records.tasks import Level, Task
from judge.scenario.models import EXAMPLES, TASKS, VARIABLE, SiteEntry
from shared.errors import ConfigError
from shared.fields import printable
from shared.files import decode, read_errors, read_file, reason_of
from shared.participants import module_of
from shared.patience import patience
from shared.strict_json import parse_json
from shared.tls import site_client, why_no_answer
from shared.validation import mistake, validated

DATASET = "osunlp/Online-Mind2Web"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LEVELS: tuple[Level | None, ...] = (*get_args(Level), None)
_LISTS = ("data", "rows", "tasks", "test")
_EXPECTED = "give the dataset's JSON: a list of {task_id, confirmed_task, website, level, reference_length}"


def sample(tasks: Sequence[Task], *, count: int, seed: int) -> tuple[Task, ...]:
    """`count` tasks of each level (or all, if there are fewer), easy first.

    The sample depends on the seed and the task ids, not on their order in the file.
    """
    chooser = random.Random(seed)
    sampled: list[Task] = []
    for level in _LEVELS:
        pool = sorted((task for task in tasks if task.level == level), key=lambda task: task.task_id)
        sampled += chooser.sample(pool, min(count, len(pool)))
    return tuple(sampled)


def hub_tasks() -> tuple[Task, ...]:
    """The complete dataset, through the optional package `datasets`. Raises `ConfigError` when it cannot be loaded."""
    try:
        hub = importlib.import_module("datasets")
    except ImportError:
        raise ConfigError(
            "no dataset file given, and the package 'datasets' is not installed",
            remedy="give the dataset's JSON file, or: pip install datasets",
        ) from None
    try:
        records = [dict(record) for record in hub.load_dataset(DATASET, split="test")]
    # The package raises errors of many kinds (network, access, its own), and each means that there is no data.
    except Exception as error:  # noqa: BLE001
        raise ConfigError(
            f"dataset {DATASET} cannot be loaded: {type(error).__name__}: {str(error).splitlines()[:1]!a:.200}",
            remedy="ask for access on its page and log in, or give its JSON file",
        ) from None
    return _dataset_tasks(records, DATASET)


def read_dataset(content: bytes, source: str) -> tuple[Task, ...]:
    """Tasks of an Online-Mind2Web dataset file, see `dataset_records`. Raises `ConfigError`.

    Each record has `task_id`, `confirmed_task`, `website`, `level` and `reference_length`.
    """
    return _dataset_tasks(dataset_records(content, source), source)


class DatasetTask(BaseModel):
    """A task in a dataset file. Datasets use different keys; the most specific one comes first.

    The parts are validated where they are used.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)

    task_id: str = Field(validation_alias=AliasChoices("task_id", "id", "annotation_id"))
    task: Any = Field(
        None, validation_alias=AliasChoices("confirmed_task", "task", "question", "ques", "instruction", "task_summary")
    )
    website: Any = Field(None, validation_alias=AliasChoices("website", "web", "url"))
    level: Any = None
    reference_length: Any = None


def read_task_rows(path: Path, option: str) -> dict[str, DatasetTask]:
    """The tasks by id of the dataset file that an option names, see `dataset_records`. Raises `ConfigError`."""
    remedy, tasks = "give the dataset file", {}
    with read_errors(f"{option} {path}", remedy):
        content = read_file(path)
    for value in dataset_records(content, f"{option} {path}"):
        # Other rows, such as a header, are skipped.
        with suppress(ValidationError):
            row = DatasetTask.model_validate(value)
            tasks[row.task_id] = row
    if not tasks:
        raise ConfigError(f"{option} {path}: no tasks in it", remedy=remedy)
    return tasks


def dataset_records(content: bytes, source: str) -> list[object]:
    """The records of a dataset file: a JSON list, an object with such a list, or one object per line.

    The hub's viewer returns each record as `{"row": {…}}` in a list under `rows`. Raises `ConfigError`.
    """
    try:
        records = _values(decode(content))
    except json.JSONDecodeError as error:
        raise mistake(source, (), f"not JSON: {error.msg} in {printable(error.doc)}", _EXPECTED) from None
    except ValueError as error:
        raise mistake(source, (), reason_of(error), _EXPECTED) from None
    only = records[0] if len(records) == 1 else None
    if isinstance(only, dict) and "task_id" not in only:
        records = next((only[key] for key in _LISTS if isinstance(only.get(key), list)), records)
    return [item["row"] if isinstance(item, dict) and isinstance(item.get("row"), dict) else item for item in records]


def _values(text: str) -> list[object]:
    if text.lstrip().startswith("["):
        items: list[object] = parse_json(text)
        return items
    try:
        return [parse_json(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError:
        # Not one object per line; perhaps one object over many lines.
        if not text.lstrip().startswith("{"):
            raise
        return [parse_json(text)]


def _dataset_tasks(records: Sequence[object], source: str) -> tuple[Task, ...]:
    if not records:
        raise mistake(source, (), "no tasks", _EXPECTED)
    tables = [_as_table(record) if isinstance(record, Mapping) else record for record in records]
    return validated(TASKS, tables, source, under=("record",), examples=EXAMPLES)


def _as_table(record: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset record under our keys, without its other keys and without nulls."""
    table = {key: record.get(key) for key in ("task_id", "website", "level", "reference_length")}
    table["task"] = next((record[key] for key in ("confirmed_task", "task", "task_description") if key in record), None)
    if isinstance(table["level"], str):
        table["level"] = table["level"].lower()
    length = table["reference_length"]
    if isinstance(length, float) and length.is_integer():
        table["reference_length"] = int(length)
    return {key: value for key, value in table.items() if value is not None}


def scenario_toml(
    tasks: Sequence[Task],
    *,
    participant: str,
    settings: Mapping[str, Any] = MappingProxyType({"max_steps": 15}),
    sites: Iterable[SiteEntry] = (),
) -> str:
    """A scenario for this machine with these tasks and settings and the bundled participant of that name.

    Options of the participant may follow its name.
    """
    module_of(participant.partition(" ")[0])
    return f"""[green_agent]
endpoint = "http://127.0.0.1:9009"
cmd = "wabe serve --host 127.0.0.1 --port 9009"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
cmd = "wabe participant {participant} --host 127.0.0.1 --port 9019"

{"".join(_table("[[sites]]", site.model_dump(exclude_defaults=True)) for site in sites)}
{_table("[config]", settings)}
{tasks_toml(tasks)}"""


def _table(heading: str, values: Mapping[str, Any]) -> str:
    lines = (f"{key} = {toml_value(value)}\n" for key, value in values.items())
    return f"{heading}\n{''.join(lines)}"


def tasks_toml(tasks: Sequence[Task]) -> str:
    """`[[tasks]]` tables, one blank line between them."""
    return "\n".join(_task_toml(task) for task in tasks)


def _task_toml(task: Task) -> str:
    lines = ["[[tasks]]"]
    fields = task.declared(exclude_defaults=True)
    # Only a reference to the secret; dumps exclude the secret itself, so it is never printed.
    if task.files:
        fields["files"] = [each.name for each in task.files]
    if isinstance(task.storage_state, str):
        fields["storage_state"] = task.storage_state
    if referring := [each for each in task.http_credentials if all(map(VARIABLE.fullmatch, each.written))]:
        fields["http_credentials"] = [each.model_dump(mode="json", exclude_defaults=True) for each in referring]
    if task.reference:
        fields["reference"] = task.reference
    if task.state:
        fields["state"] = task.state.model_dump(exclude_none=True)
    fields |= {key: str(day) for key in ("valid_from", "valid_until") if (day := getattr(task, key))}
    for key, value in fields.items():
        if key == "checks":
            ordered = (
                sorted(check.items(), key=lambda item: (item[0] != "kind", item[0] == "description")) for check in value
            )
            lines += ["checks = [", *(f"  {toml_value(dict(check))}," for check in ordered), "]"]
        else:
            lines.append(f"{key} = {toml_value(value)}")
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A JSON value in one line of TOML. A key whose value is null is left out: TOML has no null."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's escapes are valid in TOML, except that JSON does not escape DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            pairs = (f"{_toml_key(key)} = {toml_value(item)}" for key, item in value.items() if item is not None)
            return f"{{ {', '.join(pairs)} }}"
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
    return str(value)


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else str(toml_value(key))


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


async def reached(urls: Iterable[str], *, at_once: int = 8, timeout_s: float = 10.0) -> dict[str, str | None]:
    """Every host (`https://host:port`), with the reason if it does not answer. Each gets one request.

    Any HTTP answer counts as reached: many sites refuse clients that are not browsers.
    """
    by_host: dict[str, str] = {}
    for url in urls:
        by_host.setdefault(host_of(url), url)
    slots = asyncio.Semaphore(at_once)

    async with site_client(timeout=None) as client:

        async def ask(url: str) -> str | None:
            async with slots:
                try:
                    async with patience(timeout_s), client.stream("GET", url):
                        return None
                except httpx.HTTPError as error:
                    return why_no_answer(error)
                except TimeoutError:
                    return "it did not answer in time"
                except (httpx.InvalidURL, ValueError):
                    return "its address cannot be used"

        reasons = await asyncio.gather(*(ask(url) for url in by_host.values()))
    return dict(zip(by_host, reasons, strict=True))


def host_of(url: str) -> str:
    """The address of the host in a URL: scheme, name and port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"

"""Reads one table of a scenario or request key by key; every mistake is one line with its place, value and remedy."""

import difflib
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import ValidationError

from judge.config import RunConfig, first_problem, url_problem
from judge.scenario.checks import read_allowed_sites, read_checks
from shared.errors import ConfigError
from shared.models import Level, Task

MAX_TASKS = 1000
TASK_KEYS = ("task_id", "website", "task", "level", "reference_length", "key_points", "checks", "allowed_sites")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MAX_URL_CHARS = 2048
_MAX_TASK_CHARS = 10_000
_MAX_KEY_POINTS = 50
_MAX_REFERENCE_LENGTH = 10_000


def excerpt(value: object, limit: int = 60) -> str:
    """`value` as ASCII on one line, at most `limit` characters; for error texts."""
    if isinstance(value, str):
        value = value[: limit + 1]
    elif isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    elif isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'table'} of {len(value)} entries"
    text = ascii(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A remedy for a misspelt `word`: the closest known one, else all of them."""
    names = list(known)
    close = difflib.get_close_matches(str(word)[:100], names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(names)


class Table:
    """One table of a file or request. `where` says which, as in `[[tasks]] #3`; numbers count from 1."""

    def __init__(self, source: str, where: str, data: object) -> None:
        self.source = source
        self.where = where
        if not isinstance(data, Mapping):
            raise ConfigError(
                f"{source}: {where} is {excerpt(data)}, not a table", remedy="give it as key = value pairs"
            )
        self.data: Mapping[str, Any] = data

    def mistake(self, key: str, problem: str, remedy: str) -> ConfigError:
        """The error for one key; never holds a value that is not an excerpt."""
        return ConfigError(f"{self.source}: {self.where}, key {excerpt(key)}: {problem}", remedy=remedy)

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise for the first key that is not `known`."""
        names = tuple(known)
        for key in self.data:
            if key not in names:
                raise self.mistake(key, "unknown key", did_you_mean(key, names))

    def unknown(self, known: Iterable[str]) -> list[str]:
        """One warning a key that is not `known`."""
        names = tuple(known)
        return [
            f"{self.source}: {self.where}, key {excerpt(key)}: unknown key, ignored ({did_you_mean(key, names)})"
            for key in self.data
            if key not in names
        ]

    def text(self, key: str, *, limit: int = 1000, many_lines: bool = False) -> str | None:
        """The text under `key`, stripped, or `None` when the key is absent."""
        value = self.data.get(key)
        if value is None:
            return None
        return self._check_text(key, value, limit, many_lines)

    def required(self, key: str, *, limit: int = 1000, many_lines: bool = False, example: str) -> str:
        """The text under `key`; absent or empty is an error."""
        value = self.text(key, limit=limit, many_lines=many_lines)
        if not value:
            raise self.mistake(key, "missing" if value is None else "empty", f"add {key} = {example}")
        return value

    def texts(self, key: str, *, most: int, limit: int = 1000) -> tuple[str, ...]:
        """A list of non-empty texts, or `()` when the key is absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > most:
            raise self.mistake(
                key, f"{excerpt(value)} is not a list of at most {most} texts", f'write {key} = ["…", "…"]'
            )
        texts = tuple(self._check_text(key, item, limit, many_lines=True) for item in value)
        if not all(texts):
            raise self.mistake(key, "an entry is empty", "remove it or fill it in")
        return texts

    def url(self, key: str, *, required: bool, example: str) -> str | None:
        """An http or https address with a host, without user name and password."""
        value = self.required(key, limit=_MAX_URL_CHARS, example=example) if required else self.text(key)
        if value is None:
            return None
        problem = url_problem(value)
        if problem:
            raise self.mistake(key, f"{excerpt(value)} {problem}", f"write it like {example}")
        return value

    def endpoint(self, key: str, *, required: bool, with_port: bool) -> str | None:
        """An agent's or site's address: an URL without query; `with_port` asks for an explicit port."""
        example = '"http://127.0.0.1:9009"'
        value = self.url(key, required=required, example=example)
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.query or parts.fragment:
            raise self.mistake(key, f"{excerpt(value)} has a query or fragment", f"write it like {example}")
        if with_port and not parts.port:
            raise self.mistake(key, f"{excerpt(value)} names no port", f"cmd needs one: write it like {example}")
        return value

    def command(self, key: str) -> str | None:
        """A command line that splits into words, or `None`."""
        value = self.text(key, limit=4000)
        if value is None:
            return None
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise self.mistake(key, f"{excerpt(value)}: {str(error).lower()}", "close the quotes") from None
        if not words:
            raise self.mistake(key, "empty", "remove it when the agent is already running")
        return value

    def _check_text(self, key: str, value: object, limit: int, many_lines: bool) -> str:
        if not isinstance(value, str):
            raise self.mistake(key, f"{excerpt(value)} is not a text", 'put it in quotes: "…"')
        if len(value) > limit:
            raise self.mistake(key, f"{len(value)} characters, more than {limit}", "shorten it")
        value = value.strip()
        bad = _CONTROL.search(value.replace("\r\n", "\n")) or (None if many_lines else re.search(r"[\n\t]", value))
        if bad or not _encodes(value):
            raise self.mistake(key, f"{excerpt(value)} holds a character that is no text", "remove it")
        return value


def read_tasks(source: str, where: str, value: object) -> tuple[Task, ...]:
    """A list of task tables. Unknown keys are left to the caller."""
    if not isinstance(value, list) or len(value) > MAX_TASKS:
        raise ConfigError(
            f"{source}: {where} is {excerpt(value)}, not a list of at most {MAX_TASKS} tasks",
            remedy="give each task as a table of its own; shard larger sets",
        )
    tasks: list[Task] = []
    first_seen: dict[str, int] = {}
    for number, item in enumerate(value, 1):
        table = Table(source, f"{where} #{number}", item)
        task = read_task(table)
        earlier = first_seen.setdefault(task.task_id, number)
        if earlier != number:
            raise table.mistake("task_id", f"'{task.task_id}' is already the id of #{earlier}", "make ids unique")
        tasks.append(task)
    return tuple(tasks)


def read_task(table: Table) -> Task:
    """One task. Raises `ConfigError` for the first mistake."""
    task_id = table.required("task_id", example='"shop-1"')
    if not _TASK_ID.fullmatch(task_id):
        raise table.mistake("task_id", f"{excerpt(task_id)} is not usable", "use 1 to 128 of A-Z a-z 0-9 _ -")
    website = table.url("website", required=True, example='"https://www.example.org/"')
    task = table.required("task", limit=_MAX_TASK_CHARS, many_lines=True, example='"Find …"')
    level = table.text("level")
    levels = get_args(Level)
    if level is not None and level not in levels:
        raise table.mistake("level", f"{excerpt(level)} is not a level", did_you_mean(level, levels))
    length = table.data.get("reference_length")
    if length is not None and not (type(length) is int and 1 <= length <= _MAX_REFERENCE_LENGTH):
        raise table.mistake(
            "reference_length",
            f"{excerpt(length)} is not a whole number from 1 to {_MAX_REFERENCE_LENGTH}",
            "give the number of steps a person needs, or remove the key",
        )
    points = table.texts("key_points", most=_MAX_KEY_POINTS)
    return Task.model_validate(
        {
            "task_id": task_id,
            "website": website,
            "task": task,
            "level": level,
            "reference_length": length,
            "key_points": points,
            "checks": read_checks(table.data.get("checks"), table.source, table.where),
            "allowed_sites": read_allowed_sites(table.data.get("allowed_sites"), table.source, table.where),
        }
    )


def read_config(table: Table, *, strict: bool) -> RunConfig:
    """The known keys of `table` as a `RunConfig`.

    `strict` (TOML) takes values of the right type only; otherwise numbers may come as doubles or texts, as they do
    from other A2A clients.
    """
    known = {key: value for key, value in table.data.items() if key in RunConfig.model_fields}
    for key, value in known.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise table.mistake(key, f"{value} is not a number to work with", "give a finite one")
        if isinstance(value, bool) and RunConfig.model_fields[key].annotation is not bool:
            raise table.mistake(key, f"{excerpt(value)} is not expected here", "give a number or a text")
        if isinstance(value, str) and (_CONTROL.search(value) or not _encodes(value)):
            raise table.mistake(key, f"{excerpt(value)} holds a character that is no text", "remove it")
        if isinstance(value, Mapping):
            inner = Table(table.source, f"{table.where}.{key}", value)
            for name in inner.data:
                inner.text(name, limit=200)
    try:
        return RunConfig.model_validate(known, strict=strict)
    except ValidationError as error:
        raise _config_mistake(table, error) from None


def _config_mistake(table: Table, error: ValidationError) -> ConfigError:
    detail = error.errors(include_url=False)[0]
    key, problem, remedy = first_problem(error)
    if not key:
        return ConfigError(f"{table.source}: {table.where}: {problem}", remedy=remedy or "change one of the two")
    key = str(detail["loc"][0])
    expected = (detail.get("ctx") or {}).get("expected")
    if isinstance(expected, str):
        remedy = did_you_mean(detail["input"], re.findall(r"'([^']+)'", expected))
    # Where the remedy is ours, so is the problem's text: it shows what may be shown.
    shown = "" if first_problem(error)[2] else f"{excerpt(detail['input'])}: "
    return table.mistake(key, f"{shown}{problem}", remedy or "correct it or remove the key")


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

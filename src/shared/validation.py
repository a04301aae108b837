"""Validates outside data, and rewords pydantic's errors: file, key, value, remedy.

Gives one printable line per mistake, for scenarios, requests, settings and submissions alike. No other module rewords
pydantic's errors.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from shared.errors import ConfigError
from shared.fields import Invalid, did_you_mean, printable
from shared.text import clip
from shared.toml_lines import line_of, lines_of

T = TypeVar("T")
_MAX_ID_CHARS = 130
_NOT_A_TABLE = ("{value} is not a table", "give keys with their values")
_NOT_A_LIST = ("{value} is not a list", "write a list, or in TOML [[{key}]] in two brackets")
_NOT_A_NUMBER = ("{value} is not a number", "write a finite number, without quotes")
_NOT_A_WHOLE_NUMBER = ("{value} is not a whole number", "write a whole number, without quotes")
_EMPTY = ("empty", "fill it in, or remove it")
# Our wording and remedy for each of pydantic's error types; other types keep pydantic's message.
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "missing": ("missing", "add {key} = {example}"),
        "extra_forbidden": ("unknown key", "remove it"),
        "string_type": ("{value} is not a string", 'put it in quotes: "…"'),
        "string_unicode": ("{value} contains a character that is not text", "remove it"),
        "int_type": _NOT_A_WHOLE_NUMBER,
        "int_from_float": _NOT_A_WHOLE_NUMBER,
        "int_parsing": _NOT_A_WHOLE_NUMBER,
        "float_type": _NOT_A_NUMBER,
        "float_parsing": _NOT_A_NUMBER,
        "finite_number": _NOT_A_NUMBER,
        "greater_than": ("{value} is not more than {gt}", "write a larger number"),
        "greater_than_equal": ("{value} is less than {ge}", "write {ge} or more"),
        "less_than": ("{value} is not less than {lt}", "write a smaller number"),
        "less_than_equal": ("{value} is more than {le}", "write {le} or less"),
        "bool_type": ("{value} is not true or false", "write true or false, without quotes"),
        "string_too_short": _EMPTY,
        "too_short": _EMPTY,
        "model_type": _NOT_A_TABLE,
        "dict_type": _NOT_A_TABLE,
        "list_type": _NOT_A_LIST,
        "tuple_type": _NOT_A_LIST,
    }
)


class Problem(NamedTuple):
    """One mistake: its path of keys and indices (from 0), what is wrong, and what to do."""

    path: tuple[str | int, ...]
    text: str
    remedy: str


def first_problem(error: ValidationError) -> str:
    """What is wrong with a value, in one of our sentences."""
    return _problem(error.errors(include_url=False)[0], {}).text


class Mistakes(ConfigError):
    """All mistakes in a file or request: the first is the error's message, `lines` has them all."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(
            first.problem, remedy=first.remedy, key=first.key, location=first.location, message=first.message
        )
        self.lines = [str(error) for error in errors]


def validated(
    adapter: TypeAdapter[T],
    value: object,
    source: object,
    *,
    under: tuple[str | int, ...] = (),
    toml: str | None = None,
    examples: Mapping[str, str] = MappingProxyType({}),
    context: object = None,
) -> T:
    """`value` as the adapter's type. Raises `Mistakes`.

    `source` names the file or request, `under` the path of `value` in it; `examples` has an example value for each
    required key. `toml` is the text that `value` was read from: mistakes are then named with their lines and tasks, and
    tables with their brackets. Validators receive `context`, or else an empty set, in which they may share state.
    Create `adapter` once, at module level: building its validator takes milliseconds.
    """
    try:
        return adapter.validate_python(value, context=set() if context is None else context)
    except ValidationError as error:
        problems = [_problem(detail, examples) for detail in error.errors(include_url=False) if not _is_echo(detail)]
        lines = {} if toml is None else lines_of(toml)
        raise Mistakes(
            [
                mistake(
                    source,
                    (*under, *path),
                    text,
                    remedy,
                    is_toml=toml is not None,
                    line=line_of(lines, path),
                    task=_task_in(value, path) if toml is not None else None,
                )
                for path, text, remedy in problems
            ]
        ) from None


def mistake(
    source: object,
    path: tuple[str | int, ...],
    problem: str,
    remedy: str,
    *,
    is_toml: bool = False,
    line: int | None = None,
    task: str | None = None,
) -> ConfigError:
    """One mistake as the error that a user sees: `shop.toml: line 41, task oak_desks: [[tasks]] #3, key 'level': …`."""
    where = ", ".join(filter(None, [f"line {line}" if line else "", f"task {_printable(task)}" if task else ""]))
    parts = [_printable(str(source)), where, _place(path, is_toml), _printable(problem)]
    return ConfigError(
        parts[-1],
        remedy=_printable(remedy),
        key=".".join(_printable(str(part)) for part in path),
        location=parts[0],
        message=": ".join(filter(None, parts)),
    )


def _task_in(value: object, path: Sequence[str | int]) -> str | None:
    """The id of the task that a path leads into."""
    match path:
        case ["tasks", int(number), *_] if isinstance(value, Mapping):
            task = value["tasks"][number]
            task_id = task.get("task_id") if isinstance(task, Mapping) else None
            return clip(task_id, _MAX_ID_CHARS) if isinstance(task_id, str) and task_id else None
    return None


def _is_echo(detail: ErrorDetails) -> bool:
    """Whether a list is reported as too short only because of invalid entries, which have their errors."""
    value = detail["input"]
    return detail["type"] == "too_short" and not isinstance(value, str) and len(value) >= detail["ctx"]["min_length"]


def _problem(detail: ErrorDetails, examples: Mapping[str, str]) -> Problem:
    # Tags of unions, in angle brackets, are not part of the path that a user wrote.
    path = tuple(part for part in detail["loc"] if not str(part).startswith("<"))
    value, context = detail["input"], detail.get("ctx") or {}
    cause = context.get("error")
    if isinstance(cause, Invalid):
        column = "" if cause.column is None else f"column {cause.column}: "
        return Problem((*path, cause.key) if cause.key else path, column + cause.problem, cause.remedy)
    if detail["type"] == "literal_error":
        choices = re.findall(r"'([^']+)'", context["expected"])
        return Problem(path, f"{printable(value)} is not a known value", did_you_mean(value, choices))
    text, remedy = _WORDS.get(detail["type"], ("{value}: {message}", "correct it or remove the key"))
    if (text, remedy) == _NOT_A_LIST and isinstance(value, str):
        remedy = 'write a list: ["…"]'
    key = str(path[-1]) if path else "it"
    words = context | {"key": key, "value": printable(value), "message": detail["msg"][:200]}
    words["example"] = examples.get(key, "…")
    return Problem(path, text.format_map(words), remedy.format_map(words))


def _place(path: tuple[str | int, ...], is_toml: bool) -> str:
    key = f"key {printable(path[-1])}" if path and isinstance(path[-1], str) else ""
    words: list[str] = []
    for part in path[:-1] if key else path:
        name = f"#{part + 1}" if isinstance(part, int) else part if part.isidentifier() else printable(part)
        if isinstance(part, int) and words:
            words[-1] += f" {name}"
        elif words and "#" not in words[-1]:
            words[-1] += f".{name}"
        else:
            words.append(name)
    if is_toml and words:
        table, mark, number = words[0].partition(" #")
        words[0] = f"[[{table}]] #{number}" if mark else f"[{table}]"
    return ", ".join(filter(None, [*words, key]))


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)

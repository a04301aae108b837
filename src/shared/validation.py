"""Data from outside as pydantic models, and the only translation of pydantic's errors: file, key, value, remedy.

Used for scenarios, requests, settings, submissions and labels. One line for each mistake, printable, without secrets.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from shared.errors import ConfigError

T = TypeVar("T")
_MAX_SHOWN = 60
# Control characters and lone surrogates.
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_HOST = re.compile(r"(?:[A-Za-z0-9_-]|[^\x00-\x7f])+(?:\.(?:[A-Za-z0-9_-]|[^\x00-\x7f])+)*\.?")
_NOT_A_TABLE = ("{value} is not a table", "give keys with their values")
_NOT_A_LIST = ("{value} is not a list", "write a list, or in TOML [[{key}]] in two brackets")
_NOT_A_NUMBER = ("{value} is not a number", "write a finite number, without quotes")
_NOT_A_WHOLE_NUMBER = ("{value} is not a whole number", "write a whole number, without quotes")
_TOO_LONG = ("{length}, more than {max_length}", "shorten it, or use fewer")
_EMPTY = ("empty", "fill it in, or remove it")
# Pydantic's error types in our words, with their remedy; other types keep pydantic's message.
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "missing": ("missing", "add {key} = {example}"),
        "extra_forbidden": ("unknown key", "remove it"),
        "string_type": ("{value} is not a text", 'put it in quotes: "…"'),
        "int_type": _NOT_A_WHOLE_NUMBER,
        "int_from_float": _NOT_A_WHOLE_NUMBER,
        "int_parsing": _NOT_A_WHOLE_NUMBER,
        "float_type": _NOT_A_NUMBER,
        "float_parsing": _NOT_A_NUMBER,
        "finite_number": _NOT_A_NUMBER,
        "bool_type": ("{value} is not true or false", "write true or false, without quotes"),
        "string_unicode": ("{value} contains a character that is not text", "remove it"),
        "string_too_long": _TOO_LONG,
        "too_long": _TOO_LONG,
        "string_too_short": _EMPTY,
        "too_short": _EMPTY,
        "model_type": _NOT_A_TABLE,
        "dict_type": _NOT_A_TABLE,
        "list_type": _NOT_A_LIST,
        "tuple_type": _NOT_A_LIST,
    }
)


class Invalid(ValueError):
    """A value that cannot be used; raised inside validators.

    `key` names the key of a table that is wrong, `column` the place in a text, counted from 1.
    """

    def __init__(self, problem: str, remedy: str, *, key: str = "", column: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.key = key
        self.column = column


class Table(BaseModel):
    """A table from outside; an unknown key is an error that suggests the key that was meant."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, data: Any) -> Any:
        unknown = [key for key in data if key not in keys_of(cls)] if isinstance(data, Mapping) else []
        if unknown:
            raise Invalid("unknown key", did_you_mean(unknown[0], keys_of(cls)), key=str(unknown[0]))
        return data


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a table as a user writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


class Problem(NamedTuple):
    """One mistake: the keys and numbers (from 0) that lead to it, what is wrong, and what to do."""

    path: tuple[str | int, ...]
    text: str
    remedy: str


class Mistakes(ConfigError):
    """Everything that is wrong with a file or request: the first mistake is the error, `lines` has them all."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        super().__init__(errors[0].message, remedy=errors[0].remedy)
        self.lines = [str(error) for error in errors]


def validated(
    adapter: TypeAdapter[T],
    value: object,
    source: object,
    *,
    under: tuple[str | int, ...] = (),
    is_toml: bool = False,
    examples: Mapping[str, str] = MappingProxyType({}),
) -> T:
    """`value` as the adapter's type. Raises `Mistakes`.

    `source` names the file or request, `under` the place of `value` in it; `examples` holds a value for each key that
    may be missing. In TOML, tables are named with their brackets. The context is a set that validators may share.
    """
    try:
        return adapter.validate_python(value, context=set())
    except ValidationError as error:
        raise Mistakes(
            [
                mistake(source, (*under, *path), text, remedy, is_toml=is_toml)
                for path, text, remedy in problems_of(error, examples)
            ]
        ) from None


def mistake(
    source: object, path: tuple[str | int, ...], problem: str, remedy: str, *, is_toml: bool = False
) -> ConfigError:
    """One mistake as the error that a user sees, such as `shop.toml: [[tasks]] #3, key 'level': …`."""
    parts = [_printable(str(source)), _place(path, is_toml), _printable(problem)]
    return ConfigError(": ".join(filter(None, parts)), remedy=_printable(remedy))


def problems_of(error: ValidationError, examples: Mapping[str, str] = MappingProxyType({})) -> list[Problem]:
    """Pydantic's errors in our words."""
    found = []
    for detail in error.errors(include_url=False):
        # Tags of unions are written in angle brackets; they are no part of the place.
        path = tuple(part for part in detail["loc"] if not str(part).startswith("<"))
        context = detail.get("ctx") or {}
        cause = context.get("error")
        if isinstance(cause, Invalid):
            column = "" if cause.column is None else f"column {cause.column}: "
            found.append(Problem((*path, cause.key) if cause.key else path, column + cause.problem, cause.remedy))
            continue
        key = str(path[-1]) if path else "it"
        value = detail["input"]
        if detail["type"] == "literal_error":
            choices = re.findall(r"'([^']+)'", context["expected"])
            found.append(Problem(path, f"{shown(value)} is not a known value", did_you_mean(value, choices)))
            continue
        # Pydantic counts valid entries only, and the others have their own errors.
        if detail["type"] == "too_short" and not isinstance(value, str) and len(value) >= context["min_length"]:
            continue
        text, remedy = _WORDS.get(detail["type"], ("{value}: {message}", "correct it or remove the key"))
        words = {
            "key": key,
            "value": shown(value),
            "message": detail["msg"][:200],
            "example": examples.get(key, "…"),
            "length": f"{len(value)} {'characters' if isinstance(value, str) else 'entries'}"
            if hasattr(value, "__len__")
            else "long",
            **context,
        }
        found.append(Problem(path, text.format_map(words), remedy.format_map(words)))
    return found


def shown(value: object) -> str:
    """A foreign value for an error message: ASCII, on one line, at most 60 characters."""
    if isinstance(value, str):
        value = value[: _MAX_SHOWN + 1]
    elif isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    elif isinstance(value, Mapping | list | tuple):
        return f"a {'table' if isinstance(value, Mapping) else 'list'} of {len(value)} entries"
    text = ascii(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A remedy for a misspelt word: the closest known one, otherwise all of them."""
    names = list(known)
    close = difflib.get_close_matches(str(word)[:100], names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(names)


def _place(path: tuple[str | int, ...], is_toml: bool) -> str:
    key = f"key {shown(path[-1])}" if path and isinstance(path[-1], str) else ""
    words: list[str] = []
    for part in path[:-1] if key else path:
        name = f"#{part + 1}" if isinstance(part, int) else part if part.isidentifier() else shown(part)
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


def at_most(count: int) -> BeforeValidator:
    """Refuses a longer list or table unread: pydantic would collect an error for each of its entries."""

    def check(value: object) -> object:
        if isinstance(value, list | tuple | Mapping) and len(value) > count:
            raise Invalid(f"{len(value)} entries, more than {count}", "use fewer, or split them up")
        return value

    return BeforeValidator(check)


def _is_text(value: str) -> str:
    if _NOT_TEXT.search(value.replace("\r\n", "\n")):
        raise Invalid(f"{shown(value)} contains a character that is not text", "remove it")
    return value


def _is_line(value: str) -> str:
    if re.search(r"[\n\t]", _is_text(value)):
        raise Invalid(f"{shown(value)} contains a line break or a tab", "write it in one line")
    return value


def _is_url(value: str) -> str:
    problem = _url_problem(_is_text(value))
    if problem is None:
        return value
    if "@" in value:
        raise Invalid(f"the address {problem}", "leave it out: keys belong in the environment")
    raise Invalid(f"{shown(value)} {problem}", "write it like https://www.example.org/")


def _url_problem(value: str) -> str | None:
    if re.search(r"\s", value):
        return "contains a space"
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not host or port == 0:
        return "has no host" if not host else "has port 0"
    if "@" in parts.netloc:
        return "contains a user name or password"
    # An IPv6 address is in brackets, which `urlsplit` has checked.
    is_host = ":" in host or (len(host) <= 253 and _HOST.fullmatch(host))
    return None if is_host else "has an impossible host name"


AnyText = Annotated[str, AfterValidator(_is_text)]
Prose = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_is_text)]
OneLine = Annotated[str, AfterValidator(_is_line)]
Line = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_is_line)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), AfterValidator(_is_line)]
Url = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2048), AfterValidator(_is_url)]
# In strict mode pydantic takes no list for a tuple.
AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)

"""Building blocks for models of outside data: tables, strings, addresses. `shared.validation` words their errors."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from shared.text import counted

_MAX_SHOWN = 60
# Control characters and lone surrogates.
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_HOST = re.compile(r"(?:[A-Za-z0-9_-]|[^\x00-\x7f])+(?:\.(?:[A-Za-z0-9_-]|[^\x00-\x7f])+)*\.?")


class Invalid(ValueError):
    """A value that cannot be used; raised inside validators.

    `key` names the wrong key of a table, `column` the position in a string, counted from 1. `shows_value`: the problem
    may quote the value, so it is not for secrets.
    """

    def __init__(
        self, problem: str, remedy: str, *, key: str = "", column: int | None = None, shows_value: bool = True
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.key = key
        self.column = column
        self.shows_value = shows_value


class Table(BaseModel):
    """A table of outside data; an unknown key is an error that suggests the likely one."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, data: Any) -> Any:
        unknown = [key for key in data if key not in keys_of(cls)] if isinstance(data, Mapping) else []
        if unknown:
            raise Invalid("unknown key", remedy_for(unknown[0], cls), key=str(unknown[0]), shows_value=False)
        return data


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a table as a user writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def printable(value: object) -> str:
    """A foreign value for an error message: ASCII, on one line, at most 60 characters."""
    if isinstance(value, str):
        value = value[: _MAX_SHOWN + 1]
    # Python raises `ValueError` when it converts an integer of more than 4,300 digits to text.
    elif isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    elif isinstance(value, Mapping | list | tuple):
        return f"a {'table' if isinstance(value, Mapping) else 'list'} of {counted(len(value), 'entry', 'entries')}"
    text = ascii(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def without_none(**values: Any) -> dict[str, Any]:
    """The values that are not `None`, by key: of a written object whose other keys are left out."""
    return {key: value for key, value in values.items() if value is not None}


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a table, otherwise an empty one: the file may be damaged."""
    return value if isinstance(value, Mapping) else {}


def as_mappings(value: object) -> list[Mapping[str, Any]]:
    """The tables in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def first_mistake(error: ValidationError) -> str:
    """The first mistake that pydantic found, with its key."""
    detail = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (".".join(map(str, detail["loc"])), detail["msg"])))


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A remedy for a misspelt word: the closest known one, otherwise all of them."""
    names = list(known)
    return closest(word, names).strip() or "known: " + ", ".join(names)


def closest(word: object, known: Iterable[str]) -> str:
    """`did you mean '…'? ` with the closest known word, to begin a remedy with; empty if none is close."""
    close = difflib.get_close_matches(str(word)[:100], list(known), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'? " if close else ""


def remedy_for(key: object, model: type[BaseModel]) -> str:
    """The remedy for a key that a model does not have."""
    return did_you_mean(key, keys_of(model))


def at_most(count: int) -> BeforeValidator:
    """Refuse a longer string, list or table before reading it: pydantic would collect an error for each entry."""

    def check(value: object) -> object:
        if isinstance(value, str | list | tuple | Mapping) and len(value) > count:
            unit = "characters" if isinstance(value, str) else "entries"
            raise Invalid(f"{len(value)} {unit}, more than {count}", "shorten it, or split it up", shows_value=False)
        return value

    return BeforeValidator(check)


def _is_text(value: str) -> str:
    # Files from Windows end their lines with a carriage return and a line feed; a carriage return alone is refused.
    if _NOT_TEXT.search(value.replace("\r\n", "\n")):
        raise Invalid(f"{printable(value)} contains a character that is not text", "remove it")
    return value


def _is_line(value: str) -> str:
    if re.search(r"[\n\t]", _is_text(value)):
        raise Invalid(f"{printable(value)} contains a line break or a tab", "write it in one line")
    return value


def _is_url(value: str) -> str:
    problem = _url_problem(_is_text(value))
    if problem is None:
        return value
    if "@" in value:
        raise Invalid(f"the address {problem}", "leave it out: keys belong in the environment")
    raise Invalid(f"{printable(value)} {problem}", "write it like https://www.example.org/")


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
Name = Annotated[Line, Field(min_length=1), at_most(100)]
Url = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_is_url), at_most(2048)]
# In strict mode pydantic does not accept a list where a tuple is declared.
AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
# A digest in hexadecimal.
SHA256 = r"[0-9a-f]{64}"
Sha256 = Annotated[str, Field(pattern=rf"^{SHA256}$")]

"""Credentials for participants: HTTP headers sent with each request to one, and nowhere else.

In a scenario file, a value may contain `${NAME}`, which the runner resolves. A request contains the values. They are
secret: no dump has them, and no error shows one.
"""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from shared.fields import Invalid, printable

MAX_HEADERS = 20
_MAX_NAME_CHARS = 100
_MAX_VALUE_CHARS = 8_000
# RFC 9110, sections 5.1 and 5.5, without characters outside ASCII.
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")
# Set by the protocols: HTTP, and A2A over it.
_RESERVED = frozenset(
    {
        *("host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "trailer", "upgrade"),
        *("expect", "accept", "accept-encoding"),
    }
)
_RESERVED_PREFIXES = ("content-", "a2a-")
_EXAMPLE = 'write headers = { Authorization = "Bearer ${TOKEN}" }'
_VARIABLE = "${"


def _headers(value: object) -> dict[str, str]:
    """Validated by hand, because pydantic's errors would show the values."""
    if not isinstance(value, Mapping) or len(value) > MAX_HEADERS:
        raise _invalid(f"not a table of at most {MAX_HEADERS} headers", _EXAMPLE)
    names: set[str] = set()
    for name, text in value.items():
        _check_name(name)
        if name.lower() in names:
            raise _invalid(f"the header {printable(name)} is given twice", "keep one")
        names.add(name.lower())
        if not isinstance(text, str):
            raise _invalid(f"the header {printable(name)} is not a string", _EXAMPLE)
        check_value(name, text)
    return dict(value)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME_CHARS:
        raise _invalid(f"{printable(name)} is not the name of a header", _EXAMPLE)
    if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_PREFIXES):
        raise _invalid(f"the protocol sets the header {printable(name)}", "remove it")


def check_value(name: str, value: str) -> None:
    """Raises `Invalid`, which does not show the value, if a header cannot have it."""
    if "\n" in value or "\r" in value:
        raise _invalid(f"the header {printable(name)} has a line break", "write it in one line")
    if not _VALUE.fullmatch(value) or len(value) > _MAX_VALUE_CHARS:
        raise _invalid(
            f"the header {printable(name)} has a value that no header can have",
            f"use 1 to {_MAX_VALUE_CHARS} printable characters of ASCII, without spaces around them",
        )


def _headers_by_role(value: object) -> dict[str, dict[str, str]]:
    if not isinstance(value, Mapping):
        raise _invalid("not a table", 'send {"role": {"Authorization": "Bearer …"}}')
    headers_by_role = {}
    for role, headers in value.items():
        try:
            headers_by_role[role] = _headers(headers)
        except Invalid as error:
            raise _invalid(f"{printable(role)}: {error.problem}", error.remedy) from None
        for name, text in headers_by_role[role].items():
            if _VARIABLE in text:
                problem = (
                    f"{printable(role)}: the header {printable(name)} refers to a variable, and a request must not"
                )
                raise _invalid(problem, "send the value itself; wabe run resolves those of a scenario file")
    return headers_by_role


def _invalid(problem: str, remedy: str) -> Invalid:
    return Invalid(problem, remedy, shows_value=False)


Headers = Annotated[dict[str, str], BeforeValidator(_headers)]
HeadersByRole = Annotated[dict[str, dict[str, str]], BeforeValidator(_headers_by_role)]

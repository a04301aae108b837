"""Parses TOML; an error says what to write instead."""

import itertools
import re
from typing import Any

import tomli

from shared.strict_json import TOO_DEEP

# What people get wrong most often: the parser's message, what the line contains, and what to write instead.
_TOML_HINTS = (
    ("", "[\u201c\u201d\u2018\u2019]", "write straight quotes"),
    ("Unescaped", "", "write patterns in 'single quotes'"),
    ("Expected newline", '"', "write a text that contains double quotes in 'single quotes'"),
    ("Invalid value", r"= *(True|False)\b", "write true and false in lower case"),
    ("Invalid value", "", "write texts in quotes"),
    ("Expected '='", ":", "write = between a key and its value"),
    ("Cannot overwrite", "", "write each key once"),
)


def _toml_hint(message: str, line: str) -> str:
    hints = (hint for said, found, hint in _TOML_HINTS if message.startswith(said) and re.search(found, line))
    return "".join(f"; {hint}" for hint in itertools.islice(hints, 1))


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        hint = _toml_hint(error.msg, [*text.splitlines(), ""][error.lineno - 1])
        raise ValueError(f"line {error.lineno}, column {error.colno}: not TOML: {error.msg}{hint}") from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError as error:
        # Numbers and dates that the grammar allows but Python cannot represent.
        raise ValueError(f"not usable TOML: {str(error)[:100]}") from None

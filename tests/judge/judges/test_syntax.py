"""The form of a program that a checksum is taken over."""

import ast
import hashlib

import pytest

from judge.judges.syntax import program_form

PROGRAM = '''
"""A module."""
from __future__ import annotations
import re


class Point:
    """A point."""
    x: int = -1
    """Where it is."""

    @property
    async def f(self, /, a: int = 0, *args: str, key: str = "é\\u200b", **rest: object) -> list[str] | None:
        # Twice.
        try:
            async with a as b, c(1.5e300, 2j, ..., None, True):
                return (1, 2), [*args], {**rest, 3: b"\\xff"}
        except* (OSError, ValueError) as error:
            raise re.error("x") from error
        match key:
            case {"a": [1, *_], **other} if (y := 1) > 0:
                del other
            case _:
                pass
        return f"{a!r:>{key}}{f'{a}{key:x}'} {{}} {a=}" "and" f"{key}"
'''
# The same on each version of Python that the tests run on.
DIGEST = "070cd5824cac6760ec86ccd5fff12e5c50bcb05944a668950a893f26d00f3ea3"


def form(program: str) -> str:
    return program_form(ast.parse(program))


def test_the_form_is_the_same_on_every_python() -> None:
    assert hashlib.sha256(form(PROGRAM).encode()).hexdigest() == DIGEST


@pytest.mark.parametrize(
    "other",
    [
        "# New.\n" + PROGRAM,
        PROGRAM.replace('"""A point."""', '"""Another word."""'),
        PROGRAM.replace('    """A point."""\n', ""),
        PROGRAM.replace('    """Where it is."""\n', ""),
        PROGRAM.replace("        # Twice.\n", "\n\n"),
        PROGRAM.replace("\n", "\r\n"),
        PROGRAM.replace('"x"', "'x'"),
        PROGRAM.replace("return (1, 2), [*args]", "return ((1, 2)), [\n*args,\n]"),
    ],
)
def test_what_does_not_run_is_not_in_the_form(other: str) -> None:
    assert other != PROGRAM
    assert form(other) == form(PROGRAM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-1", "1"),
        ("> 0", ">= 0"),
        ('f"{key}"', 'f"{key!s}"'),
        ('"and"', '"or"'),
        ("None, True", "None, 1"),
        ("None, True", "True, True"),
        ("int = 0", "str = 0"),
        ("/, a", "a"),
        ("    @property\n", ""),
        ('b"\\xff"', '"\\xff"'),
        ("except*", "except"),
        ("[*args]", "[args]"),
        ("case _:\n                pass", 'case _:\n                key("pass")'),
    ],
)
def test_every_change_of_what_runs_changes_the_form(old: str, new: str) -> None:
    assert old in PROGRAM
    assert form(PROGRAM.replace(old, new)) != form(PROGRAM)

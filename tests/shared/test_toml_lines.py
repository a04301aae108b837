"""Where the keys of a TOML text are: the same paths as a parser finds, each on the line where it was written."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from shared.toml_lines import KeyPath, line_of, lines_of
from shared.toml_text import parse_toml

TEXT = '''# [[tasks]]
title = "a # b [c]"
[green_agent]
endpoint = "http://127.0.0.1:9009"

[[tasks]]
task_id = "one"
task = """
Find [the]
x = 1 ""quoted"" chair"""
checks = [
  # a comment, with a bracket ]
  { kind = "url", path = '/a"' },
  {
    kind = "text", contains = ["a",
      "b"] },
]

[[tasks]]
task_id = "two" # the second
when = 1979-05-27 07:32:00
"a.b".c = 1.5
[tasks.more]
deep = [[1, 2], [3]]
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("green_agent",), 3),
        (("green_agent", "endpoint"), 4),
        (("tasks",), 6),
        (("tasks", 0), 6),
        (("tasks", 0, "task"), 8),
        (("tasks", 0, "checks"), 11),
        (("tasks", 0, "checks", 0, "path"), 13),
        (("tasks", 0, "checks", 1), 14),
        (("tasks", 0, "checks", 1, "contains", 1), 16),
        (("tasks", 1), 19),
        (("tasks", 1, "when"), 21),
        (("tasks", 1, "a.b", "c"), 22),
        (("tasks", 1, "more", "deep", 1, 0), 24),
    ],
)
def test_a_key_is_on_the_line_where_it_begins(path: KeyPath, line: int) -> None:
    assert lines_of(TEXT)[path] == line


@pytest.mark.parametrize(
    ("path", "line"), [(("tasks", 1, "website"), 19), (("config", "judge_model"), None), ((), None)]
)
def test_a_missing_key_is_on_the_line_of_its_table(path: KeyPath, line: int | None) -> None:
    assert line_of(lines_of(TEXT), path) == line


def paths_in(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of everything in a parsed text."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from paths_in(inner, (*path, key))


# Statements; `N` is the number of the statement, so that keys differ.
STATEMENTS = (
    "kN = 1.5", "kN.a . 'b c' = true", '"k N" = 1979-05-27 07:32:00', "kN = 07:32:00 # = [", "'kN.x'.y = 1",
    'kN = ""', "kN = 'a\"]'", 'kN = "\\"]"', 'kN = """a\n"b""\n"""', "kN = '''c\n''d'''", 'kN = """""x"""""',
    "kN = [1, ']', [2, [ ]],\n # x ]\n 3 ]", "kN = {}", "kN = {z = 1, w.q = {v = [ {a = 1}, {} ]}}", "", "# [[x]]",
    "[tN]", "[[a]]", "[[ a . b ]] # ]", "[a.cN]", "[[a.b.d]]", "['a'.b.dN]", "[tN.e.f]",
)  # fmt: skip


@given(st.lists(st.sampled_from(STATEMENTS), max_size=8), st.sampled_from(["\n", "\r\n"]))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_every_path_that_a_parser_finds_has_a_line_and_no_other_has(statements: list[str], end: str) -> None:
    text = end.join(statement.replace("N", str(number)) for number, statement in enumerate(statements))
    try:
        parsed = parse_toml(text)
    except ValueError:
        # Such as a table below an array that has no element yet.
        assume(False)
    assert set(lines_of(text)) == set(paths_in(parsed))


SCALARS = st.one_of(st.integers(), st.booleans(), st.text(alphabet='ab"\\#[]{}=,.\n é', max_size=8))
KEYS = st.text(alphabet="ab-_ .\"'#]é", min_size=1, max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
TABLES = st.lists(st.tuples(KEYS, st.dictionaries(KEYS, VALUES, max_size=3)), max_size=4)


class Writer:
    """Writes tables over as many lines as it may, and notes where each path begins."""

    def __init__(self) -> None:
        self.text = ""
        self.lines: dict[KeyPath, int] = {}

    def note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def key(self, path: KeyPath) -> None:
        self.note(path)
        self.text += f"{json.dumps(path[-1], ensure_ascii=False)} = "

    def value(self, value: Any, path: KeyPath) -> None:
        if isinstance(value, list):
            self.text += "[ # an array ]\n"
            for place, inner in enumerate(value):
                self.note((*path, place))
                self.value(inner, (*path, place))
                self.text += ",\n\n"
            self.text += "]"
        elif isinstance(value, dict):
            self.text += "{"
            for place, (key, inner) in enumerate(value.items()):
                self.text += ", " if place else ""
                self.key((*path, key))
                self.value(inner, (*path, key))
            self.text += "}"
        elif isinstance(value, str) and "\n" in value:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            self.text += f'"""\n{escaped}"""'
        else:
            self.text += json.dumps(value, ensure_ascii=False)


@given(TABLES)
def test_every_path_is_on_the_line_where_it_was_written(tables: list[tuple[str, dict[str, Any]]]) -> None:
    writer, sizes = Writer(), dict[str, int]()
    for name, table in tables:
        index = sizes[name] = sizes.get(name, -1) + 1
        writer.note((name,))
        writer.note((name, index))
        writer.text += f"[[{json.dumps(name, ensure_ascii=False)}]] # [x]\n\n"
        for key, value in table.items():
            writer.key((name, index, key))
            writer.value(value, (name, index, key))
            writer.text += " # a = 1\n"
    assert set(paths_in(parse_toml(writer.text))) == set(writer.lines)
    assert lines_of(writer.text) == writer.lines


def test_only_the_outer_levels_of_deep_nesting_have_lines() -> None:
    assert len(lines_of(f"a = {'[' * 50_000}{']' * 50_000}")) == 20

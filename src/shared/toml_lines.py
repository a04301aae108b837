"""The line on which each key of a TOML text is, for messages about its values.

TOML parsers do not report positions. The text must be valid TOML, as a parser has found; then its tokens suffice.
"""

import re
from collections.abc import Iterator, Mapping

from shared.toml_text import parse_toml

KeyPath = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''
    """ (?: [^"\\] | \\. | "{1,2}(?!") )* "{3,5}
    | \'\'\' (?: [^'] | '{1,2}(?!') )* '{3,5}
    | " (?: [^"\\\n] | \\. )* "
    | ' [^'\n]* '
    | \#[^\n]*
    | \n
    | [\[\]{}=,.]
    | [^\s\[\]{}=,."'\#]+
    ''',
    re.VERBOSE | re.DOTALL,
)
_CLOSERS = ("]", "}")
# Scenario files have fewer levels.
_MAX_DEPTH = 20


def lines_of(text: str) -> Mapping[KeyPath, int]:
    """The line, from 1, on which each key, table and element of an array begins, by its path of keys and indices."""
    scanner = _Scanner(text)
    scanner.statements()
    return scanner.lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a path, or of the innermost table around it if the key is missing there."""
    return next((lines[path[:size]] for size in range(len(path), 0, -1) if path[:size] in lines), None)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The tokens, each with its line. Line breaks are tokens, because they end statements."""
    line, end = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", end, match.start())
        yield match[0], line
        line, end = line + match[0].count("\n"), match.end()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens = [*_tokens(text), ("", 0)]
        self._at = 0
        # How many elements each array of tables has so far.
        self._sizes: dict[KeyPath, int] = {}

    def statements(self) -> None:
        """Read everything."""
        table: KeyPath = ()
        while self._peek(over_lines=True):
            if self._peek() == "[":
                table = self._header()
            else:
                self._value(self._key(table))

    def _peek(self, *, over_lines: bool = False) -> str:
        """The next token, empty at the end, without comments and with `over_lines` without line breaks."""
        while (token := self._tokens[self._at][0]).startswith("#") or (over_lines and token == "\n"):
            self._at += 1
        return token

    def _next(self) -> str:
        token = self._peek()
        self._at += bool(token)
        return token

    def _note_line(self, path: KeyPath) -> None:
        self._peek()
        if len(path) <= _MAX_DEPTH:
            self.lines.setdefault(path, self._tokens[self._at][1])

    def _header(self) -> KeyPath:
        """`[a.b]` or `[[a.b]]`. A part that names an array of tables means its last element."""
        self._next()
        is_array = self._peek() == "["
        if is_array:
            self._next()
        path: KeyPath = ()
        while (token := self._peek()) not in ("]", ""):
            if token != ".":
                path = self._element((*path, _plain(token)))
                is_last = self._tokens[self._at + 1][0] == "]"
                if is_array and is_last:
                    path = self._appended(path)
            self._next()
        while self._peek() == "]":
            self._next()
        return path

    def _element(self, path: KeyPath) -> KeyPath:
        """The path, with the index of the last element if it is an array of tables that is not being extended."""
        is_extended = self._tokens[self._at + 1][0] == "]" and self._tokens[self._at + 2][0] == "]"
        self._note_line(path)
        return (*path, self._sizes[path] - 1) if path in self._sizes and not is_extended else path

    def _appended(self, path: KeyPath) -> KeyPath:
        self._sizes[path] = self._sizes.get(path, 0) + 1
        element = (*path, self._sizes[path] - 1)
        self._note_line(element)
        return element

    def _key(self, table: KeyPath) -> KeyPath:
        """`a.b =`, and the path that it names in the table."""
        path = table
        while (token := self._peek()) not in ("=", ""):
            if token != ".":
                path = (*path, _plain(token))
                self._note_line(path)
            self._next()
        self._next()
        return path

    def _value(self, path: KeyPath) -> None:
        """A value and all values in it. Without recursion, because values may be nested deeply."""
        # The enclosing arrays and inline tables: their paths, and for arrays the index of the next element.
        around: list[tuple[KeyPath, int | None]] = []
        while True:
            token = self._peek(over_lines=bool(around))
            if token in ("[", "{"):
                self._next()
                around.append((path, 0 if token == "[" else None))
            else:
                self._scalar()
            while around and (token := self._peek(over_lines=True)) in (*_CLOSERS, ",", ""):
                self._next()
                if token != ",":
                    around.pop()
            if not around:
                return
            outer, index = around[-1]
            if index is None:
                path = self._key(outer)
            else:
                # Paths that are too long for a line stop growing, so that the time is not quadratic.
                path = (*outer[:_MAX_DEPTH], index)
                self._note_line(path)
                around[-1] = (outer, index + 1)

    def _scalar(self) -> None:
        # Numbers and dates have several tokens.
        while self._peek() not in (*_CLOSERS, ",", "\n", ""):
            self._next()


def _plain(token: str) -> str:
    """A key without its quotes and escapes."""
    return str(parse_toml(f"key = {token}")["key"]) if token[0] in "\"'" else token

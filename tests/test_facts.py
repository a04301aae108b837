"""A fact travels as data: no module matches a sentence that another one wrote, so wording can be changed.

What is matched are the literals in comparisons, `match` patterns, string methods and regular expressions, also by the
name of a constant. What is written are all other literals and the fixed parts of f-strings. A sentence is what has two
words or more, or is a label with a colon behind it.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import pytest

from helpers.sources import trees

pytestmark = pytest.mark.slow

_METHODS = frozenset(
    "startswith endswith removeprefix removesuffix partition rpartition find rfind index count replace split".split()
)
_PATTERN_METHODS = frozenset("match fullmatch search sub subn split findall finditer".split())
_SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z]{2,}|^[A-Za-z]{2,}: $")
# What ends a run of ordinary characters in a regular expression.
_META = re.compile(r"\\[AbBdDsSwWZ]|\(\?[a-zA-Z<=!:#]*|[\[\](){}|?*+^$]|(?<!\\)\.")

# Modules that read nothing but the texts of others, and whose texts these are.
FOREIGN: Mapping[str, str] = {
    "judge.parsing.labels": "replies of judge models",
    "judge.parsing.scores": "replies of judge models",
    "judge.parsing.statuses": "replies of judge models",
    "judge.judges.injection": "what pages and participants write",
    "shared.llm.parameters": "errors of providers and gateways",
}
# Single texts of others, formats that are recorded or documented, and words that only look like another module's.
ALLOWED: Mapping[tuple[str, str], str] = {
    ("judge.commands.doctor", "judge model"): "the subject of a finding of its own",
    ("judge.plugins.leaderboard.command", "Lower Bound"): "a column of the queries",
    ("judge.plugins.leaderboard.command", "Upper Bound"): "a column of the queries",
    ("judge.scenario.guards", "in all"): "words of a task's check",
    ("judge.plugins.labels.agreement", "not executable"): "a label in a user's file",
    ("judge.plugins.suggestions.relevance", "it is"): "answers of participants",
    ("judge.plugins.ray.engine", "error:"): "the mark of errors on standard error, a constant of judge.runner.boundary",
    ("judge.network.policy", "this machine"): "a reason of its own",
    ("shared.protocol", "one of"): "the documented format of observations",
}


class Match(NamedTuple):
    """A text that a module matches, and where."""

    module: str
    line: int
    text: str


class Module(NamedTuple):
    """What one module matches, and the sentences that it writes, one on a line."""

    matched: tuple[Match, ...]
    sentences: str


def _plain(text: str) -> str:
    return " ".join(text.split())


def _sentences(text: str) -> Iterator[str]:
    """The text if it is a sentence."""
    if _SENTENCE.search(text):
        yield _plain(text)


def _runs(pattern: str) -> Iterator[str]:
    """The sentences in a regular expression."""
    for run in _META.split(pattern):
        yield from _sentences(re.sub(r"\\(.)", r"\1", run))


def _literals(
    node: ast.AST, constants: Mapping[str, ast.AST], seen: frozenset[str] = frozenset()
) -> Iterator[ast.Constant]:
    """The literals of a value: of a table its keys, since those are what is looked up."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in constants and name not in seen:
            # Not with its own name: a constant may be defined by an older one that is called the same.
            yield from _literals(constants[name], constants, seen | {name})
        case ast.Constant(value=str()):
            yield node
        case ast.Dict():
            for key in node.keys:
                yield from _literals(key, constants, seen) if key is not None else ()
        case ast.Tuple() | ast.List() | ast.Set() | ast.JoinedStr() | ast.BinOp():
            for child in ast.iter_child_nodes(node):
                yield from _literals(child, constants, seen)
        case ast.Call(func=ast.Name(id="frozenset" | "MappingProxyType" | "tuple" | "set")):
            for child in node.args:
                yield from _literals(child, constants, seen)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="compile")):
            yield from _literals(node.args[0], constants, seen)
        case ast.FormattedValue():
            pass


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, constants: Mapping[str, ast.AST]) -> None:
        self.matched: list[Match] = []
        self.used: set[int] = set()
        self._module = module
        self._constants = constants

    def _match(self, node: ast.AST, *, is_pattern: bool = False) -> None:
        literals = list(_literals(node, self._constants))
        own = {id(each) for each in ast.walk(node)} if literals else set()
        for literal in literals:
            self.used |= {id(literal)} & own
            split = _runs if is_pattern else _sentences
            self.matched += [Match(self._module, getattr(node, "lineno", 0), run) for run in split(str(literal.value))]

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                self._match(left)
                self._match(right)
        self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        self._match(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            name, target = node.func.attr, node.func.value
            if isinstance(target, ast.Name) and target.id == "re":
                for argument in node.args[:1]:
                    self._match(argument, is_pattern=True)
            elif name in _METHODS:
                for argument in node.args[:1]:
                    self._match(argument)
            if name in _PATTERN_METHODS and isinstance(target, ast.Name | ast.Attribute):
                self._match(target, is_pattern=True)
        self.generic_visit(node)


def _constants_of(tree: ast.Module) -> dict[str, ast.AST]:
    results: dict[str, ast.AST] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                results[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.AST() as value):
                results[name] = value
    return results


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def read_modules(sources: Mapping[str, str]) -> dict[str, Module]:
    """What each module matches and writes; `sources` by the modules' names."""
    return read_trees({name: ast.parse(text) for name, text in sources.items()})


def read_trees(trees: Mapping[str, ast.Module]) -> dict[str, Module]:
    """The same of modules that are parsed."""
    own = {name: _constants_of(tree) for name, tree in trees.items()}
    results = {}
    for name, tree in trees.items():
        constants, nodes = dict(own[name]), list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module in own:
                theirs = own[node.module]
                constants |= {each.asname or each.name: theirs[each.name] for each in node.names if each.name in theirs}
        reader = _Reader(name, constants)
        reader.visit(tree)
        left_out = reader.used | set(_docstrings(nodes))
        texts = (
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out
        )
        sentences = dict.fromkeys(sentence for text in texts for sentence in _sentences(text))
        results[name] = Module(tuple(reader.matched), "".join(f"\n{each}" for each in sentences))
    return results


def parsed_prose(modules: Mapping[str, Module]) -> dict[tuple[str, str], str]:
    """The texts that a module matches and another one writes, each with the place and the other module."""
    results = {}
    everything = "".join(module.sentences for module in modules.values())
    for name, module in modules.items():
        for match in module.matched:
            if not _writes(everything, match.text):
                continue
            writers = [other for other, its in modules.items() if other != name and _writes(its.sentences, match.text)]
            if writers:
                results[name, match.text] = f"{name}:{match.line} matches {match.text!r}, which {writers[0]} writes"
    return results


def _writes(sentences: str, text: str) -> bool:
    """Whether one of the written sentences has the text in it; a label is at its beginning."""
    return (f"\n{text}" if text.endswith(":") and " " not in text else text) in sentences


@cache
def our_modules() -> Mapping[str, Module]:
    return read_trees(trees())


@cache
def our_parsed_prose() -> Mapping[tuple[str, str], str]:
    return parsed_prose(our_modules())


def test_no_module_matches_a_sentence_that_another_one_writes() -> None:
    result = our_parsed_prose()
    assert [text for key, text in sorted(result.items()) if key not in ALLOWED and key[0] not in FOREIGN] == []


def test_everything_that_is_allowed_is_needed() -> None:
    result = our_parsed_prose()
    # A plug-in may have been taken away, with what it matches or writes.
    there = {key for key in ALLOWED if key[0] in our_modules() or not key[0].startswith("judge.plugins.")}
    assert there - result.keys() == set()
    assert FOREIGN.keys() - {module for module, _ in result} == set()


WRITER = 'NOTE = "the task has no checks"\ndef f(n): raise ValueError(f"no action: {n} is more than {n} allowed")\n'


@pytest.mark.parametrize(
    "reader",
    [
        'x.startswith("no action: ")',
        'x == "the task has no checks"',
        "from writer import NOTE\nx in {NOTE}",
        'import re\nP = re.compile(r"(\\d+) is more than (\\d+)")\nP.fullmatch(x)',
        'import re\nre.search("is more than", x)',
        'match x:\n    case "the task has no checks":\n        pass',
    ],
)
def test_a_reader_of_prose_is_found(reader: str) -> None:
    assert len(parsed_prose(read_modules({"writer": WRITER, "reader": reader}))) == 1


@pytest.mark.parametrize(
    "reader",
    ['x == "no_checks"', '"""the task has no checks"""', 'print("the task has no checks")', 'x.strip("no task")'],
)
def test_what_matches_no_prose_is_not(reader: str) -> None:
    assert parsed_prose(read_modules({"writer": WRITER, "reader": reader})) == {}

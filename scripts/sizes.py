"""Counts what somebody has to read: code lines, imports followed, mentions of a capability, and walks of a parameter.

    python scripts/sizes.py [--root CHECKOUT] [--walk MODULE:PARAMETER]

- *Code lines* of the core and of each plug-in: lines with code, without blank lines, comments and docstrings.
- *Imports followed*: the code lines of everything that one import of a module loads.
- *Mentions*: the files and packages whose code, without comments and docstrings, names a capability.
- *Walks*: a parameter is followed from the functions of a module into those that are called with it. Packages are those
  that it visits; a climb is a step of this walk, depth first, back to a package of a layer further up.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What somebody imports who needs only this.
ENTRIES: Mapping[str, str] = {
    "read an attempt": "judge.trajectory.files",
    "checks": "judge.evaluators.checks",
    "guard": "judge.network.guard",
    "judge a stored attempt": "judge.judges.rescoring",
    "one row": "judge.results.rows",
    "a submission": "judge.results.submission",
    "play": "judge.episode.assessment",
    "wabe run": "judge.runner.run",
    "the judge's server": "judge.server.service",
}
CAPABILITIES: Mapping[str, str] = {
    "attacks": r"attack",
    "policies": r"polic(?:y|ies)",
    "labels": r"label",
    "exclusions": r"exclu(?:ded|sion)",
    "held": r"held|hold",
    "epochs": r"epoch",
    "shards": r"shard",
    "sealed": r"seal",
    "matrix": r"matrix|matrices",
    "rewards": r"reward",
    "site tools": r"site_?tool",
}
WALKS: Mapping[str, tuple[str, str]] = {
    "settings": ("judge.commands.serve", "settings"),
    "task": ("judge.episode.assessment", "task"),
    "trajectory": ("judge.judges.rescoring", "trajectory"),
    "request": ("judge.network.intercepting", "request"),
    "action": ("judge.episode.episode", "action"),
    "snapshot": ("judge.episode.episode", "snapshot"),
}
LAYERS = (
    ("judge.plugins",),
    ("wabe", "judge.commands", "judge.environment", "judge.server", "judge.runner"),
    ("judge.episode",),
    ("judge.judges", "judge.results", "judge.report"),
    ("judge.browser", "judge.network", "judge.scenario", "judge.evaluators", "judge.trajectory", "judge.parsing"),
    ("judge.config", "judge.store"),
    ("judge.records",),
    ("participants",),
    ("shared",),
)


@dataclass(frozen=True)
class Module:
    """One module: its text, parsed."""

    name: str
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def code(self) -> Mapping[int, str]:
        """The lines with code, by number."""
        docstrings = set[int]()
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        numbers = set[int]()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _NOT_CODE:
                numbers.update(range(token.start[0], token.end[0] + 1))
        lines = self.text.splitlines()
        return {number: lines[number - 1] for number in sorted(numbers - docstrings)}

    @property
    def plugin(self) -> str:
        """The plug-in that it belongs to; empty for the core."""
        return self.name.split(".")[2] if self.name.startswith("judge.plugins.") else ""

    @property
    def package(self) -> str:
        """`judge` is divided into packages, the others are one each."""
        return ".".join(self.name.split(".")[: 2 if self.name.startswith("judge.") else 1])

    @property
    def layer(self) -> int:
        return next((place for place, names in enumerate(LAYERS) if self.package in names), 0)


class Source:
    """The modules below `src` of a checkout."""

    def __init__(self, root: Path = ROOT) -> None:
        source = root / "src"
        paths = {path: path.relative_to(source).with_suffix("").parts for path in sorted(source.rglob("*.py"))}
        modules = [
            Module(".".join(parts).removesuffix(".__init__"), path.read_text("utf-8"), parts[-1] == "__init__")
            for path, parts in paths.items()
        ]
        self.modules = {module.name: module for module in modules}

    def code_lines(self) -> Mapping[str, tuple[int, int]]:
        """Files and code lines of the core (`""`) and of each plug-in."""
        files, lines = Counter[str](), Counter[str]()
        for module in self.modules.values():
            files[module.plugin] += 1
            lines[module.plugin] += len(module.code)
        return {plugin: (files[plugin], lines[plugin]) for plugin in sorted(files)}

    def loaded_by(self, name: str) -> frozenset[str]:
        """The modules that an import of this one loads, itself included."""
        done, todo = set[str](), [name]
        while todo:
            name = todo.pop()
            if name in self.modules and name not in done:
                done.add(name)
                todo += [".".join(name.split(".")[:count]) for count in range(1, name.count(".") + 1)]
                todo += self._imports(self.modules[name])
        return frozenset(done)

    def lines_loaded_by(self, name: str) -> int:
        """Their code lines."""
        return sum(len(self.modules[each].code) for each in self.loaded_by(name))

    def _imports(self, module: Module) -> Iterator[str]:
        for node in _at_import(module.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def mentions(self, pattern: str) -> tuple[int, int]:
        """How many files, and how many packages, name it in their code."""
        word = re.compile(rf"(?<![a-z])(?:{pattern})", re.IGNORECASE)
        found = [module for module in self.modules.values() if any(map(word.search, module.code.values()))]
        return len(found), len({module.package for module in found})

    def walk(self, module: str, parameter: str) -> tuple[int, int]:
        """How many packages a parameter visits, and how often the walk climbs."""
        order: list[str] = []
        todo = [(module, name) for name in reversed(self._functions[module])]
        done = set[tuple[str, str]]()
        while todo:
            function = todo.pop()
            node = self._functions.get(function[0], {}).get(function[1])
            if node is not None and function not in done and _names(node, parameter):
                done.add(function)
                order.append(function[0])
                todo += reversed(list(self._called_with(function[0], node, parameter)))
        layers = [self.modules[name].layer for name in order]
        climbs = sum(now < before for before, now in pairwise(layers))
        return len({self.modules[name].package for name in order}), climbs

    @cached_property
    def _functions(self) -> Mapping[str, Mapping[str, ast.AST]]:
        """The functions and classes at the top of each module."""
        kinds = (*_FUNCTIONS, ast.ClassDef)
        return {
            name: {node.name: node for node in module.tree.body if isinstance(node, kinds)}
            for name, module in self.modules.items()
        }

    @cached_property
    def _origins(self) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        """What the names that a module imports, also inside its functions, are: module and name."""
        return {
            name: {
                alias.asname or alias.name: (node.module, alias.name)
                for node in ast.walk(module.tree)
                if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names
            }
            for name, module in self.modules.items()
        }

    @cached_property
    def _methods(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """By name, the classes with such a method."""
        classes: dict[str, list[tuple[str, str]]] = {}
        for module, functions in self._functions.items():
            for name, node in functions.items():
                for each in getattr(node, "body", ()) if isinstance(node, ast.ClassDef) else ():
                    if isinstance(each, _FUNCTIONS):
                        classes.setdefault(each.name, []).append((module, name))
        return classes

    def _called_with(self, module: str, function: ast.AST, parameter: str) -> Iterator[tuple[str, str]]:
        """The functions that are called with the parameter, and the classes: of a method, all that have one."""
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            if not any(_is_value_of(value, parameter) for value in values):
                continue
            # Also what is called later: `partial(function, parameter)`.
            for called in (node.func, *(value for value in node.args if isinstance(value, ast.Name | ast.Attribute))):
                first, *rest = ast.unparse(called).split(".")
                place = self._origins[module].get(first, (module, first))
                inside = ".".join(place)
                if not rest:
                    yield place
                elif inside in self.modules:
                    yield inside, rest[0]
                else:
                    yield from self._methods.get(rest[-1], ())


def _is_value_of(node: ast.AST, parameter: str) -> bool:
    """Whether an expression is the parameter, or an attribute of this name."""
    return (isinstance(node, ast.Name) and node.id == parameter) or (
        isinstance(node, ast.Attribute) and node.attr == parameter
    )


def _names(function: ast.AST, parameter: str) -> bool:
    """Whether a function or a class has a parameter, a field or a value of this name."""
    return any(
        _is_value_of(node, parameter) or (isinstance(node, ast.arg) and node.arg == parameter)
        for node in ast.walk(function)
    )


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when a module is imported."""
    for name in ("body", "orelse", "finalbody", "handlers"):
        for node in getattr(tree, name, ()):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            yield node
            if not isinstance(node, _FUNCTIONS):
                yield from _at_import(node)


def main(arguments: Sequence[str]) -> int:
    """Print all figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, metavar="CHECKOUT")
    parser.add_argument("--walk", metavar="MODULE:PARAMETER", help="only this walk")
    given = parser.parse_args(arguments)
    source = Source(given.root)
    if given.walk:
        module, _, parameter = given.walk.partition(":")
        packages, climbs = source.walk(module, parameter)
        print(f"{packages} packages, {climbs} climbs")
        return 0
    counts = source.code_lines()
    print(
        f"{'all':<24}{sum(files for files, _ in counts.values()):>5} files{sum(n for _, n in counts.values()):>8} lines"
    )
    for plugin, (files, lines) in counts.items():
        print(f"{f'plugin {plugin}' if plugin else 'core':<24}{files:>5} files{lines:>8} lines")
    for what, name in ENTRIES.items():
        loaded = source.loaded_by(name)
        print(f"{what:<24}{len(loaded):>5} files{source.lines_loaded_by(name):>8} lines loaded by {name}")
    for what, pattern in CAPABILITIES.items():
        files, packages = source.mentions(pattern)
        print(f"{what:<24}{files:>5} files{packages:>8} packages mention it")
    for what, (module, parameter) in WALKS.items():
        packages, climbs = source.walk(module, parameter)
        print(f"{what:<24}{packages:>5} packages{climbs:>5} climbs from {module}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Reads the source of Online-Mind2Web's evaluator, without executing it, and makes a prompt set from it.

The parts that differ between versions are taken from the source. The rest must have the known structure, so that our
requests cannot differ from the published ones unnoticed.
"""

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn

from pydantic import TypeAdapter

from judge.judges.published import FIELDS, FILE, PublishedEvaluator, fields_of
from shared.errors import ConfigError
from shared.fields import Invalid
from shared.files import read_errors, read_text, write_atomic
from shared.validation import validated

MAX_SOURCE_BYTES = 1_000_000
_EVALS: Mapping[str, Literal["online_mind2web", "general"]] = MappingProxyType(
    {"WebJudge_Online_Mind2Web_eval": "online_mind2web", "WebJudge_general_eval": "general"}
)
# Statements of the evaluation, as `ast.unparse` writes them. `(.+)` is a literal that differs between versions.
_KEY_POINTS_CLEANED = r"key_points\.replace\('\\n\\n', '\\n'\)"
_KEY_POINTS_FIRST = r"key_points\.split\((.+)\)\[1\]"
_KEY_POINTS_ELSE = r"key_points\.split\((.+)\)\[-1\]"
_LINES_STRIPPED = r"'\\n'\.join\(\(line\.lstrip\(\) for line in key_points\.splitlines\(\)\)\)"
_SCORE_TEXT = r"response\.split\((.+)\)\[1\]"
_REASON = r"response\.split\((.+)\)\[-1\]\.strip\(\)\.lstrip\('\\n'\)\.split\((.+)\)\[0\]\.replace\('\\n', ' '\)"
_SCORE = r"re\.findall\(pattern, score_text\)\[0\]"
_PATTERN = r"'\[1-5\]'"
_REMEDY = "give a WebJudge file of the evaluator's src/methods, unchanged"


def read_source(path: Path) -> PublishedEvaluator:
    """Read the evaluator's source. Raises `ConfigError` naming the file and what is not as expected in it."""
    try:
        with read_errors(path, _REMEDY):
            text = read_text(path, max_bytes=MAX_SOURCE_BYTES)
            return _EvaluatorSource(path, ast.parse(text)).read(hashlib.sha256(text.encode()).hexdigest())
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{path}: not readable as Python: {error}", remedy=_REMEDY) from None


def write_prompts(published: PublishedEvaluator, folder: Path, reminders: Mapping[str, str]) -> None:
    """Write the prompt set; `reminders` are the texts added after unusable replies. Raises `OSError`."""
    name = published.variant.replace("_", "-")
    manifest = f'name = "webjudge-{name}"\nversion = "{published.source_sha256[:12]}"\n'
    files = {"prompts.toml": manifest, FILE: published.model_dump_json(indent=2) + "\n", **reminders}
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        write_atomic(folder / file, text.encode())


class _EvaluatorSource:
    """The evaluator's source, as a syntax tree."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self._path = path
        self._functions = {
            node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        self._numbers = {
            name: value.value
            for name, value in _assigned(tree.body)
            if isinstance(value, ast.Constant) and isinstance(value.value, int)
        }

    def read(self, checksum: str) -> PublishedEvaluator:
        name = next((name for name in _EVALS if name in self._functions), None)
        if name is None:
            self._fail(f"no function {' or '.join(_EVALS)}")
        outcome = self._functions[name]
        # ast.walk visits each `try` before its body, so the statements are in the source's order.
        statements = [ast.unparse(value) for _, value in _assigned(ast.walk(outcome))]
        for known in (_KEY_POINTS_CLEANED, _LINES_STRIPPED, _SCORE, _PATTERN):
            self._literals(statements, known)
        reason_marker, reason_end = self._literals(statements, _REASON)
        (score_marker,) = self._literals(statements, _SCORE_TEXT)
        (first,), (other,) = (self._literals(statements, form) for form in (_KEY_POINTS_FIRST, _KEY_POINTS_ELSE))
        literals = {
            "variant": _EVALS[name],
            "source_sha256": checksum,
            "key_points": self._stage("key_points", self._function("identify_key_points")),
            "image": self._stage("image", self._function("judge_image")),
            "outcome": self._stage("outcome", outcome),
            "outcome_without_images": self._template("outcome_without_images", outcome),
            "max_images": self._limit(outcome),
            "key_points_markers": (first, other),
            "score_marker": score_marker,
            "reason_marker": reason_marker,
            "reason_end": reason_end,
        }
        return validated(TypeAdapter(PublishedEvaluator), literals, self._path)

    def _fail(self, problem: str, node: ast.AST | None = None) -> NoReturn:
        line = f" line {node.lineno}" if node is not None and hasattr(node, "lineno") else ""
        raise ConfigError(f"{self._path}{line}: {problem}", remedy=_REMEDY)

    def _function(self, name: str) -> ast.AST:
        if name not in self._functions:
            self._fail(f"no function {name}")
        return self._functions[name]

    def _literals(self, statements: list[str], form: str) -> tuple[str, ...]:
        """The literals in the only statement of that form."""
        literal_groups = {match.groups() for text in statements if (match := re.fullmatch(form, text))}
        try:
            (groups,) = literal_groups
            texts = tuple(ast.literal_eval(group) for group in groups)
        except (ValueError, SyntaxError):
            texts = (None,)
        if not all(isinstance(text, str) for text in texts):
            self._fail(f"not one statement of the form {form.replace(chr(92), '')}")
        return texts

    def _stage(self, name: str, function: ast.AST) -> dict[str, Any]:
        of_inputs = [node for loop in ast.walk(function) if _is_input_loop(loop) for node in ast.walk(loop)]
        inputs = self._label(of_inputs, function)
        others = [node for node in ast.walk(function) if node not in of_inputs]
        return {
            "system": self._system(function),
            "user": self._template(name, function),
            "images": self._label(others, function),
            "inputs": {"label": inputs, "lead": self._lead(function)} if inputs else None,
        }

    def _system(self, function: ast.AST) -> str:
        """The text of the only message with the role `system`."""
        texts = _texts(function)
        system_texts = {
            texts.get(content.id) if isinstance(content, ast.Name) else _text(content)
            for entries in _dicts(ast.walk(function))
            if _text(entries.get("role")) == "system" and (content := entries.get("content")) is not None
        }
        if len(system_texts) != 1 or None in system_texts:
            self._fail("not one system text", function)
        return str(system_texts.pop())

    def _template(self, name: str, function: ast.AST) -> str:
        """The only text with exactly that stage's fields."""
        template_texts = {
            node.value
            for _, node in _assigned(ast.walk(function))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _fields(node.value) == FIELDS[name]
        }
        if len(template_texts) != 1:
            self._fail(f"not one format string with {sorted(FIELDS[name])}", function)
        return str(template_texts.pop())

    def _label(self, nodes: list[ast.AST], function: ast.AST) -> dict[str, str | None] | None:
        """How images are labelled in these nodes; `None` if there are none."""
        labels = set()
        for entries in _dicts(nodes):
            url = entries.get("url")
            if isinstance(url, ast.JoinedStr):
                match = re.fullmatch(r"data:(image/\w+);base64,", _text(url.values[0]) or "")
                labels.add((match[1] if match else None, _text(entries.get("detail"))))
        if len(labels) > 1:
            self._fail("images with different labels", function)
        return next(({"media_type": media_type, "detail": detail} for media_type, detail in labels), None)

    def _lead(self, function: ast.AST) -> str | None:
        """The fixed text of a message; only the message with the task's images has one."""
        entries = _dicts(ast.walk(function))
        texts = {text for entry in entries if (text := _text(entry.get("text"))) is not None}
        if len(texts) > 1:
            self._fail("more than one fixed text", function)
        return texts.pop() if texts else None

    def _limit(self, function: ast.AST) -> int:
        """The maximum number of images in the outcome request."""
        limits = {
            self._numbers.get(upper.id) if isinstance(upper, ast.Name) else getattr(upper, "value", None)
            for node in ast.walk(function)
            if isinstance(node, ast.Slice) and node.lower is None and (upper := node.upper) is not None
        }
        if len(limits) != 1 or not isinstance(limit := limits.pop(), int):
            self._fail("not one limit of images", function)
        return limit


def _assigned(nodes: Any) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of simple assignments."""
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _texts(function: ast.AST) -> dict[str, str | None]:
    return {name: _text(value) for name, value in _assigned(ast.walk(function))}


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _fields(text: str) -> set[str]:
    try:
        return fields_of(text)
    except Invalid:
        return set()


def _dicts(nodes: Any) -> Iterator[dict[str, ast.expr]]:
    for node in nodes:
        if isinstance(node, ast.Dict):
            yield {
                key: value
                for key, value in ((_text(key), value) for key, value in zip(node.keys, node.values, strict=True))
                if key
            }


def _is_input_loop(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and "input" in node.iter.id

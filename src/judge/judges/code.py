"""The judging code: what can change a verdict, and the checksum of it that every verdict records."""

import ast
import hashlib
import importlib.metadata
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from judge.judges.base import files_checksum
from judge.judges.syntax import program_form
from judge.records.checks import CHECKS, plain_checks
from judge.records.verdicts import Verdict
from judge.trajectory.formats import FORMATS, reader_of
from judge.trajectory.record import Trajectory
from shared.files import write_atomic
from shared.imports import collector_paused
from shared.seams import PluginInfo
from shared.settings import Settings

# These packages judge. What they import judges as well, and so does what that imports.
_JUDGING = ("judge/evaluators", "judge/judges", "judge/parsing")
_OURS = ("judge", "shared")
# A kind of check of a plug-in, and their tools, whose calls checks read.
_OF_PLUGINS = ("judge/plugins/*/check.py", "judge/plugins/*/tools.py")
# What is imported by them but decides nothing; nor does what only these import.
_DECIDING_NOTHING = (
    # The settings that decide are part of a judge's id and of its verdicts.
    "judge/config",
    # Where a run's files are.
    "judge/store",
    # The way to a judge model. Verdicts record the model, its questions and its answers.
    "shared/llm",
    "shared/settings",
    # How plug-ins are found. Verdicts record those that took part.
    "shared/imports",
    "shared/seams",
)
# Prompts have a separate checksum.
_PROMPTS = "prompts"


def judging_code(root: Path) -> dict[str, bytes]:
    """What can change the verdict on a trajectory, by file: the programs without comments, and data as it is.

    `root` is the folder that our packages are in.
    """
    sources: dict[str, bytes] = {}
    waiting = {name for package in _JUDGING for name in _files_below(root, package)}
    waiting |= {path.relative_to(root).as_posix() for pattern in _OF_PLUGINS for path in root.glob(pattern)}
    while waiting:
        name = waiting.pop()
        content = (root / name).read_bytes()
        if not name.endswith(".py"):
            sources[name] = content.replace(b"\r\n", b"\n")
            continue
        tree = ast.parse(content)
        sources[name] = program_form(tree).encode()
        imported = {source for module in _imported(tree, name) for source in _sources_of(root, module)}
        waiting |= imported - sources.keys()
    return sources


@cache
def code_checksum() -> str:
    """SHA-256 over the judging code."""
    return checksum_below(Path(__file__).parents[2], Settings.from_environ().cache_folder)


def checksum_below(root: Path, cache_folder: Path | None) -> str:
    """SHA-256 over the judging code below `root`, kept in the user's cache folder until any of our files changes.

    Parsing the code takes half a second of each process that judges; reading it takes a fortieth of that.
    """
    key = _contents_checksum(root)
    cache_file = cache_folder and cache_folder / "wabe" / "code" / hashlib.sha256(str(root).encode()).hexdigest()[:16]
    if cache_file:
        with suppress(OSError, ValueError):
            kept_key, checksum = cache_file.read_text().split()
            if kept_key == key:
                return checksum
    with collector_paused():
        checksum = files_checksum(judging_code(root))
    if cache_file:
        # A cache that cannot be written costs time, nothing else.
        with suppress(OSError):
            write_atomic(cache_file, f"{key} {checksum}\n".encode(), flush=False)
    return checksum


def found_plugins(*plugins: PluginInfo | None) -> tuple[PluginInfo, ...]:
    """The plug-ins among them, each once, by name."""
    by_name = {plugin.name: plugin for plugin in plugins if plugin is not None}
    return tuple(by_name[name] for name in sorted(by_name))


def with_plugins(verdict: Verdict, trajectory: Trajectory) -> Verdict:
    """The verdict, which also names the plug-ins that read the trajectory and provide its checks."""
    if verdict.judge is None:
        return verdict
    is_read_by_plugin = trajectory.is_foreign and not (trajectory.folder / "result.json").exists()
    reader = reader_of(trajectory.folder) if is_read_by_plugin else None
    kinds = {check.kind for check in (*plain_checks(trajectory.task.checks), *trajectory.task.watched)}
    read_by = FORMATS.plugin(reader[0]) if reader else None
    plugins = found_plugins(*verdict.judge.plugins, read_by, *map(CHECKS.plugin, kinds))
    return verdict.model_copy(update={"judge": verdict.judge.model_copy(update={"plugins": plugins})})


def installed_code() -> dict[str, str]:
    """The two fields of `JudgeInfo` that identify this installation."""
    return {"package_version": importlib.metadata.version("wabe"), "code_checksum": code_checksum()}


def _files_below(root: Path, package: str) -> Iterator[str]:
    """The files of a package, without prompts and what Python compiled."""
    for path in (root / package).rglob("*"):
        name = path.relative_to(root)
        if path.is_file() and not {_PROMPTS, "__pycache__"} & set(name.parts):
            yield name.as_posix()


def _contents_checksum(root: Path) -> str:
    """SHA-256 over everything that could be judging code, byte by byte."""
    names = (name for package in _OURS for name in _files_below(root, package))
    return files_checksum({name: (root / name).read_bytes() for name in names})


def _imported(tree: ast.Module, name: str) -> Iterator[str]:
    """What a module imports, wherever in it. Each is a module or something in one."""
    package = name.rpartition("/")[0].replace("/", ".")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _sources_of(root: Path, imported: str) -> Iterator[str]:
    """The files that run when this is imported, packages first, unless they decide nothing."""
    parts = imported.split(".")
    if parts[0] not in _OURS:
        return
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        if path in _DECIDING_NOTHING:
            return
        # The record of a plug-in decides nothing, and refers to all of it.
        files = (f"{path}.py",) if path.rpartition("/")[0] == "judge/plugins" else (f"{path}/__init__.py", f"{path}.py")
        yield from (name for name in files if (root / name).is_file())

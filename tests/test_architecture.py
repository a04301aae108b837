"""The house rules, as checks on the source itself."""

import ast
import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
MODULES = {path: ast.parse(path.read_text()) for path in sorted(SRC.rglob("*.py"))}
PACKAGES = ("judge", "participants", "shared", "wabe")
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 60

ALLOWED_IMPORTS = {
    "wabe": {"wabe", "judge", "participants", "shared"},
    "judge": {"judge", "shared"},
    "participants": {"participants", "shared"},
    "shared": {"shared"},
}
# A composition root wires both sides: the command line offers judge and participants alike.
COMPOSITION_ROOTS = {"judge/commands/app.py": {"participants"}}
SDK_PACKAGES = {
    "a2a": "shared/a2a/",
    "mcp": "judge/browser/",
    "playwright": "judge/browser/",
    "google.genai": "shared/llm/",
    "openai": "shared/llm/",
    "duckdb": "judge/results/",
    "re2": "shared/patterns.py",
    "opentelemetry": "judge/server/",
}


def relative(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def imports_of(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_package_imports_only_what_lies_below_it(path: Path) -> None:
    package = path.relative_to(SRC).parts[0]
    allowed = ALLOWED_IMPORTS[package] | COMPOSITION_ROOTS.get(relative(path), set())
    used = {name.split(".")[0] for name in imports_of(MODULES[path])} & set(PACKAGES)
    assert used <= allowed


def test_no_module_imports_itself_in_a_circle() -> None:
    names = {module_name(path): path for path in MODULES}
    edges = {
        name: {other for other in imports_of(MODULES[path]) if other in names and other != name}
        for name, path in names.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for other in edges[name]:
                visit(other, (*trail, name))
            done.add(name)

    for name in names:
        visit(name, ())


@pytest.mark.parametrize("sdk", SDK_PACKAGES)
def test_each_foreign_sdk_is_imported_in_one_package_only(sdk: str) -> None:
    users = {
        relative(path)
        for path, tree in MODULES.items()
        if any(name == sdk or name.startswith(f"{sdk}.") for name in imports_of(tree))
    }
    assert users
    assert all(name.startswith(SDK_PACKAGES[sdk]) for name in users)


def test_the_environment_is_read_in_one_place() -> None:
    readers = {relative(path) for path in MODULES if re.search(r"os\.(environ|getenv|putenv)\b", path.read_text())}
    assert readers == {"shared/settings.py"}


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_file_stays_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_function_stays_short_enough_to_see_whole(path: Path) -> None:
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(MODULES[path])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_no_module_keeps_mutable_state(path: Path) -> None:
    mutable = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    names = [
        target.id
        for node in MODULES[path].body
        if isinstance(node, ast.Assign) and isinstance(node.value, mutable)
        for target in node.targets
        if isinstance(target, ast.Name) and not target.id.strip("_").isupper() and target.id != "__all__"
    ]
    globals_used = [node.names for node in ast.walk(MODULES[path]) if isinstance(node, ast.Global)]
    assert names == []
    assert globals_used == []


def test_no_tracked_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    hosts = ["pypi." + "org", "files.python" + "hosted", "registry.npm" + "js", "deb.deb" + "ian"]
    paths = ["/" + "work/main", "/" + "farm/"]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    found = []
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 5_000_000:
            text = path.read_bytes().decode("utf-8", "replace")
            found.extend(f"{name}: {word}" for word in chain(hosts, paths) if word in text)
    assert found == []
    assert "uv.lock" not in listed

"""The rules of docs/architecture.md, checked on the source itself."""

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import chain

import pytest

from helpers.paths import ROOT
from helpers.possessive import doubtful_groups
from helpers.sources import PATHS, SRC, module_name, trees

MAX_FILE_LINES = 800
MAX_ENTRIES = 20

# From top to bottom: a package imports from its own layer and from those below it.
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
# A plug-in may be taken away, and its SDK with it.
SDK_PACKAGES: dict[str, str | tuple[str, ...]] = {
    "a2a": "shared/a2a/",
    "mcp": ("judge/browser/", "shared/mcp_tools.py"),
    "playwright": "judge/browser/",
    "google.genai": ("shared/llm/", "judge/plugins/computer_use/"),
    "anthropic": "shared/llm/",
    "openai": "shared/llm/",
    "gymnasium": "wabe/",
    "duckdb": ("judge/results/", "judge/plugins/leaderboard/", "judge/plugins/steps/"),
    "PIL": "shared/images.py",
    "re2": "shared/patterns.py",
    "fsspec": "judge/plugins/objects/",
    "opentelemetry": "judge/server/",
    "prometheus_client": "judge/server/",
    "redis": "judge/plugins/redis/",
    "ray": "judge/plugins/ray/",
    "warcio": "judge/plugins/frozen/",
    "brotli": "judge/plugins/frozen/",
    "zstandard": "judge/plugins/frozen/",
}


def package_of(module: str) -> str:
    """`judge` is divided into packages; the others are one package each."""
    return ".".join(module.split(".")[: 2 if module.startswith("judge.") else 1])


def statements_of(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements, however deep; without their expressions, which take most of the time."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements_of(node)


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in statements_of(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def all_imports() -> dict[str, frozenset[str]]:
    """What each module of `src` imports, its own and others, by the module's name."""
    return {name: frozenset(imports_of(tree)) for name, tree in trees().items()}


def internal_imports() -> dict[str, set[str]]:
    known = all_imports()
    return {name: {other for other in others if other in known and other != name} for name, others in known.items()}


def between_packages() -> Iterator[tuple[str, str, str]]:
    """Importing package, imported package, and the import itself."""
    for name, others in internal_imports().items():
        for other in others:
            if package_of(name) != package_of(other) and other != "judge":
                yield package_of(name), package_of(other), f"{name} imports {other}"


def test_packages_import_downwards_only() -> None:
    layer = {package: index for index, packages in enumerate(LAYERS) for package in packages}
    upwards = [text for above, below, text in between_packages() if layer[above] > layer[below]]
    # The one exception: `judge.store.load_trajectory` is a name that others import.
    assert upwards == ["judge.store imports judge.trajectory.files"]


def test_the_judge_does_not_import_participants() -> None:
    allowed = {"wabe", "participants", "judge.plugins"}
    assert [text for above, below, text in between_packages() if below == "participants" and above not in allowed] == []


def plugin_of(module: str) -> str | None:
    """The plug-in that a module is part of."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["judge", "plugins"] and len(parts) > 2 else None


def test_nothing_imports_a_plug_in_except_itself() -> None:
    results = [
        f"{name} imports {other}"
        for name, others in internal_imports().items()
        for other in others
        if plugin_of(other) is not None and plugin_of(other) != plugin_of(name)
    ]
    assert results == []


def test_packages_form_no_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for above, below, _ in between_packages():
        graph.setdefault(above, set()).add(below)
    TopologicalSorter(graph).prepare()


def test_modules_form_no_cycle() -> None:
    TopologicalSorter(internal_imports()).prepare()


@pytest.mark.parametrize("sdk", SDK_PACKAGES)
def test_each_foreign_sdk_is_imported_in_one_package_only(sdk: str) -> None:
    users = [
        path.relative_to(SRC).as_posix()
        for path in PATHS
        if any(name == sdk or name.startswith(f"{sdk}.") for name in all_imports()[module_name(path)])
    ]
    assert users or "plugins" in str(SDK_PACKAGES[sdk])
    assert all(user.startswith(SDK_PACKAGES[sdk]) for user in users)


def test_the_environment_is_read_in_one_place() -> None:
    readers = [path for path in PATHS if re.search(r"os\.(environ|getenv|putenv)\b", path.read_text())]
    assert readers == [SRC / "shared" / "settings.py"]


def test_sites_are_called_with_one_client() -> None:
    # The others call agents and the judge's own live page.
    own = {
        SRC / "shared" / "tls.py",
        SRC / "shared" / "a2a" / "transport.py",
        SRC / "judge" / "runner" / "live_page.py",
    }
    assert {path for path in PATHS if re.search(r"httpx\.(Async)?Client\(", path.read_text())} == own
    by_key = {path for path in PATHS if "create_default_context(" in path.read_text()}
    assert by_key <= own, "use shared.tls.site_trust"


def test_files_are_short_enough_to_read() -> None:
    assert [path.name for path in PATHS if len(path.read_text().splitlines()) > MAX_FILE_LINES] == []


def literals_of(tree: ast.AST) -> Iterator[str]:
    """All strings; a NUL stands for what an f-string inserts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def test_possessive_groups_are_right_on_every_python() -> None:
    found = {
        f"{name}: {group}"
        for name, tree in trees().items()
        for text in literals_of(tree)
        for group in doubtful_groups(text)
    }
    assert found == set(), (
        "end the repeated group with an alternative that never matches, |(?!): see helpers.possessive"
    )


def test_the_judge_has_few_enough_packages_to_know_them_all() -> None:
    entries = [entry.name for entry in (SRC / "judge").iterdir() if entry.name != "__pycache__"]
    assert len(entries) <= MAX_ENTRIES, sorted(entries)


def mutable_state(tree: ast.Module) -> Iterator[str]:
    """Names of lists, dicts and sets that are not constants, and of globals that functions assign."""
    mutable = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, mutable):
            names = (target.id for target in node.targets if isinstance(target, ast.Name))
            yield from (name for name in names if not name.strip("_").isupper() and name != "__all__")
    for inner in statements_of(tree):
        if isinstance(inner, ast.Global):
            yield from inner.names


def named_types(tree: ast.Module) -> Iterator[str]:
    """The names of classes, and those that a module gives to types (aliases, type variables)."""
    for node in statements_of(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            # `CONSTANT`, `variable`, `TypeName`.
            yield from (
                target.id
                for target in targets
                if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", target.id)
            )


def test_a_type_name_has_one_definition() -> None:
    modules: dict[str, list[str]] = {}
    for module, tree in trees().items():
        for name in named_types(tree):
            modules.setdefault(name, []).append(module)
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def test_no_module_keeps_mutable_state() -> None:
    assert {name: results for name, tree in trees().items() if (results := list(mutable_state(tree)))} == {}


def named_files(document: str) -> list[str]:
    """The files and folders of `src` that a document names, without those of plug-ins that were taken away."""
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"`((?:judge|participants|shared|wabe)/[\w/.]+)`", text)
    there = {path.name for path in (SRC / "judge" / "plugins").iterdir()}
    return [name for name in named if not name.startswith("judge/plugins/") or name.split("/")[2] in there]


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_files_that_a_document_names_exist(document: str) -> None:
    named = named_files(document)
    assert named
    assert [name for name in named if not (SRC / name).exists()] == []


def test_the_diagram_of_imports_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    diagram = text.partition("flowchart TB")[2].partition("```")[0]
    packages = {package.removeprefix("judge.") for layer in LAYERS for package in layer} - {"wabe"}
    assert [name for name in sorted(packages) if not re.search(rf"\b{name}\b", diagram)] == []


def test_no_tracked_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    hosts = ["pypi." + "org", "files.python" + "hosted", "registry.npm" + "js", "deb.deb" + "ian"]
    paths = ["/" + "work/main", "/" + "farm/"]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    results: list[str] = []
    for name in filter(None, tracked):
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 5_000_000:
            text = path.read_bytes().decode("utf-8", "replace")
            results.extend(f"{name}: {word}" for word in chain(hosts, paths) if word in text)
    assert results == []
    assert "uv.lock" not in tracked

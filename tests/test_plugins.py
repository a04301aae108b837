"""Every plug-in can be taken away: what is left imports, and every command that is left has its help."""

import ast
import importlib.util
import re
import tomllib
from dataclasses import fields
from itertools import permutations
from pathlib import Path
from types import ModuleType

import pytest

from helpers.cases import each
from helpers.paths import ROOT
from shared.plugins import PLUGINS
from shared.seams import OWN_PLUGINS


def script() -> ModuleType:
    path = ROOT / "scripts" / "without_plugin.py"
    spec = importlib.util.spec_from_file_location("without_plugin", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The two largest, because each is a copy of everything; that nothing else refers to one is shown for all below.
@pytest.mark.slow
@pytest.mark.parametrize("name", each(script().plugin_names(), suite={"frozen"}.intersection(script().plugin_names())))
def test_everything_else_works_without_a_plug_in(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert script().main([name, "--imports"]) == 0, capfd.readouterr().err


@pytest.mark.parametrize("count", [2, 3, 20, 21, 70, 71])
def test_of_any_two_plug_ins_each_is_taken_away_without_the_other(count: int) -> None:
    names = [f"plugin_{number}" for number in range(count)]
    groups = [set(group) for group in script().halves(names)]
    assert all(any(one in group and other not in group for group in groups) for one, other in permutations(names, 2))


@pytest.mark.parametrize("name", script().plugin_names())
def test_a_plug_in_has_a_description_and_tests(name: str) -> None:
    assert (ROOT / "src/judge/plugins" / name / "__init__.py").read_text().startswith('"""')
    assert list((ROOT / "tests/plugins" / name).glob("test_*.py"))


@pytest.mark.parametrize("name", script().plugin_names())
def test_no_code_outside_a_plug_in_refers_to_it(name: str, sources: dict[Path, str]) -> None:
    """Neither by an import nor by a text."""
    module = re.compile(rf"judge\.plugins\.{name}\b|judge\.plugins import [^\n]*\b{name}\b|plugins/{name}\b")
    own = ROOT / "src/judge/plugins" / name
    assert [path for path, text in sources.items() if own not in path.parents and module.search(text)] == []


@pytest.fixture(scope="module")
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}


def test_the_core_names_no_plug_in() -> None:
    """No text in its code is, or contains, the name of a method, layout, source of tasks or finding of a plug-in."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    names = {
        name
        for kind in ("judge_methods", "formats", "importers", "doctor")
        for name, target in points[f"wabe.{kind}"].items()
        if target.startswith("judge.plugins.")
    }
    # The core has a judge method of the same name as one source of tasks, after the same paper.
    names -= {
        name
        for of_kind in points.values()
        for name, target in of_kind.items()
        if not target.startswith("judge.plugins.")
    }
    assert {"webarena_verified", "miniwob"} <= names
    # As words: "stratified" is not about atif.
    named = re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, sorted(names)))})(?![a-z])", re.IGNORECASE)
    core = [path for path in (ROOT / "src").rglob("*.py") if "plugins" not in path.parts]
    results = {
        path.relative_to(ROOT / "src").as_posix()
        for path in core
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and named.search(node.value)
    }
    # The environment, the paper after which figures are computed, and the schema that folders name.
    assert results <= {"shared/settings.py", "judge/results/policies.py", "judge/trajectory/foreign.py"}


def keys_of(name: str) -> set[str]:
    """The settings, options, facts and columns that a plug-in declares."""
    plugin = PLUGINS.load(name)
    columns = {each.name for each in fields(plugin.columns())} if plugin.columns else set()
    return {key for each in plugin.declares for key in each.model_fields} | columns


@pytest.mark.parametrize("name", [each for each in script().plugin_names() if each in PLUGINS.names()])
def test_the_page_of_a_plug_in_names_its_columns(name: str) -> None:
    columns = PLUGINS.load(name).columns
    page = ROOT / "src/judge/plugins" / name / "README.md"
    assert [
        each.name for each in (fields(columns()) if columns else ()) if f"`{each.name}`" not in page.read_text()
    ] == []


def test_the_core_names_no_key_of_a_plug_in() -> None:
    """Neither as a text nor as an attribute."""
    own = [name for name, entry in PLUGINS.entries().items() if entry.module.startswith(OWN_PLUGINS)]
    keys = {key: name for name in own for key in keys_of(name)}
    named = {
        (keys[name], name, path.relative_to(ROOT / "src").as_posix())
        for path in (ROOT / "src").rglob("*.py")
        # The judge imports no participant, and a script that one of these reads has keys of its own.
        if not {"plugins", "participants"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (getattr(node, "attr", None), getattr(node, "value", None))
        if isinstance(name, str) and name in keys
    }
    assert named == set()


def test_no_test_of_the_rest_imports_a_plug_in() -> None:
    results = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if (ROOT / "tests" / "plugins") not in path.parents and path != Path(__file__)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("from judge.plugins", "import judge.plugins", "from plugins.", "import plugins"))
    ]
    assert results == []

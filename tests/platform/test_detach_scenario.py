"""`scripts/detach_scenario.py`: a scenario for agents that run elsewhere."""

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.scenario.toml import load_scenario

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "detach_scenario.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("detach_scenario", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DETACH = load()
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
values = st.recursive(
    texts | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_written_reads_back(document: dict[str, Any]) -> None:
    assert tomllib.loads(DETACH.to_toml(document)) == document


@pytest.mark.parametrize(
    "scenario", sorted((ROOT / "scenarios").glob("*/scenario.toml")), ids=lambda path: path.parent.name
)
def test_every_bundled_scenario_keeps_its_tasks(scenario: Path, tmp_path: Path) -> None:
    target = tmp_path / "detached.toml"
    subprocess.run([sys.executable, SCRIPT, scenario, target, "--folder", "/there"], check=True)
    before, after = load_scenario(scenario), load_scenario(target)
    assert (after.tasks, after.config) == (before.tasks, before.config)
    assert [agent.cmd for agent in (after.green_agent, *after.participants)] == [None] * (1 + len(before.participants))
    assert "{scenario_dir}" not in target.read_text()

"""Neither a scenario nor a request can name code, in whatever key: only the command line and the environment can."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.scenario.texts import AGENTS
from judge.config import RunConfig
from judge.episode.preflight import check_config
from judge.network.archives import open_archives
from judge.records.tasks import Task
from judge.scenario.request import parse_request
from judge.scenario.toml import load_scenario
from shared.engines import ENGINES
from shared.errors import ConfigError
from shared.settings import Settings

MODULE = "code_of_somebody_else"
REFERENCE = f"{MODULE}:ENGINE"
KEYS = (*RunConfig.model_fields, "engine", "object_store", "archive_formats", "participant")
# What a key may expect instead of a text.
SHAPES: tuple[object, ...] = (
    REFERENCE,
    [REFERENCE],
    {"*": REFERENCE},
    {"*": {"path": f"{REFERENCE}@shop.pages"}},
    {"*": {"path": f"shop.{REFERENCE}"}},
)
A_TASK = {"task_id": "t", "website": "https://example.org/", "task": "Do it."}
CHECK = {"kind": REFERENCE, "url": "/x"}


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that can be imported from here."""
    (tmp_path / f"{MODULE}.py").write_text("from shared.engines import Engine\nENGINE = Engine()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)


def in_request(config: dict[str, Any], task: dict[str, Any], _folder: Path) -> RunConfig:
    body = {"participants": {"agent": "http://127.0.0.1:9019"}, "config": config, "tasks": [A_TASK | task]}
    return parse_request(json.dumps(body), lambda name: (Task.model_validate(A_TASK),)).config


def in_scenario(config: dict[str, Any], task: dict[str, Any], folder: Path) -> RunConfig:
    def value(item: object) -> str:
        if isinstance(item, dict):
            return f"{{ {', '.join(f'{json.dumps(key)} = {value(each)}' for key, each in item.items())} }}"
        return f"[{', '.join(map(value, item))}]" if isinstance(item, list) else json.dumps(item)

    def table(keys: dict[str, Any]) -> str:
        return "".join(f"{key} = {value(each)}\n" for key, each in keys.items())

    path = folder / "scenario.toml"
    path.write_text(f"{AGENTS}\n[config]\n{table(config)}\n[[tasks]]\n{table(A_TASK | task)}", encoding="utf-8")
    return load_scenario(path).config


@pytest.mark.parametrize("place", [in_scenario, in_request])
def test_no_key_imports_what_it_names(place: Any, tmp_path: Path) -> None:
    settings = Settings.from_environ({"OPENAI_API_KEY": "k"})
    values: list[tuple[dict[str, Any], dict[str, Any]]] = [({key: shape}, {}) for key in KEYS for shape in SHAPES]
    values += [({}, {"checks": [CHECK]}), ({}, {"policies": [{**CHECK, "name": "p", "dimension": "consent"}]})]
    refused = 0
    for config, task in values:
        try:
            accepted = place(config, task, tmp_path)
            check_config(accepted, settings)
            open_archives(accepted)
        except ConfigError:
            refused += 1
    assert MODULE not in sys.modules
    assert refused > len(values) / 2


def test_the_command_line_can() -> None:
    assert ENGINES.resolve(REFERENCE).run is None
    assert MODULE in sys.modules

"""The published JSON schemas are current, and hold for what WABE writes."""

import json
import lzma
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from helpers.paths import ROOT, load_file
from helpers.results import A_TRACE, a_finished_run, a_result
from judge.records.policies import PolicyResult
from judge.records.tasks import Task

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_file(ROOT / "scripts" / "schemas.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = (a_result("t1", network=A_TRACE), a_result("t2", "environment_fault", error="x", blame="browser"))
    policy = {"name": "no-go", "dimension": "consent", "kind": "action", "line": "<Go button> -> CLICK"}
    task = Task.model_validate({**results[0].task.model_dump(), "task_id": "t3", "policies": [policy]})
    result = PolicyResult(name="no-go", dimension="consent", violated=True, attempt=1, step=0, found="it")
    with_policies = a_result("t3", task=task, policies=(result,), earlier_attempts=("ab" * 32,))
    return a_finished_run(tmp_path_factory.mktemp("out"), *results, with_policies).folder


def check(script: ModuleType, name: str, document: Any) -> None:
    Draft202012Validator(script.schemas()[name]).validate(document)


def test_the_committed_schemas_are_those_of_the_models(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("results/t1/result.json", "result.schema.json"),
        ("results/t2/result.json", "result.schema.json"),
        ("results/t3/result.json", "result.schema.json"),
        ("results.json", "results.schema.json"),
        ("results/t1/network.har", "network.schema.json"),
    ],
)
def test_a_run_follows_its_schema(script: ModuleType, run: Path, file: str, name: str) -> None:
    check(script, name, json.loads((run / file).read_text()))


def test_a_key_that_no_document_mentions_is_refused(script: ModuleType, run: Path) -> None:
    document = json.loads((run / "results/t1/result.json").read_text()) | {"colour": "red"}
    with pytest.raises(ValidationError, match="colour"):
        check(script, "result.schema.json", document)


def test_every_key_that_an_attempt_can_have_is_in_the_schema(script: ModuleType) -> None:
    text = lzma.decompress((ROOT / "tests/fixtures/recorded_facts/attempts.json.xz").read_bytes())
    for each in json.loads(text)[:40]:
        check(script, "result.schema.json", json.loads(each["result"]))

"""The release: its notes, the Pythons that it supports, and the rights of its workflow."""

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "release_notes.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = """# Changes

## Unreleased
- Later

## 2.0.0 - 2026-11-30

### Added
- One

## 1.9.0
- Two

## 1.8.0 - 2026-11-01
"""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_notes", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOTES = load()


def test_the_notes_are_the_dated_section_of_the_version() -> None:
    assert NOTES.notes_of(CHANGELOG, "2.0.0") == "### Added\n- One"


@pytest.mark.parametrize(
    ("version", "problem"),
    [("3.0.0", "no section for 3.0.0"), ("1.9.0", "has no date"), ("1.8.0", "is empty"), ("2.0", "no section")],
)
def test_a_version_without_a_dated_section_cannot_be_released(version: str, problem: str) -> None:
    with pytest.raises(NOTES.NotReleasable, match=problem):
        NOTES.notes_of(CHANGELOG, version)


def test_a_tag_of_another_version_than_the_projects_cannot_be_released(capsys: pytest.CaptureFixture[str]) -> None:
    assert NOTES.main(["v0.0.0"]) == 2
    assert f"pyproject.toml says version {PROJECT['version']}" in capsys.readouterr().err


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
    return loaded


@pytest.mark.parametrize(("name", "job"), [("test.yml", "test"), ("nightly.yml", "complete"), ("release.yml", "try")])
def test_every_supported_python_is_tried(name: str, job: str) -> None:
    supported = [
        words[-1]
        for words in (one.split(" :: ") for one in PROJECT["classifiers"])
        if words[:2] == ["Programming Language", "Python"] and words[-1].startswith("3.")
    ]
    matrix = workflow(name)["jobs"][job]["strategy"]["matrix"]
    assert matrix["python-version"] == supported
    (oldest,) = matrix["include"]
    assert (oldest["container"], f">={oldest['python-version']}") == ("debian:12", PROJECT["requires-python"])


def test_only_the_job_that_the_owner_approves_can_publish_the_package() -> None:
    release = workflow("release.yml")
    assert release["permissions"] == {"contents": "read"}
    jobs = release["jobs"]
    assert jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "try"
    assert [name for name in ("build", "try", "announce") if "id-token" in str(jobs[name].get("permissions"))] == []

"""The kinds of checks that are built in: one file each, found through the seam."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import judge.evaluators
import judge.records
from judge.evaluators import kinds
from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.checks import check_kind
from judge.evaluators.kinds.request import RequestCheck
from judge.evaluators.kinds.socket import SocketCheck
from judge.records.checks import CHECKS, AnyOf, LookCheck, PluginCheck, plain_checks
from judge.records.tasks import Task

FOLDER = Path(kinds.__file__).parent
# `request` checks with `socket = true`.
FORMS = {"socket"}


def own() -> dict[str, str]:
    return {name: entry.module for name, entry in CHECKS.entries().items() if entry.plugin() is None}


def a_task(*checks: object) -> Task:
    return Task.model_validate({"task_id": "t1", "website": "https://a.example/", "task": "Do it.", "checks": checks})


def test_each_kind_is_the_one_file_of_its_name() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} - FORMS
    assert own() == {name: f"judge.evaluators.kinds.{name}" for name in files}


def test_what_all_kinds_use_imports_none_of_them() -> None:
    folders = [Path(package.__path__[0]) for package in (judge.evaluators, judge.records)]
    paths = [path for folder in folders for path in folder.glob("*.py")]
    assert [path.name for path in paths if re.search(r"import.*\bkinds\b|\bkinds\b.*import", path.read_text())] == []


@pytest.mark.parametrize("name", sorted(own()))
def test_a_kind_is_found_by_its_name(name: str) -> None:
    result = CHECKS.load(name)
    assert isinstance(result, CheckKind)
    assert all(form.model.model_fields["kind"].annotation.__args__ == (name,) for form in result.forms())  # type: ignore[union-attr]


def test_a_key_selects_the_form_of_a_kind() -> None:
    body = {"kind": "request", "url": "/order", "method": "POST"}
    text = {"kind": "request", "url": "/live", "socket": True, "direction": "sent", "message": "hello"}
    result = a_task(body, text).checks
    assert [type(check) for check in result] == [RequestCheck, SocketCheck]
    assert [check_kind(check).model for check in plain_checks(result)] == [RequestCheck, SocketCheck]


def test_a_mistake_in_a_check_has_its_place() -> None:
    inner = {"any_of": [{"kind": "page", "url": "/"}, {"kind": "text", "contains": ["a", 5]}]}
    with pytest.raises(ValidationError) as caught:
        a_task(inner)
    assert [part for part in caught.value.errors()[0]["loc"] if "<" not in str(part)] == [
        *("checks", 0, "any_of", 1, "contains", 1)
    ]


class Loud(PluginCheck):
    """One of a package's, with one key that checks share and one of its own."""

    within: str | None = None
    least: int


LOUD = CheckKind(Loud, lambda *_: Decision(True, ComparisonResult(True, "loud"), None))


@pytest.fixture
def a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    find = type(CHECKS).find
    monkeypatch.setattr(type(CHECKS), "find", lambda seam, name: LOUD if name == "loud" else find(seam, name))


@pytest.mark.usefixtures("a_package")
def test_a_mistake_in_a_check_of_a_package_has_its_place() -> None:
    with pytest.raises(ValidationError) as caught:
        a_task({"kind": "loud", "least": "much"})
    assert caught.value.errors()[0]["loc"][-1] == "least"


@pytest.mark.usefixtures("a_package")
def test_what_is_written_beside_any_of_is_for_the_checks_that_take_it() -> None:
    text = {"any_of": [{"kind": "loud", "least": 1}, {"kind": "page", "url": "/"}], "within": "main", "at": "any"}
    (check,) = a_task(text).checks
    assert isinstance(check, AnyOf)
    loud, page = check.any_of
    assert isinstance(loud, Loud)
    assert isinstance(page, LookCheck)
    assert (loud.within, loud.at, page.at) == ("main", "any", "any")


def test_a_check_is_recorded_with_all_keys_of_its_kind_in_their_order() -> None:
    task = a_task({"kind": "page", "url": "/", "not": True})
    (recorded,) = task.model_dump(mode="json")["checks"]
    assert list(recorded.items()) == [
        ("not", True),
        ("description", ""),
        ("at", "end"),
        ("on", None),
        ("kind", "page"),
        ("url", "/"),
        ("title", None),
        ("extra_query", False),
    ]
    assert a_task(recorded) == task

"""WebArena-Verified's evaluator in a process of its own: real tasks, hostile answers, and a process that fails."""

import asyncio
import contextlib
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.interop.environments import environment
from judge.plugins.webarena import package as webarena
from judge.plugins.webarena.package import (
    Evaluation,
    EvaluatorError,
    PackageTask,
    WebArenaPackage,
    evaluator_trace,
    packaged_tasks,
    parsed_answer,
    required_python,
)
from plugins.webarena.sites import ABOUT, entry, har, imitation
from shared.errors import ConfigError
from shared.settings import Settings

pytestmark = pytest.mark.slow

LAB, SHOP, FORUM = "http://127.0.0.1:8023", "http://127.0.0.1:7770", "http://127.0.0.1:9999"
ADMIN = "http://127.0.0.1:7780/admin"
PLACES = {"gitlab": LAB, "shopping": SHOP, "reddit": FORUM, "shopping_admin": ADMIN}
ENVIRONMENTS = {site: {"urls": [url], "active_url_idx": 0} for site, url in PLACES.items()}
BEST_SELLER = 0
TODOS = 44
NOT_FOUND = 22
COMMENT = 389
BIOGRAPHY = 399
NAVIGATED = '{"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": null}'
DONE = '{"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": null}'
NOTHING = '{"task_type": "RETRIEVE", "status": "NOT_FOUND_ERROR", "retrieved_data": null}'


class Package:
    """The real package, driven from synchronous tests."""

    def __init__(self, run: Callable[[Coroutine[Any, Any, Any]], Any], package: WebArenaPackage) -> None:
        self._run = run
        self._package = package
        self.tasks: dict[int, PackageTask] = {task.task_id: task for task in self.subset(None)}

    def subset(self, name: str | None) -> tuple[PackageTask, ...]:
        result = self._run(self._package.tasks(name)).tasks
        assert result is not None
        return tuple(result)

    def evaluate(self, number: int, answer: str | None, trace: dict[str, Any], instruction: str = "") -> Evaluation:
        text = instruction or self.tasks[number].intent
        evaluation: Evaluation = self._run(self._package.evaluate(number, instruction=text, answer=answer, har=trace))
        return evaluation


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings.from_environ({"WABE_WEBARENA_PYTHON": str(environment("webarena"))})


@pytest.fixture(scope="module")
def package(settings: Settings) -> Iterator[Package]:
    with asyncio.Runner() as runner:
        opened = runner.run(WebArenaPackage.open(settings.webarena_python, ENVIRONMENTS))
        yield Package(runner.run, opened)
        runner.run(opened.aclose())


def test_the_package_has_its_tasks_and_subsets(package: Package) -> None:
    assert len(package.tasks) == 812
    assert len(package.subset("hard")) == 258
    assert package.tasks[BIOGRAPHY].fields == ("user_biography[biography]",)


def biography(text: str, status: int = 302, method: str = "POST") -> dict[str, Any]:
    path = "/user/MarvelsGrantMan136/edit_biography"
    return entry(FORUM + path, method, status, f"user_biography%5Bbiography%5D={text}")


def comment(text: str) -> dict[str, Any]:
    """Sent as JSON."""
    body = json.dumps({"note": {"noteable_type": "MergeRequest", "note": text}})
    request = entry(f"{LAB}/primer/design/notes?target_id=139245&target_type=merge_request", "POST", 200, body)
    request["request"]["postData"]["mimeType"] = "application/json"
    return request


@pytest.mark.parametrize(
    ("number", "answer", "entries", "status"),
    [
        (NOT_FOUND, NOTHING, [entry(SHOP)], "success"),
        (NOT_FOUND, NOTHING.replace("NOT_FOUND_ERROR", "SUCCESS"), [entry(SHOP)], "failure"),
        (NOT_FOUND, None, [entry(SHOP)], "failure"),
        (TODOS, f"```json\n{NAVIGATED}\n```", [entry(LAB), entry(f"{LAB}/dashboard/todos")], "success"),
        (TODOS, NAVIGATED, [entry(f"{LAB}/dashboard/todos"), entry(LAB)], "failure"),
        (TODOS, DONE, [entry(f"{LAB}/dashboard/todos")], "failure"),
        (BIOGRAPHY, DONE, [biography("I+am+a+robot")], "success"),
        (BIOGRAPHY, DONE, [biography("I+am+a+human")], "failure"),
        (BIOGRAPHY, DONE, [biography("I+am+a+robot", status=422)], "failure"),
        (BIOGRAPHY, DONE, [biography("I+am+a+robot", method="PUT")], "failure"),
        (BIOGRAPHY, DONE, [entry(FORUM)], "failure"),
        (COMMENT, DONE, [comment("Thanks, working on reviews")], "success"),
        (COMMENT, DONE, [comment("Thanks, working on it")], "failure"),
    ],
)
def test_answers_and_requests_are_evaluated(
    package: Package, number: int, answer: str | None, entries: list[dict[str, Any]], status: str
) -> None:
    evaluation = package.evaluate(number, answer, har(*entries))
    assert evaluation.result is not None
    assert (evaluation.result.status, evaluation.refusal) == (status, None)
    assert evaluation.result.webarena_verified_version == "1.2.3"


def test_the_document_of_a_frame_is_not_where_the_participant_went(package: Package) -> None:
    frame = entry(f"{LAB}/banner", _frame=True)
    evaluation = package.evaluate(TODOS, NAVIGATED, har(entry(f"{LAB}/dashboard/todos"), frame))
    assert evaluation.result is not None
    assert evaluation.result.status == "success"


@pytest.mark.parametrize(
    "answer",
    [
        '{"task_type": "RETRIEVE", "status": 5}',
        '{"task_type": null, "status": "SUCCESS"}',
        '{"task_type": ["RETRIEVE", "MUTATE"], "status": "NOT_FOUND_ERROR"}',
        "[" * 100_000,
        '{"a":' * 3000 + "1" + "}" * 3000,
    ],
)
def test_an_answer_that_breaks_the_evaluator_is_the_participants_fault(package: Package, answer: str) -> None:
    evaluation = package.evaluate(NOT_FOUND, answer, har(entry(SHOP)))
    assert evaluation.result is None
    assert evaluation.refusal is not None
    assert evaluation.refusal.startswith("the answer cannot be read")


@pytest.mark.parametrize(
    ("number", "answer", "trace"),
    [
        (NOT_FOUND, '{"task_type": "^.*$", "status": "^.*$", "retrieved_data": null}', har(entry(SHOP))),
        (BIOGRAPHY, DONE, har(biography("%5E.*%24"))),
    ],
)
def test_a_pattern_that_the_evaluator_would_match_is_not_a_success(
    package: Package, number: int, answer: str, trace: dict[str, Any]
) -> None:
    evaluation = package.evaluate(number, answer, trace)
    assert evaluation.result is not None
    assert evaluation.result.status == "success"
    assert evaluation.refusal is not None
    assert "regular expression" in evaluation.refusal


def test_a_pattern_that_never_ends_is_the_participants_fault(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webarena, "_TIMEOUT_S", 1.0)
    endless = biography("%5E(a|a)*(.*)*(.*)*(.*)*(.*)*(.*)*(.*)*(.*)*!%24")
    evaluation = package.evaluate(BIOGRAPHY, DONE, har(entry(FORUM), endless))
    assert evaluation.result is None
    assert evaluation.refusal is not None
    assert evaluation.refusal.startswith("an address or a form field cannot be read")


def test_a_list_of_guesses_is_not_a_success(package: Package) -> None:
    answer: dict[str, Any] = {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["?"]}
    request = package.evaluate(BEST_SELLER, json.dumps(answer), har(entry(ADMIN)))
    assert request.result is not None
    (product,) = json.loads(request.result.evaluators_results[0].expected)["retrieved_data"]
    answer["retrieved_data"] = [[product, "?"]]
    evaluation = package.evaluate(BEST_SELLER, json.dumps(answer), har(entry(ADMIN)))
    assert evaluation.result is not None
    assert evaluation.result.status == "success"
    assert evaluation.refusal is not None
    assert "alternatives" in evaluation.refusal


def test_a_trace_without_requests_is_an_error_of_the_recording(package: Package) -> None:
    with pytest.raises(EvaluatorError, match="Failed to evaluate task 22"):
        package.evaluate(NOT_FOUND, NOTHING, har())


def test_an_address_that_is_not_configured_is_never_guessed(package: Package) -> None:
    with pytest.raises(EvaluatorError, match="no address of map"):
        package.evaluate(7, NOTHING, har(entry("http://127.0.0.1:3030/")))


def test_another_task_under_the_same_number_is_refused(package: Package) -> None:
    with pytest.raises(EvaluatorError, match="not that of task 22"):
        package.evaluate(NOT_FOUND, NOTHING, har(entry(SHOP)), instruction="Buy a lamp")


def test_the_submission_command_names_the_tasks_that_it_accepts(settings: Settings, tmp_path: Path) -> None:
    for number, trace in ((22, har(entry(SHOP))), (44, har())):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "agent_response.json").write_text(NOTHING)
        (tmp_path / str(number) / "network.har").write_text(json.dumps(trace))
    assert packaged_tasks(settings.webarena_python, tmp_path) == {22}


async def one_evaluation(settings: Settings) -> Evaluation:
    package = await WebArenaPackage.open(settings.webarena_python, ENVIRONMENTS)
    try:
        return await package.evaluate(1, instruction="x", answer="x", har=har(entry(SHOP)))
    finally:
        await package.aclose()


async def test_a_missing_environment_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"WABE_WEBARENA_PYTHON is not set.*requirements-webarena\.lock"):
        required_python(None)
    with pytest.raises(ConfigError, match="not a program"):
        required_python(str(tmp_path / "none"))


async def test_an_environment_without_the_package_is_a_configuration_error(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'No module named webarena_verified' >&2\n")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="No module named webarena_verified"):
        await WebArenaPackage.open(str(program), ENVIRONMENTS)


@pytest.mark.parametrize(
    ("program", "problem"),
    [("#!/absent/sh\n", "cannot be started"), ("#!/bin/sh\necho 'No module' >&2\n", "No module")],
)
def test_a_submission_command_that_fails_says_why(tmp_path: Path, program: str, problem: str) -> None:
    python = tmp_path / "python"
    python.write_text(program)
    python.chmod(0o755)
    with pytest.raises(EvaluatorError, match=problem):
        packaged_tasks(str(python), tmp_path)


@pytest.mark.parametrize(
    "reply", ["not JSON", "[]", "{}", '{"error": "KeyError"}', '{"result": {"status": "success"}}']
)
async def test_an_unexpected_answer_leaves_the_attempt_unscored(tmp_path: Path, reply: str) -> None:
    with pytest.raises(EvaluatorError):
        await one_evaluation(imitation(tmp_path, json.dumps(ABOUT), *[reply] * 3))


async def test_a_process_that_ends_leaves_the_attempt_unscored(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="ended"):
        await one_evaluation(imitation(tmp_path, json.dumps(ABOUT)))


async def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webarena, "_TIMEOUT_S", 0.05)
    settings = imitation(tmp_path, json.dumps(ABOUT), then="exec sleep 600")
    with pytest.raises(EvaluatorError, match=re.escape("no answer within 0.05 s")):
        await one_evaluation(settings)


def test_a_request_without_an_answer_has_the_status_that_the_package_expects() -> None:
    lost, answered = (evaluator_trace(har(entry(SHOP, status=status)))["log"]["entries"][0] for status in (0, 404))
    assert (lost["response"]["status"], answered["response"]["status"]) == (-1, 404)


def test_only_requests_of_the_web_are_passed_on() -> None:
    trace = evaluator_trace(har(entry("data:text/html,x"), entry("chrome://version"), entry(SHOP)))
    assert [each["request"]["url"] for each in trace["log"]["entries"]] == [SHOP]


@given(st.one_of(st.binary(max_size=200), st.from_regex(rb'\{"(result|error|refusal)": .{0,40}\}', fullmatch=True)))
def test_every_line_of_the_process_is_an_answer_or_an_error(line: bytes) -> None:
    with contextlib.suppress(EvaluatorError):
        assert isinstance(parsed_answer(line, Evaluation), Evaluation)

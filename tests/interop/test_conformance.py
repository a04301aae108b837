import os
import subprocess
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from helpers.a2a.agents import served
from helpers.interop.conformance import Findings, KnownFailure, read_junit, read_known, unexpected_results
from interop.conformance.agent_under_test import app_under_test

ROOT = Path(__file__).resolve().parents[2]
KNOWN_FAILURE = KnownFailure("tests.a", ("jsonrpc",), "kit", "It is wrong.")


def findings(**outcomes: str) -> Findings:
    return Findings({("jsonrpc", f"tests.{name}"): outcome for name, outcome in outcomes.items()})


def test_known_failures_are_not_reported() -> None:
    assert unexpected_results(findings(a="failed", b="passed", c="skipped"), [KNOWN_FAILURE]) == []


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_a_failure_that_is_not_in_the_list_is_a_complaint(outcome: str) -> None:
    [complaint] = unexpected_results(findings(a="failed", b=outcome), [KNOWN_FAILURE])
    assert "tests.b fails and is not in the list" in complaint


def test_a_failure_known_over_one_transport_is_none_over_another() -> None:
    result = Findings({("jsonrpc", "tests.a"): "failed", ("rest", "tests.a"): "failed"})
    assert unexpected_results(result, [KNOWN_FAILURE]) == ["rest: tests.a fails and is not in the list"]


@pytest.mark.parametrize(
    ("results", "words"), [({"a": "passed"}, "passed"), ({"a": "skipped"}, "skipped"), ({}, "not there")]
)
def test_an_entry_that_fails_no_longer_is_a_complaint(results: dict[str, str], words: str) -> None:
    assert unexpected_results(findings(**results), [KNOWN_FAILURE]) == [
        f"jsonrpc: tests.a is in the list and {words}; take it out"
    ]


def test_a_report_of_pytest_is_read(tmp_path: Path) -> None:
    cases = {"good": "", "bad": "<failure/>", "broken": "<error/>", "unrun": "<skipped/>", "both": "<failure/><error/>"}
    report = tmp_path / "report.xml"
    xml = "".join(f'<testcase classname="tests.m" name="{name}">{child}</testcase>' for name, child in cases.items())
    report.write_text(f"<testsuites><testsuite>{xml}</testsuite></testsuites>")
    assert read_junit(report) == {
        "tests.m.good": "passed",
        "tests.m.bad": "failed",
        "tests.m.broken": "error",
        "tests.m.unrun": "skipped",
        "tests.m.both": "error",
    }


def test_every_known_failure_says_whose_it_is_and_why() -> None:
    known = read_known()
    assert len({entry.test for entry in known}) == len(known) > 0
    for entry in known:
        assert entry.whose in ("kit", "sdk")
        assert set(entry.transports) <= {"jsonrpc", "rest"}
        assert entry.reason.endswith(".")


async def test_a_message_that_names_its_task_alone_stays_in_that_tasks_context() -> None:
    async def send(client: httpx.AsyncClient, **names: str) -> dict[str, str]:
        message = {"messageId": uuid4().hex, "role": "ROLE_USER", "parts": [{"text": "go"}], **names}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        answer = (await client.post("/", json=body)).json()
        return dict(answer["result"]["task"])

    app = app_under_test("http://agent.invalid/")
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers={"A2A-Version": "1.0"}) as client:
        first = await send(client)
        more = [await send(client, taskId=first["id"]) for _ in range(3)]
    assert {task["contextId"] for task in more} == {first["contextId"]}


def test_a_folder_that_is_not_a_kit_is_reported(tmp_path: Path) -> None:
    completed = subprocess.run([ROOT / "scripts/conformance.sh", tmp_path], capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "a2aproject/a2a-tck" in completed.stderr


@pytest.mark.skipif("WABE_A2A_TCK" not in os.environ, reason="needs a checkout of a2aproject/a2a-tck in WABE_A2A_TCK")
def test_only_known_tests_of_the_conformance_kit_fail() -> None:
    kit = os.environ["WABE_A2A_TCK"]
    completed = subprocess.run([ROOT / "scripts/conformance.sh", kit], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr

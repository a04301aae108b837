"""What is kept of a run so that it can be continued, and who may continue it."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.records.events import CONTINUES_KEY, RUN_ID_KEY
from judge.results.run_record import compared_parts
from judge.scenario.draft import RequestDraft
from judge.scenario.models import AssessmentRequest
from judge.scenario.request import parse_request
from judge.scenario.toml import load_scenario
from judge.server.resuming import keep, left_behind, note_on_stop, run_of_token
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.settings import Settings

SECRET = "planted-3f9c2a71"
TASK = {"task_id": "t", "website": "https://shop.test/", "task": "Look."}
LAUNCH = {"scenario_name": "s", "scenario_path": "/my scenarios/s.toml", "scenario_sha256": "00"}
STATE = {"cookies": [{"name": "sid", "value": SECRET, "domain": "shop.test"}]}


def read(**request: Any) -> AssessmentRequest:
    body = {"participants": {"p": "http://127.0.0.1:1/"}, "config": {"tasks": [TASK]}, **request}
    return parse_request(json.dumps(body), lambda name: pytest.fail(name))


def started_run(folder: Path, run_id: str = "r1", state: str = "running") -> RunStore:
    store = RunStore(folder, run_id)
    store.create()
    store.write_run({"schema_version": "wabe-run-2", "run_id": run_id, "state": state})
    return store


def test_a_token_names_its_own_run_only_and_only_its_digest_is_kept(tmp_path: Path) -> None:
    tokens = {run_id: keep(started_run(tmp_path, run_id), read()) for run_id in ("r1", "r2")}
    for run_id, token in tokens.items():
        assert token is not None
        assert run_of_token(tmp_path, token) == run_id
        assert token not in (tmp_path / "runs" / run_id / "resuming.json").read_text()
        assert keep(RunStore(tmp_path, run_id), read()) is None, "a run has one token"
    secrets = {run_id: str(token).rpartition(".")[2] for run_id, token in tokens.items()}
    for wrong in ("", ".", "r1", "r1.", f"r1.{secrets['r2']}", f"r3.{secrets['r1']}", f"../runs/r1.{secrets['r1']}"):
        with pytest.raises(ConfigError, match="belongs to no run of this judge"):
            run_of_token(tmp_path, wrong)


@pytest.mark.parametrize(
    "request_with_a_reason",
    [
        {"participant_headers": {"p": {"Authorization": SECRET}}},
        {"tasks": [{**TASK, "storage_state": "s"}], "storage_states": {"s": STATE}, "config": {}},
        {"config": {"tasks": [{**TASK, "http_credentials": [{"username": "ada", "password": SECRET}]}]}},
        {"config": {"tasks": [TASK], "secrets": [SECRET]}},
        {"config": {"tasks": [TASK], "upstream_proxy": f"http://ada:{SECRET}@127.0.0.1:3128"}},
        {"config": {"tasks": [TASK], "cdp_url": f"wss://browser.test/?token={SECRET}"}},
        {"config": {"tasks": [TASK], "on_disconnect": "cancel"}},
        {"launch": LAUNCH},
    ],
    ids=["headers", "storage state", "credentials", "secrets", "proxy", "hosted browser", "on_disconnect", "runner"],
)
def test_a_run_with_a_secret_or_a_runner_waits_for_its_client(
    tmp_path: Path, request_with_a_reason: dict[str, Any]
) -> None:
    store = started_run(tmp_path)
    assert keep(store, read(**request_with_a_reason)) is not None
    assert SECRET not in (store.folder / "resuming.json").read_text()
    assert left_behind(tmp_path) == []
    assert note_on_stop(tmp_path, {RUN_ID_KEY: "r1"}).facts == {CONTINUES_KEY: "on request"}


def test_what_a_request_has_beside_its_known_keys_is_not_kept(tmp_path: Path) -> None:
    store = started_run(tmp_path)
    keep(store, read(api_key=SECRET, config={"tasks": [{**TASK, "password": SECRET}], "token": SECRET}))
    assert SECRET not in (store.folder / "resuming.json").read_text()


@pytest.mark.parametrize("name", sorted(Settings().bundled_scenarios))
def test_a_kept_request_continues_the_same_run(tmp_path: Path, name: str) -> None:
    scenario = load_scenario(Settings().bundled_scenarios[name])
    body = RequestDraft.of(scenario).text() if scenario.tasks else json.dumps({"participants": {"p": "http://x.test/"}})
    if not scenario.tasks:
        pytest.skip("its tasks are those of a package")
    request = parse_request(body, lambda warning: pytest.fail(warning))
    store = started_run(tmp_path)
    keep(store, request)
    resumable = left_behind(tmp_path)
    if resumable:
        [(result, again)] = resumable
        assert result.run_id == "r1"
        for each in (again, request):
            assert each.participants == request.participants
        assert compared_parts(again.participants, again.config, again.tasks) == compared_parts(
            request.participants, request.config, request.tasks
        )
        assert again.excluded == request.excluded


@pytest.mark.parametrize(
    ("state", "is_left"),
    [("running", True), ("stopped", True), ("completed", False), ("cancelled", False), ("failed", False)],
)
def test_only_what_was_stopped_with_its_judge_is_continued(tmp_path: Path, state: str, *, is_left: bool) -> None:
    store = started_run(tmp_path, state=state)
    keep(store, read())
    if state == "completed":
        assert left_behind(tmp_path), "its results are missing"
        store.write_submission({})
    assert bool(left_behind(tmp_path)) == is_left
    with store.held("judge"):
        assert left_behind(tmp_path) == [], "another process plays it"


def test_a_damaged_record_of_a_run_keeps_no_other_run_from_being_continued(tmp_path: Path) -> None:
    for run_id in ("r1", "r2", "r3"):
        keep(started_run(tmp_path, run_id), read())
    (tmp_path / "runs" / "r1" / "resuming.json").write_text('{"token_sha256": 1')
    RunStore(tmp_path, "r2").write_run({"schema_version": "wabe-run-99", "run_id": "r2", "state": "running"})
    assert [store.run_id for store, _ in left_behind(tmp_path)] == ["r3"]


def test_a_client_learns_how_its_run_continues(tmp_path: Path) -> None:
    keep(started_run(tmp_path, "r1"), read())
    keep(started_run(tmp_path, "r2"), read(launch=LAUNCH))
    keep(started_run(tmp_path, "r3"), read(config={"tasks": [TASK], "secrets": [SECRET]}))
    text = {run_id: note_on_stop(tmp_path, {RUN_ID_KEY: run_id}) for run_id in ("r1", "r2", "r3", "r4")}
    again = 'send the same request again, with "resume_token" as the first update gave it.'
    assert text["r1"].text == f"The judge continues run r1 as soon as it runs again. To follow it, {again}"
    assert text["r1"].facts == {CONTINUES_KEY: "itself"}
    command = "wabe run '/my scenarios/s.toml' --resume r2"
    assert text["r2"].text == f"Continue with: {command}, and the options of its start."
    assert text["r3"].text == f"Continue run r3: {again}"
    for metadata in ({}, {RUN_ID_KEY: "r4"}, {RUN_ID_KEY: "../x"}, {RUN_ID_KEY: 7.0}):
        assert note_on_stop(tmp_path, metadata).text == "Send the request again."

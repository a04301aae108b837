"""Credentials for participants: declared with variables, sent in the request, and never shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.scenario.texts import value_or_complaint
from judge.records.credentials import check_value
from judge.results.run_record import compared_parts
from judge.runner.agents import Agent, AgentAddress, BundledAgent, with_agents
from judge.runner.launch import members_of
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.scenario.credentials import headers_at
from judge.scenario.models import Scenario
from judge.scenario.request import parse_request
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.fields import Invalid
from shared.settings import Settings

SECRET = "s3cr3t-t0ken"
BEARER = 'headers = { Authorization = "Bearer ${TOKEN}", X-Tenant = "seven" }'
RESOLVED = {"Authorization": f"Bearer {SECRET}", "X-Tenant": "seven"}
ENVIRON = {"TOKEN": SECRET}
A_TASK = {"task_id": "t", "website": "https://example.org/", "task": "Do it."}


def scenario_with(folder: Path, participant: str = BEARER, judge: str = "") -> Path:
    path = folder / "s.toml"
    path.write_text(
        f'[green_agent]\nendpoint = "http://127.0.0.1:9009"\n{judge}\n'
        f'[[participants]]\nrole = "p"\nendpoint = "http://127.0.0.1:9019"\n{participant}\n'
        '[[tasks]]\ntask_id = "t"\nwebsite = "https://example.org/"\ntask = "x"\n'
    )
    return path


def loaded(folder: Path, participant: str = BEARER, judge: str = "") -> Scenario:
    return load_scenario(scenario_with(folder, participant, judge))


def request(headers: Any, url: str = "http://127.0.0.1:9019") -> str:
    return json.dumps({"participants": {"p": url}, "config": A_TASK, "participant_headers": headers})


def complaint(text: str) -> str:
    return value_or_complaint(lambda: parse_request(text, lambda _: ()))[1]


# --- the way from the file to the judge -------------------------------------------------------------------------------


def test_the_runner_resolves_them_and_the_judge_reads_them(tmp_path: Path) -> None:
    plan = make_plan(RunOptions(scenario=scenario_with(tmp_path)), Settings.from_environ(ENVIRON))
    parsed = parse_request(plan.request, lambda _: ())
    assert json.loads(plan.request)["participant_headers"] == {"p": RESOLVED}
    assert parsed.participant_headers == {"p": RESOLVED}
    assert parsed.warnings == ()


def test_a_request_without_credentials_does_not_mention_them(tmp_path: Path) -> None:
    plan = make_plan(RunOptions(scenario=scenario_with(tmp_path, "")), Settings.from_environ({}))
    assert "participant_headers" not in json.loads(plan.request)


def test_no_dump_and_no_digest_has_them(tmp_path: Path) -> None:
    scenario = loaded(tmp_path)
    members = members_of(scenario, Settings.from_environ(ENVIRON))
    parsed = parse_request(request({"p": RESOLVED}), lambda _: ())
    other = parse_request(request({"p": {"Authorization": "Bearer another"}}), lambda _: ())
    text = f"{scenario!r} {scenario.model_dump()} {members!r} {parsed!r} {parsed.model_dump_json()}"
    assert SECRET not in text
    assert "seven" not in text
    parts = [compared_parts(each.participants, each.config, each.tasks, launch=each.launch) for each in (parsed, other)]
    assert parts[0] == parts[1]


def test_a_variable_that_is_not_set_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(RunOptions(scenario=scenario_with(tmp_path)), Settings.from_environ({}))
    assert 's.toml: "p", key \'headers\': "Authorization" needs the environment variable TOKEN' in str(caught.value)


@pytest.mark.parametrize("value", ["two\nlines", "two\r\nlines", "ends\n", "naïve", "nul\0", "\x7f"])
def test_a_variable_whose_value_no_header_can_have_is_an_error_that_does_not_show_it(
    tmp_path: Path, value: str
) -> None:
    scenario = loaded(tmp_path, 'headers = { X-Key = "${TOKEN}" }')
    with pytest.raises(ConfigError) as caught:
        members_of(scenario, Settings.from_environ({"TOKEN": value}))
    assert "key 'headers': \"X-Key\": the header 'X-Key' has a " in str(caught.value)
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    "agent", [BundledAgent("random"), AgentAddress("http://agent.test/")], ids=["bundled", "address"]
)
def test_another_participant_in_its_place_does_not_get_them(tmp_path: Path, agent: Agent) -> None:
    scenario = loaded(tmp_path)
    members = members_of(with_agents(scenario, {"p": agent}, "docker"), Settings.from_environ({}))
    assert all(member.headers == {} for member in members)


def test_those_of_the_participant_at_an_address_are_found(tmp_path: Path) -> None:
    scenario = loaded(tmp_path)
    assert headers_at(scenario, "http://127.0.0.1:9019/a2a", ENVIRON) == RESOLVED
    with pytest.raises(ConfigError, match=r"no participant at 'http://127.0.0.1:9020' \(known: http://127.0.0.1:9019"):
        headers_at(scenario, "http://127.0.0.1:9020", ENVIRON)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ('"Bearer s3cr3t-t0ken"', "not a table of at most 20 headers"),
        ('["s3cr3t-t0ken"]', "not a table of at most 20 headers"),
        ("{ Authorization = 7 }", "the header 'Authorization' is not a string"),
        ('{ Authorization = ["s3cr3t-t0ken"] }', "the header 'Authorization' is not a string"),
        ('{ Authorization = "a\\r\\ns3cr3t-t0ken" }', "the header 'Authorization' has a line break"),
        ('{ Authorization = " s3cr3t-t0ken" }', "the header 'Authorization' has a value that no header can have"),
        ('{ Authorization = "s3cr3t-t0ken\\u0001" }', "the header 'Authorization' has a value that no header can have"),
        ('{ Authorization = "" }', "the header 'Authorization' has a value that no header can have"),
        ('{ "X Key" = "s3cr3t-t0ken" }', "'X Key' is not the name of a header"),
        ('{ "" = "s3cr3t-t0ken" }', "'' is not the name of a header"),
        ('{ X-Key = "s3cr3t-t0ken", x-key = "s3cr3t-t0ken" }', "the header 'x-key' is given twice"),
        *(
            (f'{{ {name} = "s3cr3t-t0ken" }}', f"the protocol sets the header '{name}'")
            for name in (
                *("Host", "content-length", "Content-Type", "CONTENT-ENCODING", "Transfer-Encoding", "connection"),
                *("A2A-Version", "a2a-extensions", "Accept", "Accept-Encoding", "Upgrade", "TE", "Expect"),
            )
        ),
        ("{ " + ", ".join(f'X-{n} = "s3cr3t-t0ken"' for n in range(21)) + " }", "not a table of at most 20 headers"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_in_a_file_and_in_a_request(
    tmp_path: Path, headers: str, problem: str
) -> None:
    scenario, message = value_or_complaint(lambda: loaded(tmp_path, f"headers = {headers}"))
    assert scenario is None
    assert "[[participants]] #1, key 'headers'" in message
    assert problem in message
    assert "s3cr3t" not in message


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"p": {"Authorization": f"Bearer {SECRET}", "Host": SECRET}}, "'p': the protocol sets the header 'Host'"),
        ({"p": {"Authorization": f"{SECRET}\n"}}, "'p': the header 'Authorization' has a line break"),
        ({"p": {"Authorization": 7}}, "'p': the header 'Authorization' is not a string"),
        ({"p": SECRET}, "'p': not a table"),
        ({"p": None}, "'p': not a table"),
        ([SECRET], "not a table"),
        (SECRET, "not a table"),
        ({"p": {"X-Key": f"{SECRET} ${{HOME}}"}}, "'p': the header 'X-Key' refers to a variable"),
        ({"p": {"X-Key": f"{SECRET} ${{"}}, "'p': the header 'X-Key' refers to a variable"),
        ({"q": {"X-Key": SECRET}}, "participant_headers, key 'q': no such participant"),
    ],
)
def test_credentials_of_a_request_that_cannot_be_used_are_refused_and_not_shown(headers: Any, problem: str) -> None:
    message = complaint(request(headers))
    assert message.startswith("assessment request: ")
    assert "participant_headers" in message
    assert problem in message
    assert SECRET not in message


def test_a_request_that_is_cut_off_does_not_show_its_credentials() -> None:
    text = json.dumps({"participant_headers": {"p": {"X-Key": SECRET}}})
    assert SECRET not in complaint(text[:-1])


def test_the_judge_itself_has_no_headers(tmp_path: Path) -> None:
    _, message = value_or_complaint(lambda: loaded(tmp_path, "", BEARER))
    assert "[green_agent], key 'headers': unknown key" in message


@given(st.text())
def test_a_value_is_accepted_only_if_a_header_can_carry_it(value: str) -> None:
    is_sendable = value.isascii() and value == value.strip() and 0 < len(value) <= 8000
    is_sendable = is_sendable and all(" " <= char <= "~" or char == "\t" for char in value)
    try:
        check_value("X-Key", value)
    except Invalid:
        assert not is_sendable
    else:
        assert is_sendable


# --- over plain HTTP --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "warns"),
    [
        ("http://127.0.0.1:9019", False),
        ("http://localhost:9019", False),
        ("http://[::1]:9019", False),
        ("https://agent.example", False),
        ("http://agent.example", True),
        ("http://192.168.0.7:9019", True),
        ("http://localhost.example:9019", True),
    ],
)
def test_credentials_that_leave_this_machine_over_plain_http_are_one_warning(url: str, warns: bool) -> None:
    warnings = parse_request(request({"p": RESOLVED}, url), lambda _: ()).warnings
    host = url.removeprefix("http://")
    message = f'assessment request: the participant\'s headers are sent to "{host}" over plain HTTP: use HTTPS'
    assert warnings == ((message,) if warns else ())
    assert parse_request(request({"p": {}}, url), lambda _: ()).warnings == ()

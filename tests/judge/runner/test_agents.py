"""`--agent`: every text is read as exactly one form, or refused in one line that names the forms."""

import os
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.paths import ROOT
from helpers.runner.scenario_runs import write_scenario
from judge.runner.agents import (
    SEVEN_FORMS,
    Agent,
    AgentAddress,
    AgentCommand,
    AgentFolder,
    AgentImage,
    AgentOverMcp,
    AgentsFile,
    BundledAgent,
    agents_of,
    label_of,
    line_ups,
    read_agent,
    with_agents,
)
from judge.runner.launch import members_of
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.runner.start import start_of
from judge.scenario.models import ParticipantEntry, Scenario
from judge.scenario.request import parse_request
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.settings import Settings

FILE = """
[[participants]]
name = "one"
endpoint = "http://127.0.0.1:9019"
cmd = "python {scenario_dir}/one.py --port 9019"
env = { KEY = "${MY_KEY}" }

[[participants]]
name = "two"
endpoint = "https://two.test/agent"
headers = { X-Key = "${TWO_KEY}" }

[[participants]]
name = "three"
image = "ghcr.io/me/three:1"
env = { OPENAI_API_KEY = "${MY_KEY}" }
"""
ENVIRON = {"MY_KEY": "k-1", "TWO_KEY": "k-2", "PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: an agent's folder, a file of agents, and a folder with a participant's name."""
    monkeypatch.chdir(tmp_path)
    for name in ("my agent", "random"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scenario.toml").write_text(FILE.partition('[[participants]]\nname = "two"')[0])
        (tmp_path / name / "one.py").write_text("")
    (tmp_path / "agents.toml").write_text(FILE)
    (tmp_path / "random" / "other.py").write_text("")
    (tmp_path / "alone.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "agent", "label"),
    [
        ("http://127.0.0.1:9019", AgentAddress("http://127.0.0.1:9019"), "127.0.0.1:9019"),
        ("HTTPS://agent.test/a b".replace(" ", ""), AgentAddress("HTTPS://agent.test/ab"), "agent.test"),
        ("image:ghcr.io/me/agent:1", AgentImage("ghcr.io/me/agent:1"), "agent:1"),
        ("my agent", AgentFolder(Path("my agent")), "my agent"),
        ("./my agent/", AgentFolder(Path("./my agent/")), "my agent"),
        ("my agent/one.py", AgentFolder(Path("my agent")), "my agent"),
        # An existing folder or file comes before a participant of that name.
        ("random", AgentFolder(Path("random")), "random"),
        ("agents.toml", AgentsFile(Path("agents.toml")), "agents"),
        ("./agents.toml:two", AgentsFile(Path("./agents.toml"), "two"), "two"),
        ("random/scenario.toml", AgentsFile(Path("random/scenario.toml")), "random"),
        ("replay", BundledAgent("replay"), "replay"),
        ("mcp:claude", AgentOverMcp("claude"), "claude"),
        ("mcp:python ./agent.py {mcp_url}", AgentOverMcp("python ./agent.py {mcp_url}"), "agent.py"),
        ("node ./agent.mjs --port {port}", AgentCommand("node ./agent.mjs --port {port}"), "agent.mjs"),
        ("./serve.sh --at=127.0.0.1:{port}", AgentCommand("./serve.sh --at=127.0.0.1:{port}"), "serve.sh"),
    ],
)
def test_each_form_is_read(text: str, agent: Agent, label: str) -> None:
    assert read_agent(text) == agent
    assert label_of(agent) == label


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", SEVEN_FORMS),
        ("replai", "did you mean 'replay'?"),
        ("./gone", "is neither a folder nor a file, and a command needs {port}"),
        ("gone.toml", "'gone.toml' does not exist"),
        ("python agent.py --port 9019", "a command needs {port}"),
        ("python 'agent.py --port {port}", "close the quotes"),
        ("python agent.py\n--port {port}", "contains a line break"),
        ("mcp:agent '\n' {mcp_url}", "contains a line break"),
        ("mcp:agent '{mcp_url}", "close the quotes"),
        ("mcp:''", "names no program"),
        ("http://", "has no host"),
        ("http://me:secret@agent.test", "keys belong in the environment"),
        ("http://agent.test/?key=1", "has a query or fragment"),
        ("image:--privileged", "does not name an image"),
        ("agents.toml:four", "no agent 'four'"),
        ("alone.py", "or a command such as 'python alone.py --port {port}'"),
        ("random/other.py", "scenario.toml beside it does not start it"),
    ],
)
def test_anything_else_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_agents(demo(), agents_of([text], ["white_agent"]), "docker")
    assert complaint in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


WORDS = st.sampled_from(
    ["http://", "image:", "mcp:", "agents.toml", ":", "replay", "random", "{port}", " ", "/", "'", "\\", "=", "a", "\0"]
)


def read(text: str) -> tuple[Agent | None, str]:
    try:
        return read_agent(text), ""
    except ConfigError as error:
        return None, str(error)


@pytest.mark.slow
@given(st.one_of(st.text(), st.lists(WORDS).map("".join)))
def test_every_text_is_one_form_or_an_error_in_one_line(text: str) -> None:
    agent, error = read(text)
    if agent is None:
        assert len(error.splitlines()) == 1
        return
    assert label_of(agent).isprintable()
    # In the order of the forms: each is what none before it can be.
    lowered = text.lower()
    is_address = lowered.startswith(("http://", "https://"))
    assert isinstance(agent, AgentAddress) == is_address
    assert isinstance(agent, AgentImage) == (not is_address and text.startswith("image:"))
    if isinstance(agent, AgentCommand):
        assert any("{port}" in word for word in shlex.split(text)[1:])
        assert not Path(text).exists()
    if isinstance(agent, AgentFolder | AgentsFile):
        assert agent.path.exists()
    assert label_of(agent)


# --- in a scenario ----------------------------------------------------------------------------------------------------


def demo() -> Scenario:
    return load_scenario(ROOT / "scenarios" / "demo" / "scenario.toml")


def with_secrets(folder: Path) -> Scenario:
    """A scenario whose own participant has variables."""
    return load_scenario(write_scenario(folder / "s.toml", env='env = { KEY = "${MY_KEY}" }'))


@pytest.mark.parametrize(
    "text", ["http://agent.test/", "https://agent.test/a", "agents.toml:two"], ids=["address", "tls", "in a file"]
)
def test_an_agent_that_somebody_else_runs_is_given_nothing_of_the_one_it_replaces(folder: Path, text: str) -> None:
    replaced = with_agents(with_secrets(folder), agents_of([text], ["white_agent"]), "docker")
    agent = next(each for each in members_of(replaced, Settings.from_environ(ENVIRON)) if each.name == "white_agent")
    assert (agent.cmd, agent.env) == (None, {})
    # Only what its own entry declares for it.
    assert agent.headers == ({"X-Key": "k-2"} if text.startswith("agents") else {})
    assert replaced.participants[0].agentbeats_id == ""


def test_a_bundled_participant_plays_by_the_script_of_the_one_it_replaces(folder: Path) -> None:
    for name, script in (("demo", "{scenario_dir}/replay.toml"), ("live", None)):
        scenario = load_scenario(ROOT / "scenarios" / name / "scenario.toml")
        (agent,) = with_agents(scenario, {"white_agent": BundledAgent("obedient")}, "docker").participants
        words = shlex.split(str(agent.cmd))
        assert words[:3] == ["wabe", "participant", "obedient"]
        assert dict(pairwise(words)).get("--script") == script
    (other,) = with_agents(with_secrets(folder), {"white_agent": BundledAgent("replay")}, "docker").participants
    assert "--script" not in str(other.cmd)


def test_a_folder_is_started_as_its_scenario_says_from_wherever_it_is(folder: Path) -> None:
    replaced = with_agents(demo(), {"white_agent": AgentFolder(Path("my agent"))}, "docker")
    (agent,) = replaced.participants
    assert shlex.split(str(agent.cmd)) == ["python", f"{folder}/my agent/one.py", "--port", "9019"]
    assert agent.role == "white_agent"


def test_an_image_gets_the_variables_that_it_names_and_none_of_their_values_on_the_command_line() -> None:
    replaced = with_agents(demo(), {"white_agent": AgentsFile(Path("agents.toml"), "three")}, "podman")
    (agent,) = replaced.participants
    words = shlex.split(str(agent.cmd))
    assert words[:3] == ["podman", "run", "--rm"]
    assert "ghcr.io/me/three:1" in words
    assert [following for word, following in pairwise(words) if word == "--env"] == [
        "WABE_PARTICIPANT_MODEL",
        "OPENAI_API_KEY",
    ]
    members = members_of(replaced, Settings.from_environ(ENVIRON))
    assert next(each.env for each in members if each.name == "white_agent") == {"OPENAI_API_KEY": "k-1"}


def test_a_person_gets_points_boxes_and_time_and_the_address_of_the_page() -> None:
    pytest.importorskip("judge.plugins.play_page")
    scenario = ROOT / "scenarios" / "demo" / "scenario.toml"
    plan = make_plan(RunOptions(scenario=scenario, agent=("human",)), Settings.from_environ(ENVIRON))
    assert plan.config is not None
    # As recorded with the run, and sent to the judge, which accepts at most a day.
    config = parse_request(plan.request, lambda _: ()).config
    assert plan.config.recorded().items() >= {"actions": "both", "snapshot_boxes": True, "max_parallel": 1}.items()
    limits = [config.reply_timeout_s, config.step_timeout_s, config.task_timeout_s, config.attempt_limit_s]
    assert limits == [86220, 86280, 86340, 86400]
    (agent,) = plan.scenario.participants
    words = shlex.split(str(agent.cmd))
    assert words[:3] == ["wabe", "participant", "human"]
    text = "At most 12 replies, and 23.9 hours: the judge's longest time limits."
    assert ("--note", text) in pairwise(words)
    assert f"A person plays as white_agent: open {agent.endpoint}/play" in plan.notes


def test_a_program_over_mcp_is_played_by_the_participant_that_starts_it() -> None:
    agents = {"white_agent": AgentOverMcp("python agent.py '{mcp_url}'")}
    (plain,) = with_agents(demo(), agents, "docker").participants
    words = shlex.split(str(plain.cmd))
    assert words[:5] == ["wabe", "participant", "mcp", "--command", "python agent.py '{mcp_url}'"]
    # Its output is filed beside its log.
    assert ("--logs", "{logs}") in pairwise(words)
    (boxed,) = with_agents(demo(), agents, "docker", sandbox=True).participants
    assert boxed.cmd == f"{plain.cmd} --sandbox"
    with pytest.raises(ConfigError, match="--sandbox is for programs over MCP"):
        with_agents(demo(), {"white_agent": BundledAgent("idle")}, "docker", sandbox=True)


def test_what_a_program_is_to_remember_is_a_key_of_the_participant_and_a_variable_of_its_process() -> None:
    scenario = load_scenario(ROOT / "scenarios" / "demo" / "scenario.toml")
    keys = {**scenario.participants[0].model_dump(), "fresh": "run"}
    scenario = scenario.model_copy(update={"participants": (ParticipantEntry.model_validate(keys),)})
    replaced = with_agents(scenario, {scenario.participants[0].role: AgentOverMcp("claude")}, "docker")
    for each in (scenario, replaced):
        (member,) = (each for each in members_of(each, Settings()) if each.name == scenario.participants[0].role)
        assert member.env == {"WABE_FRESH": "run"}
    assert Settings.from_environ({"WABE_FRESH": "run"}).fresh == "run"
    with pytest.raises(ValueError, match="it is not started here"):
        ParticipantEntry.model_validate({"role": "p", "endpoint": "http://127.0.0.1:1", "fresh": "run"})


def test_the_limits_of_other_agents_stay() -> None:
    replaced = with_agents(demo(), {"white_agent": BundledAgent("idle")}, "docker")
    assert replaced.config == demo().config


def test_agents_and_judge_get_free_ports_and_the_recorded_request_does_not_depend_on_them() -> None:
    options = RunOptions(scenario=ROOT / "scenarios" / "demo" / "scenario.toml", agent=("replay",))
    settings = Settings.from_environ(ENVIRON)
    first, second = (start_of(options, settings) for _ in range(2))
    assert first.scenario.green_agent.endpoint != first.declared.green_agent.endpoint
    assert first.scenario.participants != second.scenario.participants
    assert first.declared == second.declared
    sites = [[each.endpoint for each in members if not each.is_agent] for members in (first.members, second.members)]
    assert sites[0] == sites[1]


def test_the_request_names_addresses_only() -> None:
    body = '{"participants": {"white_agent": "%s"}, "config": {"scenario": "demo"}}'
    for agent in ("image:me/agent", "./mine", "python agent.py --port {port}", "replay"):
        with pytest.raises(ConfigError, match="participants"):
            parse_request(body % agent, lambda _: ())


# --- several ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "roles", "expected"),
    [
        ([], ["a"], [()]),
        (["replay", "idle", "replay"], ["a"], [("replay",), ("idle",)]),
        (["a=replay"], ["a"], [("a=replay",)]),
        (["agents.toml"], ["a"], [("agents.toml:one",), ("agents.toml:two",), ("agents.toml:three",)]),
        (["my agent"], ["a"], [("my agent",)]),
        (
            ["a=replay", "b=idle", "b=http://b.test"],
            ["a", "b"],
            [("a=replay", "b=idle"), ("a=replay", "b=http://b.test")],
        ),
    ],
)
def test_each_agent_plays_and_each_for_its_role(
    texts: list[str], roles: list[str], expected: list[tuple[str, ...]]
) -> None:
    assert line_ups(texts, roles) == expected


@pytest.mark.parametrize(
    ("texts", "roles", "complaint"),
    [
        (
            ["replay"],
            ["buyer", "seller"],
            r"does not say for which role \(write ROLE=AGENT; roles: 'buyer', 'seller'\)",
        ),
        (["owner=replay"], ["buyer", "seller"], "does not say for which role"),
        (["replay", "idle"], ["a"], "'idle' is the second one for 'a'"),
    ],
)
def test_an_unclear_role_is_refused(texts: list[str], roles: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        agents_of(texts, roles)


def test_a_file_of_several_agents_is_not_one(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"agents.toml has 3 agents \(add :NAME; names: 'one', 'two', 'three'\)"):
        with_agents(demo(), {"white_agent": AgentsFile(Path("agents.toml"))}, "docker")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "participants"),
        ('[[participants]]\nname = "x"\n', "agent 'x' cannot be reached"),
        ('[[participants]]\nname = "x"\nport = 1\n', "unknown key"),
    ],
)
def test_a_file_of_agents_that_cannot_be_used_is_named(folder: Path, text: str, complaint: str) -> None:
    (folder / "bad.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        line_ups(["bad.toml"], ["a"])
    assert "bad.toml" in str(caught.value)
    assert complaint in str(caught.value)


def test_a_folder_without_an_agent_says_what_makes_one(folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"scenario.toml is missing \(wabe new-agent"):
        line_ups(["empty"], ["a"])

"""`scripts/run-docker.py`: what it starts, and that nothing stays. The engine is a recorder at the process boundary."""

import base64
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "run-docker.py"
SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
cmd = "wabe serve --host 127.0.0.1 --port 9009"
[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
cmd = "wabe participant replay --script {scenario_dir}/replay.toml --host 127.0.0.1 --port 9019"
[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:9180"
cmd = "python {scenario_dir}/site.py"
"""
# Keeps each call in a file. `exec` is the health check, `run --rm` the run itself: both as the test says.
ENGINE = """#!{python} -IS
import json, os, sys, time
with open({calls!r}, "a") as stream:
    stream.write(json.dumps(sys.argv[1:]) + "\\n")
plan = {plan!r}
if sys.argv[1] == "exec":
    sys.exit(plan["health"])
if sys.argv[1] == "inspect":
    print("false" if plan["health"] else "true")
if sys.argv[1:3] == ["image", "inspect"]:
    print(json.dumps(plan["image"]))
if sys.argv[1:3] == ["run", "--rm"]:
    volumes = [word.split(":") for word in sys.argv if word.endswith(":/app/.output")]
    open({calls!r} + ".run", "w").close()
    time.sleep(plan["run_s"])
    if plan["code"] == 0:
        target = volumes[0][0] + "/" + os.path.basename(sys.argv[sys.argv.index("--output") + 1])
        with open(target, "w") as stream:
            stream.write("{{}}")
    sys.exit(plan["code"])
if sys.argv[1:3] == ["run", "--detach"] and plan["start"]:
    sys.exit(plan["start"])
"""

Play = Callable[..., tuple[subprocess.CompletedProcess[str], list[list[str]]]]


@pytest.fixture
def arrange(tmp_path: Path) -> Callable[..., tuple[list[str], dict[str, str], Path]]:
    """A scenario and an engine: the command line, its environment, and where the calls are kept."""

    def make(scenario: str = SCENARIO, **plan: Any) -> tuple[list[str], dict[str, str], Path]:
        calls = tmp_path / "calls"
        path = tmp_path / "scenario.toml"
        path.write_text(scenario)
        engine = tmp_path / "bin" / "docker"
        engine.parent.mkdir(exist_ok=True)
        complete = {"health": 0, "run_s": 0, "code": 0, "start": 0, "image": [{"Id": "sha256:1"}], **plan}
        engine.write_text(ENGINE.format(python=sys.executable, calls=str(calls), plan=complete))
        engine.chmod(0o755)
        environ = {"PATH": f"{engine.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
        # Without site packages: users run it by whatever Python the machine has.
        return [sys.executable, "-S", str(SCRIPT), str(path), "--output-dir", str(tmp_path / "out")], environ, calls

    return make


@pytest.fixture
def play(arrange: Callable[..., tuple[list[str], dict[str, str], Path]], tmp_path: Path) -> Play:
    def go(
        *options: str, scenario: str = SCENARIO, keys: dict[str, str] | None = None, **plan: Any
    ) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
        command, environ, calls = arrange(scenario, **plan)
        done = subprocess.run(
            [*command, *options],
            env={**environ, **(keys or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        lines = calls.read_text().splitlines() if calls.exists() else []
        return done, [json.loads(line) for line in lines]

    return go


def name_of(call: list[str]) -> str:
    return call[call.index("--name") + 1]


def test_judge_participant_and_run_share_one_network(play: Play) -> None:
    _, calls = play()
    judge, participant, run = (call for call in calls if call[0] == "run")
    assert "--network" not in judge
    shared = f"container:{name_of(judge)}"
    assert [call[call.index("--network") + 1] for call in (participant, run)] == [shared, shared]


def test_the_participants_own_arguments_are_kept(play: Play) -> None:
    _, calls = play()
    participant = [call for call in calls if call[0] == "run"][1]
    image = participant.index("ghcr.io/hjerpe/wabe-purple-replay:latest")
    assert participant[image + 1 :] == ["--script", "/scenario/replay.toml", "--host", "127.0.0.1", "--port", "9019"]


def variables(call: list[str]) -> dict[str, str]:
    pairs = (call[at + 1].partition("=") for at, word in enumerate(call) if word == "--env")
    return {name: value for name, _, value in pairs}


def test_the_run_is_given_the_addresses_of_the_agents_that_run_in_their_own_containers(play: Play) -> None:
    _, calls = play()
    run = next(call for call in calls if call[:2] == ["run", "--rm"])
    assert variables(run)["WABE_AGENTS_RUN"] == "http://127.0.0.1:9009 http://127.0.0.1:9019"
    assert "/scenario/scenario.toml" in run


def test_the_live_page_is_published_on_this_machine_only_and_behind_a_token(play: Play) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _, calls = play(scenario=SCENARIO.replace("9009", str(port)))
    judge, participant, run = (call for call in calls if call[0] == "run")
    assert judge[judge.index("--publish") + 1] == f"127.0.0.1:{port}:{port}"
    env_names = [
        [call[at + 1] for at, word in enumerate(call) if word == "--env"] for call in (judge, participant, run)
    ]
    assert ["WABE_AUTH_TOKEN" in names for names in env_names] == [True, False, True]


def test_the_folders_above_a_scenario_travel_with_it_if_its_paths_name_them(play: Play, tmp_path: Path) -> None:
    scenario = SCENARIO.replace("{scenario_dir}/site.py", "{scenario_dir}/../../shop/site.py")
    _, calls = play(scenario=scenario)
    judge, participant, run = (call for call in calls if call[0] == "run")
    mounted, inside = tmp_path.parents[1], f"/scenario/{tmp_path.relative_to(tmp_path.parents[1])}"
    for call in (judge, participant, run):
        assert f"{mounted}:/scenario:ro" in call
    assert participant[participant.index("--script") + 1] == f"{inside}/replay.toml"
    assert f"{inside}/scenario.toml" in run


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_exit_code_is_that_of_the_run(play: Play, code: int) -> None:
    assert play(code=code)[0].returncode == code


@pytest.mark.parametrize("plan", [{}, {"code": 1}, {"start": 125}, {"health": 1}])
def test_every_container_is_removed_in_any_case(play: Play, tmp_path: Path, plan: dict[str, int]) -> None:
    _, calls = play(**plan)
    started = {name_of(call) for call in calls if call[0] == "run"}
    removed = {call[-1] for call in calls if call[0] == "rm"}
    assert started <= removed
    assert list((tmp_path / "out").glob(".wabe-*")) == []


def test_an_agent_that_never_comes_up_is_named_with_its_log(play: Play) -> None:
    done, calls = play(health=1)
    assert done.returncode == 2
    assert "error: the judge (image ghcr.io/hjerpe/wabe:latest) ended with exit code" in done.stderr
    assert ["logs", "--tail", "30"] in [call[:3] for call in calls]


def test_a_signal_stops_everything(
    arrange: Callable[..., tuple[list[str], dict[str, str], Path]], tmp_path: Path
) -> None:
    command, environ, calls = arrange(run_s=60)
    process = subprocess.Popen(command, env=environ, cwd=tmp_path)
    deadline = time.monotonic() + 30
    while not (tmp_path / "calls.run").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    parsed = [json.loads(line) for line in calls.read_text().splitlines()]
    assert {name_of(call) for call in parsed if call[0] == "run"} <= {call[-1] for call in parsed if call[0] == "rm"}


def test_keys_go_by_name_and_never_by_value(play: Play) -> None:
    _, calls = play(keys={"GOOGLE_API_KEY": "secret-1"})
    judge = next(call for call in calls if call[0] == "run")
    assert judge[judge.index("--env") + 1] == "GOOGLE_API_KEY"
    assert "secret-1" not in json.dumps(calls)


IMAGES = """
[green_agent]
image = "example.test/judge:1"
[[participants]]
role = "white_agent"
image = "example.test/mine:1"
env = { OPENAI_API_KEY = "${OPENAI_API_KEY}", MODE = "fast" }
"""


def test_a_third_party_image_gets_only_what_its_env_names(play: Play) -> None:
    _, calls = play(scenario=IMAGES, keys={"GOOGLE_API_KEY": "a", "OPENAI_API_KEY": "b"})
    participant = [call for call in calls if call[0] == "run"][1]
    env_names = [participant[at + 1] for at, word in enumerate(participant) if word == "--env"]
    assert env_names == ["OPENAI_API_KEY", "MODE=fast"]
    assert "--volume" not in participant
    assert "--user" not in participant
    image = participant.index("example.test/mine:1")
    address = ["--host", "127.0.0.1", "--port", "9019", "--card-url", "http://127.0.0.1:9019/"]
    assert participant[image + 1 :] == address


def test_the_run_gets_the_variables_of_a_participants_headers_by_name(play: Play) -> None:
    headers = 'headers = { Authorization = "Bearer ${AGENT_TOKEN}", X-Key = "${UNSET}" }\n'
    _, calls = play(scenario=IMAGES + headers, keys={"OPENAI_API_KEY": "b", "AGENT_TOKEN": "secret-1"})
    *agents, run = [call for call in calls if call[0] == "run"]
    env_names = [run[at + 1] for at, word in enumerate(run) if word == "--env"]
    assert "AGENT_TOKEN" in env_names
    assert "UNSET" not in env_names
    assert not any("AGENT_TOKEN" in call for call in agents)
    assert "secret-1" not in json.dumps(calls)


def test_a_scenario_without_addresses_gets_some(play: Play) -> None:
    _, calls = play(scenario=IMAGES, keys={"OPENAI_API_KEY": "b"})
    run = next(call for call in calls if call[:2] == ["run", "--rm"])
    assert variables(run)["WABE_AGENTS_RUN"] == "http://127.0.0.1:9009 http://127.0.0.1:9019"


def test_every_other_option_goes_to_the_run_as_it_is(play: Play, tmp_path: Path) -> None:
    options = ["--task", "a", "--task", "b", "--resume", "--epochs=2", "--junit", "junit.xml", "--new-option"]
    _, calls = play("--show-logs", *options)
    run = next(call for call in calls if call[:2] == ["run", "--rm"])
    at = run.index("--task")
    assert run[at : at + len(options)] == options
    assert f"{tmp_path}:/current" in run
    assert run[run.index("--workdir") + 1] == "/current"


def test_the_scenario_may_stand_behind_the_scripts_own_options(play: Play, tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(SCRIPT), "--dry-run", "--tag", "t", str(ROOT / "scenarios/held/scenario.toml")]
    done = subprocess.run([*command, "--limit", "1"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "agentbeats-run /scenario/held/scenario.toml" in done.stdout


def test_show_logs_follows_the_log_of_every_container(play: Play) -> None:
    _, calls = play("--show-logs")
    started = [name_of(call) for call in calls if call[:2] == ["run", "--detach"]]
    assert sorted(call[-1] for call in calls if call[:2] == ["logs", "--follow"]) == sorted(started)


def test_the_submission_lands_where_it_is_asked_for(play: Play, tmp_path: Path) -> None:
    play("--output", str(tmp_path / "sub" / "r.json"))
    assert (tmp_path / "sub" / "r.json").read_text() == "{}"


def test_what_ran_is_written_down_as_the_platforms_runner_does(play: Play, tmp_path: Path) -> None:
    workflow = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "me/board",
        "GITHUB_RUN_ID": "7",
        "GITHUB_REF": "refs/heads/mine",
        "GITHUB_SHA": "abc",
        "GITHUB_WORKFLOW_REF": "me/board/.github/workflows/run-scenario.yml@refs/heads/mine",
        "GITHUB_WORKFLOW_SHA": "def",
    }
    path = tmp_path / "sub" / "p.json"
    done, _ = play("--provenance", str(path), keys=workflow, image=[{"Id": "i", "RepoDigests": ["wabe@sha256:2"]}])
    assert done.returncode == 0, done.stderr
    content = json.loads(path.read_text())
    assert content["image_digests"] == {"/green": "wabe@sha256:2", "/white_agent": "wabe@sha256:2"}
    scenario = hashlib.sha256((tmp_path / "scenario.toml").read_bytes()).digest()
    assert content["manifest_digests"] == {"/": "sha256:" + base64.b64encode(scenario).decode()}
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", content["timestamp"])
    assert content["github_actions"] == {
        "run_url": "https://github.com/me/board/actions/runs/7",
        "repository_url": "https://github.com/me/board",
        "ref": "refs/heads/mine",
        "sha": "abc",
        "workflow_ref": workflow["GITHUB_WORKFLOW_REF"],
        "workflow_sha": "def",
    }


@pytest.mark.parametrize("image", [[], [{}], "no such image"])
def test_an_image_without_a_digest_ends_the_run_that_should_record_it(
    play: Play, tmp_path: Path, image: object
) -> None:
    done, _ = play("--provenance", str(tmp_path / "p.json"), image=image)
    assert done.returncode == 2
    assert "does not tell its digest" in done.stderr
    assert not (tmp_path / "p.json").exists()


def test_a_run_without_a_result_leaves_no_submission(play: Play, tmp_path: Path) -> None:
    play("--output", str(tmp_path / "sub" / "r.json"), code=1)
    assert not (tmp_path / "sub" / "r.json").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "scenario.toml: "),
        (None, "No such file"),
        ("green_agent = 3", "green_agent is not a table"),
        ("participants = 3", "participants is not a list of tables"),
        ("participants = [3]", "participants is not a table"),
        ("[[participants]]\ncmd = 'wabe \"'", "No closing quotation"),
        ('[[participants]]\nendpoint = "http://a.test:x"', "endpoint http://a.test:x: "),
        ('[[participants]]\nimage = ["a"]', "participants: image is not a string"),
        ('[[participants]]\nimage = "a"\nenv = { A = 1 }', "participants: env A is not a string"),
        ('[[participants]]\nimage = "a"\nenv = { A = "${B-c}" }', "env A: a variable is written ${NAME}"),
        ('[[participants]]\nrole = "mine"\ncmd = "node a.mjs"', "participant mine: its cmd is not in an image"),
        ('[[participants]]\nrole = "mine"', "participant mine: add endpoint = "),
    ],
)
def test_a_scenario_that_cannot_be_read_is_one_line(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "scenario.toml"
    if text is not None:
        path.write_text(text)
    command = [sys.executable, "-S", str(SCRIPT), str(path), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_results_belong_to_the_owner_of_the_output_folder(play: Play, tmp_path: Path) -> None:
    _, calls = play()
    owner = (tmp_path / "out").stat()
    judge, participant, run = (call for call in calls if call[0] == "run")
    for call in (judge, participant, run):
        assert call[call.index("--user") + 1] == f"{owner.st_uid}:{owner.st_gid}"
    assert os.geteuid() != 0 or owner.st_uid != 0


def test_an_output_folder_that_cannot_be_made_is_one_line(play: Play, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    done, calls = play()
    assert (done.returncode, calls) == (2, [])
    assert done.stderr.startswith(f"error: cannot write to {tmp_path / 'out'}: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_engine_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(SCRIPT), "--engine", "no-such-engine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "no-such-engine is not installed" in done.stderr) == (2, True)
    assert not (tmp_path / ".output").exists()

#!/usr/bin/env python3
"""Runs a whole scenario in containers: judge, participants and the run itself. Results land on this machine.

scripts/run-docker.py [SCENARIO.toml] [--build] [--pull] [--show-logs] [--output FILE] [--output-dir DIR]
                      [--provenance FILE] [--participant-model M] [--registry R] [--tag T] [--engine docker]
                      [--env-file .env] [--ready-timeout S] [--dry-run] [OPTION of agentbeats-run]…

The scenario comes first. Every other option goes to agentbeats-run as it is; `agentbeats-run --help` lists them. The
scenario's folder travels with it, and so do the folders above it that its paths name. Files that options name are
read and written in the current folder and below it, by relative paths; for root, as the images' user (10001).

The judge's live page is open on this machine, behind a token, at the judge's port if that is free here: the run prints
a link.

--provenance writes the digests of the images and of the scenario file, the time, and the workflow's run, in the form of
AgentBeats' own runner.

All containers share one network, so the addresses of the scenario hold as they are: run images that you trust. Keys are
taken from the environment and from --env-file; a participant that names an image gets only those that its `env` names,
and no file of this machine. Such an image is started with --host, --port and --card-url, and is ready when its agent
card can be read. Nothing else is required of it. The exit code is that of agentbeats-run: 0 done, 1 something was
lost, 2 bad usage.
"""

import argparse
import base64
import contextlib
import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

# Runs on the machine's Python, not on the project's own.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("error: Python 3.11 or newer is needed")

import tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "/scenario"
OUTPUT = "/app/.output"
CURRENT = "/current"
TOKEN = "WABE_AUTH_TOKEN"
IMAGE_USER = 10001
POLL_S = 0.5
LOG_LINES = 30
WORKFLOW = ("workflow_ref", "workflow_sha")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Keys and addresses of model providers, as `.env.example` names them.
PASSED_ON = re.compile(r"[A-Z_]+_(?:API_KEY|BASE_URL)")
# Steps to the folders above the scenario's, at the beginning of a path.
UPWARDS = re.compile(r"(?<![^\s'\"=:])(?:\{scenario_dir\}/)?((?:\.\./)+)")


def passed_on() -> list[str]:
    """The variables that containers get if they are set."""
    return list(dict.fromkeys(PASSED_ON.findall((ROOT / ".env.example").read_text("utf-8"))))


def main(argv: Sequence[str] | None = None) -> int:
    """Start everything, run, stop everything."""
    options = parse(argv)
    scenario = read_scenario(options.scenario)
    stage = Stage(options, scenario)
    if options.dry_run:
        for command in stage.commands():
            print(shlex.join(command))
        return 0
    if shutil.which(options.engine) is None:
        fail(f"{options.engine} is not installed; install Docker or name another engine with --engine")
    # A signal must not leave containers behind: it becomes an exit on which everything is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return stage.play()


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line: `run` holds what agentbeats-run gets."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--build", action="store_true", help="build the images first")
    parser.add_argument("--pull", action="store_true", help="fetch the newest images first")
    parser.add_argument("--show-logs", action="store_true")
    parser.add_argument("--participant-model")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--provenance", type=Path)
    parser.add_argument("--output-dir", type=Path, default=Path(".output"))
    parser.add_argument("--registry", default=os.environ.get("WABE_REGISTRY", "ghcr.io/hjerpe"))
    parser.add_argument("--tag", default="latest")
    parser.add_argument("--engine", default=os.environ.get("WABE_ENGINE", "docker"))
    parser.add_argument("--env-file", type=Path, default=Path(".env"))
    parser.add_argument("--ready-timeout", type=float, default=90.0, help="seconds for an agent card to appear")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run none")
    options, others = parser.parse_known_args(argv)
    default = ROOT / "scenarios" / "demo" / "scenario.toml"
    options.scenario = Path(others.pop(0)) if others and not others[0].startswith("-") else default
    options.run = others
    return options


def read_scenario(path: Path) -> dict[str, Any]:
    """The scenario's document. Exits with 2 when it cannot be read; agentbeats-run checks what is in it."""
    if path.exists() and not path.is_file():
        fail(f"{path}: not a file")
    try:
        scenario = tomllib.loads(path.read_text("utf-8-sig"))
        check_shape(scenario)
        return complete(scenario)
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")


def check_shape(scenario: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a value that is used here does not have the type of a scenario."""
    listed = scenario.get("participants", [])
    if not isinstance(listed, list):
        raise ValueError("participants is not a list of tables: write [[participants]]")
    for name, agent in [("green_agent", scenario.get("green_agent", {})), *(("participants", one) for one in listed)]:
        if not isinstance(agent, dict):
            raise ValueError(f"{name} is not a table")
        for key, kind in {"endpoint": str, "cmd": str, "image": str, "env": dict, "headers": dict}.items():
            if not isinstance(agent.get(key, kind()), kind):
                raise ValueError(f"{name}: {key} is not a {'table' if kind is dict else 'string'}")
        port_of(agent.get("endpoint", ""))
        _bundled(agent)
        for table in ("env", "headers"):
            for key, value in agent.get(table, {}).items():
                if not isinstance(value, str):
                    raise ValueError(f"{name}: {table} {key} is not a string")


def port_of(endpoint: str) -> int:
    """The endpoint's port. Raises `ValueError` when it has none that is one."""
    try:
        return urlsplit(endpoint).port or 80
    except ValueError as error:
        raise ValueError(f"endpoint {endpoint}: {error}") from None


def complete(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario with an address for each agent that names an image instead, as leaderboard scenarios do."""
    green = {"endpoint": "http://127.0.0.1:9009", **scenario.get("green_agent", {})}
    agents = [
        {"endpoint": f"http://127.0.0.1:{9019 + number}", **agent} if "image" in agent else agent
        for number, agent in enumerate(scenario.get("participants", []))
    ]
    return {**scenario, "green_agent": green, "participants": agents}


def place_of(path: Path, scenario: Mapping[str, Any]) -> tuple[Path, str]:
    """The folder that containers see, and the scenario's folder inside of it: as many folders above the scenario's own
    as the paths in it name.
    """
    own = path.resolve().parent
    steps = max((match.count("../") for match in UPWARDS.findall(json.dumps(scenario, default=str))), default=0)
    mounted = [own, *own.parents][min(steps, len(own.parents))]
    return mounted, f"{FOLDER}/{own.relative_to(mounted)}" if steps else FOLDER


def is_free(port: int) -> bool:
    """Whether nothing listens at the port on this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def owner_of(output: Path) -> tuple[int, int]:
    """The owner of the results: this user; for root, the folder's owner, or the image's user if that is root too."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    with contextlib.suppress(OSError):
        status = output.stat()
        if status.st_uid != 0:
            return status.st_uid, status.st_gid
    return IMAGE_USER, IMAGE_USER


def fail(message: str) -> NoReturn:
    """One line on standard error, exit code 2."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


@dataclass(frozen=True)
class Container:
    """An agent's container: `title` names the agent to people; `secrets` go to the engine by environment only."""

    name: str
    title: str
    endpoint: str
    command: list[str]
    secrets: dict[str, str] = field(default_factory=dict)
    image: str = ""
    role: str = "green"


class Stage:
    """The containers of one run."""

    def __init__(self, options: argparse.Namespace, scenario: dict[str, Any]) -> None:
        self._options = options
        self._scenario = scenario
        self._prefix = f"wabe-{uuid.uuid4().hex[:8]}"
        self._judge = f"{self._prefix}-judge"
        self._variables = {**read_env_file(options.env_file), **os.environ}
        self._token = {TOKEN: self._variables.get(TOKEN) or secrets.token_urlsafe(24)}
        self._output = options.output_dir.resolve()
        self._owner = owner_of(self._output)
        self._mounted, self._folder = place_of(options.scenario, scenario)
        self._submission = self._output / f".{self._prefix}.json"
        self._judge_image = scenario["green_agent"].get("image") or self._image("wabe")
        self._followed: list[subprocess.Popen[bytes]] = []
        self._agents = [self._judge_container(), *self._participants()]

    def play(self) -> int:
        """Run the scenario; none of our containers stays, however it ends."""
        if self._options.build:
            for command in self._build_commands():
                if subprocess.run(command, check=False).returncode:
                    fail("the images could not be built")
        self._prepare_output()
        try:
            for agent in self._agents:
                started = subprocess.run(
                    agent.command, env={**os.environ, **agent.secrets}, stdout=subprocess.DEVNULL, check=False
                )
                if started.returncode:
                    fail(f"{agent.title} could not be started; were the images built, or pulled? (--build, --pull)")
            for agent in self._agents:
                self._wait_until_ready(agent)
            self._write_provenance()
            if self._options.show_logs:
                self._follow_logs()
            code = subprocess.run(self._run_command(), env={**os.environ, **self._token}, check=False).returncode
            self._keep_submission()
            if code in (1, 130):
                print(f"In containers: {sys.argv[0]} {self._options.scenario} --resume", file=sys.stderr)
            return code
        except KeyboardInterrupt:
            return 130
        finally:
            self._stop()

    def commands(self) -> Iterator[list[str]]:
        """Every command that `play` would run, in order."""
        if self._options.build:
            yield from self._build_commands()
        yield from (agent.command for agent in self._agents)
        yield self._run_command()

    def _build_commands(self) -> Iterator[list[str]]:
        shared = ["--registry", self._options.registry, "--tag", self._options.tag, "--engine", self._options.engine]
        yield [str(ROOT / "scripts/build-green-image.sh"), *shared]
        names = sorted({name for agent in self._scenario["participants"] if (name := _bundled(agent)[0])})
        if names:
            yield [str(ROOT / "scripts/build-purple-images.sh"), *names, *shared]

    def _prepare_output(self) -> None:
        try:
            self._output.mkdir(parents=True, exist_ok=True)
            if os.geteuid() == 0:
                for path in (self._output, *self._output.rglob("*")):
                    os.chown(path, *self._owner, follow_symlinks=False)
        except OSError as error:
            fail(f"cannot write to {self._output}: {error.strerror}; choose another --output-dir, or change its owner")

    def _judge_container(self) -> Container:
        green = self._scenario["green_agent"]
        port = port_of(green["endpoint"])
        keys, values = self._environ(green)
        # For its live page, which is behind the token: everything else reaches it by the shared network.
        live = ["--publish", f"127.0.0.1:{port}:{port}"] if is_free(port) else []
        start = [*self._start(self._judge), *live, *self._user(), *self._keys(), *keys, "--env", TOKEN]
        title = f"the judge (image {self._judge_image})"
        command = [*start, *self._with_output(), self._judge_image, "--host", "0.0.0.0", "--port", str(port)]
        return Container(self._judge, title, green["endpoint"], command, {**values, **self._token}, self._judge_image)

    def _participants(self) -> Iterator[Container]:
        """One container for each participant with an image or a `wabe participant` command; others are up already."""
        for number, agent in enumerate(self._scenario["participants"]):
            name, arguments = _bundled(agent, self._folder)
            image = agent.get("image") or (self._image(f"wabe-purple-{name}") if name else None)
            role = agent.get("role") or agent.get("name") or f"#{number + 1}"
            if image is None and "cmd" in agent:
                fail(f"participant {role}: its cmd is not in an image; build one and name it: image = …")
            endpoint = agent.get("endpoint") or fail(f'participant {role}: add endpoint = "http://127.0.0.1:PORT"')
            if image is None:
                continue
            own: list[str] = []
            if "image" in agent:
                # A third-party image keeps its own user, sees no file of this machine, and gets the guide's options.
                card_url = endpoint.rstrip("/") + "/"
                arguments = ["--host", "127.0.0.1", "--port", str(port_of(endpoint)), "--card-url", card_url]
            else:
                own = [*self._user(), *self._mounts()]
            container = f"{self._prefix}-participant-{number}"
            network = ["--network", f"container:{self._judge}"]
            keys, secrets = self._environ(agent) if "image" in agent or "env" in agent else (self._keys(), {})
            command = [*self._start(container), *network, *keys, *own, image, *arguments]
            yield Container(container, f"participant {role} (image {image})", endpoint, command, secrets, image, role)

    def _run_command(self) -> list[str]:
        flags = [*self._options.run, "--output", f"{OUTPUT}/{self._submission.name}"]
        if self._options.show_logs:
            flags.append("--show-logs")
        if self._options.participant_model:
            flags += ["--participant-model", self._options.participant_model]
        terminal = ["--interactive", "--tty"] if sys.stdout.isatty() and sys.stdin.isatty() else []
        engine = [self._options.engine, "run", "--rm", "--name", f"{self._prefix}-run", *terminal]
        network = ["--network", f"container:{self._judge}", "--no-healthcheck"]
        # The agents run in their own containers: the run needs their addresses only.
        agents = [self._scenario["green_agent"], *self._scenario["participants"]]
        running = ["--env", "WABE_AGENTS_RUN=" + " ".join(agent.get("endpoint", "") for agent in agents)]
        # For files that options name, by paths relative to the current folder.
        here = ["--volume", f"{Path.cwd()}:{CURRENT}", "--workdir", CURRENT]
        scenario = f"{self._folder}/{self._options.scenario.name}"
        command = ["agentbeats-run", scenario, "--output-dir", OUTPUT, *flags]
        entry = ["--entrypoint", "tini", self._judge_image, "--", *command]
        return [
            *engine,
            *network,
            *self._user(),
            *self._keys(),
            *self._credentials(),
            "--env",
            TOKEN,
            *running,
            *self._with_output(),
            *here,
            *entry,
        ]

    def _start(self, name: str) -> list[str]:
        pull = ["--pull", "always"] if self._options.pull else []
        return [self._options.engine, "run", "--detach", *pull, "--name", name]

    def _with_output(self) -> list[str]:
        return [*self._mounts(), "--volume", f"{self._output}:{OUTPUT}"]

    def _mounts(self) -> list[str]:
        return ["--volume", f"{self._mounted}:{FOLDER}:ro"]

    def _user(self) -> list[str]:
        return ["--user", "{}:{}".format(*self._owner)]

    def _keys(self) -> list[str]:
        """Keys go by name, so that no process list shows them."""
        options = [option for name in passed_on() if os.environ.get(name) for option in ("--env", name)]
        if self._options.env_file.is_file():
            options += ["--env-file", str(self._options.env_file)]
        if self._options.participant_model:
            options += ["--env", f"WABE_PARTICIPANT_MODEL={self._options.participant_model}"]
        # The judge works for the user who runs this: the scenario may name its run and its prompts.
        return [*options, "--env", "WABE_TRUST_CONFIG=1"]

    def _credentials(self) -> list[str]:
        """The variables that the participants' `headers` name, which the run resolves; they go by name as well."""
        texts = [text for agent in self._scenario["participants"] for text in agent.get("headers", {}).values()]
        names = dict.fromkeys(name for text in texts for name in VARIABLE.findall(text))
        # What is only in the --env-file is passed on with it.
        return [option for name in names if os.environ.get(name) for option in ("--env", name)]

    def _image(self, name: str) -> str:
        return f"{self._options.registry.rstrip('/')}/{name}:{self._options.tag}"

    def _environ(self, agent: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
        """The agent's own `env`: engine options, and the values that go by environment so that no process list has
        them: all in which a `${NAME}` stands, taken from this machine's environment or the --env-file.
        """
        options, secrets = [], {}
        for key, text in agent.get("env", {}).items():
            if "${" not in text:
                options += ["--env", f"{key}={text}"]
                continue
            names = VARIABLE.findall(text)
            if "${" in VARIABLE.sub("", text):
                fail(f"{self._options.scenario}: env {key}: a variable is written ${{NAME}}")
            values = dict(zip(names, (self._variable(name, key) for name in names), strict=True))
            secrets[key] = VARIABLE.sub(lambda match, values=values: values[match[1]], text)
            options += ["--env", key]
        return options, secrets

    def _variable(self, name: str, key: str) -> str:
        # An Actions secret that is not there arrives as an empty variable.
        if not self._variables.get(name):
            place = f"export it or put it into {self._options.env_file}"
            fail(f"{self._options.scenario}: env {key}: {name} is not set; {place}")
        return self._variables[name]

    def _wait_until_ready(self, agent: Container) -> None:
        """Wait for the agent's card. The judge's container asks: it shares the network, and it has our code."""
        engine, timeout_s = self._options.engine, self._options.ready_timeout
        ask = [engine, "exec", self._judge, "wabe", "doctor", "--agent", agent.endpoint, "--wait", f"{timeout_s:g}"]
        with subprocess.Popen(
            ask, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as asking:
            try:
                while True:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        answer, _ = asking.communicate(timeout=POLL_S)
                        break
                    self._require_running(agent)
            finally:
                asking.kill()
        if asking.returncode:
            self._require_running(agent)
            self._show_log(agent)
            # `MISSING  agent  <address>: <what is wrong>`
            words = (answer.strip().splitlines() or ["no answer"])[-1].split(None, 2)
            fail(f"{agent.title} serves no agent card that can be used: {words[-1]}")

    def _require_running(self, agent: Container) -> None:
        """Exits with 2 when the judge or the agent has ended, after the end of its log."""
        judge = self._agents[0]
        for one in [judge] if agent is judge else [judge, agent]:
            state = [self._options.engine, "inspect", "--format", "{{.State.Running}} {{.State.ExitCode}}", one.name]
            running, _, code = subprocess.run(state, capture_output=True, text=True, check=False).stdout.partition(" ")
            if running.strip() != "true":
                self._show_log(one)
                fail(f"{one.title} ended with exit code {code.strip() or '?'} before the run began")

    def _show_log(self, agent: Container) -> None:
        """The log's last lines on standard error, without control characters: a stranger wrote them."""
        command = [self._options.engine, "logs", "--tail", str(LOG_LINES), agent.name]
        log = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
        print(f"--- end of the log of {agent.title} ---", file=sys.stderr)
        for line in log.decode("utf-8", "replace").splitlines()[-LOG_LINES:]:
            print("".join(one if one.isprintable() else " " for one in line)[:500], file=sys.stderr)

    def _follow_logs(self) -> None:
        """Shows what the agents print; the engine ends it when their containers are removed."""
        for agent in self._agents:
            command = [self._options.engine, "logs", "--follow", agent.name]
            self._followed.append(subprocess.Popen(command, stdout=sys.stderr))

    def _write_provenance(self) -> None:
        """What ran, as the platform's runner records it; the scenario file's digest stands for that of a manifest."""
        if (path := self._options.provenance) is None:
            return
        scenario = hashlib.sha256(self._options.scenario.read_bytes()).digest()
        document: dict[str, Any] = {
            "image_digests": {f"/{agent.role}": self._digest(agent) for agent in self._agents},
            "manifest_digests": {"/": f"sha256:{base64.b64encode(scenario).decode()}"},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if os.environ.get("GITHUB_ACTIONS") == "true":
            known = {name: os.environ.get(f"GITHUB_{name.upper()}", "") for name in ("ref", "sha", *WORKFLOW)}
            repository = f"{os.environ.get('GITHUB_SERVER_URL', '')}/{os.environ.get('GITHUB_REPOSITORY', '')}"
            run = f"{repository}/actions/runs/{os.environ.get('GITHUB_RUN_ID', '')}"
            document["github_actions"] = {"run_url": run, "repository_url": repository, **known}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")

    def _digest(self, agent: Container) -> str:
        """The image with its digest; the id of one that was built here and is in no registry."""
        command = [self._options.engine, "image", "inspect", agent.image]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        try:
            [image] = json.loads(output)
            return str((image.get("RepoDigests") or [image["Id"]])[0])
        except (ValueError, LookupError, TypeError, AttributeError):
            fail(f"{agent.title}: {self._options.engine} does not tell its digest, which --provenance needs")

    def _keep_submission(self) -> None:
        """The run writes to a folder of its user; from there the submission is copied to the requested place."""
        print(f"Results on this machine: {self._output}", file=sys.stderr)
        if self._options.output is not None and self._submission.is_file():
            self._options.output.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._submission, self._options.output)

    def _stop(self) -> None:
        names = [self._prefix + "-run", *(agent.name for agent in reversed(self._agents))]
        for name in names:
            subprocess.run([self._options.engine, "rm", "--force", name], capture_output=True, check=False)
        for following in self._followed:
            following.wait()
        with contextlib.suppress(OSError):
            self._submission.unlink()


def _bundled(agent: dict[str, Any], folder: str = FOLDER) -> tuple[str | None, list[str]]:
    """Name and arguments of a bundled participant, from its command; no name when it is none."""
    words = shlex.split(agent.get("cmd", "").replace("{scenario_dir}", folder))
    return (words[2], words[3:]) if words[:2] == ["wabe", "participant"] and len(words) > 2 else (None, [])


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file of `NAME=value` lines, as the engine reads it; none when there is no such file."""
    try:
        lines = path.read_text("utf-8-sig").splitlines() if path.is_file() else []
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value for name, separator, value in pairs if separator}


if __name__ == "__main__":
    sys.exit(main())

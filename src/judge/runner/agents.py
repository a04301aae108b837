"""Reads `--agent`: who plays a scenario in the place of its own participants, in one of seven forms."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, TypeAdapter

from judge.config import RunConfig
from judge.runner.person import for_a_person, note_for
from judge.scenario.models import EXAMPLES, LOGS, PORT, Endpoint, ParticipantEntry, Scenario
from judge.scenario.toml import read_scenario_bytes
from shared.errors import ConfigError
from shared.fields import OneLine, at_most, closest, did_you_mean, printable
from shared.files import decode, read_errors, read_text
from shared.participants import HUMAN, list_participants
from shared.toml_text import parse_toml
from shared.validation import validated

SEVEN_FORMS = (
    "an address (http://…), image:NAME, a folder (wabe new-agent makes one), a .toml file of agents,"
    " a bundled participant (wabe participant --list), mcp:COMMAND or mcp:PRESET (a program that speaks MCP), or a"
    " command with {port}"
)
_IMAGE = "image:"
_MCP = "mcp:"
_AGENT_FILE = "scenario.toml"
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
# An image's reference: registry, path, tag and digest. It cannot be read as an option.
_IMAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}")
# A port that a declaration has in the place of the one chosen at the start.
_DECLARED = "http://127.0.0.1:9019"
_PORT_IN_IMAGE = 9009
_FOLDER_OF_FILE = "{scenario_dir}"
_TOML = ".toml"
_SCRIPT = "--script"
# Passed on if it is set: `--participant-model`.
_MODEL = "WABE_PARTICIPANT_MODEL"


@dataclass(frozen=True)
class AgentAddress:
    """An agent that somebody else runs: it gets no variables, no secrets and no meter."""

    url: str


@dataclass(frozen=True)
class AgentImage:
    """An image that follows the participant guide."""

    name: str


@dataclass(frozen=True)
class AgentFolder:
    """A folder made by `wabe new-agent`: the participants of its scenario file are agents."""

    path: Path


@dataclass(frozen=True)
class AgentsFile:
    """A TOML file with `[[participants]]`, as in a scenario; `only` is the one of them that is meant."""

    path: Path
    only: str | None = None


@dataclass(frozen=True)
class BundledAgent:
    """A participant that `wabe participant` serves."""

    name: str


@dataclass(frozen=True)
class AgentCommand:
    """A command that serves an agent; `{port}` stands for its port."""

    text: str


@dataclass(frozen=True)
class AgentOverMcp:
    """A program that finds the task's tools on an MCP server: a preset, or a command."""

    text: str


Agent = AgentAddress | AgentImage | AgentFolder | AgentsFile | BundledAgent | AgentCommand | AgentOverMcp


class _AgentsFile(BaseModel):
    """What is read of a file of agents. It may be a scenario, whose other tables are left alone."""

    participants: Annotated[tuple[ParticipantEntry, ...], Field(min_length=1), at_most(100)]


_FILE, _ENDPOINT, _LINE = TypeAdapter(_AgentsFile), TypeAdapter[str](Endpoint), TypeAdapter[str](OneLine)


def read_agent(text: str) -> Agent:
    """The agent that `--agent TEXT` names, in the first form that fits. Raises `ConfigError` if none does."""
    # As the `cmd` of a scenario.
    validated(_LINE, text, "--agent")
    if _ADDRESS.match(text):
        return AgentAddress(validated(_ENDPOINT, text, "--agent"))
    if text.startswith(_IMAGE):
        name = text.removeprefix(_IMAGE)
        _require(_IMAGE_NAME.fullmatch(name), text, "does not name an image", "write it like image:ghcr.io/me/agent:1")
        return AgentImage(name)
    if text.startswith(_MCP):
        command = text.removeprefix(_MCP)
        _require(any(_words(command)[:1]), text, "names no program", "write it like mcp:claude")
        return AgentOverMcp(command)
    if text and _exists(text, Path.is_dir):
        return AgentFolder(Path(text))
    file, mark, only = text.rpartition(f"{_TOML}:")
    file = f"{file}{_TOML}" if mark else text
    if file.endswith(_TOML):
        _require(_exists(file, Path.is_file), file, "does not exist", "give the path of a file of agents")
        return AgentsFile(Path(file), only if mark else None)
    if text.replace("-", "_") in list_participants():
        return BundledAgent(text)
    if text and _exists(text, Path.is_file):
        return _folder_of(Path(text))
    if re.search(r"[\s/\\]", text):
        return _command(text)
    remedy = f"{closest(text, list_participants())}give {SEVEN_FORMS}"
    raise ConfigError(f"--agent {printable(text)} is not an agent", remedy=remedy)


def _exists(text: str, is_kind: Callable[[Path], bool]) -> bool:
    try:
        return is_kind(Path(text))
    except (OSError, ValueError):
        # Too long for a path, or with a null byte.
        return False


def _folder_of(program: Path) -> AgentFolder:
    """The folder of an agent's program, whose scenario file starts it."""
    with suppress(OSError, ValueError):
        if program.name in read_text(program.parent / _AGENT_FILE):
            return AgentFolder(program.parent)
    command = f"{'python ' if program.suffix == '.py' else ''}{shlex.quote(str(program))} --port {PORT}"
    raise ConfigError(
        f"--agent {printable(str(program))} is a file, and {_AGENT_FILE} beside it does not start it",
        remedy=f"give the folder that wabe new-agent made, or a command such as {shlex.quote(command)}",
    )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--agent {printable(text)}: {str(error).lower()}", remedy="close the quotes") from None


def _command(text: str) -> AgentCommand:
    is_usable = any(PORT in word for word in _words(text)[1:])
    _require(is_usable, text, f"is neither a folder nor a file, and a command needs {PORT}", f"give {SEVEN_FORMS}")
    return AgentCommand(text)


def _require(is_good: object, text: str, problem: str, remedy: str) -> None:
    if not is_good:
        raise ConfigError(f"--agent {printable(text)} {problem}", remedy=remedy)


def line_ups(texts: Iterable[str], roles: Sequence[str]) -> list[tuple[str, ...]]:
    """Who plays, one after the other: each time an `--agent` for every role that one of `texts` is for.

    A file of several agents is an agent for each of them. Raises `ConfigError`.
    """
    by_role: dict[str, list[str]] = {}
    for text in texts:
        role, agent = _divided(text, roles)
        prefix = text.removesuffix(agent)
        by_role.setdefault(role, []).extend(f"{prefix}{each}" for each in _each(agent))
    return list(dict.fromkeys(product(*by_role.values())))


def _divided(text: str, roles: Sequence[str]) -> tuple[str, str]:
    """The role and the agent of `[ROLE=]AGENT`."""
    for role in roles:
        if text.startswith(f"{role}="):
            return role, text.removeprefix(f"{role}=")
    if len(roles) > 1:
        names = ", ".join(map(printable, roles))
        raise ConfigError(
            f"--agent {printable(text)} does not say for which role", remedy=f"write ROLE=AGENT; roles: {names}"
        )
    return roles[0], text


def _each(text: str) -> list[str]:
    agent = read_agent(text)
    if not isinstance(agent, AgentsFile | AgentFolder):
        return [text]
    entries = _entries(agent)
    file = text if isinstance(agent, AgentsFile) else str(agent.path / _AGENT_FILE)
    return [text] if len(entries) == 1 else [f"{file}:{entry.role}" for entry in entries]


def agents_of(texts: Iterable[str], roles: Sequence[str]) -> dict[str, Agent]:
    """The agents of one run by role, from its `--agent [ROLE=]AGENT`. Raises `ConfigError`."""
    agents = dict[str, Agent]()
    for text in texts:
        role, agent = _divided(text, roles)
        _require(role not in agents, text, f"is the second one for {printable(role)}", "give one agent for each role")
        agents[role] = read_agent(agent)
    return agents


def label_of(agent: Agent) -> str:
    """A short name of an agent, for tables and the names of files."""
    match agent:
        case AgentAddress(url):
            return urlsplit(url).netloc
        case AgentImage(name):
            return name.rpartition("/")[2]
        case AgentFolder(path):
            return path.resolve().name
        case AgentsFile(path, only):
            return only or (path.resolve().parent.name if path.name == _AGENT_FILE else path.stem)
        case BundledAgent(name):
            return name
        case AgentCommand(text) | AgentOverMcp(text):
            words = [Path(word).name for word in shlex.split(text)]
            return next((word for word in words if word.endswith((".py", ".js", ".mjs", ".ts"))), words[0])


def with_agents(scenario: Scenario, agents: Mapping[str, Agent], engine: str, *, sandbox: bool = False) -> Scenario:
    """The scenario with these agents, by role, in the place of its participants; those of other roles stay.

    Of a replaced participant, an agent gets the role, a bundled one its script, and a program over MCP what it is to
    remember: variables, credentials and id are another agent's. `engine` runs images; `sandbox` is for programs over
    MCP. A person gets settings to play with. Raises `ConfigError`.
    """
    if BundledAgent(HUMAN) in agents.values():
        scenario = scenario.model_copy(update={"config": for_a_person(scenario.config)})
    own = {each.role: each for each in scenario.participants}
    if sandbox and not any(isinstance(agent, AgentOverMcp) for agent in agents.values()):
        raise ConfigError("--sandbox is for programs over MCP", remedy="give one as --agent mcp:COMMAND")
    new = {role: _entry(agent, own[role], engine, scenario.config, sandbox=sandbox) for role, agent in agents.items()}
    return scenario.model_copy(
        update={"participants": tuple(new.get(each.role, each) for each in scenario.participants)}
    )


def is_container(agent: Agent) -> bool:
    """Whether the agent runs in a container, which reaches nothing that listens on this machine's loopback."""
    if isinstance(agent, AgentsFile | AgentFolder):
        return any(entry.image is not None and entry.cmd is None for entry in _entries(agent))
    return isinstance(agent, AgentImage)


def _entry(agent: Agent, own: ParticipantEntry, engine: str, config: RunConfig, *, sandbox: bool) -> ParticipantEntry:
    """The entry of an agent in the place of `own`."""
    role = own.role
    match agent:
        case AgentAddress(url):
            return ParticipantEntry(role=role, endpoint=url)
        case AgentImage(name):
            return _container(ParticipantEntry(role=role), name, engine)
        case BundledAgent(name):
            note = ["--note", note_for(config)] if name == HUMAN else []
            words = ["wabe", "participant", name, *_script_of(own), *note, "--host", "127.0.0.1", "--port", PORT]
            return ParticipantEntry(role=role, endpoint=_DECLARED, cmd=shlex.join(words))
        case AgentOverMcp(text):
            words = ["wabe", "participant", "mcp", "--command", text, "--logs", LOGS, "--host", "127.0.0.1"]
            words += ["--port", PORT, *(["--sandbox"] if sandbox else [])]
            return ParticipantEntry(role=role, endpoint=_DECLARED, cmd=shlex.join(words), fresh=own.fresh)
        case AgentCommand(text):
            return ParticipantEntry(role=role, endpoint=_DECLARED, cmd=text)
    entries = _entries(agent)
    if len(entries) > 1:
        names = ", ".join(printable(entry.role) for entry in entries)
        raise ConfigError(f"--agent {agent.path} has {len(entries)} agents", remedy=f"add :NAME; names: {names}")
    entry = entries[0].model_copy(update={"role": role})
    if entry.cmd is not None:
        folder = str(_file(agent).resolve().parent)
        words = [word.replace(_FOLDER_OF_FILE, folder) for word in shlex.split(entry.cmd)]
        return entry.model_copy(update={"cmd": shlex.join(words)})
    if entry.image is not None:
        return _container(entry, entry.image, engine)
    # Somebody else runs it. The credentials beside its address are those that its owner has given for it.
    return entry.model_copy(update={"env": {}})


def _script_of(own: ParticipantEntry) -> list[str]:
    """The script that the scenario gives a bundled participant of its own: another one plays by it as well."""
    words = shlex.split(own.cmd or "")
    if words[:2] != ["wabe", "participant"] or _SCRIPT not in words[:-1]:
        return []
    place = words.index(_SCRIPT)
    return words[place : place + 2]


def _container(entry: ParticipantEntry, image: str, engine: str) -> ParticipantEntry:
    """The entry of an image. It gets the variables that its `env` names, and no file of this machine."""
    publish = f"127.0.0.1:{PORT}:{_PORT_IN_IMAGE}"
    variables = [word for name in (_MODEL, *entry.env) for word in ("--env", name)]
    run = [engine, "run", "--rm", "--init", "--publish", publish, *variables, image]
    served = ["--host", "0.0.0.0", "--port", str(_PORT_IN_IMAGE), "--card-url", f"http://127.0.0.1:{PORT}/"]
    return entry.model_copy(update={"endpoint": _DECLARED, "cmd": shlex.join([*run, *served]), "image": None})


def _file(agent: AgentFolder | AgentsFile) -> Path:
    return agent.path / _AGENT_FILE if isinstance(agent, AgentFolder) else agent.path


def _entries(agent: AgentFolder | AgentsFile) -> tuple[ParticipantEntry, ...]:
    path = _file(agent)
    if isinstance(agent, AgentFolder) and not path.is_file():
        raise ConfigError(
            f"--agent {agent.path}: {_AGENT_FILE} is missing", remedy="wabe new-agent DIR makes a folder with one"
        )
    content = read_scenario_bytes(path, what="a TOML file of agents")
    with read_errors(path, "write TOML as UTF-8"):
        text = decode(content)
        tables = parse_toml(text)
    known = {key: tables[key] for key in _AgentsFile.model_fields if key in tables}
    entries = validated(_FILE, known, path, toml=text, examples=EXAMPLES).participants
    only = agent.only if isinstance(agent, AgentsFile) else None
    matching_entries = tuple(entry for entry in entries if only in (None, entry.role))
    if not matching_entries:
        names = [entry.role for entry in entries]
        raise ConfigError(f"{path}: no agent {printable(only)}", remedy=did_you_mean(only, names))
    for entry in matching_entries:
        if (entry.cmd, entry.image, entry.endpoint) == (None, None, None):
            remedy = "add endpoint (it is running), image, or cmd with endpoint"
            raise ConfigError(f"{path}: agent {printable(entry.role)} cannot be reached", remedy=remedy)
    return matching_entries

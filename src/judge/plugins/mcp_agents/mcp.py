"""Plays with a program that speaks MCP, such as a coding agent: `--command` is a preset or a command line.

For each attempt the command is started in a fresh folder. Its words may have `{mcp_url}` and `{mcp_token}` (Streamable
HTTP, the token as `Authorization: Bearer`), `{mcp_config}` (a file with `mcpServers`), `{instruction}`,
`{instruction_file}`, `{workdir}` and `{model}`. A call of one of the server's tools is the reply, its result the next
observation. `--sandbox`: the program reaches nothing but these tools and its model's meter, and reads no file of the
user's. `--fresh run`: the folder stays from attempt to attempt, and with it what the program remembers.
"""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from judge.plugins.mcp_agents.attempt import AgentAttempt, AgentSetup
from judge.plugins.mcp_agents.presets import Preset, preset_names, read_preset
from judge.plugins.mcp_agents.sandbox import require_loopback, require_sandbox
from participants.base import Decide, Observation, ParticipantOptions, Reply, per_attempt
from shared.a2a.extensions import ISOLATION, NETWORK_ONLY, NOT_ISOLATED, TOOLS_OFF
from shared.errors import ConfigError, ParticipantError


def create(options: ParticipantOptions) -> "McpAgents":
    """A participant that starts a program for each attempt. Raises `ConfigError`."""
    if not options.command:
        raise ConfigError(
            "the participant mcp has no --command",
            remedy=f"give a command with {{mcp_url}} or {{mcp_config}}, or a preset: {', '.join(preset_names())}",
        )
    preset = read_preset(options.command)
    ports = _ports(options, preset) if options.sandbox else None
    if options.logs is not None:
        options.logs.mkdir(parents=True, exist_ok=True)
    home = None
    if options.fresh == "run":
        home = tempfile.TemporaryDirectory(prefix="wabe-agent-", ignore_cleanup_errors=True)
    folder = Path(home.name) if home else None
    return McpAgents(AgentSetup(preset, options.settings, options.model, options.logs, ports, folder), home)


def _ports(options: ParticipantOptions, preset: Preset) -> tuple[int, ...]:
    """The ports of the model's meter, which a sandbox leads to. Raises `ConfigError` if it cannot be made."""
    require_sandbox()
    if preset.is_preset and not preset.endpoints:
        raise ConfigError(
            f"--sandbox: where {options.command} asks its model is not known, so it could not ask any",
            remedy="run it without --sandbox, or give its command",
        )
    given = options.settings.environ
    addresses = {name: given.get(name, "") for name in preset.endpoints if preset.is_preset or given.get(name)}
    require_loopback(addresses)
    return tuple({urlsplit(address).port or 80 for address in addresses.values()})


class Examined(NamedTuple):
    """Something that the program needs: whether it is there, and what to say of it."""

    is_there: bool
    subject: str
    text: str


def examine(options: ParticipantOptions) -> Iterator[Examined]:
    """What `create` and the program would need: a usable command, the program, its keys, a sandbox."""
    try:
        preset = read_preset(options.command or "")
    except ConfigError as error:
        yield Examined(False, "command", str(error))
        return
    program = preset.argv({})[0]
    path = shutil.which(program, path=options.settings.path)
    if path is None:
        yield Examined(False, "program", f"{program} is not on the PATH: install it")
    else:
        tried = f"tried with {preset.tried}" if preset.tried else "not tried with the program"
        version = f": {preset.program_version() or 'version unknown'}; the preset was {tried}" * preset.is_preset
        yield Examined(True, "program", f"{path}{version}")
    if preset.is_preset and preset.keys:
        found = [name for name in preset.keys if options.settings.environ.get(name)]
        text = f"{', '.join(found)} set" if found else f"none is set: export {' or '.join(preset.keys)}"
        yield Examined(bool(found), "keys", text)
    if options.sandbox:
        try:
            _ports(options, preset)
        except ConfigError as error:
            yield Examined(False, "sandbox", str(error))
        else:
            yield Examined(True, "sandbox", "this system can make one")


class McpAgents:
    """Attempts by programs over MCP, each with a separate process."""

    def __init__(self, setup: AgentSetup, home: "tempfile.TemporaryDirectory[str] | None" = None) -> None:
        self._setup = setup
        self._home = home
        preset = setup.preset
        open_to = TOOLS_OFF if preset.tools_off else NOT_ISOLATED
        isolation = open_to if setup.ports is None else NETWORK_ONLY
        self.extensions = {ISOLATION: {"isolation": isolation}}
        self.name = preset.name
        self.version = preset.program_version()
        self._attempts: dict[str, AgentAttempt] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._decide: Decide = per_attempt(self._begin)

    def _begin(self, first: Observation) -> Decide:
        name = re.sub(r"[^\w-]", "_", first.context_id)[:64]
        attempt = self._attempts[first.context_id] = AgentAttempt(self._setup, name)
        return attempt.reply

    async def __call__(self, observation: Observation) -> Reply:
        """The next call of a tool."""
        if self._home is not None and observation.step == 0:
            # The attempt before may still write into the folder.
            await asyncio.gather(*self._ending)
            if set(self._attempts) - {observation.context_id}:
                raise ParticipantError(
                    "another attempt is being played, and with --fresh run they share one folder: set max_parallel = 1"
                )
        return await self._decide(observation)

    async def on_end(self, context_id: str) -> None:
        """End the attempt's process, for which the judge does not wait."""
        if (attempt := self._attempts.pop(context_id, None)) is not None:
            task = asyncio.create_task(attempt.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End the attempts that have not ended, because this participant is stopped."""
        for context_id in tuple(self._attempts):
            await self.on_end(context_id)
        await asyncio.gather(*self._ending)
        if self._home is not None:
            self._home.cleanup()

"""The cast of a local run: starts a scenario's sites, participants and judge, and waits until each is up."""

import asyncio
import hashlib
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from pydantic import Field

from judge.runner.children import Child, adopt_orphans, end_orphans, require_free_port, start_child
from judge.scenario.models import Scenario
from shared.a2a.client import fetch_card
from shared.errors import ConfigError, WabeError
from shared.models import Record
from shared.settings import Settings

_READY_TIMEOUT_S = 60.0
_RUNNING_TIMEOUT_S = 10.0
_POLL_S = 0.1


class Member(Record):
    """One process or address of the cast. `is_agent` ones are up when their agent card can be read."""

    name: str
    endpoint: str
    cmd: str | None
    is_agent: bool
    env: dict[str, str] = Field(default_factory=dict, repr=False)


def members_of(scenario: Scenario, settings: Settings) -> tuple[Member, ...]:
    """Everyone in the order of starting: sites, participants, judge. Raises `ConfigError` for a missing endpoint
    and for an `env` that names an unset variable.
    """
    found = [Member(name=site.name, endpoint=site.endpoint, cmd=site.cmd, is_agent=False) for site in scenario.sites]
    for agent in (*scenario.participants, scenario.green_agent):
        if agent.endpoint is None:
            raise ConfigError(
                f"{scenario.path}: {agent.role} has no endpoint",
                remedy='add endpoint = "http://127.0.0.1:PORT" to run it here',
            )
        # Only what is started here gets an environment from here.
        env = agent.resolved_env(settings.environ, scenario.path) if agent.cmd is not None else {}
        found.append(Member(name=agent.role, endpoint=agent.endpoint, cmd=agent.cmd, is_agent=True, env=env))
    return tuple(found)


@asynccontextmanager
async def running_cast(
    members: tuple[Member, ...], *, scenario_dir: Path, environ: dict[str, str], logs: Path
) -> AsyncIterator[tuple[Child, ...]]:
    """Start every member with a `cmd`, wait until all are up, and on every way out end what was started."""
    for member in members:
        if member.cmd is not None:
            require_free_port(member.name, member.endpoint)
    adopt_orphans()
    children: list[Child] = []
    try:
        for member in members:
            if member.cmd is not None:
                cmd = member.cmd.replace("{scenario_dir}", str(scenario_dir))
                child_env = {**environ, **member.env}
                children.append(await start_child(member.name, cmd, env=child_env, log=log_path(logs, member.name)))
        started = {child.name: child for child in children}
        async with asyncio.TaskGroup() as group:
            for member in members:
                group.create_task(_wait_until_up(member, started.get(member.name)))
        yield tuple(children)
    except BaseExceptionGroup as group_error:
        # One missing member is enough to stop; its own sentence is what the user needs.
        known = [error for error in group_error.exceptions if isinstance(error, WabeError)]
        if known:
            raise known[0] from None
        raise
    finally:
        await asyncio.shield(_stop_all(children))


def log_path(logs: Path, name: str) -> Path:
    """A role or site may have any name; that of its file is short, stays in the folder, and is no other one's."""
    plain = re.sub(r"[^\w -]", "_", name)[:40]
    return logs / (f"{plain}.log" if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.log")


async def _stop_all(children: list[Child]) -> None:
    # The judge was started last and is asked first: it still talks to the others while it winds down.
    for child in reversed(children):
        await child.stop()
    end_orphans()


async def _wait_until_up(member: Member, child: Child | None) -> None:
    timeout_s = _READY_TIMEOUT_S if child else _RUNNING_TIMEOUT_S
    last = "no answer"
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                if child and child.returncode is not None:
                    raise _not_up(member, child, f"ended with exit code {child.returncode}")
                try:
                    await _ask(member)
                    return
                except (WabeError, httpx.HTTPError) as error:
                    last = str(error) or type(error).__name__
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise _not_up(member, child, f"is not up after {timeout_s:g} s: {last}") from None


async def _ask(member: Member) -> None:
    if member.is_agent:
        await fetch_card(member.endpoint, timeout_s=2.0)
        return
    async with httpx.AsyncClient(trust_env=False, timeout=2.0) as client:
        await client.get(member.endpoint)


def _not_up(member: Member, child: Child | None, what: str) -> ConfigError:
    kind = "agent" if member.is_agent else "site"
    if child is None:
        return ConfigError(
            f"{kind} {member.name} at {member.endpoint} {what}",
            remedy="start it, or give the scenario a cmd that does",
        )
    end = child.log_end()
    # Not by its path: the log goes with the run that did not start.
    tail = f"\n--- end of its log ---\n{end}" if end else "; its log is empty"
    return ConfigError(f"{kind} {member.name} at {member.endpoint} {what}{tail}")


def child_environ(settings: Settings, *, output_dir: Path, participant_model: str | None) -> dict[str, str]:
    """The environment for children: ours, with this interpreter's programs first and our choices added."""
    environ = dict(settings.environ)
    environ["PATH"] = f"{Path(sys.executable).parent}:{settings.path}"
    environ["PYTHONUNBUFFERED"] = "1"
    # The judge that we start works for this user: its scenario may name files and endpoints of this machine.
    environ["WABE_TRUST_CONFIG"] = "1"
    environ["WABE_OUTPUT_DIR"] = str(output_dir.resolve())
    if participant_model:
        environ["WABE_PARTICIPANT_MODEL"] = participant_model
    return environ

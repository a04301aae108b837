"""Who listens where on this machine: free ports for agents, and turns for runs that start the same site."""

import asyncio
import errno
import random
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TypeVar
from urllib.parse import urlsplit

from judge.scenario.models import PORT, AgentEntry, Scenario
from shared.errors import ConfigError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PORTS = range(16_000, 32_000)
_POLL_S = 0.2

A = TypeVar("A", bound=AgentEntry)


def on_free_ports(scenario: Scenario) -> Scenario:
    """The scenario with a free port for each agent started here, so that runs can share a machine.

    The port is only replaced if it occurs in the agent's `cmd`. Sites keep their ports, because tasks name them.
    """
    with ExitStack() as reservations:
        return scenario.model_copy(
            update={
                "green_agent": _moved(scenario.green_agent, reservations),
                "participants": tuple(_moved(agent, reservations) for agent in scenario.participants),
            }
        )


def free_port(reservations: ExitStack) -> int:
    """A free port below the ephemeral range, from which the system could take it before the agent binds it."""
    # Not seeded, because runs that start together must not draw the same ports.
    draw = random.SystemRandom()
    for port in draw.sample(_PORTS, 100):
        probe = reservations.enter_context(socket.socket())
        with suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ConfigError(f"no free port among {_PORTS.start} to {_PORTS.stop - 1}", remedy="end other programs")


def _moved(agent: A, reservations: ExitStack) -> A:
    parts = urlsplit(agent.endpoint or "")
    if agent.cmd is None or parts.hostname not in LOOPBACK:
        return agent
    # Kept bound until all agents have a port, so that no two get the same one.
    port = free_port(reservations)
    # The port as a whole word: 9009 is not part of 19009.
    port_pattern = re.escape(PORT) if PORT in agent.cmd else rf"(?<![\w.-]){parts.port}(?![\w.-])"
    cmd, replacements = re.subn(port_pattern, str(port), agent.cmd)
    if not replacements:
        return agent
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return agent.model_copy(update={"cmd": cmd, "endpoint": parts._replace(netloc=f"{host}:{port}").geturl()})


@asynccontextmanager
async def turn_at(sites: Iterable[tuple[str, str]], waits: Callable[[str], None]) -> AsyncIterator[None]:
    """While the body runs, no other run on this machine starts one of these sites (name and endpoint).

    A site's port is part of its tasks, so two runs cannot start the same site at once: the second one waits for its
    turn, and `waits` gets a line that says so.
    """
    places = {urlsplit(endpoint).port or 80: (name, endpoint) for name, endpoint in sites}
    with ExitStack() as reservations:
        # In order, so that no two runs wait for each other.
        for port, (name, endpoint) in sorted(places.items()):
            # The UDP port of the same number, which nobody needs: it is free again however this process ends, leaves
            # no file, and belongs to the same machine or container as the site's.
            turn = reservations.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            has_waited = False
            while not _takes(turn, port):
                if not has_waited:
                    waits(f"Waiting for site {name} at {endpoint}: another run has started it, and both need its port")
                has_waited = True
                await asyncio.sleep(_POLL_S)
        yield


def _takes(turn: socket.socket, port: int) -> bool:
    try:
        turn.bind(("127.0.0.1", port))
    except OSError as error:
        # Without the right to this port, the site cannot have it either, and says so.
        return error.errno != errno.EADDRINUSE
    return True

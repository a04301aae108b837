"""A scenario with a bundled participant in the place of its own."""

import shlex
from contextlib import ExitStack

from judge.runner.shards import free_port
from judge.scenario.models import ParticipantEntry, Scenario


def played_by(scenario: Scenario, player: str) -> Scenario:
    """The scenario with a bundled participant in the place of its own."""
    with ExitStack() as held:
        return scenario.model_copy(
            update={"participants": tuple(_replaced(agent, player, held) for agent in scenario.participants)}
        )


def _replaced(agent: ParticipantEntry, player: str, held: ExitStack) -> ParticipantEntry:
    port = free_port(held)
    words = ["wabe", "participant", player, "--host", "127.0.0.1", "--port", str(port)]
    return ParticipantEntry(role=agent.role, endpoint=f"http://127.0.0.1:{port}", cmd=shlex.join(words))

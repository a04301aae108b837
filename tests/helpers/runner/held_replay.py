"""The bundled replay participant, except that its attempts end only when a test lets them.

A run whose attempts cannot end is still going when a test kills a part of it, on any machine.
"""

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from helpers.episode.live_judge import served
from helpers.runner.commands import command, listening
from participants.base import Action, Observation, ParticipantOptions, Reply, build_participant
from participants.replay import create
from shared.a2a.serving import address_of, listen


class HeldReplay:
    """Holds back `finish` in the tasks that have `held` in their text; at first in all their attempts."""

    def __init__(self, script: str, held_text: str, portal: BlockingPortal) -> None:
        self._replay = create(ParticipantOptions(script=script))
        self._held_text = held_text
        self._portal = portal
        self._attempts_left = 0.0
        self._freed = asyncio.Condition()
        self._run = 0
        self.waiting = 0
        """How many attempts of the current run wait for their end."""

    def let_end(self, attempts: float) -> None:
        """From now on so many attempts may end. Those that wait belong to a run that was killed, and never do."""
        self._portal.call(self._let_end, attempts)

    async def _let_end(self, attempts: float) -> None:
        async with self._freed:
            self._attempts_left, self.waiting = attempts, 0
            self._run += 1
            self._freed.notify_all()

    async def decide(self, observation: Observation) -> Reply:
        reply = await self._replay(observation)
        if isinstance(reply, Action) and reply.tool == "finish" and self._held_text in str(observation.instruction):
            async with self._freed:
                run = self._run
                self.waiting += 1
                await self._freed.wait_for(lambda: self._attempts_left > 0 and self._run == run)
                self._attempts_left -= 1
                self.waiting -= 1
        return reply


@contextmanager
def held_replay(script: str, port: int, held_text: str) -> Iterator[HeldReplay]:
    """One that is served by a thread of this process while the body runs."""
    with start_blocking_portal() as portal:
        participant = HeldReplay(script, held_text, portal)
        address = address_of("127.0.0.1", port)
        app = build_participant(participant.decide, name="replay", card_url=address)
        with portal.wrap_async_context_manager(served(app, listen("127.0.0.1", port))):
            yield participant


@contextmanager
def started_apart(temp: Path, scenario: str, held_text: str = "") -> Iterator[tuple[str, HeldReplay]]:
    """Start the participant and the site of a scenario for several runs; gives its text without their commands."""
    (player,) = re.findall(r'^cmd = "wabe participant replay --script (\S+) .*--port (\d+)"\n', scenario, re.MULTILINE)
    (site,) = re.findall(r'^cmd = "(python .*)"\n', scenario, re.MULTILINE)
    port = int(site.rpartition("--port ")[2])
    text = re.sub(r'^cmd = "(wabe participant|python) .*"\n', "", scenario, flags=re.MULTILINE)
    with command(temp, *site.split()) as running, held_replay(player[0], int(player[1]), held_text) as participant:
        while not listening(port):
            assert running.process.poll() is None
            time.sleep(0.02)
        yield text, participant

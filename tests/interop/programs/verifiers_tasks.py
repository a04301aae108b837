"""verifiers' set of OpenEnv tasks with a model whose replies are given.

Reads one JSON object per line: `{"url": …, "reset": {…}, "replies": [text, …]}`; the last reply is repeated. Answers
each with a line: the recorded rewards, the number of turns, and the error that ended the episode.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from verifiers.v1.tasksets.openenv.taskset import OpenEnvConfig, OpenEnvEnv, OpenEnvTaskset


class Player:
    """The model's side of an episode."""

    def __init__(self, replies: list[str]) -> None:
        self.replies = replies
        self.turns = 0
        self.rewards: dict[str, float] = {}
        self.stopped: list[str] = []

    @contextlib.asynccontextmanager
    async def interaction(self, task: Any) -> AsyncIterator[Any]:
        """One episode."""
        trace = SimpleNamespace(record_reward=self.rewards.__setitem__, stop=self.stopped.append)
        yield SimpleNamespace(turn=self.turn, trace=trace)

    async def turn(self, prompt: str) -> Any:
        """The next reply."""
        json.loads(prompt)
        reply = self.replies[min(self.turns, len(self.replies) - 1)]
        self.turns += 1
        return SimpleNamespace(last_reply=reply, terminated=False)


async def play(fields: dict[str, Any]) -> dict[str, Any]:
    """One episode, as verifiers plays it."""
    [task] = OpenEnvTaskset(OpenEnvConfig(id="openenv", base_url=fields["url"], resets=[fields["reset"]])).load()
    player = Player(fields["replies"])
    error = None
    try:
        await OpenEnvEnv.run(OpenEnvEnv.__new__(OpenEnvEnv), task, SimpleNamespace(player=player))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return {"rewards": player.rewards, "turns": player.turns, "stopped": player.stopped, "error": error}


async def main() -> None:
    """Play what is asked until the input ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await play(json.loads(line))), flush=True)


asyncio.run(main())

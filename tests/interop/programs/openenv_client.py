"""OpenEnv's own clients, told over pipes what to do.

Reads one JSON object per line, with the name of a client: `{"name": "a", "do": "open", "url": …, "timeout_s": …}`, then
`{"name": "a", "do": "reset", …arguments}`, `{…, "do": "step", "action": {…}}`, `{…, "do": "state"}` or
`{…, "do": "close"}`. Answers each with a line: what the client returned, or `{"error": …}`.
"""

import asyncio
import json
import sys
from typing import Any

from openenv import GenericEnvClient


async def done(clients: dict[str, Any], name: str, do: str, **fields: Any) -> dict[str, Any]:
    """What the client returns."""
    if do == "open":
        clients[name] = GenericEnvClient(base_url=fields["url"], message_timeout_s=fields["timeout_s"])
        return {}
    client = clients[name]
    if do == "state":
        return {"state": await client.state()}
    if do == "close":
        await client.close()
        return {}
    result = await (client.reset(**fields) if do == "reset" else client.step(fields["action"]))
    return {"observation": result.observation, "reward": result.reward, "done": result.done}


async def main() -> None:
    """Do what is asked until the input ends."""
    clients: dict[str, Any] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            answer = await done(clients, **json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


asyncio.run(main())

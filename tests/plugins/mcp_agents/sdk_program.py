"""Calls tools over MCP with the official SDK for Python, in the newest revision that both sides speak.

The calls are JSON, an argument or a line of the input each; so are the texts that come back.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['WABE_MCP_TOKEN']}"}
    given = iter(sys.argv[1:] or sys.stdin)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(os.environ["WABE_MCP_URL"], http_client=http)) as client,
    ):
        while (line := await asyncio.to_thread(next, given, None)) is not None:
            result = await client.call_tool(**json.loads(line))
            print(json.dumps("".join(getattr(part, "text", f"[{part.type}]") for part in result.content)), flush=True)


asyncio.run(main())

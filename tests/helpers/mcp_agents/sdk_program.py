"""A program that plays over MCP with the official SDK for Python, in the newest revision that both sides speak."""

import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['WABE_MCP_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(os.environ["WABE_MCP_URL"], http_client=http)) as client,
    ):
        result = await client.call_tool("browser_click", {"target": "e1"})
        await client.call_tool("finish", {"answer": " ".join(part.type for part in result.content)})


asyncio.run(main())

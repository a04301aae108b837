"""A program that plays over MCP without an SDK: `python agent.py SCRIPT…`, each a Python statement.

The statements may use `call(tool, **arguments)`, `tools()`, `post(method, params)` and what they import.
"""

import json
import os
import sys
import urllib.request

VERSION = os.environ.get("PROTOCOL", "2025-06-18")


def post(method: str, params: dict[str, object], **headers: str) -> dict[str, object]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(
        os.environ["WABE_MCP_URL"],
        body,
        {
            "Authorization": f"Bearer {os.environ['WABE_MCP_TOKEN']}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            **headers,
        },
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    data = next((line[5:] for line in text.splitlines() if line.startswith("data:")), text)
    return dict(json.loads(data))


def tools() -> list[str]:
    return [tool["name"] for tool in post("tools/list", {})["result"]["tools"]]  # type: ignore[index]


def call(name: str, arguments: dict[str, object] | None = None, **more: object) -> str:
    result = post("tools/call", {"name": name, "arguments": {**(arguments or {}), **more}})["result"]
    mark = "ERROR " if result.get("isError") else ""  # type: ignore[attr-defined]
    return mark + "".join(block.get("text", f"[{block['type']}]") for block in result["content"])  # type: ignore[index]


if __name__ == "__main__":
    for statement in sys.argv[1:]:
        exec(statement)

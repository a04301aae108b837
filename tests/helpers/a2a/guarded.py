"""An agent in a thread of its own that asks its callers for a token, for commands that have a loop of their own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from helpers.a2a.agents import card_10, message_10
from helpers.browser.hostile_site import Handler, hostile_site

_SCENARIO = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
[[participants]]
role = "p"
endpoint = "{endpoint}"
headers = {{ Authorization = "Bearer ${{AGENT_TOKEN}}" }}
[[tasks]]
task_id = "t"
website = "https://example.org/"
task = "x"
"""


class GuardedAgent(NamedTuple):
    """Its address, and a scenario that has it as its participant, with the variable `AGENT_TOKEN`."""

    url: str
    scenario: Path


@contextmanager
def guarded_agent(folder: Path, token: str, reply: str = "") -> Iterator[GuardedAgent]:
    """Answers callers with the token; others get 401."""

    def answer(handler: Handler) -> None:
        if handler.headers["Authorization"] != f"Bearer {token}":
            handler.send(b"", 401)
            return
        body = json.loads(handler.body) if handler.body else None
        result = card_10() if body is None else {"jsonrpc": "2.0", "id": body["id"], "result": message_10(body, reply)}
        handler.send(json.dumps(result).encode(), Content_Type="application/json")

    with hostile_site({"/.well-known/agent-card.json": answer, "/": answer}) as site:
        path = folder / "guarded.toml"
        path.write_text(_SCENARIO.format(endpoint=site.url))
        yield GuardedAgent(site.url, path)

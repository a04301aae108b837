"""Plays bundled sets over MCP: `python scripted.py CLIENT…`, a program that calls tools as `sdk_program.py` does."""

import json
import subprocess
import sys

from participants.replay import Player, find_script, load_book
from shared.mcp_tools import OVER
from shared.models import Action
from shared.protocol import parse_observation
from shared.settings import Settings


def main(client: "subprocess.Popen[str]") -> None:
    assert client.stdin is not None
    assert client.stdout is not None
    player: Player | None = None
    action = Action(tool="current_page")
    while True:
        print(json.dumps({"name": action.tool, "arguments": action.params}), file=client.stdin, flush=True)
        text = json.loads(client.stdout.readline()).removeprefix("ERROR ").removesuffix("[image]")
        if text == OVER:
            return
        # Results leave out the tools, which a client knows.
        head, _, rest = f"\n{text}".partition("\nPage: ")
        page = parse_observation(f"{head}\nTools:\nReply format: \nPage: {rest}".lstrip("\n"))
        if player is None:
            book = load_book(sorted(Settings.from_environ().scenarios_folder.glob("*/replay.toml")))
            script = find_script(book, page.instruction or "", page.website)
            assert script is not None
            player = Player(script)
        reply = player.reply(page.page.snapshot, page.feedback)
        # What cannot be read over A2A is the call of an unknown tool here.
        action = reply if isinstance(reply, Action) else Action(tool="unreadable")


if __name__ == "__main__":
    main(subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

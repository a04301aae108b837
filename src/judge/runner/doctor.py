"""`wabe doctor`: what is missing to run here, and how to get it. Each check says one thing."""

import asyncio
import os
import shutil
import socket
from pathlib import Path
from typing import Literal

from judge.browser.chromium import find_browser
from judge.config import RunConfig
from judge.judges.factory import check_judge_model
from shared.a2a.client import fetch_card
from shared.errors import ConfigError, ParticipantUnreachable, WabeError
from shared.models import Record
from shared.settings import Settings
from shared.text import excerpt, one_line

_MIN_FREE_BYTES = 1_000_000_000
_PORTS = (9009, 9019)
_CARD_TIMEOUT_S = 5.0
_POLL_S = 0.2
# An agent that answers, but not with a card it can be called by, may still be starting; it does not take for ever.
_ANSWERING_S = 10.0


class Finding(Record):
    """The result of one check. `missing` stops a run, `note` may."""

    state: Literal["ok", "note", "missing"]
    subject: str
    text: str


def check_browser(settings: Settings) -> Finding:
    """Whether a browser is found, where, and whether its sandbox is on."""
    try:
        found = find_browser(None, settings)
    except ConfigError as error:
        return Finding(state="missing", subject="browser", text=str(error))
    sandbox = "sandbox on" if found.sandbox else f"sandbox off: {found.sandbox_reason}"
    return Finding(state="ok", subject="browser", text=f"{found.path} ({found.source}; {sandbox})")


def check_model(settings: Settings) -> Finding:
    """Whether the judge model in force has its key. The demo needs none."""
    model = settings.judge_model or RunConfig().judge_model
    try:
        check_judge_model(RunConfig().model_copy(update={"judge_model": model}), settings)
    except ConfigError as error:
        return Finding(state="note", subject="judge model", text=f"{error}; the demo needs none")
    return Finding(state="ok", subject="judge model", text=f"{model}: its key is set")


def check_ports() -> list[Finding]:
    """Whether the ports that the scenarios here use are free."""
    findings = []
    for port in _PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                findings.append(Finding(state="ok", subject=f"port {port}", text="free"))
            except OSError:
                text = "taken; stop what listens there or change the scenario's endpoint and cmd"
                findings.append(Finding(state="note", subject=f"port {port}", text=text))
    return findings


def check_disk(output_dir: Path) -> Finding:
    """Whether results can be written and there is room for them (about 2 MB a task)."""
    place = next(path for path in (output_dir, *output_dir.absolute().parents) if os.path.lexists(path))
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        text = f"{place} is not a folder that can be written to; choose another --output-dir"
        return Finding(state="missing", subject="disk", text=text)
    free = shutil.disk_usage(place).free
    text = f"{free / 1e9:.1f} GB free for {output_dir}"
    if free < _MIN_FREE_BYTES:
        return Finding(state="missing", subject="disk", text=f"{text}: too little; free some or choose --output-dir")
    return Finding(state="ok", subject="disk", text=text)


async def check_agent(url: str, wait_s: float) -> Finding:
    """Whether the agent at `url` serves a card it can be called by; asked again for up to `wait_s` seconds."""
    clock = asyncio.get_running_loop().time
    deadline, answered = clock() + wait_s, False
    while True:
        try:
            card = await fetch_card(url, timeout_s=_CARD_TIMEOUT_S)
        except WabeError as error:
            reason = str(error)
            if not answered and not isinstance(error, ParticipantUnreachable):
                answered, deadline = True, min(deadline, clock() + _ANSWERING_S)
        else:
            return Finding(state="ok", subject="agent", text=f"{url}: {excerpt(card.name)}, A2A {card.protocol}")
        if clock() >= deadline:
            return Finding(state="missing", subject="agent", text=f"{url}: {one_line(reason)}")
        await asyncio.sleep(_POLL_S)


def examine(settings: Settings, output_dir: Path) -> list[Finding]:
    """All checks in the order a user would mend them."""
    return [check_browser(settings), check_model(settings), *check_ports(), check_disk(output_dir)]

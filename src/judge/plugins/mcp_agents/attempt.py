"""One attempt: the judge's observations on one side, a program's calls of tools on the other, and its process."""

import asyncio
import contextlib
import json
import logging
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge.plugins.mcp_agents.presets import Preset, filled
from judge.plugins.mcp_agents.process import AgentProcess, KeptOutput, started, status_text
from judge.plugins.mcp_agents.usage import usage_in
from participants.base import Observation, Reply
from shared.a2a.serving import address_of, listen, require_bearer, serve_app
from shared.errors import ParticipantError
from shared.mcp_tools import TaskOver, TaskTools, TurnPage, mcp_app, spoken
from shared.models import Action
from shared.patience import patience
from shared.replies import ENDING_TOOLS, FINISH
from shared.settings import Settings
from shared.text import one_line

_CONNECT_S = 60.0
# A judge that does not announce the end of an attempt is not waited for longer after `finish`.
_AFTER_FINISH_S = 5.0
_HOST = "127.0.0.1"
_ERRORS, _NOTED_BYTES = 400, 300
# Beside others in one line.
_WORDS = 120
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AgentSetup:
    """What all attempts have in common. `ports` are those of the model's meter, for a sandbox; `None` without one.

    `home` is the working folder of all attempts; without it, each has an empty one.
    """

    preset: Preset
    settings: Settings
    model: str | None = None
    logs: Path | None = None
    ports: tuple[int, ...] | None = None
    home: Path | None = None


class AgentAttempt:
    """Plays one attempt. Its parts live in a separate asyncio task, until `end`."""

    def __init__(self, setup: AgentSetup, name: str) -> None:
        self._setup = setup
        self._name = name
        self._observations: asyncio.Queue[TurnPage] = asyncio.Queue()
        self._replies: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._is_over = asyncio.Event()
        self._has_connected = asyncio.Event()
        self._tools = TaskTools(self)
        self._refused = ""
        self._process: asyncio.Future[AgentProcess] = asyncio.get_running_loop().create_future()
        self._running: asyncio.Task[None] | None = None

    # --- the program's side: turns of `TaskTools` ---

    async def begin(self) -> TurnPage:
        """The first observation."""
        self._has_connected.set()
        return await self._next()

    async def act(self, reply: Mapping[str, Any]) -> TurnPage:
        """A call of a tool is the reply to the judge; its result is the next observation."""
        self._replies.put_nowait(reply)
        return await self._next(_AFTER_FINISH_S if reply["tool"] in ENDING_TOOLS else None)

    async def _next(self, within_s: float | None = None) -> TurnPage:
        shown = asyncio.ensure_future(self._observations.get())
        over = asyncio.ensure_future(self._is_over.wait())
        try:
            await asyncio.wait({shown, over}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            if not shown.done():
                raise TaskOver
            return shown.result()
        finally:
            shown.cancel()
            over.cancel()

    # --- the judge's side ---

    async def reply(self, observation: Observation) -> Reply:
        """The program's next call as an action. Raises `ParticipantError` if it ends otherwise than by success."""
        if self._running is None:
            self._running = asyncio.create_task(self._run(observation))
        page = observation.page
        self._observations.put_nowait(TurnPage(observation.message, page.screenshot, page.media_type))
        process = await self._process
        await self._wait_for_reply(process)
        if not self._replies.empty():
            call = self._replies.get_nowait()
            return Action(tool=str(call["tool"]), params=dict(call["params"]))
        if not process.ended.done():
            self._is_over.set()
            raise ParticipantError(
                f"the command did not connect to the MCP server within {_CONNECT_S:g} s{self._last_words(process)}"
            )
        status = process.ended.result()
        if self._tools.calls == 0:
            raise ParticipantError(
                f"the command never used a tool: it ended {status_text(status)}{self._last_words(process)}"
            )
        if status != 0:
            raise ParticipantError(f"the command ended {status_text(status)}: {process.output.end}")
        # It has nothing more to say: the checks decide.
        return Action(tool=FINISH, params={})

    async def _wait_for_reply(self, process: AgentProcess) -> None:
        """Wait for a call or the end of the process; for the first request, no longer than a minute."""
        call = asyncio.ensure_future(self._arrived())
        connected = asyncio.ensure_future(self._has_connected.wait())
        try:
            with contextlib.suppress(TimeoutError):
                async with patience(_CONNECT_S):
                    await asyncio.wait({call, process.ended, connected}, return_when=asyncio.FIRST_COMPLETED)
            if self._has_connected.is_set():
                await asyncio.wait({call, process.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            call.cancel()
            connected.cancel()

    async def _arrived(self) -> None:
        # Not taken here, so that none is lost when this is cancelled.
        while self._replies.empty():
            self._replies.put_nowait(await self._replies.get())

    def _last_words(self, process: AgentProcess) -> str:
        if not self._refused:
            return f": {process.output.end}"
        return f" (its last request was refused: {self._refused}; spoken is {spoken()}): {process.output.end[-_WORDS:]}"

    async def end(self) -> None:
        """The attempt is over. The process may end by itself for a moment; then it is killed."""
        self._is_over.set()
        if self._running is not None:
            await asyncio.wait({self._running})

    # --- the process and its server ---

    async def _run(self, first: Observation) -> None:
        try:
            async with self._playing(first) as process:
                self._process.set_result(process)
                over = asyncio.ensure_future(self._is_over.wait())
                await asyncio.wait({over, process.ended}, return_when=asyncio.FIRST_COMPLETED)
                if process.ended.done():
                    # The judge still asks, and is answered from what the process left.
                    await over
                over.cancel()
                await process.stop()
        except BaseException as error:
            if not self._process.done():
                self._process.set_exception(error)
                return
            raise

    @contextlib.asynccontextmanager
    async def _playing(self, first: Observation) -> AsyncIterator[AgentProcess]:
        setup, token = self._setup, SecretStr(secrets.token_urlsafe(24))
        path = f"/{secrets.token_urlsafe(24)}/mcp"
        sock = listen(_HOST, 0)
        port = sock.getsockname()[1]
        tools = self._tools
        app = self._noting_refusals(require_bearer(mcp_app(tools, host=_HOST, path=path), token, ()))
        with tempfile.TemporaryDirectory(prefix="wabe-agent-", ignore_cleanup_errors=True) as folder:
            workdir, private = setup.home or Path(folder) / "work", Path(folder) / "private"
            for each in (workdir, private):
                each.mkdir(mode=0o700, exist_ok=True)
            places = _places(first, workdir, f"{address_of(_HOST, port).rstrip('/')}{path}", token, setup)
            env = _environment(setup, workdir, places)
            for name, content in setup.preset.files.items():
                _write(workdir / name, filled(content, places))
            log = setup.logs / f"{self._name}.log" if setup.logs else None
            output = KeptOutput(log, (*setup.settings.secrets, token))
            ports = None if setup.ports is None else (port, *setup.ports)
            serving = asyncio.create_task(serve_app(app, sock, takes_signals=False))
            try:
                async with started(
                    setup.preset.argv(places), env, workdir, output, private=private, ports=ports
                ) as process:
                    yield process
            finally:
                usage = usage_in(output.text, setup.preset.usage)
                note = f"[{tools.calls} calls; the largest result had {tools.largest} characters; claimed: {usage}]"
                _log.info("%s: %s", self._name, note)
                output.close(note)
                await tools.aclose()
                serving.cancel()
                await asyncio.wait({serving})

    def _noting_refusals(self, app: ASGIApp) -> ASGIApp:
        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            status, said = 0, b""

            async def heard() -> Message:
                nonlocal said
                message = await receive()
                said = (said + message.get("body", b""))[:_NOTED_BYTES]
                return message

            async def noted(message: Message) -> None:
                nonlocal status
                status = message.get("status", status)
                answer = message.get("body", b"")[:_NOTED_BYTES]
                is_refusal = status >= _ERRORS or b'"error":' in answer
                # Clients ask whether the server has a stream of its own, and play without one.
                if is_refusal and answer and (scope["method"] == "POST" or status == HTTPStatus.NOT_FOUND):
                    revision = dict(scope["headers"]).get(b"mcp-protocol-version", b"none named")
                    words = (scope["method"], revision, said, status, answer)
                    self._refused = "{}, revision {}, {}: HTTP {} {}".format(*map(_noted, words))
                await send(message)

            await app(scope, heard, noted)

        return noting


def _noted(value: object) -> str:
    return one_line(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value), _WORDS)


def _places(first: Observation, workdir: Path, url: str, token: SecretStr, setup: AgentSetup) -> dict[str, str]:
    """What stands for each placeholder. The files that are named exist."""
    website = f"\n\nWebsite: {first.website}" if first.website else ""
    instruction = (
        f"{first.instruction}{website}\n\nUse the tools of the MCP server wabe, which is a browser that shows the page:"
        " begin with current_page, and end with finish."
    )
    header = {"Authorization": f"Bearer {token.get_secret_value()}"}
    config = {"mcpServers": {"wabe": {"type": "http", "url": url, "headers": header}}}
    _write(workdir / "mcp.json", json.dumps(config))
    _write(workdir / "instruction.txt", instruction)
    return {
        "mcp_url": url,
        "mcp_token": token.get_secret_value(),
        "mcp_config": str(workdir / "mcp.json"),
        "instruction": instruction,
        "instruction_file": str(workdir / "instruction.txt"),
        "workdir": str(workdir),
        "model": setup.model or "",
        **{name: setup.settings.environ.get(name, "") for name in setup.preset.endpoints},
    }


def _environment(setup: AgentSetup, workdir: Path, places: Mapping[str, str]) -> dict[str, str]:
    """The process's variables: a preset's and a sandboxed command's are those that are declared."""
    preset, own = setup.preset, setup.settings.environ
    if preset.is_preset or setup.ports is not None:
        kept = ("PATH", "LANG", "LC_ALL", "TERM", *preset.keys, *preset.endpoints)
        env = {name: own[name] for name in kept if name in own} | {"HOME": str(workdir), "TMPDIR": "/tmp"}
    else:
        env = dict(own)
    env |= {name: filled(value, places) for name, value in preset.env.items()}
    return env | {"WABE_MCP_TOKEN": places["mcp_token"], "WABE_MCP_URL": places["mcp_url"]}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")

"""Sessions that play no browser: what they answer is scripted."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from websockets.asyncio.client import ClientConnection, connect

from judge.environment.errors import CapacityReached, EpisodeFault, NotReset
from judge.environment.host import TaskOffer
from judge.environment.session import SessionState, StepResult
from judge.plugins.openenv.app import EnvironmentDescription, Sessions, build_app
from judge.plugins.openenv.conversation import View
from judge.plugins.openenv.frames import MAX_FRAME_BYTES
from judge.plugins.openenv.offers import Offers
from shared.a2a.serving import listen, serve_app
from shared.models import ObservationMessage, Page, ToolSpec
from shared.protocol import render_observation

TASKS = tuple(TaskOffer(task_id=name, instruction=f"Do {name}.") for name in ("first", "second", "third"))
CLICK = ToolSpec(name="browser_click", description="Click.", parameters={"type": "object", "properties": {}})
JPEG = b"\xff\xd8\xff\xe0picture"
Script = StepResult | Exception


def a_message(**changes: Any) -> ObservationMessage:
    page = Page(url="http://shop.invalid/", title="Shop", snapshot="- button [ref=e1]", screenshot=JPEG)
    return ObservationMessage(page=page, tools=(CLICK,), **changes)


def a_page(**changes: Any) -> StepResult:
    message = a_message(**changes)
    return StepResult(message, render_observation(message), JPEG, "image/jpeg", None, False)


def an_end(reward: float | None) -> StepResult:
    return StepResult(None, "", None, "", reward, True)


@dataclass
class FakeSession:
    """Answers what `host.script` says for each step; the last answer is repeated."""

    host: "FakeSessions"
    calls: list[tuple[str, Any]] = field(default_factory=list)
    closed: int = 0
    steps: int = 0
    task_id: str | None = None
    is_open: bool = False

    async def reset(
        self, task_id: str | None = None, *, seed: int | None = None, episode_id: str | None = None
    ) -> StepResult:
        self.calls.append(("reset", (task_id, seed, episode_id)))
        self.task_id, self.steps, self.is_open = task_id, 0, True
        return a_page(instruction="Do it.")

    async def step(self, reply: str | Mapping[str, Any]) -> StepResult:
        self.calls.append(("step", reply))
        if not self.is_open:
            raise NotReset("call reset first")
        answer = self.host.script[min(self.steps, len(self.host.script) - 1)]
        self.steps += 1
        await self.host.may_answer.wait()
        if isinstance(answer, Exception):
            self.is_open = False
            raise answer
        self.is_open = not answer.done
        return answer

    def state(self) -> SessionState:
        return SessionState(episode_id="e", task_id=self.task_id, step_count=self.steps)

    async def close(self) -> None:
        if not self.closed:
            self.host.active -= 1
        self.closed += 1


class FakeSessions:
    """At most `maximum` sessions."""

    def __init__(self, script: Sequence[Script] = (), maximum: int = 2) -> None:
        self.script = [*script] or [a_page()]
        self.maximum, self.active = maximum, 0
        self.opened: list[FakeSession] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    @property
    def health(self) -> Literal["healthy", "degraded", "unhealthy"]:
        return "healthy"

    async def open(self) -> FakeSession:
        if self.active == self.maximum:
            raise CapacityReached(self.active, self.maximum)
        self.active += 1
        self.opened.append(FakeSession(self))
        return self.opened[-1]


@contextlib.asynccontextmanager
async def serving(
    sessions: Sessions, view: View | None = None, tasks: Sequence[TaskOffer] = TASKS, **options: Any
) -> AsyncIterator[str]:
    """The server on loopback; gives its `host:port`."""
    app = build_app(
        sessions,
        Offers("shop", tasks),
        EnvironmentDescription("shop", "A shop.", "1.0"),
        view=view or View(),
        **{"idle_s": 30.0, **options},
    )
    sock = listen("127.0.0.1", 0)
    task = asyncio.create_task(serve_app(app, sock, max_frame_bytes=MAX_FRAME_BYTES))
    try:
        yield f"127.0.0.1:{sock.getsockname()[1]}"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def dial(place: str, **options: Any) -> connect:
    return connect(f"ws://{place}/ws", proxy=None, max_size=None, **options)


async def ask(client: ClientConnection, kind: str, data: Any = None) -> tuple[str, dict[str, Any]]:
    """The kind and the data of the answer to a question."""
    await client.send(json.dumps({"type": kind} | ({} if data is None else {"data": data})))
    return await answered(client)


async def answered(client: ClientConnection) -> tuple[str, dict[str, Any]]:
    frame = json.loads(await client.recv())
    assert frame.keys() == {"type", "data"}
    return frame["type"], frame["data"]


def fault(ending: Literal["aborted", "unscored", "blocked", "lost"], blame: str, why: str) -> EpisodeFault:
    return EpisodeFault(ending, blame, why)

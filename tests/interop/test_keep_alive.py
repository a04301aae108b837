"""A client that gives up on silence survives long work, because the judge never stays silent for that long.

Here everything is 150 times shorter than in the field: clients that read with a timeout of 2 s instead of 300 s.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Iterator

import pytest

from helpers.a2a.agents import our_agent
from helpers.interop.programs import EventRecords, calling
from shared.a2a.server import build_app
from shared.a2a.serving import address_of, listen, serve_app
from shared.a2a.tasks import AgentMessage, TaskSink

pytestmark = pytest.mark.usefixtures("environments")
FIELD_READ_TIMEOUT_S = 300.0
READ_TIMEOUT_S = 2.0
# Far apart from the timeout, so that no pause of a busy machine is taken for silence.
WORDS_OF_LIFE_S = READ_TIMEOUT_S / 40
# Together longer than the clients would wait in silence.
WORDS_OF_LIFE = 45


class SilentWork:
    """Sends nothing until the test ends it."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def execute(self, turn: AgentMessage, sink: TaskSink) -> None:
        del turn
        await self.over.wait()
        await sink.artifact("results", ["Done.", "{}"])
        await sink.complete("Done.")


@contextlib.asynccontextmanager
async def working(work: SilentWork, still_working_s: float) -> AsyncIterator[str]:
    """An agent that does this work, at the address that its card names."""
    sock = listen("127.0.0.1", 0)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    app = our_agent(work, card_url=url, still_working_s=still_working_s)
    serving = asyncio.create_task(serve_app(app, sock, before_shutdown=app.state.stop))
    try:
        yield url
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def next_event(events: Iterator[EventRecords]) -> EventRecords | None:
    return await asyncio.to_thread(next, events, None)


async def follow(events: Iterator[EventRecords], work: SilentWork) -> list[EventRecords]:
    """What a client sees of work that ends after many keep-alive messages."""
    event_records: list[EventRecords] = []
    while (event := await next_event(events)) is not None:
        event_records.append(event)
        if sum(event.get("said") == ["Still working."] for event in event_records) == WORDS_OF_LIFE:
            work.over.set()
    return event_records


async def seen_by(client: str, still_working_s: float) -> list[EventRecords]:
    work = SilentWork()
    async with working(work, still_working_s) as url:
        with calling(client, url, "stream", text="go", read_timeout_s=READ_TIMEOUT_S) as called:
            return await follow(called, work)


async def test_clients_survive_work_that_takes_longer_than_they_would_wait() -> None:
    clients = ("v03 JSON-RPC", "v1 HTTP+JSON")
    event_records = await asyncio.gather(*(seen_by(client, WORDS_OF_LIFE_S) for client in clients))
    for client, events in zip(clients, event_records, strict=True):
        assert (events[-1].get("state"), events[-1].get("artifacts")) == ("completed", [["Done.", "{}"]]), client


async def test_without_words_of_life_the_same_client_gives_up() -> None:
    *_, last = await seen_by("v03 JSON-RPC", FIELD_READ_TIMEOUT_S)
    assert "imeout" in last["error"]


def test_in_the_field_a_word_of_life_comes_ten_times_as_often_as_needed() -> None:
    default = inspect.signature(build_app).parameters["still_working_s"].default
    assert default * 10 <= FIELD_READ_TIMEOUT_S

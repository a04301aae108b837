"""A judge's process: it plays the sessions of a server that has started it, until that closes its standard input.

    python -m judge.plugins.openenv.worker

It reads its order from standard input, and writes what it offers as one line to standard output.
"""

import asyncio
import contextlib
import logging
import shutil
import sys

from judge.browser.folders import sweep
from judge.environment.errors import EpisodeFault, SessionMisused
from judge.environment.host import EnvironmentHost
from judge.environment.opening import open_host
from judge.environment.session import EnvironmentSession, StepResult
from judge.plugins.openenv.calls import (
    CALL,
    Answer,
    Fault,
    ResetCall,
    Seen,
    SessionCall,
    Unusable,
    WorkerOrder,
    WorkerReady,
    receive,
    send,
)
from judge.runner.boundary import EXIT_DONE, EXIT_USAGE, Interrupted, run_interruptible
from shared.a2a.connections import raise_descriptor_limit
from shared.errors import ConfigError
from shared.logs import configure_logging
from shared.models import Record
from shared.settings import Settings

_log = logging.getLogger(__name__)


async def serve(order: WorkerOrder, settings: Settings) -> int:
    """Play sessions until standard input ends. Returns the exit code."""
    try:
        async with open_host(order.scenario, order.host, settings, closed=order.closed) as host:

            async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await play_session(host, reader, writer)

            server = await asyncio.start_unix_server(session, order.socket)
            _say(WorkerReady(name=host.name, version=host.version, description=host.description, tasks=host.tasks))
            await _end_of_input()
            server.close()
    except ConfigError as error:
        _say(Unusable.of(error))
        return EXIT_USAGE
    return EXIT_DONE


async def play_session(host: EnvironmentHost, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Play a session for as long as its connection is open."""
    session = host.session()
    try:
        while (data := await receive(reader)) is not None:
            answering = asyncio.create_task(_answer(session, CALL.validate_json(data)))
            # No call comes before the last answer: this tells when the server has given the session up.
            gone = asyncio.create_task(reader.read(1))
            await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            is_gone = gone.done()
            remaining_task = answering if is_gone else gone
            remaining_task.cancel()
            await asyncio.wait({remaining_task})
            if is_gone:
                break
            await send(writer, answering.result())
    # The server was killed.
    except ConnectionError:
        pass
    finally:
        await asyncio.shield(session.close())
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()


async def _answer(session: EnvironmentSession, call: SessionCall) -> Answer:
    answer: Seen | Fault
    try:
        answer = Seen.of(await _called(session, call))
    except EpisodeFault as error:
        answer = Fault(kind="fault", ending=error.ending, blame=error.party, why=error.why)
    except SessionMisused as error:
        answer = Fault(kind="not_reset", why=str(error))
    except ConfigError as error:
        answer = Fault(kind="refused", why=str(error))
    # Isolation boundary: an internal error fails only this episode. Its text may quote the task's checks.
    except Exception as error:  # noqa: BLE001
        _log.exception("a session failed")
        answer = Fault(kind="failed", why=f"{type(error).__name__}; see the server's log")
    return Answer(found=answer, state=session.state())


async def _called(session: EnvironmentSession, call: SessionCall) -> StepResult:
    if isinstance(call, ResetCall):
        return await session.reset(call.task_id, seed=call.seed, episode_id=call.episode_id)
    return await session.step(call.reply)


def _say(line: Record) -> None:
    print(line.model_dump_json(), flush=True)  # noqa: T201


async def _end_of_input() -> None:
    """Wait until the server closes this process's standard input, or ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def main() -> int:
    """Run the process; returns its exit code."""
    settings = Settings.from_environ()
    order = WorkerOrder.model_validate_json(sys.stdin.readline())
    configure_logging(verbose=order.verbose, secrets=settings.secrets, form=order.log_format)
    # What this process's predecessor left, if it was killed: first its browsers, which write more.
    sweep()
    for leftover in order.scratch.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
    raise_descriptor_limit()
    try:
        return run_interruptible(serve(order, settings), says=False)
    except Interrupted:
        return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main())

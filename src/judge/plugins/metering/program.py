"""The meter's process: `python -m judge.plugins.metering.program`, started by `wabe run --meter`."""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn

from judge.plugins.metering.ledger import Ledger
from judge.plugins.metering.proxy import Meter, MeterSettings
from shared.a2a.serving import listen
from shared.errors import ConfigError
from shared.settings import Settings

VARIABLE = "WABE_METER"
# Longer than SDKs keep an idle connection, so that they close it and not the meter.
_KEEP_ALIVE_S = 120
_GRACE_S = 2


async def serve(settings: MeterSettings, sock: socket.socket) -> str | None:
    """Serve until a signal. Returns why it ended, if it could not go on."""
    ledger = Ledger(Path(settings.ledger))
    problems: list[str] = []

    def on_lost(error: OSError) -> None:
        problems.append(f"cannot write {settings.ledger}: {error.strerror or error}")
        server.should_exit = True

    meter = Meter(settings, ledger.write, on_lost)
    server = uvicorn.Server(
        uvicorn.Config(
            meter,
            interface="asgi3",
            log_config=None,
            # Otherwise each answer that breaks off leaves a traceback.
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            # The provider's own are passed on.
            server_header=False,
            date_header=False,
            ws="none",
            lifespan="off",
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )
    try:
        await server.serve(sockets=[sock])
    finally:
        await meter.aclose()
        ledger.close()
    return problems[0] if problems else None


def main(port: int) -> int:
    """Serve on this port of the loopback interface. Returns the exit code."""
    settings = MeterSettings.model_validate_json(Settings.from_environ().environ[VARIABLE])
    try:
        with listen("127.0.0.1", port) as sock:
            problem = asyncio.run(serve(settings, sock))
    except (OSError, ConfigError) as error:
        problem = str(error)
    if problem:
        print(problem, file=sys.stderr)  # noqa: T201
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

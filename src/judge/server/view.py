"""Serves a stored run at the live page's addresses, after the judge that played it has ended."""

import socket
from collections.abc import Callable

from starlette.applications import Starlette

from judge.server.live import LiveHub, live_routes
from judge.server.live_records import LiveRecords
from judge.store.layout import RunStore
from shared.a2a.serving import address_of, serve_app
from shared.errors import ConfigError


async def serve_run(
    store: RunStore, sock: socket.socket, on_ready: Callable[[str], None], *, takes_signals: bool = True
) -> None:
    """Serve the run, to this machine only, until cancelled or signalled; `on_ready` gets the address of its live page.

    Its report is made from its records. Raises `ConfigError` if the run is being played.
    """
    if store.is_being_judged:
        sock.close()
        raise ConfigError(f"run {store.run_id} is being played", remedy="open its judge's live page")
    hub = LiveHub(LiveRecords(store.output_dir))
    hub.show(store.run_id)
    app = Starlette(routes=live_routes(hub, store.output_dir))
    host, port = sock.getsockname()[:2]
    on_ready(address_of(host, port))
    await serve_app(app, sock, before_shutdown=hub.close, takes_signals=takes_signals)


def report_address(address: str, store: RunStore) -> str:
    """The address of the run's report on the server at `address`."""
    return f"{address}live/{store.run_id}/report/index.html"

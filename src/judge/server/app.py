"""Serves the judge: the A2A endpoint, the live page, traces."""

import logging
import sys
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from judge.browser.folders import sweep
from judge.browser.orphans import adopt_orphans
from judge.records.events import RESUME_TOKEN_KEY
from judge.server.limits import ServiceLimits
from judge.server.live import LiveHub, live_routes
from judge.server.live_records import Audience, LiveRecords
from judge.server.metrics import HEALTH_PATH, operating_routes
from judge.server.service import JudgeService
from judge.server.tracing import open_tracing
from shared.a2a.connections import descriptors_for_work, raise_descriptor_limit
from shared.a2a.page_links import PageLinks
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, run_server
from shared.errors import ConfigError
from shared.settings import Settings

_log = logging.getLogger(__name__)

# Enough for one browser with its MCP server, the server's sockets and the files of one run.
_MIN_DESCRIPTORS = 64
_AUDIENCES = MappingProxyType(
    {"machine": "browsers on this machine", "token": "holders of WABE_AUTH_TOKEN", "everyone": "everyone"}
)
_SKILL = Skill(
    id="assess-web-agent",
    name="Assess a web agent",
    description='Send {"participants": {role: url}, "config": {…}} as JSON text; the result is one artifact.',
    tags=("assessment", "web", "browser", "green agent"),
)


def serve_judge(
    settings: Settings,
    *,
    host: str,
    port: int,
    card_url: str | None,
    output_dir: Path,
    limits: ServiceLimits,
    ui: bool,
    public_live: bool,
) -> None:
    """Serve the judge until a signal; blocks. Raises `ConfigError` for a taken port or an unusable folder.

    The live page is available on this machine only, unless a token protects it or `public_live` opens it to everyone.
    """
    version = metadata.version("wabe")
    # Remove browsers and folders that a killed judge has left behind.
    sweep()
    # Browsers whose server was killed; `judge.browser.pool` reaps them.
    adopt_orphans()
    raise_descriptor_limit()
    descriptors = descriptors_for_work()
    if descriptors < _MIN_DESCRIPTORS:
        raise ConfigError("this process may not open enough files to run a browser", remedy="set `ulimit -n 1024`")
    tracing = open_tracing(settings.environ, version=version)
    audience: Audience = "token" if settings.auth_token else "everyone" if public_live else "machine"
    hub = LiveHub(LiveRecords(output_dir, audience, address_of(host, port)) if ui else None)
    service = JudgeService(
        settings,
        output_dir,
        limits=limits.model_copy(update={"descriptors": descriptors}),
        tracing=tracing,
        hub=hub,
        own_address=address_of(host, port),
    )
    links = PageLinks() if ui and settings.auth_token else None
    app = build_app(
        service,
        name="WABE judge",
        description="Assesses web agents: drives a real browser, records trajectories, judges what was achieved.",
        version=version,
        card_url=card_url or address_of(host, port),
        skills=[_SKILL],
        extra_routes=[
            *operating_routes(lambda: service.health, service.metrics, is_open=audience != "machine"),
            *(live_routes(hub, output_dir, is_open=audience != "machine") if ui else ()),
        ],
        auth_token=settings.auth_token,
        page_links=links,
        public_paths=(HEALTH_PATH,),
        task_db=output_dir / "tasks.sqlite",
        note_on_stop=service.note_on_stop,
        secret_metadata=(RESUME_TOKEN_KEY,),
        serving=service.serving,
    )

    _log.info("judge %s starts at %s, with its runs in %s", version, address_of(host, port), output_dir)
    _log.info("live page: %s", f"{address_of(host, port)}, for {_AUDIENCES[audience]}" if ui else "off (--no-ui)")
    if links and sys.stderr.isatty():
        # Not into a log, which others may read.
        print(f"opens it once, without the token: {address_of(host, port)[:-1]}{links.new()}", file=sys.stderr)  # noqa: T201

    async def stop() -> None:
        service.drain()
        try:
            # First the clients, so that each learns how its run continues; then what goes on without a client.
            await app.state.stop()
            await service.stop()
        finally:
            # After the runs, so that viewers see how they ended. Open event streams would delay the shutdown.
            await hub.close()

    try:
        run_server(app, host, port, before_shutdown=stop)
    finally:
        tracing.close()
        _log.info("judge stopped")

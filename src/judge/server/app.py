"""Puts the judge on a port: the A2A endpoint, the live page, traces. A composition root."""

from importlib import metadata
from pathlib import Path

from judge.browser.chromium import sweep
from judge.events import Event, Sink
from judge.server.limits import ServiceLimits
from judge.server.live import LiveHub
from judge.server.live_routes import live_routes
from judge.server.service import JudgeService, ServiceParts
from judge.server.tracing import open_tracing
from shared.a2a.connections import descriptors_for_work, raise_descriptor_limit
from shared.a2a.server import Skill, build_app
from shared.a2a.serving import address_of, run_server
from shared.errors import ConfigError
from shared.settings import Settings

_FEWEST_DESCRIPTORS = 64
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
    ui: bool = True,
    public_live: bool = False,
) -> None:
    """Serve the judge until a signal; blocks. Raises `ConfigError` for a taken port or an unusable folder.

    The live page answers this machine only, unless a token guards it or `public_live` opens it to everyone.
    """
    version = metadata.version("wabe")
    sweep()
    tracing = open_tracing(settings, version=version)
    hub = LiveHub() if ui else None
    service = JudgeService(
        ServiceParts(
            settings=settings,
            output_dir=output_dir,
            scenarios=settings.scenarios_folder,
            watch=lambda run_id, role: _both(tracing.watch(run_id, role), hub.watch(run_id) if hub else None),
            wrap_model=tracing.model,
            limits=limits.model_copy(update={"descriptors": _descriptors()}),
            own_address=address_of(host, port),
        )
    )
    app = build_app(
        service,
        name="WABE judge",
        description="Assesses web agents: drives a real browser, records trajectories, judges what was achieved.",
        version=version,
        card_url=card_url or address_of(host, port),
        skills=[_SKILL],
        extra_routes=live_routes(hub, output_dir, is_open=public_live or bool(settings.auth_token)) if hub else (),
        auth_token=settings.auth_token,
        task_db=output_dir / "tasks.sqlite",
    )

    async def stop() -> None:
        # Viewers first: an open event stream would hold the server's end up.
        if hub:
            await hub.close()
        await app.state.stop()

    try:
        run_server(app, host, port, before_shutdown=stop)
    finally:
        tracing.close()


def _both(first: Sink, second: Sink | None) -> Sink:
    def take(event: Event) -> None:
        first(event)
        if second:
            second(event)

    return take


def _descriptors() -> int:
    """How many descriptors assessments may use."""
    raise_descriptor_limit()
    descriptors = descriptors_for_work()
    if descriptors < _FEWEST_DESCRIPTORS:
        raise ConfigError("this process may not open enough files to run a browser", remedy="set `ulimit -n 1024`")
    return descriptors

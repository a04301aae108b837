"""`wabe env`: a scenario's tasks as environments for training."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from judge.commands import Command, LogForm, Verbose, Where, plain_app
from judge.commands.run import scenario_file
from judge.environment.host import HostSettings
from judge.plugins.openenv.app import EnvironmentDescription, build_app
from judge.plugins.openenv.calls import WorkerOrder
from judge.plugins.openenv.conversation import View
from judge.plugins.openenv.frames import MAX_FRAME_BYTES
from judge.plugins.openenv.offers import Offers
from judge.plugins.openenv.workers import working
from judge.runner.boundary import EXIT_DONE, run_interruptible
from judge.runner.launch import child_environ, launched
from judge.runner.options import RunOptions
from judge.runner.plan import choose
from judge.scenario.days import day_of
from shared.a2a.connections import raise_descriptor_limit
from shared.a2a.serving import address_of, listen, serve_app
from shared.errors import ConfigError
from shared.hosts import is_loopback
from shared.logs import configure_logging
from shared.settings import Settings
from shared.text import counted

_MAX_SESSIONS = 64
_IDLE_MARGIN_S = 30.0

env = plain_app(help="Environments for training: tasks that a trainer plays step by step.", no_args_is_help=True)


@env.callback()
def _group() -> None:
    """Keeps `serve` a separate command, although it is the only one."""


@env.command()
def serve(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file or a bundled task set.")],
    host: Annotated[str, typer.Option(help="Address to listen on; one of other machines needs WABE_AUTH_TOKEN.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    sessions: Annotated[int, typer.Option(min=1, max=_MAX_SESSIONS, help="How many clients at once.")] = 1,
    processes: Annotated[int, typer.Option(min=1, max=_MAX_SESSIONS, help="How many processes play them.")] = 1,
    task: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this task; repeatable.")] = None,
    level: Annotated[Literal["easy", "medium", "hard"] | None, typer.Option(help="Only tasks of this level.")] = None,
    where: Where = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N tasks.")] = None,
    reward: Annotated[
        Literal["outcome", "progress"] | None, typer.Option(help="What the reward is; by default, as [config] says.")
    ] = None,
    observations: Annotated[
        Literal["text", "messages"], typer.Option(help="Pages as the text that participants get, or as its values.")
    ] = "text",
    screenshots: Annotated[bool, typer.Option("--screenshots", help="Send screenshots too.")] = False,
    idle: Annotated[
        float, typer.Option(min=1, help="Seconds without a question after which a client is left.")
    ] = 600.0,
    record: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the episodes in this folder.")] = None,
    verbose: Verbose = False,
    log_format: LogForm = "text",
) -> None:
    """Serve the tasks as environments over OpenEnv's wire. An unscored attempt is an error, never a reward."""
    settings = Settings.from_environ()
    configure_logging(verbose=verbose, secrets=settings.secrets, form=log_format)
    if settings.auth_token is None and not is_loopback(host):
        raise ConfigError(
            f"--host {host}: other machines could open sessions", remedy="set WABE_AUTH_TOKEN, or listen on 127.0.0.1"
        )
    if processes > sessions:
        raise ConfigError(f"{processes} processes for {counted(sessions, 'session')}", remedy="give fewer --processes")
    order = WorkerOrder(
        scenario=scenario_file(scenario, settings.bundled_scenarios),
        host=HostSettings(
            sessions=sessions,
            reward=reward,
            images=screenshots,
            # The socket is closed first, with the reason.
            idle_s=idle + _IDLE_MARGIN_S,
            record=record,
            task=tuple(task or ()),
            level=level,
            where=tuple(where or ()),
            limit=limit,
        ),
        folder=Path(),
        verbose=verbose,
        log_format=log_format,
    )
    view = View(as_message=observations == "messages", has_pictures=screenshots)
    raise_descriptor_limit()
    raise typer.Exit(run_interruptible(_serve(order, settings, host, port, processes, view, idle)))


async def _serve(
    order: WorkerOrder, settings: Settings, host: str, port: int, processes: int, view: View, idle_s: float
) -> int:
    sock = listen(host, port)
    address = address_of(host, sock.getsockname()[1])
    with contextlib.closing(sock):
        # Processes that pages' actions drive do not need the token.
        environ = {name: value for name, value in settings.environ.items() if name != "WABE_AUTH_TOKEN"}
        order = order.model_copy(update={"closed": (address,)})
        async with contextlib.AsyncExitStack() as stack:
            if processes > 1:
                environ |= await stack.enter_async_context(_sites(order, settings))
            workers, ready = await stack.enter_async_context(working(order, environ, processes))
            app = build_app(
                workers,
                Offers(ready.name, ready.tasks),
                EnvironmentDescription(ready.name, ready.description, ready.version),
                view=view,
                idle_s=idle_s,
                auth_token=settings.auth_token,
            )
            typer.echo(f"{ready.name}: {counted(len(ready.tasks), 'task')} at {address}", err=True)
            await serve_app(app, sock, takes_signals=False, max_frame_bytes=MAX_FRAME_BYTES)
    return EXIT_DONE


@contextlib.asynccontextmanager
async def _sites(order: WorkerOrder, settings: Settings) -> AsyncIterator[dict[str, str]]:
    """The scenario's sites, started once for all processes. Gives what these then have in their environment."""
    options = RunOptions(scenario=order.scenario, player="idle", **order.host.chosen)
    start, choice = choose(options, settings.model_copy(update={"trust_config": True, "agents_run": ()}))
    members = [member for member in choice.members if not member.is_agent]
    if several := [site.name for site in start.scenario.sites if site.instances is not None]:
        raise ConfigError(
            f"site {several[0]}: its instances belong to one process", remedy="leave --processes out, or 1"
        )
    folder = order.scenario.resolve().parent
    with tempfile.TemporaryDirectory(prefix="wabe-env-") as output:
        environ = child_environ(
            settings, output_dir=Path(output), participant_model=None, today=day_of(start.scenario.config)
        )
        async with launched(members, scenario_dir=folder, environ=environ, logs=Path(output)):
            yield {"WABE_SITES_RUN": "1"}


COMMAND = Command(
    env,
    (
        "wabe env serve demo",
        "wabe env serve miniwob --sessions 4 --port 8001",
        "wabe env serve my.toml --sessions 16 --processes 4 --screenshots",
        "wabe env serve demo --reward progress --record .output",
    ),
)

__all__ = ["COMMAND", "env", "serve"]

"""`wabe harbor`: what runs in the judge's service of an exported task."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import psutil
import typer

from judge.commands import AnyHost, Command, LogForm, OutputDir, Verbose, plain_app
from judge.commands.run import scenario_file
from judge.environment.host import HostSettings
from judge.environment.opening import open_host
from judge.plugins.harbor.episode import AgentEpisode
from judge.plugins.harbor.folders import PORT
from judge.plugins.harbor.server import build_app, giving_verdicts, read_verdict
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, run_interruptible
from judge.store.layout import output_folder
from shared.a2a.connections import raise_descriptor_limit
from shared.a2a.serving import address_of, listen, serve_app
from shared.errors import ConfigError
from shared.files import read_errors, sha256_file
from shared.hosts import is_loopback
from shared.logs import configure_logging
from shared.settings import Settings

# Harbor limits an agent's time. Before its first and after its last call, it may take long.
_IDLE_S = 7 * 86_400.0
# Less than what an exported task gives the command.
_VERDICT_S = 280.0
harbor = plain_app(help="The judge as a service of exported tasks: one task over MCP.", no_args_is_help=True)
Port = Annotated[int, typer.Option(min=1, max=65535, help="The port of the tools.")]


@harbor.command()
def serve(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or a bundled task set.", metavar="SCENARIO.toml")],
    task: Annotated[str, typer.Option(help="The task that is played.", metavar="ID")],
    host: AnyHost = "127.0.0.1",
    port: Port = PORT,
    images: Annotated[bool, typer.Option("--images", help="Send screenshots as well.")] = False,
    sha256: Annotated[str | None, typer.Option(help="Refuse a scenario file with another SHA-256.")] = None,
    output_dir: OutputDir = None,
    verbose: Verbose = False,
    log_format: LogForm = "text",
) -> None:
    """Serve the tools of one task over MCP, at /mcp. The episode begins with the first request of a client."""
    settings = Settings.from_environ()
    configure_logging(verbose=verbose, secrets=settings.secrets, form=log_format)
    path = scenario_file(scenario, settings.bundled_scenarios)
    if sha256 is not None:
        with read_errors(path):
            digest = sha256_file(path)
        if digest != sha256:
            raise ConfigError(
                f"{path} is not the scenario that was exported", remedy="use the image of that version, or export again"
            )
    if not (is_loopback(host) or settings.in_container or settings.auth_token):
        raise ConfigError(
            f"--host {host} would let other machines play the task", remedy="set WABE_AUTH_TOKEN, or leave it out"
        )
    offered = HostSettings(task=(task,), images=images, idle_s=_IDLE_S, record=output_folder(output_dir, settings))
    raise_descriptor_limit()
    raise typer.Exit(run_interruptible(_serve(path, task, offered, settings, host, port)))


async def _serve(path: Path, task: str, offered: HostSettings, settings: Settings, host: str, port: int) -> int:
    assert offered.record is not None
    sock = listen(host, port)
    try:
        async with open_host(path, offered, settings, closed=(address_of(host, port),)) as environment:
            if not is_loopback(host):
                await asyncio.to_thread(require_hidden_sites)
            episode = AgentEpisode(environment.session(), task)
            async with giving_verdicts(episode, _socket(offered.record, port)):
                app = build_app(episode, host=host, auth_token=settings.auth_token)
                typer.echo(f"MCP at {address_of(host, port)}mcp", err=True)
                async with aclosing(episode):
                    await serve_app(app, sock, takes_signals=False)
    finally:
        sock.close()
    return EXIT_DONE


@harbor.command()
def verdict(
    output: Annotated[Path, typer.Option(help="The folder for verdict.json and reward.json.", metavar="DIR")],
    port: Port = PORT,
    output_dir: OutputDir = None,
) -> None:
    """End the task served on this machine, and write its verdict. Writes a reward only if it was scored."""
    verdict_read = asyncio.run(read_verdict(_socket(output_folder(output_dir), port), within_s=_VERDICT_S))
    verdict_read.write(output)
    typer.echo(verdict_read.line)
    raise typer.Exit(EXIT_DONE if verdict_read.reward is not None else EXIT_LOST)


def _socket(output_dir: Path, port: int) -> Path:
    return output_dir / f"harbor-{port}.sock"


def require_hidden_sites() -> None:
    """Raises `ConfigError` if a process started here, such as a site, listens to other machines.

    An agent in another container could use it directly, without the browser that the judge watches.
    """
    for process in psutil.Process().children(recursive=True):
        try:
            listening = [each for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
            name = process.name()
        except psutil.Error:
            continue
        if address := next((each.laddr for each in listening if not is_loopback(each.laddr.ip)), None):
            raise ConfigError(
                f"{name} listens at {address.ip}:{address.port}, where the agent reaches it without the browser",
                remedy="let the site's cmd listen at 127.0.0.1",
            )


COMMAND = Command(harbor, ("wabe harbor serve demo --task red_rugs", "wabe harbor verdict --output verdict"))

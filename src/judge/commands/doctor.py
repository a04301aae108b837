"""`wabe doctor`: what is missing to run here, and how to get it."""

import asyncio
import os
import platform
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from judge.browser.chromium import BrowserSettings
from judge.browser.display import has_display, require_display
from judge.browser.fonts import FONT_PACKAGES, SCRIPTS, titles_of
from judge.browser.installed import find_browser, wanted_by
from judge.browser.pool import browser_pool
from judge.commands import OutputDir
from judge.commands.findings import FINDINGS, Finding
from judge.commands.former import unread_variables
from judge.commands.run import scenario_file
from judge.config import RunConfig
from judge.network.policy import NetworkPolicy
from judge.network.upstream_proxy import require_upstream
from judge.runner.boundary import EXIT_LOST
from judge.scenario.logins import expired_logins, with_addresses, with_logins
from judge.scenario.toml import load_scenario
from judge.store.layout import free_space, output_folder
from shared.errors import ConfigError, EnvironmentFault, ParticipantUnreachable, WabeError
from shared.seams import without_code
from shared.settings import Settings
from shared.text import counted, excerpt, one_line

if TYPE_CHECKING:
    from judge.runner.launch import Member

# Those of the judge and the participant in the bundled scenarios.
_PORTS = (9009, 9019)
_JUDGE_MODEL = "judge model"
_CARD_TIMEOUT_S = 5.0
_POLL_S = 0.2
# How long an agent that answers without a usable card is assumed to be still starting.
_ANSWERING_S = 10.0
_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "missing": ("MISSING", "bold red")}


def doctor(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario to examine as well: a file, or a bundled task set.", metavar="SCENARIO.toml"),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Check the browser only.")] = False,
    fonts: Annotated[bool, typer.Option("--fonts", help="Check only which scripts it has no font for.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing, only exit with 0 or 1.")] = False,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Check only the agent card at this address; with a scenario, with its participant's headers. Or what"
            " a program over MCP lacks, as mcp:claude.",
            metavar="URL",
        ),
    ] = None,
    wait: Annotated[float, typer.Option(help="With --agent: retry for this many seconds.", min=0)] = 0.0,
    output_dir: OutputDir = None,
) -> None:
    """Report what is missing to run, and how to get it. Looks at the browser, keys, ports and the disk."""
    settings = Settings.from_environ()
    if agent is not None and agent.startswith("mcp:"):
        findings = check_program(agent.removeprefix("mcp:"))
    elif agent is not None:
        headers = (
            {}
            if scenario is None
            else _headers_at(agent, scenario_file(scenario, settings.bundled_scenarios), settings)
        )
        findings = [asyncio.run(check_agent(agent, wait, headers))]
    elif browser:
        findings = [check_browser(settings)]
    elif fonts:
        findings = [check_fonts(settings)]
    else:
        # A scenario names its ports and its judge model.
        ports = _PORTS if scenario is None else ()
        findings = [*examine(settings, output_folder(output_dir, settings), ports), check_fonts(settings)]
        if scenario is not None:
            findings = [finding for finding in findings if finding.subject != _JUDGE_MODEL]
            findings += check_scenario(scenario_file(scenario, settings.bundled_scenarios), settings)
        if unread := unread_variables(settings.environ, Path()):
            findings.append(Finding("note", ".env", unread))
    if not quiet:
        for state, subject, text in findings:
            mark, style = _MARKS[state]
            line = Text.assemble((f"{mark:>8}  ", style), (f"{subject:<12}  ", "bold"), text)
            Console().print(line, soft_wrap=True)
    if any(finding.state == "missing" or (fonts and finding.state == "note") for finding in findings):
        raise typer.Exit(EXIT_LOST)


def examine(settings: Settings, output_dir: Path, ports: Sequence[int] = _PORTS) -> list[Finding]:
    """All checks, in the order in which a user would fix their findings."""
    free = map(check_port, ports)
    python = Finding("ok", "python", f"{platform.python_version()} ({sys.executable})")
    core = [
        python,
        check_browser(settings),
        check_headed(settings),
        check_model(settings),
        *free,
        check_disk(output_dir),
    ]
    return [*core, *check_plugins(settings)]


def check_plugins(settings: Settings) -> list[Finding]:
    """Findings of plug-ins, and of entry points whose code is missing."""
    findings = [FINDINGS.load(name)(settings) for name in FINDINGS.names()]
    gone: dict[str, list[str]] = {}
    for entry in without_code():
        gone.setdefault(entry.title, []).append(f"{entry.group} {entry.name}")
    missing = [
        Finding("note", "plug-in", f"{title} is declared, but its code is gone; skipped: {', '.join(names)}")
        for title, names in gone.items()
    ]
    return [*findings, *missing]


def check_browser(settings: Settings) -> Finding:
    """Whether a browser is found, where, and whether its sandbox is on."""
    try:
        browser = find_browser(None, settings)
    except ConfigError as error:
        return Finding("missing", "browser", str(error))
    sandbox = "sandbox on" if browser.sandbox else f"sandbox off: {browser.sandbox_reason}"
    return Finding("ok", "browser", f"{browser.path} ({browser.source}; {sandbox})")


def check_fonts(settings: Settings) -> Finding:
    """Which scripts the browser draws as boxes; measured in the browser, which takes a second or two."""
    try:
        undrawn = asyncio.run(_undrawn(settings))
    except (ConfigError, EnvironmentFault) as error:
        return Finding("note", "fonts", f"not measured: {one_line(str(error))}")
    if not undrawn:
        return Finding("ok", "fonts", f"the browser draws {titles_of(SCRIPTS)}")
    remedy = f"on Debian and Ubuntu: apt-get install {' '.join(FONT_PACKAGES)}"
    return Finding("note", "fonts", f"text is drawn as boxes in {titles_of(undrawn)}; {remedy}")


async def _undrawn(settings: Settings) -> frozenset[str]:
    browsers = BrowserSettings.from_config(RunConfig(), settings)
    async with browser_pool(browsers) as pool, pool.browser(NetworkPolicy()) as browser:
        return await browser.undrawn()


def check_headed(settings: Settings) -> Finding:
    """Whether `browser = "headed"` would work; nothing else needs it."""
    headed = RunConfig(browser="headed")
    try:
        browser = find_browser(None, settings, build=wanted_by(headed))
        require_display(headed, settings.environ)
    except ConfigError as error:
        return Finding("note", "headed", f'{error}; only browser = "headed" needs it')
    return Finding(
        "ok", "headed", f"{browser.path}, {'own display' if has_display(settings.environ) else 'under Xvfb'}"
    )


def check_model(settings: Settings) -> Finding:
    """Whether the key of the default judge model is set. The demo needs none."""
    # Imported here, as in `check_agent`, because image builds and health checks only run one of the checks.
    from judge.judges.methods import check_judge_model

    model = settings.judge_model or RunConfig().judge_model
    try:
        check_judge_model(RunConfig().model_copy(update={"judge_model": model}), settings)
    except ConfigError as error:
        # Not missing, because tasks with checks need no model.
        return Finding("note", _JUDGE_MODEL, f"{error}; the demo needs none")
    return Finding("ok", _JUDGE_MODEL, f"{model}: its key is set")


def check_scenario(path: Path, settings: Settings) -> list[Finding]:
    """Whether a scenario can be run: settings, keys, variables, logins, and requirements of its sites and agents."""
    from judge.episode.preflight import check_config
    from judge.runner.launch import members_of

    try:
        scenario = load_scenario(path)
        members = members_of(scenario, settings)
        tasks = with_logins(scenario, scenario.tasks, settings.environ)
        if scenario.green_agent.cmd is not None:
            model = settings.judge_model or scenario.config.judge_model
            config = scenario.config.model_copy(update={"judge_model": model})
            check_config(config, Settings.from_environ({**settings.environ, **members[-1].env}))
            asyncio.run(require_upstream(with_addresses(scenario, settings.environ).config))
    except ConfigError as error:
        return [Finding("missing", "scenario", str(error))]
    ports = {port for each in members if each.cmd and (port := urlsplit(each.endpoint).port)}
    return [
        Finding("ok", "scenario", f"{path}: {counted(len(tasks), 'task')}"),
        *(Finding("note", "log-in", text) for text in expired_logins(tasks, time.time())),
        *(finding for each in members for finding in check_member(each, settings, path.resolve().parent)),
        *(_at_port(port) for port in sorted(ports)),
    ]


def check_member(member: "Member", settings: Settings, scenario_dir: Path) -> list[Finding]:
    """Whether the program that starts a site or agent exists and has its key, or whether a running agent answers."""
    from judge.runner.playable import require_folders
    from shared.llm.opening import find_provider

    if member.cmd is None:
        if not member.is_agent:
            return []
        return [asyncio.run(check_agent(member.endpoint, 0, member.headers))._replace(subject=member.name)]
    try:
        words = shlex.split(member.cmd)
        path = f"{Path(sys.executable).parent}{os.pathsep}{member.env.get('PATH', settings.path)}"
        # Not checked if named by a placeholder, which stands for the scenario's folder.
        if words and "{" not in words[0] and shutil.which(words[0], path=path) is None:
            return [Finding("missing", member.name, f"{excerpt(words[0])} is not installed; check the cmd")]
        require_folders([member], scenario_dir)
        match words:
            case ["wabe", "participant", name, *_] if provider := find_provider(name):
                provider.require_key(Settings.from_environ({**settings.environ, **member.env}), member.name)
    except ConfigError as error:
        return [Finding("missing", member.name, str(error))]
    return [Finding("ok", member.name, f"can be started at {member.endpoint}")]


def check_program(command: str) -> list[Finding]:
    """What a program over MCP lacks, as the participant that would start it says."""
    from judge.runner.playable import examined

    found = examined(["--command", command])
    return [Finding("ok" if is_there else "missing", subject, text) for is_there, subject, text in found]


def _at_port(port: int) -> Finding:
    """Whether a port is free that a run of the scenario needs: without it, the run does not start."""
    finding = check_port(port)
    return finding._replace(state="missing") if finding.state == "note" else finding


def check_port(port: int) -> Finding:
    """Whether a port is free. Bundled scenarios use some, which matters only to those who run them."""
    with socket.socket() as probe:
        # As servers do, so that recently closed connections do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            text = "taken; stop what listens there or change the scenario's endpoint and cmd"
            return Finding("note", f"port {port}", text)
    return Finding("ok", f"port {port}", "free")


def check_disk(output_dir: Path) -> Finding:
    """Whether results can be written and there is space for them (about 2 MB per task)."""
    # The folder may not exist yet; then its nearest parent decides.
    existing = next(path for path in (output_dir, *output_dir.absolute().parents) if os.path.lexists(path))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding("missing", "disk", f"{existing} is not a writable folder; choose another --output-dir")
    text, is_enough = free_space(output_dir)
    return Finding("ok" if is_enough else "missing", "disk", text)


def _headers_at(url: str, path: Path, settings: Settings) -> dict[str, str]:
    from judge.scenario.credentials import headers_at

    return headers_at(load_scenario(path), url, settings.environ)


async def check_agent(url: str, wait_s: float, headers: Mapping[str, str] = MappingProxyType({})) -> Finding:
    """Whether the agent at `url` serves a usable card to callers with these credentials.

    Retried for up to `wait_s` seconds.
    """
    from shared.a2a.client import fetch_card

    clock = asyncio.get_running_loop().time
    deadline, answered = clock() + wait_s, False
    while True:
        try:
            card = await fetch_card(url, timeout_s=_CARD_TIMEOUT_S, headers=headers)
        except WabeError as error:
            reason = str(error)
            # Retrying helps if nothing is listening yet, but hardly ever after a wrong answer.
            if not answered and not isinstance(error, ParticipantUnreachable):
                answered, deadline = True, min(deadline, clock() + _ANSWERING_S)
        else:
            return Finding("ok", "agent", f"{url}: {excerpt(card.name)}, A2A {card.protocol}")
        if clock() >= deadline:
            return Finding("missing", "agent", f"{url}: {one_line(reason)}")
        await asyncio.sleep(_POLL_S)

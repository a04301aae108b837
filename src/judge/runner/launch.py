"""Starts a scenario's sites, participants and judge, waits until each is up, and stops all of them."""

import asyncio
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urljoin, urlsplit

import httpx
import psutil
from pydantic import Field
from rich.console import Console
from rich.text import Text

from judge.browser.orphans import adopt_orphans, end_with_parent, reaping_orphans
from judge.records.sites import place_of
from judge.runner.ports import turn_at
from judge.runner.routes import routed_client
from judge.scenario.credentials import resolved_headers
from judge.scenario.models import DATA_DIR, LOGS, PORT, ParticipantEntry, Ready, Scenario, SiteEntry, resolved_env
from shared.a2a.client import fetch_card
from shared.concurrency import together
from shared.errors import ConfigError, WabeError
from shared.files import read_end, reason_of
from shared.models import Record
from shared.patience import patience
from shared.settings import Settings
from shared.tls import why_no_answer

_READY_TIMEOUT_S = 60.0
_RUNNING_TIMEOUT_S = 10.0
_STOP_GRACE_S = 10.0
_ANSWER_S = 2.0
_POLL_S = 0.1
# A process that is seen twice, so far apart, on other ports than its own will not open that one.
_ELSEWHERE_S = 1.5
_LOG_TAIL_BYTES = 16_384
# Not for participants: anyone with access to Redis can change the judge model's replies, and with the key the tasks are
# open.
_JUDGE_ONLY = ("WABE_REDIS_URL", "WABE_SEAL_KEY")
_SIGNAL_NAMES = {member.value: member.name for member in signal.Signals}


class Member(Record):
    """A site or agent of a run, started here if it has a `cmd`.

    An agent is up when its card can be read, a site when it answers, as `ready` says if that is given. `headers` are
    the credentials of a participant. `site` is the name of a site, and `instance` where one of its instances listens;
    browsers reach that at the `endpoint`.
    """

    name: str
    endpoint: str
    cmd: str | None
    is_agent: bool
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    ready: Ready | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    site: str = ""
    instance: str | None = None

    @property
    def listens_at(self) -> str:
        """Its own address."""
        return self.instance or self.endpoint

    @property
    def routes(self) -> dict[str, str]:
        """What leads requests for the endpoint to the instance."""
        return {} if self.instance is None else {self.endpoint: self.instance}


def site_member(site: SiteEntry, env: Mapping[str, str] | None = None) -> Member:
    """A site as a member of a run, on the port of its endpoint; `env` are its variables, resolved."""
    return Member(
        name=site.name,
        endpoint=site.endpoint,
        cmd=on_port(site.cmd, site.endpoint),
        is_agent=False,
        env=dict(env or {}),
        ready=site.ready,
        site=site.name,
    )


def on_port(cmd: str | None, address: str) -> str | None:
    """A site's command, with the port of an address in the place of `{port}`."""
    return cmd and cmd.replace(PORT, str(urlsplit(address).port))


def site_members(scenario: Scenario, settings: Settings) -> list[Member]:
    """The scenario's sites, except frozen ones. Raises `ConfigError` for an `env` that names an unset variable."""
    sites = [site for site in scenario.sites if site.archive is None]
    if settings.sites_run:
        return [site_member(site).model_copy(update={"cmd": None}) for site in sites]
    # Resolved only for what is started here, because only that needs the variables.
    return [
        site_member(site, resolved_env(site.name, site.env, settings.environ, scenario.path) if site.cmd else None)
        for site in sites
    ]


def members_of(scenario: Scenario, settings: Settings) -> tuple[Member, ...]:
    """All members in starting order: sites, participants, judge. Raises `ConfigError` for a missing endpoint
    and for an `env` or `headers` that name an unset variable.
    """
    members = site_members(scenario, settings)
    for agent in (*scenario.participants, scenario.green_agent):
        if agent.endpoint is None:
            raise ConfigError(
                f"{scenario.path}: {agent.role} has no endpoint",
                remedy='add endpoint = "http://127.0.0.1:PORT" to run it here',
            )
        env = resolved_env(agent.role, agent.env, settings.environ, scenario.path) if agent.cmd is not None else {}
        if agent is scenario.green_agent:
            env = {name: value for name in _JUDGE_ONLY if (value := settings.environ.get(name))} | env
        headers = {}
        if isinstance(agent, ParticipantEntry):
            headers = resolved_headers(agent, settings.environ, scenario.path)
        members.append(
            Member(name=agent.role, endpoint=agent.endpoint, cmd=agent.cmd, is_agent=True, env=env, headers=headers)
        )
    return tuple(members)


def child_environ(
    settings: Settings, *, output_dir: Path, participant_model: str | None, today: date | None = None
) -> dict[str, str]:
    """The environment for children: this process's, with this interpreter's programs first and our settings.

    `today` is the day of the run: dates in reference scripts are relative to it.
    """
    environ = {name: value for name, value in settings.environ.items() if name not in _JUDGE_ONLY}
    environ["PATH"] = f"{Path(sys.executable).parent}:{settings.path}"
    # Otherwise the log of a killed child would lack its last lines.
    environ["PYTHONUNBUFFERED"] = "1"
    # A judge started here acts for this user, so the scenario may name files and endpoints of this machine.
    environ["WABE_TRUST_CONFIG"] = "1"
    environ["WABE_OUTPUT_DIR"] = str(output_dir.resolve())
    if participant_model:
        environ["WABE_PARTICIPANT_MODEL"] = participant_model
    if today is not None:
        environ["WABE_TODAY"] = str(today)
    return environ


@dataclass
class Child:
    """A process in a separate session, and its log. `data_dir` is emptied whenever it starts."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(repr=False)
    log: Path
    data_dir: Path | None = None
    process: asyncio.subprocess.Process = field(init=False)

    async def start(self) -> None:
        """Start the process; may be called again after `stop`. Raises `ConfigError` if it cannot be started."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.data_dir is not None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
            self.data_dir.mkdir(parents=True)
        with self.log.open("ab") as stream:
            try:
                self.process = await asyncio.create_subprocess_exec(
                    *self.argv,
                    env=dict(self.env),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=stream,
                    stderr=asyncio.subprocess.STDOUT,
                    # Ctrl-C in the terminal must only reach this process, which stops its children in order.
                    start_new_session=True,
                    preexec_fn=end_with_parent,
                )
            # A `ValueError` is a null byte in one of the words.
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"{self.name}: cannot start {self.argv[0][:200]!r}: {reason_of(error)}",
                    remedy="check the cmd in the scenario and that the program is installed",
                ) from None

    def crash(self) -> str | None:
        """How the process ended by itself, with the last error in its log; `None` while it runs."""
        code = self.process.returncode
        if code is None:
            return None
        how = f"with exit code {code}" if code >= 0 else f"by {_SIGNAL_NAMES.get(-code, f'signal {-code}')}"
        lines = log_tail(self.log, lines=1000).splitlines()
        traces = [n for n, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
        # The error follows the frames, which are indented.
        errors = [line for line in lines[traces[-1] + 1 :] if line[:1].strip()] if traces else lines[-1:]
        error = f": {errors[0][:500]}" if errors else ""
        return f"{self.name} ended during the run {how}{error} (its log: {self.log})"

    async def stop(self) -> None:
        """End the entire session: SIGTERM, a grace period, SIGKILL. Still kills it if cancelled."""
        try:
            if self.process.returncode is None:
                await self._signal(signal.SIGTERM)
        finally:
            # Even if the process has ended, because it may have left others in its session.
            await self._signal(signal.SIGKILL)

    async def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_GRACE_S):
                await self.process.wait()


async def start_child(
    name: str, cmd: str, *, env: Mapping[str, str], log: Path, scenario_dir: Path, data_dir: Path | None = None
) -> Child:
    """Start `cmd`, split as a shell would but without one. Raises `ConfigError` when it cannot be started."""
    places = {
        "{scenario_dir}": str(scenario_dir),
        LOGS: str(log.with_suffix("")),
        "{scenarios}": str(Settings.from_environ(env).scenarios_folder),
        **({DATA_DIR: str(data_dir)} if data_dir else {}),
    }
    try:
        # Replaced after splitting, so that the folder's name may contain spaces.
        argv = [reduce(lambda text, place: text.replace(*place), places.items(), word) for word in shlex.split(cmd)]
    except ValueError as error:
        raise ConfigError(f"{name}: cmd {cmd[:200]!r} cannot be split: {error}", remedy="check its quotes") from None
    if not argv:
        raise ConfigError(f"{name}: cmd is empty", remedy="give a command or leave the key out")
    child = Child(name, argv, env, log, data_dir if DATA_DIR in cmd else None)
    await child.start()
    return child


@asynccontextmanager
async def launched(
    members: Sequence[Member],
    *,
    scenario_dir: Path,
    environ: Mapping[str, str],
    logs: Path,
    is_up: Callable[[str], None] = lambda _: None,
    waits: Callable[[str], None] = lambda line: print(line, file=sys.stderr),  # noqa: T201
) -> AsyncIterator[list[Child]]:
    """Start every member with a `cmd` and wait until all are up. However the body ends, stop all that were started.

    `is_up` is called with the name of each member that is up, `waits` with a line about a site for which this waits
    because another run has started it.
    """
    # Instances have ports that no other run uses.
    started = [each for each in members if not each.is_agent and each.cmd is not None]
    sites = [(each.name, each.endpoint) for each in started if each.instance is None]
    async with turn_at(sites, waits), _launched(members, scenario_dir, environ, logs, is_up) as children:
        yield children


@asynccontextmanager
async def _launched(
    members: Sequence[Member], scenario_dir: Path, environ: Mapping[str, str], logs: Path, is_up: Callable[[str], None]
) -> AsyncIterator[list[Child]]:
    for member in members:
        if member.cmd is not None:
            require_free_port(member.name, member.listens_at)
    # Orphans of a killed child become children of this process, so that `_stop_all` finds them.
    adopt_orphans()
    children: dict[str, Child] = {}

    async def wait(member: Member) -> None:
        await wait_until_up(member, children.get(member.name))
        is_up(member.name)

    folders = ExitStack()
    # Only if a site uses one, because it stays behind where this process is killed.
    data_dirs = None
    if any(DATA_DIR in (each.cmd or "") for each in members):
        temporary = TemporaryDirectory(prefix="wabe-site-", ignore_cleanup_errors=True)
        data_dirs = Path(folders.enter_context(temporary))
    try:
        for member in members:
            if member.cmd is not None:
                log = log_path(logs, member.name)
                children[member.name] = await start_child(
                    member.name,
                    member.cmd,
                    env={**environ, **member.env},
                    log=log,
                    scenario_dir=scenario_dir,
                    data_dir=data_dirs / str(len(children)) if data_dirs and not member.is_agent else None,
                )
        # Several may fail at once; the user can only act on one message.
        await together(wait(member) for member in members)
        async with reaping_orphans():
            yield list(children.values())
    finally:
        # Shielded: a second Ctrl-C must not leave processes behind.
        await asyncio.shield(_stop_all(list(children.values())))
        folders.close()


def require_free_port(name: str, endpoint: str) -> None:
    """Raises `ConfigError` if something already listens on the port of an endpoint."""
    parts = urlsplit(endpoint)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=2):
            pass
    except OSError:
        return
    raise ConfigError(
        f"{name}: port {parts.port} on {parts.hostname} is already taken",
        remedy="stop what listens there, or change the port in both endpoint and cmd",
    )


async def wait_until_up(member: Member, child: Child | None) -> None:
    """Wait until a member answers. Raises `ConfigError` if it ends or takes too long."""
    timeout_s = _READY_TIMEOUT_S if child else _RUNNING_TIMEOUT_S
    last: str | None = "no answer"
    seen_elsewhere, next_look = "", time.monotonic() + _ELSEWHERE_S
    try:
        async with routed_client(member.routes, timeout=None) as client, patience(timeout_s):
            while True:
                if child and child.process.returncode is not None:
                    raise _not_up(member, child, f"ended with exit code {child.process.returncode}")
                try:
                    if member.is_agent:
                        await fetch_card(member.endpoint, timeout_s=_ANSWER_S, headers=member.headers)
                        return
                    async with patience(_ANSWER_S):
                        last = await _site_lacks(member, client)
                    if last is None:
                        return
                except TimeoutError:
                    last = "no answer"
                except WabeError as error:
                    last = str(error)
                except httpx.HTTPError as error:
                    last = why_no_answer(error)
                if child and time.monotonic() > next_look:
                    elsewhere, next_look = _listens_elsewhere(member, child), time.monotonic() + _ELSEWHERE_S
                    if elsewhere and elsewhere == seen_elsewhere:
                        raise _not_up(member, child, elsewhere)
                    seen_elsewhere = elsewhere
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise _not_up(member, child, f"is not up after {timeout_s:g} s: {last}") from None


def _listens_elsewhere(member: Member, child: Child) -> str:
    """Which other ports the member's process listens on, if its own is not among them; otherwise empty.

    A process that starts another one, such as a shell, is followed. One that starts several is not: any of them may be
    a part of the site that is up before the rest.
    """
    ports: set[int] = set()
    with contextlib.suppress(psutil.Error):
        processes = [psutil.Process(child.process.pid)]
        while len(processes) == 1:
            (process,) = processes
            ports |= {each.laddr.port for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
            processes = process.children()
    wanted = place_of(member.listens_at)
    if not ports or wanted is None or wanted.port in ports:
        return ""
    found = " and ".join(map(str, sorted(ports)))
    return f"is not there: its process listens on port {found} (change its cmd, or the port in endpoint)"


async def _site_lacks(member: Member, client: httpx.AsyncClient) -> str | None:
    """How the site's answer differs from `ready`, or `None`. Raises `httpx.HTTPError` if the site does not answer."""
    address = urljoin(member.endpoint, member.ready.url) if member.ready else member.endpoint
    status = (await client.get(address)).status_code
    if member.ready is None or status == member.ready.status:
        return None
    return f"{address} answers {status}, not {member.ready.status}"


def _not_up(member: Member, child: Child | None, problem: str) -> ConfigError:
    message = f"{'agent' if member.is_agent else 'site'} {member.name} at {member.listens_at} {problem}"
    if child is None:
        return ConfigError(message, remedy="start it, or give the scenario a cmd that does")
    # Show the text, not the path, because the folder of a run that never began is deleted.
    tail = log_tail(child.log)
    if "\n" in tail:
        return ConfigError(f"{message}\n--- end of its log ---\n{tail}")
    return ConfigError(f"{message}: {tail}" if tail else f"{message}; its log is empty")


async def _stop_all(children: list[Child]) -> None:
    # In reverse order: the judge, started last, still talks to the others while it shuts down.
    for child in reversed(children):
        await child.stop()
    # Killing a process makes its children ours, so repeat until none is left.
    for _ in range(20 if sys.platform == "linux" else 0):
        processes = psutil.Process().children(recursive=True)
        if not processes:
            break
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(processes, timeout=1)


def log_path(logs: Path, name: str) -> Path:
    """The log file of a role or site: short, unique and inside the folder, whatever the name."""
    # If the name had to be changed, a digest is added, so that two names never share a file.
    plain = re.sub(r"[^\w -]", "_", name)[:40]
    return logs / (f"{plain}.log" if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.log")


def log_tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, taken from its last 16 kB."""
    return "\n".join(read_end(log, _LOG_TAIL_BYTES).splitlines()[-lines:])


@asynccontextmanager
async def shown_logs(children: Sequence[Child], console: Console) -> AsyncIterator[None]:
    """While the body runs, print each new line of the children's logs with the name of its source."""
    following = asyncio.gather(*(_follow(child, console) for child in children))
    try:
        yield
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


async def _follow(child: Child, console: Console) -> None:
    with child.log.open("rb") as stream:
        rest = b""
        while True:
            # A last line may be incomplete, so keep it for the next read.
            rest += stream.read()
            *lines, rest = rest.split(b"\n")
            for line in lines:
                text = Text.assemble((f"{child.name} | ", "dim"), line.decode("utf-8", "replace"))
                console.print(text, soft_wrap=True)
            if not lines:
                await asyncio.sleep(_POLL_S)

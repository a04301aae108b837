"""What a run starts: its processes, their logs, and how all of it is stopped."""

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import pytest

from helpers.network.served_sites import Authority
from helpers.ports import free_ports
from helpers.scenario.texts import AGENTS, TASK
from judge.runner.launch import (
    Child,
    Member,
    launched,
    log_tail,
    require_free_port,
    site_member,
    site_members,
    start_child,
)
from judge.scenario.models import Scenario, SiteEntry
from judge.scenario.toml import load_scenario
from shared.errors import ConfigError
from shared.settings import Settings

ENV = {"PATH": "/usr/bin:/bin"}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


async def gone(pid: int) -> None:
    """Wait until the kernel has taken a killed process away."""
    async with asyncio.timeout(20):
        while alive(pid):
            await asyncio.sleep(0.01)


async def start(tmp_path: Path, code: str) -> Child:
    script = tmp_path / "child.py"
    script.write_text(code)
    return await start_child(
        "it", f"{sys.executable} {script}", env=ENV, log=tmp_path / "it.log", scenario_dir=tmp_path
    )


async def wait_for_log(child: Child, text: str) -> None:
    async with asyncio.timeout(20):
        while text not in log_tail(child.log):
            await asyncio.sleep(0.01)


async def test_stopping_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    start_another = "import subprocess, time\np = subprocess.Popen(['sleep', '600'])\nprint(p.pid, 'up', flush=True)\n"
    child = await start(tmp_path, f"{start_another}time.sleep(600)")
    await wait_for_log(child, "up")
    grandchild = int(log_tail(child.log).split()[0])
    await child.stop()
    assert child.process.returncode is not None
    await gone(grandchild)


async def test_a_process_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.runner.launch._STOP_GRACE_S", 0.3)
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    )
    child = await start(tmp_path, code)
    await wait_for_log(child, "up")
    await child.stop()
    assert child.process.returncode == -signal.SIGKILL


async def test_what_a_dead_process_left_in_its_session_goes_too(tmp_path: Path) -> None:
    code = "import subprocess\np = subprocess.Popen(['sleep', '600'])\nprint(p.pid, 'up', flush=True)"
    child = await start(tmp_path, code)
    await child.process.wait()
    grandchild = int(log_tail(child.log).split()[0])
    await child.stop()
    await gone(grandchild)


async def test_the_log_keeps_both_streams_and_its_end_can_be_read(tmp_path: Path) -> None:
    child = await start(tmp_path, "import sys\nprint('out')\nprint('err', file=sys.stderr)")
    await child.process.wait()
    assert sorted(log_tail(child.log).split()) == ["err", "out"]
    with contextlib.suppress(ProcessLookupError):
        await child.stop()


@pytest.mark.parametrize(
    ("cmd", "complaint"),
    [("", "cmd is empty"), ("'unclosed", "cannot be split"), ("no-such-program-here", "cannot start 'no-such-program")],
)
async def test_a_command_that_cannot_start_is_one_clear_error(tmp_path: Path, cmd: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await start_child("it", cmd, env=ENV, log=tmp_path / "it.log", scenario_dir=tmp_path)


def test_a_taken_port_is_refused_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigError, match=f"white_agent: port {port} on 127.0.0.1 is already taken"):
            require_free_port("white_agent", f"http://127.0.0.1:{port}")


async def test_a_scenarios_folder_may_have_spaces_and_quotes_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "it's my folder"
    folder.mkdir()
    (folder / "site.py").write_text("print('served')")
    cmd = f"{shlex.quote(sys.executable)} {{scenario_dir}}/site.py"
    child = await start_child("it", cmd, env=ENV, log=tmp_path / "it.log", scenario_dir=folder)
    await child.process.wait()
    assert log_tail(child.log) == "served"


ROLES = ("white_agent", "my agent", "агент", "a_b", "a/b", "../../up", "..", ".hidden", "long " * 20)


@pytest.mark.slow
async def test_a_role_may_have_any_name_and_its_log_stays_in_the_folder(tmp_path: Path) -> None:
    members = tuple(
        Member(name=role, endpoint=f"http://127.0.0.1:{port}", cmd="true", is_agent=False)
        for role, port in zip(ROLES, free_ports(len(ROLES)), strict=True)
    )
    logs = tmp_path / "run" / "logs"
    with pytest.raises(ConfigError, match="ended with exit code 0"):
        async with launched(members, scenario_dir=tmp_path, environ={"PATH": "/bin:/usr/bin"}, logs=logs):
            pass
    assert len(list(logs.glob("*.log"))) == len(list(logs.iterdir())) == len(ROLES)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (logs / "white_agent.log").is_file()


# It answers 503 until it has been asked twice, and then says what is in its environment.
SLOW = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += self.path == "/health"
        self.send_response(200 if Handler.asked > 2 else 503); self.end_headers()
        self.wfile.write(os.environ["GREETING"].encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


SECURE = """
import http.server, ssl, sys
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def a_slow_site(folder: Path, ready: str) -> Scenario:
    (folder / "site.py").write_text(SLOW)
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    path = folder / "s.toml"
    path.write_text(
        f'{AGENTS}[[sites]]\nname = "shop"\nendpoint = "{address}"\nready = {ready}\n'
        f'cmd = "{sys.executable} {folder}/site.py {port}"\nenv = {{ GREETING = "${{WORD}} there" }}\n{TASK}'
    )
    return load_scenario(path)


async def test_a_site_is_up_once_it_answers_as_it_should_and_has_its_own_variables(tmp_path: Path) -> None:
    scenario = a_slow_site(tmp_path, '{ url = "/health" }')
    sites = site_members(scenario, Settings.from_environ({"WORD": "hello"}))
    async with (
        launched(sites, scenario_dir=tmp_path, environ=ENV, logs=tmp_path),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        answer = await client.get(sites[0].endpoint)
    assert (answer.status_code, answer.text) == (200, "hello there")


@pytest.mark.slow
async def test_a_site_that_never_answers_as_it_should_is_named_with_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.runner.launch._READY_TIMEOUT_S", 1.0)
    scenario = a_slow_site(tmp_path, '{ url = "/health", status = 201 }')
    sites = site_members(scenario, Settings.from_environ({"WORD": "hello"}))
    with pytest.raises(ConfigError, match=r"is not up after 1 s: .*/health answers 200, not 201"):
        async with launched(sites, scenario_dir=tmp_path, environ=ENV, logs=tmp_path):
            pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "cmd", ["{python} {folder}/site.py {other}", "sh -c '{python} {folder}/site.py {other}; true'"]
)
async def test_a_site_on_another_port_is_found_by_the_port_that_its_process_opened(tmp_path: Path, cmd: str) -> None:
    (tmp_path / "site.py").write_text(SLOW)
    port, other = free_ports(2)
    words = {"python": sys.executable, "folder": tmp_path, "other": other}
    site = SiteEntry(name="shop", endpoint=f"http://127.0.0.1:{port}", cmd=cmd.format_map(words), static=True)
    began = time.monotonic()
    with pytest.raises(ConfigError, match=rf"site shop at http://127.0.0.1:{port} is not there: .* port {other} "):
        async with launched([site_member(site)], scenario_dir=tmp_path, environ=ENV, logs=tmp_path):
            pass
    assert time.monotonic() - began < 15


@pytest.mark.slow
async def test_a_process_with_several_children_may_open_its_port_last(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(SLOW)
    port, other = free_ports(2)
    serve = f"{sys.executable} {tmp_path}/site.py"
    site = SiteEntry(
        name="shop",
        endpoint=f"http://127.0.0.1:{port}",
        cmd=f"sh -c '{serve} {other} & sleep 4; {serve} {port} & wait'",
        static=True,
    )
    async with (
        launched([site_member(site)], scenario_dir=tmp_path, environ=ENV, logs=tmp_path),
        httpx.AsyncClient(trust_env=False) as client,
    ):
        assert (await client.get(site.endpoint)).status_code == 503


def test_a_variable_of_a_site_that_is_not_set_is_noticed_before_anything_starts(tmp_path: Path) -> None:
    scenario = a_slow_site(tmp_path, "{}")
    with pytest.raises(ConfigError, match='"shop", key \'env\': "GREETING" needs the environment variable WORD'):
        site_members(scenario, Settings.from_environ({}))
    # A site that runs elsewhere needs none.
    assert site_members(scenario, Settings.from_environ({"WABE_SITES_RUN": "1"}))[0].env == {}


@pytest.mark.slow
async def test_a_site_with_a_certificate_of_the_users_own_authority_can_be_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, (port,) = Authority.made_in(tmp_path), free_ports(1)
    (tmp_path / "site.py").write_text(SECURE)
    cmd = shlex.join([sys.executable, str(tmp_path / "site.py"), str(port), str(authority.chain), str(authority.key)])
    site = Member(name="shop", endpoint=f"https://localhost:{port}", cmd=cmd, is_agent=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    async with launched([site], scenario_dir=tmp_path, environ=ENV, logs=tmp_path):
        pass
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setattr("judge.runner.launch._READY_TIMEOUT_S", 1.0)
    with pytest.raises(ConfigError, match=r"is not up after 1 s: its certificate cannot be used"):
        async with launched([site], scenario_dir=tmp_path, environ=ENV, logs=tmp_path):
            pass

"""Processes that a run starts."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from judge.runner.children import Child, endpoint_address, require_free_port, start_child
from shared.errors import ConfigError

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
    return await start_child("it", f"{sys.executable} {script}", env=ENV, log=tmp_path / "it.log")


async def wait_for_log(child: Child, text: str) -> None:
    async with asyncio.timeout(20):
        while text not in child.log_end():
            await asyncio.sleep(0.01)


async def test_stopping_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    start_another = "import subprocess, time\np = subprocess.Popen(['sleep', '600'])\nprint(p.pid, 'up', flush=True)\n"
    child = await start(tmp_path, f"{start_another}time.sleep(600)")
    await wait_for_log(child, "up")
    grandchild = int(child.log_end().split()[0])
    await child.stop()
    assert child.returncode is not None
    await gone(grandchild)


async def test_a_process_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.runner.children._STOP_GRACE_S", 0.3)
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    )
    child = await start(tmp_path, code)
    await wait_for_log(child, "up")
    await child.stop()
    assert child.returncode == -signal.SIGKILL


async def test_what_a_dead_process_left_in_its_session_goes_too(tmp_path: Path) -> None:
    code = "import subprocess\np = subprocess.Popen(['sleep', '600'])\nprint(p.pid, 'up', flush=True)"
    child = await start(tmp_path, code)
    await child.process.wait()
    grandchild = int(child.log_end().split()[0])
    await child.stop()
    await gone(grandchild)


async def test_the_log_keeps_both_streams_and_its_end_can_be_read(tmp_path: Path) -> None:
    child = await start(tmp_path, "import sys\nprint('out')\nprint('err', file=sys.stderr)")
    await child.process.wait()
    assert sorted(child.log_end().split()) == ["err", "out"]
    with contextlib.suppress(ProcessLookupError):
        await child.stop()


@pytest.mark.parametrize(
    ("cmd", "complaint"),
    [("", "cmd is empty"), ("'unclosed", "cannot be split"), ("no-such-program-here", "cannot start 'no-such-program")],
)
async def test_a_command_that_cannot_start_is_one_clear_error(tmp_path: Path, cmd: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await start_child("it", cmd, env=ENV, log=tmp_path / "it.log")


def test_a_taken_port_is_refused_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigError, match=f"white_agent: port {port} on 127.0.0.1 is already taken"):
            require_free_port("white_agent", f"http://127.0.0.1:{port}")


def test_an_endpoint_without_a_host_is_refused() -> None:
    with pytest.raises(ConfigError, match="names no host and port"):
        endpoint_address("it", "http://")
    assert endpoint_address("it", "https://judge.test/x") == ("judge.test", 443)

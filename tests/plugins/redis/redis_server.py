"""A Redis server of its own for a test, from the system's package."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from helpers.ports import free_port
from helpers.runner.commands import listening

PASSWORD = "redis-password"


@dataclass
class RedisServer:
    """A server that keeps nothing on disk, so that it has lost everything when it is started again."""

    port: int
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> SecretStr:
        return SecretStr(f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0")

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("this test needs redis-server: apt-get install redis-server", pytrace=False)
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "save": "", "requirepass": PASSWORD}
        words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
        self.process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not listening(self.port):
            assert self.process.poll() is None, "redis-server ended"
            assert time.monotonic() < until, "redis-server is not up after 20 s"
            time.sleep(0.01)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(free_port(), folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()

"""A small HTTP and SOCKS5 proxy in this process, and the real ones of the system's packages."""

import asyncio
import atexit
import base64
import contextlib
import ipaddress
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from helpers.ports import free_port

USER, PASSWORD = "operator", "proxy-passw0rd"
_AUTH = b"basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode())


class FakeProxy:
    """Connects to what it is asked for, and remembers what that was. `refuses`: answers that it may not."""

    def __init__(self) -> None:
        self.targets: list[tuple[str, int]] = []
        self.refuses = False
        # Whether it knows the password no longer.
        self.has_forgotten = False
        self.port = 0
        # Where to connect instead of a host that was asked for.
        self.hosts: dict[str, str] = {}

    def url(self, scheme: str, password: str = PASSWORD) -> str:
        """The address for the settings."""
        return f"{scheme}://{USER}:{password}@127.0.0.1:{self.port}"

    async def serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection as an HTTP proxy."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            host, _, port = head.split()[1].decode().rpartition(":")
            if self.has_forgotten or _AUTH not in head.replace(b"Basic", b"basic"):
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            elif site := await self._connected(host.strip("[]"), int(port)):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await _joined((reader, writer), site)
            else:
                writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    async def serve_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection as a SOCKS5 proxy."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            await reader.readexactly((await reader.readexactly(2))[1])
            writer.write(b"\x05\x02")
            user = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            is_right = not self.has_forgotten and (user, password) == (USER.encode(), PASSWORD.encode())
            writer.write(b"\x01\x00" if is_right else b"\x01\x01")
            if not is_right:
                return
            kind = (await reader.readexactly(4))[3]
            length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
            raw = await reader.readexactly(length)
            host = raw.decode() if kind == 3 else str(ipaddress.ip_address(raw))
            site = await self._connected(host, int.from_bytes(await reader.readexactly(2)))
            writer.write(bytes([5, 0 if site else 2, 0, 1, 0, 0, 0, 0, 0, 0]))
            if site:
                await _joined((reader, writer), site)

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        self.targets.append((host, port))
        if not self.refuses:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(self.hosts.get(host, host), port)
        return None


async def _joined(*ends: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()

    (one, to_one), (other, to_other) = ends
    await asyncio.gather(pipe(one, to_other), pipe(other, to_one))


@contextlib.asynccontextmanager
async def fake_proxy(scheme: str) -> AsyncIterator[FakeProxy]:
    """Run a `FakeProxy` of that scheme."""
    proxy = FakeProxy()
    server = await asyncio.start_server(proxy.serve_http if scheme == "http" else proxy.serve_socks, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()


def tinyproxy_command(port: int, folder: Path) -> list[str]:
    """How to start tinyproxy, with a password."""
    config = folder / "tinyproxy.conf"
    config.write_text(f"Port {port}\nListen 127.0.0.1\nTimeout 60\nBasicAuth {USER} {PASSWORD}\nLogLevel Critical\n")
    return ["tinyproxy", "-d", "-c", str(config)]


def microsocks_command(port: int, folder: Path) -> list[str]:
    """How to start microsocks, with a password."""
    return ["microsocks", "-i", "127.0.0.1", "-p", str(port), "-u", USER, "-P", PASSWORD]


REAL: dict[str, tuple[str, Callable[[int, Path], list[str]]]] = {
    "tinyproxy": ("http", tinyproxy_command),
    "microsocks": ("socks5", microsocks_command),
}


def started_proxy(program: str) -> str:
    """Start an installed proxy that ends with this process; returns its address for the settings."""
    scheme, command = REAL[program]
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="wabe-proxy-"))
    process = subprocess.Popen(command(port, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(process.terminate)
    return f"{scheme}://{USER}:{PASSWORD}@127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def real_proxy(program: str, folder: Path) -> AsyncIterator[str]:
    """Run an installed proxy; yields its address for the settings."""
    scheme, command = REAL[program]
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *command(port, folder), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                    continue
                writer.close()
                break
        yield f"{scheme}://{USER}:{PASSWORD}@127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()

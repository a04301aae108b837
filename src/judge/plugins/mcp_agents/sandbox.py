"""What a sandboxed program can reach: its folder, the system's programs, this attempt's tools and its model's meter.

Made of Linux namespaces (`unshare` of util-linux): no root, no daemon, no image.
"""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.errors import ConfigError

_UNSHARE = ("unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")
_CHUNK = 65_536
_LOOPBACK = ("127.0.0.1", "localhost")


def require_sandbox() -> None:
    """Raises `ConfigError` where this system cannot make one."""
    try:
        is_possible = (
            sys.platform == "linux" and not subprocess.run([*_UNSHARE, "true"], capture_output=True).returncode
        )
    except OSError:
        is_possible = False
    if not is_possible:
        raise ConfigError(
            "--sandbox needs Linux with user namespaces, and unshare and setpriv of util-linux",
            remedy="allow user namespaces (kernel.unprivileged_userns_clone, AppArmor), or run the agent's image",
        )


def require_loopback(addresses: Mapping[str, str]) -> None:
    """Raises `ConfigError` if a variable with a model's address leads to anything but a meter on this machine."""
    for name, address in addresses.items():
        if urlsplit(address).hostname not in _LOOPBACK:
            raise ConfigError(
                f"--sandbox: {name} is not an address on this machine, and nothing else can be reached",
                remedy="run with --meter, which sets it",
            )


def shown_paths(argv: Sequence[str], workdir: Path) -> dict[str, bool]:
    """The paths that exist inside, with whether they can be written: the system, the program, and its folder."""
    shown = dict.fromkeys(_SYSTEM, False)
    program = shutil.which(argv[0])
    for path in {Path(program), Path(program).resolve()} if program else ():
        folder = path.parent
        # An installation such as a virtual environment or Node's; not a home folder with a `bin`.
        is_installation = folder.name == "bin" and folder.parent not in (Path.home(), Path("/"))
        shown[str(folder.parent if is_installation else path)] = False
    shown |= {word: False for word in argv[1:] if word.startswith("/") and Path(word).is_file()}
    shown[str(workdir)] = True
    # A folder before what is in it.
    return dict(sorted(shown.items()))


@asynccontextmanager
async def opened(
    folder: Path, spec: Mapping[str, Any], ports: Sequence[int]
) -> AsyncIterator[tuple[list[str], dict[str, Any]]]:
    """What starts the supervisor in a sandbox, and its specification, while loopback's `ports` are reached inside."""
    root = folder / "root"
    root.mkdir()
    async with AsyncExitStack() as stack:
        sockets = {}
        for port in ports:
            path = folder / f"{port}.sock"
            await stack.enter_async_context(await asyncio.start_unix_server(_to(port), path))
            sockets[str(port)] = str(path)
        yield list(_UNSHARE), {**spec, "root": str(root), "ports": sockets}


def _to(port: int) -> Any:
    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    return lead


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()

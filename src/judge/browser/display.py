"""The display of a browser with a window: this machine's, or one of `Xvfb`, which draws into memory."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from judge.config import RunConfig
from shared.errors import BrowserFault, ConfigError

_START_TIMEOUT_S = 15.0
# Around the page: the frame, tabs and address bar of a window.
_WINDOW_PX = 200
_NEEDED = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
_REMEDY = 'install Xvfb (apt-get install xvfb), set DISPLAY, or write browser = "headless"'


def has_display(environ: Mapping[str, str], *, system: str = sys.platform) -> bool:
    """Whether this machine has a display; only Linux may be without."""
    return system != "linux" or bool(environ.get("DISPLAY"))


def display_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables by which a browser finds this machine's display."""
    return {name: value for name in _NEEDED if (value := environ.get(name))}


def xvfb(environ: Mapping[str, str]) -> Path | None:
    """The program, if it is installed."""
    program_path = shutil.which("Xvfb", path=environ.get("PATH", ""))
    return Path(program_path) if program_path else None


def require_display(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` if the browser needs a display, and there is none here and no Xvfb."""
    if config.browser == "headed" and not has_display(environ) and xvfb(environ) is None:
        raise ConfigError(
            "a browser with a window needs a display, and there is none here", key="config.browser", remedy=_REMEDY
        )


@asynccontextmanager
async def virtual_display(program: Path, config: RunConfig, environ: Mapping[str, str]) -> AsyncIterator[str]:
    """Run an `Xvfb` while the body runs; yields the name of its display, such as `:99`. Raises `BrowserFault`.

    It chooses a free number itself, and accepts no connections over the network.
    """
    size = f"{config.viewport_width + _WINDOW_PX}x{config.viewport_height + _WINDOW_PX}x24"
    reading, writing = os.pipe()
    try:
        with tempfile.TemporaryFile() as log:
            process = await asyncio.create_subprocess_exec(
                *(program, "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", "-noreset"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(environ),
                pass_fds=(writing,),
            )
            os.close(writing)
            writing = -1
            try:
                yield await _number(reading)
            finally:
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


async def _number(reading: int) -> str:
    """The display that a new `Xvfb` writes once it is ready; it closes the pipe if it ends first."""
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            digits = b""
            while not digits.endswith(b"\n"):
                piece = await _readable(reading)
                if not piece:
                    break
                digits += piece
    except TimeoutError:
        digits = b""
    number = digits.strip().decode("ascii", "replace")
    if not number.isdigit():
        raise BrowserFault("Xvfb did not start", remedy="run it by hand to see why, or use the headless browser")
    return f":{number}"


async def _readable(reading: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bytes] = loop.create_future()

    def read_number() -> None:
        loop.remove_reader(reading)
        if not ready.done():
            ready.set_result(os.read(reading, 100))

    loop.add_reader(reading, read_number)
    try:
        return await ready
    finally:
        loop.remove_reader(reading)

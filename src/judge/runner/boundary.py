"""Where errors become what a user sees: one line on standard error and an exit code. No traceback for a mistake."""

import asyncio
import errno
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

from shared.errors import ConfigError, WabeError

EXIT_DONE = 0
EXIT_LOST = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class Interrupted(WabeError):
    """Ctrl-C or SIGTERM ended the command; everything it started is stopped."""


def exit_code_of(error: WabeError) -> int:
    """Print the error and say which code to leave with."""
    print(f"error: {error}", file=sys.stderr)  # noqa: T201
    if isinstance(error, Interrupted):
        return EXIT_INTERRUPTED
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_LOST


def run_command(app: typer.Typer, arguments: list[str], *, name: str) -> NoReturn:
    """Run a command line and leave the process with its exit code."""
    try:
        code = app(arguments, prog_name=name, standalone_mode=False)
    except WabeError as error:
        sys.exit(exit_code_of(error))
    except typer.TyperException as error:
        message = error.format_message()
        # Nothing was asked for: the help is the answer, and keeps its lines.
        said = message if message.startswith("Usage:") else f"error: {' '.join(message.split())} (see {name} --help)"
        print(said, file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_USAGE)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has had enough (`| head`): nothing is wrong.
        sys.stderr.close()
        sys.exit(EXIT_DONE)
    except OSError as error:
        # Commands explain the files they expect; whatever else cannot be read or written is reported here.
        sys.exit(exit_code_of(system_error(error)))
    sys.exit(code if isinstance(code, int) else EXIT_DONE)


def system_error(error: OSError) -> WabeError:
    """The error of the operating system in one line; a file or folder that cannot be used is the user's to mend."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space, or choose another folder"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "check the permissions, or choose another file or folder"
    else:
        remedy = "check the path, or choose another file or folder"
    reason = error.strerror or str(error)
    if error.filename is None:
        return WabeError(f"the system refused: {reason}")
    return ConfigError(f"{error.filename!s}: {reason}", remedy=remedy)


def run_interruptible(main: Coroutine[Any, Any, int]) -> int:
    """Run `main`; the first SIGINT or SIGTERM cancels it and lets it clean up, later ones change nothing.

    Raises `Interrupted` when a signal ended it.
    """
    return asyncio.run(_until_signalled(main))


async def _until_signalled(main: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    signalled: list[int] = []

    def on_signal(number: int) -> None:
        if not signalled:
            print("stopping …", file=sys.stderr)  # noqa: T201
            task.cancel()
        signalled.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await task
    except asyncio.CancelledError:
        if signalled:
            raise Interrupted("interrupted") from None
        raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

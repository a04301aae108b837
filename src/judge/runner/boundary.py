"""Turns errors into one line on standard error and an exit code. A user's mistake never shows a traceback."""

import asyncio
import difflib
import errno
import re
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer
from pydantic import ValidationError

from shared.errors import ConfigError, WabeError
from shared.validation import first_problem

EXIT_DONE = 0
EXIT_LOST = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
# The beginning of an error on standard error.
ERROR = "error: "


class Interrupted(WabeError):
    """Ctrl-C or SIGTERM ended the command; everything it started is stopped."""


def run_command(app: typer.Typer, arguments: list[str], *, name: str) -> NoReturn:
    """Run a command line and exit the process with its exit code."""
    try:
        code = app(arguments, prog_name=name, standalone_mode=False)
    except WabeError as error:
        _exit_with(error)
    except typer.TyperException as error:
        if isinstance(error, typer.BadParameter) and isinstance(error.__cause__, ValidationError):
            error.message = first_problem(error.__cause__)
        message = error.format_message().replace("Value error, ", "")
        message += _suggestion(message)
        command = context.command_path if (context := getattr(error, "ctx", None)) else name
        # A command group without a command prints its help, whose line breaks must be kept.
        is_help = message.startswith("Usage:")
        text = message if is_help else f"{ERROR}{' '.join(message.split())} (see {command} --help)"
        print(text, file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_USAGE)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has closed it (`| head`), which is not an error.
        # At exit Python flushes standard output again, and would report the failure there.
        sys.stderr.close()
        sys.exit(EXIT_DONE)
    except OSError as error:
        # Commands explain problems with files that they expect; this reports all other files.
        _exit_with(_explained(error))
    sys.exit(code if isinstance(code, int) else EXIT_DONE)


def _suggestion(message: str) -> str:
    """A suggestion for a misspelt choice. The option parser itself only suggests commands and options."""
    match = re.search(r"'([^']*)' is not one of (.*)", message)
    close = difflib.get_close_matches(match[1], re.findall(r"'([^']*)'", match[2]), n=1) if match else []
    return f" Did you mean '{close[0]}'?" if close else ""


def _exit_with(error: WabeError) -> NoReturn:
    print(f"{ERROR}{error}", file=sys.stderr)  # noqa: T201
    if isinstance(error, Interrupted):
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(EXIT_USAGE if isinstance(error, ConfigError) else EXIT_LOST)


def _explained(error: OSError) -> WabeError:
    """An operating system error in one line. If it names a file, the user can fix it."""
    reason = error.strerror or str(error)
    if error.filename is None:
        # For example too many open files, which concerns no file that the user named.
        return WabeError(f"the system refused: {reason}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space, or choose another folder"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "check the permissions, or choose another file or folder"
    else:
        remedy = "check the path, or choose another file or folder"
    return ConfigError(f"{error.filename!s}: {reason}", remedy=remedy)


def run_interruptible(main: Coroutine[Any, Any, int], *, says: bool = True) -> int:
    """Run `main`; the first SIGINT or SIGTERM cancels it and lets it clean up, later ones are ignored.

    `says`: a line on standard error tells the user. Raises `Interrupted` if a signal ended it.
    """
    return asyncio.run(_until_signalled(main, says))


async def _until_signalled(main: Coroutine[Any, Any, int], says: bool) -> int:
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    signalled: list[int] = []

    def on_signal(number: int) -> None:
        if not signalled and says:
            print("stopping …", file=sys.stderr)  # noqa: T201
        if not signalled:
            task.cancel()
        signalled.append(number)

    # On Windows, asyncio has no signal handlers.
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

"""Reads PDF files of others in a separate process, which is limited in memory, time, pages and output."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from judge.plugins.downloads.pdf_program import LIMIT_S, MAX_OUTPUT_BYTES

_PROGRAM = Path(__file__).with_name("pdf_program.py")
# For the process to start and to end, on a busy machine.
_GRACE_S = 10.0
_LIBRARY = "pypdf"


class NotInstalled(Exception):
    """The library that reads PDF files is not installed."""


def pdf_text(data: bytes) -> str:
    """The text of a PDF, page after page. Raises `ValueError`, which says why it cannot be read, or `NotInstalled`."""
    if importlib.util.find_spec(_LIBRARY) is None:
        raise NotInstalled('PDF files cannot be read here: pip install "wabe[pdf]"')
    # Isolated from this process's environment and folder; a hostile file can reach nothing through either.
    command = [sys.executable, "-I", "-B", str(_PROGRAM)]
    environ = {"PATH": os.defpath, **({"SYSTEMROOT": root} if (root := _system_root()) else {})}
    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S + _GRACE_S,
            env=environ,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"it takes longer than {LIMIT_S:g} s") from None
    if done.returncode or len(done.stdout) > 8 * MAX_OUTPUT_BYTES:
        raise ValueError("reading it takes more memory or time than it may")
    reply = json.loads(done.stdout)
    if "problem" in reply:
        raise ValueError(str(reply["problem"]))
    return str(reply["text"])


def _system_root() -> str | None:
    # Python does not start on Windows without it; it is not a secret.
    return r"C:\Windows" if sys.platform == "win32" else None

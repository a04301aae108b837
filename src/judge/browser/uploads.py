"""Files for uploads: materialised in a private folder of the browser's, and chosen by name."""

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from judge.records.files import TaskFile
from judge.records.tools import FILE_NAMES

CHOOSERS = Path(__file__).with_name("uploads.cjs")
# The beginning of the folder's name. It is removed with everything else that a task leaves (`McpServer.renew`).
FOLDER_PREFIX = "uploads-"
_CHOOSERS = "page.context()[Symbol.for('wabe.uploads')]"
# The code that keeps file choosers open, before the first page is opened.
KEEP_CODE = f"async page => {{ {_CHOOSERS}.areKept = true; }}"
# The code that cancels an open file chooser.
DISMISS_CODE = f"async page => {_CHOOSERS}.dismiss()"
IS_OPEN = f"Boolean({_CHOOSERS}?.isOpen)"


class UploadFolder:
    """The task's files on this machine's disk, for its browser only."""

    def __init__(self, browser_folder: Path, files: Iterable[TaskFile]) -> None:
        self._paths: dict[str, Path] = {}
        # Only this user may read it, and nobody can guess its name or put a link there.
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=browser_folder))
        for each in files:
            path = folder / each.name
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o400)
            with os.fdopen(handle, "wb") as stream:
                stream.write(each.data or b"")
            self._paths[each.name] = path

    def with_paths(self, params: dict[str, Any]) -> dict[str, Any]:
        """An action's parameters with paths in place of the names. Raises `KeyError` for a name without a file."""
        return {**params, FILE_NAMES: [str(self._paths[name]) for name in params[FILE_NAMES]]}


def choose_code(paths: Sequence[str], limit_s: float) -> str:
    """The code that gives the open file chooser these files."""
    return f"async page => {_CHOOSERS}.choose({json.dumps(list(paths))}, {round(limit_s * 1000)})"

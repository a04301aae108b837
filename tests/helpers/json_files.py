"""JSON files that a test edits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change the value in a file in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))

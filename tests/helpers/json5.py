"""Reads JSON5, which Amber's manifests are written in."""

import json
import subprocess
from pathlib import Path
from typing import Any

from playwright._impl._driver import compute_driver_executable


def json5(path: Path) -> Any:
    """JSON5 is a subset of JavaScript, so the Node that comes with Playwright reads it."""
    node, _ = compute_driver_executable()
    program = "console.log(JSON.stringify((0, eval)('(' + require('fs').readFileSync(0, 'utf8') + '\\n)')))"
    done = subprocess.run([node, "-e", program], input=path.read_text(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

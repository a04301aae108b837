"""Programs of several parts: `python benchmarks/FOLDER PART [options]`. Without PART, it lists the parts."""

import ast
import os
import sys
from pathlib import Path


def run_part(folder: Path) -> None:
    """Become the part that the command line names."""
    parts = {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[a-z]*.py"))}
    if len(sys.argv) > 1 and (path := parts.get(sys.argv[1])):
        os.execv(sys.executable, [sys.executable, str(path), *sys.argv[2:]])
    described = {name: ast.get_docstring(ast.parse(path.read_text())) or "" for name, path in parts.items()}
    sys.exit("\n".join(f"{name:12} {text.splitlines()[0]}" for name, text in described.items()))

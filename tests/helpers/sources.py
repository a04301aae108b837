"""The modules of `src`, parsed once in a process: several tests read them."""

import ast
from functools import cache
from pathlib import Path

from helpers.paths import ROOT

SRC = ROOT / "src"
PATHS = sorted(SRC.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Not at import: every process imports the tests, and one runs them.
@cache
def trees() -> dict[str, ast.Module]:
    """The modules of `src`, by name."""
    return {module_name(path): ast.parse(path.read_text()) for path in PATHS}

"""What replaces names of the first version, and a file that only containers read."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from shared.files import read_file

# Scenarios, by the ends of their former names.
_SCENARIOS: Mapping[str, str] = MappingProxyType(
    {
        "default": "wabe run live plays 6 tasks on websites",
        "full": "wabe tasks import FILE writes a scenario of all tasks in Online-Mind2Web's JSON",
        "reliability": "wabe run demo plays the reference scripts, without a model",
    }
)
_VARIABLE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Z][A-Z0-9_]*)[ \t]*=[ \t]*[\"']?[^\s\"'#]", re.MULTILINE)
_ENV_FILE = ".env"


def replacement_of(scenario: str) -> str:
    """What replaces a scenario of the first version, as a remedy; empty for any other name."""
    path = Path(scenario)
    is_former = path.name == scenario or "web_browser" in path.parts
    name = path.stem.removeprefix("scenario").strip("_") or "default"
    return f"{_SCENARIOS[name]}; " if is_former and name in _SCENARIOS else ""


def unread_variables(environ: Mapping[str, str], folder: Path) -> str | None:
    """One line about a file `.env` in the folder with unset variables: it is read by containers only."""
    try:
        text = read_file(folder / _ENV_FILE, max_bytes=100_000).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    names = [name for name in dict.fromkeys(_VARIABLE.findall(text)) if not environ.get(name)]
    if not names:
        return None
    return f"{_ENV_FILE} is not read here ({', '.join(names[:5])}): run  set -a; . ./{_ENV_FILE}; set +a"

"""MiniWoB++ (the optional package `miniwob`): its pages, and tasks on them.

`judge.scenario.miniwob.site` serves the pages. The package's HTML is all that is used: the package itself is never
imported, so its driver and its arrays need not be installed.
"""

import importlib.util
import re
from pathlib import Path

from shared.errors import ConfigError

PORT = 9182
# The raw reward once the episode is over; before that, nothing.
REWARD = "WOB_DONE_GLOBAL ? WOB_RAW_REWARD_GLOBAL : null"
UTTERANCE = "(u => typeof u === 'string' ? u : u.utterance)(core.getUtterance())"
# Pages on which something happens by the wall clock, whatever the participant does.
TIMED = frozenset({"button-delay", "chase-circle", "moving-items", "simon-says", "stock-market"})
MAX_SEED = 1_000_000
_REGISTERED = re.compile(r'id="miniwob/([a-z0-9-]+)-v\d+"')


def package_folder() -> Path:
    """The folder of the package `miniwob`. Raises `ConfigError` when it is not installed."""
    found = importlib.util.find_spec("miniwob")
    folders = found.submodule_search_locations if found else None
    if not folders or not (Path(folders[0]) / "html" / "miniwob").is_dir():
        raise ConfigError("the package 'miniwob' is not installed", remedy="pip install 'wabe[miniwob]'")
    return Path(folders[0])


def page_names(package: Path) -> list[str]:
    """The tasks that have a page."""
    return sorted(path.stem for path in (package / "html" / "miniwob").glob("*.html"))


def registered_names(package: Path) -> list[str]:
    """The tasks that the package registers, which are those that results elsewhere are about."""
    return sorted(set(_REGISTERED.findall((package / "registration.py").read_text())) & set(page_names(package)))

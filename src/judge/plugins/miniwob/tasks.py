"""MiniWoB++ (the optional package `miniwob`): its pages, and tasks on them.

`judge.plugins.miniwob.site` serves the pages. Only the package's HTML is used: the package is never imported, so its
dependencies (a browser driver, NumPy) need not be installed.
"""

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge.plugins.miniwob.rewards import success_check
from judge.records.checks import SuccessRule
from judge.records.tasks import Task
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError
from shared.fields import did_you_mean, printable

ALL = "all"
PORT = 9182
# A page variable, defined once the episode has begun.
UTTERANCE = "WOB_UTTERANCE"
# Pages that change with the wall clock, whatever the participant does.
TIMED = frozenset({"button-delay", "chase-circle", "hover-shape", "moving-items", "simon-says", "stock-market"})
MAX_SEED = 1_000_000
_REGISTERED = re.compile(r'id="miniwob/([a-z0-9-]+)-v\d+"')


def package_folder() -> Path:
    """The folder of the package `miniwob`. Raises `ConfigError` when it is not installed."""
    spec = importlib.util.find_spec("miniwob")
    folders = spec.submodule_search_locations if spec else None
    if not folders or not (Path(folders[0]) / "html" / "miniwob").is_dir():
        raise ConfigError("the package 'miniwob' is not installed", remedy="pip install 'wabe[miniwob]'")
    return Path(folders[0])


def page_names(package: Path) -> list[str]:
    """The names of the tasks that have a page."""
    return sorted(path.stem for path in (package / "html" / "miniwob").glob("*.html"))


def registered_names(package: Path) -> list[str]:
    """The names of the tasks that the package registers, which published results are about."""
    return sorted(set(_REGISTERED.findall((package / "registration.py").read_text())) & set(page_names(package)))


class MiniwobTask(NamedTuple):
    """A task of the package with a seed, which always gives the same page and the same utterance."""

    name: str
    seed: int

    def address(self, port: int = PORT) -> str:
        """The address at which our site serves the page."""
        return f"http://127.0.0.1:{port}/miniwob/{self.name}.html?seed={self.seed}"

    @property
    def task_id(self) -> str:
        """The id of the scenario task."""
        return f"{self.name}_{self.seed}"

    def task(self, utterance: str, success: SuccessRule = "exact") -> Task:
        """The scenario task: the first end of an episode decides it and ends the attempt."""
        checks = (success_check(success),)
        return Task(task_id=self.task_id, website=self.address(), task=utterance, checks=checks)


def site_entry(port: int = PORT) -> SiteEntry:
    """The site that serves the pages. It is static because an episode's state is in the browser only."""
    command = f"python -m judge.plugins.miniwob.site --host 127.0.0.1 --port {port}"
    return SiteEntry(name="miniwob", endpoint=f"http://127.0.0.1:{port}", static=True, cmd=command)


def chosen_tasks(tasks: Sequence[str], seeds: str) -> tuple[MiniwobTask, ...]:
    """The named tasks (`click-test,click-link`, or `all` for those that the package registers), each with every seed.

    `seeds` is a number or a half-open range such as `0:5`. Raises `ConfigError`.
    """
    package = package_folder()
    known = page_names(package)
    names = [name.strip() for text in tasks for name in text.split(",") if name.strip()] or [ALL]
    if names == [ALL]:
        names = registered_names(package)
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"--tasks: unknown task {printable(unknown[0])}", remedy=did_you_mean(unknown[0], known))
    numbers = _numbers(seeds)
    return tuple(MiniwobTask(name, seed) for name in dict.fromkeys(names) for seed in numbers)


def _numbers(seeds: str) -> range:
    match = re.fullmatch(r"(\d{1,6})(?::(\d{1,7}))?", seeds, re.ASCII)
    first = int(match[1]) if match else 0
    end = int(match[2]) if match and match[2] else first + 1
    if match is None or not first < end <= MAX_SEED:
        raise ConfigError(f"--seeds {printable(seeds)} is not a range", remedy="write 3, or 0:5 for the seeds 0 to 4")
    return range(first, end)


def settings_for(tasks: Sequence[MiniwobTask]) -> dict[str, Any]:
    """The `[config]` of a scenario of these tasks.

    Both ways to act, because some pages (a canvas, a game board) have no element to refer to. Real time for all tasks
    as soon as one of the pages depends on the clock.
    """
    return {
        "max_steps": 30,
        "judge_model": "offline",
        "actions": "both",
        # The pages are made for a window of this size.
        "viewport_width": 600,
        "viewport_height": 700,
        **({"settle": "real-time"} if any(one.name in TIMED for one in tasks) else {}),
    }

"""Reads the utterances of MiniWoB++ tasks from their pages once begun, for `wabe tasks import miniwob`."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.browser.session import Browser
from judge.config import RunConfig
from judge.records.tasks import Task
from judge.runner.launch import child_environ, launched, site_member
from judge.scenario.miniwob import UTTERANCE, MiniwobTask, package_folder, site_entry
from judge.scenario.miniwob.rewards import BEST_REWARD, SuccessRule
from judge.sites import NetworkPolicy
from shared.a2a.serving import listen
from shared.errors import WabeError
from shared.models import Page
from shared.settings import Settings

# So that the next page starts a new episode.
_AFRESH = "localStorage.clear()"
_TRIES = 50
_PAUSE_S = 0.1


class Imported(NamedTuple):
    """Tasks, and by their ids the best raw reward of those on which 1 cannot be reached."""

    tasks: tuple[Task, ...]
    unreachable: Mapping[str, float]


async def with_utterances(
    chosen: Sequence[MiniwobTask], settings: Settings, success: SuccessRule = "exact"
) -> Imported:
    """The tasks, each with its page's utterance. Opens every page in the judge's own browser.

    Raises `ConfigError` without the package or a browser, `WabeError` for a page that does not begin.
    """
    package_folder()
    browser_settings = BrowserSettings.from_config(RunConfig(), settings)
    with listen("127.0.0.1", 0) as sock:
        # Free at this moment; the site's server binds it again.
        port = sock.getsockname()[1]
    site = site_member(site_entry(port))
    with TemporaryDirectory(prefix="wabe-") as folder:
        environ = child_environ(settings, output_dir=Path(folder), participant_model=None)
        async with (
            launched([site], scenario_dir=Path(folder), environ=environ, logs=Path(folder)),
            browser_pool(browser_settings) as pool,
            pool.browser(NetworkPolicy.for_websites([site.endpoint])) as browser,
        ):
            tasks = []
            unreachable: dict[str, float] = {}
            for one in chosen:
                said, best = await begun(browser, one, port)
                tasks.append(one.task(said, success))
                unreachable |= {} if best is None or best >= 1 else {one.task_id: best}
            return Imported(tuple(tasks), unreachable)


def unreachable_notes(unreachable: Mapping[str, float], success: SuccessRule) -> list[str]:
    """A note for each task whose page gives no raw reward of 1, wherever one clicks, if only that is a success."""
    if success != "exact":
        return []
    return [
        f"task {task_id} cannot be passed: the best raw reward of any click is {best:.6f}"
        " (--success positive counts every reward above 0)"
        for task_id, best in unreachable.items()
    ]


async def begun(browser: Browser, one: MiniwobTask, port: int) -> tuple[str, float | None]:
    """The task as stated by its page, and the best raw reward if the page's rewards are gradual.

    Raises `WabeError` for a page that does not begin.
    """
    url = one.address(port)
    page = Page(url=url, title="", snapshot="")
    await browser.open(url)
    for _ in range(_TRIES):
        (said,) = await browser.probe(page, [UTTERANCE])
        if isinstance(said.value, str) and said.value.strip():
            best, _ = await browser.probe(page, [BEST_REWARD.get(one.name, "null"), _AFRESH])
            if best.error is not None:
                raise WabeError(f"{url}: the best reward is unknown: {best.error}")
            is_number = isinstance(best.value, int | float) and not isinstance(best.value, bool)
            return said.value, float(best.value) if is_number and best.value is not None else None
        await asyncio.sleep(_PAUSE_S)
    raise WabeError(f"{url} does not begin: {said.error or 'it says nothing'}")

"""Reads the utterances of MiniWoB++ tasks from their running pages, for `wabe tasks import miniwob`."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.browser.session import Browser
from judge.commands.findings import Finding
from judge.config import RunConfig
from judge.network.policy import NetworkPolicy
from judge.plugins.miniwob.rewards import BEST_REWARD
from judge.plugins.miniwob.tasks import UTTERANCE, MiniwobTask, chosen_tasks, package_folder, settings_for, site_entry
from judge.records.checks import SuccessRule
from judge.records.tasks import Task
from judge.runner.launch import child_environ, launched, site_member
from judge.scenario.importers import ImportedTasks, Importer, ImportRequest
from shared.a2a.serving import listen
from shared.errors import ConfigError, WabeError
from shared.fields import printable
from shared.models import Page
from shared.settings import Settings

# So that the next page starts a new episode.
_AFRESH = "localStorage.clear()"
_TRIES = 50
_PAUSE_S = 0.1


class LoadedTasks(NamedTuple):
    """Tasks, and by their ids the best raw reward of those on which 1 cannot be reached."""

    tasks: tuple[Task, ...]
    unreachable: Mapping[str, float]


async def with_utterances(
    selection: Sequence[MiniwobTask], settings: Settings, success: SuccessRule = "exact"
) -> LoadedTasks:
    """The tasks, each with its page's utterance. Opens every page in the judge's browser.

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
            for one in selection:
                utterance, best = await start_task(browser, one, port)
                tasks.append(one.task(utterance, success))
                unreachable |= {} if best is None or best >= 1 else {one.task_id: best}
            return LoadedTasks(tuple(tasks), unreachable)


def unreachable_notes(unreachable: Mapping[str, float], success: SuccessRule) -> list[str]:
    """A note for each task on which no click gives a raw reward of 1, if nothing less is a success."""
    if success != "exact":
        return []
    return [
        f"task {task_id} cannot be passed: the best raw reward of any click is {best:.6f}"
        " (--success positive counts every reward above 0)"
        for task_id, best in unreachable.items()
    ]


async def start_task(browser: Browser, one: MiniwobTask, port: int) -> tuple[str, float | None]:
    """The task as stated by its page, and the best raw reward if the page's rewards are gradual.

    Raises `WabeError` for a page that does not begin.
    """
    url = one.address(port)
    page = Page(url=url, title="", snapshot="")
    await browser.open(url)
    for _ in range(_TRIES):
        (utterance,) = await browser.probe(page, [UTTERANCE])
        if isinstance(utterance.value, str) and utterance.value.strip():
            best, _ = await browser.probe(page, [BEST_REWARD.get(one.name, "null"), _AFRESH])
            if best.error is not None:
                raise WabeError(f"{url}: the best reward is unknown: {best.error}")
            is_number = isinstance(best.value, int | float) and not isinstance(best.value, bool)
            return utterance.value, float(best.value) if is_number and best.value is not None else None
        await asyncio.sleep(_PAUSE_S)
    raise WabeError(f"{url} does not begin: {utterance.error or 'it says nothing'}")


def import_tasks(request: ImportRequest) -> ImportedTasks:
    """The tasks that `wabe tasks import miniwob` selects. Raises `ConfigError`."""
    if request.success not in (None, "exact", "positive"):
        raise ConfigError(f"--success: unknown rule {printable(request.success)}", remedy="use exact or positive")
    rule = cast("SuccessRule", request.success or "exact")
    pages = chosen_tasks(request.names, request.seeds or "0")[: request.limit]
    tasks, unreachable = asyncio.run(with_utterances(pages, request.settings, rule))
    return ImportedTasks(tasks, settings_for(pages), [site_entry()], unreachable_notes(unreachable, rule))


def examine(_settings: Settings) -> Finding:
    """Whether MiniWoB++ can be played."""
    try:
        return Finding("ok", "miniwob", str(package_folder()))
    except ConfigError as error:
        return Finding("note", "miniwob", f"{error}; only MiniWoB++ needs it")


IMPORTER = Importer(run=import_tasks, takes=("names", "seeds", "success"), check_kind="probe")

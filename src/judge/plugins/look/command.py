"""`wabe look`: shows a page as the judge sees it, for writing checks and replay scripts without a run."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from judge.browser.chromium import BrowserSettings
from judge.browser.pool import browser_pool
from judge.browser.session import Browser
from judge.browser.settle import settle_mode
from judge.commands import Command
from judge.commands.states import load_state
from judge.config import RunConfig
from judge.evaluators.matching import elements_like
from judge.network.policy import NetworkPolicy
from judge.records.elements import STATES, Element, parse_element
from judge.records.notices import notice_text
from judge.records.sites import origin_of
from judge.records.tasks import Task
from judge.scenario.logins import own_part
from judge.scenario.models import ONE_TASK
from shared.errors import ConfigError, WabeError
from shared.fields import Invalid, printable
from shared.files import write_atomic, write_errors
from shared.models import Page
from shared.settings import Settings
from shared.snapshot import FIELDS, REF, Node, Snapshot, as_shown, parse_snapshot
from shared.text import counted, one_line, plain

# Roles whose content is not a name.
_CONTAINERS = frozenset(
    """generic text document application main banner contentinfo navigation complementary form search region list table
    rowgroup row grid treegrid tree group iframe figure article feed dialog tablist tabpanel menu menubar toolbar
    listbox radiogroup none presentation""".split()
)
# Longer names would be truncated, and match nothing.
_MAX_NAME_CHARS = 100
_MAX_LISTED = 10


def look(
    url: Annotated[str, typer.Argument(help="The page's address.", metavar="URL")],
    storage_state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A log-in, as `wabe tasks login` saves it.")
    ] = None,
    click: Annotated[
        list[str] | None,
        typer.Option(metavar="ELEMENT", help='Click this first, as in a check: link "Orders", or e12; repeatable.'),
    ] = None,
    screenshot: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the screenshot.")] = None,
    boxes: Annotated[bool, typer.Option("--boxes", help="Show where each element is.")] = False,
) -> None:
    """Print a page's snapshot, its elements as checks and scripts name them, and a screenshot's path."""
    if origin_of(url) is None:
        raise ConfigError(f"{printable(url)} is not an address", remedy="write it like https://www.example.org/")
    clicks = [(text, _parse_target(text)) for text in click or ()]
    task = ONE_TASK.validate_python({"task_id": "look", "website": url, "task": "look"})
    if storage_state is not None:
        task = task.model_copy(update={"storage_state": own_part(load_state(storage_state), url)[0]})
    page = asyncio.run(_observe(task, clicks, Settings.from_environ()))
    for line in _lines(page, boxes=boxes):
        typer.echo(line)
    if page.screenshot is not None:
        path = screenshot or Path(tempfile.mkdtemp(prefix="wabe-look-")) / "page.jpg"
        with write_errors(path, "choose another --screenshot"):
            write_atomic(path, page.screenshot)
        typer.echo(f"\nScreenshot: {path}")


def _parse_target(text: str) -> Element | str:
    """The element as in a check, or a reference."""
    if REF.fullmatch(text):
        return text
    try:
        return parse_element(text)
    except Invalid as error:
        raise ConfigError(f"--click {printable(text)}: {error.problem}", remedy=error.remedy) from None


async def _observe(task: Task, clicks: Sequence[tuple[str, Element | str]], settings: Settings) -> Page:
    config = RunConfig()
    async with (
        browser_pool(BrowserSettings.from_config(config, settings)) as pool,
        pool.browser(NetworkPolicy.for_websites([task.website])) as browser,
    ):
        await browser.log_in(task)
        await browser.open(task.website, await settle_mode(config.settle, task.website))
        page = await browser.observe()
        for text, target in clicks:
            page = await _clicked(browser, page, text, target)
        return page


async def _clicked(browser: Browser, page: Page, text: str, target: Element | str) -> Page:
    snapshot = parse_snapshot(page.snapshot)
    if isinstance(target, str):
        nodes = list(filter(None, [snapshot.by_ref(target)]))
    else:
        nodes = [node for node in elements_like(snapshot, target) if node.ref is not None]
    if len(nodes) != 1:
        problem = (
            f"{counted(len(nodes), 'element')} on {one_line(page.url)}" if nodes else f"not on {one_line(page.url)}"
        )
        candidates = [f"{node.ref}: {_as_in_checks(snapshot, node)}" for node in nodes[:_MAX_LISTED]]
        remedy = f"name one by its reference: {'; '.join(candidates)}" if nodes else "see the elements without --click"
        raise ConfigError(f"--click {text}: {problem}", remedy=remedy)
    done = await browser.act("browser_click", {"target": nodes[0].ref, "element": text})
    if not done.ok:
        raise WabeError(f"--click {text}: {one_line(done.text, 500)}")
    return await browser.observe()


def _lines(page: Page, *, boxes: bool) -> list[str]:
    snapshot = parse_snapshot(page.snapshot)
    status = f" (HTTP status {page.http_status})" if page.http_status else ""
    lines = [f"Page: {page.url}{status}", f"Title: {one_line(page.title)}"]
    lines += [f"Notice: {notice_text(page.notice)}"] if page.notice else []
    lines += [f"Dialog: {one_line(page.dialog)}"] if page.dialog else []
    lines += [f"Not allowed to connect to: {one_line(address)}" for address in page.refused]
    lines += [f"Vanished: {one_line(text)}" for text in page.vanished]
    lines += ["", as_shown(page.snapshot, boxes=boxes), "", "Elements, as checks and scripts name them:"]
    counts = Counter(_as_in_checks(snapshot, node) for node in snapshot.nodes if _is_listed(snapshot, node))
    # In page order: a counter keeps the order of first occurrence.
    return lines + [f"  {line}{f'  ({count} of them)' if count > 1 else ''}" for line, count in counts.items()]


def _as_in_checks(page: Snapshot, node: Node) -> str:
    """The element as an `element` check names it."""
    name, value = plain(page.name_of(node)), plain(page.value_of(node))
    states = [("level", str(node.level))] if node.level is not None else []
    states += [(key, value) for key, value in node.states.items() if key in STATES and key != "active"]
    words = [node.role]
    if name:
        words.append(json.dumps(name, ensure_ascii=False))
    words += [f"[{key}]" if value == "true" else f"[{key}={value}]" for key, value in states]
    # Anything but a field's value is already part of the name.
    return " ".join(words) + (f": {value}" if value and node.role in FIELDS else "")


def _is_listed(page: Snapshot, node: Node) -> bool:
    if node.name or node.role in FIELDS:
        return len(node.name) <= _MAX_NAME_CHARS and node.role != "text"
    return node.role not in _CONTAINERS and 0 < len(page.name_of(node)) <= _MAX_NAME_CHARS


COMMAND = Command(
    look,
    (
        "wabe look https://www.example.org/",
        "wabe look http://127.0.0.1:8080/ --storage-state state.json --click 'link \"Orders\"'",
    ),
)

"""Opens odd pages on the task's own site, and checks that none of them ends the attempt.

    python benchmarks/odd_pages.py [--settle page-time|real-time] [--only WORD]… [--markdown FILE] [--jobs N]

Each row is one attempt with the default limits in a real browser: the participant opens the page, receives an
observation, goes back to the site's first page, opens its goal and finishes. It passes if the attempt ends with
`finished` at the goal, regardless of the page. Run it on a quiet machine. Exit code 1 if a row fails.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.browser.hostile_site import hostile_site
from helpers.browser.odd_pages import ODD_PAGES, odd_site_pages
from judge.browser.chromium import BrowserSettings
from judge.browser.pool import BrowserPool, browser_pool
from judge.config import RunConfig
from judge.episode.episode import Episode, EpisodeEnd
from judge.network.attempt import network_of
from judge.records.tasks import Task
from judge.store.layout import TaskStore
from judge.trajectory.redaction import Redaction
from shared.concurrency import for_each
from shared.models import Action, ObservationMessage
from shared.protocol import parse_observation, render_reply
from shared.settings import Settings


@dataclass
class Visitor:
    """A participant that opens a page, and then does the task."""

    website: str
    page: str
    messages: list[ObservationMessage] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)

    async def send(self, text: str, *, image: bytes | None, media_type: str, context_id: str) -> str:
        self.messages.append(parse_observation(text, image, media_type))
        self.asked_at.append(time.monotonic())
        page = self.messages[-1].page
        if len(self.messages) == 1:
            return reply("browser_navigate", url=self.page)
        if page.dialog is not None and len(self.messages) < 5:
            return reply("browser_handle_dialog", accept=True)
        if 5 <= len(self.messages) < 8 and page.url != f"{self.website}goal":
            # The page prevents navigation.
            return reply("browser_tabs", action="new", url=f"{self.website}goal")
        if page.url != f"{self.website}goal" and len(self.messages) < 14:
            return reply("browser_navigate", url=f"{self.website}goal")
        return reply("finish", answer="done")

    @property
    def odd_s(self) -> float:
        """Seconds from opening the page to the request after it was observed."""
        return self.asked_at[1] - self.asked_at[0] if len(self.asked_at) > 1 else 0.0


def reply(tool: str, **params: object) -> str:
    return render_reply(Action(tool=tool, params=params))


@dataclass(frozen=True)
class Row:
    name: str
    end: EpisodeEnd
    visitor: Visitor

    @property
    def holds(self) -> bool:
        seen = self.visitor.messages
        return self.end.stop_reason == "finished" and seen[-1].page.url == f"{self.visitor.website}goal"

    def cells(self) -> tuple[str, ...]:
        odd = self.visitor.messages[1] if len(self.visitor.messages) > 1 else None
        size_text = "-" if odd is None else f"{len(odd.page.snapshot):,}"
        return (
            self.name,
            f"{self.visitor.odd_s:.1f}",
            size_text,
            "yes" if odd and odd.page.screenshot else "no",
            (getattr(odd, "notice", None) or odd.feedback or "")[:90] if odd else "",
            f"{self.end.stop_reason}{f': {self.end.error}' if self.end.error else ''}"[:160],
            "yes" if self.holds else "NO",
        )


HEADINGS = ("page", "seconds", "snapshot", "screenshot", "notice", "end", "holds")


async def play(name: str, website: str, pool: BrowserPool, config: RunConfig, folder: Path) -> Row:
    visitor = Visitor(website, f"{website}odd/{name}")
    task = Task(task_id=name, website=website, task="Open the goal.")

    @asynccontextmanager
    async def connected() -> AsyncIterator[Visitor]:
        yield visitor

    store = TaskStore(folder / name)
    store.begin()
    episode = Episode(
        task,
        config,
        pool.browser,
        connected,
        store,
        observed=lambda _: None,
        stepped=lambda _: None,
        redaction=Redaction(salt=b"benchmark"),
        network=network_of(task, config),
    )
    return Row(name, await episode.run(), visitor)


async def visit(names: Sequence[str], settle: str, jobs: int) -> list[Row]:
    config = RunConfig.model_validate({"settle": settle})
    settings = BrowserSettings.from_config(config, Settings.from_environ())
    rows: dict[str, Row] = {}
    with hostile_site(odd_site_pages()) as site, tempfile.TemporaryDirectory() as folder:
        async with browser_pool(settings) as pool:

            async def visited(name: str) -> None:
                rows[name] = row = await play(name, site.url, pool, config, Path(folder))
                print(f"{len(rows)}/{len(names)}", *row.cells(), sep=" | ", file=sys.stderr, flush=True)

            await for_each(names, visited, at_once=jobs)
    return [rows[name] for name in names]


def print_table(rows: Sequence[Row], title: str) -> None:
    table = Table(title=title, title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row.cells())
    Console(width=200 if not sys.stdout.isatty() else None, markup=False).print(table)


def markdown(rows: Sequence[Row]) -> str:
    cells = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in each) + " |\n" for each in cells)


def main() -> int:
    """Visit the pages, print the outcomes, and return whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--settle", default="page-time", choices=["page-time", "real-time"])
    parser.add_argument("--only", nargs="*", default=[], help="only pages with one of these words in their names")
    parser.add_argument("--jobs", type=int, default=1, help="attempts at once; more than one disturbs the timings")
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    options = parser.parse_args()
    names = [name for name in ODD_PAGES if not options.only or any(word in name for word in options.only)]
    rows = asyncio.run(visit(names, options.settle, options.jobs))
    print_table(rows, f"odd pages, {options.settle}")
    if options.markdown:
        options.markdown.write_text(markdown(rows))
    passed_count = sum(row.holds for row in rows)
    print(f"{passed_count} of {len(rows)} attempts ended at the goal")
    return 0 if passed_count == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())

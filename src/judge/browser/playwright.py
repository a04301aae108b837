"""Drives a real browser through Playwright's MCP server; one server serves one task after another.

The server itself is in `judge.browser.mcp_server`.
"""

import asyncio
import base64
import binascii
import json
import logging
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from playwright._impl._driver import compute_driver_executable

from judge.browser import attacks, downloads, fetches, fonts, lost_refs, points, probes, requests, responses, uploads
from judge.browser.bot_walls import WALL_STATUSES, wall_on
from judge.browser.console import ConsoleLog
from judge.browser.contents import ContentsLog
from judge.browser.mcp_server import McpServer, NoAnswer, PageTrouble, TabCrashed
from judge.browser.own_tools import own_tools
from judge.browser.provenance import mark, read_documents
from judge.browser.requests import NavigationLog, RequestLog
from judge.browser.responses import ToolResponse
from judge.browser.session import Hop, TakenDownload, ToolResult, Traffic
from judge.browser.settle import (
    AWAKE_S,
    GLANCE_CODE,
    REPLACE_CODE,
    UNBLOCK_CODE,
    WAKE_CODE,
    Report,
    SettleMode,
    begin_code,
    beside_code,
    click_code,
    drag_code,
    hold_code,
    open_code,
    read_beside,
    read_glance,
    read_report,
    settle_code,
)
from judge.browser.since import BLANK, MARK_TRIES, ChangesSince
from judge.config import RunConfig
from judge.network.guard import Guard
from judge.network.wire import CLOCK, MARK
from judge.records.access import HttpCredentials, StorageState
from judge.records.sites import Site
from judge.records.steps import ProbeValue
from judge.records.tasks import Task
from judge.records.tools import FILE_DROP, FILE_NAMES, FILE_UPLOAD, HOLD, saves_link, tool_of, writes
from judge.trajectory import fetched
from shared.errors import InternalFault, PageHangs, SiteFault, SiteUnreachable, WabeError, is_shortage
from shared.models import DocumentKind, Notice, Page, Tab, ToolSpec
from shared.patience import cpu_share, patience

# A page may navigate, or open a dialog, between its snapshot and its screenshot.
_OBSERVE_TRIES = 5
# A page may open one file chooser after another.
_RUN_TRIES = 4
_WHEEL = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
# How often an action that a slow page has not answered is tried again.
_SLOW_TRIES = 3
# The server's wording.
_TIMEOUT = re.compile(r"Timeout [\d.]+ms exceeded")
# Also where something prevents an action, it is tried for a while (`server_tab.cjs`).
_RAN_OUT = re.compile(rf"{_TIMEOUT.pattern}|The element cannot be used: ")
_UNREACHABLE = re.compile(rf"net::ERR_\w+|{_TIMEOUT.pattern}")
# Sets cookies, local storage and HTTP authentication, which end with the context and so with the task. Credentials are
# sent only to their own origin. Errors are replaced because the server's own would show values.
_LOG_IN = """async page => {
  const [state, credentials] = %s;
  try {
    if (state) await page.context().setStorageState(state);
    const bound = credentials.map(each => ({ ...each, origin: new URL(each.origin).origin }));
    if (bound.length) await page.context().setHTTPCredentials(bound);
  } catch {
    throw new Error("refused");
  }
}"""
_FRAME_URLS = "async page => page.frames().slice(0, 100).map(frame => frame.url().slice(0, 2000))"
# Returns the result as an error, because the server answers errors at once. Before returning a result it waits by
# itself: up to 5 s for the page's requests, up to 10 s for a new document's load event. Settling already does that.
_RUN = """async page => {
  const result = await (%s)(page);
  throw new Error("wabe: " + JSON.stringify(result ?? null));
}"""
_RETURNED = "### Error\nError: wabe: "
# The fraction of an observation's time that settling may take, so that enough is left to stop a navigation; and the
# fraction after which a page with a running script is given up.
_SETTLING = 0.4
_PATIENCE = 0.75
# For an empty tab to take the place of a page. The second try, after the page's process was killed, has twice as long.
_REPLACE_S = 30.0
_log = logging.getLogger(__name__)


class _TimedOut(PageTrouble):
    """The browser gave no snapshot or screenshot in time. `page` is what it did give."""

    def __init__(self, page: Page | None) -> None:
        super().__init__("no snapshot in time")
        self.page = page


def replace_limit_s(config: RunConfig) -> float:
    """How long the first of two tries may take to put an empty tab in the place of a page; both take half of a step."""
    return min(_REPLACE_S, config.step_timeout_s / 6)


class PlaywrightBrowser:
    """A `judge.browser.session.Browser`: what a page shows and what an action does, through the server's tools."""

    def __init__(self, server: McpServer, tools: tuple[ToolSpec, ...], guard: Guard | None = None) -> None:
        self.folder = server.folder
        self.tools = tools
        self.versions = {
            "mcp_server": server.version,
            "browser": server.browser_version,
            "browser_mode": server.settings.mode,
            **server.settings.confinement,
        }
        self._server = server
        self._own_tools = own_tools(server.settings.config)
        self._guard = guard
        self._navigations = NavigationLog(server.folder)
        self._requests = RequestLog(server.folder)
        # The task that it plays, once it has logged in.
        self.task_id = ""
        self._own_sites: tuple[str, ...] = ()
        self._site: Site | None = None
        self._downloads = downloads.DownloadLog(server.folder)
        self._uploads: uploads.UploadFolder | None = None
        # With the address on which the first page was found.
        self._landed_site: Site | None = None
        # What the judge puts into the pages.
        self._attack: dict[str, Any] | None = None
        # Whether the guard delays the pages' requests.
        self._is_slow = False
        self._console = ConsoleLog(server.folder)
        self._contents = ContentsLog(server.folder)
        # Paths of this host that the server's messages may contain.
        self._hidden = (str(server.folder), str(Path(compute_driver_executable()[0]).parent))
        self._since = ChangesSince()
        # The participant's text may be shown as a link, so only links from before its first action count.
        self._collects_links = True

    async def log_in(self, task: Task) -> None:
        """See `judge.browser.session.Browser`."""
        self.task_id = task.task_id
        self._own_sites = self._server.settings.config.sites.declared(task)
        self._site = self._server.settings.config.sites.of(task)
        self._know_site()
        self._attack = attacks.inserted_in(task, self._own_sites)
        self._is_slow = bool(task.disturbed and task.disturbed.delay_s)
        state = task.storage_state.to_json() if isinstance(task.storage_state, StorageState) else None
        credentials = [
            {"username": each.username, "password": each.password, "origin": each.origin or task.website}
            for each in task.http_credentials
            if isinstance(each, HttpCredentials)
        ]
        if task.files:
            self._uploads = await asyncio.to_thread(uploads.UploadFolder, self.folder, task.files)
        if state is None and not credentials:
            return
        try:
            answer = await self._run(_LOG_IN % json.dumps([state, credentials]))
        except PageTrouble as error:
            raise self._server.fail(f"the browser does not answer: {error}") from None
        if not answer.ok:
            # Without the browser's message, which may repeat the secrets.
            raise self._server.fail("the browser refused the task's storage_state or http_credentials")

    def _know_site(self, landed: str = "") -> None:
        """Tell the guard which sites are the task's; `landed` is the address of the first observed page."""
        if self._site is None:
            return
        self._landed_site = self._site.with_home(landed)
        if self._guard:
            self._guard.wire.site = self._landed_site

    async def open(self, url: str, settle: SettleMode = "real-time", clock_ms: int | None = None) -> None:
        """See `judge.browser.session.Browser`."""
        with _opening(url):
            answer = await self._run(requests.begin_code((url, *self._own_sites)))
            if answer.ok:
                has_own = self._server.settings.has_own_clipboard
                slow = {"clock": CLOCK, "own": self._marked()} if self._is_slow else None
                begin = begin_code(settle, clock_ms, self._attack, has_own_clipboard=has_own, slow=slow)
                answer = await self._run(_in_turn(begin, *self._file_codes()))
            if answer.ok:
                answer = await self._go(url)
        await self._require_opened(answer, url)
        # From now on an empty page means a crash: a tab may crash before its first observation.
        self._since.url = url

    def _file_codes(self) -> Iterator[str]:
        """The codes that let the browser take downloads, and keep file choosers open for a task with files."""
        if self._uploads:
            yield uploads.KEEP_CODE
        # A hosted browser would take them on the machine it runs on.
        if self._server.settings.hosted is None and not self._downloads.has_begun:
            folder = Path(tempfile.mkdtemp(prefix=downloads.FOLDER_PREFIX, dir=self.folder))
            self._downloads.begin(folder)
            yield downloads.begin_code(folder)

    async def open_tabs(self, urls: Sequence[str]) -> None:
        """See `judge.browser.session.Browser`."""
        for url in urls:
            with _opening(url):
                answer = await self._open_tab(url)
            await self._require_opened(answer, url)
        if urls:
            with _opening(urls[0]):
                await self._server.call("browser_tabs", {"action": "select", "index": 0})
        # So that the first observation does not follow these as newly opened tabs.
        self._since.tabs += len(urls)

    async def _open_tab(self, url: str) -> ToolResponse:
        answer = await self._server.call("browser_tabs", {"action": "new"})
        return await self._go(url) if answer.ok else answer

    async def _go(self, url: str) -> ToolResponse:
        """Open an address. Not with the server's tool, which waits for events that some pages never fire."""
        return await self._run(open_code(url, self._server.settings.config.navigation_timeout_s))

    async def _require_opened(self, answer: ToolResponse, url: str) -> None:
        if answer.ok:
            return
        text = self._clean(answer.text)
        # An error of `browserType.launch` or `connect`: there is no browser, even if the text mentions a timeout.
        if "browserType." in text or not (cause := _UNREACHABLE.search(text)):
            raise self._server.fail(f"the browser could not open a page: {text[:500]}")
        failure = self._guard.failure_at(url) if self._guard else None
        await self._require_upstream()
        # For example, too many open files, which is not the site's fault.
        if failure is not None and is_shortage(failure):
            raise InternalFault(f"this machine ran out of a resource: {failure.strerror}")
        # The guard knows why; the browser only sees that the guard gave it no answer.
        why = cause[0] if failure is None else failure.strerror or "no answer"
        raise SiteUnreachable(f"{url[:200]} cannot be reached: {why}", remedy="check the address and the network")

    async def observe(self) -> Page:
        """See `judge.browser.session.Browser`."""
        page = await self._observed_or_replaced()
        if not self._since.snapshot:
            self._know_site(page.url)
        await self._require_upstream()
        # No other page can be a wall, and listing the frames costs a call.
        if page.http_status in WALL_STATUSES:
            page = page.model_copy(update={"wall": wall_on(page, await self._frames())})
        notice = self._since.notice(page, self._server.settings.config.navigation_timeout_s)
        facts = {
            "notice": notice,
            "refused": self._take_refusals(),
            **self._since.as_fields(),
            **await self._seen_by_tools(page),
        }
        self._since = self._since.after(page)
        return page.model_copy(update=facts)

    async def _seen_by_tools(self, page: Page) -> dict[str, Any]:
        """What tools of the judge's own know of a page; nothing of one that cannot be observed as usual."""
        facts: dict[str, Any] = {}
        if self._landed_site is not None and page.snapshot:
            with suppress(PageTrouble):
                for tool in self._own_tools.values():
                    facts |= await tool.seen(self._run, page, self._landed_site)
        return facts

    async def _require_upstream(self) -> None:
        """Raises `BrowserFault` if the operator's proxy no longer works."""
        if self._guard and (problem := await self._guard.upstream_problem()):
            raise self._server.fail(problem)

    async def _observed_or_replaced(self) -> Page:
        limit_s = self._server.settings.config.call_timeout_s
        if self._since.condemned is None:
            try:
                async with patience(limit_s):
                    return await self._observed(limit_s)
            except (TimeoutError, PageTrouble):
                self._since.condemned = self._since.condemned or Notice(code="tab_took_too_long", seconds=limit_s)
        return await self.replace_tab(self._since.condemned)

    async def replace_tab(self, why: Notice) -> Page:
        """See `judge.browser.session.Browser`."""
        limit_s = replace_limit_s(self._server.settings.config)
        page = await self._fresh(limit_s)
        if page is None:
            # The page keeps the browser's server from answering, for example by a flood of messages.
            await asyncio.to_thread(self._server.kill_pages)
            page = await self._fresh(2 * limit_s)
        if page is None:
            raise self._server.fail("a page hangs, and its tab cannot be replaced", PageHangs)
        self._since.replaced(page)
        return page.model_copy(update={"notice": why})

    async def _fresh(self, limit_s: float) -> Page | None:
        """An empty tab that has replaced the one in front; `None` if that takes too long."""
        try:
            async with patience(limit_s):
                if not await self._replace(limit_s / 2):
                    # The tab in front cannot run code, for example because a dialog is open in it. The new one can, and
                    # is there even if the call is not answered.
                    with suppress(TimeoutError, PageTrouble):
                        async with patience(limit_s / 6):
                            await self._server.call("browser_tabs", {"action": "new"})
                    await self._replace(limit_s / 2)
                return responses.parse_page((await self._server.call("browser_snapshot", {})).text)
        except (TimeoutError, PageTrouble, responses.UnreadableResponse):
            return None

    async def _replace(self, limit_s: float) -> bool:
        try:
            async with patience(limit_s):
                answer = await self._run(REPLACE_CODE)
                if answer.ok:
                    answer = await self._server.call("browser_tabs", {"action": "select", "index": int(answer.text)})
                return answer.ok
        except (TimeoutError, PageTrouble):
            return False

    async def _settle(self) -> None:
        limit_s = self._server.settings.config.call_timeout_s
        settling = settle_code(_SETTLING * limit_s, _PATIENCE * limit_s, links=self._collects_links)
        answer = await self._run(settling)
        if not answer.ok and responses.modal_state(answer.text) is None:
            _log.warning("a page is observed without waiting for it: %s", self._clean(answer.text)[:300])
        self._since.settled(read_report(answer.text))

    async def _frames(self) -> list[str]:
        """The addresses of the page's frames; empty if an open dialog prevents reading them."""
        try:
            answer = await self._run(_FRAME_URLS)
        except PageTrouble:
            return []
        return responses.listed_texts(answer.text) if answer.ok else []

    async def _observed(self, limit_s: float) -> Page:
        """The page, without a snapshot if there is none. Raises `PageTrouble` if the tab must be replaced."""
        until, timeouts = time.monotonic() + limit_s / 2, 0
        self._since.marks_left = MARK_TRIES
        for _ in range(_OBSERVE_TRIES):
            try:
                page = await self._look()
            except TabCrashed:
                # The next call starts with an empty tab.
                continue
            except _TimedOut as error:
                # Retry once only, because each attempt takes the full timeout; more often if the machine starves.
                timeouts += cpu_share() == 1
                if timeouts > 1 or error.page is None:
                    is_lost = self._since.has_lost_document
                    return error.page or await self._glance(Notice(code="keeps_changing" if is_lost else "no_snapshot"))
                continue
            if page is not None:
                return page
            if time.monotonic() > until:
                break
        return await self._glance(Notice(code="keeps_changing"))

    async def _look(self) -> Page | None:
        """The page; `None` if it changed meanwhile and must be observed again."""
        if not self._since.is_settled:
            await self._settle()
        self._since.is_settled = False
        if self._since.condemned is not None:
            raise NoAnswer
        reports = self._since.reports
        if reports and (kind := _kind_without_snapshot(reports[-1])):
            return await self._glance(Notice(code="cannot_be_shown", kind=kind))
        if reports and reports[-1].restless:
            return await self._glance(Notice(code="keeps_changing"))
        answer = await self._snapshot()
        if state := responses.modal_state(answer.text):
            if not responses.is_file_chooser(state):
                return await self._dialog_page(state)
            await self._cancel_chooser()
            return None
        if not answer.ok:
            if _TIMEOUT.search(answer.text):
                raise _TimedOut(None)
            return None
        page = await self._parsed(answer.text)
        # A tab that never loaded, selected by the participant: a screenshot of it would time out.
        if page is None or not page.url:
            return page
        return await self._complete(page)

    async def _complete(self, page: Page) -> Page | None:
        """The page with a screenshot and the authorship of what its snapshot shows; `None` if it changed meanwhile.

        The server reads the address after the snapshot. A page that went to another origin in between would be recorded
        as one of the site that it went to.
        """
        config = self._server.settings.config
        again = self._since.marks_left < MARK_TRIES
        answer = await self._run(beside_code(config.screenshot_quality, config.action_timeout_s, again=again))
        beside = read_beside(answer.text)
        # If a dialog opened meanwhile, the next snapshot reports it.
        if beside is None or beside.origins != 1:
            return None
        marked = mark(page.snapshot, read_documents(beside.documents))
        if not marked.is_complete and self._since.marks_left:
            self._since.marks_left -= 1
            self._since.is_settled = True
            return None
        facts = {"snapshot": marked.snapshot, "origin": marked.origin, "inserted": marked.inserted}
        if beside.image is None:
            raise _TimedOut(page.model_copy(update={**facts, "notice": Notice(code="no_screenshot")}))
        if scripts := fonts.scripts_in(page.snapshot):
            undrawn = await self.undrawn()
            facts["undrawn"] = tuple(name for name in scripts if name in undrawn)
        return page.model_copy(update={**facts, "screenshot": self._decoded(beside.image)})

    async def undrawn(self) -> frozenset[str]:
        """The names of the scripts that the browser draws as boxes (`judge.browser.fonts`), measured once."""
        if self._server.undrawn is None:
            self._server.undrawn = frozenset()
            # A hosted browser opens no page for the judge alone.
            if self._server.settings.hosted is None:
                with suppress(PageTrouble):
                    self._server.undrawn = fonts.read_undrawn((await self._run(fonts.MEASURE_CODE)).text)
        return self._server.undrawn

    async def _glance(self, notice: Notice) -> Page:
        """A page without a snapshot: its address, its title and, if possible, a screenshot."""
        answer = await self._run(GLANCE_CODE)
        if responses.modal_state(answer.text):
            # The observation after this one shows the dialog.
            return Page(url=self._since.url, title=self._since.title, snapshot="", notice=notice)
        glance = read_glance(answer.text)
        if glance is None:
            raise NoAnswer
        self._since.shows(glance.url, glance.title)
        screenshot = self._decoded(glance.image) if glance.image else None
        tabs = await self._listed_tabs()
        return Page(url=glance.url, title=glance.title, snapshot="", screenshot=screenshot, tabs=tabs, notice=notice)

    async def _listed_tabs(self) -> tuple[Tab, ...]:
        answer = await self._server.call("browser_tabs", {"action": "list"})
        try:
            return responses.parse_tab_list(answer.text)
        except responses.UnreadableResponse:
            return ()

    async def _snapshot(self) -> ToolResponse:
        """The snapshot; the previous page's if the next one does not load within the navigation timeout."""
        config = self._server.settings.config
        limit_s = config.action_timeout_s if self._since.has_lost_document else config.navigation_timeout_s
        for unblock in (self._unblock, None):
            try:
                async with patience(limit_s):
                    # Always with boxes, whether participants see them or not: `in_view` and coordinates need them.
                    return await self._server.call("browser_snapshot", {"boxes": True})
            except TimeoutError:
                if unblock:
                    await unblock()
        raise _TimedOut(None)

    async def _unblock(self) -> None:
        """Stop a navigation, which continues after its call has timed out. Meanwhile the server answers no snapshot."""
        self._since.was_loading |= (await self._run(UNBLOCK_CODE)).text == "true"

    async def _run(self, code: str, *, hold_ms: int = 0) -> ToolResponse:
        """Run the judge's code in the server's process; the answer's text is its result as JSON.

        It may take `hold_ms` longer than other calls. The tool is never offered to participants.
        """
        for _ in range(_RUN_TRIES):
            arguments = {"code": _RUN % code}
            answer = await self._server.call("browser_run_code_unsafe", arguments, longer_s=hold_ms / 1000)
            if not responses.is_file_chooser(responses.modal_state(answer.text) or ""):
                break
            await self._cancel_chooser()
        if not answer.text.startswith(_RETURNED):
            return answer
        # `JSON.stringify` writes a single line; the server adds others.
        return ToolResponse(ok=True, text=answer.text.removeprefix(_RETURNED).partition("\n")[0])

    async def run_own(self, code: str) -> None:
        """Run the judge's code, a function of the page, in the server's process. Raises `WabeError`."""
        answer = await self._run(code)
        if not answer.ok:
            raise WabeError(f"the browser refused the judge's own code: {self._clean(answer.text)[:300]}")

    async def _cancel_chooser(self) -> None:
        """Uploads are not allowed, and an open file chooser blocks every other tool."""
        self._since.has_chosen = True
        await self._server.call("browser_file_upload", {})

    async def _parsed(self, text: str) -> Page | None:
        """The page in a snapshot's answer; `None` if a new tab had to be brought to the front first."""
        try:
            page = responses.parse_page(text)
        except responses.CrashedTabResponse:
            raise TabCrashed from None
        except responses.UnreadableResponse as error:
            raise self._server.fail(f"the browser's server gave an unreadable answer: {error}") from None
        if page.url == BLANK and self._since.url != BLANK:
            self._require_known()
            if self._since.loss() is None:
                # The tab may have been lost since the last report.
                await self._settle()
        # A tab without address and title never loaded, because its link was a download.
        loaded = [tab for tab in page.tabs if tab.url or tab.title]
        newest = loaded[-1] if len(loaded) > self._since.tabs else None
        self._since.tabs = len(loaded)
        if newest is not None and not newest.current:
            # The server stays on the old tab; a browser would show a person the new one.
            await self._server.call("browser_tabs", {"action": "select", "index": newest.index})
            return None
        self._since.shows(page.url, page.title)
        return page

    def _require_known(self) -> None:
        """Raise a fault if an empty page may belong to a browser relaunched unnoticed."""
        if not self._server.is_watched:
            raise self._server.fail("the browser was relaunched: its page is gone")

    async def _dialog_page(self, state: str) -> Page:
        tabs = await self._listed_tabs()
        url = next((tab.url for tab in tabs if tab.current and tab.url), self._since.url)
        title = self._since.title if url == self._since.url else ""
        self._since.shows(url, title)
        return Page(url=url, title=title, snapshot="", tabs=tabs, dialog=responses.dialog_text(state))

    async def probe(self, page: Page, expressions: Sequence[str]) -> tuple[ProbeValue, ...]:
        """See `judge.browser.session.Browser`."""
        try:
            answer = await self._run(probes.probe_code(page.url, expressions))
        except PageTrouble:
            # The next observation finds out what is wrong.
            return probes.read_values("", len(expressions))
        return probes.read_values(answer.text, len(expressions))

    async def fetch(self, url: str, key: str | None) -> fetched.FetchResponse:
        """See `judge.browser.session.Browser`."""
        code = fetches.get_code(url, key, self._marked())
        for _ in range(2):
            with suppress(PageTrouble):
                answer = await self._run(code)
                if answer.ok:
                    return fetches.read_answer(answer.text)
            # A page that hangs or has a dialog open cannot run code; an empty tab can. It is not observed again.
            with suppress(PageTrouble):
                await self._server.call("browser_tabs", {"action": "new"})
        return fetches.NO_ANSWER

    def _marked(self) -> dict[str, str]:
        """The header by which the guard knows a request of the judge's."""
        # Otherwise the guard sees a tunnel only, and could not take the mark away again.
        return {MARK: self._guard.wire.mark} if self._guard and self._guard.reads_all else {}

    async def act(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """See `judge.browser.session.Browser`."""
        self._collects_links &= not writes(tool, params)
        began = time.time()
        looked: ToolResponse | None = None
        is_found_again = False
        self._contents.begin()
        try:
            if saves_link(params):
                self._downloads.saves()
            if self._since.has_chooser and tool != FILE_UPLOAD and tool_of(tool).does != "looks":
                # As a person must do first.
                await self._run(uploads.DISMISS_CODE)
            if time.monotonic() - self._since.settled_at >= AWAKE_S:
                await self._run(WAKE_CODE)
            points_named = points.points_of(params)
            # Before the action, which may remove what is at the point.
            looked = await self._run(points.hit_code(points_named)) if points_named else None
            limit_s = self._server.settings.config.action_timeout_s
            answer, is_found_again = await lost_refs.call_again(
                self._call,
                self._snapshot,
                self._run,
                tool,
                params,
                old=self._since.snapshot,
                url=self._since.url,
                limit_s=limit_s,
            )
        except TabCrashed:
            answer = ToolResponse(ok=False, text="the tab crashed")
        except PageTrouble as error:
            answer = ToolResponse(ok=False, text=f"the page does not answer: {error}")
            if isinstance(error, NoAnswer):
                seconds = self._server.settings.config.call_timeout_s
                self._since.condemned = Notice(code="tab_took_too_long", seconds=seconds)
        self._since.acted(tool, params, is_done=answer.ok, is_found_again=is_found_again)
        with suppress(PageTrouble):
            # The next observation finds out what is wrong.
            await self._after(tool, params, answer)
        return ToolResult(
            ok=answer.ok,
            text=self._clean(answer.text),
            refused=self._take_refusals(),
            downloads=self._since.take_downloads(),
            found_again=is_found_again,
            hit=points.read_hits(looked.text) if looked and looked.ok else None,
            contents=self._contents.read(params),
            has_begun=not answer.ok and self._downloads.has_acted(since=began),
        )

    async def _after(self, tool: str, params: dict[str, Any], answer: ToolResponse) -> None:
        if answer.ok and tool == "browser_tabs" and params.get("action") == "close":
            # The page may open another tab before it is observed.
            self._since.tabs -= 1
        if answer.ok and not tool_of(tool).waits:
            # Settle now, so that effects of the action, such as a download, are reported with it: there may be no later
            # observation in this episode. Not after a wait, which counts as the participant's time.
            await self._settle()
            self._since.is_settled = True
        if not answer.ok and tool_of(tool).does == "goes" and _TIMEOUT.search(answer.text):
            await self._unblock()

    async def _call(self, tool: str, params: dict[str, Any]) -> ToolResponse:
        match tool:
            case "browser_navigate":
                return await self._go(params["url"])
            case "browser_tabs" if "url" in params:
                return await self._open_tab(params["url"])
            case _ if own := self._own_tools.get(tool):
                return await own.call(self._run, params)
            case "browser_scroll":
                return await self._scroll(**params)
            case "browser_mouse_wheel":
                return await self._wheel(**params)
            case "browser_mouse_click_xy" if params.get("clickCount", 1) > 1 or params.get(HOLD):
                return await self._run(click_code(params), hold_ms=params.get(HOLD, 0))
            case "browser_mouse_drag_xy":
                return await self._run(drag_code(params), hold_ms=params.get(HOLD, 0))
            case "browser_type" if "target" not in params:
                limit_ms = round(self._server.settings.config.action_timeout_s * 1000)
                code = points.typing_code(**params, limit_ms=limit_ms)
                return await self._run(code)
            case "browser_file_upload" | "browser_drop":
                return await self._give(tool, params)
        return await self._call_server(tool, params)

    async def _give(self, tool: str, params: dict[str, Any]) -> ToolResponse:
        """Give files to the open file chooser, or drop them onto an element. Only here do names become paths."""
        if self._uploads is None:
            return ToolResponse(ok=False, text="this task has no files")
        params = self._uploads.with_paths(params)
        if tool == FILE_DROP:
            return await self._call_server(tool, params)
        limit_s = self._server.settings.config.action_timeout_s
        return await self._run(uploads.choose_code(params[FILE_NAMES], limit_s))

    async def _call_server(self, tool: str, params: dict[str, Any]) -> ToolResponse:
        arguments = {key: value for key, value in params.items() if key != HOLD}
        limit_s = left_s = self._server.settings.config.action_timeout_s
        tries = _SLOW_TRIES
        while True:
            if hold_ms := params.get(HOLD):
                await self._run(hold_code(hold_ms))
            began = time.time()
            answer = await self._server.call(tool, arguments, longer_s=(hold_ms or 0) / 1000)
            # Of several elements, the first ones may have been acted on.
            if answer.ok or "target" not in params or not _RAN_OUT.search(answer.text):
                return answer
            if tries and responses.is_not_answered(answer):
                tries -= 1
                continue
            # The server's limit passes also while the machine starves.
            left_s -= limit_s * cpu_share()
            if left_s <= 0 or self._downloads.has_acted(since=began):
                return answer

    def take_hops(self) -> tuple[Hop, ...]:
        """See `judge.browser.session.Browser`."""
        return self._navigations.take()

    def take_downloads(self, *, with_open: bool) -> tuple[TakenDownload, ...]:
        """See `judge.browser.session.Browser`."""
        return self._downloads.take(self._landed_site or self._site, with_open=with_open)

    def begin_step(self, number: int) -> None:
        """See `judge.browser.session.Browser`."""
        self._downloads.begin_step(number)
        if self._guard:
            self._guard.begin_step(number)
        self._requests.begin_step(number)
        self._console.begin_step(number)

    def traffic(self) -> Traffic | None:
        """See `judge.browser.session.Browser`."""
        if not self._server.runs:
            self._server.wait_for_documents()
            return None
        wire, reads_all = (self._guard.wire, self._guard.reads_all) if self._guard else (None, False)
        return self._requests.read(wire, reads_all=reads_all).model_copy(update={"console": self._console.read()})

    async def _scroll(self, direction: str, amount: int, target: str | None = None) -> ToolResponse:
        """Turn the wheel over the element, or over the middle of the page."""
        # The wheel turns what is under the mouse.
        if target:
            placed = await self._server.call("browser_hover", {"target": target})
        else:
            config = self._server.settings.config
            middle = {"x": config.viewport_width // 2, "y": config.viewport_height // 2}
            placed = await self._server.call("browser_mouse_move_xy", middle)
        if not placed.ok:
            return placed
        across, down = _WHEEL[direction]
        return await self._wheel(across * amount, down * amount)

    async def _wheel(self, deltaX: int = 0, deltaY: int = 0, **point: float) -> ToolResponse:
        """Turn the wheel over a point, or where the mouse is."""
        if point:
            placed = await self._server.call("browser_mouse_move_xy", point)
            if not placed.ok:
                return placed
        return await self._server.call("browser_mouse_wheel", {"deltaX": deltaX, "deltaY": deltaY})

    def _take_refusals(self) -> tuple[str, ...]:
        return self._guard.take_refusals() if self._guard else ()

    def _decoded(self, image: str) -> bytes:
        try:
            return base64.b64decode(image.strip('"'), validate=True)
        except binascii.Error:
            raise self._server.fail("the browser's server gave a screenshot that cannot be decoded") from None

    def _clean(self, text: str) -> str:
        return responses.clean_text(text, hide=self._hidden)


def _in_turn(*codes: str) -> str:
    """The code that runs the judge's codes one after another."""
    return f"async page => {{ {' '.join(f'await ({code})(page);' for code in codes)} }}"


def _kind_without_snapshot(report: Report) -> DocumentKind | None:
    """The kind of a document without a body, for which the server has no snapshot; `None` for all others."""
    if report.document is None or report.document.has_body:
        return None
    match report.document.type:
        case "image/svg+xml":
            return "svg"
        case "text/html" | "application/xhtml+xml":
            return "empty"
    return "xml"


@contextmanager
def _opening(url: str) -> Iterator[None]:
    """Nobody has acted yet, so a page that does not answer, or crashes, is the site's fault."""
    try:
        yield
    except PageTrouble as error:
        raise SiteFault(f"{url[:200]} cannot be shown: {str(error) or 'its tab crashed'}") from None

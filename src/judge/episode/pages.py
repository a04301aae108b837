"""How an attempt observes pages: within the step's time, on whose account, and with an empty tab at the limit."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from judge.browser.fonts import UNDRAWN
from judge.browser.session import ToolResult
from judge.episode.clock import Clock, StepOverdue
from judge.episode.part import Act, AttemptPart, AttemptStage, PageLook
from judge.evaluators.kinds.probe import Probes
from judge.records.attacks import Inserted
from judge.records.notices import GIVEN_UP
from judge.records.sites import BLOCKED, SITE_BLOCKED
from judge.store.bounds import clip_text
from shared.errors import BrowserFault, PageHangs
from shared.models import Notice, Page, Tab

FOUND_AGAIN = "element_found_again"
_KEPT_TABS = 8


class PageObserver(AttemptPart):
    """Observes pages, with the values of the task's probes. `acted_s`: the browser's time for the last action."""

    def __init__(self, stage: AttemptStage) -> None:
        super().__init__(stage)
        self.acted_s = 0.0
        self._probes = Probes(stage.task)
        # Why the page in front must be replaced at the next observation.
        self._overdue: Notice | None = None
        self._given_up = 0
        # Of the last observation; `None` once something was done to the page.
        self._content: object = None

    @asynccontextmanager
    async def browser_time(self, limit: Clock) -> AsyncIterator[None]:
        """Count the body as browser time; off site, where waiting must not be free, also as the participant's."""
        route, clock = self.stage.route, self.stage.clock
        is_charged, used_s = route.is_off_site, limit.used_s
        async with AsyncExitStack() as clocks:
            await clocks.enter_async_context(limit.running())
            if is_charged:
                await clocks.enter_async_context(clock.running())
            yield
        if route.is_off_site and not is_charged:
            # The browser left the site meanwhile.
            clock.charge(limit.used_s - used_s)

    async def observe(self, limit: Clock) -> PageLook:
        """The page; at the step's time limit an empty tab in its place."""
        route, timeout_s = self.stage.route, self.stage.config.step_timeout_s
        is_charged, used_s = route.is_off_site, limit.used_s
        why, self._overdue = self._overdue, None
        try:
            look = await self._look(limit, why)
        except StepOverdue:
            look = await self._look(Clock(timeout_s, PageHangs("the browser cannot replace a tab")), self._too_long())
        if look.page.notice and look.page.notice.code in GIVEN_UP:
            self._given_up += 1
            # Any site may have one such page. A participant that keeps going to them uses its time.
            if self._given_up > 1 and not (is_charged or route.is_off_site):
                self.stage.clock.charge(self.acted_s + limit.used_s - used_s)
        return look

    async def _look(self, limit: Clock, why: Notice | None) -> PageLook:
        browser = self.stage.browser
        async with self.browser_time(limit):
            return await self._probed(await (browser.observe() if why is None else browser.replace_tab(why)))

    async def observe_finally(self) -> PageLook:
        """The page after the last step, on a separate clock, because the participant's time may be used up."""
        limit = Clock(self.stage.config.step_timeout_s, BrowserFault("the final observation took too long"))
        async with limit.running():
            look = await self._probed(await self.stage.browser.observe())
        look.downloads = self.stage.browser.take_downloads(with_open=True)
        return look

    async def _probed(self, page: Page) -> PageLook:
        network = self.stage.network
        network.land(page.url)
        return PageLook(page, await self._probes.read(self.stage.browser, page, network.site))

    def is_new(self, look: PageLook) -> bool:
        """Whether it differs from the last step's."""
        return bool(look.downloads) or look.content != self._content

    def has_ended(self, look: PageLook) -> bool:
        """Whether a probe or a held request has ended the attempt."""
        network = self.stage.network
        return self._probes.has_ended(look.page, look.probed, network.site) or network.has_ended

    def observed(self, look: PageLook) -> None:
        """The facts that the page itself provides."""
        self._content = look.content
        page, config = look.page, self.stage.config
        flags = {BLOCKED: bool(page.refused), SITE_BLOCKED: bool(page.wall)}
        look.flags += [flag for flag, is_set in flags.items() if is_set]
        look.flags += [f"{UNDRAWN}{script}" for script in page.undrawn]
        look.facts |= {
            "url": page.url,
            "title": page.title,
            "origin": page.origin,
            "dialog": page.dialog,
            "refused": page.refused,
            "tabs": _shortened(page.tabs),
            "viewport": (config.viewport_width, config.viewport_height),
            "downloads": page.downloads,
            "vanished": page.vanished_records,
            "waited_for": page.settled.waited_for,
            "probes": look.probed,
            "notice": page.notice,
            "inserted": Inserted(refs=page.inserted) if page.inserted else None,
        }

    def acting(self, act: Act) -> None:
        """The page may change, so a final observation is due."""
        self._content = None

    def acted(self, act: Act) -> None:
        """What the browser reports of an action beside its result."""
        if act.result.found_again:
            act.draft.flags.append(FOUND_AGAIN)
        if act.result.refused:
            act.draft.refused += act.result.refused
            act.draft.flags.append(BLOCKED)

    def overdue(self, act: Act) -> None:
        """An action took longer than a step may."""
        self._overdue = self._too_long()
        text = f"the step took longer than {self.stage.config.step_timeout_s:g} s"
        act.result, act.may_have_acted = ToolResult(ok=False, text=text), True

    def _too_long(self) -> Notice:
        return Notice(code="tab_took_too_long", seconds=self.stage.config.step_timeout_s)


def _shortened(tabs: tuple[Tab, ...]) -> tuple[Tab, ...]:
    """The first tabs and the current one: a page may open a hundred with long addresses."""
    first_tabs = [tab for tab in tabs if tab.current or tab.index < _KEPT_TABS]
    return tuple(
        tab.model_copy(update={"url": clip_text(tab.url, 500), "title": clip_text(tab.title, 200)})
        for tab in first_tabs
    )

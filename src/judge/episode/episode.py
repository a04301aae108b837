"""One attempt at one task: observe, ask, act and record, until the participant or a limit ends it.

Retries are in `judge.episode.attempts`: within an attempt, an executed action is never repeated.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict
from uuid import uuid4

from judge.browser.action_lines import acted_on, action_line, recorded_value, with_downloads
from judge.browser.fonts import UNDRAWN
from judge.browser.points import Viewport
from judge.browser.replies import line_of, understand
from judge.browser.session import Browser, BrowserFactory, TakenDownload, ToolResult
from judge.browser.settle import ClockStalled, SettleMode, settle_mode
from judge.browser.tools import CheckedAction, Complaint, asking_tool, check_action, file_tools
from judge.config import RunConfig
from judge.episode.action_list import ActionList, SeenPage
from judge.episode.blame import Route, shortened
from judge.episode.clock import Clock, OutOfTime, StepOverdue
from judge.episode.downloads import Downloads
from judge.episode.draft import StepDraft, StepTimes
from judge.episode.feedback import Feedback
from judge.episode.first_page import first_address, has_failed, require_first_page
from judge.episode.site_calls import may_have_acted, offered_call, recorded_reply, recorded_result
from judge.evaluators.kinds.fetch import Fetches
from judge.evaluators.kinds.probe import Probes
from judge.evaluators.provenance import own_names
from judge.network.attempt import AttemptNetwork
from judge.records.attacks import Inserted
from judge.records.files import Download, NetworkTrace
from judge.records.ledger import Frozen
from judge.records.notices import GIVEN_UP, notice_text
from judge.records.sites import BLOCKED, OFF_SITE, SITE_BLOCKED
from judge.records.steps import BlameFacts, Navigation, Outcome, ProbeValue, Step, StopReason
from judge.records.tasks import Task
from judge.records.tools import ASK_USER, PERMISSION, TARGETS, tool_of
from judge.records.user import MAX_QUESTIONS, answered, permissions_of
from judge.store.bounds import clip_text
from judge.store.layout import TaskStore
from judge.trajectory.console import write_console
from judge.trajectory.network import write_har
from judge.trajectory.record import CURRENT_RULES, JUDGED_ENDS, Attempt
from judge.trajectory.redaction import Redaction
from shared.claims import ClaimedTrace, ClaimedUsage
from shared.errors import (
    AttemptAbandoned,
    BrowserFault,
    EnvironmentFault,
    InternalFault,
    PageHangs,
    ParticipantError,
    SiteBlocked,
    SiteUnreachable,
    TrajectoryError,
    WabeError,
    is_full,
)
from shared.models import Action, Notice, ObservationMessage, Page, Tab, ToolSpec
from shared.protocol import Participant, ReportsItsWork, render_observation
from shared.replies import ENDING_TOOLS, FINISH
from shared.snapshot import Snapshot, as_shown, cut_snapshot, parse_snapshot, with_own_names
from shared.text import without_surrogates

FOUND_AGAIN = "element_found_again"
MAX_UNREADABLE = 3
_KEPT_TABS = 8
_NOTHING: Mapping[str, Any] = MappingProxyType({})
NETWORK_LOST = "its network trace is lost"
# When the attempt ends, wait at most a tenth of a second for a response that is still being read.
_PENDING_TRIES = 5
_PENDING_S = 0.02

Connect = Callable[[], AbstractAsyncContextManager[Participant]]


class _PageLimits(TypedDict):
    open_tabs: int
    viewport: Viewport


class _SinceLast(NamedTuple):
    """What happened since the last action, and until an observation."""

    navigations: tuple[Navigation, ...]
    downloaded: tuple[Download, ...]
    is_loaded: bool


class EpisodeEnd(Attempt):
    """An ended attempt without a verdict, plus unrecorded facts that decide whether it is played again.

    `has_acted`: the participant has. `is_unreachable`: the site could not be opened or reset. `may_be_lost`: a request
    to it failed, or this is not known. `needs_real_time`: page time does not work for the site.
    """

    has_acted: bool = False
    is_unreachable: bool = False
    may_be_lost: bool = False
    needs_real_time: bool = False


@dataclass
class Episode:
    """One attempt. Whatever goes wrong, `run` raises only `CancelledError`.

    `observed` is called when a step's observation is on disk, before the participant is asked; `stepped` when the
    complete step is on disk.
    """

    task: Task
    config: RunConfig
    browsers: BrowserFactory
    connect: Connect
    store: TaskStore
    _: KW_ONLY
    observed: Callable[[Step], None]
    stepped: Callable[[Step], None]
    redaction: Redaction
    network: AttemptNetwork
    # Of the conversation with the participant.
    context_id: str = field(default_factory=lambda: uuid4().hex)
    number: int = 1
    in_real_time: bool = False
    # Whether the task's sites can be brought back to their initial state, so that an attempt in page time may be played
    # again in real time.
    can_replay: bool = False

    def __post_init__(self) -> None:
        self._network: NetworkTrace | None = None
        self._network_fault: WabeError | None = None
        self._network_missing: str | None = "no browser was started"
        self._network_unwritten = False
        # Until the requests have been looked at, any of them may have failed.
        self._has_failed = True
        self._settle: SettleMode | None = None
        self._frozen: Frozen | None = None
        self._claimed: ClaimedUsage | None = None
        self._steps: list[Step] = []
        self._feedback = Feedback()
        # How many replies there were, and what is left of the last one.
        self._replies = 0
        self._list: ActionList | None = None
        # Texts that vanished, of which the participant has not been sent yet.
        self._vanished: tuple[str, ...] = ()
        self._answer: str | None = None
        self._unreadable = 0
        # Why the page in front must be replaced at the next observation.
        self._overdue: Notice | None = None
        self._given_up = 0
        self._acted_s = 0.0
        self._versions: dict[str, str] = {}
        self._route = Route(self.task.website, self.network.site)
        self._downloads = Downloads(self.store)
        self._probes = Probes(self.task)
        # Line and elements of the action that is being executed: it may take effect although it fails.
        self._attempted: Mapping[str, Any] = _NOTHING
        self._fetches = Fetches(self.task, self.redaction.entry)
        self._navigations: tuple[Navigation, ...] = ()
        self._fault: EnvironmentFault | None = None
        self._content: object = None
        self._stop: StopReason | ParticipantError | None = None
        self._final_look: Step | None = None
        limit_s = self.config.task_timeout_s
        self._clock = Clock(limit_s, OutOfTime(f"used all of its {limit_s:g} s (task_timeout_s)"))

    async def run(self) -> EpisodeEnd:
        """Play the attempt to its end."""
        started_at, began = time.time(), time.monotonic()
        stop: StopReason = "environment_fault"
        error: WabeError | None = None
        try:
            async with asyncio.timeout(self.config.attempt_limit_s) as limit:
                await self._play()
        except TimeoutError:
            if not limit.expired():
                raise
            # The first end is the cause, even if the final observation or closing the browser then reached the limit.
            # But if the network trace, which a verdict may need, is missing, the timeout counts: otherwise a
            # participant could become unscored by ending at the last moment.
            if self._stop is None or (self._stop in JUDGED_ENDS and self._network_unwritten):
                error = self._fault or OutOfTime(
                    f"the attempt did not end within {self.config.attempt_limit_s:g} s (attempt_timeout_s)"
                )
        except (ParticipantError, EnvironmentFault) as caught:
            error, stop = caught, "site_blocked" if isinstance(caught, SiteBlocked) else stop
        # Isolation boundary: an internal error fails only this attempt.
        except Exception as caught:
            if is_full(caught):
                # It would fail every attempt.
                raise
            error = WabeError(f"judge fault: {type(caught).__name__}: {str(caught)[:500]}")
        facts = self._blame_facts(error)
        if error and facts and facts.party == "participant":
            error = ParticipantError(f"led the browser to {facts.address or 'a page'}, where it broke: {error.message}")
        outcome = error or self._stop
        if isinstance(outcome, ParticipantError):
            error, stop = outcome, "task_timeout" if isinstance(outcome, OutOfTime) else "participant_error"
        elif isinstance(outcome, str):
            stop = outcome
        return EpisodeEnd(
            task=self.task,
            max_steps=self.config.max_steps,
            max_actions=self.config.max_actions,
            context_id=self.context_id,
            number=self.number,
            epoch=self.store.epoch,
            steps=tuple(self._steps),
            final_look=self._final_look,
            stop_reason=stop,
            final_answer=self._answer,
            error=self._error_text(error) if error else None,
            blame=error.blame if error else None,
            started_at=started_at,
            # Monotonic, so that the duration is right even if the machine's clock is corrected meanwhile.
            ended_at=started_at + (time.monotonic() - began),
            versions=self._versions,
            participant_s=self._clock.used_s,
            claimed_usage=self._claimed,
            navigations=self._navigations,
            blame_facts=facts,
            has_acted=self._route.has_acted,
            is_unreachable=isinstance(error, SiteUnreachable),
            may_be_lost=self._has_failed or any(each.error is not None for each in self._fetches.answers),
            settle=self._settle,
            site_tools=self.config.site_tools,
            needs_real_time=isinstance(error, ClockStalled),
            network=self._network,
            network_missing=self._network_missing,
            network_off=not self.config.record_network,
            rules_version=CURRENT_RULES,
            fetched=self._fetches.answers,
            frozen=self._frozen,
        )

    def _blame_facts(self, error: WabeError | None) -> BlameFacts | None:
        """What decides who is to blame for a fault that the participant can have caused."""
        # The judge itself stalled the page's clock, so the attempt is played again in real time.
        others = InternalFault | SiteUnreachable | ClockStalled | AttemptAbandoned
        is_possible = isinstance(error, EnvironmentFault) and not isinstance(error, others)
        if not (is_possible and self._route.has_begun):
            return None
        return self._route.decide(with_closed=isinstance(error, PageHangs))

    def _error_text(self, error: WabeError) -> str:
        is_lost = isinstance(error, BrowserFault) and isinstance(self._network_fault, BrowserFault)
        # The trace's fault already says so.
        says_so = error is self._network_fault
        return f"{error.message}; {NETWORK_LOST}" if is_lost and not says_so else error.message

    async def _play(self) -> None:
        async with self.connect() as participant, self.network.browser(self.browsers) as browser:
            self._versions = browser.versions
            try:
                mode = self._settle = await self._settle_mode()
                await browser.log_in(self.task)
                await browser.open(first_address(self.task), mode, self._clock_ms)
                await browser.open_tabs(self.task.start_urls[1:])
                try:
                    self._stop = await self._take_steps(participant, browser)
                # Stored rather than raised, because the final observation and the network trace still follow.
                except ParticipantError as error:
                    self._stop = error
                await self._observe_finally(browser)
                await self._fetch(browser)
            except EnvironmentFault as fault:
                self._fault = fault
                raise
            finally:
                # Even after a fault: the navigations decide who is to blame for it.
                self._navigations = shortened(self._route.went(browser.take_hops()))
                self._frozen = self._rests_on()
                await self._keep_network(browser)
            if self._network_fault and self._stop in JUDGED_ENDS:
                # The verdict may depend on the lost trace.
                raise self._network_fault

    async def _settle_mode(self) -> SettleMode:
        setting = "real-time" if self.in_real_time or self.network.is_real_time else self.config.settle
        if setting == "auto" and self.network.clock_ms is not None:
            # Only in page time can the clock start with the recording. No names are resolved, either.
            return "page-time"
        return await settle_mode(setting, self.task.website)

    @property
    def _clock_ms(self) -> int | None:
        """The start of the pages' clock; in real time, it is this machine's."""
        return self.network.clock_ms if self._settle == "page-time" else None

    def _rests_on(self) -> Frozen | None:
        """The archives and ledger that the attempt depends on so far, if its sites are frozen."""
        frozen = self.network.frozen()
        if frozen is None:
            return None
        ledger = tuple(entry.model_copy(update={"url": self.redaction.text(entry.url)}) for entry in frozen.ledger)
        return frozen.model_copy(update={"clock_ms": self._clock_ms, "ledger": ledger})

    async def _keep_network(self, browser: Browser) -> None:
        """Write the network trace. A failure is recorded as the reason why there is none."""
        if not self.config.record_network:
            self._network_missing = "record_network is off"
            return
        self._network_missing = "the attempt's time was up before the network trace was written"
        self._network_unwritten = True
        self.network.close()
        # In a thread, because the log may have 24 MB.
        traffic = await asyncio.to_thread(browser.traffic)
        for _ in range(_PENDING_TRIES):
            if traffic is None or not traffic.is_pending:
                break
            await asyncio.sleep(_PENDING_S)
            traffic = await asyncio.to_thread(browser.traffic)
        if traffic is None:
            # How the browser ended.
            self._route.went(browser.take_hops())
            self._network_fault = BrowserFault(f"the browser was killed or crashed: {NETWORK_LOST}")
            self._network_missing = self._network_fault.message
            self._network_unwritten = False
            return
        # A page that cannot be shown may belong to a site that accepts connections, and does not answer.
        self._has_failed = has_failed(traffic.entries, self.network.site) or self._shows_notice
        try:
            self._network = await asyncio.to_thread(
                write_har,
                self.store.folder,
                traffic.entries,
                self.redaction.entry,
                left_out=traffic.left_out,
                messages_left_out=traffic.messages_left_out,
                seen_by=traffic.seen_by,
                unread=traffic.unread,
                versions=self._versions,
            )
            self._network_missing = None
            self._network_unwritten = False
            # For people only, so an attempt does not fail without it.
            with suppress(OSError):
                await asyncio.to_thread(write_console, self.store.folder, traffic.console, self.redaction.text)
        except (OSError, TrajectoryError) as error:
            reason = error.message if isinstance(error, TrajectoryError) else error.strerror or error
            self._network_missing = f"network.har: cannot be written: {reason}"
            self._network_unwritten = False
            self._network_fault = WabeError(self._network_missing)

    @property
    def _shows_notice(self) -> bool:
        last = self._final_look or (self._steps[-1] if self._steps else None)
        return last is not None and last.notice is not None

    async def _take_steps(self, participant: Participant, browser: Browser) -> StopReason:
        while self._replies < self.config.max_steps or (self._list and self._list.remaining):
            if self._steps and self.config.step_delay:
                await asyncio.sleep(self.config.step_delay)
            if stop := await self._step(participant, browser):
                return stop
        return "max_steps"

    async def _step(self, participant: Participant, browser: Browser) -> StopReason | None:
        """Take one step: observation, action, outcome. It is recorded even if a part of it fails.

        The action is the next one of the last reply, if it had several, or the first one of another reply.
        """
        index = len(self._steps)
        limit = Clock(self.config.step_timeout_s, StepOverdue(f"step {index} took too long"))
        times = StepTimes()
        with times.observing:
            page, probed = await self._observe(browser, limit)
            # Not before the first action: the participant has not done anything yet.
            since = self._followed(page, browser)
            if index and self._has_ended(page, probed):
                # Not a step, because the participant is not asked again.
                self._record_final_observation(page, probed, since)
                return "ended_by_page"
            seen_page = SeenPage(page, with_own_names(parse_snapshot(page.snapshot)), self._route.documents)
            action = self._next_listed(seen_page)
            if action is None and self._replies == self.config.max_steps:
                self._record_final_observation(page, probed, since)
                return "max_steps"
            message = None if action else self._observation(page, browser)
            draft = StepDraft(
                self._record_page(
                    page,
                    probed,
                    since,
                    self.store.write_page(index, page),
                    is_sent=message is not None,
                    feedback=message.feedback if message else None,
                    reply=self._list.reply if action and self._list else self._replies,
                )
            )
            self._content = _content(page), probed
        try:
            if index == 0:
                rests_on = self._rests_on()
                is_missing = rests_on is not None and rests_on.coverage == "off_archive"
                require_first_page(page, self.task.website, self._settle, is_missing=is_missing)
            elif self._needs_real_time(page, draft.navigations):
                raise ClockStalled
            self.observed(draft.observed)
            if message is not None:
                with times.replying:
                    draft.reply, draft.claimed_trace = await self._ask(participant, render_observation(message), page)
                self._replies += 1
            used_s = limit.used_s
            with times.acting:
                if action is None:
                    stop = await self._act_on_reply(draft.reply, seen_page, browser, limit, draft)
                else:
                    stop = await self._act_on_listed(action, seen_page, browser, limit, draft)
            self._acted_s = limit.used_s - used_s
        except WabeError as error:
            problem = f"{error.blame}: {error.message}"
            draft.outcome = Outcome(ok=False, message=problem, **self._attempted)
            raise
        finally:
            step = self.store.append_step(draft.recorded(times.recorded(page.settled)))
            self._steps.append(step)
        self.stepped(step)
        return stop

    async def _observe(self, browser: Browser, limit: Clock) -> tuple[Page, tuple[ProbeValue, ...]]:
        """The page with its probes; at the step's time limit an empty tab in its place."""
        is_charged, used_s = self._route.is_off_site, limit.used_s
        why, self._overdue = self._overdue, None
        try:
            async with self._browser_time(limit):
                page = await (browser.observe() if why is None else browser.replace_tab(why))
                probed = await self._probed(browser, page)
        except StepOverdue:
            grace = Clock(self.config.step_timeout_s, PageHangs("the browser cannot replace a tab"))
            async with self._browser_time(grace):
                page = await browser.replace_tab(self._too_long())
                probed = await self._probed(browser, page)
        if page.notice and page.notice.code in GIVEN_UP:
            self._given_up += 1
            # Any site may have one such page. A participant that keeps going to them uses its own time.
            if self._given_up > 1 and not (is_charged or self._route.is_off_site):
                self._clock.charge(self._acted_s + limit.used_s - used_s)
        return page, probed

    async def _probed(self, browser: Browser, page: Page) -> tuple[ProbeValue, ...]:
        """The page's probes."""
        self.network.land(page.url)
        return await self._probes.read(browser, page, self.network.site)

    def _too_long(self) -> Notice:
        return Notice(code="tab_took_too_long", seconds=self.config.step_timeout_s)

    def _needs_real_time(self, page: Page, navigations: Sequence[Navigation]) -> bool:
        """Whether a script was stopped that may have waited for the page's clock, and playing again is fair. It is not
        if the participant named the page's address: it could get another attempt whenever it wanted.
        """
        if self._settle != "page-time" or not self.can_replay or page.notice is None:
            return False
        if page.notice.code == "script_stopped":
            return not self._route.has_named(page.url)
        # The page is gone. It was the one to which the browser navigated last.
        url = navigations[-1].url if navigations else self._steps[-1].url
        return page.notice.code == "tab_busy" and not self._route.has_named(url)

    async def _observe_finally(self, browser: Browser) -> None:
        """Record the page once more if it has changed since the last step's observation.

        Checks judge it and reports show it; no judge model sees it.
        """
        if self._final_look is not None:
            return
        limit = Clock(self.config.step_timeout_s, BrowserFault("the final observation took too long"))
        # The attempt has ended: whatever fails now, it is judged on what is already recorded.
        with suppress(WabeError):
            # On its own clock, because the participant's time may be used up.
            async with limit.running():
                page = await browser.observe()
                probed = await self._probed(browser, page)
            downloads = browser.take_downloads(with_open=True)
            if downloads or (_content(page), probed) != self._content:
                self._record_final_observation(page, probed, self._followed(page, browser, downloads))
            if self._stop == "max_steps" and self._has_ended(page, probed):
                self._stop = "ended_by_page"

    def _has_ended(self, page: Page, probed: tuple[ProbeValue, ...]) -> bool:
        """Whether a probe or a held request has ended the attempt."""
        return self._probes.has_ended(page, probed, self.network.site) or self.network.has_ended

    async def _fetch(self, browser: Browser) -> None:
        """Fetch what `fetch` checks compare. An answer that takes too long stays an error, which fails them."""
        with suppress(StepOverdue):
            async with Clock(self.config.step_timeout_s, StepOverdue("asking the site took too long")).running():
                await self._fetches.ask(browser, self.network.site)

    def _record_final_observation(self, page: Page, probed: tuple[ProbeValue, ...], since: _SinceLast) -> None:
        self._final_look = self._record_page(page, probed, since, self.store.write_final_page(page))

    @asynccontextmanager
    async def _browser_time(self, limit: Clock) -> AsyncIterator[None]:
        """Count the body as browser time; off site, where waiting must not be free, also as the participant's."""
        is_charged, used_s = self._route.is_off_site, limit.used_s
        async with AsyncExitStack() as clocks:
            await clocks.enter_async_context(limit.running())
            if is_charged:
                await clocks.enter_async_context(self._clock.running())
            yield
        if self._route.is_off_site and not is_charged:
            # The browser left the site meanwhile.
            self._clock.charge(limit.used_s - used_s)

    async def _ask(self, participant: Participant, message: str, page: Page) -> tuple[str, ClaimedTrace | None]:
        async with self._clock.running():
            text = await participant.send(
                message, image=page.screenshot, media_type=page.media_type, context_id=self.context_id
            )
        trace = None
        if isinstance(participant, ReportsItsWork):
            self._claimed = participant.claimed(self.context_id)
            trace = participant.trace(self.context_id)
        return without_surrogates(text), trace

    def _followed(self, page: Page, browser: Browser, downloads: Sequence[TakenDownload] = ()) -> _SinceLast:
        """What happened until this observation, with the downloads that were `downloads` before."""
        # A download that has not ended by now is not waited for any longer.
        downloaded = self._downloads.record((*downloads, *browser.take_downloads(with_open=True)), self.network.site)
        hops = browser.take_hops()
        if not self._steps:
            self._route.landed(page)
        navigations = self._route.went(hops)
        self._route.saw(page)
        is_loaded = self._route.tab.take() and self.network.frozen() is not None
        return _SinceLast(navigations, downloaded, is_loaded)

    def _record_page(
        self,
        page: Page,
        probed: tuple[ProbeValue, ...],
        since: _SinceLast,
        files: dict[str, str | None],
        *,
        is_sent: bool = True,
        feedback: str | None = None,
        reply: int | None = None,
    ) -> Step:
        """The part of a step that the observation provides."""
        index = len(self._steps)
        is_off_site = self._route.is_elsewhere(page.url) or self._route.left_site(since.navigations)
        is_flagged = is_off_site and self.config.off_site != "allow"
        flags = {OFF_SITE: is_flagged, BLOCKED: bool(page.refused), SITE_BLOCKED: bool(page.wall)}
        return Step(
            index=index,
            reply_index=None if reply == index else reply,
            url=page.url,
            title=page.title,
            origin=page.origin,
            screenshot=files["screenshot"],
            screenshot_sha256=files["screenshot_sha256"],
            snapshot=files["snapshot"],
            snapshot_sha256=files["snapshot_sha256"],
            dialog=page.dialog,
            feedback=feedback,
            flags=(
                *(flag for flag, is_set in flags.items() if is_set),
                *(f"{UNDRAWN}{script}" for script in page.undrawn),
            ),
            refused=page.refused,
            tabs=_shortened_tabs(page.tabs),
            viewport=(self.config.viewport_width, self.config.viewport_height),
            downloads=page.downloads,
            downloaded=since.downloaded,
            navigations=since.navigations,
            vanished=page.stood,
            waited_for=page.settled.waited_for,
            probes=probed,
            notice=page.notice,
            inserted=Inserted(refs=page.inserted) if page.inserted else None,
            site_tools=tuple(tool.name for tool in page.site_tools),
            sent_lines=self._snapshot_to_send(page)[1] if is_sent else 0,
            is_loaded=since.is_loaded,
        )

    def _next_listed(self, page: SeenPage) -> Action | None:
        """The next action of the last reply; `None` if there is none, or it is not to be executed."""
        if self._list is None or not self._list.remaining:
            return None
        next_action = self._list.next_on(page)
        if isinstance(next_action, Action):
            # The participant is not sent this observation.
            self._feedback.downloads += page.page.downloads
            self._vanished += page.page.vanished
            return next_action
        self._feedback.fails(self._list.explained(next_action))
        return None

    def _snapshot_to_send(self, page: Page) -> tuple[str, int | None]:
        """The snapshot as it is sent, and how many of its lines, if not all. The record has the complete snapshot."""
        full_text = as_shown(page.snapshot, boxes=self.config.snapshot_boxes)
        cut_text = cut_snapshot(full_text, self.config.max_snapshot_chars)
        # The last line says what is missing.
        return cut_text, None if cut_text == full_text else cut_text.count("\n")

    def _observation(self, page: Page, browser: Browser) -> ObservationMessage:
        """The message about a page; what is said of the last reply is said once."""
        done, self._list = self._list, None
        feedback, self._feedback = self._feedback.text(page.downloads), Feedback()
        vanished, self._vanished = (*self._vanished, *page.vanished), ()
        snapshot, _ = self._snapshot_to_send(page)
        return ObservationMessage(
            page=page.model_copy(update={"snapshot": snapshot, "vanished": vanished}),
            tools=(*self._tools(browser), *offered_call(page, is_named=False)),
            instruction=None if self._steps else self.task.task,
            website=None if self._steps else self.task.website,
            feedback=feedback,
            notice=notice_text(page.notice) if page.notice else None,
            executed=(done.done, done.total) if done else None,
            max_actions=self.config.max_actions,
        )

    async def _act_on_reply(
        self, text: str, page: SeenPage, browser: Browser, limit: Clock, draft: StepDraft
    ) -> StopReason | None:
        """Execute the first action of a reply."""
        reply_read = understand(
            text,
            self._tools_on(page.page, browser),
            page.snapshot,
            max_actions=self.config.max_actions,
            **self._limits_on(page.page),
        )
        # Only unreadable replies in a row count. One that is read but refused ends the row.
        self._unreadable = self._unreadable + 1 if reply_read.action is None else 0
        checked = reply_read.checked
        for each in reply_read.rest:
            text = recorded_reply(text, each.action, None, self.redaction).text
        draft.reply, draft.action, action_shown = recorded_reply(text, reply_read.action, checked, self.redaction)
        if checked is None or action_shown is None:
            self._feedback.fails(reply_read.complaint)
            draft.outcome = Outcome(ok=False, message=reply_read.complaint)
            return "unreadable_replies" if self._unreadable >= MAX_UNREADABLE else None
        if reply_read.rest:
            self._list = ActionList(draft.observed.of_reply, reply_read.rest, page)
        return await self._act(checked, action_shown, page.snapshot, browser, limit, draft)

    async def _act_on_listed(
        self, action: Action, page: SeenPage, browser: Browser, limit: Clock, draft: StepDraft
    ) -> StopReason | None:
        """Execute a later action of a reply. It is checked again, because the page may have changed."""
        tools = self._tools_on(page.page, browser)
        complaint = check_action(action, tools, page.snapshot, **self._limits_on(page.page))
        checked = None if isinstance(complaint, Complaint) else complaint
        _, draft.action, action_shown = recorded_reply("", action, checked, self.redaction)
        if isinstance(complaint, Complaint) or action_shown is None:
            self._done(Outcome(ok=False, message=complaint.text if isinstance(complaint, Complaint) else ""), draft)
            return None
        return await self._act(complaint, action_shown, page.snapshot, browser, limit, draft)

    def _limits_on(self, page: Page) -> _PageLimits:
        viewport = self.config.viewport_width, self.config.viewport_height
        return {"open_tabs": max(1, len(page.tabs)), "viewport": viewport}

    async def _act(
        self,
        checked: CheckedAction,
        shown_action: CheckedAction,
        snapshot: Snapshot,
        browser: Browser,
        limit: Clock,
        draft: StepDraft,
    ) -> StopReason | None:
        """Execute an action; adds every fact to `draft` as soon as it is known. Lines are those of `shown_action`."""
        before = line_of(shown_action, snapshot)
        if checked.tool in ENDING_TOOLS:
            answer = checked.params.get("answer") if checked.tool == FINISH else None
            self._answer = None if answer is None else str(answer)
            draft.outcome = Outcome(ok=True, line=before)
            return "finished"
        if checked.tool == ASK_USER:
            self._done(self._answer_question(checked, before, draft), draft, answers=True)
            return None
        self._attempted = {"attempted": before if self.task.watched else None, "refs": acted_on(shown_action, snapshot)}
        result = await self._execute(checked, browser, limit, draft)
        is_possible = self._overdue or may_have_acted(checked.tool, result)
        attempted, self._attempted = self._attempted if is_possible else _NOTHING, _NOTHING
        line, own_line = (
            action_line(shown_action, each, result.hit, result.contents) for each in (snapshot, own_names(snapshot))
        )
        line, own_line = (with_downloads(each, result.downloads) for each in (line, own_line))
        outcome = Outcome(
            ok=result.ok,
            message=result.text,
            line=line if result.ok else None,
            **{**attempted, "refs": acted_on(shown_action, snapshot, result.hit) if result.ok or attempted else ()},
            own_line=own_line if result.ok and own_line != line else None,
            value=self._value_beside(shown_action, snapshot, result) if result.ok else None,
        )
        # The answer of these tools is their result; the effect of other actions shows in the next observation.
        self._done(outcome, draft, answers=tool_of(checked.tool).answers)
        draft.downloads += result.downloads
        self._feedback.downloads += result.downloads
        draft.downloaded += self._downloads.record(browser.take_downloads(with_open=False), self.network.site)
        if result.found_again:
            draft.flags += (FOUND_AGAIN,)
        if result.refused:
            draft.refused += result.refused
            draft.flags += (BLOCKED,)
        return None

    def _value_beside(self, action: CheckedAction, snapshot: Snapshot, result: ToolResult) -> str | None:
        value = recorded_value(action, snapshot, result.contents)
        return None if value != self.redaction.without_secrets(value) else value

    def _done(self, outcome: Outcome, draft: StepDraft, *, answers: bool = False) -> None:
        draft.outcome = outcome
        number = None
        if self._list is not None:
            self._list.executed(ok=outcome.ok)
            number = self._list.done
        if not outcome.ok:
            self._feedback.fails(outcome.message)
        elif answers:
            self._feedback.answers(outcome.message, number=number)

    def _tools_on(self, page: Page, browser: Browser) -> tuple[ToolSpec, ...]:
        return (*self._tools(browser), *offered_call(page, is_named=True))

    def _tools(self, browser: Browser) -> tuple[ToolSpec, ...]:
        asking = (asking_tool(permissions_of(self.task.user_replies)),) if self.task.has_user else ()
        # Where only the site's tools may act, no file is sent otherwise.
        files = () if self.config.site_tools == "only" else self.task.files
        return (*browser.tools, *file_tools(files, self.config.actions), *asking)

    def _answer_question(self, checked: CheckedAction, line: str, draft: StepDraft) -> Outcome:
        """The user's answer goes to the participant with the next observation."""
        if sum(step.asked is not None for step in self._steps) >= MAX_QUESTIONS:
            return Outcome(ok=False, message=f"The user answers at most {MAX_QUESTIONS} questions.")
        question, permission = str(checked.params["question"]), checked.params.get(PERMISSION)
        permission_name = None if permission is None else str(permission)
        draft.asked = exchange = answered(question, permission_name, self.task.user_replies, self.task.user_reply)
        return Outcome(ok=True, message=exchange.reply, line=line)

    async def _execute(self, checked: CheckedAction, browser: Browser, limit: Clock, draft: StepDraft) -> ToolResult:
        """Execute an action. The navigations that it causes are recorded even if it breaks the browser."""
        browser.begin_step(draft.observed.index + 1)
        # Navigations while the participant was thinking are not caused by this action.
        navigation_count = len(draft.navigations)
        draft.navigations += self._route.went(browser.take_hops())
        self._route.acts(checked.tool, checked.params)
        self.network.entered(tuple(_texts_in(checked.params)))
        # The page may have changed, so a final observation is due.
        self._content = None
        # A requested wait does not count against the browser's timeout, only against the participant's.
        is_wait = tool_of(checked.tool).waits
        try:
            async with self._clock.running() if is_wait else self._browser_time(limit):
                try:
                    result = await browser.act(checked.tool, checked.params)
                    return recorded_result(checked.tool, result, self.redaction)
                finally:
                    # Before the time is charged, which depends on where the action led.
                    draft.navigations += self._route.went(browser.take_hops())
                    if self._route.left_site(draft.navigations[navigation_count:]) and self.config.off_site != "allow":
                        draft.flags += (OFF_SITE,)
        except StepOverdue:
            self._overdue = self._too_long()
            return ToolResult(ok=False, text=f"the step took longer than {self.config.step_timeout_s:g} s")


def _texts_in(value: Any) -> Iterator[str]:
    """Every text and number in an action's parameters."""
    if isinstance(value, dict):
        # References name elements of the snapshot.
        yield from _texts_in([item for name, item in value.items() if name not in TARGETS])
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _content(page: Page) -> object:
    return page.url, page.title, page.snapshot, page.dialog, page.notice


def _shortened_tabs(tabs: tuple[Tab, ...]) -> tuple[Tab, ...]:
    """The first tabs and the current one: a page may open a hundred with long addresses."""
    first_tabs = [tab for tab in tabs if tab.current or tab.index < _KEPT_TABS]
    return tuple(
        tab.model_copy(update={"url": clip_text(tab.url, 500), "title": clip_text(tab.title, 200)})
        for tab in first_tabs
    )

"""What an attempt is made of: parts that keep their state, and the few moments at which they are called.

`judge.episode.episode` is the loop that calls them, in one order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from uuid import uuid4

from judge.browser.action_lines import acted_on, action_line, recorded_value, with_downloads
from judge.browser.replies import line_of
from judge.browser.session import Browser, TakenDownload, ToolResult
from judge.browser.settle import SettleMode
from judge.browser.tools import CheckedAction
from judge.config import RunConfig
from judge.episode.blame import Route
from judge.episode.clock import Clock, OutOfTime
from judge.episode.draft import StepDraft
from judge.evaluators.provenance import own_names
from judge.network.attempt import AttemptNetwork
from judge.records.steps import Outcome, ProbeValue, Step
from judge.records.tasks import Task
from judge.store.layout import TaskStore
from judge.trajectory.redaction import Redaction
from shared.models import Page, ToolSpec
from shared.snapshot import Snapshot


@dataclass
class AttemptStage:
    """What the parts of an attempt share. `browser` is set once it is open, and `settle` before its first page.

    `final_look` is the observation after the last step, if there is one.

    `can_replay`: the task's sites can be brought back to their initial state, so that an attempt in page time may be
    played again in real time.
    """

    task: Task
    config: RunConfig
    store: TaskStore
    redaction: Redaction
    network: AttemptNetwork
    _: KW_ONLY
    # Of the conversation with the participant.
    context_id: str = field(default_factory=lambda: uuid4().hex)
    number: int = 1
    in_real_time: bool = False
    can_replay: bool = False
    browser: Browser = field(init=False)
    versions: dict[str, str] = field(default_factory=dict, init=False)
    settle: SettleMode | None = field(default=None, init=False)
    steps: list[Step] = field(default_factory=list, init=False)
    final_look: Step | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        limit_s = self.config.task_timeout_s
        self.route = Route(self.task.website, self.network.site)
        self.clock = Clock(limit_s, OutOfTime(f"used all of its {limit_s:g} s (task_timeout_s)"))

    @property
    def clock_ms(self) -> int | None:
        """The start of the pages' clock; in real time, it is this machine's."""
        return self.network.clock_ms if self.settle == "page-time" else None


@dataclass
class PageLook:
    """An observed page with its probes. `facts` are the step's, by field, with `flags`.

    `downloads` were taken before those still open.
    """

    page: Page
    probed: tuple[ProbeValue, ...]
    downloads: tuple[TakenDownload, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)

    @property
    def content(self) -> object:
        """What changes if the page changes."""
        page = self.page
        return page.url, page.title, page.snapshot, page.dialog, page.notice, self.probed

    def recorded(self, index: int, files: Mapping[str, str | None]) -> Step:
        """The part of a step that the observation provides; `files` are the page's."""
        return Step(index=index, **files, **self.facts, flags=tuple(self.flags))


@dataclass
class Act:
    """An action on a page, while it is executed; every fact is added to `draft` as soon as it is known.

    Lines refer to `shown`. `may_have_acted`: it may have taken effect although it failed.
    """

    action: CheckedAction
    shown: CheckedAction
    snapshot: Snapshot
    draft: StepDraft
    result: ToolResult = field(init=False)
    may_have_acted: bool = False

    @property
    def line(self) -> str:
        """Its line, as far as it is known before it is executed."""
        return line_of(self.shown, self.snapshot)

    def outcome(self, redaction: Redaction) -> Outcome:
        """What became of it."""
        shown, snapshot, result = self.shown, self.snapshot, self.result
        if not result.ok:
            is_possible = self.may_have_acted or result.has_begun
            return Outcome(ok=False, message=result.text, **(self.draft.attempted if is_possible else {}))
        line, own_line = (
            with_downloads(action_line(shown, each, result.hit, result.contents), result.downloads)
            for each in (snapshot, own_names(snapshot))
        )
        value = recorded_value(shown, snapshot, result.contents)
        return Outcome(
            ok=True,
            message=result.text,
            line=line,
            refs=acted_on(shown, snapshot, result.hit),
            own_line=own_line if own_line != line else None,
            value=None if value != redaction.without_secrets(value) else value,
        )


class AttemptPart:
    """A part of an attempt. It overrides the hooks that it needs; none of them may wait for a page."""

    def __init__(self, stage: AttemptStage) -> None:
        self.stage = stage

    def tools(self, offered: Sequence[ToolSpec], page: Page, *, is_named: bool) -> Sequence[ToolSpec]:
        """The tools on this page, given those that later parts offer.

        `is_named`: with what a call may name, as when a reply is checked.
        """
        return offered

    def observed(self, look: PageLook) -> None:
        """A page was observed: add to the facts and flags of its step. The attempt may be about to end with it."""

    def acting(self, act: Act) -> Outcome | None:
        """An action is about to be executed. An outcome takes its place, so that the browser does not execute it."""
        return None

    def acted(self, act: Act) -> None:
        """The browser has executed an action, or failed to: `act.result` may be replaced."""

    async def closes(self) -> None:
        """The browser is about to be closed, even after a fault."""

    def ends(self) -> Mapping[str, Any]:
        """The facts of the attempt, by field of `EpisodeEnd`."""
        return {}

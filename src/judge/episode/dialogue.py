"""What a participant is sent, and what it replies: one action, or several, executed one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from judge.browser.action_lines import MAX_DOWNLOADS
from judge.browser.points import Viewport
from judge.browser.replies import understand
from judge.browser.tools import CheckedAction, Complaint, check_action
from judge.episode.action_list import ActionList, SeenPage
from judge.episode.draft import StepDraft
from judge.episode.part import Act, AttemptPart, AttemptStage, PageLook
from judge.records.notices import notice_text
from judge.records.steps import Outcome, StopReason
from judge.records.tools import tool_of
from judge.trajectory.redaction import Redaction
from shared.claims import ClaimedUsage
from shared.models import Action, ObservationMessage, Page, ToolSpec
from shared.protocol import RESULT, HearsTheEnd, Participant, ReportsItsWork, render_observation
from shared.snapshot import as_shown, cut_snapshot
from shared.text import excerpt, without_surrogates

MAX_UNREADABLE = 3
# The heading with which the browser's server begins an answer.
_RESULT_HEADING = "### Result\n"


@dataclass
class Feedback:
    """On one reply: what failed or was not executed, the actions' results, and the files that pages offered."""

    problem: str | None = None
    results: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()

    def fails(self, problem: str) -> None:
        """The reply, or one of its actions, failed, or was not executed. `problem` is one or more sentences."""
        self.problem = problem if self.problem is None else f"{self.problem} {problem}"

    def answers(self, text: str, *, number: int | None = None) -> None:
        """An action whose effect is not on the page returned this. `number`: of an action in a list."""
        result = text.removeprefix(_RESULT_HEADING)
        self.results += (result if number is None else f"action {number}: {result}",)

    def text(self, downloads: Sequence[str] = ()) -> str | None:
        """The line of the message; `downloads` began while the page was observed."""
        results = "; ".join(self.results)
        text = RESULT + results if results else None
        if self.problem is not None:
            text = f"{self.problem} Results of the others: {results}" if results else self.problem
        return _with_downloads(text, (*self.downloads, *downloads))


def _with_downloads(feedback: str | None, names: Sequence[str]) -> str | None:
    """The feedback with the files that the page began to download since the last observation."""
    if not names:
        return feedback
    more = f" and {len(names) - MAX_DOWNLOADS} more" if len(names) > MAX_DOWNLOADS else ""
    names_text = ", ".join(excerpt(name, 100) for name in names[:MAX_DOWNLOADS]) + more
    note = f"the page started the download of {names_text}; files cannot be opened here"
    return RESULT + note if feedback is None else f"{feedback} Also, {note}."


class _PageLimits(TypedDict):
    open_tabs: int
    viewport: Viewport


class Dialogue(AttemptPart):
    """The messages to the participant and its replies."""

    def __init__(self, stage: AttemptStage) -> None:
        super().__init__(stage)
        self._feedback = Feedback()
        # How many replies there were, and what is left of the last one.
        self._replies = 0
        self._list: ActionList | None = None
        # Texts that vanished, of which the participant has not been sent yet.
        self._vanished: tuple[str, ...] = ()
        self._unreadable = 0
        self._claimed: ClaimedUsage | None = None

    @property
    def may_ask(self) -> bool:
        """Whether another reply is allowed."""
        return self._replies < self.stage.config.max_steps

    @property
    def goes_on(self) -> bool:
        """Whether there is, or may be, another action."""
        return self.may_ask or bool(self._list and self._list.remaining)

    def next_listed(self, page: SeenPage) -> Action | None:
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

    def observed(self, look: PageLook) -> None:
        """How many lines of the page are sent, unless it is only the next action of the last reply."""
        look.facts["sent_lines"] = self._to_send(look.page)[1]

    def _to_send(self, page: Page) -> tuple[str, int | None]:
        """The snapshot as it is sent, and how many of its lines, if not all. The record has the complete snapshot."""
        config = self.stage.config
        full_text = as_shown(page.snapshot, boxes=config.snapshot_boxes)
        cut_text = cut_snapshot(full_text, config.max_snapshot_chars)
        # The last line says what is missing.
        return cut_text, None if cut_text == full_text else cut_text.count("\n")

    def message(self, action: Action | None, look: PageLook, tools: Sequence[ToolSpec]) -> ObservationMessage | None:
        """The message about a page, unless `action` is next; facts of the step say which one it was."""
        message, reply = None, self._replies
        if action is not None and self._list is not None:
            look.facts["sent_lines"], reply = 0, self._list.reply
        else:
            message = self._message(look.page, tools)
            look.facts["feedback"] = message.feedback
        look.facts["reply_index"] = None if reply == len(self.stage.steps) else reply
        return message

    def _message(self, page: Page, tools: Sequence[ToolSpec]) -> ObservationMessage:
        """What is said of the last reply is said once."""
        task, is_first = self.stage.task, not self.stage.steps
        done, self._list = self._list, None
        feedback, self._feedback = self._feedback.text(page.downloads), Feedback()
        vanished, self._vanished = (*self._vanished, *page.vanished), ()
        return ObservationMessage(
            page=page.model_copy(update={"snapshot": self._to_send(page)[0], "vanished": vanished}),
            tools=tuple(tools),
            instruction=task.task if is_first else None,
            website=task.website if is_first else None,
            feedback=feedback,
            notice=notice_text(page.notice) if page.notice else None,
            executed=(done.done, done.total) if done else None,
            max_actions=self.stage.config.max_actions,
        )

    async def end(self, participant: Participant) -> None:
        """Tell the participant that the attempt is over, if it wants to know."""
        if isinstance(participant, HearsTheEnd):
            await participant.end(self.stage.context_id)

    async def ask(self, participant: Participant, message: ObservationMessage, draft: StepDraft) -> None:
        """Send the message, and wait for the reply."""
        page, context_id = message.page, self.stage.context_id
        async with self.stage.clock.running():
            text = await participant.send(
                render_observation(message), image=page.screenshot, media_type=page.media_type, context_id=context_id
            )
        if isinstance(participant, ReportsItsWork):
            self._claimed = participant.claimed(context_id)
            draft.claimed_trace = participant.trace(context_id)
        draft.reply = without_surrogates(text)
        self._replies += 1

    def read(self, page: SeenPage, tools: Sequence[ToolSpec], draft: StepDraft) -> Act | None:
        """The first action of the reply; `None` if it has none that can be executed, and the participant is told."""
        config, redaction, text = self.stage.config, self.stage.redaction, draft.reply
        limits = self._limits_on(page.page)
        reply_read = understand(text, tools, page.snapshot, max_actions=config.max_actions, **limits)
        # Only unreadable replies in a row count. A readable but refused one ends the row.
        self._unreadable = self._unreadable + 1 if reply_read.action is None else 0
        checked = reply_read.checked
        for each in reply_read.rest:
            text, _, _ = _recorded(text, each.action, None, redaction)
        draft.reply, draft.action, shown = _recorded(text, reply_read.action, checked, redaction)
        if checked is None or shown is None:
            self.done(Outcome(ok=False, message=reply_read.complaint), draft)
            return None
        if reply_read.rest:
            self._list = ActionList(draft.observed.of_reply, reply_read.rest, page)
        return Act(checked, shown, page.snapshot, draft)

    def read_listed(self, action: Action, page: SeenPage, tools: Sequence[ToolSpec], draft: StepDraft) -> Act | None:
        """A later action of a reply. It is checked again, because the page may have changed."""
        problem = check_action(action, tools, page.snapshot, **self._limits_on(page.page))
        checked = problem if isinstance(problem, CheckedAction) else None
        _, draft.action, shown = _recorded("", action, checked, self.stage.redaction)
        if checked is None or shown is None:
            self.done(Outcome(ok=False, message=problem.text if isinstance(problem, Complaint) else ""), draft)
            return None
        return Act(checked, shown, page.snapshot, draft)

    def _limits_on(self, page: Page) -> _PageLimits:
        config = self.stage.config
        return {"open_tabs": max(1, len(page.tabs)), "viewport": (config.viewport_width, config.viewport_height)}

    @property
    def gives_up(self) -> StopReason | None:
        """What ends the attempt after too many unreadable replies."""
        return "unreadable_replies" if self._unreadable >= MAX_UNREADABLE else None

    def acted(self, act: Act) -> None:
        """Files whose download began are announced with the next message."""
        act.draft.downloads += act.result.downloads
        self._feedback.downloads += act.result.downloads

    def done(self, outcome: Outcome, draft: StepDraft, *, answers: bool = False) -> None:
        """An action was executed, or not. `answers`: what the participant asked for is its result."""
        draft.outcome = outcome
        number = None
        if self._list is not None:
            self._list.executed(ok=outcome.ok)
            number = self._list.done
        if not outcome.ok:
            self._feedback.fails(outcome.message)
        elif answers:
            self._feedback.answers(outcome.message, number=number)

    def ends(self) -> Mapping[str, Any]:
        """What the participant used, as measured and as it claims."""
        return {"participant_s": self.stage.clock.used_s, "claimed_usage": self._claimed}


def _recorded(
    text: str, action: Action | None, checked: CheckedAction | None, redaction: Redaction
) -> tuple[str, Action | None, CheckedAction | None]:
    """A reply as it is recorded, and what its action line shows: without listed secrets, if this is all it is given."""
    if action is None or tool_of(action.tool).given is None:
        return text, action, checked
    shown = checked and CheckedAction(tool=checked.tool, params=redaction.without_secrets(checked.params))
    return redaction.without_secrets(text), Action(**redaction.without_secrets(action.model_dump())), shown

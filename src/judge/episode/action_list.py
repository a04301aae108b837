"""Several actions of one reply: which one is next, and why the rest is not executed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from judge.browser.replies import ListedAction
from judge.browser.same_elements import same_params
from shared.models import Action, Page
from shared.snapshot import Snapshot

# Why the next action is not executed.
ListStop = Literal["failed", "dialog", "tabs", "document", "notice", "element"]
_WHY: Mapping[ListStop, str] = MappingProxyType(
    {
        "failed": "the action before failed",
        "dialog": "a dialog opened",
        "tabs": "a tab was opened, closed or chosen",
        "document": "the page was replaced by another one",
        "notice": "the page cannot be shown as usual",
        "element": "the element of action {next} is gone or no longer the same",
    }
)


@dataclass(frozen=True)
class SeenPage:
    """An observed page. `documents`: how many documents tabs had shown until then."""

    page: Page
    snapshot: Snapshot
    documents: int


class ActionList:
    """The actions of one reply, all of which are meant for the page that the participant was sent.

    `reply` is the number of the reply, from 0; `done` how many of its `total` actions were executed without a failure.
    """

    def __init__(self, reply: int, rest: tuple[ListedAction, ...], page: SeenPage) -> None:
        self.reply = reply
        self.total = 1 + len(rest)
        self.done = 0
        self._rest = rest
        self._page = page
        self._is_failed = False

    def executed(self, *, ok: bool) -> None:
        """The next action was executed, or failed."""
        self.done += ok
        self._is_failed = not ok

    @property
    def remaining(self) -> int:
        """How many actions were not tried."""
        return self.total - self.done - self._is_failed

    def next_on(self, now: SeenPage) -> Action | ListStop:
        """The next action, if one is left, with the references of the page as it is now; or why not."""
        if self._is_failed:
            return "failed"
        if now.page.dialog is not None:
            return "dialog"
        if _tabs(now.page) != _tabs(self._page.page):
            return "tabs"
        # Documents that a page itself makes (`data:`, `blob:`) are not counted, and have another origin.
        if now.documents != self._page.documents or now.page.origin != self._page.page.origin:
            return "document"
        if now.page.notice is not None:
            return "notice"
        action = self._rest[self.done - 1]
        params = same_params(self._page.snapshot, action.checked.params, now.snapshot)
        if params is None:
            return "element"
        # As it was sent, unless the page has given its elements new references.
        return action.action if params == action.checked.params else action.action.model_copy(update={"params": params})

    def explained(self, why: ListStop) -> str:
        """A sentence for the participant on the actions that were not tried."""
        first = self.total - self.remaining + 1
        numbers = f"Action {first}" if self.remaining == 1 else f"Actions {first} to {self.total}"
        was = "was" if self.remaining == 1 else "were"
        return f"{numbers} of {self.total} {was} not executed: {_WHY[why].format(next=first)}."


def _tabs(page: Page) -> tuple[tuple[int, bool], ...]:
    return tuple((tab.index, tab.current) for tab in page.tabs)

"""Calls of the tools that a page registers: how they are offered, and how they are recorded."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from judge.browser.session import ToolResult
from judge.browser.tools import CheckedAction, calling_tool
from judge.episode.part import Act, AttemptPart, PageLook
from judge.records.tools import SITE_TOOL
from judge.trajectory.redaction import Redaction
from shared.models import Action, Page, ToolSpec


class RecordedReply(NamedTuple):
    """A reply as it is recorded. `checked` is what its action line shows."""

    text: str
    action: Action | None
    checked: CheckedAction | None


def recorded_reply(
    text: str, action: Action | None, checked: CheckedAction | None, redaction: Redaction
) -> RecordedReply:
    """The reply, without listed secrets if it calls a site's tool: its line repeats everything that it sends."""
    if action is None or action.tool != SITE_TOOL:
        return RecordedReply(text, action, checked)
    redacted_action = checked and CheckedAction(tool=checked.tool, params=redaction.without_secrets(checked.params))
    return RecordedReply(
        redaction.without_secrets(text), Action(**redaction.without_secrets(action.model_dump())), redacted_action
    )


def recorded_result(tool: str, result: ToolResult, redaction: Redaction) -> ToolResult:
    """The result, without listed secrets if a site's tool gave it, which may repeat what it was given."""
    return result.model_copy(update={"text": redaction.without_secrets(result.text)}) if tool == SITE_TOOL else result


class SiteCalls(AttemptPart):
    """Offers, executes and records calls of the tools that a page registers."""

    def tools(self, page: Page, *, is_named: bool) -> Sequence[ToolSpec]:
        """`site_tool`, if the page has tools. Their names stand apart from the judge's words in a message."""
        names = [tool.name for tool in page.site_tools]
        return (calling_tool(names if is_named else None),) if names else ()

    def observed(self, look: PageLook) -> None:
        """What the page's tools are called."""
        look.facts["site_tools"] = tuple(tool.name for tool in look.page.site_tools)

    def acted(self, act: Act) -> None:
        """A site's tool may do something before it fails."""
        act.result = recorded_result(act.action.tool, act.result, self.stage.redaction)
        act.may_have_acted |= act.action.tool == SITE_TOOL and not act.result.ok

    def ends(self) -> Mapping[str, Any]:
        """Whether they were offered."""
        return {"site_tools": self.stage.config.site_tools}

"""Calls of the tools that a page registers: how they are offered, and how they are recorded. Pure."""

from typing import NamedTuple

from judge.browser.session import ToolResult
from judge.browser.tools import CheckedAction, calling_tool
from judge.records.tools import SITE_TOOL
from judge.trajectory.redaction import Redaction
from shared.models import Action, Page, ToolSpec


def offered_call(page: Page, *, is_named: bool) -> tuple[ToolSpec, ...]:
    """`site_tool`, if the page has tools. With `is_named` it takes their names only, as when a reply is checked: in a
    message, they stand apart from the judge's own words.
    """
    names = [tool.name for tool in page.site_tools]
    return (calling_tool(names if is_named else None),) if names else ()


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
    """The result, without listed secrets if it is that of a site's tool, which may repeat what it was given."""
    return result.model_copy(update={"text": redaction.without_secrets(result.text)}) if tool == SITE_TOOL else result


def may_have_acted(tool: str, result: ToolResult) -> bool:
    """Whether a failed action may have taken effect: a site's tool may do something before it fails."""
    return tool == SITE_TOOL and not result.ok

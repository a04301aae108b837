"""What a participant's reply asks for: the boundary between untrusted text and validated actions."""

import json
import logging
from collections.abc import Sequence

from judge.browser.action_lines import action_line
from judge.browser.points import Viewport
from judge.browser.tools import CheckedAction, Complaint, check_action
from shared.models import Action, Record, ToolSpec
from shared.protocol import ENDING_TOOLS, REPLY_EXAMPLE, parse_reply
from shared.snapshot import Snapshot

_log = logging.getLogger(__name__)


class CheckedReply(Record):
    """A parsed reply. No `action`: it is unreadable. No `checked`: it is refused, and `complaint` says why.

    `line` is the action line to record if the action succeeds.
    """

    action: Action | None = None
    checked: CheckedAction | None = None
    line: str = ""
    complaint: str = ""


def understand(
    text: str,
    tools: Sequence[ToolSpec],
    snapshot: Snapshot | None,
    *,
    open_tabs: int | None = None,
    viewport: Viewport | None = None,
) -> CheckedReply:
    """The action that a reply asks for, or the complaint about it. Parameters as in `check_action`. Pure.

    This is the one boundary around participants' texts: everything derived from a reply alone is computed here, and a
    text that breaks this code is an unreadable reply, not an internal error.
    """
    try:
        reply = parse_reply(text, tools)
        if reply.action is None:
            return CheckedReply(complaint=reply.complaint or "")
        # An action that cannot be recorded fails here, before it is executed.
        json.dumps(reply.action.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode()
        checked = check_action(reply.action, tools, snapshot, open_tabs=open_tabs, viewport=viewport)
        if isinstance(checked, Complaint):
            return CheckedReply(action=reply.action, complaint=checked.text)
        # The answer is a parameter of an ending tool; it is recorded separately and not in the line.
        shown = CheckedAction(tool=checked.tool, params={}) if checked.tool in ENDING_TOOLS else checked
        return CheckedReply(action=reply.action, checked=checked, line=action_line(shown, snapshot))
    except MemoryError:  # not the text's fault
        raise
    except Exception as error:  # noqa: BLE001
        _log.exception("a reply cannot be read")
        why = f"Your reply cannot be read ({type(error).__name__}); send exactly one action, such as {REPLY_EXAMPLE}"
        return CheckedReply(complaint=why)

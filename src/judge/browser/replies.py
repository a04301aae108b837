"""What a participant's reply asks for: the boundary between untrusted text and validated actions."""

import json
import logging
from collections.abc import Sequence

from judge.browser.action_lines import action_line
from judge.browser.points import Viewport
from judge.browser.tools import CheckedAction, Complaint, check_action
from judge.records.tools import tool_of
from shared.models import Action, ParsedReply, Record, ToolSpec
from shared.protocol import complaint, parse_reply
from shared.replies import ENDING_TOOLS
from shared.snapshot import Snapshot

_log = logging.getLogger(__name__)


class ListedAction(Record):
    """One of the later actions of a reply: as sent, and validated on the page that the participant saw."""

    action: Action
    checked: CheckedAction


class CheckedReply(Record):
    """A parsed reply. No `action`: it is unreadable. No `checked`: it is refused, and `complaint` says why.

    `line` is the action line to record if the action succeeds. `rest` are the actions after the first one.
    """

    action: Action | None = None
    checked: CheckedAction | None = None
    line: str = ""
    complaint: str = ""
    rest: tuple[ListedAction, ...] = ()


def understand(
    text: str,
    tools: Sequence[ToolSpec],
    snapshot: Snapshot | None,
    *,
    open_tabs: int | None = None,
    viewport: Viewport | None = None,
    max_actions: int = 1,
) -> CheckedReply:
    """The actions that a reply asks for, or the complaint about it. Parameters as in `check_action`. Pure.

    This is the one boundary around participants' texts: everything derived from a reply alone is computed here, and a
    text that breaks this code is an unreadable reply, not an internal error.
    """
    try:
        reply = parse_reply(text, tools, max_actions=max_actions)
        if reply.action is None:
            return CheckedReply(complaint=reply.complaint or "")
        checked: list[CheckedAction] = []
        actions = (reply.action, *reply.rest)
        for number, action in enumerate(actions, 1):
            # An action that cannot be recorded fails here, before it is executed.
            json.dumps(action.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode()
            problem = check_action(action, tools, snapshot, open_tabs=open_tabs, viewport=viewport)
            if isinstance(problem, CheckedAction) and number < len(actions) and tool_of(action.tool).is_asked_for:
                problem = Complaint(text=f"{action.tool} can only be the last action.")
            if isinstance(problem, Complaint):
                return CheckedReply(action=reply.action, complaint=_of_list(problem.text, number, len(actions)))
            checked.append(problem)
        return _checked(reply, checked, snapshot)
    except MemoryError:  # not the text's fault
        raise
    except Exception as error:  # noqa: BLE001
        _log.exception("a reply cannot be read")
        return CheckedReply(complaint=complaint(f"cannot be read ({type(error).__name__})", max_actions))


def line_of(checked: CheckedAction, snapshot: Snapshot | None) -> str:
    """The action line before the action is executed."""
    # The answer is a parameter of an ending tool; it is recorded separately and not in the line.
    shown_action = CheckedAction(tool=checked.tool, params={}) if checked.tool in ENDING_TOOLS else checked
    return action_line(shown_action, snapshot)


def _checked(reply: ParsedReply, checked: Sequence[CheckedAction], snapshot: Snapshot | None) -> CheckedReply:
    rest = zip(reply.rest, checked[1:], strict=True)
    return CheckedReply(
        action=reply.action,
        checked=checked[0],
        line=line_of(checked[0], snapshot),
        rest=tuple(ListedAction(action=action, checked=each) for action, each in rest),
    )


def _of_list(text: str, number: int, total: int) -> str:
    return text if total == 1 else f"Action {number} of {total}: {text} None of them was executed."

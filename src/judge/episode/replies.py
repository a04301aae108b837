"""A participant's reply, from its text to what may go to the browser and onto the record. Pure; never raises."""

import json
import logging
from collections.abc import Sequence

from judge.browser.action_lines import action_line
from judge.browser.tools import CheckedAction, Complaint, check_action
from shared.models import Action, Record, ToolSpec
from shared.protocol import ENDING_TOOLS, REPLY_EXAMPLE, parse_reply
from shared.snapshot import Snapshot

_log = logging.getLogger(__name__)


class Understood(Record):
    """What a reply asks for. No `action`: it cannot be read. No `checked`: it is refused, and `complaint` says why.

    `line` is the action's line for the record, should the action succeed.
    """

    action: Action | None = None
    checked: CheckedAction | None = None
    line: str = ""
    complaint: str = ""


def understand(
    text: str, tools: Sequence[ToolSpec], snapshot: Snapshot | None, *, open_tabs: int | None = None
) -> Understood:
    """The action that a reply asks for, or the complaint about it. Parameters as in `check_action`.

    The one boundary around what a participant writes: everything derived from its text alone is computed here, and a
    text that this code cannot cope with is an unreadable reply, never an error of the judge.
    """
    try:
        return _understood(text, tools, snapshot, open_tabs)
    except MemoryError:  # a shortage of this machine
        raise
    except Exception as error:  # noqa: BLE001
        _log.exception("a reply cannot be read")
        why = f"Your reply cannot be read ({type(error).__name__}); send exactly one action, such as {REPLY_EXAMPLE}"
        return Understood(complaint=why)


def _understood(text: str, tools: Sequence[ToolSpec], snapshot: Snapshot | None, open_tabs: int | None) -> Understood:
    reply = parse_reply(text)
    if reply.action is None:
        return Understood(complaint=reply.complaint or "")
    # What cannot be recorded is refused before anything is done with it.
    json.dumps(reply.action.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode()
    checked = check_action(reply.action, tools, snapshot, open_tabs=open_tabs)
    if isinstance(checked, Complaint):
        return Understood(action=reply.action, complaint=checked.text)
    # The parameters of an ending tool are the answer, which is on record by itself.
    shown = CheckedAction(tool=checked.tool, params={}) if checked.tool in ENDING_TOOLS else checked
    return Understood(action=reply.action, checked=checked, line=action_line(shown, snapshot))

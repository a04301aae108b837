"""The sentences that tell a participant what is unusual about a page. Pure.

They are beside the page in the judge's message, never in it, and contain no text of the page.
"""

from types import MappingProxyType

from shared.models import Notice
from shared.text import counted

# An empty tab has replaced a page that could not be observed.
GIVEN_UP = frozenset({"tab_busy", "tab_flooded", "tab_took_too_long"})
_KINDS = {"svg": "SVG image", "xml": "XML document", "empty": "a document without content"}


_REPLACED = "the tab was replaced by an empty one"
_PLAIN = MappingProxyType(
    {
        "keeps_changing": "This page cannot be shown: it keeps changing or loading itself again",
        "no_snapshot": "This page cannot be shown: the browser cannot describe it",
        "no_screenshot": "The browser could not take a screenshot of this page",
        "nothing_changed": "Neither the snapshot nor the screenshot changed: the page may not have noticed your action",
        "file_chooser_cancelled": "This page opened a file chooser, which was cancelled: files cannot be chosen here",
        "file_chooser_open": "This page opened a file chooser: browser_file_upload chooses files, others cancel it",
        "tab_crashed": "This tab crashed; it is empty now",
        "tab_flooded": f"This page sends console messages or navigations without end; {_REPLACED}",
        "tab_busy": f"This page's script is busy and does not let the page be shown; {_REPLACED}",
    }
)


def notice_text(notice: Notice) -> str:
    """The sentence for a notice."""
    seconds, count = f"{notice.seconds or 0:g} s", notice.count or 0
    match notice.code:
        case "cannot_be_shown":
            return f"This page cannot be shown: {_KINDS[notice.kind or 'empty']}"
        case "loading_stopped":
            return f"This page was still loading after {seconds}; loading was stopped"
        case "script_stopped":
            return f"A script of this page was stopped after {seconds} of computing"
        case "tabs_closed":
            return f"Too many tabs were open: {counted(count, 'new tab')} closed"
        case "not_as_typed":
            do = "does" if count == 1 else "do"
            return f"{counted(count, 'field')} {do} not contain what you typed: see the snapshot"
        case "tab_took_too_long":
            return f"This page could not be shown within {seconds}; {_REPLACED}"
    return _PLAIN[notice.code]

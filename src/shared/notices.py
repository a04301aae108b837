"""The sentences that tell a participant what is odd about a page. Pure.

They stand beside the page in the judge's message, never in it, and contain no text of the page.
"""

from shared.models import Notice
from shared.text import counted

# An empty tab has taken the place of a page that did not let itself be observed.
GIVEN_UP = frozenset({"tab_busy", "tab_flooded", "tab_took_too_long"})
_KINDS = {"svg": "SVG image", "xml": "XML document", "empty": "a document without content"}


def notice_text(notice: Notice) -> str:
    """The sentence for a notice."""
    seconds = f"{notice.seconds or 0:g} s"
    match notice.code:
        case "cannot_be_shown":
            return f"This page cannot be shown: {_KINDS[notice.kind or 'empty']}"
        case "loading_stopped":
            return f"This page was still loading after {seconds}; loading was stopped"
        case "keeps_changing":
            return "This page cannot be shown: it keeps changing or loading itself again"
        case "no_snapshot":
            return "This page cannot be shown: the browser cannot describe it"
        case "no_screenshot":
            return "The browser could not take a screenshot of this page"
        case "script_stopped":
            return f"A script of this page was stopped after {seconds} of computing"
        case "tabs_closed":
            return f"Too many tabs were open: {counted(notice.count or 0, 'new tab')} closed"
        case "tab_crashed":
            return "This tab crashed; it is empty now"
        case "tab_flooded":
            return "This page sends console messages or navigations without end; the tab was replaced by an empty one"
        case "tab_busy":
            return "This page's script is busy and does not let the page be shown; the tab was replaced by an empty one"
        case "tab_took_too_long":
            return f"This page could not be shown within {seconds}; the tab was replaced by an empty one"

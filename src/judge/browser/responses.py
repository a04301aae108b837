"""Parses the text of answers from Playwright's MCP server. Pure.

A response is a sequence of `### ` sections: Error, Result, Open tabs, Page, Modal state, Snapshot, Events. Titles,
addresses, dialog messages and snapshots in it come from the page, so sections are parsed strictly in order and by line,
never searched for: no page can forge another section. This relies on two facts: neither a document's title (the DOM
collapses line breaks) nor an address contains line breaks, and the server quotes those in snapshots.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from shared.models import Page, Tab
from shared.text import clip

MAX_RESULT_CHARS = 2_000
MAX_DIALOG_CHARS = 2_000
# Together less than what a participant is shown of a dialog.
MAX_PROMPT_CHARS = 700
MAX_DEFAULT_CHARS = 200
_MAX_TAB_CHARS = 8_000

_ERROR = "### Error"
_RESULT = "### Result"
_TABS = "### Open tabs"
_PAGE = "### Page"
_MODAL = "### Modal state"
_SNAPSHOT = "### Snapshot"
_EVENTS = "### Events"
_AFTER_SNAPSHOT = (_EVENTS, "### Paused")
# `- 0: (current) [title](address)`, in which a page chooses both. Quantifiers such as `*+` never backtrack, so no page
# can make the search slow.
_TAB_LINE = re.compile(
    r"- (\d+):( \(current\))? \[(.*)\)(?: \[crashed\])?(?: \[isolatedContext: [^\]]{0,200}+\])?", re.DOTALL
)
_STATUS = re.compile(r"- HTTP status: (\d{3})\b")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:")
_DIALOG = re.compile(r'- \["(\w+)" dialog with message "(.*)"\]: can be handled by browser_handle_dialog', re.DOTALL)
# `settle/server_tab.cjs` adds every prompt's default, percent-encoded.
_PROMPT = re.compile(r'(.*)" and default "([^\s"]*)', re.DOTALL)
_MODAL_REFUSAL = re.compile(r'### Error\nError: Tool "browser_\w+" does not handle the modal state\.(?:\n|$)')
_FILE_CHOOSER = "can be handled by browser_file_upload"
_EMPTY_SNAPSHOT = "\n### Snapshot\n```yaml\n\n```"
# At the start of the answer, where no text of a page or a participant can be.
_CRASH = re.compile(r"### Error\n(?:Error: )?(?:[\w.]+: )?(?:Target|Page) crashed\b")
# Where Playwright's log of an action ends if the page gave no answer: the next line would say that the element moves or
# is covered or disabled.
_NOT_ANSWERED = re.compile(r"Timeout [\d.]+ms exceeded\..*\n\s*- waiting for element to be visible[^\n]*\Z", re.DOTALL)
# Escape sequences of terminals (ECMA-48): colours, titles, two-character ones.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ERROR_PREFIX = re.compile(r"(?:\w*Error: )?(?:(?:browserBackend|tab|locator|elementHandle)\.\w+: )?")
_STACK_LINE = re.compile(r"^[ \t]++at .*(?:\n|$)", re.MULTILINE)


class ToolResponse(NamedTuple):
    """The server's answer to a tool call."""

    ok: bool
    text: str


class UnreadableResponse(ValueError):
    """The server's answer does not have the documented form."""


class CrashedTabResponse(UnreadableResponse):
    """There is no page, because its process crashed."""


def parse_page(text: str) -> Page:
    """Read the answer of `browser_snapshot`. Raises `UnreadableResponse`.

    The server lists tabs only if there are several; a single one is derived from the page. A tab whose address cannot
    be separated from its title (both may contain `](`) gets an empty address rather than a forged one.
    """
    lines = text.split("\n")
    at = _index(lines, _PAGE, 1) if lines[0] == _TABS else 0
    if at >= len(lines) - 1 or lines[at] != _PAGE:
        raise UnreadableResponse("no page section")
    end = _index(lines, _SNAPSHOT, at)
    url, title, status = _page_section(lines[at + 1 : end])
    tabs = _tabs(lines[1:at], url) if at > 1 else (Tab(index=0, title=title, url=url, current=True),)
    snapshot = _snapshot_section(lines[end + 1 :])
    return Page(url=url, title=title, snapshot=snapshot, tabs=tabs, http_status=status)


def _index(lines: list[str], line: str, start: int) -> int:
    try:
        return lines.index(line, start)
    except ValueError:
        raise UnreadableResponse(f"no line {line!r}") from None


def _page_section(lines: list[str]) -> tuple[str, str, int | None]:
    """Address, title, and the HTTP status, which the server reports only for an error."""
    if not lines or not lines[0].startswith("- Page URL: "):
        raise UnreadableResponse("no page address")
    rest = lines[1:]
    has_title = bool(rest) and rest[0].startswith("- Page Title: ")
    if "- Page status: crashed" in rest[has_title:]:
        raise CrashedTabResponse
    status = next(filter(None, map(_STATUS.match, rest[has_title:])), None)
    title = rest[0].removeprefix("- Page Title: ") if has_title else ""
    return lines[0].removeprefix("- Page URL: "), title, int(status[1]) if status else None


def _snapshot_section(lines: list[str]) -> str:
    """The snapshot without its fence."""
    if not lines or lines[0] != "```yaml":
        raise UnreadableResponse("no snapshot")
    for at in range(1, len(lines)):
        if lines[at] == "```" and (at + 1 == len(lines) or lines[at + 1] in _AFTER_SNAPSHOT):
            return "\n".join(lines[1:at]).strip("\n")
    raise UnreadableResponse("the snapshot does not end")


def parse_tab_list(text: str) -> tuple[Tab, ...]:
    """Read the answer of `browser_tabs` with action `list`. Raises `UnreadableResponse`.

    The title of a tab with an open dialog is empty there.
    """
    lines = text.split("\n")
    if lines[0] != _RESULT:
        raise UnreadableResponse("no result section")
    end = next((at for at, line in enumerate(lines) if at and line.startswith("### ")), len(lines))
    return _tabs(lines[1:end], None)


def _tabs(lines: list[str], current_url: str | None) -> tuple[Tab, ...]:
    tabs = []
    for position, line in enumerate(lines):
        match = _TAB_LINE.fullmatch(line)
        if match is None or int(match[1]) != position:
            raise UnreadableResponse(f"no tab {position} in {line[:80]!r}")
        is_current = match[2] is not None
        title, url = _title_and_url(match[3], current_url if is_current else None)
        tabs.append(Tab(index=position, title=title, url=url, current=is_current))
    return tuple(tabs)


def _title_and_url(text: str, known_url: str | None) -> tuple[str, str]:
    """Split `title](url`, where both parts may contain `](`."""
    # A tab that never loaded has neither.
    known_url = "" if text == "](" else known_url
    if known_url is not None and text.endswith(f"]({known_url}"):
        return text[: -len(known_url) - 2], known_url
    if len(text) > _MAX_TAB_CHARS:
        # A page can make its title megabytes long.
        return text[:_MAX_TAB_CHARS], ""
    # An address contains no spaces, so it begins in the last word.
    last_word = len(text) - len(re.split(r"\s", text)[-1])
    starts = [match.end() for match in re.finditer(re.escape("]("), text)]
    possible = [start for start in starts if start >= last_word and _SCHEME.match(text, start)]
    if len(possible) != 1:
        return text, ""
    return text[: possible[0] - 2], text[possible[0] :]


def modal_state(text: str) -> str | None:
    """The modal state that prevented a snapshot or screenshot, in the server's words; `None` if there is none.

    A dialog's message may contain anything. It is the last thing in such an answer.
    """
    head, separator, state = text.partition(f"\n{_MODAL}\n")
    if not separator or f"\n{_SNAPSHOT}\n" in head or (head.startswith(_ERROR) and not _MODAL_REFUSAL.match(head)):
        return None
    return state.removesuffix(_EMPTY_SNAPSHOT)


def dialog_text(state: str) -> str:
    """`alert: the message`, bounded, from a modal state; a prompt's default, if it has one, follows the message."""
    match = _DIALOG.match(state)
    if match is None:
        return state[:MAX_DIALOG_CHARS]
    kind, message = match.groups()
    prompt = _PROMPT.fullmatch(message) if kind == "prompt" else None
    if prompt is None or not prompt[2]:
        return f"{kind}: {prompt[1] if prompt else message}"[:MAX_DIALOG_CHARS]
    default = clip(unquote(prompt[2]), MAX_DEFAULT_CHARS)
    return f'{kind}: {clip(prompt[1], MAX_PROMPT_CHARS)} (default: "{default}")'


def is_file_chooser(state: str) -> bool:
    """Whether the modal state is an open file chooser (which no participant may use)."""
    return _DIALOG.match(state) is None and _FILE_CHOOSER in state


def listed_texts(text: str) -> list[str]:
    """The result of the judge's code if it is a list of strings."""
    try:
        texts = json.loads(text)
    except ValueError:
        return []
    return [each for each in texts if isinstance(each, str)] if isinstance(texts, list) else []


def says_crashed(text: str) -> bool:
    """Whether an error answer says that the page's process crashed."""
    return _CRASH.match(text) is not None


def is_not_answered(answer: ToolResponse) -> bool:
    """Whether an action timed out before the page answered about its element, so that it has not begun."""
    text = _ANSI.sub("", answer.text).rstrip()
    return not answer.ok and _NOT_ANSWERED.search(text) is not None


def clean_text(text: str, *, hide: Iterable[str] = (), limit: int = MAX_RESULT_CHARS) -> str:
    """The server's message for a participant: bounded; no colours, stack traces or `hide` (paths of this host)."""
    cleaned = _CONTROL.sub("", _ANSI.sub("", text.replace("\t", " ")))
    if cleaned.startswith(f"{_ERROR}\n"):
        cleaned = _ERROR_PREFIX.sub("", cleaned.removeprefix(f"{_ERROR}\n"), count=1)
        cleaned = _STACK_LINE.sub("", cleaned)
    # The longest first, because one path may be the beginning of another.
    for path in sorted(filter(None, hide), key=len, reverse=True):
        cleaned = cleaned.replace(path, "…")
    return clip(cleaned.strip(), limit)

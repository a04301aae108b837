"""What judge and participant say to each other, as text: observation to message, reply to action, and back. Pure.

A judge's message in order (the first three lines where they apply)::

    Task: …             once, in the first message of an episode
    Website: …
    Feedback: …         when the last reply failed
    Tools:
    - browser_click: …
    Reply format: …
    Page: <url>
    Title: …
    Dialog: …           when one is open
    Tabs:               when more than one is open
    - 0 (current): <url> | <title>
    Snapshot:
    …to the end of the message

Every value before the snapshot stands in one line, escaped by `shared.text.escape_line`; what a page can write is cut
to the limits below. So no page can imitate another line of the message. The screenshot travels beside the text.
"""

import re
from collections.abc import Iterator

from shared.errors import ObservationError
from shared.models import Action, Observation, Page, Reply, Tab
from shared.reply import (
    MAX_REPLY_CHARS,
    MAX_THOUGHT_CHARS,
    REPLY_EXAMPLE,
    TOOL_NAME,
    parse_reply,
    render_reply,
)
from shared.text import clip, escape_line, unescape_line, without_surrogates
from shared.tool_text import parse_tools, render_tools

__all__ = [
    "CLOSE",
    "ENDING_TOOLS",
    "FINISH",
    "MAX_DIALOG_CHARS",
    "MAX_FEEDBACK_CHARS",
    "MAX_REPLY_CHARS",
    "MAX_TABS",
    "MAX_THOUGHT_CHARS",
    "MAX_TITLE_CHARS",
    "MAX_URL_CHARS",
    "REPLY_EXAMPLE",
    "REPLY_FORMAT",
    "TOOL_NAME",
    "Action",
    "Observation",
    "Reply",
    "parse_observation",
    "parse_reply",
    "render_observation",
    "render_reply",
]

FINISH = "finish"
CLOSE = "browser_close"
ENDING_TOOLS = frozenset({FINISH, CLOSE})

MAX_URL_CHARS = 2_048
MAX_TITLE_CHARS = 300
MAX_DIALOG_CHARS = 1_000
MAX_FEEDBACK_CHARS = 2_000
MAX_TABS = 20

REPLY_FORMAT = (
    f"one tool call, {REPLY_EXAMPLE}, or three lines THOUGHT: …, ACTION: <tool>, PARAMS: <JSON object>. "
    f"<ref> stands for an element's ref, which the snapshot gives as [ref=…]. {FINISH} ends the task with your answer."
)

_VALUE = re.compile(r"(Task|Website|Feedback|Reply format|Page|Title|Dialog): (.*)")
_TAB = re.compile(r"- (\d{1,9})( \(current\))?: ([^|]*) \| (.*)")
_ORDER = ("Task", "Website", "Feedback", "Tools", "Reply format", "Page", "Title", "Dialog", "Tabs", "Snapshot")
_REQUIRED = {"Tools", "Reply format", "Page", "Title", "Snapshot"}


def render_observation(observation: Observation) -> str:
    """The text part of a judge's message; its layout is in this module's docstring.

    URLs are cut at `MAX_URL_CHARS`, titles at `MAX_TITLE_CHARS`, a dialog at `MAX_DIALOG_CHARS`, feedback at
    `MAX_FEEDBACK_CHARS`; of more than `MAX_TABS` tabs the current one and the last ones are listed. The snapshot is
    given as it is: cut it before (`shared.snapshot.cut_snapshot`).
    """
    return "\n".join(_lines(observation))


def parse_observation(text: str, screenshot: bytes | None = None, media_type: str = "image/jpeg") -> Observation:
    """The inverse of `render_observation`, for participants written in Python.

    What was cut stays cut; a single tab is not listed and comes back as no tabs. Raises `ObservationError` when the
    text is not a judge's message.
    """
    head, mark, snapshot = f"\n{text}".partition("\nSnapshot:\n")
    if not mark:
        raise _foreign('it has no "Snapshot:" line')
    values, blocks = _sections(head[1:].split("\n"))
    try:
        tools = parse_tools(blocks["Tools"])
    except (ValueError, RecursionError) as error:
        raise _foreign(str(error)) from None
    page = Page(
        url=values["Page"],
        title=values["Title"],
        snapshot=snapshot,
        screenshot=screenshot,
        media_type=media_type,
        tabs=tuple(_parse_tab(line) for line in blocks.get("Tabs", ())),
        dialog=values.get("Dialog"),
    )
    return Observation(
        page=page,
        tools=tools,
        instruction=values.get("Task"),
        website=values.get("Website"),
        feedback=values.get("Feedback"),
    )


def _lines(observation: Observation) -> Iterator[str]:
    page = observation.page
    if observation.instruction is not None:
        yield f"Task: {escape_line(observation.instruction)}"
    if observation.website is not None:
        yield f"Website: {escape_line(observation.website)}"
    if observation.feedback is not None:
        yield f"Feedback: {escape_line(clip(observation.feedback, MAX_FEEDBACK_CHARS))}"
    yield "Tools:"
    if observation.tools:
        yield render_tools(observation.tools)
    yield f"Reply format: {REPLY_FORMAT}"
    yield f"Page: {escape_line(clip(page.url, MAX_URL_CHARS))}"
    yield f"Title: {escape_line(clip(page.title, MAX_TITLE_CHARS))}"
    if page.dialog is not None:
        yield f"Dialog: {escape_line(clip(page.dialog, MAX_DIALOG_CHARS))}"
    if len(page.tabs) > 1:
        yield "Tabs:"
        yield from (_render_tab(tab) for tab in _listed(page.tabs))
    yield "Snapshot:"
    yield without_surrogates(page.snapshot)


def _listed(tabs: tuple[Tab, ...]) -> tuple[Tab, ...]:
    """At most `MAX_TABS`: a page that opens tabs without end must not fill the message."""
    if len(tabs) <= MAX_TABS:
        return tabs
    last = tabs[-(MAX_TABS - 1) :]
    return (*[tab for tab in tabs if tab.current and tab not in last][:1], *last)


def _render_tab(tab: Tab) -> str:
    # The bar divides address and title, so it may not occur in the address.
    url = escape_line(clip(tab.url, MAX_URL_CHARS)).replace("|", "\\u007c")
    return (
        f"- {tab.index}{' (current)' if tab.current else ''}: {url} | {escape_line(clip(tab.title, MAX_TITLE_CHARS))}"
    )


def _parse_tab(line: str) -> Tab:
    match = _TAB.fullmatch(line)
    if match is None:
        raise _foreign("a line of the tabs is not understood")
    index, current, url, title = match.groups()
    return Tab(index=int(index), title=unescape_line(title), url=unescape_line(url), current=current is not None)


def _sections(lines: list[str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The one-line values and the blocks of lines before the snapshot, checked for order."""
    values: dict[str, str] = {}
    blocks: dict[str, list[str]] = {}
    block: list[str] | None = None
    seen = [-1]
    for line in lines:
        match = _VALUE.fullmatch(line)
        if block is not None and match is None and line.startswith(("- ", "  ")):
            block.append(line)
            continue
        name = match[1] if match is not None else line.removesuffix(":")
        if name not in _ORDER or _ORDER.index(name) <= seen[-1] or (match is None and name not in ("Tools", "Tabs")):
            raise _foreign("a line before the snapshot is not understood")
        seen.append(_ORDER.index(name))
        if match is not None:
            values[name], block = unescape_line(match[2]), None
        else:
            block = blocks[name] = []
    if missing := _REQUIRED - values.keys() - blocks.keys() - {"Snapshot"}:
        raise _foreign(f'it has no "{min(missing)}:" line')
    return values, blocks


def _foreign(what: str) -> ObservationError:
    return ObservationError(
        f"the message is not an observation of a WABE judge: {what}",
        remedy="check that the sender is a judge of the same version",
    )

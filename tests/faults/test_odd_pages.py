"""Odd pages on the task's own site, opened by the participant: each is an observation, and the attempt goes on."""

import itertools
import struct
import zlib
from collections.abc import Callable, Mapping

import pytest

from helpers.browser.hostile_site import Handler, Page, hostile_site
from helpers.cases import each
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, finish, kill, tool_call

# Pages that cannot be shown, never come to rest, or cost far too much: what a site can do to the tab that shows it.
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' width='300' height='200'><text x='9' y='40'>Order placed</text></svg>"
PDF = (
    b"%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
)


def typed(kind: str, body: bytes) -> Page:
    return lambda handler: handler.send(body, Content_Type=kind)


def page(script: str = "", body: str = "") -> str:
    """A page whose script runs once it has been shown."""
    return f"<title>Odd</title><h1>Odd</h1>{body}<script>setTimeout(() => {{ {script} }}, 50)</script>"


def raw(head: bytes, *parts: bytes, every_s: float = 0.0, is_endless: bool = False) -> Page:
    """An answer written byte by byte; the last part again and again if it is endless."""

    def write(handler: Handler) -> None:
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + head + b"\r\n\r\n")
            for part in itertools.chain(parts, itertools.repeat(parts[-1]) if is_endless else ()):
                handler.wfile.write(part)
                if handler.server.released.wait(every_s):
                    break
        except OSError:
            pass
        handler.close_connection = True

    return write


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (2501 * 20_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def wav() -> bytes:
    data = b"\0" * 8000
    head = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + head + b"data" + struct.pack("<I", 8000) + data


def frames(depth: int) -> Page:
    def answer(handler: Handler) -> None:
        level = int(handler.path.partition("?")[2] or 0)
        inner = f"<iframe src='{handler.path.partition('?')[0]}?{level + 1}'></iframe>" if level < depth else "end"
        handler.send(f"<title>Odd</title>level {level} {inner}".encode())

    return answer


COMPUTE = "const end = performance.now() + {ms}; let n = 0; while (performance.now() < end) n += Math.sqrt(n);"


DOCUMENTS: dict[str, Page] = {
    "svg": typed("image/svg+xml", SVG),
    "svg_with_script": typed("image/svg+xml", SVG.replace(b"<text", b"<script>for (;;);</script><text")),
    "broken_xml": typed("application/xml", b"<orders><order>placed"),
}
BROKEN_ANSWERS: dict[str, Page] = {
    "shorter_than_its_length": raw(b"Content-Length: 90000", b"<title>Odd</title><h1>Odd"),
    "only_a_doctype": raw(b"Content-Length: 90000", b"<!doctype html>"),
    "bad_chunks": raw(b"Transfer-Encoding: chunked", b"5\r\nhello\r\nXYZ\r\n"),
    "invalid_gzip": raw(b"Content-Encoding: gzip\r\nContent-Length: 20", b"this is not gzip data"),
}
RESTLESS: dict[str, Page] = {
    "reloads_at_once": "<title>Odd</title><h1>Odd</h1><script>location.reload()</script>",
    "refreshes_without_end": "<meta http-equiv=refresh content=0><title>Odd</title><h1>Odd</h1>",
    "history_flood": page("setInterval(() => { for (let i = 0; i < 50; i++) history.pushState({}, '', '#' + i) }, 1)"),
    "without_body": page("document.body.remove()"),
    "alerts_without_end": "<title>Odd</title><script>for (;;) alert('again')</script>",
    "file_chooser_without_end": page(
        "const input = document.createElement('input'); input.type = 'file'; setInterval(() => input.click(), 20)"
    ),
}
BUSY: dict[str, Page] = {
    "script_of_6_s": page(COMPUTE.replace("{ms}", "6000")),
    "endless_script": page("for (;;);"),
    "console_flood": page("setInterval(() => { for (let i = 0; i < 1000; i++) console.log('x'.repeat(100), i) }, 1)"),
}  # fmt: skip
LARGE: dict[str, Page] = {
    "20_mb_of_text": "<title>Odd</title><h1>Odd</h1><p>" + "words and words " * 1_250_000,
    "200000_nodes": "<title>Odd</title><h1>Odd</h1>" + "<p>x</p>" * 200_000,
    "20000_buttons": "<title>Odd</title><h1>Odd</h1>" + "<button>Press</button>" * 20_000,
    "nested_frames": frames(60),
}  # fmt: skip
TABS: dict[str, Page] = {
    "30_popups": page("for (let i = 0; i < 30; i++) open('/goal')"),
    "200_popups": page("for (let i = 0; i < 200; i++) open('/goal')"),
    "popup_with_an_endless_script": page("open('').document.write('<script>for (;;);</' + 'script>')"),
}
ODD_PAGES: Mapping[str, Page] = {**DOCUMENTS, **BROKEN_ANSWERS, **RESTLESS, **BUSY, **LARGE, **TABS}


def odd_site_pages(names: Callable[[str], bool] = lambda name: True) -> dict[str, Page]:
    """The pages of a hostile site, each at `/odd/NAME`."""
    return {f"/odd/{name}": page for name, page in ODD_PAGES.items() if names(name)}


pytestmark = pytest.mark.e2e

_CANNOT = frozenset({"cannot_be_shown"})
# What the participant may read. Where it is `None`, the page can be shown, or how far it gets depends on the machine.
# On a busy one, a script that never ends has not used its CPU time when the time for an observation is over.
PAGES: dict[str, frozenset[str] | None] = {
    "svg": _CANNOT,
    "svg_with_script": None,
    "broken_xml": _CANNOT,
    "without_body": _CANNOT,
    "shorter_than_its_length": None,
    "only_a_doctype": _CANNOT,
    "bad_chunks": _CANNOT,
    "invalid_gzip": _CANNOT,
    "reloads_at_once": None,
    "refreshes_without_end": None,
    "20_mb_of_text": None,
    "200000_nodes": None,
    "20000_buttons": None,
    "nested_frames": None,
    "30_popups": None,
    "200_popups": None,
    "console_flood": None,
    "history_flood": None,
    "script_of_6_s": None,
    "endless_script": frozenset({"tab_busy", "tab_took_too_long"}),
    "popup_with_an_endless_script": None,
    "alerts_without_end": None,
    "file_chooser_without_end": None,
}


@pytest.mark.parametrize(
    "name",
    each(
        PAGES,
        suite=tuple(
            """
            svg shorter_than_its_length bad_chunks reloads_at_once
            nested_frames
            console_flood endless_script alerts_without_end file_chooser_without_end
        """.split()
        ),
    ),
)
async def test_the_attempt_goes_on_after(judge: LiveJudge, name: str) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            return tool_call("browser_navigate", url=f"{site.url}odd/{name}")
        if turn.observation.page.url == f"{site.url}goal":
            return finish()
        if turn.observation.page.dialog is None and turn.n < 3:
            return tool_call("browser_navigate", url=f"{site.url}goal")
        return tool_call("browser_tabs", action="new", url=f"{site.url}goal")

    with hostile_site(odd_site_pages(lambda each: each in (name, "goal"))) as site:
        assessed = await judge.play(script, site.url, step_timeout_s=120, task_timeout_s=300)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    if (messages := PAGES[name]) is not None:
        assert assessed.result()["steps"][1]["notice"]["code"] in messages


@pytest.mark.own_browser
async def test_the_attempt_goes_on_after_the_process_of_its_page_was_killed(judge: LiveJudge) -> None:
    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            assert kill(judge.browser_files, "renderer") > 0
            return tool_call("browser_press_key", key="Tab")
        return tool_call("browser_navigate", url=f"{site.url}goal") if turn.n == 1 else finish()

    with hostile_site() as site:
        assessed = await judge.play(script, site.url)
    assert assessed.verdict == ("success", "finished"), assessed.entry
    steps = assessed.result()["steps"]
    assert [step.get("notice") for step in steps] == [None, {"code": "tab_crashed"}, None]

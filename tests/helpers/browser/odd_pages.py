"""Pages that cannot be shown, never come to rest, or cost far too much: what a site can do to the tab that shows it."""

import itertools
import struct
import time
import zlib
from collections.abc import Callable, Mapping

from helpers.browser.hostile_site import HOME, Handler, Page, endless_redirects, never_answers

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


def ever_changing(handler: Handler) -> None:
    """A page that goes on to the next one at once, for ever."""
    where = f"{handler.path.partition('?')[0]}?{time.monotonic_ns()}"
    handler.send(f"<title>Odd</title><h1>Odd</h1><script>location.href = '{where}'</script>".encode())


COMPUTE = "const end = performance.now() + {ms}; let n = 0; while (performance.now() < end) n += Math.sqrt(n);"
# A loop that needs seconds of CPU, whatever clock the page has.
SUM = "let n = 0; for (let i = 0; i < {millions}e6; i++) n += Math.sqrt(i) * (i % 7);"

ANIMATED = "<style>* { animation: a 1s infinite } @keyframes a { to { rotate: 9deg } }</style>"

DOCUMENTS: dict[str, Page] = {
    "svg": typed("image/svg+xml", SVG),
    "svg_with_script": typed("image/svg+xml", SVG.replace(b"<text", b"<script>for (;;);</script><text")),
    "xml": typed("application/xml", b"<orders><order>placed</order></orders>"),
    "broken_xml": typed("application/xml", b"<orders><order>placed"),
    "xhtml": typed(
        "application/xhtml+xml", b"<html xmlns='http://www.w3.org/1999/xhtml'><body><p>Odd</p></body></html>"
    ),
    "xhtml_without_body": typed("application/xhtml+xml", b"<html xmlns='http://www.w3.org/1999/xhtml'></html>"),
    "mathml": typed("application/xml", b"<math xmlns='http://www.w3.org/1998/Math/MathML'><mi>x</mi></math>"),
    "json": typed("application/json", b'{"order": "placed"}'),
    "plain_text": typed("text/plain", b"Order placed"),
    "pdf": typed("application/pdf", PDF),
    "image": typed("image/gif", b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"),
    "image_of_400_megapixels": typed("image/png", png()),
    "broken_image": typed("image/png", b"no image"),
    "audio": typed("audio/wav", wav()),
    "broken_video": typed("video/mp4", b"no video"),
    "unknown_type": typed("application/x-odd", b"odd" * 1000),
    "empty": b"",
    "frameset": "<title>Odd</title><frameset cols='*,*'><frame src='/'><frame src='/goal'></frameset>",
    "event_stream": raw(b"Content-Type: text/event-stream", b"data: x\n\n", every_s=0.2, is_endless=True),
}
BROKEN_ANSWERS: dict[str, Page] = {
    "shorter_than_its_length": raw(b"Content-Length: 90000", b"<title>Odd</title><h1>Odd"),
    "only_a_doctype": raw(b"Content-Length: 90000", b"<!doctype html>"),
    "nothing_of_its_length": raw(b"Content-Length: 90000", b""),
    "bad_chunks": raw(b"Transfer-Encoding: chunked", b"5\r\nhello\r\nXYZ\r\n"),
    "bad_first_chunk": raw(b"Transfer-Encoding: chunked", b"no chunk\r\n"),
    "invalid_gzip": raw(b"Content-Encoding: gzip\r\nContent-Length: 20", b"this is not gzip data"),
    "truncated_gzip": raw(b"Content-Encoding: gzip", zlib.compress(HOME.encode() * 99, wbits=31)[:60]),
    "closed_at_once": lambda handler: handler.connection.close(),
    "never_answered": never_answers,
    "redirects_without_end": endless_redirects,
    "never_stops_loading": raw(b"", b"<title>Odd</title><h1>Odd</h1>", b"<!-- -->", every_s=0.3, is_endless=True),
    "text_without_end": raw(b"", b"<title>Odd</title><h1>Odd</h1>", b"<p>word</p>" * 20, every_s=0.05, is_endless=True),
    "nothing_for_ever": raw(b"", b"<!-- -->", every_s=0.5, is_endless=True),
}
RESTLESS: dict[str, Page] = {
    "reloads_without_end": page("location.reload()"),
    "reloads_at_once": "<title>Odd</title><h1>Odd</h1><script>location.reload()</script>",
    "goes_on_without_end": ever_changing,
    "refreshes_without_end": "<meta http-equiv=refresh content=0><title>Odd</title><h1>Odd</h1>",
    "history_flood": page("setInterval(() => { for (let i = 0; i < 50; i++) history.pushState({}, '', '#' + i) }, 1)"),
    "back_and_forth": page("setInterval(() => { location.hash = Math.random(); history.back() }, 5)"),
    "writes_itself_anew": page("setInterval(() => { document.open(); document.write('<h1>' + Date.now()) }, 5)"),
    "without_body": page("document.body.remove()"),
    "without_root": page("document.documentElement.remove()"),
    "loses_its_body_again_and_again": page("setInterval(() => document.body?.remove(), 1)"),
    "alerts_without_end": "<title>Odd</title><script>for (;;) alert('again')</script>",
    "prompts_on_a_timer": page("setInterval(() => prompt('again'), 10)"),
    "prints": page("print(); print()"),
    "asks_before_it_is_left": page("onbeforeunload = event => event.preventDefault()"),
    "file_chooser_without_end": page(
        "const input = document.createElement('input'); input.type = 'file'; setInterval(() => input.click(), 20)"
    ),
}
BUSY: dict[str, Page] = {
    "script_of_6_s": page(COMPUTE.replace("{ms}", "6000")),
    "sum_of_seconds": page(SUM.replace("{millions}", "2500") + "document.body.append(n)"),
    "waits_for_the_clock": page("const end = Date.now() + 1500; while (Date.now() < end); document.title = 'over'"),
    "endless_script": page("for (;;);"),
    "endless_script_while_loading": "<title>Odd</title><h1>Odd</h1><script>for (;;);</script>",
    "endless_scripts_again_and_again": page("setInterval(() => { for (;;); }, 10)"),
    "endless_promises": page("const again = () => Promise.resolve().then(again); again()"),
    "endless_script_in_a_frame": page("", "<iframe srcdoc='<script>for (;;);</script>'></iframe>"),
    "backtracking_pattern": page("/^(a+)+$/.test('a'.repeat(60) + 'b')"),
    "waits_for_a_request": page("const x = new XMLHttpRequest(); x.open('GET', '/never', false); x.send()"),
    "busy_worker": page("new Worker(URL.createObjectURL(new Blob(['for (;;);'])))"),
    "console_flood": page("setInterval(() => { for (let i = 0; i < 1000; i++) console.log('x'.repeat(100), i) }, 1)"),
    "console_flood_without_end": page("for (;;) console.error('x'.repeat(1000))"),
    "request_flood": page("setInterval(() => { for (let i = 0; i < 50; i++) fetch('/?' + Math.random()) }, 5)"),
    "post_message_flood": page("onmessage = () => postMessage(1); postMessage(1)"),
    "animation_of_everything": page(body=ANIMATED + "<i>x</i>" * 5000),
}  # fmt: skip
LARGE: dict[str, Page] = {
    "20_mb_of_text": "<title>Odd</title><h1>Odd</h1><p>" + "words and words " * 1_250_000,
    "200000_nodes": "<title>Odd</title><h1>Odd</h1>" + "<p>x</p>" * 200_000,
    "200000_nodes_by_script": page("document.body.innerHTML += '<p>x</p>'.repeat(2e5)"),
    "20000_buttons": "<title>Odd</title><h1>Odd</h1>" + "<button>Press</button>" * 20_000,
    "50000_links_in_a_table": "<title>Odd</title><table>" + "<tr><td><a href='/goal'>Goal</a></td></tr>" * 50_000,
    "deep_elements": "<title>Odd</title><h1>Odd</h1>" + "<div>" * 50_000 + "end",
    "nested_frames": frames(60),
    "300_frames": "<title>Odd</title><h1>Odd</h1>" + "<iframe srcdoc='<p>x</p>'></iframe>" * 300,
    "frame_in_itself": page("", "<iframe src='?again'></iframe><iframe src='?again2'></iframe>"),
    "grows_without_end": page("setInterval(() => document.body.append(...Array(5000).fill('word ')), 5)"),
    "huge_title": page("document.title = '](a: '.repeat(1 << 19)"),
    "huge_address": page("history.replaceState({}, '', '?' + 'x'.repeat(1500000))"),
    "huge_canvas": page("", "<canvas width=30000 height=8000></canvas>"),
    "tall_page": page("", "<div style='height: 30000000px; width: 30000000px'>x</div>"),
    "huge_attribute": "<title>Odd</title><button aria-label='" + "word " * 2_000_000 + "'>x</button>",
    "memory_without_end": page("const kept = []; for (;;) kept.push(new Array(1 << 20).fill(kept.length + 0.5));"),
}  # fmt: skip
TABS: dict[str, Page] = {
    "30_popups": page("for (let i = 0; i < 30; i++) open('/goal')"),
    "200_popups": page("for (let i = 0; i < 200; i++) open('/goal')"),
    "popups_without_end": page("setInterval(() => open('/'), 2)"),
    "popups_of_popups": page("open(location.href); open(location.href)"),
    "30_popups_that_never_load": page("for (let i = 0; i < 30; i++) open('/never')"),
    "popup_with_an_endless_script": page("open('').document.write('<script>for (;;);</' + 'script>')"),
    "popups_that_close_at_once": page("setInterval(() => open('/').close(), 20)"),
    "closes_itself": page("open('/goal'); setTimeout(() => close(), 300)"),
    "downloads_without_end": page("setInterval(() => { location.href = '/odd/unknown_type' }, 10)"),
}
ODD_PAGES: Mapping[str, Page] = {**DOCUMENTS, **BROKEN_ANSWERS, **RESTLESS, **BUSY, **LARGE, **TABS}


def odd_site_pages(names: Callable[[str], bool] = lambda name: True) -> dict[str, Page]:
    """The pages of a hostile site, each at `/odd/NAME`."""
    results = {f"/odd/{name}": page for name, page in ODD_PAGES.items() if names(name)}
    return {**results, "/never": never_answers}

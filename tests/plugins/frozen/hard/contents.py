"""Hard cases: what bodies are made of. Ranges, encodings, and everything that a page loads beside its document."""

import gzip
import math
import re
import struct
import zlib
from collections.abc import AsyncIterator

from helpers.network.served_sites import Answer, Handler, Request
from plugins.frozen.hard.case import Case, fixed, html, javascript, page, page_text, press

_TEXT = "".join(f"line {number:03} of the logbook\n" for number in range(400)).encode()
_DOT = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)
_SEARCHED = re.compile(r"bytes=(\d*)-(\d*)")


def _tone(seconds: int, rate: int = 8_000) -> bytes:
    data = bytes(128 + round(60 * math.sin(place / 9)) for place in range(seconds * rate))
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate, 1, 8) + struct.pack("<4sI", b"data", len(data))
    head = struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form
    return head + data


def _in_ranges(body: bytes, kind: str) -> Handler:
    async def handler(request: Request) -> Answer:
        match = _SEARCHED.fullmatch(request.headers.get("range", ""))
        headers = (("Accept-Ranges", "bytes"), ("ETag", '"whole"'))
        if match is None:
            return Answer(body, kind, headers=headers)
        first, last = match.groups()
        begin = int(first) if first else len(body) - int(last)
        end = min(int(last) if first and last else len(body) - 1, len(body) - 1)
        if begin > end:
            return Answer("", kind, 416, (("Content-Range", f"bytes */{len(body)}"),))
        span = ("Content-Range", f"bytes {begin}-{end}/{len(body)}")
        return Answer(body[begin : end + 1], kind, 206, (*headers, span))

    return handler


def brotli_stored(body: bytes) -> bytes:
    """A Brotli stream (RFC 7932) of one uncompressed block of at most 64 KiB: no library is needed to write it."""
    # From the lowest bit: window size (1), not the last block (1), four nibbles of length (2), the length less one
    # (16), uncompressed (1).
    head = (len(body) - 1) << 4 | 1 << 20
    return head.to_bytes(3, "little") + body + b"\x03"


def _encoded(name: str) -> Handler:
    plain = f"told in {name}: ".encode() + _TEXT
    text = {
        "gzip": lambda: gzip.compress(plain, mtime=0),
        "deflate": lambda: zlib.compress(plain),
        "br": lambda: brotli_stored(plain),
        "identity": lambda: plain,
        "chunked": lambda: gzip.compress(plain, mtime=0),
    }[name]()

    async def in_chunks() -> AsyncIterator[bytes]:
        for place in range(0, len(text), 37):
            yield text[place : place + 37]

    async def handler(_: Request) -> Answer:
        encoding = {"identity": (), "chunked": (("Content-Encoding", "gzip"),)}.get(name, (("Content-Encoding", name),))
        if name == "chunked":
            return Answer(kind="text/plain", headers=encoding, chunks=in_chunks())
        return Answer(text, "text/plain", headers=encoding)

    return handler


_ENCODINGS = ("gzip", "deflate", "br", "identity", "chunked")


def _reads(name: str) -> str:
    return f"{name} {len(_TEXT) + len(f'told in {name}: ')} told in {name}: line 000"


_RANGES = page(
    "ranges-by-script",
    """const part = async range => {
  const answer = await fetch("log", { headers: { Range: "bytes=" + range } });
  show(`${answer.status} ${answer.headers.get("Content-Range")}: ${(await answer.text()).trim()}`);
};
button("First", () => part("0-7"));
button("Middle", () => part("240-247"));
button("Last", () => part("-8"));
button("Whole", async () => show("whole " + (await text("log")).length));""",
)
_LOG = len(_TEXT)
_FIRST = press("First", f"206 bytes 0-7/{_LOG}: line 000")
_MIDDLE = press("Middle", f"206 bytes 240-247/{_LOG}: line 010")
_LAST = press("Last", f"206 bytes {_LOG - 8}-{_LOG - 1}/{_LOG}: logbook")
_WHOLE = press("Whole", f"whole {_LOG}")

_MEDIA = page(
    "media-seeking",
    """const sound = document.querySelector("audio");
sound.addEventListener("loadedmetadata", () => show("lasts " + sound.duration.toFixed(1)));
sound.addEventListener("seeked", () => show("at " + sound.currentTime.toFixed(1)));
button("Near the end", () => { sound.currentTime = 58; });
button("Back to ten", () => { sound.currentTime = 10; });""",
    body='<audio src="tone.wav" preload="metadata" controls></audio>',
)

_PARTS = page(
    "loaded-parts",
    """button("Loaded", async () => {
  await document.fonts.ready;
  const images = [...document.images].map(image => image.naturalWidth).join(" ");
  const style = getComputedStyle(document.querySelector("h1"));
  show(`images ${images}, ${style.textTransform}, ${style.letterSpacing}`);
});
button("Module", async () => show("module " + (await import("./first.js")).word));
button("Picture", () => new Promise(done => {
  const image = new Image();
  image.onload = image.onerror = () => { show("picture " + image.naturalWidth); done(); };
  image.src = "late.png";
}));""",
    head='<link rel="stylesheet" href="style.css"><link rel="modulepreload" href="second.js">',
    body='<img src="dot.png" alt="dot"><img srcset="dot.png?of=1 1x, dot.png?of=2 2x" alt="set">',
)
_PNG = fixed(_DOT, "image/png")


async def _beside(_: Request) -> Answer:
    head = """<link rel="icon" href="icon.png"><link rel="prefetch" href="next.html">
<link rel="preconnect" href="/"><script src="mapped.js"></script>"""
    script = """button("Beacon", () => show("sent " + navigator.sendBeacon("beacon", "seen=" + Math.random())));
button("Kept alive", async () => {
  const answer = await fetch("beacon?kept", { method: "POST", keepalive: true, body: new Blob(["bye"]) });
  show("kept alive " + answer.status);
});
show(mapped);"""
    answer = html(page_text("beside-the-page", script, head=head))
    policy = "default-src 'self' 'unsafe-inline'; img-src 'none'; report-uri /beside-the-page/report"
    return answer.with_headers(("Content-Security-Policy-Report-Only", policy))


async def _answer_beacon(_: Request) -> Answer:
    return Answer(status=204)


_BEACON, _KEEP_ALIVE = press("Beacon", "sent true"), press("Kept alive", "kept alive 204")

CASES = (
    Case(
        "ranges-by-script",
        "parts of a file that a script asks for",
        "Ranges by script",
        {"/ranges-by-script/": _RANGES, "/ranges-by-script/log": _in_ranges(_TEXT, "text/plain")},
        ((_FIRST, _MIDDLE, _LAST, _WHOLE),),
        (_LAST, _WHOLE, _MIDDLE, _FIRST),
        is_free=True,
    ),
    Case(
        "media-seeking",
        "a sound that is sought through, in ranges that the browser chooses",
        "lasts 60.0",
        {"/media-seeking/": _MEDIA, "/media-seeking/tone.wav": _in_ranges(_tone(60), "audio/wav")},
        ((press("Near the end", "at 58.0"), press("Back to ten", "at 10.0")),),
        (press("Back to ten", "at 10.0"), press("Near the end", "at 58.0")),
        is_free=True,
    ),
    Case(
        "encodings",
        "gzip, deflate, Brotli, none, and gzip in chunks",
        "Encodings",
        {
            "/encodings/": page(
                "encodings",
                "".join(
                    f'button("{name}", async () => {{ const got = await text("{name}");'
                    f' show("{name} " + got.length + " " + got.slice(0, {len(name) + 18})); }});\n'
                    for name in _ENCODINGS
                ),
            ),
            **{f"/encodings/{name}": _encoded(name) for name in _ENCODINGS},
        },
        (tuple(press(name, _reads(name)) for name in _ENCODINGS),),
        tuple(press(name, _reads(name)) for name in reversed(_ENCODINGS)),
        is_free=True,
    ),
    Case(
        "loaded-parts",
        "style sheets that import others, pictures by size of the screen, modules that load modules",
        "Loaded parts",
        {
            "/loaded-parts/": _PARTS,
            "/loaded-parts/style.css": fixed('@import "more.css"; h1 { text-transform: uppercase }', "text/css"),
            "/loaded-parts/more.css": fixed("h1 { letter-spacing: 3px; background: url(dot.png?by=css) }", "text/css"),
            "/loaded-parts/dot.png": _PNG,
            "/loaded-parts/late.png": _PNG,
            "/loaded-parts/first.js": javascript('export { word } from "./second.js";'),
            "/loaded-parts/second.js": javascript('export const word = "anchor";'),
        },
        (
            (
                press("Loaded", "images 1 1, uppercase, 3px"),
                press("Module", "module anchor"),
                press("Picture", "picture 1"),
            ),
        ),
        (
            press("Picture", "picture 1"),
            press("Module", "module anchor"),
            press("Loaded", "images 1 1, uppercase, 3px"),
        ),
        is_free=True,
    ),
    Case(
        "beside-the-page",
        "beacons, reports, prefetches, an icon, a source map",
        "mapped script",
        {
            "/beside-the-page/": _beside,
            "/beside-the-page/icon.png": _PNG,
            "/beside-the-page/next.html": fixed("<p>next</p>", "text/html"),
            "/beside-the-page/mapped.js": javascript(
                'const mapped = "mapped script";\n//# sourceMappingURL=mapped.map'
            ),
            "/beside-the-page/mapped.map": fixed('{"version": 3, "sources": [], "mappings": ""}', "application/json"),
            "/beside-the-page/beacon": _answer_beacon,
            "/beside-the-page/report": _answer_beacon,
        },
        ((_BEACON, _KEEP_ALIVE),),
        (_KEEP_ALIVE, _BEACON),
        is_free=True,
    ),
)

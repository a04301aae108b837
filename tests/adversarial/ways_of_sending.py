"""Every way in which a page can send something, from every kind of document and worker, to a server that logs it all.

A case is `{origin}.{sender}.{way}`: which site's page it is, which of its documents or workers sends, and how. All ways
of one sender are tried by one page. `case_page` is that page on a site that also serves `/ways.js` and the like.
"""

import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

# What a document does to send to `u`.
DOCUMENT = {
    "image": "new Image().src = u",
    "srcset": "put('img', {srcset: u + ' 1x'})",
    "style": "put('link', {rel: 'stylesheet', href: u})",
    "import": "put('style', {textContent: `@import '${u}';`})",
    "background": "put('div', {style: `height: 9px; background: url('${u}')`})",
    "font": "new FontFace('f' + Math.random(), `url(${u})`).load().catch(() => {})",
    "script": "put('script', {src: u})",
    "module": "put('script', {type: 'module', src: u})",
    "dynamic import": "import(u).catch(() => {})",
    "audio": "put('audio', {src: u, preload: 'auto'})",
    "video": "put('video', {src: u, preload: 'auto'})",
    "poster": "put('video', {poster: u})",
    "track": "{ const v = put('video', {}); const t = document.createElement('track'); t.src = u; t.default = true;"
    " v.append(t); t.track.mode = 'showing' }",
    "frame": "put('iframe', {src: u})",
    "object": "put('object', {data: u})",
    "embed": "put('embed', {src: u})",
    "input": "put('input', {type: 'image', src: u})",
    "svg image": "svg('image', u)",
    "svg use": "svg('use', u + '#x')",
    "form": "form('get', u)",
    "form post": "form('post', u)",
    "form multipart": "form('post', u, 'multipart/form-data')",
    "refresh": "put('iframe', {srcdoc: `<meta http-equiv=refresh content='0; url=${u}'>`})",
    "fetch": "fetch(u, {mode: 'no-cors'}).catch(() => {})",
    "fetch post": "fetch(u, {mode: 'no-cors', method: 'POST', body: 'x'}).catch(() => {})",
    "fetch json": "fetch(u, {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'})"
    ".catch(() => {})",
    "fetch put": "fetch(u, {method: 'PUT', body: 'x'}).catch(() => {})",
    "fetch blob": "fetch(u, {mode: 'no-cors', method: 'POST', body: new Blob(['x'])}).catch(() => {})",
    "fetch form": "{ const f = new FormData(); f.set('a', new Blob(['x'])); fetch(u, {mode: 'no-cors', method: 'POST',"
    " body: f}).catch(() => {}) }",
    "keepalive": "fetch(u, {mode: 'no-cors', method: 'POST', keepalive: true, body: 'x'}).catch(() => {})",
    "credentials": "fetch(u, {mode: 'no-cors', credentials: 'include', referrerPolicy: 'no-referrer'}).catch(() => {})",
    "xhr": "{ const x = new XMLHttpRequest(); x.open('GET', u); x.send() }",
    "xhr post": "{ const x = new XMLHttpRequest(); x.open('POST', u); x.send('x') }",
    "beacon": "navigator.sendBeacon(u, 'x')",
    "beacon blob": "navigator.sendBeacon(u, new Blob(['x'], {type: 'text/plain'}))",
    "events": "new EventSource(u)",
    "socket": "new WebSocket(u.replace('http', 'ws'))",
    "ping": "{ const a = put('a', {href: '#', ping: u}); a.click() }",
    # Leaves the page, too.
    "download": "setTimeout(() => put('a', {href: u, download: ''}).click(), 1500)",
    "prefetch": "put('link', {rel: 'prefetch', href: u})",
    "preload": "put('link', {rel: 'preload', as: 'image', href: u})",
    "modulepreload": "put('link', {rel: 'modulepreload', href: u})",
    "manifest": "put('link', {rel: 'manifest', href: u})",
    "icon": "put('link', {rel: 'icon', href: u})",
    "speculation": "put('script', {type: 'speculationrules', textContent: JSON.stringify({prefetch: [{source: 'list',"
    " urls: [u], eagerness: 'immediate'}]})})",
    "prerender": "put('script', {type: 'speculationrules', textContent: JSON.stringify({prerender: [{source: 'list',"
    " urls: [u], eagerness: 'immediate'}]})})",
    "worklet": "new OfflineAudioContext(1, 1, 8000).audioWorklet.addModule(u).catch(() => {})",
    "paint": "CSS.paintWorklet.addModule(u).catch(() => {})",
    "cache": "caches.open('x').then(c => c.add(new Request(u, {mode: 'no-cors'}))).catch(() => {})",
    # Later, because a page behind another one does not load everything.
    "tab": "setTimeout(() => { const tab = open(u); setTimeout(() => tab?.close(), 300) }, 1000)",
    "redirect": "new Image().src = `/moved?to=${encodeURIComponent(u)}`",
    "redirect post": "fetch(`/kept?to=${encodeURIComponent(u)}`, {mode: 'no-cors', method: 'POST', body: 'x'})"
    ".catch(() => {})",
    "attribution": "put('img', {attributionsrc: u})",
    "transport": "new WebTransport(u).ready.catch(() => {})",
    # As the document goes away.
    "hide beacon": "leaving('pagehide', () => navigator.sendBeacon(u, 'x'))",
    "hide fetch": "leaving('pagehide', () => fetch(u, {mode: 'no-cors', method: 'POST', keepalive: true, body: 'x'}))",
    "hide image": "leaving('pagehide', () => new Image().src = u)",
    "hide later": "fetchLater(u, {method: 'POST', body: 'x'})",
    "unload beacon": "leaving('unload', () => navigator.sendBeacon(u, 'x'))",
    "unload xhr": "leaving('unload', () => { const x = new XMLHttpRequest(); x.open('POST', u, false); x.send('x') })",
    "beforeunload": "leaving('beforeunload', () => fetch(u, {mode: 'no-cors', keepalive: true}))",
    "visibility": "document.addEventListener('visibilitychange', () => navigator.sendBeacon(u, 'x'))",
}
WORKER = {
    name: DOCUMENT[name]
    for name in (
        "fetch", "fetch post", "fetch json", "fetch put", "fetch blob", "keepalive", "xhr", "xhr post", "events",
        "socket", "cache", "transport",
    )
}  # fmt: skip
WORKER["nested"] = "new Worker(`/nested.js?to=${encodeURIComponent(u)}`)"
CLASSIC_WORKER = {**WORKER, "import scripts": "try { importScripts(u) } catch {}"}
SERVICE = {name: way for name, way in WORKER.items() if name not in ("xhr", "xhr post", "nested")}
_HELPERS = """
const put = (name, keys) => { const e = document.createElement(name);
  for (const [key, value] of Object.entries(keys))
    if (key in e && key !== 'style') e[key] = value; else e.setAttribute(key, value);
  (document.body ?? document.documentElement).append(e); return e };
const svg = (name, u) => { const s = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const e = document.createElementNS('http://www.w3.org/2000/svg', name); e.setAttribute('href', u); s.append(e);
  document.body.append(s) };
const form = (method, u, enctype) => { const f = put('iframe', {name: 'f' + Math.random()});
  const e = put('form', {method, action: u, target: f.name, ...(enctype ? {enctype} : {})});
  const i = document.createElement('input'); i.name = 'a'; i.value = 'b'; e.append(i); e.submit() };
const leaving = (event, act) => addEventListener(event, act);
const turn = host => { const peer = globalThis.peer = new RTCPeerConnection({iceServers: [
  {urls: `turn:${host}?transport=tcp`, username: 'a', credential: 'b'}]});
  peer.createDataChannel('x'); peer.createOffer().then(offer => peer.setLocalDescription(offer)) };
"""
# How the sender of a page comes to run `/ways.js` or `/worker.js`. `{script}` has the case and the target.
_RUN = "<body><script src='{script}'></script>"
SENDERS = {
    "page": _RUN,
    "frame": "<iframe id=gone src='/inner?{query}'></iframe>",
    "foreign frame": "<iframe id=gone src='{other}inner?{query}'></iframe>",
    "srcdoc": '<iframe id=gone srcdoc="' + _RUN + '"></iframe>',
    "sandboxed": '<iframe id=gone sandbox="allow-scripts allow-forms" srcdoc="' + _RUN + '"></iframe>',
    "blank": "<iframe id=gone></iframe><script>document.querySelector('iframe').contentDocument.write("
    "`<body><script src='{script}'><\\/script>`)</script>",
    "blob": "<script>const f = document.createElement('iframe'); f.id = 'gone'; f.src = URL.createObjectURL(new Blob(["
    "`<body><script src='{script}'><\\/script>`], {{type: 'text/html'}})); document.documentElement.append(f)</script>",
    "data": '<iframe id=gone src="data:text/html,' + _RUN + '"></iframe>',
    "tab": "<script>const tab = open('/inner?{query}'); setTimeout(() => tab?.close(), 1500)</script>",
    "worker": "<script>new Worker('{worker}')</script>",
    "blob worker": "<script>new Worker(URL.createObjectURL(new Blob([`importScripts('{worker}')`])))</script>",
    "shared worker": "<script>new SharedWorker('{worker}')</script>",
    "service worker": "<script>navigator.serviceWorker.register('{service}', {{scope: '/' + Math.random()}})</script>",
}
# Frames are taken away after a while, which is the end of their documents too.
_GONE = "<script>setTimeout(() => document.getElementById('gone')?.remove(), 1500)</script>"
ORIGINS = ("site", "participant")


def ways_of(sender: str) -> dict[str, str]:
    """What a sender can try."""
    if sender == "service worker":
        return SERVICE
    return CLASSIC_WORKER if "worker" in sender else DOCUMENT


def cases(origins: Sequence[str] = ORIGINS, senders: Sequence[str] = tuple(SENDERS)) -> list[str]:
    """The cases, by name."""
    return [f"{origin}.{sender}.{way}" for origin in origins for sender in senders for way in ways_of(sender)]


def path_of(case: str) -> str:
    """Where a case sends to."""
    return "/f/" + case.replace(" ", "-")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def answer(self, body: str = "", kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        allowed = {f"Access-Control-Allow-{what}": "*" for what in ("Methods", "Headers")}
        origin = self.headers.get("Origin")
        cors = {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"} if origin else {}
        request_headers = {"Content-Type": kind, "Cache-Control": "no-store", **allowed, **cors, **headers}
        for name, value in request_headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


class _Logging(_Handler):
    """A server that must not be sent anything, and logs what it is sent."""

    server: "Logged"

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        self.server.log.append(self.path.partition("?")[0] if parsed else "raw")
        return parsed

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("do_"):
            raise AttributeError(name)
        return self.reply

    def reply(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer()


class _Serving(_Handler):
    """A site with the pages of the cases."""

    server: "Sending"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        base, relay, sender = (query.get(name, "") for name in ("base", "relay", "sender"))
        where = f"{self.server.url}ways.js?{parts.query}"
        script = {"/ways.js": DOCUMENT, "/worker.js": CLASSIC_WORKER, "/service.js": SERVICE}.get(parts.path)
        if script is not None:
            tries = [
                f"try {{ const u = {base!r} + {path_of(way)[3:]!r}; {how} }} catch {{}}" for way, how in script.items()
            ]
            helpers = _HELPERS if script is DOCUMENT else ""
            tries += [f"turn({relay!r})"] if relay and script is DOCUMENT else []
            self.answer(f"{{ {helpers} {' '.join(tries)} }}", "text/javascript")
        elif parts.path == "/nested.js":
            self.answer(f"fetch({query['to']!r}, {{mode: 'no-cors'}})", "text/javascript")
        elif parts.path == "/moved":
            self.answer(status=302, Location=query["to"])
        elif parts.path == "/inner":
            self.answer(_RUN.format(script=where))
        elif parts.path == "/case":
            worker, service = (f"{self.server.url}{name}.js?{parts.query}" for name in ("worker", "service"))
            names = {"script": where, "query": parts.query, "other": self.server.other}
            page = SENDERS[sender].format(**names, worker=worker, service=service) + _GONE
            self.answer(f"<!doctype html><title>{sender}</title>{page}")
        else:
            self.answer("<title>Home</title><h1>Welcome</h1>")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = parse_qs(urlsplit(self.path).query)
        self.answer(status=307, Location=query["to"][0])


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    handler: type[_Handler]

    def __init__(self, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), self.handler)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server_port}/"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: Any) -> None:
        """Browsers hang up in the middle of things."""


class Logged(_Server):
    """Logs the path of each request, and `raw` for what is not a request."""

    handler = _Logging

    def __init__(self, certificate: Path | None) -> None:
        super().__init__(certificate)
        self.log: list[str] = []


class Sending(_Server):
    """Has the pages that send; `other` is the address of another such site."""

    handler = _Serving
    other = ""

    def case_page(self, origin: str, sender: str, target: str, relay: str = "") -> str:
        """The address of the page on which a sender tries every way; `relay` is the host of a TURN server over TCP."""
        base = f"{target}f/{origin}.{sender}.".replace(" ", "-")
        return f"{self.url}case?sender={sender.replace(' ', '%20')}&base={base}&relay={relay}"


@contextmanager
def served(kind: type[Any], certificate: Path | None = None) -> Iterator[Any]:
    """Serve one of these servers while the body runs."""
    server = kind(certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()

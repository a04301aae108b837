"""Hard cases: documents and rules of the web. Redirects, policies, frames, log-ins by the browser, failures."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from hashlib import sha384

from helpers.network.served_sites import Answer, Handler, Request
from plugins.frozen.hard.case import Case, as_json, back, fixed, follow, html, page, page_text, press

USER, PASSWORD = "ada", "harbour-light"
_LIBRARY = 'const library = "library of the right digest";'


async def _policies(request: Request) -> Answer:
    nonce = secrets.token_urlsafe(12)
    digest = base64.b64encode(sha384(_LIBRARY.encode()).digest()).decode()
    head = f'<script src="library.js" integrity="sha384-{digest}" crossorigin="anonymous"></script>'
    wrong = '<script src="library.js?again" integrity="sha384-AAAA" crossorigin></script>'
    wrong += '<script>document.title = "no"</script>'
    script = """show(library);
button("Inline", () => {
  const made = document.createElement("script");
  made.textContent = "document.title = 'no'";
  document.body.append(made);
  show("title " + document.title);
});
button("Elsewhere", () => tried(() => fetch("OTHER/policies/library.js")));
button("Here", async () => show("here " + (await text("library.js")).length));"""
    text = page_text("policies", script.replace("OTHER", request.site.other), head=head, body=wrong, nonce=nonce)
    policy = f"default-src 'self'; script-src 'nonce-{nonce}' 'sha384-{digest}'; connect-src 'self'"
    return html(text).with_headers(("Content-Security-Policy", policy))


_INLINE = press("Inline", "title Policies")
_ELSEWHERE = press("Elsewhere", "failed: TypeError")
_HERE = press("Here", f"here {len(_LIBRARY)}")

_PREFLIGHTS = page(
    "preflights",
    """const ask = async (method, mode) => {
  const headers = { "X-Ship": "Aurora", "Content-Type": "application/json" };
  const body = method === "DELETE" ? undefined : JSON.stringify({ berth: 4 });
  const answer = await json("OTHER/preflights/berths", { method, headers, body, credentials: mode });
  show(`${answer.method} ${answer.ship} ${answer.berth}`);
};
button("Put", () => ask("PUT", "omit"));
button("Delete", () => ask("DELETE", "omit"));
button("Patch", () => ask("PATCH", "include"));
button("Forbidden", () => json("OTHER/preflights/closed", { method: "PUT", body: "x" }));""",
)


async def _berths(request: Request) -> Answer:
    allowed = (
        ("Access-Control-Allow-Origin", request.headers.get("origin", "")),
        ("Access-Control-Allow-Credentials", "true"),
        ("Vary", "Origin"),
    )
    if request.method == "OPTIONS":
        methods = (("Access-Control-Allow-Methods", "PUT, DELETE, PATCH"), ("Access-Control-Max-Age", "5"))
        return Answer(
            status=204, headers=(*allowed, *methods, ("Access-Control-Allow-Headers", "x-ship, content-type"))
        )
    berth = 4 if b"4" in request.body else None
    return as_json({"method": request.method, "ship": request.headers.get("x-ship"), "berth": berth}, 200, *allowed)


_PUT_STEP, _DELETE = press("Put", "PUT Aurora 4"), press("Delete", "DELETE Aurora null")
_PATCH, _FORBIDDEN = press("Patch", "PATCH Aurora 4"), press("Forbidden", "failed: TypeError")

_REDIRECTS = page(
    "redirects",
    """const go = async (status, method) => {
  const answer = await fetch(`from?status=${status}`, { method, body: method === "POST" ? "cargo" : undefined });
  show(`${status}: ${answer.redirected} ${await answer.text()}`);
};
for (const status of [301, 302, 303, 307, 308]) button(`Post ${status}`, () => go(status, "POST"));
button("Get 302", () => go(302, "GET"));
button("Manual", async () => show("manual " + (await fetch("from?status=302", { redirect: "manual" })).type));""",
)


def _to(location: str, status: int = 302) -> Handler:
    async def handler(request: Request) -> Answer:
        place = location.replace("OTHER", request.site.other).replace("OWN", request.site.own)
        return Answer("", "text/html", int(request.query.get("status", status)), (("Location", place),))

    return handler


async def _arrived(request: Request) -> Answer:
    return Answer(f"arrived by {request.method} with {len(request.body)}")


_POSTS = {status: press(f"Post {status}", f"{status}: true arrived by") for status in (301, 302, 303, 307, 308)}
_MANUAL = press("Manual", "manual opaqueredirect")

_DETOURS = page(
    "detours",
    "",
    body='<a href="meta">By meta</a> <a href="script">By script</a> <a href="chain">Across</a> <a href="lost">Lost</a>',
)
_META = fixed('<!doctype html><meta http-equiv="refresh" content="0; url=end?by=meta"><p>wait</p>', "text/html")
_SCRIPTED = fixed('<!doctype html><p>wait</p><script>location.replace("end?by=script")</script>', "text/html")


async def _end(request: Request) -> Answer:
    return html(f"<!doctype html><title>End</title><p>End by {request.query.get('by')}</p><a href='./'>Home</a>")


_HOME = follow("Home", "Detours")

_ETAGS = page(
    "etags",
    """button("Fresh", async () => show("fresh " + await text("tagged", { cache: "no-cache" })));
button("By hand", async () => {
  const answer = await fetch("tagged", { cache: "no-store", headers: { "If-None-Match": '"t1"' } });
  show("by hand " + answer.status);
});
button("Dated", async () => {
  const headers = { "If-Modified-Since": "Wed, 01 Apr 2026 10:00:00 GMT" };
  show("dated " + (await fetch("tagged", { cache: "no-store", headers })).status);
});""",
    head='<script src="cached.js"></script>',
)


async def _tagged(request: Request) -> Answer:
    headers = (("ETag", '"t1"'), ("Last-Modified", "Wed, 01 Apr 2026 10:00:00 GMT"), ("Cache-Control", "no-cache"))
    if request.headers.get("if-none-match") == '"t1"':
        return Answer(status=304, headers=headers)
    if "if-none-match" not in request.headers and "if-modified-since" in request.headers:
        return Answer(status=304, headers=headers)
    return Answer("tagged text", headers=headers)


_FRESH, _BY_HAND, _DATED = (
    press("Fresh", "fresh tagged text"),
    press("By hand", "by hand 304"),
    press("Dated", "dated 304"),
)

_FRAMES = page(
    "foreign-frames",
    """addEventListener("message", event => show(`from ${event.origin === "OTHER"}: ${event.data}`));
button("Ask", () => frames[0].postMessage("how deep?", "*"));
button("Second", () => {
  const made = document.createElement("iframe");
  made.src = "OTHER/foreign-frames/inner?second";
  document.body.append(made);
});""",
    body='<iframe src="OTHER/foreign-frames/inner" title="depth"></iframe>',
)
_INNER = fixed(
    """<!doctype html><p>Depth gauge</p><script>
addEventListener("message", async event => event.source.postMessage(await (await fetch("depth")).text(), event.origin));
parent.postMessage("ready" + location.search, "*");
</script>""",
    "text/html",
)

_DOWNLOADS = page(
    "downloads",
    """button("Read it", async () => {
  const answer = await fetch("report.csv");
  show("read " + answer.headers.get("Content-Disposition") + " " + (await answer.text()).split("\\n")[1]);
});""",
    body='<a href="report.csv">Report</a>',
)
_REPORT = fixed("ship,berth\nAurora,4\n", "text/csv", ("Content-Disposition", 'attachment; filename="report.csv"'))
_READ_STEP = press("Read it", 'read attachment; filename="report.csv" Aurora,4')

_FAILURES = page(
    "failures",
    """button("Error", async () => { const got = await fetch("error"); show(`${got.status} ${await got.text()}`); });
button("Missing", async () => show("missing " + (await fetch("missing")).status));
button("Broken", () => text("broken"));
button("Closed", () => text("CLOSED/anything"));
button("Closed socket", () => new Promise(done => {
  const socket = new WebSocket("CLOSED/socket".replace("https", "wss"));
  socket.onerror = () => { show("socket refused"); done(); };
}));""",
    body='<img src="CLOSED/picture.png" alt="picture of a closed port">',
)


async def _error(_: Request) -> Answer:
    return Answer("the crane is broken", status=500)


async def _broken(_: Request) -> Answer:
    return Answer("only the beginning", is_broken=True)


_ERROR, _MISSING = press("Error", "500 the crane is broken"), press("Missing", "missing 404")
_BROKEN, _CLOSED = press("Broken", "failed: TypeError"), press("Closed", "failed: TypeError")
_SOCKET = press("Closed socket", "socket refused")

_SLOW = page(
    "slow-answers",
    """button("Slow", async () => show("slow " + await text("slow")));
button("Impatient", () => text("slow?longer", { signal: AbortSignal.timeout(400) }));
button("Dripping", async () => show("dripping " + await text("dripping")));""",
)


async def _slow(request: Request) -> Answer:
    await asyncio.sleep(2.5 if "longer" in request.query else 1.2)
    return Answer("but sure")


async def _dripping(_: Request) -> Answer:
    async def chunks() -> AsyncIterator[bytes]:
        for letter in b"water":
            yield bytes([letter])
            await asyncio.sleep(0.1)

    return Answer(chunks=chunks())


_SURE, _GAVE_UP = press("Slow", "slow but sure"), press("Impatient", "failed: TimeoutError")
_DRIPPED = press("Dripping", "dripping water")


def _locked(inner: Handler) -> Handler:
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    async def handler(request: Request) -> Answer:
        if request.headers.get("authorization") == expected:
            return await inner(request)
        return Answer("locked", status=401, headers=(("WWW-Authenticate", 'Basic realm="harbour"'),))

    return handler


_AUTH = page(
    "http-authentication",
    """button("Vault", async () => show("vault " + await text("vault")));
button("Uninvited", async () => show("uninvited " + (await fetch("vault", { credentials: "omit" })).status));""",
)
_VAULT, _UNINVITED = press("Vault", "vault of gold"), press("Uninvited", "uninvited 401")

_ACCEPTS = page(
    "by-accept",
    """const as = async kind => show(kind + ": " + await text("ship", { headers: { Accept: kind } }));
button("JSON", () => as("application/json"));
button("XML", () => as("application/xml"));
button("Head", async () => {
  const answer = await fetch("ship", { method: "HEAD" });
  show("head " + answer.headers.get("X-Ships") + (await answer.text()));
});""",
)


async def _ship(request: Request) -> Answer:
    ships = (("X-Ships", "2"), ("Vary", "Accept"))
    if "xml" in request.headers.get("accept", ""):
        return Answer("<ship>Aurora</ship>", "application/xml", headers=ships)
    return Answer('{"ship": "Aurora"}', "application/json", headers=ships)


_JSON, _XML = (
    press("JSON", 'application/json: {"ship": "Aurora"}'),
    press("XML", "application/xml: <ship>Aurora</ship>"),
)
_HEAD = press("Head", "head 2")

CASES = (
    Case(
        "policies",
        "a content security policy with a nonce, and digests of scripts",
        "library of the right digest",
        {"/policies/": _policies, "/policies/library.js": fixed(_LIBRARY, "text/javascript")},
        ((_INLINE, _ELSEWHERE, _HERE),),
        (_HERE, _INLINE, _ELSEWHERE),
        is_free=True,
    ),
    Case(
        "preflights",
        "requests to another origin that the browser asks for leave first",
        "Preflights",
        {"/preflights/": _PREFLIGHTS, "/preflights/berths": _berths, "/preflights/closed": fixed("no")},
        ((_PUT_STEP, _DELETE, _PATCH, _FORBIDDEN),),
        (_FORBIDDEN, _PATCH, _DELETE, _PUT_STEP),
        is_free=True,
    ),
    Case(
        "redirects",
        "five kinds of redirects, of requests with a body",
        "Redirects",
        {"/redirects/": _REDIRECTS, "/redirects/from": _to("/redirects/to"), "/redirects/to": _arrived},
        ((*_POSTS.values(), press("Get 302", "302: true arrived by GET"), _MANUAL),),
        (_MANUAL, *reversed(_POSTS.values())),
        is_free=True,
    ),
    Case(
        "detours",
        "pages that lead on: by meta, by script, across origins",
        "Detours",
        {
            "/detours/": _DETOURS,
            "/detours/meta": _META,
            "/detours/script": _SCRIPTED,
            "/detours/chain": _to("OTHER/detours/abroad", 301),
            "/detours/abroad": _to("OWN/detours/end?by=detour", 307),
            "/detours/end": _end,
        },
        (
            (
                *(follow("By meta", "End by meta"), _HOME, follow("By script", "End by script"), _HOME),
                *(follow("Across", "End by detour"), _HOME, follow("Lost", "Nothing here"), back("Detours")),
            ),
        ),
        (follow("Lost", "Nothing here"), back("Detours"), follow("Across", "End by detour"), _HOME),
    ),
    Case(
        "etags",
        "answers that the browser knows already",
        "Etags",
        {
            "/etags/": _ETAGS,
            "/etags/tagged": _tagged,
            "/etags/cached.js": fixed("0", "text/javascript", ("ETag", '"c"')),
        },
        ((_FRESH, _BY_HAND, _DATED),),
        (_DATED, _FRESH, _BY_HAND, press("Fresh", "fresh tagged text")),
        is_free=True,
    ),
    Case(
        "foreign-frames",
        "frames of another origin, which speak with the page",
        "from true: ready",
        {"/foreign-frames/": _FRAMES, "/foreign-frames/inner": _INNER, "/foreign-frames/depth": fixed("nine metres")},
        ((press("Ask", "from true: nine metres"), press("Second", r"ready\?second")),),
        (press("Second", r"ready\?second"), press("Ask", "from true: nine metres")),
        is_free=True,
    ),
    Case(
        "downloads",
        "a file to download, also read by a script",
        "Downloads",
        {"/downloads/": _DOWNLOADS, "/downloads/report.csv": _REPORT},
        ((follow("Report", "Downloads"), _READ_STEP),),
        (_READ_STEP, follow("Report", "Downloads")),
        is_free=True,
    ),
    Case(
        "failures",
        "errors, an answer that breaks off, a server that is not there",
        "Failures",
        {"/failures/": _FAILURES, "/failures/error": _error, "/failures/broken": _broken},
        ((_ERROR, _MISSING, _BROKEN, _CLOSED, _SOCKET),),
        (_SOCKET, _CLOSED, _BROKEN, _MISSING, _ERROR),
        is_free=True,
    ),
    Case(
        "slow-answers",
        "answers that take long, and one that the page does not wait for",
        "Slow answers",
        {"/slow-answers/": _SLOW, "/slow-answers/slow": _slow, "/slow-answers/dripping": _dripping},
        ((_SURE, _GAVE_UP, _DRIPPED),),
        (_DRIPPED, _SURE),
        is_free=True,
    ),
    Case(
        "http-authentication",
        "pages behind HTTP authentication",
        "Http authentication",
        {"/http-authentication/": _locked(_AUTH), "/http-authentication/vault": _locked(fixed("of gold"))},
        ((_VAULT, _UNINVITED),),
        (_UNINVITED, _VAULT),
        is_free=True,
    ),
    Case(
        "by-accept",
        "one address with several representations",
        "By accept",
        {"/by-accept/": _ACCEPTS, "/by-accept/ship": _ship},
        ((_JSON, _XML, _HEAD),),
        (_HEAD, _XML, _JSON),
        is_free=True,
    ),
)

"""Holds requests of an attempt: an interceptor that answers some requests by itself, and passes on all others.

What is held is decided on what the guard read from the wire, for every page, frame, tab and worker alike. Nothing of it
is sent, and no name in it is resolved. Tasks of which the guard must read all requests (`Task.watches_requests`) have
the same interceptor.
"""

from http import HTTPStatus

from judge.evaluators.addresses import could_be_held, is_permitted
from judge.network.interception import (
    HeaderPairs,
    Interceptor,
    PageSocket,
    RequestRefused,
    Upstream,
    WireAnswer,
    WireRequest,
)
from judge.records.holds import READING, AllowedWrite, Hold
from judge.records.sites import Site
from judge.records.tasks import Task
from shared.patterns import Pattern

# For a document, and for anything else.
_PAGE = '<!doctype html><meta charset="utf-8"><title>Received</title><p>Your request was received.'
_VALUE = "{}"
_DOCUMENTS = frozenset({"document", "embed", "frame", "iframe", "object"})
_FORBIDDEN = 403


class Rules:
    """Which requests of a task are held. Pure."""

    def __init__(self, task: Task, site: Site) -> None:
        self._holds = task.hold
        self._holds_writes = task.writes is not None
        self._holds_sockets = self._holds_writes and not task.allow_sockets
        self._allowed = [(each, Pattern(each.pattern) if each.pattern else None) for each in task.allow_writes]
        self._site = site

    def rule_for(self, request: WireRequest) -> Hold | None:
        """What holds a request; `None`: it is passed on."""
        if (declared := self._declared(request.method, request.url)) is not None:
            return declared
        if not self._is_write(request.method) or self._allows(request.method, request.url, request.body):
            return None
        return Hold(url="*")

    def holds_preflight(self, method: str, url: str) -> bool:
        """Whether such a request will be held whatever its body is, so that the site is not asked whether to allow it.

        Where that depends on the body, the site is asked.
        """
        if self._declared(method, url) is not None:
            return True
        return self._is_write(method) and not self._allows(method, url, None)

    def refuses_socket(self) -> bool:
        """Whether no socket may be opened."""
        return self._holds_sockets

    def _is_write(self, method: str) -> bool:
        return self._holds_writes and method not in READING

    def _declared(self, method: str, url: str) -> Hold | None:
        return next((each for each in self._holds if _could_be(each.method, method) and could_be_held(url, each)), None)

    def _allows(self, method: str, url: str, body: bytes | None) -> bool:
        """`body` is `None` if it is not known yet."""
        text = None if body is None else body.decode("utf-8", "replace")
        return any(self._lets_through(each, pattern, method, url, text) for each, pattern in self._allowed)

    def _lets_through(
        self, allowed: AllowedWrite, pattern: Pattern | None, method: str, url: str, text: str | None
    ) -> bool:
        if allowed.method not in (None, method) or not is_permitted(url, allowed, self._site):
            return False
        return pattern is None or text is None or pattern.search(text) is not None


def _could_be(expected: str | None, method: str) -> bool:
    return method not in READING if expected is None else method.upper() == expected


class Holding:
    """What becomes of an attempt's requests: some are held, and all others are passed on until it is closed."""

    def __init__(self, task: Task, site: Site) -> None:
        self.rules = Rules(task, site)
        # Whether a request with `ends` was held after the first action.
        self.has_ended = False
        self.is_closed = False

    def close(self) -> None:
        """From now on nothing is sent: the record of what was sent is about to be written."""
        self.is_closed = True

    @property
    def interceptor(self) -> Interceptor:
        """What answers the browser's requests."""
        return _HoldingInterceptor(self)

    def reply(self, request: WireRequest) -> WireAnswer | None:
        """The declared reply to a held request; `None` for any other."""
        hold = self.rules.rule_for(request)
        if hold is None:
            return None
        # What happens before the first action is nobody's achievement.
        self.has_ended = self.has_ended or (hold.ends and request.step > 0)
        return reply_to(request, hold)


class _HoldingInterceptor:
    reaches_out = True

    def __init__(self, holding: Holding) -> None:
        self._holding = holding

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        method = _header(request.headers, "access-control-request-method")
        if request.method == "OPTIONS" and method and self._holding.rules.holds_preflight(method, request.url):
            return _allowing(request)
        reply = self._holding.reply(request)
        return reply or await self._network(upstream).fetch(request)

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        if self._holding.rules.refuses_socket():
            await page.refuse(WireAnswer(_FORBIDDEN, "Held", (("Content-Length", "0"),), is_held=True))
            return
        # Imported on first use, because few pages have sockets.
        from judge.network.upstream import pass_on_socket

        await pass_on_socket(request, page, self._network(upstream))

    def _network(self, upstream: Upstream | None) -> Upstream:
        if upstream is None or self._holding.is_closed:
            raise RequestRefused("the network is out of reach")
        return upstream


def reply_to(request: WireRequest, hold: Hold) -> WireAnswer:
    """The reply to the page. Nothing in it comes from the request but the origin that may read it."""
    is_page = is_for_document(request.headers)
    body = hold.body if hold.body is not None else _PAGE if is_page else _VALUE
    kind = hold.type or ("text/html; charset=utf-8" if is_page else "application/json")
    if kind.lower().startswith("text/") and "charset" not in kind.lower():
        kind += "; charset=utf-8"
    data = body.encode()
    headers = (
        ("Content-Type", kind),
        ("Content-Length", str(len(data))),
        ("Cache-Control", "no-store"),
        # A page with `Cross-Origin-Embedder-Policy` gets no other answer.
        ("Cross-Origin-Resource-Policy", "cross-origin"),
        *_readable_by(request.headers),
    )
    return WireAnswer(hold.status, _reason(hold.status), headers, data, is_held=True)


def _allowing(request: WireRequest) -> WireAnswer:
    """The answer to a preflight: whatever the page asks for."""
    allowed = {
        "Access-Control-Allow-Methods": _header(request.headers, "access-control-request-method"),
        "Access-Control-Allow-Headers": _header(request.headers, "access-control-request-headers"),
        "Access-Control-Allow-Private-Network": _header(request.headers, "access-control-request-private-network"),
    }
    headers = tuple((name, value) for name, value in allowed.items() if value)
    return WireAnswer(204, "No Content", (*_readable_by(request.headers), *headers))


def _readable_by(headers: HeaderPairs) -> HeaderPairs:
    origin = _header(headers, "origin")
    if not origin:
        return ()
    return ("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Credentials", "true")


def is_for_document(headers: HeaderPairs) -> bool:
    """Whether a request with these headers is for a page or a frame."""
    # Sent to secure sites and this machine only.
    if destination := _header(headers, "sec-fetch-dest"):
        return destination.lower() in _DOCUMENTS
    return "text/html" in _header(headers, "accept").lower()


def _header(headers: HeaderPairs, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""

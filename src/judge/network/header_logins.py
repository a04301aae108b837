"""Logs in to sites by headers: adds them to what the browser sends to such a site's own origin, and to nothing else.

They are added where a request leaves for the network, after each redirect anew, so that no page sees them, no record
has them, and no other origin gets them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlsplit

from judge.network.interception import Interceptor, PageSocket, SiteSocket, Upstream, WireAnswer, WireRequest
from judge.records.access import HeaderLogin
from judge.records.sites import HostPort, place_of
from judge.records.tasks import Task

_HTTP: Mapping[str, str] = MappingProxyType({"ws": "http", "wss": "https"})
SchemedPlace = tuple[str, HostPort]


class _LoggedIn:
    """An `Upstream` that adds the headers."""

    def __init__(self, upstream: Upstream, logins: Mapping[SchemedPlace, Mapping[str, str]]) -> None:
        self._upstream = upstream
        self._logins = logins

    async def fetch(self, request: WireRequest) -> WireAnswer:
        return await self._upstream.fetch(self._with_login(request))

    async def socket(self, request: WireRequest) -> SiteSocket:
        return await self._upstream.socket(self._with_login(request))

    def _with_login(self, request: WireRequest) -> WireRequest:
        origin = _origin(request.url)
        headers = self._logins.get(origin, {}) if origin else {}
        names = {name.lower() for name in headers}
        kept = tuple(pair for pair in request.headers if pair[0].lower() not in names)
        return replace(request, headers=(*kept, *headers.items())) if headers else request


class HeaderLogins:
    """The interceptor `inner`, whose requests to the sites that a task logs in to by headers have them."""

    def __init__(self, inner: Interceptor, task: Task) -> None:
        self._inner = inner
        self._logins: dict[SchemedPlace, dict[str, str]] = {}
        for each in header_logins(task):
            if origin := _origin(each.origin or task.website):
                self._logins.setdefault(origin, {}).update(each.headers)

    @property
    def reaches_out(self) -> bool:
        """See `Interceptor`."""
        return self._inner.reaches_out

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `Interceptor`."""
        return await self._inner.answer(request, upstream and _LoggedIn(upstream, self._logins))

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `Interceptor`."""
        await self._inner.socket(request, page, upstream and _LoggedIn(upstream, self._logins))


def header_logins(task: Task) -> Sequence[HeaderLogin]:
    """The task's log-ins by headers."""
    return [each for each in task.http_credentials if isinstance(each, HeaderLogin)]


def _origin(url: str) -> SchemedPlace | None:
    scheme = urlsplit(url).scheme
    http = _HTTP.get(scheme, scheme)
    place = place_of(f"{http}{url[len(scheme) :]}")
    return (http, place) if place else None

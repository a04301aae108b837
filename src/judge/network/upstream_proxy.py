"""The operator's proxy (`upstream_proxy`), through which the guard connects to sites."""

import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from python_socks import ProxyError, ProxyTimeoutError, ProxyType
from python_socks.async_.asyncio import Proxy

from shared.errors import ConfigError

if TYPE_CHECKING:
    from judge.config import RunConfig

_TYPES = {"http": ProxyType.HTTP, "socks5": ProxyType.SOCKS5}
_CONNECT_TIMEOUT_S = 15.0
_CHECK_TIMEOUT_S = 10.0
# Asked for to see whether the proxy accepts the password. Nothing listens there, and the proxy notices that at once.
_NOWHERE = ("127.0.0.1", 1)
# tinyproxy answers a wrong password with 401, and only a missing one with 407.
_WRONG_PASSWORDS = (401, 407)
_REMEDY = "check upstream_proxy in [config], and the variable that it names"


class NotConnected(OSError):
    """The proxy did not open a connection. Whether that is its fault or the site's: `UpstreamProxy.problem`."""


class UpstreamProxy(NamedTuple):
    """An HTTP proxy (by CONNECT) or a SOCKS5 proxy. `name` is what may be shown and recorded of it.

    `resolves`: it is given names and resolves them itself; otherwise it is given addresses only.
    """

    name: str
    kind: ProxyType
    host: str
    port: int
    username: str | None
    password: str | None
    resolves: bool

    def __repr__(self) -> str:
        return f"UpstreamProxy({self.name})"

    @classmethod
    def of(cls, config: "RunConfig") -> "UpstreamProxy | None":
        """The proxy of a run, if it has one. Raises `ConfigError` if its variable has not been resolved."""
        if config.upstream_proxy is None:
            return None
        if "${" in config.upstream_proxy:
            raise ConfigError("a variable of a scenario file", key="config.upstream_proxy", remedy="send its value")
        parts = urlsplit(config.upstream_proxy)
        username, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
        if username is not None:
            password = password or ""
        host, port = parts.hostname or "", parts.port or 0
        name = config.recorded()["upstream_proxy"]
        return cls(name, _TYPES[parts.scheme], host, port, username, password, config.upstream_resolves)

    async def connect(self, host: str, port: int, timeout_s: float = _CONNECT_TIMEOUT_S) -> socket.socket:
        """A connection to a server, through the proxy. Raises `NotConnected`."""
        proxy = Proxy(self.kind, self.host, self.port, self.username, self.password, rdns=True)
        try:
            return await proxy.connect(host, port, timeout=timeout_s)
        except (ProxyError, OSError) as error:
            raise NotConnected(None, f"the proxy {self.name} did not connect") from error

    async def problem(self) -> str | None:
        """Why no connection can be made through this proxy, or `None` if it works. Connects to find out.

        A page can make a proxy refuse one site or be slow there, but can influence none of this.
        """
        try:
            (await self.connect(*_NOWHERE, timeout_s=_CHECK_TIMEOUT_S)).close()
        except NotConnected as error:
            match error.__cause__:
                case ProxyError(error_code=code):
                    return self._refusal(code)
                case ProxyTimeoutError():
                    return f"the proxy {self.name} gives no answer within {_CHECK_TIMEOUT_S:g} s"
                case _:
                    return f"the proxy {self.name} cannot be reached"
        return None

    def _refusal(self, code: int | None) -> str | None:
        """What an answer other than a connection means. The one asked for fails also at a sound proxy."""
        if self.kind is ProxyType.HTTP and code in _WRONG_PASSWORDS:
            return f"the proxy {self.name} does not accept the user name and password"
        if code is None:
            # A SOCKS proxy reports nothing but the failure of a connection by a code.
            accepted = "the user name and password" if self.kind is ProxyType.SOCKS5 else "a request as an HTTP proxy"
            return f"the proxy {self.name} does not accept {accepted}"
        return None


async def require_upstream(config: "RunConfig") -> None:
    """Raises `ConfigError` if the run has an upstream proxy that does not work."""
    upstream = UpstreamProxy.of(config)
    if upstream is not None and (problem := await upstream.problem()):
        raise ConfigError(problem, key="config.upstream_proxy", remedy=_REMEDY)


def literal_addresses(host: str, port: int) -> Iterator[str]:
    """The address that a host is, in any spelling (`127.1`, `0x7f.1`), and this machine's for its own names."""
    if re.fullmatch(r"(.*\.)?localhost", host):
        yield "127.0.0.1"
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        return
    yield from (str(address[0]) for *_, address in infos)

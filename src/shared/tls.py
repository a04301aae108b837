"""Which certificates of sites the judge itself accepts, and the HTTP client with which it calls them.

A site may have a certificate of the user's authority. Browsers that connect by themselves have their own store.
"""

import functools
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shared.errors import ConfigError
from shared.settings import Settings

if TYPE_CHECKING:
    import httpx

_REMEDY = "correct it, or unset it"


def site_trust(environ: Mapping[str, str] | None = None) -> ssl.SSLContext:
    """Accepts the public authorities, this machine's, and those in `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    `environ` is by default the process's. Raises `ConfigError` for a variable that cannot be used.
    """
    environ = Settings.from_environ().environ if environ is None else environ
    require_certificates(environ)
    return _context(environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR"))


def site_client(environ: Mapping[str, str] | None = None, **options: Any) -> "httpx.AsyncClient":
    """A client for a site, without the proxies of the environment; `options` as for `httpx.AsyncClient`.

    Raises `ConfigError`, as `site_trust`.
    """
    import httpx

    return httpx.AsyncClient(trust_env=False, verify=site_trust(environ), **options)


def why_no_answer(error: "httpx.HTTPError") -> str:
    """Why a site gave no answer, in our words: the library's are for programmers."""
    import httpx

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", "") or cause.reason or "TLS"
            return f"its certificate cannot be used ({reason})"
        if isinstance(cause, socket.gaierror):
            return "its name is unknown"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return "nothing answers there"
    return "the connection ended before the answer did"


def require_certificates(environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` naming the variable with certificates that cannot be used."""
    for variable, problem in _problems(environ):
        raise ConfigError(problem, key=variable, remedy=_REMEDY)


@functools.cache
def _context(file: str | None, folders: str | None) -> ssl.SSLContext:
    # Shared by all clients: reading the certificates takes 80 ms.
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    if file:
        context.load_verify_locations(cafile=file)
    for folder in filter(os.path.isdir, (folders or "").split(os.pathsep)):
        context.load_verify_locations(capath=folder)
    return context


def _problems(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if file := environ.get("SSL_CERT_FILE"):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
        except ssl.SSLError:
            yield "SSL_CERT_FILE", f"{file} contains no certificate"
        except OSError as error:
            yield "SSL_CERT_FILE", f"{file}: {error.strerror}"
    if (folder := environ.get("SSL_CERT_DIR")) and not any(map(os.path.isdir, folder.split(os.pathsep))):
        yield "SSL_CERT_DIR", f"{folder}: no such folder"


def refused_reset(answer: "httpx.Response") -> str:
    """What a site answered instead of being reset."""
    path = answer.request.url.raw_path.decode("ascii")[:200]
    return f"POST {path} answered {answer.status_code} (a reset_url gets a POST)"

"""The variables that every HTTP client of a provider's SDK reads: proxies and certificates.

A mistake in one of them makes an SDK fail with an error that does not name it, so they are checked before.
"""

import ssl
from collections.abc import Mapping

from shared.errors import ConfigError
from shared.tls import require_certificates

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_SCHEMES = ("http", "https", "socks5", "socks5h")
_REMEDY = "correct it, or unset it"
_MAX_PORT = 65_535


def require_network(environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` naming the variable with a proxy or with certificates that cannot be used.

    A proxy's address is not shown: it may contain a password.
    """
    if "*" not in (entry.strip() for entry in _value(environ, "no_proxy")[1].split(",")):
        for name in _PROXIES:
            variable, value = _value(environ, name)
            if problem := _proxy_problem(value):
                remedy = f"use {', '.join(f'{scheme}://' for scheme in _SCHEMES)}, or unset it"
                raise ConfigError(problem, key=variable, remedy=remedy)
    require_key_log(environ)
    require_certificates(environ)


def require_key_log(environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` if Python could set up no TLS at all, because it cannot write the log of TLS keys."""
    if log := environ.get("SSLKEYLOGFILE"):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).keylog_filename = log
        except OSError as error:
            raise ConfigError(f"{log}: {error.strerror}", key="SSLKEYLOGFILE", remedy=_REMEDY) from None


def _value(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable and its value; in lower case it has precedence."""
    variable = next((each for each in (name, name.upper()) if environ.get(each)), name)
    return variable, environ.get(variable, "")


def _proxy_problem(value: str) -> str:
    # Takes a third of a second, and is only needed for models.
    import httpx2

    if not value:
        return ""
    scheme, separator, _ = value.partition("://")
    if separator and scheme.lower() not in _SCHEMES:
        return f"unsupported kind of proxy {scheme[:20]!a}"
    try:
        url = httpx2.URL(value if separator else f"http://{value}")
    except (httpx2.InvalidURL, UnicodeError):
        return "not the address of a proxy"
    return "" if url.host and (url.port or 0) <= _MAX_PORT else "not the address of a proxy"

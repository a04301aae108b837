"""How a browser is launched whose traffic all goes through a proxy."""

from typing import Any

# Traffic that bypasses an HTTP proxy is disabled: WebRTC's and QUIC's datagrams, and DNS look-ups, through which a page
# could send data out. The guard resolves names itself.
_PROXY_ONLY = (
    # Two names for one policy: Chromium reads the first, its headless shell the second.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
# By default, Chromium bypasses the proxy for loopback addresses.
NO_BYPASS = "<-loopback>"


def proxy_options(proxy: str, spki_hash: str | None = None) -> dict[str, Any]:
    """Playwright's launch options for a browser whose traffic all goes through a proxy, which may end TLS."""
    trust = [] if spki_hash is None else [f"--ignore-certificate-errors-spki-list={spki_hash}"]
    return {"args": [*_PROXY_ONLY, *trust], "proxy": {"server": proxy, "bypass": NO_BYPASS}}

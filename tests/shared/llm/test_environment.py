"""Proxies and certificates in the environment: usable by every SDK's client, or named in one line."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import certifi
import pytest

from helpers.llm.servers import gemini_answer, serving
from shared.errors import ConfigError
from shared.llm.environment import require_network
from shared.llm.model import ModelRequest
from shared.llm.opening import open_model
from shared.llm.providers import provider_names
from shared.settings import Settings

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")


def in_environment(monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str]) -> Settings:
    """The settings of a process with these proxies and certificates, which the SDKs read for themselves."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return Settings.from_environ(environ)


@pytest.mark.parametrize("provider", provider_names())
@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"ALL_PROXY": "socks5://127.0.0.1:1"},
        {"all_proxy": "socks5h://user:secret@127.0.0.1:1"},
        {"ALL_PROXY": "SOCKS5://127.0.0.1:1"},
        {"HTTPS_PROXY": "127.0.0.1:8080", "HTTP_PROXY": "http://user:secret@proxy.test:3128/"},
        {"HTTPS_PROXY": "https://[::1]:8080"},
        {"http_proxy": ""},
        # Without any proxy, what is wrong with one does not matter.
        {"ALL_PROXY": "socks://127.0.0.1:1", "NO_PROXY": "localhost, *"},
        {"NO_PROXY": "[::1]"},
        {"NO_PROXY": "::1,fe80::/10,10.0.0.0/8"},
        {"NO_PROXY": "a.test:port, <local>,.b.test,*.c.test,\u00fc.test"},
        {"SSL_CERT_FILE": certifi.where()},
        {"SSL_CERT_DIR": str(Path(certifi.where()).parent)},
        {"SSL_CERT_DIR": f"/missing:{Path(certifi.where()).parent}"},
    ],
)
async def test_a_model_opens_in_every_usable_environment(
    provider: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = in_environment(monkeypatch, environ)
    model = open_model(f"{provider}:m", settings, purpose="judge model", timeout_s=1.0)
    await model.aclose()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks://127.0.0.1:1"),
        ("all_proxy", "socks4://127.0.0.1:1"),
        ("ALL_PROXY", "ftp://user:secret@proxy.test"),
        ("HTTP_PROXY", "pac+http://secret.test"),
        ("HTTPS_PROXY", "http://secret:b:c"),
        ("HTTPS_PROXY", "http://[::1"),
        ("https_proxy", "http://"),
        ("http_proxy", "secret.test:99999"),
        ("SSL_CERT_FILE", "/missing/ca.pem"),
        ("SSL_CERT_FILE", "/"),
        ("SSL_CERT_FILE", __file__),
        ("SSL_CERT_DIR", "/missing"),
        ("SSLKEYLOGFILE", "/missing/keys"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests read no certificates (conftest.py).
    monkeypatch.delattr(ssl.SSLContext, "load_verify_locations")
    with pytest.raises(ConfigError) as caught:
        require_network({variable: value})
    assert caught.value.key == variable
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_model_behind_no_proxy_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"ALL_PROXY": "socks5://127.0.0.1:1", "NO_PROXY": "10.0.0.0/8,127.0.0.0/8"}
    settings = in_environment(monkeypatch, environ)
    async with serving(gemini_answer("Hi")) as server:
        model = open_model("gemini:m", settings, purpose="judge model", timeout_s=9.0, base_url=server.url)
        assert (await model.complete(ModelRequest(system="s", parts=("x",)))).text == "Hi"
        await model.aclose()


def test_the_key_log_is_what_python_itself_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", "/missing/keys")
    with pytest.raises(FileNotFoundError):
        ssl.create_default_context()

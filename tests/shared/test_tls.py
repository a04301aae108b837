"""The judge accepts the certificates of sites that the user's own authority issued."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type

from helpers.network.served_sites import Authority, listening
from helpers.ports import free_ports
from shared.errors import ConfigError
from shared.tls import site_client, why_no_answer


async def ready(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one request."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nready")
    await writer.drain()
    writer.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.made_in(tmp_path)


@pytest.fixture
def site(authority: Authority) -> Iterator[str]:
    (port,) = free_ports(1)
    with listening(ready, port, authority):
        yield f"https://localhost:{port}/"


def in_a_folder(authority: Authority, folder: Path) -> Path:
    """A folder as OpenSSL reads it: each certificate has the hash of its subject as its name."""
    subject = x509.load_pem_x509_certificate(authority.ca.read_bytes()).subject
    canonical = [x509.NameAttribute(each.oid, str(each.value).lower(), _ASN1Type.UTF8String) for each in subject]
    digest = hashlib.sha1(x509.Name(canonical).public_bytes()[2:], usedforsecurity=False).digest()
    (folder / f"{int.from_bytes(digest[:4], 'little'):08x}.0").write_bytes(authority.ca.read_bytes())
    return folder


async def answer_of(site: str, environ: dict[str, str]) -> str:
    async with site_client(environ, timeout=10.0) as client:
        return (await client.get(site)).text


async def test_an_authority_of_the_environment_is_accepted(site: str, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "authorities").mkdir()
    folder = in_a_folder(authority, tmp_path / "authorities")
    assert await answer_of(site, {"SSL_CERT_FILE": str(authority.ca)}) == "ready"
    assert await answer_of(site, {"SSL_CERT_DIR": f"/missing:{folder}"}) == "ready"


async def test_any_other_authority_is_refused(site: str) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED") as caught:
        await answer_of(site, {})
    assert why_no_answer(caught.value).startswith("its certificate cannot be used (")


async def test_why_a_site_does_not_answer_is_said_in_plain_words() -> None:
    async def hangs_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    closed, broken = free_ports(2)
    async with await asyncio.start_server(hangs_up, "127.0.0.1", broken):
        for port, why in (closed, "nothing answers there"), (broken, "the connection ended before the answer did"):
            with pytest.raises(httpx.HTTPError) as caught:
                await answer_of(f"http://127.0.0.1:{port}/", {})
            assert why_no_answer(caught.value) == why


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    with pytest.raises(ConfigError) as caught:
        site_client({"SSL_CERT_FILE": str(tmp_path / "ca.pem")})
    assert str(caught.value) == f"SSL_CERT_FILE: {tmp_path}/ca.pem contains no certificate (correct it, or unset it)"

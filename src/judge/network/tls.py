"""Terminates the TLS connections of a browser, which trusts one key: the one of all certificates issued here.

Chromium gets the key's hash, because it has no option for an additional authority, and because it allows service
workers only without certificate errors. Other clients get the authority's certificate.
"""

import base64
import hashlib
import ipaddress
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from judge.network.peers import CHUNK, ByteReader, ByteWriter

# Clients refuse longer ones.
_VALID = timedelta(days=300)
_MAX_HOSTS = 500
_MAX_NAME = 64
_T = TypeVar("_T")


class Authority:
    """One key with a certificate for any host. Apart from this process, the key is only in its private folder."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        spki = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.spki_hash = base64.b64encode(hashlib.sha256(spki).digest()).decode()
        self._name = _name("WABE guard")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        own = self._issued(self._name).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._own = own.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = self._own.public_bytes(serialization.Encoding.PEM)
        self.context = lru_cache(_MAX_HOSTS)(self._context)

    def _issued(self, subject: x509.Name) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + _VALID)
        )

    def _context(self, host: str) -> ssl.SSLContext:
        """The TLS context for `host`: a certificate, and HTTP/1.1 as the only protocol."""
        leaf = (
            self._issued(_name(host))
            .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        key = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        # The module `ssl` reads certificates from files only.
        with tempfile.TemporaryDirectory(prefix="wabe-tls-") as folder:
            path = Path(folder, "leaf.pem")
            path.write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + key)
            context.load_cert_chain(path)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_MAX_NAME] or "unnamed")])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        return x509.DNSName(host)


class TlsStream:
    """The server's end of TLS over a reader and a writer; some bytes may have been read already.

    `asyncio` can only start TLS before anything is read, and the first byte shows whether it is TLS at all.
    """

    def __init__(self, reader: ByteReader, writer: ByteWriter, context: ssl.SSLContext) -> None:
        self._reader = reader
        self._writer = writer
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=True)

    async def handshake(self) -> None:
        """Perform the handshake. Raises `ssl.SSLError`."""
        await self._do(self._tls.do_handshake)

    async def read(self, n: int = CHUNK, /) -> bytes:
        """See `judge.network.peers.ByteReader`."""
        try:
            return await self._do(partial(self._tls.read, n))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def write(self, data: bytes, /) -> None:
        """See `judge.network.peers.ByteWriter`."""
        if data:
            self._tls.write(data)
            self._flush()

    async def drain(self) -> None:
        """See `judge.network.peers.ByteWriter`."""
        await self._writer.drain()

    def close(self) -> None:
        """See `judge.network.peers.ByteWriter`."""
        # Tells the other side that nothing was truncated. It need not answer.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()
        self._writer.close()

    async def wait_closed(self) -> None:
        """See `judge.network.peers.ByteWriter`."""
        await self._writer.wait_closed()

    def _flush(self) -> None:
        if data := self._to_send.read():
            self._writer.write(data)

    async def _do(self, work: Callable[[], _T]) -> _T:
        while True:
            try:
                result = work()
            except ssl.SSLWantReadError:
                self._flush()
                await self._writer.drain()
            else:
                self._flush()
                return result
            if data := await self._reader.read(CHUNK):
                self._received.write(data)
            else:
                self._received.write_eof()

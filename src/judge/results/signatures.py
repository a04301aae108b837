"""Signed runs: an in-toto statement about the files of a run, in a DSSE envelope signed with an Ed25519 key.

Formats: https://github.com/in-toto/attestation (Statement v1) and https://github.com/secure-systems-lab/dsse.
A signature says that whoever has the key had these files; it does not say that they are true.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field, ValidationError

from judge.store.run_files import ENVELOPE
from shared.fields import Sha256
from shared.files import read_file, reason_of, sha256_file
from shared.models import Record

_PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://github.com/hjerpe/wabe/signed-run/v1"


class Digest(Record):
    """A digest as in-toto writes it."""

    sha256: Sha256


class Subject(Record):
    """A file, by its path in the run's folder."""

    name: str
    digest: Digest


class SignedRun(Record):
    """What is said of the run beside its files. `public_key` is the one that signed, in OpenSSH's form."""

    run_id: str
    task_set_checksum: str | None
    request_sha256: str | None
    packages: Mapping[str, str]
    signed_at: str
    public_key: str


class Statement(Record):
    """An in-toto statement about a run."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: Literal["https://github.com/hjerpe/wabe/signed-run/v1"] = Field(alias="predicateType")
    predicate: SignedRun


class Signature(Record):
    """One signature of an envelope."""

    keyid: str
    sig: str


class Envelope(Record):
    """A DSSE envelope with one signature."""

    payload: str
    payload_type: Literal["application/vnd.in-toto+json"] = Field(alias="payloadType")
    signatures: tuple[Signature] = Field(min_length=1, max_length=1)


class NotSigned(Exception):
    """Why the envelope does not count, in one line."""


def signer_of(submission: Path) -> str | None:
    """The fingerprint of the key that signed the run of a `results.json`, if its statement has this very file.

    The key is the one that the statement itself names: it tells rows apart, and trusts nobody.
    """
    try:
        payload = json.loads(base64.b64decode(json.loads(read_file(submission.parent / ENVELOPE.name))["payload"]))
        public = serialization.load_ssh_public_key(str(payload["predicate"]["public_key"]).encode())
        if not isinstance(public, Ed25519PublicKey):
            return None
        statement = read_statement(submission.parent / ENVELOPE.name, public)
        digests = {each.name: each.digest.sha256 for each in statement.subject}
        return fingerprint(public) if digests.get(submission.name) == sha256_file(submission) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UnsupportedAlgorithm, NotSigned):
        return None


def fingerprint(key: Ed25519PublicKey) -> str:
    """The fingerprint of a key as `ssh-keygen -l` shows it."""
    blob = base64.b64decode(openssh(key).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def read_statement(path: Path, public: Ed25519PublicKey) -> Statement:
    """The statement that this key signed. Raises `NotSigned`."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise NotSigned(f"{path.name}: missing, the run is not signed") from None
    except (OSError, ValueError) as error:
        raise NotSigned(f"{path.name}: {reason_of(error)}") from None
    try:
        envelope = Envelope.model_validate_json(data)
        payload = base64.b64decode(envelope.payload, validate=True)
        (signature,) = envelope.signatures
        raw = base64.b64decode(signature.sig, validate=True)
    except (ValueError, ValidationError):
        raise NotSigned(f"{path.name}: damaged, not a signed statement") from None
    if signature.keyid != fingerprint(public):
        raise NotSigned(f"{path.name}: signed with the key {signature.keyid[:80]!a}, not {fingerprint(public)}")
    # Also what the signature does not cover, such as spaces between the keys, must be as it was written.
    if data != envelope_of(payload, raw, signature.keyid):
        raise NotSigned(f"{path.name}: changed since it was signed")
    try:
        public.verify(raw, encoded(payload))
        return Statement.model_validate_json(payload)
    except InvalidSignature:
        raise NotSigned(f"{path.name}: the signature does not match the statement") from None
    except ValidationError:
        raise NotSigned(f"{path.name}: not a statement about a run") from None


def encoded(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed."""
    kind = _PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope_of(payload: bytes, signature: bytes, keyid: str) -> bytes:
    """The file that has a signed statement."""
    body = {"payload": base64.b64encode(payload).decode(), "payloadType": _PAYLOAD_TYPE}
    signed: dict[str, Any] = {"signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}]}
    return json.dumps(body | signed, indent=1).encode() + b"\n"


def openssh(key: Ed25519PublicKey) -> str:
    """The key in OpenSSH's form."""
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()

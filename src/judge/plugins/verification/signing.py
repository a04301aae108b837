"""Signs the files of a run, and compares them with what was signed (`judge.results.signatures`)."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from judge.results.part import parts_of, publish
from judge.results.run_record import package_versions
from judge.results.signatures import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    NotSigned,
    encoded,
    envelope_of,
    fingerprint,
    openssh,
    read_statement,
)
from judge.store.layout import RunStore
from judge.store.run_files import ENVELOPE, FileKind, declared_at, kind_of
from shared.errors import ConfigError
from shared.files import read_errors, read_file, sha256_file, write_errors
from shared.models import Record
from shared.text import counted

_KEY_REMEDY = "make one with: openssl genpkey -algorithm ed25519 -out key.pem"


class SignatureFindings(Record):
    """What comparing a run with its signed statement gave: contradictions, and files that were added later.

    `uncovered` are reports and exports, which no signature covers because they can be made again from the other files.
    """

    fingerprint: str | None = None
    mismatches: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()


def sign_run(store: RunStore, key_file: Path) -> tuple[Path, str, int]:
    """Write the signed statement. Returns its path, the key's fingerprint and the number of files in it.

    Raises `ConfigError` for an unusable key, a run being played, and a link among its files.
    """
    key = _private_key(key_file)
    if store.is_in_progress:
        raise ConfigError(f"run {store.run_id} is being played or judged", remedy="sign it when that has ended")
    run = store.read_run()
    if run is None:
        raise ConfigError(f"{store.folder / 'run.json'}: missing or not JSON", remedy="name the folder of a run")
    # What was added since the results were written, such as labels, is covered as well.
    publish(store, is_signed_again=True)
    subjects = []
    for name, path in _files(store.folder):
        if path.is_symlink():
            raise ConfigError(f"{path} is a link, which cannot be signed", remedy="replace it with the file itself")
        with read_errors(path, "remove it, or move it to another folder"):
            subjects.append({"name": name, "digest": {"sha256": sha256_file(path)}})
    public = key.public_key()
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "run_id": str(run.get("run_id") or store.run_id),
            "task_set_checksum": run.get("task_set_checksum"),
            "request_sha256": run.get("request_sha256"),
            "packages": package_versions(),
            "signed_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "public_key": openssh(public),
        },
    }
    payload = json.dumps(statement, sort_keys=True).encode()
    path = store.folder / ENVELOPE.name
    with write_errors(path, "choose a run whose folder can be written"):
        path.write_bytes(envelope_of(payload, key.sign(encoded(payload)), fingerprint(public)))
    return path, fingerprint(public), len(subjects)


def verify_signature(store: RunStore, key_file: Path) -> SignatureFindings:
    """Compare a run's files with its signed statement. Raises `ConfigError` for an unusable key."""
    public = _public_key(key_file)
    try:
        statement = read_statement(store.folder / ENVELOPE.name, public)
        run = store.read_run() or {}
        signed, here = statement.predicate.run_id, str(run.get("run_id") or store.run_id)
        if signed != here:
            raise NotSigned(f"{ENVELOPE.name}: the statement is about run {signed[:200]!a}, not {here[:200]!a}")
    except NotSigned as error:
        return SignatureFindings(mismatches=(str(error),))
    digests = {each.name: each.digest.sha256 for each in statement.subject}
    # Also what an earlier version signed and this one would not.
    there, parts = dict(_all_files(store.folder)), parts_of(store)
    problems = [f"{name}: signed, and missing" for name in digests if name not in there]
    added = list({name for name, _ in _files(store.folder)} - digests.keys())
    for name, path in there.items():
        if name in digests and not _is_file_with(path, digests[name]):
            # What was only added changes nothing signed.
            grown = next(filter(None, (part.growth(name, path, digests[name]) for part in parts)), "")
            (added if grown else problems).append(
                f"{name}: {grown}" if grown else f"{name}: changed since it was signed"
            )
    return SignatureFindings(
        fingerprint=fingerprint(public),
        mismatches=tuple(sorted(problems)),
        added=tuple(sorted(added)),
        uncovered=tuple(_uncovered(store.folder)),
    )


def _files(folder: Path, kind: FileKind = "recorded") -> Iterator[tuple[str, Path]]:
    """The files of a kind, by their paths in the folder. A signature covers the recorded ones; no link is followed."""
    return ((name, path) for name, path in _all_files(folder) if kind_of(name) == kind)


def _uncovered(folder: Path) -> Iterator[str]:
    """What no signature covers, although it is made for people to look at: files, and folders with their size."""
    names = [(declared_at(name), name) for name, _ in _files(folder, "derived")]
    files = Counter(each.name if each and each.is_folder else name for each, name in names)
    return (f"{name} ({counted(files[name], 'file')})" if name.endswith("/") else name for name in sorted(files))


def _all_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _is_file_with(path: Path, sha256: str) -> bool:
    with suppress(OSError, ValueError):
        return not path.is_symlink() and sha256_file(path) == sha256
    return False


def _private_key(path: Path) -> Ed25519PrivateKey:
    with read_errors(path, _KEY_REMEDY):
        data = read_file(path)
    for load in (serialization.load_pem_private_key, serialization.load_ssh_private_key):
        try:
            key = load(data, None)
        except TypeError:
            raise ConfigError(f"{path}: the key is encrypted", remedy="use an unencrypted key") from None
        except (ValueError, UnsupportedAlgorithm):
            continue
        if isinstance(key, Ed25519PrivateKey):
            return key
    raise ConfigError(f"{path} has no private Ed25519 key", remedy=_KEY_REMEDY)


def _public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a file, which may also have the private one."""
    with read_errors(path, "give the public key of whoever signed"):
        data = read_file(path)
    for load in (serialization.load_pem_public_key, serialization.load_ssh_public_key):
        try:
            key = load(data)
        except (ValueError, UnsupportedAlgorithm):
            continue
        if isinstance(key, Ed25519PublicKey):
            return key
    return _private_key(path).public_key()

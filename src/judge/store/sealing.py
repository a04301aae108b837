"""Sealed task sets: scenario files that only the holder of a key can read, with a part in the clear.

A sealed file is JSON. `public` says what anybody may know; `sealed` has everything else, encrypted with AES-256-GCM
(NIST SP 800-38D), whose associated data is the public part, so that neither can be changed without the key. The key
comes from the environment of whoever opens the file, never from a request.
"""

import base64
import hashlib
import hmac
import json
import secrets
from typing import Annotated, Any, Literal, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import Field, SecretStr, TypeAdapter

from judge.records.tasks import Level, TaskId
from shared.errors import ConfigError
from shared.fields import Table, at_most
from shared.files import read_errors
from shared.models import Record
from shared.strict_json import parse_json
from shared.validation import validated

KEY_VARIABLE = "WABE_SEAL_KEY"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_HEX = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]


class SealKey:
    """A key of 32 bytes. `id` names it without revealing it."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.id = hmac.new(key, b"wabe sealed task set", hashlib.sha256).hexdigest()[:16]

    @classmethod
    def new(cls) -> Self:
        """A random key."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def read(cls, text: str, source: str) -> Self:
        """The key in a text as `text` writes it. Raises `ConfigError`, which does not show it."""
        try:
            key = base64.urlsafe_b64decode(text.strip().encode())
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise ConfigError(f"{source}: not a key of a sealed task set", remedy="wabe tasks seal makes one")
        return cls(key)

    @property
    def text(self) -> str:
        """The key as text, secret."""
        return base64.urlsafe_b64encode(self._key).decode()

    def encrypt(self, content: bytes, public: bytes) -> bytes:
        """The nonce, and the content encrypted with it."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + AESGCM(self._key).encrypt(nonce, content, public)

    def decrypt(self, encrypted: bytes, public: bytes) -> bytes:
        """The content. Raises `InvalidTag` if one of the two, or the key, is not the encryption's."""
        if len(encrypted) < _NONCE_BYTES:
            raise InvalidTag
        return AESGCM(self._key).decrypt(encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:], public)


def key_in(variable: SecretStr | None) -> SealKey | None:
    """The key in the environment; `None` without one. Raises `ConfigError` for another text."""
    return None if variable is None else SealKey.read(variable.get_secret_value(), KEY_VARIABLE)


class PublicTask(Table):
    """What is public of a task: a random id, and its level."""

    task_id: TaskId
    level: Level | None = None


class PublicPart(Table):
    """What anybody may know of a sealed set.

    `digest` is the SHA-256 of its content, which contains random names, so that no guess can be confirmed by it.
    `canary` stands in the content as well: a model that knows it has seen the tasks.
    """

    name: Annotated[str, at_most(200)]
    tasks: Annotated[tuple[PublicTask, ...], Field(min_length=1), at_most(10_000)]
    sites: Annotated[tuple[str, ...], at_most(10_000)] | None = None
    digest: _HEX = ""
    key_id: _HEX = ""
    canary: Annotated[str, at_most(200)]


class SealedFile(Table):
    """A sealed file."""

    wabe_sealed: Literal[1]
    public: PublicPart
    sealed: str


class SealedContent(Record):
    """What is encrypted. `ids` are the random ids by the scenario's; files are by the names that it uses."""

    scenario: str
    ids: dict[str, TaskId]
    canary: str
    states: dict[str, Any] = Field(default_factory=dict)
    # In base64: for uploads.
    files: dict[str, str] = Field(default_factory=dict)
    scripts: dict[str, str] = Field(default_factory=dict)


class SealedSet(Record):
    """Of an opened set: the text of its file, its public part, and its replay scripts, by name."""

    text: str = Field(repr=False)
    public: PublicPart
    scripts: dict[str, str] = Field(default_factory=dict, repr=False)


_FILE = TypeAdapter(SealedFile)


def is_sealed(content: bytes) -> bool:
    """Whether the bytes of a scenario file are a sealed one's."""
    return content.lstrip()[:1] == b"{" and b'"wabe_sealed"' in content


def sealed_text(content: SealedContent, public: PublicPart, key: SealKey) -> str:
    """The text of a sealed file; `public` has everything but the content's digest and the id of the key."""
    plain = content.model_dump_json().encode()
    public = public.model_copy(update={"digest": hashlib.sha256(plain).hexdigest(), "key_id": key.id})
    encrypted = base64.b64encode(key.encrypt(plain, _associated(public))).decode()
    file = {"wabe_sealed": 1, "public": public.model_dump(mode="json", exclude_none=True), "sealed": encrypted}
    return json.dumps(file, ensure_ascii=False, indent=1) + "\n"


def read_sealed(text: str, source: object) -> SealedFile:
    """A sealed file, without opening it. Raises `ConfigError`."""
    with read_errors(source, "give a file that wabe tasks seal has written"):
        value = parse_json(text)
    return validated(_FILE, value, source)


def opened(file: SealedFile, key: SealKey | None, source: object) -> SealedContent:
    """The content of a sealed file. Raises `ConfigError` without its key, or if it was changed."""
    public = file.public
    if key is None:
        raise ConfigError(f"{source}: a sealed task set", remedy=f"set {KEY_VARIABLE} to the key it was sealed with")
    if key.id != public.key_id:
        raise ConfigError(
            f"{source}: sealed with the key {public.key_id}, not with that of {KEY_VARIABLE}, {key.id}",
            remedy=f"set {KEY_VARIABLE} to the key it was sealed with",
        )
    try:
        plain = key.decrypt(base64.b64decode(file.sealed, validate=True), _associated(public))
        if hashlib.sha256(plain).hexdigest() != public.digest:
            raise InvalidTag
    except (InvalidTag, ValueError):
        raise ConfigError(
            f"{source}: damaged, or changed after it was sealed", remedy="copy the file again, or seal the set again"
        ) from None
    return SealedContent.model_validate_json(plain)


def _associated(public: PublicPart) -> bytes:
    """The bytes of the public part to which the encryption is bound."""
    return json.dumps(public.model_dump(mode="json"), sort_keys=True).encode()

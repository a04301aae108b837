"""Login data for a task's browser: a storage state as Playwright saves it, and credentials for HTTP authentication.

All of it is secret: it is never recorded, displayed or sent to a participant. `Task` leaves it out of every dump, and
no error here shows a value.
"""

import base64
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from judge.records.credentials import Headers
from shared.fields import AsTuple, Invalid, Line, Table, Url, as_mapping, at_most, printable

_MAX_VALUE_CHARS = 1_000_000
# Shorter values, such as `1` or `true`, occur everywhere: redacting them would redact everything else.
_MIN_SECRET_CHARS = 6
_MAX_DEPTH = 20
T = TypeVar("T")
_WRITE_LOGIN = 'write login = { url = "/login", username = "…", password = "${NAME}" }'
_SAVE_AGAIN = "save it again with Playwright: context.storage_state(path=…)"


SecretText = Annotated[str, at_most(_MAX_VALUE_CHARS)]


class _SecretTable(Table):
    # Explicitly empty, so that a field added later cannot appear in a `repr`.
    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return iter(())


class Cookie(_SecretTable):
    """A cookie of a storage state. `expires` is in seconds since 1970; -1 means when the browser is closed."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True)

    name: Annotated[Line, at_most(4096)]
    value: SecretText
    domain: Annotated[Line, Field(min_length=1), at_most(300)]
    path: Annotated[Line, at_most(4096)] = "/"
    expires: float = -1
    httpOnly: bool = False
    secure: bool = False
    sameSite: Literal["Strict", "Lax", "None"] = "Lax"
    partitionKey: Annotated[Line, at_most(2048)] | None = None
    # Playwright's key, which it saves with Chromium's partitioned cookies.
    has_cross_site_ancestor: bool | None = Field(default=None, alias="_crHasCrossSiteAncestor")


class StoredItem(_SecretTable):
    """An entry of an origin's local storage."""

    name: SecretText
    value: SecretText


class OriginStorage(_SecretTable):
    """The storage of one origin. `indexedDB` is passed on as Playwright wrote it."""

    origin: Url
    localStorage: Annotated[tuple[StoredItem, ...], at_most(1000), AsTuple] = ()
    indexedDB: Annotated[tuple[dict[str, Any], ...], at_most(100), AsTuple] = ()


class StorageState(_SecretTable):
    """Cookies and storage of a logged-in browser, as saved by Playwright's `context.storage_state`."""

    cookies: Annotated[tuple[Cookie, ...], at_most(1000), AsTuple] = ()
    origins: Annotated[tuple[OriginStorage, ...], at_most(100), AsTuple] = ()

    def to_json(self) -> dict[str, Any]:
        """The argument of `context.setStorageState`."""
        return self.model_dump(mode="json", exclude_unset=True)


class HttpCredentials(_SecretTable):
    """User name and password for HTTP authentication.

    They are sent to `origin` only, by default the task's website. In a scenario file, `${NAME}` in `username` and
    `password` stands for an environment variable.
    """

    username: Annotated[SecretText, Field(min_length=1)]
    password: SecretText
    origin: Url | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be recorded: the password, and the header `Authorization: Basic` (RFC 7617)."""
        return self.password, base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    @property
    def written(self) -> tuple[str, ...]:
        """The secrets as the scenario has them."""
        return (self.password,)

    def with_texts(self, resolve: Callable[[str], str]) -> Self:
        """With the variables in its texts resolved."""
        return self.model_copy(update={name: resolve(getattr(self, name)) for name in ("username", "password")})


class HeaderLogin(_SecretTable):
    """Headers that log in to a site: as `HttpCredentials`, they are sent to `origin` only."""

    headers: Annotated[Headers, Field(min_length=1)]
    origin: Url | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be recorded: the values."""
        return tuple(value for value in self.headers.values() if len(value) >= _MIN_SECRET_CHARS)

    @property
    def written(self) -> tuple[str, ...]:
        """The secrets as the scenario has them."""
        return tuple(self.headers.values())

    def with_texts(self, resolve: Callable[[str], str]) -> Self:
        """With the variables in its values resolved."""
        return self.model_copy(update={"headers": {name: resolve(text) for name, text in self.headers.items()}})


class FormLogin(_SecretTable):
    """An account logged in to by a site's form. `url` is the form's address, relative to the site's.

    In a scenario file, `${NAME}` in `username` and `password` stands for an environment variable. Without a `username`,
    the form asks for a password only.
    """

    url: Annotated[Line, at_most(2048)] = "/"
    username: Annotated[SecretText, Field(min_length=1)] | None = None
    password: SecretText


_STATE = TypeAdapter(StorageState)
_LOGIN: TypeAdapter[HttpCredentials | HeaderLogin] = TypeAdapter(HttpCredentials)
_HEADER_LOGIN: TypeAdapter[HttpCredentials | HeaderLogin] = TypeAdapter(HeaderLogin)
_FORM_LOGIN = TypeAdapter(FormLogin)


def _without_values(adapter: TypeAdapter[T], value: object, remedy: str) -> T:
    """The validated value. pydantic's error messages would show it, so they are replaced."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        cause = (detail.get("ctx") or {}).get("error")
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).lstrip(".")
        what = {"missing": "missing", "string_type": "not a string"}.get(detail["type"], "not usable")
        if isinstance(cause, Invalid) and not cause.shows_value:
            what = f"{cause.problem}{f' {printable(cause.key)}' if cause.key else ''}"
        raise Invalid(f"{path}: {what}" if path else what, remedy) from None


def _state(value: object) -> object:
    """A path is returned unchanged; the content of a file is validated."""
    if isinstance(value, str | StorageState):
        return value
    if not isinstance(value, Mapping):
        raise Invalid("not the name of a file", 'write storage_state = "shop-login.json"')
    return read_storage_state(value)


def _content(value: object) -> object:
    if not isinstance(value, Mapping | StorageState):
        raise Invalid("not a table", "send the content of the file")
    return _state(value)


def read_storage_state(value: Mapping[str, Any]) -> StorageState:
    """The content of a storage state's file. Raises `Invalid`, which shows no value."""
    return _without_values(_STATE, value, _SAVE_AGAIN)


def _credentials(value: object) -> object:
    """One table, or one for each of several origins."""
    items = [value] if isinstance(value, Mapping | HttpCredentials | HeaderLogin) else value
    if not isinstance(items, list | tuple) or len(items) > 16:
        raise Invalid("not a table", 'write http_credentials = { username = "…", password = "${NAME}" }')
    remedy = 'write { username = "…", password = "${NAME}" }, or { headers = { Name = "${NAME}" } }'
    return tuple(
        _without_values(
            _HEADER_LOGIN if isinstance(each, HeaderLogin) or "headers" in as_mapping(each) else _LOGIN, each, remedy
        )
        for each in items
    )


def _form_login(value: object) -> object:
    if not isinstance(value, Mapping | FormLogin):
        raise Invalid("not a table", _WRITE_LOGIN)
    return _without_values(_FORM_LOGIN, value, _WRITE_LOGIN)


StateContent = Annotated[StorageState, BeforeValidator(_content)]
# In a scenario, the path of a file relative to it; in a request, a key in its `storage_states`; or the content itself.
DeclaredState = Annotated[StorageState | Annotated[Line, Field(min_length=1), at_most(4096)], BeforeValidator(_state)]
DeclaredLogin = Annotated[FormLogin, BeforeValidator(_form_login)]
Login = HttpCredentials | HeaderLogin
Credentials = Annotated[tuple[Login, ...], BeforeValidator(_credentials)]


def merged(states: Iterable[StorageState]) -> StorageState:
    """One state with the content of all. For equal cookies (by name and place), and for storage, the last one wins."""
    cookies: dict[tuple[object, ...], Cookie] = {}
    origins: dict[str, OriginStorage] = {}
    for state in states:
        cookies |= {(c.name, c.domain, c.path, c.partitionKey): c for c in state.cookies}
        origins |= {each.origin: each for each in state.origins}
    return StorageState(cookies=tuple(cookies.values()), origins=tuple(origins.values()))


def secrets_of(state: StorageState | str | None, credentials: tuple[Login, ...]) -> tuple[str, ...]:
    """Every value that must not be recorded: cookies, stored items and the strings inside them, passwords, headers.

    Values shorter than six characters are left out, except passwords.
    """
    secrets = dict.fromkeys(secret for each in credentials for secret in each.secrets)
    if isinstance(state, StorageState):
        values: list[object] = [cookie.value for cookie in state.cookies]
        for origin in state.origins:
            values += [item.value for item in origin.localStorage]
            values += list(origin.indexedDB)
        texts = (text for value in values for text in _texts_in(value))
        secrets |= dict.fromkeys(text for text in texts if len(text) >= _MIN_SECRET_CHARS)
    return tuple(secrets)


def _texts_in(value: object, depth: int = 0) -> Iterator[str]:
    """Every string inside a value. A JSON string yields itself and the strings inside it."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "[", '"'):
            with contextlib.suppress(ValueError, RecursionError):
                yield from _texts_in(json.loads(value), depth + 1)
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(item, depth + 1)

"""Shared by the adapters of the model SDKs: a time limit, retries, billing of lost requests, and error texts."""

import asyncio
import contextlib
import contextvars
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_exponential_jitter

from shared.errors import (
    ModelBudgetSpent,
    ModelError,
    ModelKeyRefused,
    ModelMalformed,
    ModelRequestRefused,
    ModelTruncated,
    ModelUnavailable,
    ModelUnreached,
    SharedStateFault,
)
from shared.llm.attempts import name_attempt
from shared.llm.model import BeforeRetry, Completion, FinishReason, ModelRequest
from shared.llm.parameters import refused_parameters
from shared.llm.waits import told_wait_s
from shared.models import TokenUsage
from shared.text import without_surrogates

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
# Where the provider does not say how long to wait. Where it does, only the call's time limit counts.
MAX_ATTEMPTS = 5
_MAX_BACKOFF_S = 30.0
# Statuses that the same request would get again: malformed, too large, wrong media type, not processable.
_REQUEST_REFUSED = (400, 413, 415, 422)
# Others are never about one of the options: keys, time limits, rate limits.
_NOT_ABOUT_OPTIONS = (401, 403, 408, 429)
# Statuses with which gateways pass a rate limit on: transient if their text says when to try again.
_MAY_BE_BUSY = (400, 402, 403, 413, 425, 498)
_REMEDIES: Mapping[int, str] = MappingProxyType(
    {
        404: "check the model's name and the base URL",
        429: "wait, lower the requests or tokens per minute, or check the account's limits and credit",
    }
)
_CHECK_NETWORK = "check the network, the proxy and the base URL"
# What an answer has, in all APIs.
_ANSWERS = ("choices", "candidates", "content")
# The status of an error that names none, by words in its fields and its text; the first that fits.
_MEANINGS: Mapping[tuple[str, ...], int] = MappingProxyType(
    {
        ("content_filter", "content_policy", "moderation", "invalid_prompt"): 400,
        ("rate_limit", "rate limit", "resource_exhausted", "too many requests", "quota"): 429,
        ("overloaded",): 529,
        ("invalid_request", "unsupported", "not support", "bad_request", "invalid_argument", "unknown param"): 400,
        ("authentication", "api key", "api_key", "unauthorized"): 401,
        ("not_found", "does not exist"): 404,
        ("timeout", "timed out"): 504,
    }
)

# The usage of a sent call and may be billed, but whose usage was not reported.
UNREPORTED = TokenUsage(calls=1, estimated_calls=1)


class AnswerInterrupted(Exception):
    """The endpoint broke its answer off, which may be billed. Asked again, it may answer."""

    def __init__(self, message: str, usage: TokenUsage) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass
class _Requests:
    """Counts one model call's HTTP requests: tried, sent over a connection, and refused (refused ones cost nothing).

    `unadvised` are those that failed without advice when to try again, `lost` is the usage of interrupted answers.
    """

    began_s: float = field(default_factory=time.monotonic)
    attempts: int = 0
    sent: int = 0
    refused: int = 0
    unadvised: int = 0
    lost: TokenUsage | None = None

    async def trace(self, event: str, _info: object) -> None:
        self.sent += event.endswith(".send_request_headers.complete")

    def lose(self, usage: TokenUsage) -> None:
        """Add the usage of an answer that is not used, but may be billed."""
        self.lost = usage + (self.lost or TokenUsage())

    @property
    def usage(self) -> TokenUsage | None:
        """The usage of a call that ends without an answer; `None` if every sent request was refused."""
        return UNREPORTED + (self.lost or TokenUsage()) if self.sent > self.refused else self.lost

    def failure(self, why: str, remedy: str = "") -> ModelUnavailable:
        """The error of a call that ends without an answer."""
        kind = ModelUnavailable if self.sent else ModelUnreached
        return kind(why, remedy=remedy, usage=self.usage)


# The SDKs hide their HTTP requests but run them in the caller's asyncio task, so a context variable connects the two.
_requests: contextvars.ContextVar[_Requests] = contextvars.ContextVar("requests")


async def trace_request(request: Any) -> None:
    """Event hook that counts requests, and names their attempt to a meter."""
    name_attempt(request)
    request.extensions["trace"] = _requests.get().trace


async def read_error_within(response: Any) -> None:
    """Event hook that gives an error which came with HTTP 200 the status that it names: the SDK then raises it."""
    if response.status_code < 300 and (status := status_within(await response.aread())) is not None:
        response.status_code = status


def http_client(*, follow_redirects: bool) -> "httpx2.AsyncClient":
    """The HTTP client for an SDK. Each SDK's own reads the environment's proxies in another way."""
    import httpx2

    return httpx2.AsyncClient(
        # `MeteredModel` bounds the calls. With the default of 100, more would wait inside their time limit.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=256),
        event_hooks={"request": [trace_request], "response": [read_error_within]},
        follow_redirects=follow_redirects,
    )


class HTTPModel(ABC):
    """A model behind a provider's SDK. Every call has one time limit, which includes retries.

    The SDK's retries must be off. Each retry waits as long as the provider asks, then for `before_retry`, which
    waits for the rate limit and fails when the budget is spent.
    """

    provider: ClassVar[str]
    key_variable: ClassVar[str]
    finish_reasons: ClassVar[Mapping[str, FinishReason]]
    # The SDK's errors for an HTTP status (they carry the `response`), for a broken connection, for an unreadable body.
    # Set in `_connect`, because the SDK is not imported before.
    status_errors: tuple[type[Exception], ...]
    connection_errors: tuple[type[Exception], ...]
    body_errors: tuple[type[Exception], ...] = (ValueError,)

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        timeout_s: float = 120.0,
        retry_delay_s: float = 1.0,
        before_retry: BeforeRetry | None = None,
    ) -> None:
        self.name = f"{self.provider}:{model}"
        self._model = model
        self._key = api_key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._before_retry = before_retry
        self._retry_delay_s = retry_delay_s
        # Options that the endpoint refused for this model.
        self._unsupported: set[str] = set()
        self._backoff = wait_exponential_jitter(initial=retry_delay_s, max=_MAX_BACKOFF_S, jitter=retry_delay_s)
        self._connect()

    async def complete(self, request: ModelRequest) -> Completion:
        """Ask the model. Raises a `ModelError`; no error text contains the key."""
        return await self.bounded(lambda: self._ask(request))

    async def bounded(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Run one call within the time limit. Every failure is raised as a `ModelError`."""
        requests = _Requests()
        token = _requests.set(requests)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await ask()
        except TimeoutError:
            why = f"{self.name} did not answer within {self._timeout_s:g} s"
            raise requests.failure(why) from None
        # Raised by `before_retry`, so earlier requests of this call may be billed.
        except (ModelBudgetSpent, SharedStateFault) as error:
            error.usage = requests.usage
            raise
        except self.status_errors as error:
            refusal = self._refusal(error)
            refusal.usage = refusal.usage or requests.usage
            raise refusal from None
        except AnswerInterrupted as error:
            raise ModelUnavailable(str(error), usage=requests.usage) from None
        except self.connection_errors as error:
            at = f" at {address}" if (address := _address_of(error)) else ""
            why = f"{self.name} cannot be reached{at}: {type(error.__cause__ or error).__name__}"
            raise requests.failure(why, remedy=_CHECK_NETWORK) from None
        except self.body_errors as error:
            # Not JSON, or JSON of another shape: the SDKs pass their parsers' errors on.
            raise self._malformed(f"an unreadable body: {type(error).__name__}") from None
        finally:
            _requests.reset(token)

    @abstractmethod
    def _connect(self) -> None:
        """Set up the SDK's client."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections."""

    @abstractmethod
    async def _ask(self, request: ModelRequest) -> Completion:
        """Ask the SDK; every HTTP request goes through `_send`."""

    @abstractmethod
    def _refusal(self, error: Any) -> ModelError:
        """The error for one of `status_errors`."""

    async def _send(self, send: Callable[[], Awaitable[T]]) -> T:
        """The result of `send`, retried after transient errors as long as the time limit leaves room for the wait."""

        async def attempt() -> T:
            requests = _requests.get()
            if requests.attempts and self._before_retry is not None:
                await self._before_retry()
            requests.attempts += 1
            try:
                return await send()
            except self.status_errors:
                requests.refused += 1
                raise
            except AnswerInterrupted as error:
                # Its usage is known, so it is not counted as a request of unknown usage.
                requests.refused += 1
                requests.lose(error.usage)
                raise

        retrying = AsyncRetrying(
            retry=retry_if_exception(self._is_transient), wait=self._wait_s, stop=self._is_over, reraise=True
        )
        return await retrying(attempt)

    async def _send_options(
        self,
        options: Mapping[str, Any],
        send: Callable[[Mapping[str, Any]], Awaitable[T]],
        *,
        limits: Collection[str] = (),
        other_names: Mapping[str, str] = MappingProxyType({}),
    ) -> T:
        """The result of `send` with the `options` that the endpoint takes, which is remembered.

        A refused option is sent under its other name, if it has one, or left out. `limits` are options
        refused as unknown only, not for their value.
        """
        refused: set[str] = set()
        while True:
            used = {}
            for name, value in options.items():
                names = [name, *filter(None, [other_names.get(name)])]
                known = next((each for each in names if each not in self._unsupported | refused), None)
                if value is not None and known is not None:
                    used[known] = value
            try:
                result = await self._send(lambda used=used: send(used))  # type: ignore[misc]
            except self.status_errors as error:
                status, text = _error_in(error)
                now = set() if status in _NOT_ABOUT_OPTIONS else refused_parameters(text, used, limits=limits)
                if not now:
                    raise
                refused |= now
            else:
                # Only now: an error's text may repeat what a participant wrote.
                self._unsupported |= refused
                return result

    def _is_transient(self, error: BaseException) -> bool:
        if isinstance(error, AnswerInterrupted):
            return True
        response = getattr(error, "response", None)
        if response is None:
            return isinstance(error, self.connection_errors)
        # Not a standard header. OpenAI uses it, for example, for a 429 that means that the account has no credit.
        advice = response.headers.get("x-should-retry")
        code: int = response.status_code
        transient = code in (408, 409, 429) or code >= 500 or (code in _MAY_BE_BUSY and _told_s(error) > 0)
        return advice == "true" or (advice != "false" and transient)

    def _is_over(self, state: RetryCallState) -> bool:
        """Whether the last attempt was the last one. `upcoming_sleep` is the wait before another."""
        requests = _requests.get()
        requests.unadvised += not _told_s(state.outcome.exception() if state.outcome else None)
        # A wait that would exceed the time limit is not begun.
        too_late = time.monotonic() - requests.began_s + state.upcoming_sleep >= self._timeout_s
        return too_late or requests.unadvised >= MAX_ATTEMPTS

    def _wait_s(self, state: RetryCallState) -> float:
        told_s = _told_s(state.outcome.exception() if state.outcome else None)
        if not told_s:
            return self._backoff(state)
        # Calls with the same advice would all come back at once; and advice that never helps must not cause a flood.
        patience_s = self._retry_delay_s if state.attempt_number >= MAX_ATTEMPTS else 0.0
        return max(told_s, patience_s) + random.uniform(0, self._retry_delay_s)

    def _error_for(self, code: int, text: str, *, is_key: bool = False) -> ModelError:
        """The error for an HTTP status and the provider's error text."""
        if is_key or code in (401, 403):
            remedy = f"check the key in {self.key_variable}"
            return ModelKeyRefused(f"{self.name} refused the key (HTTP {code})", remedy=remedy)
        remedy = _REMEDIES.get(code, "")
        kind = ModelRequestRefused if code in _REQUEST_REFUSED else ModelUnavailable
        at = f" at {_public(self._base_url)}" if self._base_url else ""
        return kind(f"{self.name}{at} answered HTTP {code}: {self.clean(text)}", remedy=remedy)

    def _malformed(self, what: str, usage: TokenUsage = UNREPORTED) -> ModelMalformed:
        return ModelMalformed(f"{self.name} answered with {what}", usage=usage)

    def _finished(self, text: str, *, model: str | None, reason: str, usage: TokenUsage) -> Completion:
        """The completion with this text. Raises a `ModelError` when there is none."""
        # Half an emoji, as a token limit leaves it, is valid JSON but cannot be encoded as UTF-8.
        text = without_surrogates(text)
        finish = self.finish_reasons.get(reason, "other")
        if not text.strip():
            if finish == "length":
                raise ModelTruncated(f"{self.name} reached its token limit before any text", usage=usage)
            raise self._malformed(f"no text (finish reason {reason or 'none'})", usage)
        served = without_surrogates(model or self._model)
        usage += _requests.get().lost or TokenUsage()
        return Completion(text=text, model=served, finish_reason=finish, usage=usage)

    def clean(self, text: str) -> str:
        """A provider's error text in one bounded line, with the key removed."""
        return without_secret(text, self._key)


def status_within(body: bytes) -> int | None:
    """The HTTP status of an error sent as an answer; `None` for anything else."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(value, dict) or any(value.get(key) for key in _ANSWERS):
        return None
    error = value.get("error") or (value if value.get("object") == "error" else None)
    if error is None:
        return None
    fields = error if isinstance(error, dict) else {}
    for key in ("code", "status", "status_code"):
        if str(fields.get(key)).isdecimal() and 400 <= (number := int(str(fields[key]))) < 600:
            return number
    status_words = " ".join(str(fields.get(key)) for key in ("code", "status", "type"))
    text = f"{status_words} {fields.get('message') if fields else error}".lower()
    return next((status for words, status in _MEANINGS.items() if any(word in text for word in words)), 502)


def _error_in(error: Any) -> tuple[int, str]:
    """The status and the body of an error for an HTTP status."""
    response = error.response
    return response.status_code, response.text


def _address_of(error: Any) -> str:
    """The host that could not be reached, without anything secret; empty if the error does not say."""
    for each in (error, error.__cause__):
        # httpx raises if the request was never set.
        with contextlib.suppress(AttributeError, RuntimeError):
            url = each.request.url
            return _public(str(url))
    return ""


def _public(url: str) -> str:
    """The scheme, host and port of an address: the rest may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _told_s(error: Any) -> float:
    """The seconds that an error asks to wait; 0 if it does not."""
    response = getattr(error, "response", None)
    return 0.0 if response is None else told_wait_s(response.headers, response.text)


def without_secret(text: str, secret: str, *, limit: int = 300) -> str:
    """A provider's error text in one bounded line, with the key removed."""
    line = " ".join(text.split())
    return (line.replace(secret, "[key]") if secret else line)[:limit]

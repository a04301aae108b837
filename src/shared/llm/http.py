"""Shared by the adapters of the model SDKs: a time limit, retries, billing of lost requests, and error texts."""

import asyncio
import contextvars
import email.utils
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential_jitter,
)

from shared.errors import (
    ModelBudgetSpent,
    ModelError,
    ModelKeyRefused,
    ModelMalformed,
    ModelRequestRefused,
    ModelTruncated,
    ModelUnavailable,
    SharedStateFault,
)
from shared.llm.attempts import name_attempt
from shared.llm.model import BeforeRetry, Completion, FinishReason, ModelRequest
from shared.models import TokenUsage
from shared.text import without_surrogates

T = TypeVar("T")
MAX_ATTEMPTS = 5
_MAX_RETRY_AFTER_S = 300.0
_MAX_BACKOFF_S = 30.0
# Statuses that the same request would get again: malformed, too large, wrong media type, not processable.
_REQUEST_REFUSED = (400, 413, 415, 422)

# The usage of a call that was sent and may be billed, but whose usage was not reported.
UNREPORTED = TokenUsage(calls=1, estimated_calls=1)


@dataclass
class _Requests:
    """Counts one model call's HTTP requests: tried, sent over a connection, and refused (refused ones cost nothing)."""

    tried: int = 0
    sent: int = 0
    refused: int = 0

    async def trace(self, event: str, _info: object) -> None:
        self.sent += event.endswith(".send_request_headers.complete")

    @property
    def usage(self) -> TokenUsage | None:
        """The usage of a call that ends without an answer; `None` if every request that was sent was refused."""
        return UNREPORTED if self.sent > self.refused else None


# The SDKs hide their HTTP requests but run them in the caller's asyncio task, so a context variable connects the two.
_requests: contextvars.ContextVar[_Requests] = contextvars.ContextVar("requests")


async def trace_request(request: Any) -> None:
    """Event hook that counts requests, and names their attempt to a meter."""
    name_attempt(request)
    request.extensions["trace"] = _requests.get().trace


class HTTPModel(ABC):
    """A model behind a provider's SDK. Every call has one time limit, which includes retries.

    The SDK's own retries must be off. Each retry waits as long as the provider asks, then for `before_retry`, which
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
            raise ModelUnavailable(why, usage=requests.usage) from None
        # Raised by `before_retry`, so earlier requests of this call may be billed.
        except (ModelBudgetSpent, SharedStateFault) as error:
            error.usage = requests.usage
            raise
        except self.status_errors as error:
            raise self._refusal(error) from None
        except self.connection_errors as error:
            why = f"{self.name} cannot be reached: {type(error.__cause__ or error).__name__}"
            raise ModelUnavailable(why, usage=requests.usage) from None
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
            if requests.tried and self._before_retry is not None:
                await self._before_retry()
            requests.tried += 1
            try:
                return await send()
            except self.status_errors:
                requests.refused += 1
                raise

        retrying = AsyncRetrying(
            retry=retry_if_exception(self._is_transient),
            wait=self._wait_s,
            stop=stop_after_attempt(MAX_ATTEMPTS) | stop_before_delay(self._timeout_s),
            reraise=True,
        )
        return await retrying(attempt)

    def _is_transient(self, error: BaseException) -> bool:
        response = getattr(error, "response", None)
        if response is None:
            return isinstance(error, self.connection_errors)
        # Not a standard header. OpenAI uses it, for example, for a 429 that means that the account has no credit.
        advice = response.headers.get("x-should-retry")
        code: int = response.status_code
        return advice == "true" or (advice != "false" and (code in (408, 409, 429) or code >= 500))

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        response = getattr(error, "response", None)
        return retry_after_s(response.headers if response is not None else {}) or self._backoff(state)

    def _refused(self, code: int, text: str, *, is_key: bool = False) -> ModelError:
        """The error for an HTTP status and the provider's error text."""
        if is_key or code in (401, 403):
            remedy = f"check the key in {self.key_variable}"
            return ModelKeyRefused(f"{self.name} refused the key (HTTP {code})", remedy=remedy)
        remedy = "check the model's name and the base URL" if code == 404 else ""
        kind = ModelRequestRefused if code in _REQUEST_REFUSED else ModelUnavailable
        return kind(f"{self.name} answered HTTP {code}: {self.clean(text)}", remedy=remedy)

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
        return Completion(text=text, model=served, finish_reason=finish, usage=usage)

    def clean(self, text: str) -> str:
        """A provider's error text in one bounded line, with the key removed."""
        return without_secret(text, self._key)


def retry_after_s(headers: Mapping[str, str], *, now_s: float | None = None) -> float:
    """The seconds that `retry-after-ms` or `Retry-After` asks for, at most five minutes; 0 when neither is usable."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = _seconds_or_date(headers.get("retry-after", ""), time.time() if now_s is None else now_s)
    except ValueError:
        return 0.0
    # In this order `max` gives 0 for NaN, because no comparison with it is true.
    return min(max(0.0, seconds), _MAX_RETRY_AFTER_S)


def _seconds_or_date(value: str, now_s: float) -> float:
    """The two forms of `Retry-After` (RFC 9110, 10.2.3)."""
    try:
        return float(value)
    except ValueError:
        return email.utils.parsedate_to_datetime(value).timestamp() - now_s


def without_secret(text: str, secret: str, *, limit: int = 300) -> str:
    """A provider's error text in one bounded line, with the key removed."""
    line = " ".join(text.split())
    return (line.replace(secret, "[key]") if secret else line)[:limit]

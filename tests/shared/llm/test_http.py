"""What all adapters share: retries, `Retry-After`, and keys in error texts."""

import datetime
from typing import Any

import pytest

from helpers.llm.servers import Answer, ModelServer, anthropic_error, gemini_error, openai_error, serving
from shared.errors import ModelBudgetSpent, ModelError, ModelUnavailable
from shared.llm.http import HTTPModel, retry_after_s, without_secret
from shared.llm.model import ModelRequest

ASK = ModelRequest(system="s", parts=("p",))
NOW_S = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("999999", 300.0),
        ("nan", 0.0),
        ("soon", 0.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_bounds(value: str | None, seconds: float) -> None:
    assert retry_after_s({} if value is None else {"retry-after": value}, now_s=NOW_S) == seconds


def test_milliseconds_outrank_seconds() -> None:
    assert retry_after_s({"retry-after-ms": "20", "retry-after": "2"}) == 0.02


def test_an_error_text_is_one_bounded_line_without_the_key() -> None:
    assert without_secret("bad\n key  k-1 " + "x" * 999, "k-1", limit=20) == "bad key [key] xxxxxx"


def refusal(provider: str, status: int, **headers: str) -> Answer:
    if provider == "anthropic":
        return anthropic_error(status, "x", "no", **headers)
    return openai_error(status, "no", **headers) if provider == "openai" else gemini_error(status, "X", "no", **headers)


def adapter_of(provider: str) -> type[HTTPModel]:
    # Late: every test process imports this file, one runs its tests, and each SDK takes a second.
    from shared.llm.providers.anthropic import AnthropicModel
    from shared.llm.providers.gemini import GeminiModel
    from shared.llm.providers.openai import OpenAIModel

    return {"anthropic": AnthropicModel, "gemini": GeminiModel, "openai": OpenAIModel}[provider]


async def failure(provider: str, server: ModelServer, **options: Any) -> ModelError:
    model = adapter_of(provider)("m", api_key="k", base_url=server.url, **{"retry_delay_s": 0.001, **options})
    with pytest.raises(ModelError) as caught:
        await model.complete(ASK)
    await model.aclose()
    return caught.value


ALL = pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai"])


@ALL
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_lasting_status_is_not_retried(provider: str, status: int) -> None:
    async with serving(refusal(provider, status)) as server:
        await failure(provider, server)
    assert len(server.received) == 1


@ALL
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_fault_that_does_not_pass_ends_after_five_attempts_as_unavailable(provider: str, status: int) -> None:
    async with serving(refusal(provider, status)) as server:
        error = await failure(provider, server)
    # More requests would mean that an SDK still makes retries of its own.
    assert isinstance(error, ModelUnavailable)
    assert len(server.received) == 5


@ALL
async def test_a_provider_can_forbid_a_retry(provider: str) -> None:
    async with serving(refusal(provider, 429, x_should_retry="false")) as server:
        await failure(provider, server)
    assert len(server.received) == 1


@ALL
async def test_a_wait_that_would_exceed_the_time_limit_is_not_begun(provider: str) -> None:
    async with serving(refusal(provider, 429, retry_after="60")) as server:
        error = await failure(provider, server, timeout_s=30.0)
    assert "answered HTTP 429" in str(error)
    assert len(server.received) == 1


@ALL
async def test_no_retry_is_sent_when_the_budget_is_spent(provider: str) -> None:
    async def spent() -> None:
        raise ModelBudgetSpent("the budget is spent")

    async with serving(refusal(provider, 500)) as server:
        error = await failure(provider, server, before_retry=spent)
    assert isinstance(error, ModelBudgetSpent)
    assert error.usage is None
    assert len(server.received) == 1

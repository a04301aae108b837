"""The note that judge and participant use models of one maker."""

import pytest

from judge.report.family import shared_family
from judge.results.metering import MeteredUsage
from shared.llm.prices import maker_of


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("openai:gpt-4.1-mini", "openai"),
        ("gemini-2.5-pro", "google"),
        ("openrouter:anthropic/claude-3.5-sonnet", "anthropic"),
        ("openai:a-model-of-ours", "openai"),
        ("a-model-of-ours", None),
        ("ours:whatever", None),
        ("", None),
    ],
)
def test_the_maker_of_a_model(model: str, maker: str | None) -> None:
    assert maker_of(model) == maker


def metering(*models: str) -> MeteredUsage:
    return MeteredUsage(calls=1, models=models)


@pytest.mark.parametrize(
    ("judge", "declared", "metered", "shared"),
    [
        ("openai:gpt-4.1-mini", "gpt-5", None, "openai"),
        ("openai:gpt-4.1-mini", None, metering("anthropic:claude-sonnet-4-5", "openai:gpt-5"), "openai"),
        ("openai:gpt-4.1-mini", "claude-sonnet-4-5", metering("google:gemini-2.5-pro"), None),
        ("offline", "gpt-5", None, None),
        ("openai:gpt-4.1-mini", None, None, None),
        (None, "gpt-5", None, None),
    ],
)
def test_it_is_shared_if_a_metered_or_declared_model_has_the_judge_models_maker(
    judge: str | None, declared: str | None, metered: MeteredUsage | None, shared: str | None
) -> None:
    record = {"judge_model": judge, "identity": {"model": declared}}
    assert shared_family(record, metered) == shared

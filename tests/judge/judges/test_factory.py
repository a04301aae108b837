"""Opening the configured judge."""

from functools import partial
from pathlib import Path

import pytest

from helpers.llm.scripted import ScriptedModel, trajectory, webjudge_script
from judge.config import RunConfig
from judge.judges.factory import open_judge
from judge.judges.methods import check_judge, check_judge_model, model_methods
from shared.errors import ConfigError
from shared.settings import Settings

KEYS = Settings(environ={"GOOGLE_API_KEY": "g-secret", "OPENAI_API_KEY": "o-secret"})


@pytest.mark.parametrize(("model", "variable"), [("gemini:x", "GOOGLE_API_KEY"), ("openai:x", "OPENAI_API_KEY")])
def test_a_missing_key_names_the_variable_to_set(model: str, variable: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        open_judge(RunConfig(judge_model=model), Settings(), cache_dir=None)


@pytest.mark.parametrize("model", ["", "gpt-4o", "claude:x", "gemini:", "offline:x"])
def test_an_unknown_model_is_refused_with_the_known_forms(model: str) -> None:
    with pytest.raises(ConfigError, match="offline"):
        check_judge_model(RunConfig(judge_model=model), KEYS)


@pytest.mark.parametrize("method", model_methods())
@pytest.mark.parametrize("model", ["gemini:x", "openai:x"])
async def test_every_method_opens_on_every_provider(method: str, model: str) -> None:
    judge = open_judge(RunConfig(judge_model=model, judge_method=method), KEYS, cache_dir=None)
    assert judge.id.startswith(f"{method}-")
    await judge.aclose()


async def test_a_custom_endpoint_needs_no_key() -> None:
    config = RunConfig(judge_model="openai:local", judge_base_url="http://127.0.0.1:1/v1")
    await open_judge(config, Settings(), cache_dir=None).aclose()


async def test_checks_only_needs_no_key() -> None:
    await open_judge(RunConfig(judge_model="offline"), Settings(), cache_dir=None).aclose()


async def test_cached_replies_of_a_custom_endpoint_are_not_used_for_the_provider(tmp_path: Path) -> None:
    requests = []
    one = trajectory(tmp_path)
    for url in ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", None):
        model = ScriptedModel(webjudge_script())
        config = RunConfig(judge_model="openai:m", judge_base_url=url)
        judge = open_judge(
            config, KEYS, cache_dir=tmp_path / "cache", wrap=partial(lambda replacement, _: replacement, model)
        )
        assert (await judge.judge(one)).outcome == "success"
        await judge.aclose()
        requests.append(len(model.requests))
    assert requests == [4, 0, 4]


def test_a_budget_in_dollars_needs_a_known_price() -> None:
    with pytest.raises(ConfigError, match="max_judge_cost_usd"):
        open_judge(RunConfig(judge_model="openai:local", max_judge_cost_usd=1.0), KEYS, cache_dir=None)


def test_a_price_in_the_users_own_file_is_a_known_one(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('as_of = 2026-11-20\n[models."openai:local"]\ninput = 1.0\noutput = 2.0\n')
    check_judge(RunConfig(judge_model="openai:local", max_judge_cost_usd=1.0, prices=str(prices)))


def test_a_file_of_prices_that_cannot_be_read_is_an_error_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.prices"):
        check_judge(RunConfig(judge_model="openai:gpt-4o", prices=str(tmp_path / "none.toml")))


async def test_a_verdict_that_cost_something_names_the_date_of_the_prices(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('as_of = 2026-11-20\n[models."openai:m"]\ninput = 1.0\noutput = 2.0\n')
    model = ScriptedModel(webjudge_script(), name="openai:m")
    config = RunConfig(judge_model="openai:m", prices=str(prices))
    judge = open_judge(config, KEYS, cache_dir=None, wrap=partial(lambda replacement, _: replacement, model))
    verdict = await judge.judge(trajectory(tmp_path))
    await judge.aclose()
    assert verdict.cost_usd == pytest.approx(verdict.token_usage.input / 1e6 + verdict.token_usage.output * 2 / 1e6)
    assert (verdict.price_date, verdict.model_dump()["price_date"]) == ("2026-11-20", "2026-11-20")
    assert "price_date" not in verdict.model_copy(update={"price_date": None}).model_dump()


async def test_every_shard_needs_a_request_per_minute() -> None:
    config = RunConfig(judge_model="openai:m", judge_requests_per_minute=20)
    await open_judge(config, KEYS, cache_dir=None, shards=20).aclose()
    with pytest.raises(ConfigError, match="judge_requests_per_minute: 20 is less than one for each of 21 shards"):
        open_judge(config, KEYS, cache_dir=None, shards=21)

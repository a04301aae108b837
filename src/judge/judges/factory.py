"""Opens the configured judge: method, model, prompts, cache and limits. A missing key is an error, never a fallback."""

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.judges.base import Judge
from judge.judges.checked import CheckedJudge, ChecksJudge
from judge.judges.engine import JudgeParts
from judge.judges.methods import check_judge_model, model_method
from judge.judges.prompt_set import load_prompts
from judge.records.verdicts import OFFLINE
from shared.errors import ConfigError
from shared.llm.cache import CachedModel
from shared.llm.limits import Budget, MeteredModel, RateLimits, Spending
from shared.llm.model import Model
from shared.llm.opening import open_model, provider
from shared.llm.outages import ProbedModel
from shared.llm.prices import find_price
from shared.llm.sharing import open_state
from shared.settings import Settings


def open_judge(
    config: RunConfig,
    settings: Settings,
    *,
    cache_dir: Path | None,
    wrap: Callable[[Model], Model] = lambda model: model,
    spending: Spending | None = None,
    others: Sequence[Budget] = (),
    shards: int = 1,
    repeat: int = 1,
) -> Judge:
    """The judge of `config`. Replies are cached under `cache_dir`, or in memory when that is `None`.

    `wrap` wraps the provider's model, inside caches and limits (for tracing). `spending` is the run's usage so
    far; every call adds to it and to the budgets `others`, which several judges share. Each of several `shards`
    uses its share of the rate limits and budgets; if `settings` names a Redis server and the run's id names a shard,
    all shards share the full limits. A `repeat` above 1 asks everything again: it uses no reply cached for
    another repeat.
    Raises `ConfigError` for an unknown model, a missing key or SDK, a broken prompt set, a budget in dollars for a
    model without a known price, or more shards than requests per minute.
    """
    check_judge_model(config, settings)
    checks = ChecksJudge(config)
    if config.judge_model == OFFLINE:
        return checks
    run_id, _, shard = (config.run_id or "").partition("/shards/")
    state = open_state(settings.redis_url, run_id) if settings.redis_url and shard else None
    if state is None and shards > (config.judge_requests_per_minute or shards):
        # The first request of every shard would already exceed the limit.
        raise ConfigError(
            f"{config.judge_requests_per_minute} is less than one for each of {shards} shards",
            key="config.judge_requests_per_minute",
            remedy="use fewer shards, or raise it",
        )
    prompts = load_prompts(config.prompts)
    per_minute = (config.judge_requests_per_minute, config.judge_tokens_per_minute)
    most = (config.max_judge_cost_usd, config.max_judge_tokens)
    if state is None:
        rates = RateLimits(*per_minute, shards=shards)
        own = Budget(*most, spending=spending, shards=shards)
    else:
        rates = RateLimits(*per_minute, limiter=state.limiter)
        own = state.budget(shard, *most, spending=spending, call_timeout_s=config.judge_timeout_s)
    model = open_model(
        config.judge_model,
        settings,
        purpose="judge model",
        timeout_s=config.judge_timeout_s,
        base_url=config.judge_base_url,
        # A lambda, because the meter is created below: it wraps this model.
        before_retry=lambda: metered.before_retry(),
    )
    price = find_price(config.judge_model, config.prices)
    metered = MeteredModel(
        wrap(model),
        price,
        own=own,
        others=others,
        rates=rates,
        concurrency=config.judge_max_concurrency,
    )
    probed = ProbedModel(metered)
    namespace = _namespace(prompts.checksum, config, settings) + (f" repeat {repeat}" if repeat > 1 else "")
    parts = JudgeParts(
        config=config,
        model=CachedModel(
            probed,
            namespace=namespace,
            folder=cache_dir,
            shared=state.replies() if state else None,
            spending=metered.spending,
        ),
        prompts=prompts,
        repeat=repeat,
        price=price,
        probe=probed.probe,
    )
    return CheckedJudge(checks, model_method(config.judge_method)(parts), config)


def _namespace(prompts: str, config: RunConfig, settings: Settings) -> str:
    """The cache namespace: replies of another endpoint under a model's name must not be mistaken for that model's.

    It includes the host but not the port, so that a local server may be restarted on another one.
    """
    base_url = config.judge_base_url or provider(config.judge_model).base_url(settings)
    try:
        host = urlsplit(base_url or "").hostname
    except ValueError:
        host = base_url
    return f"{prompts} at {host}" if host else prompts

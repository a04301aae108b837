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
    """The judge of `config`. Replies are cached under `cache_dir`, or in memory without one.

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
    repeated = f" repeat {repeat}" if repeat > 1 else ""

    def opened(name: str) -> tuple[ProbedModel, CachedModel]:
        base_url = _base_url(name, config)
        model = open_model(
            name,
            settings,
            purpose="judge model",
            timeout_s=config.judge_timeout_s,
            base_url=base_url,
            # A lambda, because the meter is created below: it wraps this model.
            before_retry=lambda: metered.before_retry(),
        )
        metered = MeteredModel(
            wrap(model),
            find_price(name, config.prices),
            own=own,
            others=others,
            rates=rates,
            concurrency=config.judge_max_concurrency,
        )
        cached = CachedModel(
            probed := ProbedModel(metered),
            namespace=_namespace(prompts.checksum, base_url or provider(name).base_url(settings)) + repeated,
            folder=cache_dir,
            shared=state.replies() if state else None,
            spending=metered.spending,
        )
        return probed, cached

    probed, model = opened(config.judge_model)
    voters = {name: opened(name) for name in dict.fromkeys(config.judge_vote_models)}

    def probe() -> None:
        for each, _ in ((probed, model), *voters.values()):
            each.probe()

    parts = JudgeParts(
        config=config,
        model=model,
        prompts=prompts,
        repeat=repeat,
        price=find_price(config.judge_model, config.prices),
        probe=probe,
        voters={name: cached for name, (_, cached) in voters.items()},
    )
    return CheckedJudge(checks, model_method(config.judge_method)(parts), config)


def _base_url(model: str, config: RunConfig) -> str | None:
    """The configured address, for models of the judge model's provider: another one's key must not be sent there."""
    is_same = model.partition(":")[0] == config.judge_model.partition(":")[0]
    return config.judge_base_url if is_same else None


def _namespace(prompts: str, base_url: str | None) -> str:
    """The cache namespace: replies of another endpoint under a model's name must not be mistaken for that model's.

    It includes the host but not the port, so that a local server may be restarted on another one.
    """
    try:
        host = urlsplit(base_url or "").hostname
    except ValueError:
        host = base_url
    return f"{prompts} at {host}" if host else prompts

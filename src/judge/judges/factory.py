"""Makes the configured judge: method, model, prompts, cache and limits. A missing key is an error, never a fallback."""

import hashlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from judge.config import JudgeMethod, RunConfig
from judge.judges.base import Judge
from judge.judges.checked import OFFLINE as OFFLINE
from judge.judges.checked import CheckedJudge, ChecksJudge, refuse_methods
from judge.judges.engine import JudgeParts, ModelJudge
from judge.judges.last_shot import AgentTrekJudge, AutonomousJudge
from judge.judges.prompt_set import load_prompts
from judge.judges.rubric import RubricJudge
from judge.judges.webjudge import WebJudge
from judge.judges.webjudge_keypoints import WebJudgeKeyPoints
from judge.judges.webvoyager import WebVoyagerJudge
from shared.errors import ConfigError
from shared.imports import collector_paused
from shared.llm.cache import CachedModel
from shared.llm.limits import Budget, LimitedModel, MeteredModel, RateLimits, Spending
from shared.llm.model import Model
from shared.llm.prices import find_price
from shared.settings import Settings

_PROVIDERS = ("gemini", "openai")
METHODS: Mapping[JudgeMethod, type[ModelJudge]] = MappingProxyType(
    {
        "webjudge": WebJudge,
        "webjudge_keypoints": WebJudgeKeyPoints,
        "webvoyager": WebVoyagerJudge,
        "autonomous": AutonomousJudge,
        "agenttrek": AgentTrekJudge,
        "rubric": RubricJudge,
    }
)
# What turns a trajectory into a verdict besides `judges/`: how it is read, what settles it, prompts, parsing, text.
# Everything between a trajectory and its verdict: whole packages, and single files.
_JUDGING = ("judge/evaluators", "judge/judges", "judge/parsing")
_JUDGING_FILES = (
    "judge/trajectory/files.py",
    "judge/trajectory/record.py",
    "judge/trajectory/schemas.py",
    "shared/checks.py",
    "shared/elements.py",
    "shared/fields.py",
    "judge/network_policy.py",
    "shared/normalise.py",
    "shared/patterns.py",
    "judge/sites.py",
    "shared/snapshot.py",
    "shared/text.py",
)
# Endpoints without keys (vLLM, Ollama) still want the header to be there.
_NO_KEY = "none"


def _as_it_is(model: Model) -> Model:
    return model


def open_judge(
    config: RunConfig,
    settings: Settings,
    *,
    cache_dir: Path | None,
    wrap: Callable[[Model], Model] = _as_it_is,
    spending: Spending | None = None,
    others: Sequence[Budget] = (),
) -> Judge:
    """The judge of `config`. Replies are cached under `cache_dir`, or in memory when that is `None`.

    `wrap` is put around the provider's model, inside caches and limits (tracing). `spending` is what the run has
    used so far; every call adds to it, and to the budgets `others` that several judges share.
    Raises `ConfigError` for an unknown model, a missing key, a broken prompt set, or a budget in dollars for a model
    without a known price.
    """
    check_judge_model(config, settings)
    version = importlib.metadata.version("wabe")
    checks = ChecksJudge(config, package_version=version, code_checksum=code_checksum())
    if config.judge_model == OFFLINE:
        return checks
    price = find_price(config.judge_model)
    prompts = load_prompts(config.prompts)
    limits = RateLimits(config.judge_requests_per_minute, config.judge_tokens_per_minute)
    # Each SDK takes most of a second to import, a part of it only when its client is made.
    with collector_paused():
        model = _open_model(config, settings, limits)
    metered = MeteredModel(
        wrap(model),
        price,
        max_cost_usd=config.max_judge_cost_usd,
        max_tokens=config.max_judge_tokens,
        spending=spending,
        others=others,
    )
    limited = LimitedModel(metered, limits, config.judge_max_concurrency, check=metered.check)
    parts = JudgeParts(
        config=config,
        model=CachedModel(
            limited, namespace=_namespace(prompts.checksum, _base_url(config, settings)), folder=cache_dir
        ),
        prompts=prompts,
        package_version=version,
        code_checksum=code_checksum(),
    )
    return CheckedJudge(checks, METHODS[config.judge_method](parts), config)


def check_judge(config: RunConfig) -> None:
    """Whether there is such a judge, and its budget can be kept. Raises `ConfigError`."""
    provider, _, name = config.judge_model.partition(":")
    is_offline = config.judge_model == OFFLINE
    if not is_offline and (provider not in _PROVIDERS or not name.strip() or not name.isprintable()):
        raise ConfigError(
            f"config.judge_model: unknown judge model {config.judge_model[:80]!a}",
            remedy='use "gemini:MODEL", "openai:MODEL" or "offline"',
        )
    if is_offline:
        refuse_methods(config)
    elif config.max_judge_cost_usd is not None and find_price(config.judge_model) is None:
        raise ConfigError(
            f"config.max_judge_cost_usd: the price of {config.judge_model} is not known",
            remedy="use max_judge_tokens, or add the price to shared/llm/prices.toml",
        )


def check_judge_model(config: RunConfig, settings: Settings) -> None:
    """`check_judge`, and whether the model's key is there. Raises `ConfigError`; calls nothing."""
    check_judge(config)
    if config.judge_model == OFFLINE:
        return
    provider = config.judge_model.partition(":")[0]
    key, variable, base_url = (
        (settings.google_api_key, "GOOGLE_API_KEY", settings.gemini_base_url)
        if provider == "gemini"
        else (settings.openai_api_key, "OPENAI_API_KEY", settings.openai_base_url)
    )
    if key is None and not (config.judge_base_url or base_url):
        raise ConfigError(
            f"config.judge_model: {config.judge_model} needs a key", remedy=f'set {variable}, or use "offline"'
        )


def judging_code() -> Mapping[str, Traversable]:
    """The files with everything between a trajectory and its verdict, by name."""
    packages = {name: resources.files(name) for name in ("judge", "shared")}
    files = {name: packages[name.partition("/")[0]].joinpath(name.partition("/")[2]) for name in _JUDGING_FILES}
    for folder in _JUDGING:
        for entry in packages["judge"].joinpath(folder.partition("/")[2]).iterdir():
            files[f"{folder}/{entry.name}"] = entry
    return {name: files[name] for name in sorted(files) if name.endswith(".py")}


def code_checksum() -> str:
    """SHA-256 over the judging code. Line ends do not count."""
    digest = hashlib.sha256()
    for name, file in judging_code().items():
        data = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _base_url(config: RunConfig, settings: Settings) -> str | None:
    is_gemini = config.judge_model.startswith("gemini:")
    return config.judge_base_url or (settings.gemini_base_url if is_gemini else settings.openai_base_url)


def _namespace(prompts: str, base_url: str | None) -> str:
    """Where replies are kept: what a stand-in on this machine said under a model's name is not that model's reply.

    By host and not by port, so that a local server may come back on another one.
    """
    try:
        host = urlsplit(base_url or "").hostname
    except ValueError:
        host = base_url
    return f"{prompts} at {host}" if host else prompts


def _open_model(config: RunConfig, settings: Settings, limits: RateLimits) -> Model:
    provider, _, name = config.judge_model.partition(":")
    # Late: only the SDK that is used is paid for.
    if provider == "gemini":
        from shared.llm.gemini import GeminiModel

        return GeminiModel(
            name,
            api_key=settings.google_api_key.get_secret_value() if settings.google_api_key else _NO_KEY,
            base_url=_base_url(config, settings),
            timeout_s=config.judge_timeout_s,
            before_retry=limits.request_slot,
        )
    from shared.llm.openai import OpenAIModel

    price = find_price(config.judge_model)
    return OpenAIModel(
        name,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else _NO_KEY,
        base_url=_base_url(config, settings),
        timeout_s=config.judge_timeout_s,
        takes_sampling=price is None or price.sampling,
        before_retry=limits.request_slot,
    )

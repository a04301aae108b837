"""The judge methods by name, and whether a configured judge can be used. None of them is loaded for that."""

from typing import TYPE_CHECKING

from judge.config import JUDGE_METHODS, RunConfig
from judge.judges.base import Evaluator
from judge.records.verdicts import OFFLINE
from shared.errors import ConfigError
from shared.llm.environment import require_network
from shared.llm.opening import find_provider, provider
from shared.llm.prices import find_price
from shared.llm.providers import model_forms
from shared.seams import Seam
from shared.settings import Settings

if TYPE_CHECKING:
    from judge.judges.engine import ModelJudge

# Classes of those that ask a model, and the others.
METHODS: "Seam[type[ModelJudge] | Evaluator]" = JUDGE_METHODS


def model_method(name: str) -> "type[ModelJudge]":
    """The judge method of this name. Raises `ConfigError` if it asks no model."""
    method = METHODS.load(name)
    if isinstance(method, Evaluator):
        raise ConfigError(
            f"{name!r} asks no judge model", key="config.judge_method", remedy=f"use wabe score RUN --method {name}"
        )
    return method


def model_methods() -> tuple[str, ...]:
    """The judge methods that ask a model, by name."""
    return tuple(name for name in METHODS.names() if evaluator(name) is None)


def evaluator(method: str | None) -> Evaluator | None:
    """The judge method of this name, if it asks no model."""
    method_class = METHODS.find(method) if method else None
    return method_class if isinstance(method_class, Evaluator) else None


def evaluators() -> dict[str, Evaluator]:
    """The judge methods that ask no model, by name. Their verdicts are ground truth, as checks' are."""
    return {name: each for name in METHODS.names() if (each := evaluator(name))}


def named_judge(name: str) -> dict[str, str]:
    """The settings in the name of a judge: METHOD, MODEL or METHOD@MODEL. Parts not named are left open."""
    method, at, model = name.partition("@")
    if not at and name not in METHODS.names():
        method, model = "", name
    return {key: value for key, value in (("judge_method", method), ("judge_model", model)) if value}


def check_judge(config: RunConfig) -> None:
    """Raises `ConfigError` for an unknown judge, or a budget that cannot be enforced."""
    if config.fidelity == "published" and (config.prompts is None or config.judge_method != "webjudge"):
        raise ConfigError(
            '"published" needs webjudge with imported prompts',
            key="config.fidelity",
            remedy="run wabe prompts import, and set prompts to its folder",
        )
    if config.judge_model == OFFLINE:
        if config.judge_method != "webjudge":
            raise ConfigError(
                f"{config.judge_method!r} needs a judge model, not 'offline'",
                key="config.judge_method",
                remedy="leave judge_method out, or set judge_model to a model",
            )
        return
    for model, key in _models_of(config).items():
        _check_model(model, key)
    if config.judge_vote_models and config.judge_method != "rubric":
        raise ConfigError(
            f"{config.judge_method!r} has no votes",
            key="config.judge_vote_models",
            remedy='leave it out, or set judge_method = "rubric"',
        )
    for model in _models_of(config):
        _check_price(model, config)


def _models_of(config: RunConfig) -> dict[str, str]:
    """The models to ask, each with the key that names it."""
    voters = dict.fromkeys(config.judge_vote_models, "config.judge_vote_models")
    return {**voters, config.judge_model: "config.judge_model"}


def _check_model(name: str, key: str) -> None:
    model = name.partition(":")[2]
    if find_provider(name) is None or not model.strip() or not model.isprintable():
        raise ConfigError(
            f"unknown judge model {name[:80]!a}", key=key, remedy=f"use one of {model_forms()}, or offline"
        )


def _check_price(model: str, config: RunConfig) -> None:
    """Raises `ConfigError` if a budget in dollars cannot be enforced, or for an unusable file of prices."""
    if config.max_judge_cost_usd is None and config.prices is None:
        return
    if find_price(model, config.prices) is None and config.max_judge_cost_usd is not None:
        raise ConfigError(
            f"the price of {model} is not known",
            key="config.max_judge_cost_usd",
            remedy='use max_judge_tokens, or name a file with its price: prices = "prices.toml"',
        )


def check_judge_model(config: RunConfig, settings: Settings) -> None:
    """Like `check_judge`, and raises `ConfigError` if a model cannot be used from here. Sends no request.

    Its key or SDK is missing, or a variable names a proxy or certificates that cannot be used.
    """
    check_judge(config)
    if config.judge_model == OFFLINE:
        return
    for model, key in _models_of(config).items():
        model_provider = provider(model)
        if model_provider.key(settings) is None and not (config.judge_base_url or model_provider.base_url(settings)):
            remedy = f'set {model_provider.key_variables[0]}, or use "offline"'
            raise ConfigError(f"{model} needs a key", key=key, remedy=remedy)
        model_provider.require_sdk(model, "judge model")
    require_network(settings.environ)

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
    """The judge methods that ask no model, by name. Their verdicts are ground truth, as those of checks are."""
    return {name: each for name in METHODS.names() if (each := evaluator(name))}


def check_judge(config: RunConfig) -> None:
    """Raises `ConfigError` for an unknown judge, or a budget that cannot be enforced."""
    if config.fidelity == "published" and (config.prompts is None or config.judge_method != "webjudge"):
        raise ConfigError(
            '"published" needs webjudge with imported prompts',
            key="config.fidelity",
            remedy="run wabe prompts import, and set prompts to its folder",
        )
    name = config.judge_model.partition(":")[2]
    if config.judge_model == OFFLINE:
        if config.judge_method != "webjudge":
            raise ConfigError(
                f"{config.judge_method!r} needs a judge model, not 'offline'",
                key="config.judge_method",
                remedy="leave judge_method out, or set judge_model to a model",
            )
    elif find_provider(config.judge_model) is None or not name.strip() or not name.isprintable():
        raise ConfigError(
            f"unknown judge model {config.judge_model[:80]!a}",
            key="config.judge_model",
            remedy=f"use one of {model_forms()}, or offline",
        )
    elif not _is_affordable(config):
        raise ConfigError(
            f"the price of {config.judge_model} is not known",
            key="config.max_judge_cost_usd",
            remedy='use max_judge_tokens, or name a file with its price: prices = "prices.toml"',
        )


def _is_affordable(config: RunConfig) -> bool:
    """Whether a budget in dollars, if any, can be enforced. Raises `ConfigError` for an unusable file of prices."""
    if config.max_judge_cost_usd is None and config.prices is None:
        return True
    return find_price(config.judge_model, config.prices) is not None or config.max_judge_cost_usd is None


def check_judge_model(config: RunConfig, settings: Settings) -> None:
    """Like `check_judge`, and raises `ConfigError` if the model cannot be used from here. Sends no request.

    Its key or SDK is missing, or a variable names a proxy or certificates that cannot be used.
    """
    check_judge(config)
    if config.judge_model == OFFLINE:
        return
    model_provider = provider(config.judge_model)
    if model_provider.key(settings) is None and not (config.judge_base_url or model_provider.base_url(settings)):
        raise ConfigError(
            f"{config.judge_model} needs a key",
            key="config.judge_model",
            remedy=f'set {model_provider.key_variables[0]}, or use "offline"',
        )
    model_provider.require_sdk(config.judge_model, "judge model")
    require_network(settings.environ)

"""The options of `wabe score` that set the judge's configuration: of each key, its flag and its help."""

import inspect
import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import typer

from judge.commands.options import plain_type, with_parameters
from judge.config import RunConfig
from judge.judges.methods import METHODS
from shared.declarations import Option
from shared.llm.providers import model_forms

F = TypeVar("F", bound=Callable[..., Any])
_RATE = "Rate limit for the judge model."
JUDGE_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "judge_method": Option(lambda: f"One of: {', '.join(METHODS.names())}.", flag="--method"),
        "judge_model": Option(lambda: f"{model_forms()}, or offline: checks only.", flag="--model"),
        "prompts": Option("A folder with a prompt set of your own.", flag="--prompts"),
        "score_threshold": Option("Use screenshots with at least this score.", flag="--threshold"),
        "max_images": Option("Use at most this many screenshots.", flag="--max-images"),
        "judge_votes": Option("How often the rubric method votes.", flag="--votes"),
        "rubric_success": Option("What the rubric method demands: outcome, process or both.", flag="--success"),
        "rubric_threshold": Option("The share of points from which the process succeeds.", flag="--rubric-threshold"),
        "max_images_per_criterion": Option("Mark each criterion by at most this many.", flag="--images-per-criterion"),
        "judge_sees_answer": Option("Show the final answer to the judge, as a claim.", flag="--sees-answer"),
        "judge_sees_thoughts": Option("Show the thoughts to the judge, as claims.", flag="--sees-thoughts"),
        "fidelity": Option(
            "strict, or published: unreadable replies count as 0 (imported prompts).", flag="--fidelity"
        ),
        "judge_max_concurrency": Option("How many model calls run at once.", flag="--max-calls"),
        "judge_requests_per_minute": Option(_RATE, flag="--requests-per-minute"),
        "judge_tokens_per_minute": Option(_RATE, flag="--tokens-per-minute"),
        "max_judge_cost_usd": Option("Make no more calls once this is spent.", flag="--max-cost-usd"),
        "max_judge_tokens": Option("Make no more calls once these are used.", flag="--max-tokens"),
        "judge_base_url": Option("Another endpoint that speaks the model's format.", flag="--base-url"),
    }
)


def with_judge_options(command: F) -> F:
    """The command, which receives these settings as keywords; absent ones are `None`."""
    return with_parameters(command, itertools.starmap(_parameter, JUDGE_OPTIONS.items()), before="addresses")


def _parameter(name: str, option: Option) -> inspect.Parameter:
    kind = plain_type(RunConfig.model_fields[name].annotation)
    # A wrong value is a mistake in the setting, whose error lists the right ones.
    kind = kind if kind in (bool, int, float) else str
    flags = f"{option.flag}/--no-{option.flag.removeprefix('--')}" if kind is bool else option.flag
    shown = typer.Option(flags, help=option.help if isinstance(option.help, str) else option.help())
    annotation = Annotated[kind | None, shown]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation, default=None)

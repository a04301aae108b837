"""The options that narrow a list of runs, as `RunFilters` declares them."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from judge.commands.options import with_parameters
from judge.plugins.all_runs.filters import run_filters

F = TypeVar("F", bound=Callable[..., Any])
_PLACEHOLDERS = {"text": "WORDS", "names": "NAME", "day": "DAY"}


def with_filters(command: F) -> F:
    """The command, which receives the value of each filter as a keyword; those that are not given are `None`."""
    parameters = []
    for name, _, each in run_filters():
        option = typer.Option(f"--{name}", help=each.help, metavar=_PLACEHOLDERS[each.kind])
        kind = list[str] if each.kind == "names" else str
        annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None))
    return with_parameters(command, parameters)

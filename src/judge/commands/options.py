"""The options of a command, as its settings declare them."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import typer
from annotated_types import Ge, Le

from judge.runner.options import DeclaredOption, RunOptions, declared_options

F = TypeVar("F", bound=Callable[..., Any])


def with_options(command: F) -> F:
    """The command, which receives each option that a run has as a keyword; absent ones are `None`, or false."""

    @functools.wraps(command)
    def with_old_flags(*arguments: Any, **options: Any) -> Any:
        for each in declared_options():
            if each.option.old_flag:
                options[each.name] = options.pop(each.option.old_flag) or options[each.name]
        return command(*arguments, **options)

    return with_parameters(cast("F", with_old_flags), _parameters())


def with_parameters(command: F, parameters: Iterable[inspect.Parameter], *, before: str = "") -> F:
    """The command with these parameters in place of `**options`: at the end, or `before` another one."""
    own = inspect.signature(command, eval_str=True)
    all_own = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    place = [each.name for each in all_own].index(before) if before else len(all_own)
    signature = own.replace(parameters=[*all_own[:place], *parameters, *all_own[place:]])
    # Typer reads the parameters of a command there.
    command.__signature__ = signature  # type: ignore[attr-defined]
    return command


def _parameters() -> Iterator[inspect.Parameter]:
    for each in declared_options():
        option = typer.Option(each.flag, help=_help(each), metavar=each.option.metavar, **_bounds(each))
        yield _parameter(each, each.name, option, _shown_default(each))
        if each.option.old_flag:
            yield _parameter(each, each.option.old_flag, typer.Option(f"--{each.option.old_flag}", hidden=True), None)


def _parameter(each: DeclaredOption, name: str, option: Any, default: str | None) -> inspect.Parameter:
    kind = plain_type(each.field.annotation)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[bool if kind is bool else kind | None, option],
        default=False if kind is bool else default,
    )


def _help(each: DeclaredOption) -> str:
    return each.option.help if isinstance(each.option.help, str) else each.option.help()


def _bounds(each: DeclaredOption) -> dict[str, Any]:
    """The bounds of a number, as its field declares them."""
    limits = {"min": Ge, "max": Le}
    return {
        name: getattr(bound, kind.__name__.lower())
        for name, kind in limits.items()
        for bound in each.field.metadata
        if isinstance(bound, kind)
    }


def _shown_default(each: DeclaredOption) -> str | None:
    """The default that help shows. A setting of `[config]` has none here: without its option, the scenario decides."""
    is_own = each.name in RunOptions.model_fields
    return each.field.default if is_own and isinstance(each.field.default, str) else None


def plain_type(annotation: Any) -> Any:
    """The type of an option, without `None` and without validators; a tuple of values is a list."""
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (each for each in get_args(annotation) if each is not type(None))
        return plain_type(inner)
    if get_origin(annotation) is Annotated:
        return plain_type(get_args(annotation)[0])
    return list[plain_type(get_args(annotation)[0])] if get_origin(annotation) is tuple else annotation  # type: ignore[misc]

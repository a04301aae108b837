"""What a setting declares beside its type, default and bounds: everything else about it is derived from this.

A setting is a field of a model, with a `Setting` in its annotation. Options, their repetition on `--resume`, what is
compared then, what shards and trivial agents get, host-only keys, schema and documentation follow from it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema


@dataclass(frozen=True)
class Option:
    """An option of `wabe run`, with its text and the placeholder of its value in help.

    `flag` is its name if it is not the field's, `old_flag` an earlier one, which help does not show.
    Help lists it before the option of the field `before`, or last.
    `variable` is the field of `Settings`, from the environment, that counts without the option.
    `is_repeated`: the command that resumes a run repeats it.
    """

    help: str | Callable[[], str]
    metavar: str | None = None
    flag: str = ""
    old_flag: str = ""
    before: str = ""
    variable: str = ""
    is_repeated: bool = True


@dataclass(frozen=True)
class Setting:
    """What is known about a setting. Without further words, a run is resumed with the same value only.

    - `meaning`: for the documentation, in Markdown, as is `default` if the field's own says too little.
    - `option`: the option that sets it, if there is one.
    - `host`: in a request, only the user who started the judge may set it: it reaches the judge's machine.
    - `instead`: it may not stand in a scenario file; why, and what to write there.
    - `compared`: a run is resumed with the same value only.
    - `in_checksum`: it can affect a result, and is part of `config_checksum`.
    - `secret`: its value may be `${NAME}` in a scenario, and is recorded not at all, or only its `address`.
    - `sets_apart`: how a leaderboard names runs with another value than the default, which stand apart.
    - `of_each`: every shard of a run gets it; otherwise it applies once, to the run as a whole.
    - `of_trivial`: so do the runs of the trivial agents beside it; otherwise they get the default.
    """

    meaning: str = ""
    default: str = ""
    option: Option | None = None
    host: bool = False
    instead: tuple[str, str] | None = None
    compared: bool = True
    in_checksum: bool = True
    secret: Literal["", "all", "address"] = ""
    sets_apart: str = ""
    of_each: bool = True
    of_trivial: bool = True

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **({"description": self.meaning} if self.meaning else {})}


def settings_in(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, Setting]]:
    """The model's settings in their order: name, field, and what is declared about them."""
    for name, field in model.model_fields.items():
        declared = next((each for each in field.metadata if isinstance(each, Setting)), None)
        if declared is not None:
            yield name, field, declared


def setting_apart(model: type[BaseModel]) -> dict[str, tuple[Any, str]]:
    """The default and the words (`Setting.sets_apart`) of the settings that set runs apart, by name."""
    return {name: (field.default, each.sets_apart) for name, field, each in settings_in(model) if each.sets_apart}


def names_of(model: type[BaseModel], is_meant: Callable[[Setting], object]) -> frozenset[str]:
    """The names of the settings for which `is_meant` is true."""
    return frozenset(name for name, _, setting in settings_in(model) if is_meant(setting))

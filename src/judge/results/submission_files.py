"""Reads submission files, ours and published ones of every age: any key may be missing or null."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StrictBool, TypeAdapter, model_validator

from shared.errors import ConfigError
from shared.fields import Invalid
from shared.reading import read_json, reason_of
from shared.validation import validated

MAX_FILE_BYTES = 256_000_000
_REMEDY = "give a submission's JSON file"
# Whole or not, but no truth value: one wrong type would turn a whole leaderboard column into text.
_Number = Annotated[float, Field(strict=True)] | None


class _Detail(BaseModel):
    success_rate: _Number = None
    successful_tasks: _Number = None
    completed_tasks: _Number = None
    total_tasks: _Number = None
    judged_successes: _Number = None
    scored_tasks: _Number = None
    unscored_tasks: _Number = None
    aborted_tasks: _Number = None
    success_rate_of_all: _Number = None
    is_complete: StrictBool | None = None
    tasks: list[dict[str, Any] | None] | None = None


class _Result(BaseModel):
    detail: _Detail | None = None


class _Submission(BaseModel):
    participants: dict[str, str | None] | None = None
    results: list[_Result | None] | None = None

    @model_validator(mode="after")
    def _is_a_submission(self) -> Self:
        if not self.model_fields_set:
            raise Invalid("neither participants nor results", _REMEDY)
        return self


def read_submissions(path: Path) -> list[dict[str, Any]]:
    """The submissions of a JSON file, unchanged: one object, or a list of them. Raises `ConfigError`."""
    try:
        value = read_json(path, max_bytes=MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy=_REMEDY) from None
    submissions = value if isinstance(value, list) else [value]
    if not submissions:
        raise ConfigError(f"{path}: an empty list, no submission", remedy=_REMEDY)
    for number, submission in enumerate(submissions):
        validated(TypeAdapter(_Submission), submission, path, under=(number,) if isinstance(value, list) else ())
    return submissions

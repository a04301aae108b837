"""Reads submission files, ours and published ones of every age: whatever may be missing may be missing."""

import json
from pathlib import Path
from typing import Any

from judge.scenario_tables import excerpt
from shared.errors import ConfigError

MAX_FILE_BYTES = 256_000_000
_NUMBERS = (
    "success_rate",
    "successful_tasks",
    "completed_tasks",
    "total_tasks",
    "judged_successes",
    "scored_tasks",
    "unscored_tasks",
    "aborted_tasks",
    "success_rate_of_all",
)


def read_submissions(path: Path) -> list[dict[str, Any]]:
    """The submissions of a JSON file: one object, or a list of them.

    Keys may be missing or `null`; what is there must be of the published type, since one wrong value would turn a
    whole leaderboard column into text. Raises `ConfigError` naming file and key.
    """
    value = _read(path)
    submissions = value if isinstance(value, list) else [value]
    for submission in submissions:
        _check(submission, path)
    return submissions


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES} bytes", remedy="give a submission file")
        return json.loads(content.decode("utf-8-sig"), parse_constant=_refuse)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", remedy="give a submission's JSON file") from None
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}",
            remedy="give a submission's JSON file",
        ) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]
        raise ConfigError(f"{path}: not usable JSON: {reason}", remedy="give a submission's JSON file") from None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _check(submission: object, path: Path) -> None:
    top = _expect(submission, dict, "the submission", path)
    for role, participant in (_expect(top.get("participants"), dict, "participants", path)).items():
        _expect(participant, str, f"participants.{role[:60]}", path)
    for number, result in enumerate(_expect(top.get("results"), list, "results", path), 1):
        where = f"results #{number}"
        detail = _expect(_expect(result, dict, where, path).get("detail"), dict, f"{where}.detail", path)
        for key in _NUMBERS:
            if isinstance(detail.get(key), bool) or not isinstance(detail.get(key), int | float | None):
                raise ConfigError(
                    f"{path}: {where}.detail.{key} is {excerpt(detail[key])}, not a number", remedy="correct the file"
                )
        if not isinstance(detail.get("is_complete"), bool | None):
            raise ConfigError(
                f"{path}: {where}.detail.is_complete is {excerpt(detail['is_complete'])}, not true or false",
                remedy="correct the file",
            )
        tasks = _expect(detail.get("tasks"), list, f"{where}.detail.tasks", path)
        for place, task in enumerate(tasks, 1):
            _expect(task, dict, f"{where}.detail.tasks #{place}", path)


def _expect(value: object, kind: type[dict[Any, Any] | list[Any] | str], where: str, path: Path) -> Any:
    """`value`, or an empty one of its kind for `null`."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        name = "a text" if kind is str else "a list" if kind is list else "an object"
        raise ConfigError(f"{path}: {where} is {excerpt(value)}, not {name}", remedy="correct the file")
    return value

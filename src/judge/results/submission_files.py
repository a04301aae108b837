"""Reads submission files, ours and published ones of every age: whatever may be missing may be missing."""

from pathlib import Path
from typing import Any

from judge.scenario.tables import excerpt
from shared.errors import ConfigError
from shared.files import read_json, reason_of

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
_REMEDY = "give a submission's JSON file"


def read_submissions(path: Path) -> list[dict[str, Any]]:
    """The submissions of a JSON file: one object, or a list of them.

    Keys may be missing or `null`; what is there must be of the published type, since one wrong value would turn a
    whole leaderboard column into text. Raises `ConfigError` naming file and key.
    """
    try:
        value = read_json(path, max_bytes=MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}", remedy=_REMEDY) from None
    submissions = value if isinstance(value, list) else [value]
    if not submissions:
        raise ConfigError(f"{path}: an empty list, no submission", remedy=_REMEDY)
    for submission in submissions:
        _check(submission, path)
    return submissions


def _check(submission: object, path: Path) -> None:
    if submission is None:
        raise ConfigError(f"{path}: the submission is null, not an object", remedy=_REMEDY)
    top = _expect(submission, dict, "the submission", path)
    if not {"participants", "results"} & top.keys():
        raise ConfigError(f"{path}: the submission has neither participants nor results", remedy=_REMEDY)
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

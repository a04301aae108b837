"""Shards of one run as one submission. Pure; nothing is taken over but the tasks, all counts are made again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.results.submission import Submission, counts_of, detail_of, total_cost
from shared.errors import ConfigError

# Rates are rounded to one decimal here, and not rounded in older files.
_RATE_TOLERANCE = 0.06


def merge(submissions: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Submission:
    """One submission of shards, each a submission of its own or, as the platform joins them, a result of one.

    The shards must be of one participant and one judge; one in which nothing had to be judged names none. A task that
    stands in several shards must be identical in all. The cost is what was paid in all, `None` when one is unknown.
    What differs in `provenance` stays under `shards`. Raises `ConfigError`, which names the shard (`names`, else its
    number).
    """
    if not submissions:
        raise ConfigError("nothing to merge", remedy="give the shards' submission files")
    parts: list[dict[str, Any]] = []
    for number, submission in enumerate(submissions, 1):
        name = names[number - 1] if number <= len(names) else f"submission {number}"
        # A file that is given twice was paid for once.
        parts += [part for part in _shards(submission, name) if not any(_is_same(part, known) for known in parts)]
    first = parts[0]
    judging = next((part for part in parts if part["judge"]), first)
    entries: dict[str, tuple[Mapping[str, Any], str]] = {}
    for part in parts:
        expected = {"participants": first, "winner": first, "judge": part if _judged_nothing(part) else judging}
        for key, other in expected.items():
            if part[key] != other[key]:
                raise ConfigError(
                    f"{part['name']}: its {key} is not that of {other['name']}",
                    remedy="merge shards of one assessment only",
                )
        for entry in part["tasks"]:
            known, where = entries.setdefault(entry["task_id"], (entry, part["name"]))
            if known != entry:
                raise ConfigError(
                    f"{part['name']}: task {entry['task_id'][:60]!a} differs from the one in {where}",
                    remedy="leave one of the two files out",
                )
    provenances = [part["provenance"] for part in parts]
    shared = {
        key: value for key, value in provenances[0].items() if all(other.get(key) == value for other in provenances)
    }
    detail = detail_of(
        [entry for entry, _ in entries.values()],
        judge=judging["judge"],
        cost_usd=total_cost(part["cost_usd"] for part in parts),
        provenance={**shared, "shards": provenances},
    )
    return {"participants": dict(first["participants"]), "results": [{"winner": first["winner"], "detail": detail}]}


def _shards(submission: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The parts of one submission file that merging needs, one for each of its results."""
    results = submission.get("results")
    if not isinstance(results, list) or not results or not all(isinstance(result, Mapping) for result in results):
        raise ConfigError(f"{name}: key 'results' is not a list of results", remedy="merge files of this benchmark")
    participants = _mapping(submission.get("participants"))
    for number, result in enumerate(results, 1):
        yield {"participants": participants, **_shard(result, name if len(results) == 1 else f"{name} #{number}")}


def _shard(result: Mapping[str, Any], name: str) -> dict[str, Any]:
    detail = result.get("detail")
    tasks = detail.get("tasks") if isinstance(detail, Mapping) else None
    if not isinstance(detail, Mapping) or not isinstance(tasks, list):
        raise ConfigError(f"{name}: key 'detail.tasks' is missing", remedy="counts cannot be made without the tasks")
    for number, entry in enumerate(tasks, 1):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("task_id"), str):
            raise ConfigError(f"{name}: tasks #{number} has no task_id", remedy="merge files of this benchmark")
    rate, made = detail.get("success_rate"), counts_of(tasks)["success_rate"]
    # In some older files a task's `success` says only that its episode was ended.
    if isinstance(rate, int | float) and abs(rate - made) > _RATE_TOLERANCE:
        raise ConfigError(
            f"{name}: its success_rate is {rate:g}, its tasks give {made:g}", remedy="leave this file out"
        )
    cost = detail.get("cost_usd")
    return {
        "name": name,
        "winner": result.get("winner"),
        "judge": _mapping(detail.get("judge")),
        "provenance": _mapping(detail.get("provenance")),
        "cost_usd": float(cost) if isinstance(cost, (int, float)) else None,
        "tasks": tasks,
    }


def _is_same(part: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return {**part, "name": ""} == {**other, "name": ""}


def _judged_nothing(part: Mapping[str, Any]) -> bool:
    """Whether no verdict of a judge is in it: no task at all, or none that came to an end worth judging."""
    return not part["judge"] and all(
        entry.get("verdict") in ("failure", "unscored", "aborted") for entry in part["tasks"]
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

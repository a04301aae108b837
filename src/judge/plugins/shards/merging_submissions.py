"""Merges the shards of a run into one submission. Pure. Only tasks are copied; all counts are recomputed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.config import MAX_EPOCHS
from judge.records.ids import problem_of
from judge.results.entries import TaskEntry, rate_of, read_entries
from judge.results.part import part_types
from judge.results.rows import EXCLUDED
from judge.results.submission import Submission, detail_of, total_cost
from shared.errors import ConfigError
from shared.fields import as_mapping, as_mappings
from shared.text import excerpt

# Rates are rounded to one decimal; older files have unrounded ones.
_RATE_TOLERANCE = 0.06
_UNDECIDED = ("failure", "unscored", "aborted")


def merge(submissions: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Submission:
    """Merge shards, each a submission of its own or, if the platform has joined them, one result of a submission.

    All shards must have the same participant, the same judge (a shard in which nothing was judged names none) and the
    same number of epochs. A task in several shards must be identical in all of them. The cost is the sum, `None` if one
    is unknown. Raises `ConfigError` naming the shard (`names`, else its number).
    """
    if not submissions:
        raise ConfigError("nothing to merge", remedy="give the shards' submission files")
    parts: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for number, submission in enumerate(submissions, 1):
        name = names[number - 1] if names else f"submission {number}"
        # If the same file is given twice, its cost counts once.
        known = [{**part, "name": ""} for part in parts]
        parts += [part for part in _parts(submission, name, ids) if {**part, "name": ""} not in known]
    first = parts[0]
    # A shard in which all tasks have checks names the checks as its judge, another one the judge model.
    judging = next((part for part in parts if part["judge"] and not _is_of_checks(part)), None)
    judging = judging or next((part for part in parts if part["judge"]), first)
    playing = next((part for part in parts if part["tasks"]), first)
    entries: dict[str, tuple[TaskEntry, str]] = {}
    for part in parts:
        judge = part if _judged_nothing(part) or _differs_by_truth(part, judging) else judging
        expected = {"participants": first, "winner": first, "judge": judge}
        expected |= {"number of epochs": playing} if part["tasks"] else {}
        for key, other in expected.items():
            if part[key] != other[key]:
                raise ConfigError(
                    f"{part['name']}: its {key} is not that of {other['name']}",
                    remedy="merge shards of one assessment only",
                )
        for entry in part["tasks"]:
            before, where = entries.setdefault(entry.key, (entry, part["name"]))
            if (before.excluded is None) != (entry.excluded is None):
                problem = f"task {entry.key[:60]!a} is excluded in only one of this file and {where}"
                raise ConfigError(
                    f"{part['name']}: {problem}", remedy="a task that was played cannot be excluded: leave one file out"
                )
            if before.value != entry.value:
                raise ConfigError(
                    f"{part['name']}: task {entry.key[:60]!a} differs from the one in {where}",
                    remedy="leave one of the two files out",
                )
    detail = detail_of(
        [entry for entry, _ in entries.values()],
        judge=judging["judge"],
        cost_usd=total_cost(part["cost_usd"] for part in parts),
        provenance=merged_provenance([part["provenance"] for part in parts]),
        excluded=_left_out(parts),
    )
    known = [part for part in parts if part["tasks"]]
    for each in part_types():
        detail |= each.merged([part["totals"] for part in known], [part["scored"] for part in known])
    return {"participants": dict(first["participants"]), "results": [{"winner": first["winner"], "detail": detail}]}


def _left_out(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tasks that the scenario excludes. Raises `ConfigError` if one was played in another shard."""
    shards_by_task = {entry.task_id: part["name"] for part in parts for entry in part["tasks"]}
    left_out: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        for each in part["excluded"]:
            if (task_id := str(each.get("task_id"))) in shards_by_task:
                problem = f"task {task_id[:60]!a} is excluded by the scenario, and played in {shards_by_task[task_id]}"
                raise ConfigError(f"{part['name']}: {problem}", remedy="merge shards of one scenario only")
            left_out.setdefault(task_id, each)
    return list(left_out.values())


def merged_provenance(provenances: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values that all shards have in common; each shard's full provenance is under `shards`."""
    first = provenances[0]
    shared = {key: value for key, value in first.items() if all(each.get(key) == value for each in provenances)}
    return {**shared, "shards": list(provenances)}


def _parts(submission: Mapping[str, Any], name: str, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The parts of each result in a submission file that merging needs; `ids` come from all files so far."""
    remedy = "merge files of this benchmark"
    results = submission.get("results")
    if not isinstance(results, list) or not results:
        raise ConfigError(f"{name}: key 'results' is not a list of results", remedy=remedy)
    for number, result in enumerate(results, 1):
        where = name if len(results) == 1 else f"{name} #{number}"
        result, detail = as_mapping(result), as_mapping(as_mapping(result).get("detail"))
        tasks, rate, cost = detail.get("tasks"), detail.get("success_rate"), detail.get("cost_usd")
        if not isinstance(tasks, list):
            raise ConfigError(
                f"{where}: key 'detail.tasks' is missing", remedy="the counts are computed from the tasks"
            )
        for place, entry in enumerate(tasks, 1):
            if not isinstance(task_id := as_mapping(entry).get("task_id"), str):
                raise ConfigError(f"{where}: tasks #{place} has no task_id", remedy=remedy)
            if problem := problem_of(task_id, ids):
                raise ConfigError(
                    f"{where}: tasks #{place}: task_id {excerpt(task_id)} {problem}", remedy="rename the task"
                )
            if type(epoch := entry.get("epoch", 1)) is not int or not 1 <= epoch <= MAX_EPOCHS:
                epoch_text = excerpt(str(epoch), 20)
                raise ConfigError(
                    f"{where}: tasks #{place}: its epoch {epoch_text} is not 1 to {MAX_EPOCHS}", remedy=remedy
                )
        entries = read_entries(tasks)
        derived = rate_of(entries).published()["success_rate"]
        # In some older files a task's `success` only means that the participant ended the attempt.
        if isinstance(rate, int | float) and abs(rate - derived) > _RATE_TOLERANCE:
            raise ConfigError(
                f"{where}: its success_rate is {rate:g}, its tasks give {derived:g}", remedy="leave this file out"
            )
        yield {
            "name": where,
            "participants": as_mapping(submission.get("participants")),
            "winner": result.get("winner"),
            "judge": as_mapping(detail.get("judge")),
            "provenance": as_mapping(detail.get("provenance")),
            "totals": {key: detail[key] for each in part_types() for key in each.keys if key in detail},
            "scored": rate_of(entries).scored,
            "cost_usd": float(cost) if isinstance(cost, int | float) else None,
            "tasks": entries,
            "excluded": [each for each in as_mappings(detail.get(EXCLUDED)) if each.get("by") == "scenario"],
            "number of epochs": max((entry.epoch for entry in entries), default=1),
        }


def _judged_nothing(part: Mapping[str, Any]) -> bool:
    """Whether a shard contains no verdict of a judge: it has no task, or none that needed one."""
    return not part["judge"] and all(entry.value.get("verdict") in _UNDECIDED for entry in part["tasks"])


def _is_of_checks(part: Mapping[str, Any]) -> bool:
    return bool(part["judge"].get("method") == "checks")


def _differs_by_truth(part: Mapping[str, Any], judging: Mapping[str, Any]) -> bool:
    """Whether one shard was decided by checks alone, with the same code, and the other also by a judge model."""
    is_same_code = part["judge"].get("code_checksum") == judging["judge"].get("code_checksum")
    return _is_of_checks(part) and not _is_of_checks(judging) and is_same_code

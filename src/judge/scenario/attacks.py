"""Tasks under attack: each is a task of its own, made from the clean one, and forms a pair with it."""

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from judge.records.attacks import Attack, Modes, PlayedAttack
from judge.records.ids import USABLE
from judge.records.tasks import TASK_ID, Dated, Task
from shared.dates import mentions_dates
from shared.errors import ConfigError
from shared.fields import as_mapping, printable
from shared.files import read_errors, read_json


def attacked_id(task_id: str, attack: Attack) -> str:
    """The id of the task with the attack, which participants never see."""
    return f"{task_id}--{attack.name}"


def under_attack(task: Task, attack: Attack, unseen: Collection[str] = ()) -> Task:
    """The task with one of its attacks."""
    task_id = attacked_id(task.task_id, attack)
    played_attack = PlayedAttack(of=task.task_id, attack=attack, is_unseen=task_id in unseen)
    clean = _clean(task)
    changes: dict[str, Any] = {"task_id": task_id, "attack": played_attack}
    templates = task.dated.template.get("attacks", ()) if task.dated else ()
    declared = next((each for each in templates if each.get("name") == attack.name), None)
    if task.dated and declared is not None and mentions_dates(declared):
        template = {**(clean.dated.template if clean.dated else {})}
        template["attack"] = {**played_attack.model_dump(mode="json", exclude={"attack"}), "attack": declared}
        changes["dated"] = Dated(day=task.dated.day, template=template)
    return clean.model_copy(update=changes)


def _clean(task: Task) -> Task:
    """The task without the attacks that a run may play on it."""
    if not task.attacks:
        return task
    return task.model_copy(update={"attacks": (), "dated": task.dated.without("attacks") if task.dated else None})


def planned(
    tasks: Iterable[Task], mode: Modes, *, unseen: Collection[str] = (), exclude: Collection[str] = ()
) -> tuple[Task, ...]:
    """The tasks to play: clean, each followed by itself under each of its attacks, or only the latter.

    `unseen` are the ids of those whose attack the reference walk does not see, `exclude` the clean tasks
    not played. Raises `ConfigError` if the id of a task under attack is not usable.
    """
    all_tasks = tuple(tasks)
    clean = [_clean(task) for task in all_tasks]
    if mode == "off":
        return tuple(clean)
    planned_tasks: list[Task] = []
    for task, plain in zip(all_tasks, clean, strict=True):
        planned_tasks += [plain] if mode == "both" else []
        if task.task_id not in exclude:
            planned_tasks += [under_attack(task, attack, unseen) for attack in task.attacks]
    _require_usable(planned_tasks)
    return tuple(planned_tasks)


def declaring(tasks: Iterable[Task], mode: Modes) -> tuple[Task, ...]:
    """The tasks that a run needs: with `off` without their attacks, with `only` those that declare any.

    Raises `ConfigError` if attacks are to be played and there are none.
    """
    all_tasks = tuple(tasks)
    if mode == "off":
        return tuple(_clean(task) for task in all_tasks)
    attacked = tuple(task for task in all_tasks if task.attacks)
    if not attacked:
        raise ConfigError(
            f"--attacks {mode}: no task declares an attack", remedy="add [[attacks]] or [[tasks.attacks]]"
        )
    return attacked if mode == "only" else all_tasks


def unseen_path(scenario: Path) -> Path:
    """The file beside a scenario that names the attacks that its reference walks do not see."""
    return scenario.with_name(f"{scenario.stem}.unseen.json")


def unseen_text(unseen: Iterable[str]) -> str:
    """The content of that file: the ids of tasks under attack."""
    return json.dumps({"unseen_attacks": sorted(unseen)}, indent=2) + "\n"


def read_unseen(scenario: Path) -> tuple[str, ...]:
    """What that file names; nothing without one. Raises `ConfigError`."""
    path = unseen_path(scenario)
    if not path.is_file():
        return ()
    remedy = "write it again with wabe tasks validate --attacks --write"
    with read_errors(path, remedy):
        value = as_mapping(read_json(path)).get("unseen_attacks")
    if not isinstance(value, list) or not all(isinstance(each, str) and TASK_ID.fullmatch(each) for each in value):
        raise ConfigError(f"{path}: unseen_attacks is not a list of ids", remedy=remedy)
    return tuple(value)


def _require_usable(tasks: Sequence[Task]) -> None:
    known: set[str] = set()
    for task in tasks:
        if not TASK_ID.fullmatch(task.task_id):
            raise ConfigError(f"{printable(task.task_id)}, a task under attack, is not a usable id", remedy=USABLE)
        if task.task_id.casefold() in known:
            problem = f"'{task.task_id}' is the id of a task under attack and of another task"
            raise ConfigError(problem, remedy="rename the task or the attack")
        known.add(task.task_id.casefold())

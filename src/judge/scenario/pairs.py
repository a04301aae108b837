"""What tasks are played under: attacks and variants. Each makes a separate task, a pair with the clean one."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from judge.config import RunConfig
from judge.records.attacks import Attack, PlayedAttack
from judge.records.ids import USABLE, repeated
from judge.records.tasks import TASK_ID, Dated, Task, pair_id
from judge.records.variants import BUNDLED, PlayedVariant, TaskVariant, known_as
from shared.dates import mentions_dates
from shared.errors import ConfigError
from shared.fields import as_mapping, printable
from shared.files import read_errors, read_json

# The keys of a task that list what it may be played under.
_CONDITIONS = ("attacks", "variants")


def variants_of(task: Task) -> tuple[TaskVariant, ...]:
    """The variants that the task declares, bundled ones by name; all bundled ones if it declares none."""
    return tuple(map(known_as, task.variants)) or tuple(BUNDLED.values())


def pairs_of(task: Task) -> Iterator[Task]:
    """The task under each of its variants."""
    clean = _without(task, *_CONDITIONS)
    dated = clean.dated.without("task") if clean.dated else None
    for variant in variants_of(task):
        played = PlayedVariant(of=task.task_id, declared=variant)
        changes: dict[str, Any] = {"task_id": pair_id(task.task_id, variant.name), "played_variant": played}
        changes |= {} if variant.words is None else {"task": variant.words, "dated": dated}
        yield clean.model_copy(update=changes)


def under_attack(task: Task, attack: Attack, unseen: Collection[str] = ()) -> Task:
    """The task with one of its attacks."""
    task_id, clean = pair_id(task.task_id, attack.name), _without(task, *_CONDITIONS)
    played_attack = PlayedAttack(of=task.task_id, attack=attack, is_unseen=task_id in unseen)
    changes: dict[str, Any] = {"task_id": task_id, "attack": played_attack}
    templates = task.dated.template.get("attacks", ()) if task.dated else ()
    declared = next((each for each in templates if each.get("name") == attack.name), None)
    if task.dated and declared is not None and mentions_dates(declared):
        template = {**(clean.dated.template if clean.dated else {})}
        template["attack"] = {**played_attack.model_dump(mode="json", exclude={"attack"}), "attack": declared}
        changes["dated"] = Dated(day=task.dated.day, template=template)
    return clean.model_copy(update=changes)


def _without(task: Task, *keys: str) -> Task:
    """The task without some of what a run may play it under."""
    for key in keys:
        if getattr(task, key):
            changes = {key: (), "dated": task.dated.without(key) if task.dated else None}
            task = task.model_copy(update=changes)
    return task


def planned(tasks: Iterable[Task], config: RunConfig) -> tuple[Task, ...]:
    """The tasks to play: clean, each followed by itself under its attacks and variants, or only the latter.

    Raises `ConfigError` if the id of such a task is not usable.
    """
    planned_tasks: list[Task] = []
    for task in tasks:
        planned_tasks += [_without(task, *_CONDITIONS)] if _plays_clean(config) else []
        if task.task_id in config.exclude:
            continue
        if config.attacks != "off":
            planned_tasks += [under_attack(task, attack, config.unseen_attacks) for attack in task.attacks]
        if config.variants != "off":
            planned_tasks += [pair for pair in pairs_of(task) if pair.task_id in config.held_variants]
    if {config.attacks, config.variants} != {"off"}:
        _require_usable(planned_tasks)
    return tuple(planned_tasks)


def _plays_clean(config: RunConfig) -> bool:
    modes = (config.attacks, config.variants)
    return "only" not in modes or "both" in modes


def declaring(tasks: Iterable[Task], config: RunConfig) -> tuple[Task, ...]:
    """The tasks that a run needs, without what it does not play them under.

    Raises `ConfigError` if attacks are to be played and there are none.
    """
    unused = [key for key in _CONDITIONS if getattr(config, key) == "off"]
    all_tasks = tuple(_without(task, *unused) for task in tasks)
    if config.attacks != "off" and not any(task.attacks for task in all_tasks):
        remedy = "add [[attacks]] or [[tasks.attacks]]"
        raise ConfigError(f"--attacks {config.attacks}: no task declares an attack", remedy=remedy)
    if _plays_clean(config):
        return all_tasks
    held = config.held_variants
    return tuple(task for task in all_tasks if task.attacks or any(pair.task_id in held for pair in pairs_of(task)))


def proof_path(scenario: Path, what: Literal["unseen", "variants"]) -> Path:
    """The file beside a scenario that says which attacks its reference walks do not see, or which variants hold."""
    return scenario.with_name(f"{scenario.stem}.{what}.json")


def read_unseen(scenario: Path) -> tuple[str, ...]:
    """The ids of tasks under attacks that reference walks do not see; none without that file. Raises `ConfigError`."""
    path = proof_path(scenario, "unseen")
    if not path.is_file():
        return ()
    remedy = "write it again with wabe tasks validate --attacks --write"
    with read_errors(path, remedy):
        value = as_mapping(read_json(path)).get("unseen_attacks")
    if not isinstance(value, list) or not all(isinstance(each, str) and TASK_ID.fullmatch(each) for each in value):
        raise ConfigError(f"{path}: unseen_attacks is not a list of ids", remedy=remedy)
    return tuple(value)


def _require_usable(tasks: Sequence[Task]) -> None:
    ids = [task.task_id for task in tasks]
    if unusable := next((each for each in ids if not TASK_ID.fullmatch(each)), None):
        problem = f"{printable(unusable)}, a task under an attack or a variant, is not a usable id"
        raise ConfigError(problem, remedy=USABLE)
    if twice := repeated(ids):
        problem = f"'{twice}' is the id of a task under attack and of another task"
        raise ConfigError(problem, remedy="rename the task or the attack")

"""Opens the sealed tasks of a scenario: see `judge.store.sealing` for the file and its encryption."""

import hashlib
from typing import TypeVar

from judge.records.access import read_storage_state
from judge.records.tasks import Task
from judge.scenario.models import Scenario, SiteEntry
from judge.store.sealing import SealedContent, SealedFile, SealedSet

E = TypeVar("E", Task, SiteEntry)


def with_content(scenario: Scenario, content: SealedContent, file: SealedFile, text: str) -> Scenario:
    """The scenario of a sealed set under its public names, with its files. `text` is the sealed file's."""
    digest = file.public.digest
    changes = {
        "tasks": tuple(_public(task, content, digest) for task in scenario.tasks),
        "excluded": tuple(_public(task, content, digest) for task in scenario.excluded),
        "sites": tuple(_with_state(site, content) for site in scenario.sites),
        "task_ids": tuple(content.ids[each] for each in scenario.task_ids),
        "sealed": SealedSet(text=text, public=file.public, scripts=content.scripts),
        "source_checksum": hashlib.sha256(text.encode()).hexdigest(),
    }
    return scenario.model_copy(update=changes)


def _public(task: Task, content: SealedContent, digest: str) -> Task:
    """The task under its random id, and its attacks under numbers, because ids of tasks under attack name them."""
    attacks = tuple(
        attack.model_copy(update={"name": f"attack-{number}"}) for number, attack in enumerate(task.attacks, 1)
    )
    changes = {"task_id": content.ids[task.task_id], "attacks": attacks, "variants": (), "sealed": digest}
    return _with_state(task, content).model_copy(update=changes)


def _with_state(entry: E, content: SealedContent) -> E:
    name = entry.storage_state
    if not isinstance(name, str):
        return entry
    return entry.model_copy(update={"storage_state": read_storage_state(content.states[name])})

"""Proves which variants change no verdict: right and wrong scripts are played with and without each.

What was proven is kept beside the scenario, with the digest of each task under its variant: a task that has been edited
since is not proven any more.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from judge.network.archives import Archives
from judge.records.tasks import Task
from judge.results.run_record import task_digests
from judge.runner.rehearsal import played, walker_of
from judge.scenario.frozen import opened
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from judge.scenario.pairs import pairs_of, proof_path, variants_of
from judge.scenario.references import scripted_tasks
from judge.scenario.toml import load_scenario
from judge.store.sealing import key_in
from judge.trajectory.record import Attempt
from shared.errors import ConfigError
from shared.fields import as_mapping, did_you_mean
from shared.files import read_errors, read_json, write_errors, write_json
from shared.settings import Settings
from shared.text import counted, one_line, plain

_REMEDY = "wabe tasks validate {} --variants --write"
# Where a script that fails may be, as in the bundled sets.
_WRONG = ("wrong.toml", "replay.toml")
# How many attempts are played at once.
_AT_ONCE = 2
# Tasks after which what was found is written: a task takes a minute and more.
_KEPT_AFTER = 5


class Proof(NamedTuple):
    """By the id of the task under a variant, the digest of one that holds, or why the variant does not."""

    held: Mapping[str, str]
    lost: Mapping[str, str]


def read_proof(scenario: Path) -> Proof:
    """What that file says; nothing without one. Raises `ConfigError`."""
    path = proof_path(scenario, "variants")
    if not path.is_file():
        return Proof({}, {})
    with read_errors(path, f"write it again with {_REMEDY.format(scenario)}"):
        value = as_mapping(read_json(path))
    return Proof(
        *({str(key): str(each) for key, each in as_mapping(value.get(name)).items()} for name in Proof._fields)
    )


def held_variants(scenario: Scenario, config: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The settings that say which tasks under variants are played: of these names, if any. Raises `ConfigError`."""
    mode = config.get("variants", "both" if names else "off")
    if mode == "off":
        return {}
    pairs = {
        pair: pair.played_variant.declared.name
        for task in scenario.tasks
        for pair in pairs_of(task)
        if pair.played_variant
    }
    if unknown := [name for name in names if name not in pairs.values()]:
        raise ConfigError(
            f"--variant {unknown[0]}: no task has it", remedy=did_you_mean(unknown[0], dict.fromkeys(pairs.values()))
        )
    proof = read_proof(scenario.path)
    digests = task_digests([pair for pair, name in pairs.items() if not names or name in names])
    held = tuple(task_id for task_id, digest in digests.items() if proof.held.get(task_id) == digest)
    if not held:
        why = next((f": {task_id}: {proof.lost[task_id]}" for task_id in digests if task_id in proof.lost), "")
        problem = f"{scenario.path}: no variant of these tasks is proven to change no verdict{why}"
        raise ConfigError(problem, remedy=_REMEDY.format(scenario.path))
    return {"variants": mode, "held_variants": held}


def proven_share(scenario: Path) -> str | None:
    """How many variants of a scenario's tasks, as these are now, are proven, in words; `None` if none was tried."""
    proof = read_proof(scenario)
    if not any(proof):
        return None
    key = key_in(Settings.from_environ().seal_key)
    digests = task_digests([pair for task in load_scenario(scenario, key=key).tasks for pair in pairs_of(task)])
    held = sum(proof.held.get(task_id) == digest for task_id, digest in digests.items())
    return f"{held} of {counted(len(digests), 'variant')} proven to change no verdict"


def prove(scenario: Scenario, settings: Settings, *, write: bool) -> tuple[list[str], list[str]]:
    """Problems and notes, one line each; `write` keeps what holds beside the scenario. Raises `ConfigError`."""
    proof = Proof({}, {})
    for start in range(0, len(scenario.tasks), _KEPT_AFTER):
        some = scenario.model_copy(update={"tasks": scenario.tasks[start : start + _KEPT_AFTER]})
        found = asyncio.run(_proven(some, settings))
        proof = Proof(*({**all_found, **new} for all_found, new in zip(proof, found, strict=True)))
        if write:
            _keep(found, some)
    untried = [task.task_id for task in scenario.tasks if not task.reference]
    notes = [f"task {task_id} has no reference: its variants are not tried" for task_id in untried]
    notes += [one_line(f"{task_id} is not played: {why}", 500) for task_id, why in proof.lost.items()]
    counts = Counter(task_id.rpartition("--")[2] for task_id in proof.held)
    notes += [f"holds: {', '.join(f'{name} {counts[name]}' for name in counts) or 'no variant'}"]
    if write:
        kept = read_proof(scenario.path)
        held, lost = counted(len(kept.held), "task"), len(kept.lost)
        name = proof_path(scenario.path, "variants").name
        notes.append(f"{name} names {held} under variants that hold, and {lost} that do not")
    return [], notes


def _keep(found: Proof, scenario: Scenario) -> None:
    """Writes what was found of the scenario's tasks; what was proven of others stays."""
    tried = {pair.task_id for task in scenario.tasks for pair in pairs_of(task)}
    known = read_proof(scenario.path)
    others = ({key: each for key, each in old.items() if key not in tried} for old in known)
    proof = Proof(*({**old, **new} for old, new in zip(others, found, strict=True)))
    path = proof_path(scenario.path, "variants")
    with write_errors(path, "make its folder writable, or leave --write out"):
        write_json(path, proof._asdict())


async def _proven(scenario: Scenario, settings: Settings) -> Proof:
    scenario, archives = opened(scenario, settings)
    folder = scenario.path.resolve().parent
    tasks = [task for task in scenario.tasks if task.reference]
    right = await _outcomes(scenario, settings, archives, _by_reference(tasks))
    wrong_ones = [task.model_copy(update={"reference": _wrong_script(task, folder)}) for task in tasks]
    wrong = await _outcomes(scenario, settings, archives, _by_reference(wrong_ones))
    pairs = [pair for task in tasks for pair in pairs_of(task)]
    lost = {
        pair.task_id: why
        for pair in pairs
        if (why := change_of(right, pair, "right") or change_of(wrong, pair, "wrong"))
    }
    return Proof({key: each for key, each in task_digests(pairs).items() if key not in lost}, lost)


def _by_reference(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.reference or "", []).append(task)
    return groups


def _wrong_script(task: Task, folder: Path) -> str | None:
    """The file with a script that fails; without one, a participant that does nothing plays the task."""
    for name in _WRONG:
        scripts = scripted_tasks(folder / name) if name != task.reference and (folder / name).is_file() else ""
        if not isinstance(scripts, str) and plain(task.declared_text) in scripts:
            return name
    return None


async def _outcomes(
    scenario: Scenario, settings: Settings, archives: Archives | None, groups: Mapping[str, Sequence[Task]]
) -> dict[str, Attempt]:
    """The attempts at these tasks, clean and under each variant, played by the script of the same name.

    Where a request fails, the player loads the page again: nobody else finds out that this helps.
    """
    outcomes: dict[str, Attempt] = {}
    for (reference, group), reloads in product(groups.items(), (False, True)):
        clean = with_logins(scenario, group, settings.environ)
        # Checks do not read the instruction, by which scripts are found.
        tasks = [
            *(() if reloads else clean),
            *(
                pair.model_copy(update={"task": task.task})
                for task in clean
                for pair in pairs_of(task)
                if pair.played_variant and pair.played_variant.declared.may_fail == reloads
            ),
        ]
        if not tasks:
            continue
        closing = {variant.cover.button for task in group for variant in variants_of(task) if variant.cover}
        walker = (
            walker_of(group, scenario.path.resolve().parent, sorted(closing), reloads=reloads) if reference else None
        )
        at_once = {"max_parallel": _AT_ONCE}
        async with played(
            scenario, tasks, settings, walker, archives=archives, slots=_AT_ONCE, changes=at_once
        ) as plays:
            outcomes |= {task.task_id: plays.trajectory(task).attempt for task in plays.tasks}
    return outcomes


def change_of(attempts: Mapping[str, Attempt], pair: Task, script: str) -> str | None:
    """What the variant changes for a script; `None` if nothing."""
    clean, under = attempts[pair.clean_task or ""], attempts[pair.task_id]
    expected = "success" if script == "right" else "failure"
    if clean.outcome != expected:
        return f"without it, the {script} script ends as {clean.outcome}"
    if under.outcome != clean.outcome:
        why = under.verdict.reason if under.verdict else under.cause or under.stop_reason
        return f"the {script} script ends as {under.outcome}: {why}"
    if script == "right" and under.frozen is not None and under.frozen.coverage != "full":
        return f"the archive does not answer all that the {script} script asks for ({under.frozen.coverage})"
    return None

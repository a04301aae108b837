"""Seals the tasks of a scenario: see `judge.store.sealing` for the file and its encryption."""

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.records.access import read_storage_state
from judge.records.sites import origin_of
from judge.scenario.files import contents_of
from judge.scenario.models import Scenario
from judge.store.sealing import PublicPart, PublicTask, SealedContent, SealKey, sealed_text
from shared.errors import ConfigError
from shared.fields import Invalid
from shared.files import read_errors, read_json, read_text, reason_of

_MAX_STATE_BYTES = 4_000_000
_ID_BYTES = 5


def seal(scenario: Scenario, toml: str, key: SealKey, *, name: str, with_sites: bool = False) -> str:
    """The text of a sealed file. Raises `ConfigError` for a scenario that cannot be sealed.

    `scenario` was read from the text `toml`, whose files are beside it. `with_sites` makes the websites public.
    """
    if not scenario.tasks:
        raise ConfigError(f"{scenario.path}: no tasks to seal", remedy="list them as [[tasks]]")
    for site in scenario.sites:
        if site.login is not None:
            raise ConfigError(
                f"{scenario.path}: site {site.name} logs in by its form, which only the scenario itself can do",
                remedy="wabe tasks login saves the log-in; name that file as the site's storage_state",
            )
    all_tasks = (*scenario.tasks, *scenario.excluded)
    folder = scenario.path.resolve().parent
    login_states = [task.storage_state for task in all_tasks] + [site.storage_state for site in scenario.sites]
    states = {each for each in login_states if isinstance(each, str)}
    content = SealedContent(
        scenario=toml,
        ids=_random_ids(scenario.task_ids),
        canary=f"wabe canary {secrets.token_hex(16)}",
        files={name: base64.b64encode(data).decode() for name, data in contents_of(all_tasks).items()},
        states={each: _state(folder / Path(each).expanduser()) for each in sorted(states)},
        scripts={each: _script(folder / each) for each in sorted({task.reference or "" for task in all_tasks} - {""})},
    )
    levels = {task.task_id: task.level for task in all_tasks}
    public = PublicPart(
        name=name,
        tasks=tuple(PublicTask(task_id=new, level=levels[old]) for old, new in content.ids.items()),
        sites=tuple(sorted({_host(task.website) for task in all_tasks})) if with_sites else None,
        canary=content.canary,
    )
    return sealed_text(content, public, key)


def _random_ids(ids: tuple[str, ...]) -> dict[str, str]:
    new_ids: dict[str, str] = {}
    for each in ids:
        new = f"t-{secrets.token_hex(_ID_BYTES)}"
        while new in new_ids.values():
            new = f"t-{secrets.token_hex(_ID_BYTES)}"
        new_ids[each] = new
    return new_ids


def _state(path: Path) -> Mapping[str, Any]:
    try:
        value = read_json(path, max_bytes=_MAX_STATE_BYTES)
        read_storage_state(value)
    except (OSError, ValueError, Invalid) as error:
        why = error.problem if isinstance(error, Invalid) else reason_of(error)
        raise ConfigError(f"{path}: {why}", remedy="log in again: wabe tasks login") from None
    return dict(value)


def _script(path: Path) -> str:
    with read_errors(path, "name a replay script beside the scenario"):
        return read_text(path)


def _host(url: str) -> str:
    origin = origin_of(url)
    return origin[0] if origin else ""

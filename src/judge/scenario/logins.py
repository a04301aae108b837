"""What logs the browsers of tasks in: read from the files that a scenario names, and kept to each task's own site.

In a scenario file, a storage state is the path of a file beside it, and a password may be `${NAME}`. A request holds
both themselves: a judge reads no file and no variable that a request names.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from judge.scenario.models import Scenario, SiteEntry, resolved
from judge.sites import Site, is_off_site, origin_of, own_site, site_of
from shared.access import HttpCredentials, StorageState, read_storage_state
from shared.fields import Invalid, shown
from shared.files import read_json, reason_of
from shared.models import Task
from shared.text import counted
from shared.validation import Problem, mistake

_MAX_STATE_BYTES = 4_000_000
_NAMED = 3


def with_logins(scenario: Scenario, tasks: Sequence[Task], environ: Mapping[str, str] | None) -> tuple[Task, ...]:
    """The tasks with the content of their storage states and with credentials for their sites.

    What a task declares itself stands; otherwise it gets that of each `[[sites]]` entry that is part of its site.
    Without `environ`, references to variables stay as they are. Raises `ConfigError`: file, key, remedy, and no value.
    """
    places = {task.task_id: place for place, task in enumerate(scenario.tasks)}
    states: dict[str, StorageState] = {}
    sites = [_site(scenario, place, states, environ) for place in range(len(scenario.sites))]
    resolved = []
    for task in tasks:
        where = ("tasks", places[task.task_id])
        if isinstance(task.storage_state, str):
            state = _read(scenario, task.storage_state, where, states)
            task = task.model_copy(update={"storage_state": state})
        own = _credentials(scenario, task.http_credentials, where, environ)
        task = _with_sites(task.model_copy(update={"http_credentials": own}), sites, scenario.config.allowed_sites)
        if problem := login_problem(task, scenario.config.allowed_sites):
            path, text, remedy = problem
            raise mistake(scenario.path, (*where, *path), text, remedy, is_toml=True)
        resolved.append(task)
    return tuple(resolved)


def login_problem(task: Task, allowed: Iterable[str]) -> Problem | None:
    """The first cookie, origin or start address that belongs to no site of the task, or `None`.

    A participant that is logged in somewhere else by mistake could act there in somebody's name.
    """
    site = Site(frozenset(), (*task.allowed_sites, *allowed))

    def is_own(url: str) -> bool:
        return not is_off_site(task.website, url) or site.holds(url)

    for url in task.start_urls:
        if not is_own(url):
            return Problem(("start_urls",), f"{shown(url)} is on another site than website", "add it to allowed_sites")
    for credentials in task.http_credentials:
        if credentials.origin is not None and not is_own(credentials.origin):
            text = f"{shown(credentials.origin)} is on another site than website"
            return Problem(("http_credentials",), text, "add it to allowed_sites")
    state = task.storage_state
    if isinstance(state, str):
        return Problem(("storage_state",), f"{shown(state)} is not in storage_states", "send the content of the file")
    # Cookies know no ports.
    hosts = {_host_site(origin) for entry in (task.website, *site.allowed) if (origin := _origin_of(entry))}
    remedy = "remove it, or add that site to allowed_sites"
    for number, cookie in enumerate(state.cookies if state else (), 1):
        if _host_site((cookie.domain.lstrip("."), None)) not in hosts:
            return Problem(("storage_state",), f"cookie {number} is of another site, {shown(cookie.domain)}", remedy)
    for stored in state.origins if state else ():
        if not is_own(stored.origin):
            return Problem(("storage_state",), f"it holds the storage of another site, {shown(stored.origin)}", remedy)
    return None


def expired_logins(tasks: Iterable[Task], now: float) -> list[str]:
    """A sentence for each storage state with cookies that have expired, which names them and the tasks that use it.

    `tasks` are those of `with_logins`, `now` is in seconds since 1970.
    """
    users: dict[str, list[str]] = {}
    for task in tasks:
        cookies = task.storage_state.cookies if isinstance(task.storage_state, StorageState) else ()
        # Zero and less: until the browser is closed.
        if expired := [shown(cookie.name) for cookie in cookies if 0 < cookie.expires <= now]:
            named = ", ".join(expired[:_NAMED]) + (f" and {len(expired) - _NAMED} more" if expired[_NAMED:] else "")
            users.setdefault(f"{len(expired)} of {counted(len(cookies), 'cookie')} expired: {named}", []).append(
                task.task_id
            )
    return [
        f"storage_state of task {ids[0]}{f' and {len(ids) - 1} more' if ids[1:] else ''}: {text} (if they hold the"
        " log-in, log in again and save it: context.storage_state(path=…))"
        for text, ids in users.items()
    ]


def _origin_of(entry: str) -> tuple[str, int | None] | None:
    return origin_of(entry if "://" in entry else f"http://{entry}")


def _host_site(origin: tuple[str, int | None]) -> str | None:
    host = origin[0].strip("[]")
    return site_of(f"https://[{host}]" if ":" in host else f"https://{host}")


def _site(
    scenario: Scenario, place: int, states: dict[str, StorageState], environ: Mapping[str, str] | None
) -> SiteEntry:
    site, where = scenario.sites[place], ("sites", place)
    state = site.storage_state
    if isinstance(state, str):
        state = _read(scenario, state, where, states)
    # Of the site alone: a task's website is another one where the site is only allowed.
    credentials = tuple(
        each if each.origin else each.model_copy(update={"origin": site.endpoint})
        for each in _credentials(scenario, site.http_credentials, where, environ)
    )
    return site.model_copy(update={"storage_state": state, "http_credentials": credentials})


def _with_sites(task: Task, sites: Sequence[SiteEntry], allowed: Iterable[str]) -> Task:
    area = own_site(task, allowed)
    used = [site for site in sites if area.holds(site.endpoint)]
    states = [site.storage_state for site in used if isinstance(site.storage_state, StorageState)]
    state = task.storage_state
    if state is None and states:
        cookies = tuple(cookie for each in states for cookie in each.cookies)
        state = StorageState(cookies=cookies, origins=tuple(origin for each in states for origin in each.origins))
    credentials = task.http_credentials or tuple(each for site in used for each in site.http_credentials)
    return task.model_copy(update={"storage_state": state, "http_credentials": credentials})


def _read(scenario: Scenario, name: str, where: tuple[str, int], states: dict[str, StorageState]) -> StorageState:
    """The storage state in a file; tasks that name the same file share it."""
    if name in states:
        return states[name]
    path = scenario.path.parent / Path(name).expanduser()
    key = (*where, "storage_state")
    try:
        value = read_json(path, max_bytes=_MAX_STATE_BYTES)
    except (OSError, ValueError) as error:
        remedy = "log in once and save it there with Playwright: context.storage_state(path=…)"
        raise mistake(scenario.path, key, f"{path}: {reason_of(error)}", remedy, is_toml=True) from None
    try:
        states[name] = read_storage_state(value)
    except Invalid as error:
        raise mistake(scenario.path, key, f"{path}: {error.problem}", error.remedy, is_toml=True) from None
    return states[name]


def _credentials(
    scenario: Scenario,
    declared: tuple[HttpCredentials, ...],
    where: tuple[str, int],
    environ: Mapping[str, str] | None,
) -> tuple[HttpCredentials, ...]:
    if environ is None:
        return declared
    named = mistake(scenario.path, (*where, "http_credentials"), "", "", is_toml=True).message
    return tuple(
        each.model_copy(
            update={name: resolved(getattr(each, name), environ, named) for name in ("username", "password")}
        )
        for each in declared
    )

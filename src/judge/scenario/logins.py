"""Login data for tasks' browsers: read from the files that a scenario names, and restricted to each task's site.

In a scenario file, a storage state is the path of a file beside it, and a password may be `${NAME}`. A request contains
both values: a judge never reads a file or variable that a request names.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TypeVar
from urllib.parse import urljoin

from judge.config import CONFIG, RunConfig
from judge.records.access import FormLogin, StorageState, merged, read_storage_state
from judge.records.sites import RunSites, Site, is_off_site, origin_of, site_of
from judge.records.tasks import Task
from judge.scenario.models import Scenario, SiteEntry, resolved
from judge.scenario.toml import line_in_file, open_scenario
from judge.store.sealing import SealKey
from shared.declarations import names_of
from shared.errors import ConfigError
from shared.fields import Invalid, printable
from shared.files import read_json, reason_of
from shared.text import counted
from shared.toml_lines import KeyPath
from shared.validation import Problem, mistake, validated

_MAX_STATE_BYTES = 4_000_000
_MAX_NAMES = 3
# Settings that may be `"${NAME}"`, because their values contain secrets.
OPERATORS_ADDRESSES = names_of(RunConfig, lambda setting: setting.secret == "address")
E = TypeVar("E", Task, SiteEntry)


def with_logins(scenario: Scenario, tasks: Sequence[Task], environ: Mapping[str, str] | None) -> tuple[Task, ...]:
    """The tasks with the content of their storage states and with credentials for their sites.

    A task's declaration wins; otherwise it gets the one of each `[[sites]]` entry that is part of its site. Without
    `environ`, references to variables are not resolved. Raises `ConfigError`: file, key and remedy, but no value.
    """
    places = scenario.places
    run = scenario.config.sites
    states: dict[str, StorageState] = {}
    sites = [
        _with_content(site, scenario, ("sites", place), states, environ) for place, site in enumerate(scenario.sites)
    ]
    if environ is not None:
        # Only to report a missing variable before anything starts: the log-in itself needs the running site.
        for place in range(len(scenario.sites)):
            form_login(scenario, place, environ)
    tasks_with_logins = []
    for task in tasks:
        where = ("tasks", places[task.task_id])
        task = _with_sites(_with_content(task, scenario, where, states, environ), sites, run)
        if problem := login_problem(task, run):
            path, text, remedy = problem
            raise _mistake(scenario, (*where, *path), text, remedy)
        tasks_with_logins.append(task)
    return tuple(tasks_with_logins)


def sealed_tasks(text: str, key: SealKey | None, today: date, environ: Mapping[str, str]) -> tuple[Task, ...]:
    """The tasks in the text of a sealed file, with their log-ins, and those it excludes. Raises `ConfigError`."""
    scenario = open_scenario(text, Path("config.sealed"), key, today=today)
    try:
        return with_logins(scenario, (*scenario.tasks, *scenario.excluded), environ)
    except ConfigError:
        # The message may quote what is sealed.
        raise ConfigError(
            "config.sealed: a log-in of the sealed tasks cannot be used here",
            remedy="set the variables that its credentials name where the judge runs",
        ) from None


def with_addresses(scenario: Scenario, environ: Mapping[str, str]) -> Scenario:
    """The scenario with the variables of its `upstream_proxy` and `cdp_url` resolved.

    Raises `ConfigError`, which shows no value.
    """
    config = scenario.config
    addresses_set = {key: value for key in OPERATORS_ADDRESSES if (value := getattr(config, key)) is not None}
    if not addresses_set:
        return scenario
    addresses = {
        key: resolved(value, environ, f"{scenario.path}: [config], key '{key}'") for key, value in addresses_set.items()
    }
    changed = {**config.model_dump(exclude_unset=True), **addresses}
    return scenario.model_copy(update={"config": validated(CONFIG, changed, str(scenario.path), under=("config",))})


def form_login(scenario: Scenario, place: int, environ: Mapping[str, str]) -> FormLogin | None:
    """How to log in to a site by its form, with its address complete and its variables resolved; `None` if undeclared.

    Raises `ConfigError`: file and key, but no value.
    """
    site = scenario.sites[place]
    if (login := site.login) is None:
        return None
    place_text = _mistake(scenario, ("sites", place, "login"), "", "", has_line=False).message
    username = None if login.username is None else resolved(login.username, environ, place_text)
    changes = {"username": username, "password": resolved(login.password, environ, place_text)}
    return login.model_copy(update={**changes, "url": urljoin(site.endpoint, login.url)})


def login_problem(task: Task, run: RunSites) -> Problem | None:
    """The first cookie, origin or start address that does not belong to the task's sites, or `None`.

    A participant logged in elsewhere by mistake could act there in a person's name.
    """
    site = run.of(task)

    def is_own(url: str) -> bool:
        return not is_off_site(task.website, url) or site.holds(url)

    places = [("start_urls", url) for url in task.start_urls]
    places += [("http_credentials", each.origin) for each in task.http_credentials if each.origin is not None]
    for key, url in places:
        if not is_own(url):
            return Problem((key,), f"{printable(url)} is on another site than website", "add it to allowed_sites")
    state = task.storage_state
    if isinstance(state, str):
        return Problem(
            ("storage_state",), f"{printable(state)} is not in storage_states", "send the content of the file"
        )
    hosts = _cookie_sites(run.declared(task))
    remedy = "remove it, or add that site to allowed_sites"
    for number, cookie in enumerate(state.cookies if state else (), 1):
        if _cookie_site(cookie.domain) not in hosts:
            return Problem(
                ("storage_state",), f"cookie {number} is of another site, {printable(cookie.domain)}", remedy
            )
    for stored in state.origins if state else ():
        if not is_own(stored.origin):
            return Problem(
                ("storage_state",), f"it holds the storage of another site, {printable(stored.origin)}", remedy
            )
    return None


def own_part(state: StorageState, website: str, allowed: Iterable[str] = ()) -> tuple[StorageState, tuple[str, ...]]:
    """The part of a state that belongs to a website or to allowed sites, and the other sites that it had more of.

    A login page may set cookies for others too, such as a counter of visitors.
    """
    entries = (website, *allowed)
    site, hosts = Site(frozenset(), tuple(allowed)), _cookie_sites(entries)
    cookies = tuple(each for each in state.cookies if _cookie_site(each.domain) in hosts)
    origins = tuple(each for each in state.origins if not is_off_site(website, each.origin) or site.holds(each.origin))
    others = [each.domain.lstrip(".") for each in state.cookies if each not in cookies]
    others += [each.origin for each in state.origins if each not in origins]
    return state.model_copy(update={"cookies": cookies, "origins": origins}), tuple(dict.fromkeys(others))


def _cookie_sites(entries: Iterable[str]) -> set[str | None]:
    """The sites of addresses and hosts without their ports, because cookies are not bound to one."""
    return {_host_site(origin) for entry in entries if (origin := _origin_of(entry))}


def _cookie_site(domain: str) -> str | None:
    return _host_site((domain.lstrip("."), None))


def expired_logins(tasks: Iterable[Task], now: float) -> list[str]:
    """A sentence for each storage state with expired cookies, naming the cookies and the tasks that use it.

    `tasks` come from `with_logins`; `now` is in seconds since 1970.
    """
    users: dict[str, list[str]] = {}
    for task in tasks:
        cookies = task.storage_state.cookies if isinstance(task.storage_state, StorageState) else ()
        # Zero or less means until the browser is closed.
        if expired := [printable(cookie.name) for cookie in cookies if 0 < cookie.expires <= now]:
            names_text = ", ".join(expired[:_MAX_NAMES]) + (
                f" and {len(expired) - _MAX_NAMES} more" if expired[_MAX_NAMES:] else ""
            )
            users.setdefault(f"{len(expired)} of {counted(len(cookies), 'cookie')} expired: {names_text}", []).append(
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


def _with_content(
    entry: E,
    scenario: Scenario,
    where: tuple[str, int],
    states: dict[str, StorageState],
    environ: Mapping[str, str] | None,
) -> E:
    """A task or a site with the content of its storage state, and with its passwords."""
    state, credentials = entry.storage_state, entry.http_credentials
    if isinstance(state, str):
        state = _read(scenario, state, where, states)
    if environ is not None:
        # For every task, so without its line, which is only found by reading the file.
        place_text = _mistake(scenario, (*where, "http_credentials"), "", "", has_line=False).message
        credentials = tuple(each.with_texts(lambda text: resolved(text, environ, place_text)) for each in credentials)
    return entry.model_copy(update={"storage_state": state, "http_credentials": credentials})


def _with_sites(task: Task, sites: Sequence[SiteEntry], run: RunSites) -> Task:
    area = run.of(task)
    used = [site for site in sites if area.holds(site.endpoint)]
    states = [site.storage_state for site in used if isinstance(site.storage_state, StorageState)]
    state = task.storage_state
    if state is None and states:
        state = merged(states)
    # Only for the site: where it is merely one of the allowed sites, the task's website is another one.
    credentials = task.http_credentials or tuple(
        each if each.origin else each.model_copy(update={"origin": site.endpoint})
        for site in used
        for each in site.http_credentials
    )
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
        raise _mistake(scenario, key, f"{path}: {reason_of(error)}", remedy) from None
    try:
        states[name] = read_storage_state(value)
    except Invalid as error:
        raise _mistake(scenario, key, f"{path}: {error.problem}", error.remedy) from None
    return states[name]


def _mistake(scenario: Scenario, path: KeyPath, problem: str, remedy: str, *, has_line: bool = True) -> ConfigError:
    place = path[1]
    task = scenario.task_ids[place] if path[0] == "tasks" and isinstance(place, int) else None
    line = line_in_file(scenario, path) if has_line else None
    return mistake(scenario.path, path, problem, remedy, is_toml=True, line=line, task=task)

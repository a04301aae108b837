"""Models of scenario files and assessment requests. They also validate them; see `shared.validation`."""

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urljoin, urlsplit

from pydantic import AfterValidator, BeforeValidator, FailFast, Field, TypeAdapter, ValidationInfo, model_validator

from judge.config import HOSTED_INSTANCES, MAX_PARALLEL, AllowedSites, Reason, RunConfig, instances_problem
from judge.records.access import Credentials, DeclaredLogin, DeclaredState, StateContent
from judge.records.attacks import Attack
from judge.records.checks import MAX_EXPRESSIONS, MAX_FETCHES, Bearer, Check, OneAddress, expressions_of, fetches_of
from judge.records.credentials import Headers, HeadersByRole
from judge.records.files import FileContents, FileNames, is_reserved
from judge.records.holds import AllowedWrites, Holds, Writes, misplaced_key
from judge.records.ids import USABLE, repeated
from judge.records.key_points import DeclaredPoint
from judge.records.metadata import MAX_KEYS, Metadata
from judge.records.policies import DeclaredPolicy, Policy, checks_of
from judge.records.sites import origin_of
from judge.records.tasks import TASK_ID, Dated, Exclusion, Level, StateAddress, Task
from judge.records.user import AnswerText, UserReply
from judge.records.variants import TaskVariant
from judge.scenario.days import invalid_on, listed_on_day, on_day
from judge.store.sealing import SealedSet
from shared.dates import Day
from shared.declarations import settings_in
from shared.errors import ConfigError
from shared.fields import Invalid, Line, Name, Prose, Table, Url, at_most, did_you_mean, printable
from shared.models import Record
from shared.settings import FRESH_VARIABLE
from shared.text import excerpt

# A submission has about a kilobyte for each task, in one JSON object (`MAX_ENTRIES_BYTES`).
MAX_TASKS = 10_000
# Example values for missing keys, for error messages.
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "green_agent": '{ endpoint = "http://127.0.0.1:9009" }',
        "participants": '[{ role = "white_agent", endpoint = "http://127.0.0.1:9019" }]',
        "role": '"white_agent"',
        "name": '"shop"',
        "endpoint": '"http://127.0.0.1:9019"',
        "task_id": '"shop-1"',
        "website": '"https://www.example.org/"',
        "task": '"Find …"',
    }
)
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_REFERENCE = re.compile(r"(\$\{[^}]*\}?)")
# Stands for the port in a command, of an agent or an instance of a site.
PORT = "{port}"
# The folder for what an agent files about its attempts, beside its log.
LOGS = "{logs}"
# Stands for a folder of a site's own in its command, which is empty whenever the site starts.
DATA_DIR = "{data_dir}"
_MAX_VARIABLES = 100
C = TypeVar("C", Attack, TaskVariant)
_LOOPBACK = {"localhost", "0.0.0.0", "::1", "::"}


def _is_command(value: str) -> str:
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise Invalid(f"{printable(value)}: {str(error).lower()}", "close the quotes") from None
    if not words:
        raise Invalid("empty", "remove it when the process is already running")
    return value


def _is_endpoint(value: str) -> str:
    parts = urlsplit(value)
    if parts.query or parts.fragment:
        raise Invalid(f"{printable(value)} has a query or fragment", "write it like http://127.0.0.1:9009")
    return value


def _is_env(value: object) -> object:
    """Validated by hand, because values may be secrets and pydantic's errors would show them."""
    if not isinstance(value, Mapping) or len(value) > _MAX_VARIABLES:
        raise Invalid(f"not a table of at most {_MAX_VARIABLES} strings", 'write env = { NAME = "value" }')
    for name, text in value.items():
        if not isinstance(text, str) or "\0" in text or not name or "=" in name or "\0" in name:
            raise Invalid(f"the variable {printable(name)} is not a string", f'write {name[:40]!a} = "value"')
    return value


def _are_instances(value: object) -> object:
    """Validated by hand, because pydantic's errors would name each of the three forms."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_PARALLEL
    instances = value if isinstance(value, list | tuple) else ()
    is_list = 1 <= len(instances) <= MAX_PARALLEL and all(
        isinstance(each, str) and origin_of(each) for each in instances
    )
    if value != "per_slot" and not is_number and not is_list:
        remedy = f'write instances = "per_slot", a number from 1 to {MAX_PARALLEL}, or a list of addresses'
        raise Invalid(f"{printable(value)} is not expected here", remedy)
    return tuple(value) if isinstance(value, list) else value


def _is_task_id(value: str) -> str:
    if not TASK_ID.fullmatch(value):
        raise Invalid(f"{printable(value)} is not usable", USABLE)
    if is_reserved(value):
        raise Invalid(f"{printable(value)} is a name that Windows reserves", "choose another one")
    return value


def _has_few_expressions(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    if (count := len(expressions_of(checks))) > MAX_EXPRESSIONS:
        raise Invalid(f"{count} different expressions of probes, more than {MAX_EXPRESSIONS}", "read fewer values")
    if (count := len(fetches_of(checks))) > MAX_FETCHES:
        raise Invalid(f"{count} different addresses to fetch, more than {MAX_FETCHES}", "compare fewer answers")
    return checks


def _have_names_of_their_own(policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    if (name := repeated(each.name for each in policies)) is not None:
        raise Invalid(f"'{name}' is the name of two policies", "give each its own name")
    if (count := len(expressions_of(checks_of(policies)))) > MAX_EXPRESSIONS:
        raise Invalid(f"{count} different expressions of probes, more than {MAX_EXPRESSIONS}", "read fewer values")
    return policies


def _are_told_apart(declared: tuple[C, ...]) -> tuple[C, ...]:
    if (name := repeated(each.name for each in declared)) is not None:
        kind = type(declared[0]).__name__.removeprefix("Task").lower()
        raise Invalid(f"'{name}' is the name of two {kind}s", "give each its own name")
    return declared


def _is_role(value: str) -> str:
    if value != value.strip():
        raise Invalid("a role name has spaces around it", "remove them")
    return value


def _escape_spaces(url: object) -> object:
    """Escape spaces: the platform's gateway copies a role, with any spaces in it, into the path of an address."""
    head, slash, path = url.rpartition("/") if isinstance(url, str) and url.count("/") > 2 else ("", "", "")
    return f"{head}/{path.strip().replace(' ', '%20')}" if slash else url


def _on_its_day(entries: object, info: ValidationInfo) -> object:
    return listed_on_day(entries, info.context.today) if isinstance(info.context, Reading) else entries


# Of entries declared for more than one task, and not in its table.
_OnItsDay = BeforeValidator(_on_its_day)
MAX_POLICIES = 50
Policies = Annotated[tuple[DeclaredPolicy, ...], at_most(MAX_POLICIES), AfterValidator(_have_names_of_their_own)]
MAX_CONDITIONS = 50
Attacks = Annotated[tuple[Attack, ...], at_most(MAX_CONDITIONS), AfterValidator(_are_told_apart)]
Variants = Annotated[tuple[TaskVariant, ...], at_most(MAX_CONDITIONS), AfterValidator(_are_told_apart)]
CommandLine = Annotated[Line, at_most(4000), AfterValidator(_is_command)]
Endpoint = Annotated[Url, AfterValidator(_is_endpoint)]
DeclaredInstances = Annotated[Literal["per_slot"] | int | tuple[Url, ...] | None, BeforeValidator(_are_instances)]
Role = Annotated[str, Field(min_length=1), at_most(100), AfterValidator(_is_role)]


class _Process(Table):
    """An agent or site with an address; with `cmd`, this machine starts it."""

    endpoint: Endpoint | None = None
    cmd: CommandLine | None = None
    env: Annotated[dict[str, str], BeforeValidator(_is_env)] = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _has_a_port(self) -> Self:
        if self.cmd is not None and self.endpoint is None:
            raise Invalid("missing", f"cmd needs one: add endpoint = {EXAMPLES['endpoint']}", key="endpoint")
        if self.cmd is not None and not urlsplit(self.endpoint or "").port:
            remedy = f"cmd needs one: write it like {EXAMPLES['endpoint']}"
            raise Invalid(f"{printable(self.endpoint)} has no port", remedy, key="endpoint")
        return self


class AgentEntry(_Process):
    """An agent of a scenario. Without `cmd` it is already running; without `endpoint` a platform assigns one."""

    role: Name
    agentbeats_id: Annotated[Line, at_most(200)] = ""
    image: Annotated[Line, at_most(500)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_means_role(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        role, name = data.get("role"), data.get("name")
        if role and name and role != name:
            raise Invalid(
                f"role is {printable(role)}, but name is {printable(name)}", "keep one of the two keys", key="role"
            )
        role = role or name
        return {key: value for key, value in data.items() if key != "name"} | ({"role": role} if role else {})


class ParticipantEntry(AgentEntry):
    """A participant. `headers` are credentials sent to it with its card's request and every call.

    `fresh` says what a program that it starts remembers: nothing of earlier attempts, or all of the run. It becomes a
    variable of its process, so that images and commands get it as well.
    """

    headers: Headers = Field(default_factory=dict, repr=False, exclude=True)
    fresh: Literal["attempt", "run"] | None = None

    @model_validator(mode="after")
    def _tells_what_is_fresh(self) -> Self:
        if self.fresh is None:
            return self
        if self.cmd is None and self.image is None:
            raise Invalid("it is not started here", "add its cmd or image, or remove it", key="fresh")
        self.env.setdefault(FRESH_VARIABLE, self.fresh)
        return self


def resolved_env(name: str, env: Mapping[str, str], environ: Mapping[str, str], source: object) -> dict[str, str]:
    """The `env` of the agent or site `name` with each `${NAME}` replaced from `environ`.

    Raises `ConfigError` that names the file (`source`).
    """
    return {
        variable: resolved(text, environ, f"{source}: {excerpt(name)}, key 'env': {excerpt(variable)}")
        for variable, text in env.items()
    }


def resolved(text: str, environ: Mapping[str, str], where: str) -> str:
    """`text` with each `${NAME}` replaced from `environ`. An empty variable counts as unset.

    Raises `ConfigError` that names the variable and `where` it is used; no error shows a value.
    """

    def resolve(reference: str) -> str:
        name = VARIABLE.fullmatch(reference)
        if name is None:
            raise ConfigError(f"{where} refers to a variable in another form than ${{NAME}}", remedy="write ${NAME}")
        value = environ.get(name[1])
        if not value:
            raise ConfigError(
                f"{where} needs the environment variable {name[1]}, which is not set",
                remedy=f"export {name[1]}=…, or remove the entry",
            )
        return value

    # `split` alternates between text and references, beginning with text.
    pieces = _REFERENCE.split(text)
    return "".join(resolve(piece) if place % 2 else piece for place, piece in enumerate(pieces))


class GreenAgent(AgentEntry):
    """The judge's entry."""

    role: Name = "green_agent"


class Ready(Table):
    """What a site answers once it is up: an address, relative to the site's, and the status of its answer."""

    url: Annotated[Line, Field(min_length=1), at_most(2048)] = "/"
    status: Annotated[int, Field(strict=True, ge=100, le=599)] = 200


class _StateTable(Table):
    url: OneAddress
    bearer: Bearer | None = None


# What tasks change, for near misses: a path, or a table with the item of the local storage that is sent as a token.
DeclaredAddress = Annotated[
    _StateTable,
    BeforeValidator(lambda value: {"url": value} if isinstance(value, str) else value),
    AfterValidator(lambda table: StateAddress(**dict(table))),
]


class SiteEntry(_Process):
    """A local website started before the agents (a demo shop, a manual).

    `ready`: what it answers once it is up; by default, anything. `static`: nothing that a participant does there
    persists beyond its browser. `reset_url`: a POST to it, which may be a path on the site, resets the site to its
    initial state; `restart`: restarting `cmd` does. `storage_state` and `http_credentials` apply to each task on the
    site that has none of its own. So does `login`, which is repeated whenever the site is reset, and `hold`, after the
    task's; `files` as well, and `state` if the task has none. With an `archive`, recordings answer for the site, which
    is then not started; `archive_sha256` is the digest that the file must have. `instances`: how many of the site are
    started, so that as many attempts are played at once, each on an instance of its own behind the site's address:
    `per_slot` for as many as attempts are played at once, or the addresses of those that run already. A static or
    recorded site needs one.
    """

    name: Name
    endpoint: Endpoint
    static: bool = False
    reset_url: Url | None = None
    restart: bool = False
    instances: DeclaredInstances = None
    ready: Ready | None = None
    archive: Annotated[Line, Field(min_length=1), at_most(1000)] | None = None
    archive_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    login: DeclaredLogin | None = Field(default=None, repr=False)
    hold: Annotated[Holds, _OnItsDay] = ()
    files: FileNames = ()
    storage_state: DeclaredState | None = Field(default=None, repr=False)
    http_credentials: Credentials = Field(default=(), repr=False)
    state: DeclaredAddress | None = None

    @model_validator(mode="before")
    @classmethod
    def _resolved(cls, value: Any) -> Any:
        """With the address of a reset, which may be relative to the site's, in full."""
        if isinstance(value, Mapping) and isinstance(reset := value.get("reset_url"), str) and reset.startswith("/"):
            return {**value, "reset_url": urljoin(str(value.get("endpoint")), reset)}
        return value

    @model_validator(mode="after")
    def _has_one_way_back(self) -> Self:
        if self.restart and self.cmd is None:
            raise Invalid("needs a cmd", "add the command that starts the site, or use reset_url", key="restart")
        if sum((self.static, self.restart, self.reset_url is not None)) > 1:
            raise Invalid("more than one of static, reset_url and restart", "keep one", key="restart")
        return self

    @model_validator(mode="after")
    def _has_instances_that_can_run(self) -> Self:
        if not self.is_played_by_instance:
            return self
        if isinstance(self.instances, tuple):
            if self.cmd is not None:
                raise Invalid("addresses, and a cmd", 'keep one: with a cmd, write "per_slot"', key="instances")
            if problem := instances_problem({self.endpoint: self.instances}):
                raise Invalid(problem.problem, problem.remedy, key="instances")
        elif self.cmd is None:
            raise Invalid("needs a cmd", "add it, or list the addresses of instances that run already", key="instances")
        elif PORT not in self.cmd:
            raise Invalid(f"needs {PORT} in cmd", f"write {PORT} in the place of the port", key="instances")
        if self.login is not None and not self.restart and self.reset_url is None:
            # A log-in belongs to one instance, and it is a reset that says to which attempt's.
            raise Invalid("a login, and no reset", "add restart = true or reset_url", key="instances")
        return self

    @model_validator(mode="after")
    def _has_the_archive_of_its_digest(self) -> Self:
        if self.archive_sha256 is not None and self.archive is None:
            raise Invalid("needs an archive", "add the archive's file name, or remove it", key="archive_sha256")
        return self

    @model_validator(mode="after")
    def _has_addresses_of_its_own(self) -> Self:
        if self.login is not None and self.storage_state is not None:
            raise Invalid("login and storage_state", "keep one: login creates a storage state", key="login")
        # What resets the site may also know whether it is up.
        own = {origin_of(self.endpoint), origin_of(self.reset_url or self.endpoint)}
        if self.ready and origin_of(urljoin(self.endpoint, self.ready.url)) not in own:
            raise Invalid(f"{printable(self.ready.url)} is not an address of the site", "write its path", key="ready")
        if self.login and origin_of(urljoin(self.endpoint, self.login.url)) is None:
            raise Invalid("its url is not an address", 'write the path of the form, such as "/login"', key="login")
        return self

    @property
    def reset(self) -> str | None:
        """How the site is reset to its initial state, in the form of `RunConfig.site_resets`."""
        return "static" if self.static else None if self.is_reset_elsewhere else self.reset_url

    @property
    def is_reset_elsewhere(self) -> bool:
        """Whether another service resets the site, which no request to a judge may name: the runner asks it."""
        return self.reset_url is not None and origin_of(self.reset_url) != origin_of(self.endpoint)

    @property
    def is_played_by_instance(self) -> bool:
        """Whether each attempt has its instance: not if nothing that it does could disturb another one."""
        return self.instances is not None and not self.static and self.archive is None


class TaskTable(Table):
    """A task as a user writes it. Other sources of tasks, such as recorded runs, are less strict."""

    task_id: Annotated[str, AfterValidator(_is_task_id)]
    website: Url
    task: Annotated[Prose, Field(min_length=1), at_most(10_000)]
    level: Level | None = None
    metadata: Metadata = Field(default={})
    reference_length: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    key_points: Annotated[tuple[DeclaredPoint, ...], FailFast(), at_most(50)] = ()
    checks: Annotated[tuple[Check, ...], at_most(50), AfterValidator(_has_few_expressions)] = ()
    policies: Policies = ()
    attacks: Attacks = ()
    variants: Variants = ()
    user_replies: Annotated[tuple[UserReply, ...], at_most(50)] = ()
    user_reply: AnswerText | None = None
    hold: Holds = ()
    writes: Writes | None = None
    allow_writes: AllowedWrites = ()
    allow_sockets: Annotated[bool, Field(strict=True)] = False
    allowed_sites: AllowedSites = ()
    start_urls: Annotated[tuple[Url, ...], FailFast(), at_most(20)] = ()
    keep_fields: Annotated[tuple[Name, ...], FailFast(), at_most(200)] = ()
    storage_state: DeclaredState | None = Field(default=None, repr=False)
    http_credentials: Credentials = Field(default=(), repr=False)
    files: FileNames = ()
    reference: Annotated[Line, Field(min_length=1), at_most(1000)] | None = None
    state: DeclaredAddress | None = None
    excluded: Reason | None = None
    valid_from: Day | None = None
    valid_until: Day | None = None

    @model_validator(mode="after")
    def _begins_on_its_website(self) -> Self:
        if self.start_urls and origin_of(self.start_urls[0]) != origin_of(self.website):
            problem = f"{printable(self.start_urls[0])} is not an address of {printable(self.website)}"
            raise Invalid(problem, "put an address of the website first", key="start_urls")
        return self

    @model_validator(mode="after")
    def _allows_what_it_holds(self) -> Self:
        if (key := misplaced_key(self.writes, self.allow_writes, self.allow_sockets)) is not None:
            raise Invalid('needs writes = "hold"', 'add writes = "hold", or remove it', key=key)
        return self

    @model_validator(mode="after")
    def _is_valid_for_a_day(self) -> Self:
        if self.valid_from and self.valid_until and self.valid_until < self.valid_from:
            raise Invalid(f"{self.valid_until} is before valid_from", "correct one of the two", key="valid_until")
        return self

    @model_validator(mode="after")
    def _has_an_id_of_its_own(self, info: ValidationInfo) -> Self:
        if info.context is None:
            return self
        # On some file systems, ids that differ only in case are one folder.
        if self.task_id.casefold() in info.context:
            raise Invalid(f"'{self.task_id}' is already the id of an earlier task", "make ids unique", key="task_id")
        info.context.add(self.task_id.casefold())
        return self


class Reading(set[str]):
    """What validators share while they read tasks: the ids so far, and the day that dates in texts are relative to."""

    def __init__(self, today: date) -> None:
        super().__init__()
        self.today = today


def _task(value: object, info: ValidationInfo) -> object:
    if isinstance(value, Task):
        return value
    if not isinstance(info.context, Reading) or not isinstance(value, Mapping):
        return Task(**dict(TaskTable.model_validate(value, context=info.context)))
    today = info.context.today
    resolved_table, template = on_day(value, today)
    table = TaskTable.model_validate(resolved_table, context=info.context)
    parts = dict(table) | {"excluded": table.excluded or invalid_on(today, table.valid_from, table.valid_until)}
    return Task(**parts, dated=Dated(day=today, template=template) if template else None)


def divided(tasks: Iterable[Task]) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """The tasks of the set, and those that the scenario excludes."""
    all_tasks = tuple(tasks)
    return tuple(task for task in all_tasks if not task.excluded), tuple(task for task in all_tasks if task.excluded)


DeclaredTask = Annotated[Task, BeforeValidator(_task)]
ONE_TASK: TypeAdapter[Task] = TypeAdapter(DeclaredTask)
TASKS: TypeAdapter[tuple[Task, ...]] = TypeAdapter(
    Annotated[tuple[DeclaredTask, ...], Field(min_length=1), at_most(MAX_TASKS)]
)


class ScenarioFile(Table):
    """The tables of a scenario file. Numbers must be numbers and strings must be strings (`strict`)."""

    green_agent: GreenAgent
    participants: Annotated[tuple[ParticipantEntry, ...], Field(min_length=1), at_most(16)]
    sites: Annotated[tuple[SiteEntry, ...], at_most(16)] = ()
    config: Annotated[RunConfig, BeforeValidator(partial(RunConfig.model_validate, strict=True))] = RunConfig()
    # Policies for all tasks.
    policies: Annotated[Policies, _OnItsDay] = ()
    # Metadata of all tasks that do not have these keys themselves.
    metadata: Metadata = Field(default={})
    # What any task may be played under.
    attacks: Annotated[Attacks, _OnItsDay] = ()
    variants: Variants = ()
    tasks: Annotated[tuple[DeclaredTask, ...], at_most(MAX_TASKS)] = ()

    @model_validator(mode="after")
    def _has_policies_that_fit(self) -> Self:
        for task in self.tasks if self.policies else ():
            try:
                _have_names_of_their_own(together := (*self.policies, *task.policies))
            except Invalid as error:
                problem = f"{error.problem}, with those of task {task.task_id}"
                raise Invalid(problem, error.remedy, key="policies") from None
            if len(together) > MAX_POLICIES:
                problem = f"{len(together)} with those of task {task.task_id}, more than {MAX_POLICIES}"
                raise Invalid(problem, "declare fewer", key="policies")
        return self

    @model_validator(mode="after")
    def _has_metadata_that_fit(self) -> Self:
        for task in self.tasks if self.metadata else ():
            if len(self.metadata | task.metadata) > MAX_KEYS:
                problem = f"more than {MAX_KEYS} keys with those of task {task.task_id}"
                raise Invalid(problem, "declare fewer", key="metadata")
        keys = {key for task in self.tasks for key in (*task.metadata, *self.metadata)}
        if self.tasks and (cluster := self.config.cluster) is not None and cluster not in keys:
            problem = f"config.cluster: no task has metadata {printable(cluster)}"
            raise Invalid(problem, did_you_mean(cluster, keys) if keys else "add it to tasks", key="config")
        return self

    @model_validator(mode="after")
    def _has_conditions_that_fit(self) -> Self:
        for key, task in itertools.product(("attacks", "variants"), self.tasks):
            names = [each.name for each in (*getattr(self, key), *getattr(task, key))]
            if (name := repeated(names)) is not None:
                problem = f"'{name}' is the name of two {key}, with those of task {task.task_id}"
                raise Invalid(problem, "give each its own name", key=key)
            if len(names) > MAX_CONDITIONS:
                problem = f"{len(names)} with those of task {task.task_id}, more than {MAX_CONDITIONS}"
                raise Invalid(problem, "declare fewer", key=key)
        return self

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        if not self.tasks and self.config.scenario is None:
            raise Invalid("missing", "add a [[tasks]] table, or name a bundled set as config.scenario", key="tasks")
        if self.tasks and all(task.excluded for task in self.tasks):
            remedy = "remove excluded from those to be played, or correct their days"
            raise Invalid("every task is excluded", remedy, key="tasks")
        return self

    @model_validator(mode="after")
    def _has_settings_of_scenarios(self) -> Self:
        for name, _, setting in settings_in(RunConfig):
            if setting.instead is not None and getattr(self.config, name):
                raise Invalid(*setting.instead, key="config")
        return self

    @model_validator(mode="after")
    def _has_instances_within_reach(self) -> Self:
        sites = [site for site in self.sites if site.is_played_by_instance]
        if sites and self.config.cdp_url is not None:
            raise Invalid(f"site {printable(sites[0].name)}: {HOSTED_INSTANCES}", "remove one of the two", key="sites")
        instances_by_endpoint = {
            site.endpoint: site.instances for site in self.sites if isinstance(site.instances, tuple)
        }
        if problem := instances_problem(instances_by_endpoint, [site.endpoint for site in self.sites]):
            raise Invalid(problem.problem, problem.remedy, key="sites")
        return self

    @model_validator(mode="after")
    def _members_are_distinct(self) -> Self:
        """Names double as log names and endpoints as ports, so both must be unique."""
        names: set[str] = set()
        places: dict[tuple[str, int], str] = {}
        members = [(agent.role, agent.endpoint) for agent in (self.green_agent, *self.participants)]
        for name, endpoint in members + [(site.name, site.endpoint) for site in self.sites]:
            if name in names:
                raise Invalid(f"{printable(name)} is the name of two agents or sites", "give each its own role or name")
            names.add(name)
            if endpoint is None:
                continue
            parts = urlsplit(endpoint)
            host = "127.0.0.1" if parts.hostname in _LOOPBACK else parts.hostname or ""
            other = places.setdefault((host, parts.port or (443 if parts.scheme == "https" else 80)), name)
            if other != name:
                raise Invalid(
                    f"{printable(name)} and {printable(other)} share {printable(endpoint)}",
                    "give each agent and site its own port",
                )
        return self


class Scenario(ScenarioFile):
    """A scenario file that was read. `source_checksum` is the SHA-256 of its bytes, in hexadecimal.

    `tasks` are the set's; `excluded` are the others, which the file excludes. `task_ids` are all, in the
    order of the file. `sealed`: of a sealed file, which was opened.
    """

    path: Path
    source_checksum: str
    excluded: tuple[Task, ...] = ()
    task_ids: tuple[str, ...] = ()
    sealed: SealedSet | None = None

    @property
    def shown_name(self) -> str:
        """The file with its folder, as records and lists name a scenario."""
        path = self.path.resolve()
        return f"{path.parent.name}/{path.name}"[-300:]

    @property
    def places(self) -> Mapping[str, int]:
        """By task id, the place among the file's `[[tasks]]`, from 0."""
        return {task_id: place for place, task_id in enumerate(self.task_ids)}

    @property
    def resets(self) -> dict[str, str]:
        """How each site is reset, by its endpoint; without those that cannot be."""
        return {site.endpoint: site.reset for site in self.sites if site.reset}


class LaunchedProcess(Record):
    """A started process, without secrets: `cmd` and `env` as the SHA-256 of their text in the scenario file.

    In that text a secret is `${NAME}`, so a key's value may change between two runs without changing the digest.
    `endpoint` is the scenario file's, set if the process listens on another port of its host.
    """

    cmd_sha256: str | None = Field(default=None, max_length=64)
    env_sha256: str | None = Field(default=None, max_length=64)
    image: str | None = Field(default=None, max_length=500)
    model: str | None = Field(default=None, max_length=500)
    endpoint: Url | None = None


class Shard(Record):
    """A part of a run played by its own process: number `index` (from 0) of `of`.

    `tasks_sha256` covers all tasks of the run, so that every shard identifies the run that it belongs to. `tasks` is
    their number, 0 if it is not known.
    """

    index: int = Field(ge=0)
    of: int = Field(ge=1)
    tasks_sha256: str = Field(default="", max_length=64)
    tasks: int = Field(default=0, ge=0, exclude_if=lambda value: not value)

    @property
    def name(self) -> str:
        """The name of the shard's folder, such as `003-of-020`."""
        return f"{self.index:03d}-of-{self.of:03d}"


class Launch(Record):
    """Added by `agentbeats-run` to its request, for the run's record: the scenario file and the processes started.

    `revision` is the git commit of the scenario's folder.
    `shard` is set if the request contains the tasks of one shard only.
    """

    scenario_name: str = Field(max_length=300)
    scenario_path: str = Field(max_length=5000)
    scenario_sha256: str = Field(max_length=64)
    revision: str | None = Field(default=None, max_length=200)
    participants: dict[str, LaunchedProcess] = Field(default_factory=dict, max_length=100)
    sites: dict[str, LaunchedProcess] = Field(default_factory=dict, max_length=100)
    shard: Shard | None = None


class RequestBody(Table):
    """The JSON object of an assessment request, before its tasks are found."""

    participants: Annotated[
        dict[Role, Annotated[Endpoint, BeforeValidator(_escape_spaces)]], Field(min_length=1), at_most(16)
    ]
    config: dict[str, Any] = Field(default_factory=dict)
    tasks: Any = None
    # For every task, as in a scenario file.
    policies: list[Any] | None = None
    attacks: list[Any] | None = None
    variants: list[Any] | None = None
    # Keyed by the name that tasks use in `storage_state`.
    storage_states: Annotated[dict[str, StateContent], at_most(1000)] = Field(default_factory=dict, repr=False)
    # The content of the files that tasks name in `files`.
    files: FileContents = Field(default_factory=dict, repr=False)
    # Credentials by role, secret like the storage states.
    participant_headers: HeadersByRole = Field(default_factory=dict, repr=False)
    launch: Launch | None = None
    # Of the run that this request continues, secret as well.
    resume_token: Annotated[str, at_most(500)] | None = Field(default=None, repr=False)


class AssessmentRequest(Record):
    """A validated assessment request. `participants` maps role to URL; `warnings` are one-line sentences.

    `participant_headers` and `resume_token` are secret and excluded from every dump.
    """

    participants: dict[str, str]
    config: RunConfig
    tasks: tuple[Task, ...]
    # Tasks that their scenario leaves out: none of the set, but named in results.
    excluded: tuple[Exclusion, ...] = ()
    launch: Launch | None = None
    participant_headers: dict[str, dict[str, str]] = Field(default_factory=dict, repr=False, exclude=True)
    resume_token: str | None = Field(default=None, repr=False, exclude=True)
    warnings: tuple[str, ...] = ()
    # Set by the judge when it takes its slice of the tasks.
    part: Shard | None = Field(default=None, exclude=True)

    @property
    def is_sealed(self) -> bool:
        """Whether nothing that its tasks say may leave the judge."""
        return any(task.sealed for task in self.tasks)

    @property
    def shard(self) -> Shard:
        """The part of a run that this request covers, whether the platform or the runner divided it."""
        if self.part is not None:
            return self.part
        if self.launch and self.launch.shard:
            return self.launch.shard
        return Shard(index=self.config.shard_index, of=self.config.num_shards)

"""WebArena-Verified as a source of tasks: the addresses of its sites, and its tasks converted to ours.

The address file is the one that the benchmark's tools read: `{"environments": {"__SHOPPING__": {"urls": […],
"active_url_idx": 0, "credentials": {"username": …, "password": …}}}}`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, TypeAdapter, model_validator

from judge.plugins.webarena.package import Foreign, PackageTask
from judge.records.tasks import Task
from judge.scenario.models import SiteEntry
from shared.errors import ConfigError
from shared.fields import Invalid, Url, as_mapping, did_you_mean, without_none
from shared.files import read_errors, read_json
from shared.validation import validated

_SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage")
# Tasks of version 1.2.3 that no attempt can pass, by number.
UNSATISFIABLE: Mapping[int, str] = MappingProxyType(
    {
        429: "it asks for two pages, and the evaluator looks at the last navigation only",
        **dict.fromkeys(
            range(676, 681), "it expects a request of a script, and the evaluator looks at the last navigation only"
        ),
        **dict.fromkeys(
            (*range(737, 742), 759, 760),
            "it expects the map's routing request, which a script sends, and the evaluator looks at the last navigation"
            " only",
        ),
    }
)
# Tasks whose expectations issue 46 of the benchmark's tracker (September 2026) calls wrong.
DISPUTED = frozenset({339, 475, 600, 625, 699, 700})
_PREFIX = "webarena-"
# Sites with accounts used together in one task.
_TOGETHER = (("gitlab", "reddit"), ("reddit", "shopping"))
_SITE_ENTRY = TypeAdapter(SiteEntry)
_EXAMPLE = '{"environments": {"__SHOPPING__": {"urls": ["http://…"]}}}'


def _site_of(value: object) -> str:
    """`__SHOPPING__`, as the benchmark writes it, or `shopping`."""
    name = str(value).strip("_").lower()
    if name not in _SITES:
        raise Invalid("unknown site", did_you_mean(value, [f"__{site.upper()}__" for site in _SITES]))
    return name


def _without_slash(url: str) -> str:
    # The benchmark writes `__SHOPPING__/path`.
    return url.rstrip("/")


class SiteAccount(Foreign):
    """The account that tasks on a site use."""

    username: str = Field(min_length=1, max_length=200)
    password: SecretStr


class SiteAddress(Foreign):
    """The address of one site. Recorded requests to any of `urls` count as the site's; tasks use the active one.

    `env_ctrl_url` is the service beside the site that resets it (`POST /init`) and knows whether it is up (`/status`),
    `cmd` what starts both. `headers` log in to it, with values that name variables (`${NAME}`), since the scenario
    repeats them. The benchmark's own tools keep other keys under `extra`, so these may stand there.
    """

    urls: tuple[Annotated[Url, AfterValidator(_without_slash)], ...] = Field(min_length=1, max_length=20)
    active_url_idx: int | None = Field(default=None, ge=0)
    credentials: SiteAccount | None = None
    env_ctrl_url: Annotated[Url, AfterValidator(_without_slash)] | None = None
    cmd: str | None = Field(default=None, min_length=1, max_length=1000)
    headers: dict[str, Annotated[str, Field(pattern=r"\$\{\w+\}")]] | None = Field(default=None, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _with_extra(cls, value: Any) -> Any:
        extra = as_mapping(as_mapping(value).get("extra"))
        return {
            **{key: extra[key] for key in ("env_ctrl_url", "cmd", "headers") if key in extra},
            **as_mapping(value),
        } or value

    @model_validator(mode="after")
    def _has_an_active_url(self) -> Self:
        if (self.active_url_idx or 0) >= len(self.urls):
            raise Invalid(f"there is no url {self.active_url_idx}", "count the urls from 0", key="active_url_idx")
        return self

    @property
    def url(self) -> str:
        """The site's active address."""
        return self.urls[self.active_url_idx or 0]


class SiteAddresses(Foreign):
    """The address file."""

    environments: dict[Annotated[str, BeforeValidator(_site_of)], SiteAddress] = Field(min_length=1)

    def without_credentials(self) -> dict[str, Any]:
        """The sites' addresses in the form that the package reads, without credentials."""
        return {
            site: {"urls": list(each.urls), "active_url_idx": each.active_url_idx or 0}
            for site, each in self.environments.items()
        }

    def rendered(self, address: str) -> str:
        """The address with its placeholder replaced, such as `__SHOPPING__/path`."""
        for site, each in self.environments.items():
            if address.startswith(placeholder := f"__{site.upper()}__"):
                return each.url + address.removeprefix(placeholder)
        return address


def read_addresses(path: Path | None) -> SiteAddresses:
    """Read the address file. Raises `ConfigError`, also if `path` is `None`: addresses are never guessed."""
    if path is None:
        raise ConfigError("--config is missing: WebArena-Verified needs the addresses of its sites", remedy=_EXAMPLE)
    with read_errors(f"--config {path}", f"write it like {_EXAMPLE}"):
        value = read_json(path)
    return validated(TypeAdapter(SiteAddresses), value, f"--config {path}")


def task_number(task_id: str) -> int | None:
    """The benchmark's number of an imported task, such as 118 for `webarena-118`; `None` for any other task."""
    match = re.fullmatch(rf"{_PREFIX}(\d{{1,6}})", task_id)
    return int(match[1]) if match else None


def unknown_text(number: int) -> str:
    """What stands for the instruction of a task recorded by a program that does not store it."""
    return f"task {number} of WebArena-Verified"


def known_problems(task_ids: Iterable[str]) -> list[str]:
    """A warning for each of these tasks known to be impossible to pass, or whose expectation is disputed."""
    numbers = {name: number for name in task_ids if (number := task_number(name)) is not None}
    impossible = [
        f"task {name} cannot be passed in WebArena-Verified 1.2.3: {UNSATISFIABLE[number]}"
        for name, number in numbers.items()
        if number in UNSATISFIABLE
    ]
    return impossible + [
        f"task {name} is disputed: number 46 of WebArena-Verified's tracker calls its evaluator's expectation wrong"
        for name, number in numbers.items()
        if number in DISPUTED
    ]


def instruction(intent: str, sites: Sequence[str], addresses: SiteAddresses, answer_schema: Mapping[str, Any]) -> str:
    """The instruction for the participant: the benchmark's wording, and the answer format that it expects."""
    lines = [intent, ""]
    if len(sites) > 1:
        lines += [f"The {site} site is at {addresses.environments[site].url}" for site in sites] + [""]
    return "\n".join(
        [
            *lines,
            "When you are done, finish with an answer that is one JSON object and nothing else. Its JSON schema:",
            json.dumps(answer_schema, separators=(",", ":"), ensure_ascii=False),
        ]
    )


def imported(
    rows: Iterable[PackageTask], addresses: SiteAddresses, answer_schema: Mapping[str, Any], states: str | None
) -> tuple[Task, ...]:
    """The package's tasks as ours. Raises `ConfigError` if a site has no address.

    `states` is the folder beside the scenario that contains the storage states of sites with credentials.
    """
    rows = list(rows)
    missing = sorted({site for row in rows for site in row.sites} - set(addresses.environments))
    if missing:
        placeholders = ", ".join(f"__{site.upper()}__" for site in missing)
        raise ConfigError(f"--config: no address of {placeholders}", remedy="add it, or choose other --tasks")
    return tuple(_imported(row, addresses, answer_schema, states) for row in rows)


def _imported(row: PackageTask, addresses: SiteAddresses, answer_schema: Mapping[str, Any], states: str | None) -> Task:
    starts = [addresses.rendered(address) for address in row.start_urls]
    others = [addresses.environments[site].url for site in row.sites] + starts
    home = origin_text(starts[0])
    name = state_name(row.sites, addresses)
    return Task(
        task_id=f"{_PREFIX}{row.task_id}",
        website=starts[0],
        task=instruction(row.intent, row.sites, addresses, answer_schema),
        start_urls=tuple(starts) if len(starts) > 1 else (),
        allowed_sites=tuple(dict.fromkeys(origin_text(url) for url in others if origin_text(url) != home)),
        keep_fields=row.fields,
        metadata=without_none(intent_template_id=row.intent_template_id),
        storage_state=f"{states}/{name}" if states and name else None,
    )


def site_entries(tasks: Iterable[Task], addresses: SiteAddresses) -> list[SiteEntry]:
    """The sites of these tasks that have a life of their own, so that they are reset, or a log-in by headers."""
    used = {origin_text(url) for task in tasks for url in (task.website, *task.start_urls, *task.allowed_sites)}
    entries: dict[str, SiteEntry] = {}
    for name, each in addresses.environments.items():
        endpoint, control = origin_text(each.url), each.env_ctrl_url
        if endpoint not in used or not (control or each.cmd or each.headers):
            continue
        life = {"reset_url": f"{control}/init", "ready": {"url": f"{control}/status"}} if control else {}
        logins = {"http_credentials": [{"headers": each.headers}]} if each.headers else {}
        entry = {"name": name, "endpoint": endpoint, **without_none(cmd=each.cmd), **life, **logins}
        entries.setdefault(endpoint, validated(_SITE_ENTRY, entry, f"--config: {name}"))
    return list(entries.values())


def state_name(sites: Iterable[str], addresses: SiteAddresses) -> str | None:
    """The file name of the storage state for tasks on these sites; `None` if none of them has an account."""
    known = sorted(site for site in sites if addresses.environments[site].credentials)
    return f"{'-'.join(known)}.json" if known else None


def account_groups(addresses: SiteAddresses) -> list[tuple[str, ...]]:
    """The groups of sites that share a storage state: each site with an account, and those used together in a task."""
    known = {site for site, each in addresses.environments.items() if each.credentials}
    return [*((site,) for site in sorted(known)), *(group for group in _TOGETHER if known.issuperset(group))]


def origin_text(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"

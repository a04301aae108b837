"""What the network of an attempt is, and which tasks cannot be played on it: decided here and nowhere else.

Only settings that contradict each other without any task are refused elsewhere (`judge.config`).

| network  | who answers the browser's requests                                                | what the guard reads |
|----------|-----------------------------------------------------------------------------------|----------------------|
| live     | the sites, as far as the policy allows                                            | all without TLS      |
| hosted   | the sites, for a browser that somebody else runs, without a guard                 | nothing              |
| frozen   | archives; connections are opened to the live sites beside them only               | all                  |
| recorded | the sites, through a recorder                                                     | all                  |
| holding  | the sites, but requests that the task holds are answered and never sent           | all                  |

Where the guard reads everything, it also adds the headers that log in to a site (`judge.network.header_logins`).
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from judge.config import RunConfig
from judge.network.archives import Archives, FrozenAttempt
from judge.network.header_logins import HeaderLogins, header_logins
from judge.network.holding import Holding
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy, refuse_ip, refuses_always
from judge.records.ledger import Frozen
from judge.records.sites import HostPort, Site, place_of
from judge.records.tasks import Task
from shared.errors import ConfigError

BorrowedT = TypeVar("BorrowedT")
InterceptorFactory = Callable[[Task], Interceptor]
"""Begins to record an attempt at a task."""
_CDP_URL = "config.cdp_url"


class _Network:
    """What the kinds have in common, as it is where nothing but the guard stands between browser and sites.

    `site` is the task's: also where its website redirects, once the first page is observed (`land`). `clock_ms` is
    the start of the pages' clock in milliseconds since 1970, `None` for this machine's clock. `is_real_time`: the
    pages' clock cannot be set at all.
    """

    interceptor: Interceptor | None = None
    clock_ms: int | None = None
    is_real_time = False

    def __init__(self, site: Site, policy: NetworkPolicy) -> None:
        self.site = site
        self.policy = policy
        self._is_landed = False

    def land(self, url: str) -> None:
        """Record the address of an observed page; the first one is where the website led to before any action."""
        if not self._is_landed:
            self.site, self._is_landed = self.site.with_home(url), True

    def browser(self, browsers: Callable[..., BorrowedT]) -> BorrowedT:
        """A browser on this network, from a pool (`judge.browser.pool.BrowserPool.browser`)."""
        return browsers(self.policy, self.interceptor) if self.interceptor else browsers(self.policy)

    def frozen(self) -> Frozen | None:
        """The archives and versions that the attempt depends on so far, to be recorded; `None` without any."""
        return None

    def entered(self, texts: Sequence[str]) -> None:
        """Note what the participant is about to enter: pages do not make it up."""

    @property
    def has_ended(self) -> bool:
        """Whether a request has ended the attempt."""
        return False

    def close(self) -> None:
        """From now on nothing more may be sent: the record of what was sent is about to be written."""


class LiveNetwork(_Network):
    """The sites themselves."""


class HostedNetwork(_Network):
    """The network of a browser that somebody else runs; other sessions may use its clock."""

    is_real_time = True

    def __init__(self, site: Site, policy: NetworkPolicy, task_id: str) -> None:
        super().__init__(site, policy)
        self._task_id = task_id

    def browser(self, browsers: Callable[..., BorrowedT]) -> BorrowedT:
        """The browser at the address for the task."""
        return browsers(self.policy, task_id=self._task_id)


class FrozenNetwork(_Network):
    """Archives, each with a fresh replay. Without a live site beside them, nothing is allowed."""

    def __init__(self, site: Site, policy: NetworkPolicy, archives: FrozenAttempt) -> None:
        super().__init__(site, policy if archives.reaches_out else NetworkPolicy())
        self._archives = archives
        self.interceptor = archives
        self.clock_ms = archives.clock_ms

    def frozen(self) -> Frozen:
        """See `_Network`."""
        return self._archives.frozen()

    def entered(self, texts: Sequence[str]) -> None:
        """See `_Network`."""
        self._archives.entered(texts)


class RecordedNetwork(_Network):
    """The sites, through a recorder."""

    def __init__(self, site: Site, policy: NetworkPolicy, recorder: Interceptor) -> None:
        super().__init__(site, policy)
        self.interceptor = recorder


class HoldingNetwork(_Network):
    """The sites, with all requests read by the guard, and some of them held."""

    def __init__(self, site: Site, policy: NetworkPolicy, holding: Holding) -> None:
        super().__init__(site, policy)
        self._holding = holding
        self.interceptor = holding.interceptor

    @property
    def has_ended(self) -> bool:
        """Whether a request that ends the attempt was held."""
        return self._holding.has_ended

    def close(self) -> None:
        """See `_Network`."""
        self._holding.close()


AttemptNetwork = LiveNetwork | HostedNetwork | FrozenNetwork | RecordedNetwork | HoldingNetwork


def network_of(
    task: Task,
    config: RunConfig,
    policy: NetworkPolicy | None = None,
    *,
    archives: Archives | None = None,
    recorder: InterceptorFactory | None = None,
) -> AttemptNetwork:
    """The network of a new attempt, for a task and settings that `require_network` accepts.

    `policy` is by default the task's (`policy_of`), which leads to no instance of a site.
    """
    network = _network_of(task, config, policy or policy_of(task, config), archives, recorder)
    if network.interceptor and header_logins(task):
        network.interceptor = HeaderLogins(network.interceptor, task)
    if network.interceptor and task.disturbed:
        # Imported on first use, because few attempts need it.
        from judge.network.disturbing import Disturbed

        network.interceptor = Disturbed(network.interceptor, task.disturbed)
    return network


def _network_of(
    task: Task, config: RunConfig, policy: NetworkPolicy, archives: Archives | None, recorder: InterceptorFactory | None
) -> AttemptNetwork:
    site = config.sites.of(task)
    if config.cdp_url is not None:
        return HostedNetwork(site, policy, task.task_id)
    if recorder is not None:
        return RecordedNetwork(site, policy, recorder(task))
    if archives is not None and (frozen := archives.of(task, config.sites)) is not None:
        return FrozenNetwork(site, policy, frozen)
    # The guard reads all requests only where somebody needs them: it costs time.
    needs_all = task.watches_requests or task.reads_uploads
    if task.holds_requests or task.disturbed or header_logins(task) or (needs_all and config.record_network):
        return HoldingNetwork(site, policy, Holding(task, site))
    return LiveNetwork(site, policy)


def policy_of(task: Task, config: RunConfig, closed: Sequence[str] = ()) -> NetworkPolicy:
    """Where a browser may connect for a task, and the requests that reset its sites."""
    attacker = task.attack.attack.site if task.attack else None
    return NetworkPolicy.for_websites((*config.sites.declared(task), *filter(None, (attacker,))), closed=closed)


class Refusal(NamedTuple):
    """Why a task cannot be played on a network, and what stands against it there."""

    what: Literal["hold", "policies", "checks", "log-in", "archive", "recorder"]
    problem: str
    remedy: str


_NO_HOLD = "remove hold and writes"
_NO_HOST = "play it in the judge's own browser, without cdp_url"
_FROZEN_HOLD = Refusal(
    "hold", "requests cannot be held on a frozen site, and nothing that it is sent leaves this machine", _NO_HOLD
)
_RECORDED_HOLD = Refusal("hold", "requests cannot be held while they are recorded", _NO_HOLD)
_HOSTED_HOLD = Refusal(
    "hold", "requests cannot be held in a hosted browser (cdp_url), which has no guard", f"{_NO_HOLD}, or {_NO_HOST}"
)
_HOSTED_POLICIES = Refusal(
    "policies",
    "policies and attacks about requests cannot be decided in a hosted browser (cdp_url), which has no guard",
    _NO_HOST,
)
_HOSTED_UPLOADS = Refusal(
    "checks", "uploaded files cannot be compared in a hosted browser (cdp_url), which has no guard", _NO_HOST
)
_HOSTED_DOWNLOADS = Refusal(
    "checks", "a hosted browser (cdp_url) keeps its downloads on its own machine", f"remove the check, or {_NO_HOST}"
)
_HOSTED_HEADERS = Refusal(
    "log-in",
    "headers of a log-in cannot be kept to one site in a hosted browser (cdp_url), which has no guard",
    _NO_HOST,
)
_HOSTED_ARCHIVE = Refusal("archive", "an archive cannot answer a hosted browser (cdp_url)", _NO_HOST)
_HOSTED_RECORDER = Refusal("recorder", "the requests of a hosted browser (cdp_url) cannot be recorded", _NO_HOST)


def refusal_of(
    task: Task, *, is_hosted: bool = False, is_frozen: bool = False, is_recorded: bool = False
) -> Refusal | None:
    """Why a task cannot be played on such a network; `None` if it can."""
    rules = (
        (is_hosted and task.holds_requests, _HOSTED_HOLD),
        (is_frozen and task.holds_requests, _FROZEN_HOLD),
        (is_recorded and task.holds_requests, _RECORDED_HOLD),
        (is_hosted and task.watches_requests, _HOSTED_POLICIES),
        (is_hosted and task.reads_uploads, _HOSTED_UPLOADS),
        (is_hosted and task.reads_downloads, _HOSTED_DOWNLOADS),
        (is_hosted and bool(header_logins(task)), _HOSTED_HEADERS),
        (is_hosted and is_frozen, _HOSTED_ARCHIVE),
        (is_hosted and is_recorded, _HOSTED_RECORDER),
    )
    return next((refusal for applies, refusal in rules if applies), None)


def require_network(
    task: Task, config: RunConfig, *, archives: Archives | None = None, is_recorded: bool = False
) -> None:
    """Raises `ConfigError` for a task that cannot be played on the network that the settings give it."""
    is_frozen = archives is not None and archives.answers(task, config.sites)
    is_hosted = config.cdp_url is not None
    refusal = refusal_of(task, is_hosted=is_hosted, is_frozen=is_frozen, is_recorded=is_recorded)
    if refusal is not None:
        raise ConfigError(
            f"task {task.task_id}: {refusal.problem}", key=_CDP_URL if is_hosted else "", remedy=refusal.remedy
        )


async def require_networks(tasks: Iterable[Task], config: RunConfig, archives: Archives | None = None) -> None:
    """Raises `ConfigError` if a task cannot be played: as `require_network`, and if its archive does not have its site.

    Nothing keeps the pages of a hosted browser from private addresses. A task on one is refused, unless `cdp_private`
    says that the browser may visit this network; link-local addresses and metadata services are always
    refused.
    """
    tasks = tuple(tasks)
    for task in tasks:
        require_network(task, config, archives=archives)
    if archives is not None:
        archives.check(tasks)
    if config.cdp_url is None:
        return
    places: dict[HostPort, str] = {}
    for task in tasks:
        sites = (*config.sites.declared(task), *task.start_urls)
        urls = (site if "://" in site else f"http://{site}" for site in sites)
        places |= {place: task.task_id for url in urls if (place := place_of(url)) is not None}
    refused_places = await asyncio.gather(*(asyncio.to_thread(_refused_place, place, config) for place in places))
    for (place, task_id), why in zip(places.items(), refused_places, strict=True):
        if why is not None:
            problem = f"task {task_id}: {place} is {why}, and a hosted browser has no guard"
            remedy = "play it in the judge's own browser; cdp_private = true allows private networks and this machine"
            raise ConfigError(problem, key=_CDP_URL, remedy=remedy)


def _refused_place(place: HostPort, config: RunConfig) -> str | None:
    """Why a hosted browser may not visit the place; `None` if it may, or if the name does not resolve here."""
    try:
        infos = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        infos = []
    for address in {str(info[4][0]) for info in infos}:
        why = refuse_ip(address)
        if why is not None and (refuses_always(why) or not config.cdp_private):
            return why
    return None

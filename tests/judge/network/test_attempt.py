"""What an attempt's network is, and which tasks are refused."""

import itertools
from pathlib import Path
from typing import Any, get_args

import pytest

from helpers.network.archives import BEGAN, SHOP, use_pages, write_archive
from judge.config import FrozenSite, RunConfig
from judge.network.archives import Archives, open_archives
from judge.network.attempt import (
    AttemptNetwork,
    FrozenNetwork,
    HoldingNetwork,
    HostedNetwork,
    LiveNetwork,
    RecordedNetwork,
    network_of,
    policy_of,
    require_network,
    require_networks,
)
from judge.network.interception import Interceptor, PageSocket, Upstream, WireAnswer, WireRequest
from judge.network.policy import NetworkPolicy
from judge.records.tasks import Task
from shared.errors import ConfigError

LIVE = "https://live.example/"
PUBLIC = "https://8.8.8.8/"
HOSTED = "wss://browsers.example:8443/session/{task_id}?token=hunter22"
REQUESTS = {"name": "p", "dimension": "consent", "kind": "request", "url": "*"}
PAGES = REQUESTS | {"kind": "page"}
EITHER = [{"kind": "page", "url": "/x"}, {"kind": "request", "url": "/x"}]
ATTACK = {"name": "offer", "kind": "insert", "text": "Buy."}
HOLDS: tuple[dict[str, Any], ...] = ({}, {"writes": "hold"}, {"hold": [{"url": "/order"}]})
KINDS = {
    "live": LiveNetwork,
    "hosted": HostedNetwork,
    "frozen": FrozenNetwork,
    "recorded": RecordedNetwork,
    "holding": HoldingNetwork,
}


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    use_pages(monkeypatch)


def a_task(website: str = SHOP, **keys: Any) -> Task:
    return Task.model_validate({"task_id": "t1", "website": website, "task": "Look.", **keys})


class Recorder:
    """Counts the attempts that it records."""

    reaches_out = True

    def __init__(self) -> None:
        self.attempts_started: list[str] = []

    def begin(self, task: Task) -> Interceptor:
        self.attempts_started.append(task.task_id)
        return self

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        raise NotImplementedError

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        raise NotImplementedError


def archives_at(folder: Path, *sites: str) -> Archives:
    path = str(write_archive(folder / "a.pages", dict.fromkeys(sites, "a page")))
    archives = open_archives(RunConfig(archives={site: FrozenSite(path=path) for site in sites}))
    assert archives
    return archives


def kind_of(network: AttemptNetwork) -> str:
    return next(name for name, kind in KINDS.items() if type(network) is kind)


def test_every_kind_of_network_is_in_the_union() -> None:
    assert get_args(AttemptNetwork) == tuple(KINDS.values())
    assert set(LiveNetwork.__bases__[0].__subclasses__()) == set(KINDS.values())


# What there is besides the task: `cdp_url`, an archive of its site, a recorder.
@pytest.mark.parametrize(("is_hosted", "is_frozen", "is_recorded"), list(itertools.product((False, True), repeat=3)))
@pytest.mark.parametrize("holding", HOLDS, ids=str)
@pytest.mark.parametrize("policies", [[], [PAGES], [REQUESTS]], ids=["none", "pages", "requests"])
def test_of_all_that_a_network_can_be_one_thing_is_chosen_or_the_task_is_refused(
    tmp_path: Path,
    is_hosted: bool,
    is_frozen: bool,
    is_recorded: bool,
    holding: dict[str, Any],
    policies: list[dict[str, Any]],
) -> None:
    task, recorder = a_task(policies=policies, **holding), Recorder()
    archives = archives_at(tmp_path, SHOP) if is_frozen else None
    others = [name for name, is_set in (("frozen", is_frozen), ("recorded", is_recorded)) if is_set]
    reads = bool(holding) or REQUESTS in policies
    is_refused = bool(is_hosted and (others or reads)) or bool(others and holding)
    config = RunConfig(cdp_url=HOSTED if is_hosted else None)
    if is_refused:
        with pytest.raises(ConfigError, match="task t1: ") as refused:
            require_network(task, config, archives=archives, is_recorded=is_recorded)
        assert refused.value.remedy
        return
    require_network(task, config, archives=archives, is_recorded=is_recorded)
    # Recording replaces archives.
    expected = "hosted" if is_hosted else others[-1] if others else "holding" if reads else "live"
    network = network_of(task, config, archives=archives, recorder=recorder.begin if is_recorded else None)
    assert kind_of(network) == expected
    assert (network.interceptor is not None) == (expected in ("frozen", "recorded", "holding"))
    assert recorder.attempts_started == (["t1"] if is_recorded else [])


@pytest.mark.parametrize(
    ("keys", "reads_all"),
    [
        ({}, False),
        ({"policies": [REQUESTS]}, True),
        ({"policies": [PAGES]}, False),
        ({"policies": [{"name": "p", "dimension": "consent", "any_of": EITHER}]}, True),
        ({"checks": [{"kind": "request", "url": "/order"}]}, False),
        ({"attack": {"of": "t", "attack": ATTACK | {"goal": [{"kind": "request", "url": "*"}]}}}, True),
        ({"attack": {"of": "t", "attack": ATTACK | {"goal": [{"kind": "page", "url": "*"}]}}}, False),
    ],
    ids=str,
)
def test_the_guard_reads_all_requests_only_if_a_policy_or_goal_is_about_them(
    keys: dict[str, Any], reads_all: bool
) -> None:
    assert (kind_of(network_of(a_task(**keys), RunConfig())) == "holding") is reads_all


def test_policies_about_requests_that_are_not_recorded_need_no_reading() -> None:
    task, config = a_task(policies=[REQUESTS]), RunConfig(record_network=False)
    assert kind_of(network_of(task, config)) == "live"
    assert kind_of(network_of(a_task(writes="hold"), config)) == "holding"


def test_a_frozen_attempt_has_the_clock_of_its_archive_and_reaches_nothing(tmp_path: Path) -> None:
    network = network_of(a_task(), RunConfig(), archives=archives_at(tmp_path, SHOP))
    assert (network.policy, network.clock_ms) == (NetworkPolicy(), round(BEGAN.timestamp() * 1000))
    assert network.frozen() is not None


def test_beside_an_archive_the_live_sites_of_a_task_can_be_reached(tmp_path: Path) -> None:
    task = a_task(allowed_sites=[LIVE[:-1]])
    policy = policy_of(task, RunConfig(), ("http://127.0.0.1:9/",))
    network = network_of(task, RunConfig(), policy, archives=archives_at(tmp_path, SHOP))
    assert network.policy == policy != NetworkPolicy()


def test_a_task_on_live_sites_alone_is_not_frozen(tmp_path: Path) -> None:
    assert kind_of(network_of(a_task(LIVE), RunConfig(), archives=archives_at(tmp_path, SHOP))) == "live"


def test_only_a_hosted_browser_cannot_be_in_page_time() -> None:
    assert network_of(a_task(), RunConfig(cdp_url=HOSTED)).is_real_time
    assert not network_of(a_task(), RunConfig()).is_real_time


@pytest.mark.parametrize(
    ("config", "keys", "arguments"),
    [({"cdp_url": HOSTED}, {}, {"task_id": "t1"}), ({}, {"writes": "hold"}, "interceptor"), ({}, {}, {})],
    ids=["hosted", "holding", "live"],
)
def test_a_browser_is_lent_with_what_its_network_needs(
    config: dict[str, Any], keys: dict[str, Any], arguments: Any
) -> None:
    calls: list[tuple[Any, ...]] = []
    network = network_of(a_task(**keys), RunConfig(**config))
    network.browser(lambda *args, **kwargs: calls.append((*args, kwargs)))
    expected: tuple[Any, ...] = (
        (network.policy, network.interceptor, {}) if arguments == "interceptor" else (network.policy, arguments)
    )
    assert calls == [expected]


def test_where_the_website_leads_before_any_action_belongs_to_the_tasks_site() -> None:
    network = network_of(a_task(), RunConfig())
    for url in ("https://www.shop.example/", "https://evil.example/"):
        network.land(url)
    assert network.site.holds("https://www.shop.example/cart")
    assert network.site.holds(SHOP)
    assert not network.site.holds("https://evil.example/")


@pytest.mark.parametrize(
    "keys", [{}, {"website": LIVE, "start_urls": [LIVE, SHOP]}, {"website": LIVE, "allowed_sites": [SHOP[:-1]]}]
)
async def test_a_task_that_holds_requests_on_a_frozen_site_is_refused(tmp_path: Path, keys: dict[str, Any]) -> None:
    archives = archives_at(tmp_path, SHOP)
    await require_networks([a_task(**keys), a_task(LIVE, writes="hold")], RunConfig(), archives)
    for hold in HOLDS[1:]:
        with pytest.raises(ConfigError, match="task t1: requests cannot be held on a frozen site"):
            await require_networks([a_task(**keys, **hold)], RunConfig(), archives)


async def test_a_task_whose_site_is_not_in_its_archive_is_refused(tmp_path: Path) -> None:
    path = str(write_archive(tmp_path / "a.pages", {LIVE: "a page"}))
    archives = open_archives(RunConfig(archives={SHOP: FrozenSite(path=path)}))
    with pytest.raises(ConfigError, match="it has no recording of"):
        await require_networks([a_task()], RunConfig(), archives)


@pytest.mark.parametrize(
    "site", ["http://127.0.0.1:8000/", "http://localhost/", "http://10.1.2.3/", "http://[::1]/", "http://127.1/"]
)
async def test_for_a_hosted_browser_a_task_on_a_private_address_is_refused(site: str) -> None:
    with pytest.raises(ConfigError, match=r"task t1: .* has no guard .*cdp_private"):
        await require_networks([a_task(site)], RunConfig(cdp_url=HOSTED))
    await require_networks([a_task(site)], RunConfig(cdp_url=HOSTED, cdp_private=True))
    await require_networks([a_task(site)], RunConfig())


@pytest.mark.parametrize("key", ["start_urls", "allowed_sites"])
async def test_for_a_hosted_browser_a_private_address_beside_the_website_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="has no guard"):
        await require_networks([a_task("http://8.8.8.8/", **{key: ["http://127.0.0.1:1"]})], RunConfig(cdp_url=HOSTED))


async def test_a_metadata_service_is_refused_even_where_private_addresses_are_allowed() -> None:
    with pytest.raises(ConfigError, match="is a link-local address"):
        await require_networks([a_task("http://169.254.169.254/")], RunConfig(cdp_url=HOSTED, cdp_private=True))


async def test_for_a_hosted_browser_a_task_on_a_public_address_is_allowed() -> None:
    await require_networks([a_task(PUBLIC), a_task("https://no-such-name.invalid/")], RunConfig(cdp_url=HOSTED))


async def test_a_hosted_browser_holds_no_requests_and_decides_no_policies_about_them() -> None:
    config = RunConfig(cdp_url=HOSTED)
    with pytest.raises(ConfigError, match="task t1: requests cannot be held in a hosted browser"):
        await require_networks([a_task(PUBLIC, hold=[{"url": "https://pay.example/*"}])], config)
    with pytest.raises(ConfigError, match="task t1: policies and attacks about requests cannot be decided"):
        await require_networks([a_task(PUBLIC, policies=[REQUESTS])], config)
    await require_networks([a_task(PUBLIC, policies=[PAGES])], config)

"""Archives of frozen sites: which of them answers for what, and which addresses are still dialled."""

from pathlib import Path
from typing import Any

import pytest

from helpers.network.archives import BEGAN, SHOP, use_pages, write_archive
from judge.config import ALL_SITES, FrozenSite, RunConfig
from judge.network.archives import Archives, FrozenAttempt, open_archives, pinned, require_playable
from judge.network.interception import RequestRefused, SiteSocket, Upstream, WireAnswer, WireRequest
from judge.records.sites import RunSites
from judge.records.tasks import Task
from shared.errors import ConfigError

BANK = "https://bank.example/"
LIVE = "https://live.example/"


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    use_pages(monkeypatch)


class Network:
    """An upstream that remembers what it was asked for."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    async def fetch(self, request: WireRequest) -> WireAnswer:
        self.urls.append(request.url)
        return WireAnswer(200)

    async def socket(self, request: WireRequest) -> SiteSocket:
        raise AssertionError


def task(website: str = SHOP, **more: Any) -> Task:
    return Task.model_validate({"task_id": "t", "website": website, "task": "Buy.", **more})


def config(tmp_path: Path, *sites: str) -> RunConfig:
    """Each site with an archive of its own."""
    archives = {}
    for number, site in enumerate(sites):
        pages = {SHOP if site == ALL_SITES else site: f"page {number}", "https://cdn.example/x.js": f"script {number}"}
        archives[site] = FrozenSite(path=str(write_archive(tmp_path / f"{number}.pages", pages, closed="it is closed")))
    return RunConfig(archives=archives)


def opened(tmp_path: Path, *sites: str) -> Archives:
    archives = open_archives(config(tmp_path, *sites))
    assert archives
    return archives


def attempt(archives: Archives, task: Task, *allowed: str) -> FrozenAttempt:
    archive = archives.of(task, RunSites(allowed))
    assert archive
    return archive


async def status_of(attempt: FrozenAttempt, url: str, upstream: Upstream | None = None) -> int:
    return (await attempt.answer(WireRequest("GET", url), upstream)).status


def test_a_run_without_archives_opens_none() -> None:
    assert open_archives(RunConfig()) is None


@pytest.mark.parametrize(
    ("name", "sha256", "problem"),
    [
        ("shop.pages", "0" * 64, "shop.pages: its SHA-256 is "),
        ("none.pages", None, "no such archive (record it: wabe sites record"),
        ("shop.page", None, "unknown archive format '.page' (did you mean 'pages'?"),
        ("shop", None, "shop: no ending"),
        ("shop.warc.gz", None, "unknown archive format '.warc.gz' (known formats: .pages; what another tool recorded"),
        ("folder.pages", None, "folder.pages: a folder, not an archive (give one file; known formats: .pages)"),
        ("bad.pages", None, "bad.pages: damaged"),
    ],
)
def test_an_archive_that_cannot_be_used_is_refused(tmp_path: Path, name: str, sha256: str | None, problem: str) -> None:
    write_archive(tmp_path / "shop.pages", {})
    (tmp_path / "shop.page").write_text("{}")
    (tmp_path / "shop.warc.gz").write_text("")
    (tmp_path / "folder.pages").mkdir()
    (tmp_path / "bad.pages").write_text("{")
    site = FrozenSite(path=str(tmp_path / name), sha256=sha256)
    with pytest.raises(ConfigError) as caught:
        open_archives(RunConfig(archives={SHOP: site}))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("website", "problem"),
    [
        ("http://shop.example/", "it was recorded over https, not http, where task t begins"),
        ("https://shop.example:8443/", "it has no recording of 'https://shop.example:8443'"),
        ("https://other.example/", "it has no recording of 'https://other.example'"),
    ],
)
def test_a_task_whose_site_is_not_in_the_archive_is_refused(tmp_path: Path, website: str, problem: str) -> None:
    archives = opened(tmp_path, ALL_SITES)
    archives.check([task()])
    with pytest.raises(ConfigError) as caught:
        archives.check([task(website)])
    assert problem in str(caught.value)
    assert "the archive has https://cdn.example, https://shop.example" in str(caught.value)


async def test_with_one_archive_for_every_site_nothing_is_dialled(tmp_path: Path) -> None:
    archives = opened(tmp_path, ALL_SITES)
    attempt_network = attempt(archives, task(allowed_sites=["live.example", LIVE]), "other.example")
    assert not attempt_network.reaches_out
    assert [await status_of(attempt_network, url) for url in (SHOP, LIVE, "https://cdn.example/x.js")] == [
        200,
        504,
        200,
    ]
    record = attempt_network.frozen()
    assert [entry.coverage for entry in record.ledger] == ["full", "off_archive", "full"]
    assert (record.coverage, record.live, record.clock_ms) == ("off_archive", (), round(BEGAN.timestamp() * 1000))
    assert [(used.name, used.matcher) for used in record.archives] == [("0.pages", "pages-1")]


async def test_of_frozen_and_live_sites_only_the_live_ones_are_dialled(tmp_path: Path) -> None:
    archives, network = opened(tmp_path, SHOP, BANK), Network()
    attempt_network = attempt(archives, task(allowed_sites=[LIVE, "host.example"]), BANK)
    assert attempt_network.reaches_out
    request = (
        SHOP,
        BANK,
        f"{LIVE}x",
        "http://host.example/y",
        "https://cdn.example/x.js",
        "https://elsewhere.example/",
    )
    assert [await status_of(attempt_network, url, network) for url in request] == [200, 200, 200, 200, 200, 504]
    assert network.urls == [f"{LIVE}x", "http://host.example/y"]
    record = attempt_network.frozen()
    assert (record.sites, record.live) == (("https://shop.example", "https://bank.example"), ("https://live.example",))
    assert [each.name for each in record.archives] == ["0.pages", "1.pages"]


async def test_a_live_site_without_the_network_is_refused(tmp_path: Path) -> None:
    attempt_network = attempt(opened(tmp_path, SHOP), task(allowed_sites=[LIVE]))
    with pytest.raises(RequestRefused):
        await status_of(attempt_network, LIVE)


def test_a_task_on_live_sites_alone_is_not_intercepted(tmp_path: Path) -> None:
    archives = opened(tmp_path, SHOP)
    assert archives.of(task(LIVE)) is None
    assert (archives.holds(LIVE), archives.holds(f"{SHOP}any/page")) == (False, True)


async def test_each_attempt_has_a_ledger_of_its_own(tmp_path: Path) -> None:
    archives = opened(tmp_path, SHOP)
    first, second = attempt(archives, task()), attempt(archives, task())
    await status_of(first, SHOP)
    assert [len(first.frozen().ledger), len(second.frozen().ledger)] == [1, 0]
    await status_of(first, SHOP)
    assert len(first.frozen().ledger) == 2


def test_tasks_that_cannot_be_played_on_their_archive_are_excluded_with_the_reason(tmp_path: Path) -> None:
    archives = opened(tmp_path, SHOP)
    closed, other = task().model_copy(update={"task_id": "closed"}), task()
    archive = archives.excluding(RunConfig(exclude={"x": "mine"}), [closed, other])
    assert archive.exclude == {"closed": "0.pages: it is closed", "x": "mine"}
    require_playable(archive, [closed, other])
    with pytest.raises(ConfigError, match=r"no task can be played: 0\.pages: it is closed"):
        require_playable(archive, [closed])
    assert archives.excluding(RunConfig(), [other]) == RunConfig()


def test_the_judge_must_have_the_archive_that_the_runner_has_seen(tmp_path: Path) -> None:
    run_config = config(tmp_path, SHOP)
    archives = open_archives(run_config)
    assert archives
    settings = pinned(run_config, archives)
    (tmp_path / "0.pages").write_text('{"pages": {}, "unplayable": {}}')
    with pytest.raises(ConfigError, match="its SHA-256 is"):
        open_archives(settings)


def test_a_record_of_the_settings_names_the_archive_without_its_folder(tmp_path: Path) -> None:
    recorded = config(tmp_path, SHOP).recorded()["archives"]
    assert recorded == {SHOP: {"path": "0.pages", "sha256": None}}
    assert "archives" not in RunConfig().recorded()

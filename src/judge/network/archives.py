"""Frozen sites: requests of a browser are answered from archives of recorded websites instead of the network.

Archive formats are plug-ins, selected by file extension. Each attempt starts with a fresh replay. A scenario may have
both frozen and live sites; connections are then opened to its live sites only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from judge.config import ALL_SITES, FrozenSite, RunConfig
from judge.network.interception import Interceptor, PageSocket, RequestRefused, Upstream, WireAnswer, WireRequest
from judge.records.ledger import Frozen, LedgerEntry, UsedArchive
from judge.records.sites import NONE_SHARED, HostPort, RunSites, place_of
from judge.records.tasks import Task
from shared.errors import ConfigError
from shared.fields import closest, printable
from shared.seams import Seam
from shared.settings import Settings
from shared.text import clip, counted, one_line


class Replay(Interceptor, Protocol):
    """An attempt's use of an archive: it answers from the archive alone."""

    def take(self) -> tuple[LedgerEntry, ...]:
        """The requests since the last call, in order."""
        ...

    def entered(self, texts: Sequence[str]) -> None:
        """Note what the participant is about to enter: pages do not make it up."""
        ...


class Archive(Protocol):
    """An open, validated archive.

    `digest` is a SHA-256 of what was recorded, in hexadecimal, which checks of the archive do not change.
    `clock_ms` is the start of the recording, in milliseconds since
    1970. `matcher` is the version of the code that selects answers. `origins` are the recorded ones, with their
    schemes.
    """

    @property
    def digest(self) -> str: ...
    @property
    def clock_ms(self) -> int: ...
    @property
    def matcher(self) -> str: ...
    @property
    def origins(self) -> frozenset[str]: ...

    def unplayable(self, task_id: str) -> str | None:
        """Why a task cannot be played on it: decisive misses in the task's reference walk."""
        ...

    def plays(self, task_id: str) -> int:
        """How often the task was played when it was recorded."""
        ...

    def replay(self, task_id: str, secrets: Sequence[str]) -> Replay:
        """A fresh replay for an attempt, or for log-ins (`LOG_IN`). `secrets` are redacted in what it reports."""
        ...


class ArchiveFormat(Protocol):
    """An archive format."""

    def open(self, path: Path) -> Archive:
        """Read an archive. Raises `ConfigError` for anything wrong with it."""
        ...


FORMATS: Seam[ArchiveFormat] = Seam("archives", "archive format")
Key = tuple[str, HostPort]
# The ending before it says what the file is.
_COMPRESSED = frozenset({"gz", "zst", "bz2", "xz"})
# As in a request.
_MAX_REASON_CHARS = 300
# The walk of the judge's log-ins. Not the id of a task, because those contain no colons.
LOG_IN = ":log-in"


# Compared by identity: an archive that several sites name is opened once.
@dataclass(frozen=True, eq=False)
class _OpenArchive:
    name: str
    archive: Archive

    @property
    def used(self) -> UsedArchive:
        return UsedArchive(name=self.name, sha256=self.archive.digest, matcher=self.archive.matcher)

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(filter(None, map(_key, self.archive.origins)))


class Archives:
    """The archives of a run, opened once."""

    def __init__(self, by_site: Mapping[str, _OpenArchive], secrets: Sequence[str] = ()) -> None:
        self._declared = by_site
        self._everywhere = by_site.get(ALL_SITES)
        self._by_site = {key: each for site, each in by_site.items() if (key := _key(site)) is not None}
        self._secrets = tuple(secrets)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each archive, by the site that names it."""
        return {site: each.archive.digest for site, each in self._declared.items()}

    def log_in_at(self, website: str, secrets: Sequence[str]) -> Interceptor | None:
        """The interceptor for the judge's log-in to a frozen site, before the tasks; `None` for a live site."""
        opened = self._of(website)
        return opened.archive.replay(LOG_IN, (*self._secrets, *secrets)) if opened else None

    def clock_at(self, website: str) -> int | None:
        """When the recording of a frozen site began, in milliseconds since 1970; `None` for a live site."""
        opened = self._of(website)
        return opened.archive.clock_ms if opened else None

    def excluding(self, config: RunConfig, tasks: Sequence[Task]) -> RunConfig:
        """The settings, extended to exclude the tasks that cannot be played on their archives, with the reasons."""
        reasons = {}
        for task in tasks:
            opened = self._of(task.website)
            if opened is not None and (why := opened.archive.unplayable(task.task_id)):
                reasons[task.task_id] = clip(one_line(f"{opened.name}: {why}"), _MAX_REASON_CHARS)
        return config.model_copy(update={"exclude": {**reasons, **config.exclude}}) if reasons else config

    def played_once(self, tasks: Sequence[Task]) -> list[str]:
        """The ids of the tasks of which their archives hold one play only."""
        opened = {task.task_id: self._of(task.website) for task in tasks}
        return [task_id for task_id, each in opened.items() if each is not None and each.archive.plays(task_id) == 1]

    def holds(self, url: str) -> bool:
        """Whether an archive answers for this address of a task."""
        return self._of(url) is not None

    def check(self, tasks: Sequence[Task]) -> None:
        """Raises `ConfigError` for a task whose frozen site is not in its archive."""
        for task in tasks:
            for url in (task.website, *task.start_urls):
                opened = self._of(url)
                if opened is None or _key(url) in opened.keys:
                    continue
                problem = f"it has no recording of {printable(_origin(url))}"
                if (other := _other_scheme(url)) in opened.keys:
                    problem = f"it was recorded over {other[0] if other else ''}, not {urlsplit(url).scheme}"
                raise ConfigError(
                    f"{opened.name}: {problem}, where task {task.task_id} begins",
                    remedy=f"correct the task's website, or record it; the archive has {_origins_in_words(opened)}",
                )

    def answers(self, task: Task, sites: RunSites = NONE_SHARED) -> bool:
        """Whether some of a task's sites are frozen."""
        return any(self._of(site) is not None for site in _origins(task, sites))

    def of(self, task: Task, sites: RunSites = NONE_SHARED) -> "FrozenAttempt | None":
        """What replaces the network for an attempt at a task; `None` if none of its sites is frozen."""
        begins = _origins(task, sites)
        frozen = {site: opened for site in begins if (opened := self._of(site)) is not None}
        if not frozen:
            return None
        own = sites.of(task)
        secrets = (*self._secrets, *task.secrets)
        replays = {each: each.archive.replay(task.task_id, secrets) for each in dict.fromkeys(frozen.values())}
        home = self._of(task.website) or next(iter(frozen.values()))

        def is_live(url: str) -> bool:
            return self._of(url) is None and own.holds(url)

        def replay_of(url: str) -> Replay:
            key = _key(url)
            replay_url = self._of(url) or next((each for each in replays if key in each.keys), home)
            return replays[replay_url]

        live = tuple(dict.fromkeys(_origin(site) for site in begins if site not in frozen))
        reaches_out = self._everywhere is None and bool(live or _hosts(sites.further(task)))
        record = Frozen(
            archives=tuple(each.used for each in replays),
            sites=tuple(dict.fromkeys(map(_origin, frozen))),
            live=live if reaches_out else (),
            clock_ms=home.archive.clock_ms,
        )
        return FrozenAttempt(record, tuple(replays.values()), replay_of, is_live if reaches_out else None)

    def _of(self, url: str) -> _OpenArchive | None:
        """The archive declared for an address."""
        if self._everywhere is not None:
            return self._everywhere
        key = _key(url)
        return self._by_site.get(key) if key else None


class FrozenAttempt:
    """An attempt's archives, with fresh states, as one interceptor. `is_live` says which addresses use the network."""

    def __init__(
        self,
        record: Frozen,
        replays: Sequence[Replay],
        replay_of: Callable[[str], Replay],
        is_live: Callable[[str], bool] | None,
    ) -> None:
        self._record = record
        self._replays = replays
        self._replay_of = replay_of
        self._is_live = is_live
        self._entries: list[LedgerEntry] = []

    @property
    def clock_ms(self) -> int | None:
        """The start of the recording, in milliseconds since 1970."""
        return self._record.clock_ms

    @property
    def reaches_out(self) -> bool:
        """See `judge.network.interception.Interceptor`."""
        return self._is_live is not None

    def frozen(self) -> Frozen:
        """The archives and the requests to them so far, to be recorded."""
        for replay in self._replays:
            self._entries += replay.take()
        return self._record.with_ledger(self._entries)

    def entered(self, texts: Sequence[str]) -> None:
        """Note what the participant is about to enter: pages do not make it up."""
        for replay in self._replays:
            replay.entered(texts)

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `judge.network.interception.Interceptor`."""
        if self._is_live and self._is_live(request.url):
            return await _required(upstream).fetch(request)
        return await self._replay_of(request.url).answer(request, None)

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `judge.network.interception.Interceptor`."""
        url = f"http{request.url.removeprefix('ws')}"
        if self._is_live and self._is_live(url):
            # Imported on first use, because few attempts have both frozen and live sites.
            from judge.network.upstream import pass_on_socket

            await pass_on_socket(request, page, _required(upstream))
        else:
            await self._replay_of(url).socket(request, page, None)


def open_archives(config: RunConfig) -> Archives | None:
    """The archives of a run; `None` without any. Raises `ConfigError`."""
    if not config.archives:
        return None
    opened: dict[tuple[str, str | None], _OpenArchive] = {}
    by_site = {}
    for site, entry in config.archives.items():
        key = entry.path, entry.sha256
        if key not in opened:
            opened[key] = open_archive(entry)
        by_site[site] = opened[key]
    return Archives(by_site, config.secrets)


def pinned(config: RunConfig, archives: Archives) -> RunConfig:
    """The settings with the digests of these archives, which the judge's archives must match."""
    entries = {
        site: config.archives[site].model_copy(update={"sha256": digest}) for site, digest in archives.digests.items()
    }
    return config.model_copy(update={"archives": entries})


def open_archive(entry: FrozenSite) -> _OpenArchive:
    """One archive, checked against the declared digest, if there is one. Raises `ConfigError`."""
    path = Path(entry.path)
    ending = path.suffix.removeprefix(".").lower()
    formats_by_ending = dict(
        part.strip().partition("=")[::2] for part in Settings.from_environ().archive_formats.split(",")
    )
    archive_format = FORMATS.find(ending) if ending else None
    if archive_format is None and ending and ending in formats_by_ending:
        archive_format = FORMATS.resolve(formats_by_ending[ending])
    if path.is_dir():
        raise ConfigError(
            f"{path}: a folder, not an archive", remedy=f"give one file; known formats: {_known_formats()}"
        )
    if archive_format is None:
        suffix = "".join(path.suffixes[-2:]) if ending in _COMPRESSED else path.suffix
        problem = f"{path.name}: unknown archive format {printable(suffix)}" if ending else f"{path.name}: no ending"
        remedy = f"{closest(ending, FORMATS.names())}known formats: {_known_formats()}"
        if path.is_file():
            # Such as a WARC or a HAR file.
            remedy += "; what another tool recorded cannot be replayed: wabe sites record SCENARIO.toml -o FILE"
        raise ConfigError(problem, remedy=remedy)
    if not path.is_file():
        raise ConfigError(f"{path}: no such archive", remedy="record it: wabe sites record SCENARIO.toml -o FILE")
    archive = archive_format.open(path)
    if entry.sha256 is not None and archive.digest != entry.sha256:
        raise ConfigError(
            f"{path.name}: its SHA-256 is {archive.digest[:12]}…, and {entry.sha256[:12]}… is expected",
            remedy="use the archive that was declared, or correct archive_sha256",
        )
    return _OpenArchive(path.name, archive)


def _known_formats() -> str:
    return ", ".join(f".{name}" for name in FORMATS.names()) or "none is installed"


def require_playable(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Raises `ConfigError` if every task is excluded."""
    if tasks and all(task.task_id in config.exclude for task in tasks):
        why = config.exclude[tasks[0].task_id]
        raise ConfigError(f"no task can be played: {why}", remedy="record the tasks' reference walks again")


def _required(upstream: Upstream | None) -> Upstream:
    if upstream is None:
        raise RequestRefused("the network is out of reach")
    return upstream


def _origins(task: Task, sites: RunSites) -> tuple[str, ...]:
    """The addresses of a task for which an archive of a site can answer: where it begins, and its further origins."""
    return (task.website, *task.start_urls, *(site for site in sites.further(task) if "://" in site))


def _hosts(sites: Sequence[str]) -> bool:
    """Whether there are sites without a scheme, for which no archive of a site can answer."""
    return any("://" not in site for site in sites)


def _key(url: str) -> Key | None:
    place = place_of(url)
    return (urlsplit(url).scheme.lower(), place) if place else None


def _other_scheme(url: str) -> Key | None:
    scheme, _, rest = url.partition("://")
    return _key(f"{'http' if scheme == 'https' else 'https'}://{rest}")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _origins_in_words(opened: _OpenArchive) -> str:
    origins = sorted(opened.archive.origins)
    more = f" and {counted(len(origins) - 3, 'more origin')}" if len(origins) > 3 else ""
    return ", ".join(origins[:3]) + more or "nothing"

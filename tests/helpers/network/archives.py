"""A format of archives for tests: JSON files with a page for each address, without any rules of its own."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from helpers.network.interceptors import answer
from judge.network import archives
from judge.network.interception import PageSocket, RequestFailed, Upstream, WireAnswer, WireRequest
from judge.records.ledger import LedgerEntry, MissClass
from shared.errors import ConfigError

SHOP = "https://shop.example/"
BEGAN = datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
MISSING = "<title>Not recorded</title><h1>Not recorded</h1>"


@dataclass
class PagesReplay:
    """Answers with pages; `/favicon.ico` may be missing, and an address that ends in `?` is uncertain."""

    pages: dict[str, str]
    entries: list[LedgerEntry] = field(default_factory=list)
    reaches_out: bool = False

    async def answer(self, request: WireRequest, upstream: Upstream | None) -> WireAnswer:
        """See `judge.network.interception.Interceptor`."""
        assert upstream is None
        url = request.url.removesuffix("?")
        page = self.pages.get(url) if request.method == "GET" else None
        known: dict[str, Any] = {"step": request.step, "method": request.method, "url": request.url, "kind": "document"}
        known["is_read"] = request.method == "GET"
        if page is None:
            miss: MissClass = "harmless" if url.endswith("/favicon.ico") else "decisive"
            self.entries.append(LedgerEntry(**known, grade="miss", miss=miss))
            return WireAnswer(204) if miss == "harmless" else _missing()
        grade = "uncertain" if request.url.endswith("?") else "exact"
        self.entries.append(LedgerEntry(**known, grade=grade, record=f"<{url}>"))
        return answer(page, "application/json" if page.startswith("{") else "text/html")

    async def socket(self, request: WireRequest, page: PageSocket, upstream: Upstream | None) -> None:
        """See `judge.network.interception.Interceptor`."""
        raise RequestFailed("no sockets are recorded")

    def entered(self, texts: Sequence[str]) -> None:
        pass

    def take(self) -> tuple[LedgerEntry, ...]:
        """See `judge.network.archives.Replay`."""
        entries, self.entries = tuple(self.entries), []
        return entries


def _missing() -> WireAnswer:
    result = answer(MISSING)
    return WireAnswer(504, "Not Recorded", result.headers, result.body)


@dataclass(frozen=True)
class PagesArchive:
    """See `judge.network.archives.Archive`."""

    digest: str
    pages: dict[str, str]
    reasons: dict[str, str]
    clock_ms: int = round(BEGAN.timestamp() * 1000)
    matcher: str = "pages-1"

    @property
    def origins(self) -> frozenset[str]:
        """The origins of the pages."""
        return frozenset("/".join(url.split("/")[:3]) for url in self.pages)

    def unplayable(self, task_id: str) -> str | None:
        """The reason in the file."""
        return self.reasons.get(task_id)

    def plays(self, task_id: str) -> int:
        """One of each."""
        return 1

    def replay(self, task_id: str, secrets: Sequence[str]) -> PagesReplay:
        """A new one."""
        return PagesReplay(self.pages)


class PagesFormat:
    """See `judge.network.archives.ArchiveFormat`."""

    def open(self, path: Path) -> PagesArchive:
        """Read a file of `write_archive`."""
        data = path.read_bytes()
        try:
            document = json.loads(data)
        except ValueError:
            raise ConfigError(f"{path.name}: damaged") from None
        return PagesArchive(hashlib.sha256(data).hexdigest(), document["pages"], document["unplayable"])


class _Formats:
    def find(self, name: str) -> PagesFormat | None:
        return PagesFormat() if name == "pages" else None

    def names(self) -> tuple[str, ...]:
        return ("pages",)


def use_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this format the only one."""
    monkeypatch.setattr(archives, "FORMATS", _Formats())


def write_archive(path: Path, pages: dict[str, str], **unplayable: str) -> Path:
    """An archive with pages by address; `unplayable` are reasons by task id."""
    path.write_text(json.dumps({"pages": pages, "unplayable": unplayable}))
    return path

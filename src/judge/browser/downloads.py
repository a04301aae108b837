"""Reads the downloads that `downloads.cjs` has taken, and decides who started each."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from judge.browser.acts import Acts
from judge.browser.session import TakenDownload
from judge.network.senders import claims_of, origin_text, sender_of
from judge.records.files import type_of
from judge.records.sites import Site
from judge.trajectory.network import BROWSER

TAKER = Path(__file__).with_name("downloads.cjs")
# The beginning of the folder's name. It is removed with everything else that a task leaves (`McpServer.renew`).
FOLDER_PREFIX = "downloads-"
_LOG = "downloads.jsonl"
# For each file, for all kept ones, and the number of downloads of an attempt.
MAX_BYTES = 5_000_000
MAX_BYTES_TOGETHER = 40_000_000
MAX_FILES = 100
_TAKER = "page.context()[Symbol.for('wabe.downloads')]"


def begin_code(folder: Path) -> str:
    """The code that lets the browser take downloads into the folder, before the first page is opened."""
    limits = {"bytes": MAX_BYTES, "together": MAX_BYTES_TOGETHER, "files": MAX_FILES}
    return f"async page => await {_TAKER}.begin(page, {json.dumps(str(folder))}, {json.dumps(limits)})"


def _document(origins: Sequence[str], site: Site | None) -> str:
    """The origin of the document in a frame; opaque if one of another site, which was there before, may be meant."""
    is_certain = len(origins) == 1 or (site is not None and all(map(site.holds, origins)))
    return origins[0] if origins and is_certain else "null"


class DownloadLog:
    """Reads what was written about downloads to the browser's `folder` since the last call."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOG
        self._offset = 0
        self._files: Path | None = None
        self._open: dict[str, dict[str, Any]] = {}
        self._acts = Acts()
        # Of the step: its number, and whether the participant saved what it clicked.
        self._marks: dict[str, Any] = {}

    @property
    def has_begun(self) -> bool:
        """Whether downloads are taken."""
        return self._files is not None

    def begin(self, folder: Path) -> None:
        """Files are in this folder."""
        self._files = folder

    def begin_step(self, number: int) -> None:
        """What begins from now on belongs to that step."""
        self._append({"step": number})

    def saves(self) -> None:
        """The participant holds the key with which a browser saves what a link leads to."""
        self._append({"saves": True})

    def has_acted(self, since: float) -> bool:
        """Whether the participant has acted on an element since then."""
        data = b""
        with contextlib.suppress(OSError):
            data = self._path.read_bytes()
        noted = (json.loads(line) for line in reversed(data[: data.rfind(b"\n")].splitlines()))
        act = next((line["act"] for line in noted if "act" in line), None)
        return act is not None and act["at"] >= since * 1000

    def take(self, site: Site | None, *, with_open: bool) -> tuple[TakenDownload, ...]:
        """The downloads that have ended; `with_open`, also those that have not, which are not waited for any longer.

        `site` is the task's.
        """
        downloads = []
        for line in self._lines():
            guid = line.get("guid")
            if line.get("left_out"):
                downloads.append(TakenDownload(state="left_out"))
            elif "act" in line:
                self._acts.add(line["act"], self._marks.get("step", 0))
            elif guid is None:
                self._marks = line if "step" in line else {**self._marks, **line}
            elif "state" not in line:
                self._open[guid] = {"step": 0} | self._marks | line
            elif guid in self._open:
                # Its step is the one in which it began.
                downloads.append(self._download(self._open.pop(guid) | line, site))
        if with_open:
            downloads += [self._download(each | {"state": "unfinished"}, site) for each in self._open.values()]
            self._open.clear()
        return tuple(downloads)

    def _append(self, line: Mapping[str, Any]) -> None:
        # In the file itself, so that its order says what came first. Both programs only append whole lines.
        with contextlib.suppress(OSError), self._path.open("ab", buffering=0) as stream:
            stream.write(json.dumps(line).encode() + b"\n")

    def _lines(self) -> list[dict[str, Any]]:
        data = b""
        with contextlib.suppress(OSError), self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def _download(self, report: Mapping[str, Any], site: Site | None) -> TakenDownload:
        sender = None
        if "chain" in report:
            facts = report.get("sender") or {"document": _document(report.get("documents", ()), site)}
            sender = sender_of(claims_of(facts, report["fixed"], report["chain"]))
        if report.get("saves"):
            # As an address that the participant opens itself.
            sender = BROWSER
        served = str(report.get("type") or "").partition(";")[0].strip().lower()
        return TakenDownload(
            name=report["name"],
            url=report["url"],
            type=served or type_of(report["name"]),
            state=report["state"],
            size=report.get("size"),
            sha256=report.get("sha256"),
            sender=sender,
            step=report.get("step", 0),
            cause=self._acts.cause(report.get("cause"), inf),
            chain=tuple(dict.fromkeys(origin_text(url) or "" for url in report.get("chain", ()))),
            path=self._files / report["file"] if self._files and report.get("file") else None,
        )

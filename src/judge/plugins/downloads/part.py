"""What is recorded of an attempt's downloads, and which files of them are kept."""

import contextlib
import hashlib
from collections.abc import Sequence

from judge.browser.downloads import MAX_BYTES
from judge.browser.session import TakenDownload
from judge.episode.part import Act, AttemptPart, AttemptStage, PageLook
from judge.records.files import Download
from shared.files import read_file

MAX_KEPT = 20
MAX_RECORDED_AT_ONCE = 8


class Downloads(AttemptPart):
    """The downloads of one attempt. Files that come from the task's site are kept."""

    def __init__(self, stage: AttemptStage) -> None:
        super().__init__(stage)
        self._count = 0

    def observed(self, look: PageLook) -> None:
        """Record downloads until the observation. One that has not ended by now is not waited for any longer."""
        look.facts["downloaded"] = self._record((*look.downloads, *self.stage.browser.take_downloads(with_open=True)))

    def acted(self, act: Act) -> None:
        """Record those that have ended."""
        act.draft.downloaded += self._record(self.stage.browser.take_downloads(with_open=False))

    def _record(self, downloads: Sequence[TakenDownload]) -> tuple[Download, ...]:
        """What is recorded of downloads, the last ones if there are too many."""
        recorded = [self._recorded(each) for each in downloads[-MAX_RECORDED_AT_ONCE:]]
        if len(downloads) > len(recorded):
            recorded.insert(0, Download(state="left_out"))
        for each in downloads:
            if each.path is not None:
                # What was kept is in the task's folder now.
                each.path.unlink(missing_ok=True)
        return tuple(recorded)

    def _recorded(self, download: TakenDownload) -> Download:
        known = download.model_dump(exclude={"path"})
        is_caused = download.cause is not None and download.cause.why_not is None
        is_own = is_caused and download.sender is not None and self.stage.network.site.holds(download.sender)
        if not is_own or download.path is None or self._count >= MAX_KEPT:
            return Download(**known)
        with contextlib.suppress(OSError, ValueError):
            data = read_file(download.path, max_bytes=MAX_BYTES)
            # Otherwise it is not the file that the browser has written.
            if hashlib.sha256(data).hexdigest() == download.sha256:
                self._count += 1
                return Download(**known, file=self.stage.store.write_download(self._count, data))
        return Download(**known)

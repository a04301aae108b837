"""What is recorded of an attempt's downloads, and which files of them are kept."""

import contextlib
import hashlib
from collections.abc import Sequence

from judge.browser.downloads import MAX_BYTES
from judge.browser.session import TakenDownload
from judge.records.files import Download
from judge.sites import Site
from judge.store.layout import TaskStore
from shared.files import read_file

MAX_KEPT = 20
MAX_RECORDED_AT_ONCE = 8


class Downloads:
    """The downloads of one attempt."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._kept = 0

    def record(self, taken: Sequence[TakenDownload], site: Site) -> tuple[Download, ...]:
        """What is recorded of downloads, the last ones if there are too many. `site` is the task's own, whose files are
        kept.
        """
        found = [self._recorded(each, site) for each in taken[-MAX_RECORDED_AT_ONCE:]]
        if len(taken) > len(found):
            found.insert(0, Download(state="left_out"))
        for each in taken:
            if each.path is not None:
                # What was kept is in the task's folder now.
                each.path.unlink(missing_ok=True)
        return tuple(found)

    def _recorded(self, taken: TakenDownload, site: Site) -> Download:
        known = taken.model_dump(exclude={"path"})
        is_own = taken.sender is not None and site.holds(taken.sender) and not taken.is_from_editor
        if not is_own or taken.path is None or self._kept >= MAX_KEPT:
            return Download(**known)
        with contextlib.suppress(OSError, ValueError):
            data = read_file(taken.path, max_bytes=MAX_BYTES)
            # Otherwise it is not the file that the browser has written.
            if hashlib.sha256(data).hexdigest() == taken.sha256:
                self._kept += 1
                return Download(**known, file=self._store.write_download(self._kept, data))
        return Download(**known)

"""An attempt's requests, grouped by the step whose action caused them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from judge.sites import origin_of
from judge.trajectory.network import NETWORK_FILE, Entry, read_har
from judge.trajectory.record import Attempt
from shared.errors import TrajectoryError
from shared.text import counted

_MAX_SHOWN = 200


@dataclass(frozen=True)
class NetworkView:
    """A trace: its requests by step (0: the first page). `note` says why there is none, or what is missing."""

    file: Path | None = None
    by_step: Mapping[int, Sequence[Entry]] = field(default_factory=lambda: MappingProxyType({}))
    count: int = 0
    note: str = ""
    home: object = None

    def address(self, entry: Entry) -> str:
        """The request's address, without the origin if that is the task's own."""
        if origin_of(entry.request.url) != self.home:
            return entry.request.url
        parts = urlsplit(entry.request.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def of_step(self, number: int) -> Sequence[Entry]:
        """The requests of a step that are shown; the rest are in the file."""
        return self.by_step.get(number, ())[:_MAX_SHOWN]

    def left_out(self, number: int) -> int:
        """How many requests of a step are not shown."""
        return max(0, len(self.by_step.get(number, ())) - _MAX_SHOWN)


def network_view(folder: Path, attempt: Attempt) -> NetworkView:
    """The trace of an attempt, even if damaged. Older versions recorded none; then there is no note either."""
    if attempt.network is None:
        return NetworkView(note=attempt.network_missing or "")
    path = folder / NETWORK_FILE
    try:
        # In a run from someone else, a link could point to any file of this machine.
        if path.is_symlink():
            raise TrajectoryError(f"{NETWORK_FILE}: a link")
        har = read_har(path)
    except TrajectoryError as error:
        return NetworkView(note=error.message.removeprefix(f"{folder}/"))
    home = origin_of(attempt.task.website)
    by_step: dict[int, list[Entry]] = {}
    for entry in har.entries:
        by_step.setdefault(entry.step or 0, []).append(entry)
    note = f"at least {counted(har.dropped, 'more request')} went unrecorded" if har.dropped else ""
    return NetworkView(path, by_step, len(har.entries), note, home)

"""An attempt's requests as views, grouped by the step whose action caused them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from judge.sites import origin_of
from judge.trajectory.network import NETWORK_FILE, Entry, read_har
from judge.trajectory.record import Attempt
from shared.errors import TrajectoryError

_MAX_SHOWN = 200


@dataclass(frozen=True)
class RequestView:
    """One request. `address` is without the origin where that is the task's own; `status` is 0 without an answer."""

    method: str
    address: str
    status: int
    kind: str
    time_ms: float
    is_frame: bool = False

    @property
    def is_error(self) -> bool:
        """Whether there was no answer, or one of an error."""
        return self.status == 0 or self.status >= 400


@dataclass(frozen=True)
class NetworkView:
    """A trace: its requests by step (0: the first page). `note` says why there is none, or what is missing of it."""

    file: Path | None = None
    by_step: Mapping[int, tuple[RequestView, ...]] = field(default_factory=lambda: MappingProxyType({}))
    count: int = 0
    note: str = ""

    def of_step(self, number: int) -> tuple[RequestView, ...]:
        """The requests of a step to show; the rest are in the file."""
        return self.by_step.get(number, ())[:_MAX_SHOWN]

    def left_out(self, number: int) -> int:
        """How many requests of a step are not shown."""
        return max(0, len(self.by_step.get(number, ())) - _MAX_SHOWN)


def network_view(folder: Path, attempt: Attempt) -> NetworkView:
    """The trace of an attempt, whatever state it is in; older versions recorded none, and then there is no note."""
    if attempt.network is None:
        return NetworkView(note=attempt.network_missing or "")
    path = folder / NETWORK_FILE
    try:
        if path.is_symlink():
            raise TrajectoryError(f"{NETWORK_FILE}: a link")
        har = read_har(path)
    except TrajectoryError as error:
        return NetworkView(note=error.message.removeprefix(f"{folder}/"))
    home = origin_of(attempt.task.website)
    by_step: dict[int, list[RequestView]] = {}
    for entry in har.entries:
        by_step.setdefault(entry.step or 0, []).append(_view(entry, home))
    note = f"at least {har.dropped} more requests were not recorded" if har.dropped else ""
    return NetworkView(path, {step: tuple(views) for step, views in by_step.items()}, len(har.entries), note)


def _view(entry: Entry, home: object) -> RequestView:
    address = entry.request.url
    if origin_of(address) == home:
        parts = urlsplit(address)
        address = parts.path + (f"?{parts.query}" if parts.query else "")
    return RequestView(
        method=entry.request.method,
        address=address,
        status=entry.response.status,
        kind=entry.resource_type or "unknown",
        time_ms=entry.time_ms,
        is_frame=entry.is_frame,
    )

"""What scripted browsers have in common."""

from collections.abc import Sequence

from judge.records.tasks import Task
from judge.trajectory.fetched import FetchResponse
from shared.models import Notice, Page


class OneTab:
    """A browser for tasks without a log-in and with one tab."""

    async def log_in(self, task: Task) -> None:
        assert not task.secrets

    async def open_tabs(self, urls: Sequence[str]) -> None:
        assert not urls

    async def fetch(self, url: str, key: str | None) -> FetchResponse:
        raise NotImplementedError

    async def replace_tab(self, why: Notice) -> Page:
        return Page(url="about:blank", title="", snapshot="", notice=why)

"""A browser that somebody else runs (`cdp_url`): its address, and the connection to it.

`server.cjs` connects to it, once for each slot, and writes what becomes of the connection into `STATE_FILE`. It has no
guard: nothing limits where its pages connect. What cannot be played there: `judge.network.attempt`.
"""

from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field, ValidationError

from judge.config import CDP_TASK, RunConfig
from shared.errors import ConfigError
from shared.models import Record

STATE_FILE = "hosted.json"
_KEY = "config.cdp_url"


class Connection(Record):
    """What `server.cjs` knows of the connection. `version` is the browser's; `cause` is why there is none."""

    state: Literal["connected", "refused", "lost"]
    version: str = Field(default="", max_length=100)
    cause: str = Field(default="", max_length=100)


class HostedBrowser(Record):
    """The browser at an address. `name` is what may be shown and recorded of that: it has no token."""

    url: str = Field(repr=False)
    name: str

    @classmethod
    def of(cls, config: RunConfig) -> "HostedBrowser | None":
        """The hosted browser of a run, if it has one. Raises `ConfigError` if its variable has not been resolved."""
        if config.cdp_url is None:
            return None
        if "${" in config.cdp_url:
            raise ConfigError("a variable of a scenario file", key=_KEY, remedy="send its value")
        return cls(url=config.cdp_url, name=config.recorded()["cdp_url"])

    @property
    def is_per_task(self) -> bool:
        """Whether each task has a separate address, and so a connection."""
        return CDP_TASK in self.url

    def for_task(self, task_id: str) -> "HostedBrowser":
        """The browser at the address for a task."""
        return self.model_copy(update={"url": self.url.replace(CDP_TASK, quote(task_id, safe=""))})


def read_connection(folder: Path) -> Connection | None:
    """The state of the connection of the server in `folder`; `None` if it has not written any."""
    with suppress(OSError, ValidationError):
        return Connection.model_validate_json((folder / STATE_FILE).read_bytes())
    return None

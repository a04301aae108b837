"""The exception tree, divided by who is to blame.

Every error says what happened and, in `remedy`, what to do next. Results record `blame` as the cause.
"""

import errno
import socket
from typing import ClassVar, Literal

from shared.models import TokenUsage

Blame = Literal["user", "participant", "browser", "site", "judge model", "internal"]


class WabeError(Exception):
    """Base of all deliberately raised errors. They count as internal unless a subclass says otherwise.

    `problem` is what is wrong, `key` the setting that it is about (`config.judge_model`, or a path in a file) and
    `location` the file or request, each where there is one; `message` says all three.
    """

    blame: ClassVar[Blame] = "internal"

    def __init__(
        self, problem: str, *, remedy: str = "", key: str = "", location: str = "", message: str | None = None
    ) -> None:
        self.problem = problem
        self.key = key
        self.location = location
        self.message = message or ": ".join(filter(None, (location, key, problem)))
        self.remedy = remedy
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class ConfigError(WabeError):
    """Bad usage, scenario or setting. The message names the file, the key and the remedy; exit code 2."""

    blame = "user"


class TrajectoryError(WabeError):
    """A trajectory folder cannot be read. The message names the file and what is wrong with it."""

    blame = "user"


class RecordingGone(WabeError):
    """A recording was deleted while it was read. Nothing may be concluded from what is then missing."""


class ObservationError(WabeError):
    """A participant received text that is not a judge's message."""


class ParticipantError(WabeError):
    """The participant erred, timed out, disconnected or kept sending unreadable replies. Scored 0, cause named."""

    blame = "participant"


class ParticipantTimeout(ParticipantError):
    """No reply within `reply_timeout_s`."""


class ParticipantUnreachable(ParticipantError):
    """The participant could not be reached, or the connection broke."""


class EnvironmentFault(WabeError):
    """Something other than the participant failed. The attempt is aborted and retried, never scored."""

    blame: ClassVar[Blame] = "browser"


class BrowserFault(EnvironmentFault):
    """The browser or its MCP server died, hung or restarted without its pages."""


class PageHangs(BrowserFault):
    """A page keeps the browser busy, and no empty tab could take its place."""


class SiteFault(EnvironmentFault):
    """The task's website cannot be reached, does not answer, or answers with a server error to begin with."""

    blame = "site"


class SiteUnreachable(SiteFault):
    """The task's website cannot be opened or reset. A participant that acted on it earlier may have shut it down."""


class SiteBlocked(SiteFault):
    """The task's website answers the judge's browser with a bot wall or CAPTCHA before the participant did anything."""


class AttemptAbandoned(EnvironmentFault):
    """Whoever plays the attempt gave it up or disappeared: a trainer that resets, closes, or stays idle."""

    blame = "user"


class InternalFault(EnvironmentFault):
    """This machine ran out of a resource: file descriptors, memory, buffers, disk space."""

    blame = "internal"


# Resources of this machine that can run out. Without EADDRNOTAVAIL, which an address that an agent publishes can cause.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENOSPC})


def is_shortage(error: BaseException) -> bool:
    """Whether this machine ran out of something."""
    if isinstance(error, socket.gaierror):  # has its own error numbers
        return error.errno == socket.EAI_MEMORY
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGES)


def is_full(error: BaseException) -> bool:
    """Whether nothing more can be written: the disk is full, or was mounted again read-only."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class ModelError(WabeError):
    """The judge model gave no usable answer. The verdict is unscored.

    `usage` and `cost_usd` are what the call cost nevertheless: providers charge for blocked answers, for answers that
    reached their limit while reasoning, and possibly for abandoned ones. `usage` is `None` if nothing was used, and has
    no tokens if a request was sent but its usage is unknown. `cost_usd` is `None` if the price or the usage is unknown.
    """

    blame: ClassVar[Blame] = "judge model"

    def __init__(self, message: str, *, remedy: str = "", usage: TokenUsage | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.usage = usage
        self.cost_usd: float | None = None


class ModelUnavailable(ModelError):
    """The endpoint could not be reached, timed out, or kept answering with server errors or rate limits."""


class ModelUnreached(ModelUnavailable):
    """No connection to the endpoint came about, so nothing was asked."""


class ModelRequestRefused(ModelUnavailable):
    """The endpoint does not accept this request, for example one with an image; retrying would fail again."""


class ModelKeyRefused(ModelUnavailable):
    """The provider does not accept the key; retrying is useless."""


class ModelBlocked(ModelError):
    """The provider refused the request or cut the answer for safety reasons."""


class ModelTruncated(ModelError):
    """The answer reached the token limit without any usable text."""


class ModelMalformed(ModelError):
    """The endpoint's answer does not have the documented format."""


class ModelBudgetSpent(ModelError):
    """`max_judge_cost_usd` or `max_judge_tokens` has been reached; no further calls are made."""


class SharedStateFault(ModelError):
    """The Redis server through which a run's shards share limits and replies does not answer, or has lost its data."""

    blame = "internal"

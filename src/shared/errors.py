"""The exception tree, named by who is to blame.

Every error says what happened and, in `remedy`, what to do next. `blame` is what results record as the cause.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from shared.models import TokenUsage

Blame = Literal["user", "participant", "browser", "site", "judge model", "internal"]


class WabeError(Exception):
    """Base of all errors raised on purpose. Without a more precise class the cause is internal."""

    blame: ClassVar[Blame] = "internal"

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class ConfigError(WabeError):
    """Bad usage, scenario or setting. The message names the file, the key and the remedy; exit code 2."""

    blame = "user"


class TrajectoryError(WabeError):
    """A trajectory folder that cannot be read. The message names the file and what is wrong with it."""

    blame = "user"


class ObservationError(WabeError):
    """A text that is no judge's message: a participant in Python cannot read an observation from it."""


class ParticipantError(WabeError):
    """The participant erred, timed out, disconnected or kept sending what cannot be read. Scored 0, cause named."""

    blame = "participant"


class ParticipantTimeout(ParticipantError):
    """No reply within `reply_timeout_s`."""


class ParticipantUnreachable(ParticipantError):
    """The participant could not be dialled, or the connection broke."""


class EnvironmentFault(WabeError):
    """Something around the participant failed. The episode is aborted and tried again, never scored."""

    blame: ClassVar[Blame] = "browser"


class BrowserFault(EnvironmentFault):
    """The browser or its MCP server died, hung or came back without its pages."""


class SiteFault(EnvironmentFault):
    """The task's website cannot be reached or does not answer."""

    blame = "site"


class InternalFault(EnvironmentFault):
    """This machine ran out of something it needs: file descriptors, memory, buffers, disk space."""

    blame = "internal"


class ModelError(WabeError):
    """The judge model gave no usable answer. The verdict is unscored.

    `usage` and `cost_usd` are what the call took all the same: an answer that is blocked, or that reached its limit in
    thoughts, is paid for, and so may be one that was not waited for. No `usage`: nothing was used. A `usage` without
    tokens: the request was sent, but what it used was not told. No `cost_usd`: the price or the usage is unknown.
    """

    blame = "judge model"

    def __init__(self, message: str, *, remedy: str = "", usage: "TokenUsage | None" = None) -> None:
        super().__init__(message, remedy=remedy)
        self.usage = usage
        self.cost_usd: float | None = None


class ModelUnavailable(ModelError):
    """The endpoint could not be reached, timed out, or kept answering with server errors or rate limits."""


class ModelKeyRefused(ModelUnavailable):
    """The provider does not accept the key: asking again changes nothing."""


class ModelBlocked(ModelError):
    """The provider refused the request or cut the answer for safety reasons."""


class ModelTruncated(ModelError):
    """The answer ended at the token limit with nothing usable in it."""


class ModelMalformed(ModelError):
    """The endpoint answered with something that is not its documented format."""


class ModelBudgetSpent(ModelError):
    """`max_judge_cost_usd` or `max_judge_tokens` is reached; no further call is made."""

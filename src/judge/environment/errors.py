"""What a session raises instead of an answer."""

from typing import Literal

from shared.errors import ConfigError, WabeError

# How an episode ended that has no reward.
Ending = Literal["aborted", "unscored", "blocked", "lost"]


class EpisodeFault(WabeError):
    """An episode that ended without a reward, through no fault of the policy. The session then needs a reset.

    The message begins with the ending and who is to blame; it quotes nothing of the task's checks.
    """

    def __init__(self, ending: Ending, blame: str | None, why: str) -> None:
        super().__init__(": ".join(filter(None, (ending, blame, why))))
        self.ending: Ending = ending
        self.party = blame
        self.why = why


class CapacityReached(ConfigError):
    """All sessions of a host are taken. `active` of at most `maximum`."""

    def __init__(self, active: int, maximum: int) -> None:
        super().__init__(
            f"capacity reached: {active} of {maximum} sessions are open",
            remedy="close one, or start the environment with more sessions",
        )
        self.active = active
        self.maximum = maximum


class SessionMisused(WabeError):
    """A call that does not go with the state of its session."""

    blame = "user"


class NotReset(SessionMisused):
    """A step outside of an episode: before `reset`, or after its end."""


class SessionClosed(SessionMisused):
    """A call on a closed session."""

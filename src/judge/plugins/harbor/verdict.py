"""The verdict of an episode and its files: `verdict.json` always, `reward.json` only if the attempt was scored."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from judge.environment.errors import Ending, EpisodeFault
from shared.files import write_errors, write_json
from shared.models import Record

VERDICT_FILE, REWARD_FILE = "verdict.json", "reward.json"
_MAX_MESSAGE_CHARS = 2_000


class EpisodeVerdict(Record):
    """How an episode ended. Without a `reward` it was not scored: `blame` says whose fault it is, `message` why."""

    outcome: Literal["scored"] | Ending
    reward: float | None = None
    blame: str | None = Field(default=None, max_length=200)
    message: str | None = Field(default=None, max_length=_MAX_MESSAGE_CHARS)

    @classmethod
    def of_reward(cls, reward: float | None) -> "EpisodeVerdict":
        """The verdict of a scored episode."""
        if reward is None:
            return cls.of_fault(EpisodeFault("unscored", "internal", "the episode ended without a reward"))
        return cls(outcome="scored", reward=reward)

    @classmethod
    def of_fault(cls, fault: EpisodeFault) -> "EpisodeVerdict":
        """The verdict of an episode that has none, through no fault of the agent."""
        return cls(outcome=fault.ending, blame=fault.party, message=str(fault)[:_MAX_MESSAGE_CHARS])

    @property
    def line(self) -> str:
        """The verdict in one line."""
        return f"reward {self.reward:g}" if self.reward is not None else f"no reward: {self.message}"

    def write(self, folder: Path) -> None:
        """Write the files, the reward last. Raises `ConfigError` if impossible."""
        with write_errors(folder, "choose a folder you can write"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / REWARD_FILE).unlink(missing_ok=True)
            write_json(folder / VERDICT_FILE, self.model_dump(mode="json", exclude_none=True))
            if self.reward is not None:
                write_json(folder / REWARD_FILE, {"reward": self.reward})

"""A judge takes a trajectory and returns a verdict.

Live judging and re-scoring use the same function. Judging during an episode relies on a single-flight cache: `prefetch`
sends the same requests that `judge` will make, so `judge` finds them answered.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.judges.confirming import confirmed, last_looks_stand
from judge.records.tasks import Task
from judge.records.verdicts import JudgeInfo, Verdict
from judge.trajectory.record import Trajectory
from shared.models import Record
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.llm.prices import Pricing


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """A judge method that asks no model, for `wabe score --method NAME`. Its verdicts are ground truth.

    `open` is called with the settings and the file of `--config`, checks both (`ConfigError`), and returns what opens
    the judge.
    """

    open: Callable[[Settings, Path | None], Callable[[], Coroutine[Any, Any, "Judge"]]]
    takes_config: bool = False


class Workload(Record):
    """An estimate of what judging a trajectory takes: model calls, and the screenshots shown in them."""

    calls: int = 0
    images: int = 0


class Judge(ABC):
    """One judge method, bound to its model, prompt set and settings.

    `id` is `<method>-<digest>`, the name of the verdict file. The digest covers method, model, prompt set and settings;
    the judging code is named in `info`, the `judge` block of every verdict, including those that needed no judge.
    """

    id: str
    info: JudgeInfo
    # The price of the judge model; `None` if it is unknown, or no model is used.
    price: "Pricing | None" = None

    def judges_of(self, task: Task) -> tuple["Judge", ...]:
        """The judges of a task: first the one whose verdict counts, then those whose verdicts are also stored."""
        return (self,)

    def workload(self, trajectory: Trajectory) -> Workload:
        """What the model will be asked about the trajectory, if every reply is usable. Raises `TrajectoryError`."""
        return Workload()

    def prefetch(self, task: Task, screenshot: Path | None = None) -> None:
        """Send the requests that depend on the task alone, or on the task and one screenshot. Never raises."""
        return

    def probe(self) -> None:
        """Let the next question go to a model that could not be reached, instead of failing at once."""
        return

    def recompute(self, trajectory: Trajectory) -> Verdict | None:
        """The verdict, if the recording alone decides it; `None` if a model or another program has to. Blocks."""
        return None

    def confirmed(self, verdict: Verdict, trajectory: Trajectory) -> Verdict:
        """The verdict; unscored if it is a success that a frozen site does not confirm."""
        return confirmed(verdict, trajectory, last_looks_stand(trajectory))

    def site_of(self, task_id: str) -> str | None:
        """The site of a task, if this judge's results are counted by site."""
        return None

    @abstractmethod
    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The verdict. Model errors are not raised: they make it `unscored` and are named in its reason."""

    async def aclose(self) -> None:
        """Release the judge's resources."""
        return


def judge_id(method: str, *settings: object) -> str:
    """The id of a judge with these settings."""
    canonical = json.dumps([method, *settings], sort_keys=True)
    return f"{method}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def files_checksum(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents."""
    digest = hashlib.sha256()
    for name in sorted(files):
        # With the length, so that text moved from one file to the next changes the digest.
        digest.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()

"""A step while it is taken: what the observation showed, and every fact since, as soon as it is known."""

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from judge.episode.blame import shortened
from judge.records.files import Download
from judge.records.steps import Navigation, Outcome, Step, Timings
from judge.records.user import Asked
from shared.claims import ClaimedTrace
from shared.models import Action, SettleTime


class Stopwatch:
    """Measures the seconds of its body, even if that fails."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += time.monotonic() - self._began


@dataclass
class StepTimes:
    """Where a step's wall time goes."""

    observing: Stopwatch = field(default_factory=Stopwatch)
    replying: Stopwatch = field(default_factory=Stopwatch)
    acting: Stopwatch = field(default_factory=Stopwatch)

    def recorded(self, settled: SettleTime) -> Timings:
        """The step's timings, waiting for its page included."""
        return Timings(
            observe_s=self.observing.seconds,
            reply_s=self.replying.seconds,
            act_s=self.acting.seconds,
            settle_s=settled.real_s,
            page_s=settled.page_s,
        )


class StepDraft:
    """A step in progress. `observed` is the part of it that the observation provides."""

    def __init__(self, observed: Step) -> None:
        self.observed = observed
        self.reply = ""
        self.action: Action | None = None
        self.outcome: Outcome | None = None
        self.asked: Asked | None = None
        self.claimed_trace: ClaimedTrace | None = None
        # Line and elements of the action being executed: it may take effect although it fails.
        self.attempted: dict[str, Any] = {}
        self.flags = [*observed.flags]
        self.refused: tuple[str, ...] = observed.refused
        self.downloads: tuple[str, ...] = observed.downloads
        self.downloaded: tuple[Download, ...] = observed.downloaded
        self.navigations: tuple[Navigation, ...] = observed.navigations

    def recorded(self, timings: Timings) -> Step:
        """The step as it is recorded, complete or not."""
        facts = {name: value for name, value in vars(self).items() if name in Step.model_fields}
        facts |= {"flags": tuple(dict.fromkeys(self.flags)), "navigations": shortened(self.navigations)}
        return self.observed.model_copy(update={**facts, "timings": timings})

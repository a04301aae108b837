"""What plug-ins do with the results of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from judge.runner.options import RunOptions


class FollowUp(NamedTuple):
    """Lines for the user, whether the command ends with exit code 1, and keys of the last event of `--display json`."""

    lines: Sequence[str] = ()
    fails: bool = False
    event: Mapping[str, Any] = MappingProxyType({})


@dataclass
class Follower:
    """Made before the run exists; `options` are those that the command to resume it repeats."""

    options: RunOptions

    def planned(self, run_id: str) -> None:
        """Raises `ConfigError` if this run cannot be followed."""

    def concluded(self, submission: dict[str, Any], scenario: Path, report: Path | None) -> FollowUp:
        """Called with the results that were just written, the scenario's file, and the front page of the report."""
        return FollowUp()

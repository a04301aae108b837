"""Reads the acts of the participant that `causes.cjs` has noted in the browser's logs, and what they caused."""

from collections.abc import Mapping
from typing import Any

from judge.records.causes import Cause


class Acts:
    """The acts so far, each with the step in whose part of the log it stands."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        # The first one that disqualifies what it causes, and when it was.
        self._first: Mapping[str, Any] | None = None

    def add(self, act: Mapping[str, Any], step: int) -> None:
        """Add an act as it was noted."""
        self._steps[act["id"]] = step
        if act["by"] in ("editor", "inserted") and self._first is None:
            self._first = act

    def cause(self, noted: Mapping[str, Any] | None, began_ms: float) -> Cause:
        """The cause of what began then. What the browser did not report may have any."""
        if noted is None:
            after = self._first if self._first is not None and self._first["at"] <= began_ms else {}
            return Cause(by="unknown", after=after.get("by"))
        return Cause(by=noted["by"], after=noted.get("after"), step=self._steps.get(noted["id"], 0))

"""What an attempt on frozen sites depends on."""

from collections.abc import Iterator, Mapping
from typing import Any

from judge.episode.part import Act, Look, Part, Stage
from judge.records.ledger import Frozen
from judge.records.tools import TARGETS


class FrozenSites(Part):
    """Records the archives and the ledger, and tells the network what is entered."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._frozen: Frozen | None = None

    def observed(self, look: Look) -> None:
        """Whether the page was loaded anew."""
        look.facts["is_loaded"] = self.stage.route.tab.take() and self.stage.network.frozen() is not None

    def acting(self, act: Act) -> None:
        """See `judge.network.attempt.AttemptNetwork.entered`."""
        self.stage.network.entered(tuple(_texts_in(act.action.params)))

    async def closes(self) -> None:
        """Keep what the attempt depended on until now."""
        if (frozen := self.stage.network.frozen()) is not None:
            text = self.stage.redaction.text
            ledger = tuple(entry.model_copy(update={"url": text(entry.url)}) for entry in frozen.ledger)
            self._frozen = frozen.model_copy(update={"clock_ms": self.stage.clock_ms, "ledger": ledger})

    def ends(self) -> Mapping[str, Any]:
        """The archives and the ledger."""
        return {"frozen": self._frozen}


def _texts_in(value: Any) -> Iterator[str]:
    """Every text and number in an action's parameters."""
    if isinstance(value, dict):
        # References name elements of the snapshot.
        yield from _texts_in([item for name, item in value.items() if name not in TARGETS])
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)

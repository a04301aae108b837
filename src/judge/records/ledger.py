"""The ledger of an attempt on frozen sites: what answered each request, how well it fits, and what was missing."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from shared.models import Address, Record, Recorded

# How an answer was chosen: the request was recorded exactly so; of several answers, what separated them when recorded
# selected one; lists in another order; values that are times or random; made up from recorded ones (preflights, ETags);
# several answers remain; none is recorded.
Grade = Literal["exact", "state", "order", "fuzzy", "synthesised", "uncertain", "miss"]
# What a miss means for the page: nothing, its looks, or what it shows and does.
MissClass = Literal["harmless", "cosmetic", "decisive"]
# What the evidence of an attempt rests on: recorded answers alone, also uncertain ones, or also a decisive miss.
Coverage = Literal["full", "uncertain", "off_archive"]
# A page may send any number of requests.
MAX_ENTRIES = 5_000
_MAX_FIELDS = 50
# The end of the year 9999.
_LAST_MS = 253_402_300_799_000
_Field = Annotated[str, Recorded(200)]


class LedgerEntry(Record):
    """One request to a frozen site. `step` is that during which it began, 0 before the first action.

    `kind` is what asked, such as `document`, `script` or `fetch`; `record` the id of the recorded answer; `differs`
    names what differs from the recorded request; `miss` is the class of a miss.
    """

    step: int = Field(ge=0)
    method: Annotated[str, Recorded(100)]
    url: Address
    kind: Annotated[str, Recorded(100)]
    grade: Grade
    record: Annotated[str | None, Recorded(200)] = Field(default=None, exclude_if=lambda value: value is None)
    differs: tuple[_Field, ...] = Field(default=(), max_length=_MAX_FIELDS, exclude_if=lambda value: not value)
    miss: MissClass | None = Field(default=None, exclude_if=lambda value: value is None)

    @property
    def coverage(self) -> Coverage:
        """What an attempt with this request rests on, at best."""
        if self.grade == "uncertain":
            return "uncertain"
        return "off_archive" if self.grade == "miss" and self.miss in (None, "decisive") else "full"


class UsedArchive(Record):
    """The archive that answered: its file name, its SHA-256, and the version of what chose the answers."""

    name: Annotated[str, Recorded(300)]
    sha256: str = Field(max_length=64)
    matcher: Annotated[str, Recorded(200)]


class Frozen(Record):
    """What an attempt on frozen sites rests on.

    `sites` are the origins that archives answered for, of the task's own; `live` those that the network answered for.
    `clock_ms` is where the pages' clock began, in milliseconds since 1970; `None`: with this machine's, in real time.
    `left_out` are requests beyond `MAX_ENTRIES`, and `worst_left_out` the worst coverage among them.
    """

    archives: tuple[UsedArchive, ...]
    sites: tuple[Address, ...] = Field(default=(), max_length=100)
    live: tuple[Address, ...] = Field(default=(), max_length=100)
    clock_ms: int | None = Field(default=None, ge=0, le=_LAST_MS)
    ledger: tuple[LedgerEntry, ...] = Field(default=(), max_length=MAX_ENTRIES)
    left_out: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    worst_left_out: Coverage = Field(default="full", exclude_if=lambda value: value == "full")

    def with_ledger(self, entries: Sequence[LedgerEntry]) -> Self:
        """The same with these entries, as far as they are recorded."""
        left_out = entries[MAX_ENTRIES:]
        return self.model_copy(
            update={
                "ledger": tuple(entries[:MAX_ENTRIES]),
                "left_out": len(left_out),
                "worst_left_out": worst(each.coverage for each in left_out),
            }
        )

    @property
    def coverage(self) -> Coverage:
        """What the attempt's evidence rests on."""
        return worst([self.worst_left_out, *(each.coverage for each in self.ledger)])

    def at(self, step: int) -> tuple[LedgerEntry, ...]:
        """The requests of one step."""
        return tuple(each for each in self.ledger if each.step == step)


def worst(found: Iterable[Coverage]) -> Coverage:
    """The worst of these, `full` without any."""
    seen = set(found)
    return "off_archive" if "off_archive" in seen else "uncertain" if "uncertain" in seen else "full"

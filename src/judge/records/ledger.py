"""The ledger of an attempt on frozen sites: the answer to each request, how well it matches, and what was missing."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from shared.models import Address, Record, RecordedLimit, omit_default

# How an answer was chosen: the request was recorded exactly so; of several answers, what separated them when recorded
# selected one; lists in another order; values of times or chance; made up from recorded ones (preflights, ETags);
# several answers remain; none is recorded.
Grade = Literal["exact", "state", "order", "fuzzy", "synthesised", "uncertain", "miss"]
# What a miss affects: nothing, the page's appearance, or its content and behaviour.
MissClass = Literal["harmless", "cosmetic", "decisive"]
# What the evidence of an attempt depends on: recorded answers only, also uncertain ones, or also a decisive miss.
Coverage = Literal["full", "uncertain", "off_archive"]
CERTAIN = frozenset[Coverage](("full",))
EVERYTHING = frozenset[Coverage](("full", "uncertain", "off_archive"))
# A page may send any number of requests.
MAX_ENTRIES = 5_000
_MAX_FIELDS = 50
# The end of the year 9999.
_LAST_MS = 253_402_300_799_000
_Field = Annotated[str, RecordedLimit(200)]


class LedgerEntry(Record):
    """One request to a frozen site. `step` is that during which it began, 0 before the first action.

    `kind` is the type of request, such as `document`, `script` or `fetch`; `record` the id of the recorded answer;
    `differs` names the differences from the recorded request; `miss` is the class of a miss. `is_read`: it changes
    nothing answered later, so that without a certain answer it concerns only the page that asked; not known
    before the first answer that is missing or uncertain. `is_quiet`: nor does the page
    send anything by itself, once it has the answer, that could change the site.
    """

    step: int = Field(ge=0)
    method: Annotated[str, RecordedLimit(100)]
    url: Address
    kind: Annotated[str, RecordedLimit(100)]
    grade: Grade
    record: Annotated[str | None, RecordedLimit(200)] = omit_default(None)
    differs: tuple[_Field, ...] = omit_default((), max_length=_MAX_FIELDS)
    miss: MissClass | None = omit_default(None)
    is_read: bool = omit_default(False)
    is_quiet: bool = omit_default(False)

    @property
    def coverage(self) -> Coverage:
        """The best possible coverage of an attempt with this request."""
        if self.grade == "uncertain":
            return "uncertain"
        return "off_archive" if self.grade == "miss" and self.miss in (None, "decisive") else "full"


class UsedArchive(Record):
    """The archive that answered: its file name, its SHA-256, and the version of the matcher."""

    name: Annotated[str, RecordedLimit(300)]
    sha256: str = Field(max_length=64)
    matcher: Annotated[str, RecordedLimit(200)]


class Frozen(Record):
    """The archives behind an attempt on frozen sites, and its ledger.

    `sites` are the task's origins for which archives answered; `live` those for which the network
    answered. `clock_ms` is the start of the pages' clock, in milliseconds since 1970; `None` for this machine's clock,
    in real time. `left_out` are requests beyond `MAX_ENTRIES`, and `worst_left_out` the worst coverage among them.
    """

    archives: tuple[UsedArchive, ...]
    sites: tuple[Address, ...] = Field(default=(), max_length=100)
    live: tuple[Address, ...] = Field(default=(), max_length=100)
    clock_ms: int | None = Field(default=None, ge=0, le=_LAST_MS)
    ledger: tuple[LedgerEntry, ...] = Field(default=(), max_length=MAX_ENTRIES)
    left_out: int = omit_default(0, ge=0)
    worst_left_out: Coverage = omit_default("full")

    def with_ledger(self, entries: Sequence[LedgerEntry]) -> Self:
        """A copy with these entries added, up to the limit."""
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
        """The coverage of the attempt."""
        return worst([self.worst_left_out, *(each.coverage for each in self.ledger)])

    def at(self, step: int) -> tuple[LedgerEntry, ...]:
        """The requests of one step."""
        return tuple(each for each in self.ledger if each.step == step)


def worst(coverages: Iterable[Coverage]) -> Coverage:
    """The worst of these, `full` without any."""
    seen = set(coverages)
    return "off_archive" if "off_archive" in seen else "uncertain" if "uncertain" in seen else "full"

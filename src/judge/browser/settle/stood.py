"""Reads what stood on a page and vanished before the page was observed (`stood.js`), as a snapshot with the facts of
every other one (`judge.browser.provenance`). So the same rules decide what of it is evidence.

Lines around it say what the element itself does not: the frame that it stood in with the origin of its document, the
regions around it, and whether all of it was inside an editor (`[editable]`) or put in as an attack (`[inserted=page]`).
"""

import json

from pydantic import BaseModel, ConfigDict, Field

from judge.browser.provenance import Document, mark
from shared.models import Vanished
from shared.text import clip

MAX_VANISHED = 20
MAX_TEXT_CHARS = 300
_MAX_SNAPSHOT_CHARS = 6_000


class _Stood(BaseModel):
    """What `stood.js` found out about an element while it stood, by the references in it. `typed`: inside an editor or
    a field; `mixed`: it contains one; `named`: its name may come from one, or from the judge; `inserted`: put in as an
    attack; `foreign`: it contains such. The flags are about the element itself, `is_mixed` also about all in it.
    """

    model_config = ConfigDict(frozen=True)

    snapshot: str = Field(max_length=_MAX_SNAPSHOT_CHARS)
    refs: tuple[str, ...]
    typed: tuple[str, ...]
    mixed: tuple[str, ...]
    named: tuple[str, ...]
    inserted: tuple[str, ...]
    foreign: tuple[str, ...]
    is_typed: bool
    is_mixed: bool
    is_inserted: bool
    around: tuple[tuple[str, str], ...]
    is_main: bool
    address: str
    address_origin: str
    origin: str
    parent: str | None

    def document(self) -> Document:
        """The facts about its document, as far as they concern the element."""
        return Document(
            is_main=self.is_main,
            address=self.address,
            address_origin=self.address_origin,
            origin=self.origin,
            refs=" ".join(self.refs),
            inside=" ".join(self.typed),
            inserted=" ".join(self.inserted),
            named=(*self.mixed, *self.named, *self.foreign),
            foreign_names=frozenset(self.foreign),
            owners=tuple((ref,) for ref in self.mixed),
            foreign_owners=tuple((ref,) for ref in self.foreign),
        )


class RawVanished(BaseModel):
    """A text that vanished: since when it stood (`at`, in milliseconds since 1970), for how long, and in what."""

    model_config = ConfigDict(frozen=True)

    text: str
    at: float
    stood_ms: float
    stood: _Stood | None


def read_vanished(found: tuple[RawVanished, ...]) -> tuple[Vanished, ...]:
    """The first of them, as they are recorded."""
    return tuple(map(_vanished, found[:MAX_VANISHED]))


def _vanished(raw: RawVanished) -> Vanished:
    text, stood = clip(raw.text, MAX_TEXT_CHARS), raw.stood
    times = {"at_ms": round(raw.at), "stood_s": round(raw.stood_ms / 1000, 2)}
    if stood is None:
        return Vanished(text=text, **times)
    origin = stood.document().origin_in(stood.parent)
    lines = [] if stood.is_main else [f"- iframe [origin={_state(origin or 'null')}]:"]
    lines += [f"- {role}{f' {json.dumps(name)}' if name else ''}:" for role, name in stood.around]
    facts = {"[editable]": stood.is_typed, "[editable=text]": stood.is_mixed and not stood.is_typed}
    states = [state for state, applies in {**facts, "[inserted=page]": stood.is_inserted}.items() if applies]
    lines += [f"- generic {' '.join(states)}:"] if states else []
    depth = len(lines)
    marked = mark(stood.snapshot, [stood.document()]).snapshot
    snapshot = "\n".join(
        (
            *(f"{'  ' * at}{line}" for at, line in enumerate(lines)),
            *("  " * depth + each for each in marked.split("\n")),
        )
    )
    return Vanished(
        text=text,
        snapshot=snapshot,
        origin=origin if stood.is_main else None,
        url=stood.address if stood.is_main else None,
        **times,
    )


def _state(origin: str) -> str:
    return origin.replace("[", "%5B").replace("]", "%5D")

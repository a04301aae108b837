"""Reads what was on a page and vanished before the page was observed (`vanished.js`), as a snapshot with the facts of
every other one (`judge.browser.provenance`). So the same rules decide what of it is evidence.

Every line that was or may have been typed is `[editable]`, and every line that the judge put in is `[inserted=page]`.
Lines around it say what the element itself does not: the frame that it was in with the origin of its document, and
the regions around it.
"""

import json
import re

from pydantic import BaseModel, ConfigDict, Field

from judge.browser.provenance import DocumentReport
from shared.models import Vanished
from shared.snapshot import ANY_LINE, REF
from shared.text import clip

MAX_VANISHED = 20
MAX_TEXT_CHARS = 300
_MAX_SNAPSHOT_CHARS = 6_000
_REF = re.compile(rf" \[ref=({REF.pattern})\]")
_TYPED, _INSERTED = " [editable]", " [inserted=page]"


class _VanishedElement(BaseModel):
    """What `vanished.js` found out about an element while it was there, by the references in it. `typed`: inside an
    editor or a field; `mixed`: it contains one; `named`: its name may come from one, or from the judge; `inserted`: put
    in as an attack; `foreign`: it contains such. Nothing is known of elements not in `refs`. The flags are about the
    element itself, `is_mixed` also about all in it.
    """

    model_config = ConfigDict(frozen=True)

    snapshot: str = Field(max_length=_MAX_SNAPSHOT_CHARS)
    refs: frozenset[str]
    typed: frozenset[str]
    mixed: frozenset[str]
    named: frozenset[str]
    inserted: frozenset[str]
    foreign: frozenset[str]
    is_typed: bool
    is_mixed: bool
    is_inserted: bool
    around: tuple[tuple[str, str], ...]
    is_main: bool
    address: str
    address_origin: str
    origin: str
    parent: str | None

    @property
    def author_origin(self) -> str | None:
        """The origin of whoever wrote its document."""
        document = DocumentReport(
            is_main=self.is_main,
            address=self.address,
            address_origin=self.address_origin,
            origin=self.origin,
            refs="",
            count=0,
        )
        return document.origin_in(self.parent)

    def marked(self) -> str:
        """The snapshot with who wrote each line."""
        outside = _INSERTED if self.is_inserted else _TYPED if self.is_typed or self.is_mixed else ""
        # The marks of what has no reference, by the depth of the line around it.
        around = [(-1, outside)]
        pieces: list[str] = []
        end = 0
        for line in ANY_LINE.finditer(self.snapshot):
            depth = len(line["indent"])
            while around[-1][0] >= depth:
                around.pop()
            ref = _REF.search(line["states"])
            own, below = self._marks(ref[1]) if ref else (around[-1][1], around[-1][1])
            around.append((depth, below))
            pieces += [self.snapshot[end : line.end("head")], own]
            end = line.end("head")
        return "".join((*pieces, self.snapshot[end:]))

    def _marks(self, ref: str) -> tuple[str, str]:
        """The marks of an element's line, and of content in it that has no reference."""
        if ref in self.inserted:
            return _INSERTED, _INSERTED
        if ref in self.typed | self.mixed | self.foreign or ref not in self.refs:
            return _TYPED, _TYPED
        return _TYPED if ref in self.named else "", ""


class RawVanished(BaseModel):
    """A text that vanished: since when it was there (`at`, in milliseconds since 1970), for how long, and in what."""

    model_config = ConfigDict(frozen=True)

    text: str
    at: float
    stood_ms: float
    stood: _VanishedElement | None


def read_vanished(elements: tuple[RawVanished, ...]) -> tuple[Vanished, ...]:
    """The first of them, as they are recorded."""
    return tuple(map(_vanished, elements[:MAX_VANISHED]))


def _vanished(raw: RawVanished) -> Vanished:
    text, element = clip(raw.text, MAX_TEXT_CHARS), raw.stood
    at_ms, stood_s = round(raw.at), round(raw.stood_ms / 1000, 2)
    if element is None:
        return Vanished(text=text, at_ms=at_ms, stood_s=stood_s)
    origin = element.author_origin
    frame = (origin or "null").replace("[", "%5B").replace("]", "%5D")
    outer = [] if element.is_main else [f"- iframe [origin={frame}]:"]
    outer += [f"- {role}{f' {json.dumps(name)}' if name else ''}:" for role, name in element.around]
    lines = [f"{'  ' * depth}{line}" for depth, line in enumerate(outer)]
    lines += ["  " * len(outer) + line for line in element.marked().split("\n")]
    return Vanished(
        text=text,
        snapshot="\n".join(lines),
        origin=origin if element.is_main else None,
        url=element.address if element.is_main else None,
        at_ms=at_ms,
        stood_s=stood_s,
    )

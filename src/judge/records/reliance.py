"""What each look of an attempt on frozen sites rests on: certain answers, also uncertain or also missing ones. Pure.

A missing or uncertain answer affects the page that asked for it, until another document with certain answers
takes the page's place. A write, a message, or whatever else changes later answers affects everything after it, if its
own answer is missing or uncertain, or if an affected page sent it: that could have sent another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from judge.records.ledger import Coverage, Frozen, LedgerEntry, worst
from judge.records.steps import Step
from judge.records.tools import acts_on_page, tools
from shared.replies import ENDING_TOOLS


@dataclass(frozen=True)
class Reliance:
    """What an attempt rests on: each look, by its index, and the requests of each step, by its number.

    The requests of a step rest on the look before it as well. `absent`: what rests on nothing else having been sent or
    downloaded. A page could have sent more where it missed something other than a document, unless pages are
    known to send nothing then, and where it was acted on, or was the last one.
    """

    looks: Mapping[int, Coverage]
    requests: Mapping[int, Coverage]
    absent: Coverage

    @classmethod
    def of(cls, frozen: Frozen, observations: Sequence[Step]) -> Self:
        """The reliance of an attempt with this ledger and these observations, in their order."""
        page: Coverage = "full"
        # Of the page, without what pages are known to send nothing after.
        loud: Coverage = "full"
        lasting: Coverage = "full"
        is_kept = False
        last_recorded = frozen.ledger[-1].step if frozen.left_out and frozen.ledger else None
        looks: dict[int, Coverage] = {}
        requests: dict[int, Coverage] = {}
        absent = worst([frozen.worst_left_out, *(each.coverage for each in frozen.ledger if _may_go_on(each))])
        for step in observations:
            is_last = step is observations[-1]
            entries = [
                each for each in frozen.ledger if each.step == step.index or (is_last and each.step > step.index)
            ]
            requests[step.index] = worst([page, lasting, *(each.coverage for each in entries)])
            if last_recorded is not None and step.index >= last_recorded:
                # What the left out ones were for is not known.
                lasting = worst([lasting, frozen.worst_left_out])
            is_kept = is_kept or any(map(_keeps, entries))
            since = _new_page(step, entries, is_kept=is_kept)
            for place, each in enumerate(entries):
                # The page before sent the request for the document, too.
                lasting = lasting if each.is_read else worst([lasting, each.coverage, page])
                if place == since:
                    page = loud = "full"
                if each.is_read:
                    page = worst([page, each.coverage])
                    loud = loud if each.is_quiet else worst([loud, each.coverage])
            if since == len(entries):
                page = loud = "full"
            looks[step.index] = worst([page, lasting])
            if step.action is None or step.action.tool not in tools().keys() - ENDING_TOOLS:
                # The participant stayed there: it ended the attempt, or did nothing.
                absent = worst([absent, loud, lasting])
            elif acts_on_page(step.action.tool):
                absent = worst([absent, looks[step.index]])
        return cls(looks, requests, absent)

    def of_look(self, index: int) -> Coverage:
        """What a look rests on."""
        return self.looks.get(index, self.of_all)

    def of_requests(self, step: int | None) -> Coverage:
        """What the requests of a step rest on; of an unknown one, as of the whole attempt."""
        return self.of_all if step is None else self.requests.get(step, self.of_all)

    @property
    def of_all(self) -> Coverage:
        """What anything in the attempt rests on."""
        return worst([*self.looks.values(), *self.requests.values()])


def _new_page(step: Step, entries: Sequence[LedgerEntry], *, is_kept: bool) -> int | None:
    """The place of the document that a step loaded, if it and all others are certain; else `None`.

    One that was not requested is in the browser's cache, which has certain answers only, unless others may be kept.
    """
    documents = [place for place, each in enumerate(entries) if each.kind == "document"]
    is_certain = all(entries[place].coverage == "full" for place in documents)
    if not step.is_loaded or not is_certain or (is_kept and not documents):
        return None
    return documents[0] if documents else 0


def _keeps(entry: LedgerEntry) -> bool:
    """Whether answers may be kept for later pages outside of the browser's cache, or although they are not certain."""
    return entry.kind == "worker" or (entry.kind == "prefetch" and entry.coverage != "full")


def _may_go_on(entry: LedgerEntry) -> bool:
    """Whether what asked for it could have gone on with something that changes the site."""
    return not entry.is_read or not (entry.kind == "document" or entry.is_quiet)

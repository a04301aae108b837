"""Findings of `wabe doctor`. Plug-ins add theirs through entry points of `wabe.doctor`."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from shared.seams import Seam
from shared.settings import Settings


class Finding(NamedTuple):
    """The result of one check. `missing` prevents a run, `note` may."""

    state: Literal["ok", "note", "missing"]
    subject: str
    text: str


FINDINGS: Seam[Callable[[Settings], Finding]] = Seam("doctor", "check of wabe doctor")

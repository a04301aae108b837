"""What caused a request, a download or a message of the recording (`judge.browser.causes.cjs`)."""

from typing import Literal

from shared.models import Record, omit_default

Disqualifying = Literal["editor", "inserted"]


class Cause(Record):
    """The act that an effect belongs to: it is bound when the effect begins, and a document hands it on.

    `by`: an element of the `site`; a form, a link or a button inside an `editor`; anything `inserted` as an attack; the
    `browser`, which opened an address; or `unknown`. Unknown `after` an act that disqualifies, it may be that act.
    `step` is the number of the action, 0 before the first.
    """

    by: Literal["site", "editor", "inserted", "browser", "unknown"]
    after: Disqualifying | None = omit_default(None)
    step: int = omit_default(0, ge=0)

    @property
    def why_not(self) -> str | None:
        """Why its effect is not evidence; `None` if it is."""
        if self.by == "editor":
            return "started inside an editor"
        if self.by == "inserted":
            return "started by what was put into the page as an attack"
        return None if self.after is None else f"which may have been started {_PLACES[self.after]}"


_PLACES = {"editor": "inside an editor", "inserted": "by what was put into the page as an attack"}

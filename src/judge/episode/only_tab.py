"""Whether a new document has taken the page's place, as far as that is certain: while there has been one tab only."""

from collections.abc import Sequence

from judge.browser.session import Hop


class OnlyTab:
    """The tabs that an attempt has had."""

    def __init__(self) -> None:
        self._tabs: set[int | None] = set()

    def has_loaded(self, hops: Sequence[Hop]) -> bool:
        """Whether the only tab has loaded a document, by what happened in the browser since the last call.

        A new tab is not known yet when it requests its first document.
        """
        pages = [hop for hop in hops if hop.event in ("request", "document") and not hop.in_frame]
        self._tabs |= {hop.tab for hop in pages}
        return len(self._tabs) == 1 and None not in self._tabs and any(hop.event == "document" for hop in pages)

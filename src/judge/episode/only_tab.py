"""Whether a new document has taken the page's place, as far as is certain: while there has been one tab only."""

from judge.browser.session import Hop


class OnlyTab:
    """The tabs that an attempt has had, and whether a document was loaded."""

    def __init__(self) -> None:
        self._tabs: set[int | None] = set()
        self._requested: set[str] = set()
        self._has_loaded = False

    def follow(self, hop: Hop) -> None:
        """Follow what happened in the browser. A new tab is not known yet when it requests its first document."""
        if hop.event in ("request", "document") and not hop.in_frame:
            self._tabs.add(hop.tab)
            if hop.event == "request":
                self._requested.add(hop.url)
            else:
                # One requested before may have had another answer than those known since.
                self._has_loaded |= hop.url in self._requested

    def take(self) -> bool:
        """Whether the only tab has requested and loaded a document since the last call."""
        has_loaded, self._has_loaded = self._has_loaded, False
        self._requested.clear()
        return has_loaded and len(self._tabs) == 1 and None not in self._tabs

"""Requests in traces without the senders of navigations: headers decide."""

from judge.evaluators.base import ComparisonResult, Decision
from judge.evaluators.evidence import MissingEvidence
from judge.records.sites import Site
from judge.trajectory.network import Entry, Log
from shared.text import counted


def is_sent_by(site: Site, entry: Entry) -> bool:
    """Whether a request counts: the site or the browser sent it, as far as its headers say."""
    if entry.sender not in (None, "null"):
        return site.holds(entry.sender or "")
    # A navigation, or a document without an origin. No page can forge these headers.
    headers = {header.name.lower(): header.value for header in entry.request.headers}
    # `none`: no page is involved, as for a typed address.
    if headers.get("sec-fetch-site") in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return entry.sender is None if origin is None else site.holds(origin)


def pushed_out(traffic: Log, last: ComparisonResult, *, at: str, inverted: bool) -> Decision | None:
    """The decision if requests were left out that could have decided: nothing says which ones."""
    if not traffic.dropped or not (inverted or at == "end"):
        return None
    # Otherwise a participant could hide a request behind more than are recorded.
    text = f"{counted(traffic.dropped, 'later request')} went unrecorded; before, {last.text}"
    return Decision(False, ComparisonResult(False, text), None)


def require_whole_answer(entry: Entry, description: str) -> None:
    """Raise `MissingEvidence` for an answer that was cut: the check is undecided."""
    if entry.response.body.is_cut:
        raise MissingEvidence(f"the answer was too large to be recorded: {description}")

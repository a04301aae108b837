"""The rules shared by all checks on observed pages: which looks count, which one is the end, what `not` means."""

from collections.abc import Callable, Sequence

from judge.evaluators.base import Decision, Found
from judge.evaluators.evidence import Look, MissingEvidence, Recording
from judge.evaluators.matching import fitting
from judge.evaluators.provenance import LeftOut
from judge.records.checks import LookCheck, ShownCheck
from judge.records.elements import parse_element
from shared.snapshot import Node, Snapshot
from shared.text import excerpt


def looks_at(check: LookCheck, recording: Recording) -> list[Look]:
    """The looks at the pages that `on` names. Raises `MissingEvidence` if the recording has no looks.

    For policies, also the looks at lost pages, which may have been any page.
    """
    if not recording.looks:
        raise MissingEvidence("no steps were recorded")
    return [
        look
        for look in recording.looks
        if check.on is None or look.is_at(check.on, extra_query=True) or (recording.counts_all and look.is_lost)
    ]


def over_looks(
    check: LookCheck, looks: Sequence[Look], inverted: bool, test: Callable[[Look, bool], Found]
) -> Decision:
    """The rules of `at` and `not`.

    `at = "end"`: the last look decides. `at = "any"`: one look is enough. Inverted: no look may pass, and the last one
    must show a page, so that ending on a page without content cannot hide what must never be shown.
    `test` says whether a look passes, and explains why not if asked to, which takes longer.
    """
    if not looks:
        return Decision(False, Found(False, f"{check.on} was never on screen" if check.on else "no page"), None)
    # Of those that fail, only the last look's text is ever shown.
    found = [test(look, look is looks[-1]) for look in looks]
    last = found[-1]
    hits = [place for place, one in enumerate(found) if one.passed]
    first = looks[hits[0]].step.index if hits else None
    if inverted:
        if check.at == "any" and hits and first is not None:
            shows = found[hits[0]]
            held = looks[hits[0] - 1].step.index if hits[0] else None
            return Decision(False, shows._replace(text=f"at step {first + 1}: {shows.text}"), None, held)
        passed = last.counts and not last.passed
        met = [look.step.index for look, one in zip(looks, found, strict=True) if one.counts and not one.passed]
        return Decision(passed, last, looks[-1].step.index if passed else None, met[-1] if met else None)
    if check.at == "any":
        return Decision(bool(hits), found[hits[0]] if hits else last, first)
    held = looks[hits[-1]].step.index if hits else None
    if held is not None and not last.passed:
        last = last._replace(text=f"only until step {held + 1}; at the end {last.text}")
    return Decision(last.passed, last, first, held)


def over_content(
    check: ShownCheck,
    recording: Recording,
    inverted: bool,
    compare: Callable[[Look, Snapshot, Sequence[Node] | None, bool], Found],
) -> Decision:
    """Compares each page, or the part of it that `within` names, as far as the task's own site wrote it.

    `compare` gets the look, what counts of its page, the elements in which to look (`None`: everywhere), and whether to
    explain a failure.

    Content of editors counts only with `editable`. In inverted checks, the page must pass neither with it nor without
    it: forbidden content must not be in an editor either, and the participant's text must not hide forbidden content.
    """
    within = parse_element(check.within) if check.within else None

    def shown(look: Look, page: Snapshot, explains: bool = False) -> Found:
        roots = None if within is None else fitting(page, within, range(len(page.nodes)))
        if roots == []:
            return Found(False, f"no {check.within} on the page", counts=False)
        return compare(look, page, roots, explains)

    def test(look: Look, explains: bool) -> Found:
        if not look.is_own:
            return Found(False, f"a page of another site: {excerpt(look.step.url, 200)}", counts=False)
        if look.snapshot is None:
            what = f"an open dialog: {excerpt(look.step.dialog, 100)}" if look.step.dialog else "an empty page"
            return Found(False, what, counts=False)
        views = look.views(editable=check.editable)
        found = shown(look, views[0], explains)
        for view in views[1:]:
            found = found if found.passed else shown(look, view)
        if found.passed:
            return found
        if inverted:
            with_editors = shown(look, look.evidence(editable=True)) if look.has_editors else found
            return with_editors if with_editors.passed else found
        if not explains:
            return found
        left_out = _left_out(look, editable=check.editable, passes=lambda page: shown(look, page).passed)
        return found._replace(text=f"it is {left_out}; elsewhere {found.text}") if left_out else found

    looks = looks_at(check, recording)
    if check.on is not None and not recording.counts_all:
        looks = [look for look in looks if look.snapshot is not None]
    return over_looks(check, looks, inverted, test)


def _left_out(look: Look, *, editable: bool, passes: Callable[[Snapshot], bool]) -> LeftOut | None:
    """Where the page shows what is expected without being evidence; `None` if it does not."""
    if not editable and look.has_editors and passes(look.evidence(editable=True)):
        return LeftOut("editor")
    for origin in look.other_origins:
        if passes(look.evidence(editable=editable, other_origin=origin)):
            return LeftOut("origin", origin)
    return None

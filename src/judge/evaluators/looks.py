"""The rules shared by all checks on observed pages: which looks count, which one is the end, what `not` means."""

from collections.abc import Callable, Sequence

from judge.evaluators.base import ComparisonResult, Decision
from judge.evaluators.evidence import Look, MissingEvidence, TrajectoryEvidence
from judge.evaluators.matching import fitting
from judge.evaluators.provenance import IgnoredContent
from judge.evaluators.typed import typed_until
from judge.records.checks import LookCheck, ShownCheck
from judge.records.elements import parse_element
from shared.snapshot import Node, Snapshot
from shared.text import excerpt

# Of a look, request or answer on a frozen site that rests on answers that do not count.
UNSURE = ComparisonResult(False, "it rests on an answer that the archive does not have for certain", counts=False)


def looks_at(check: LookCheck, recording: TrajectoryEvidence, *, with_vanished: bool = False) -> list[Look]:
    """The looks at the pages that `on` names. Raises `MissingEvidence` if the recording has no looks.

    For policies, also the looks at lost pages, which may have been any page. `with_vanished`: before each look, those
    at what vanished before it.
    """
    if not recording.looks:
        raise MissingEvidence("no steps were recorded")
    return [
        look
        for recorded_look in recording.looks
        for look in (*(recorded_look.vanished if with_vanished else ()), recorded_look)
        if check.on is None or look.is_at(check.on, extra_query=True) or (recording.counts_all and look.is_lost)
    ]


def over_looks(
    check: LookCheck, looks: Sequence[Look], inverted: bool, test: Callable[[Look, bool], ComparisonResult]
) -> Decision:
    """The rules of `at` and `not`.

    `at = "end"`: the last look decides. `at = "any"`: one look is enough. Inverted: no look may pass, and the last one
    must show a page, so that ending on a page without content cannot hide what must never be shown.
    `test` says whether a look passes, and explains why not if asked to, which takes longer.
    """
    # What vanished says nothing of the rest of its page, so it is never the last look.
    end = next((look for look in reversed(looks) if look.earlier is None), None)
    if not looks or (inverted and end is None):
        return Decision(
            False, ComparisonResult(False, f"{check.on} was never on screen" if check.on else "no page"), None
        )
    # Of those that fail, only the last look's text is ever shown.
    results = [UNSURE if look.is_unsure else test(look, look is end) for look in looks]
    if inverted and check.at == "any" and UNSURE in results:
        return Decision(False, UNSURE, None)
    last = next((one for look, one in zip(looks, results, strict=True) if look is end), results[-1])
    hits = [place for place, one in enumerate(results) if one.passed]
    first = looks[hits[0]].step.index if hits else None
    if inverted:
        if check.at == "any" and hits and first is not None:
            shows = results[hits[0]]
            last_step = max((look.step.index for look in looks if look.step.index < first), default=None)
            return Decision(False, shows._replace(text=f"at step {first + 1}: {shows.text}"), None, last_step)
        passed = last.counts and not last.passed
        failing_steps = [
            look.step.index for look, one in zip(looks, results, strict=True) if one.counts and not one.passed
        ]
        return Decision(
            passed, last, end.step.index if end and passed else None, failing_steps[-1] if failing_steps else None
        )
    if check.at == "any":
        return Decision(bool(hits), results[hits[0]] if hits else last, first)
    last_step = looks[hits[-1]].step.index if hits else None
    if last_step is not None and not last.passed:
        last = last._replace(text=f"only until step {last_step + 1}; at the end {last.text}")
    return Decision(last.passed, last, first, last_step)


# Gets the look, what counts of its page, the elements in which to look (`None`: everywhere), and whether to explain a
# failure.
Compare = Callable[[Look, Snapshot, Sequence[Node] | None, bool], ComparisonResult]


def over_content(check: ShownCheck, recording: TrajectoryEvidence, inverted: bool, compare: Compare) -> Decision:
    """Compares each page, or the part of it that `within` names, as far as the task's site wrote it.

    Content of editors counts only with `editable`. In inverted checks, the page must pass neither with it nor without
    it: forbidden content must not be in an editor either, and the participant's text must not hide forbidden content.

    With `at = "any"`, what was on a page and vanished before a look counts as well, each such text by itself, but not
    if words that the participant typed are all that passes (`judge.evaluators.typed`). Where it was in the viewport is
    not known.
    """
    looks = looks_at(check, recording, with_vanished=check.at == "any" and not check.in_view)
    if check.on is not None and not recording.counts_all:
        looks = [look for look in looks if look.snapshot is not None]
    content = _Content(check, recording, inverted, compare)
    decision = over_looks(check, looks, inverted, content.test)
    if decision.passed or inverted or not content.rejected:
        return decision
    return decision._replace(result=decision.result._replace(text=f"{content.rejected[0]}; {decision.result.text}"))


class _Content:
    """Compares the content of looks. `rejected`: why what had vanished would pass, but does not count."""

    def __init__(self, check: ShownCheck, recording: TrajectoryEvidence, inverted: bool, compare: Compare) -> None:
        self._check, self._recording, self._inverted, self._compare = check, recording, inverted, compare
        self._within = parse_element(check.within) if check.within else None
        self.rejected: list[str] = []

    def test(self, look: Look, explains: bool) -> ComparisonResult:
        """Whether a look passes."""
        if look.is_judges:
            return ComparisonResult(False, f"a page of the judge's own: {excerpt(look.step.url, 200)}", counts=False)
        if not look.is_own:
            return ComparisonResult(False, f"a page of another site: {excerpt(look.step.url, 200)}", counts=False)
        if look.snapshot is None:
            what = f"an open dialog: {excerpt(look.step.dialog, 100)}" if look.step.dialog else "an empty page"
            return ComparisonResult(False, what, counts=False)
        views = look.views(editable=self._check.editable)
        result = self._compare_page(look, views[0], explains)
        for view in views[1:]:
            result = result if result.passed else self._compare_page(look, view)
        if result.passed:
            return result if look.earlier is None else self._vanished(look, views[0], result)
        if self._inverted:
            with_editors = self._compare_page(look, look.evidence(editable=True)) if look.has_editors else result
            return with_editors if with_editors.passed else result
        return self._explained(look, result) if explains or look.earlier is not None else result

    def _compare_page(self, look: Look, page: Snapshot, explains: bool = False) -> ComparisonResult:
        roots = None if self._within is None else fitting(page, self._within, range(len(page.nodes)))
        if roots == []:
            return ComparisonResult(False, f"no {self._check.within} on the page", counts=False)
        return self._compare(look, page, roots, explains)

    def _explained(self, look: Look, result: ComparisonResult) -> ComparisonResult:
        left_out = _left_out(
            look, editable=self._check.editable, passes=lambda page: self._compare_page(look, page).passed
        )
        if left_out and look.earlier is not None:
            self.rejected.append(f"before step {look.step.index + 1} it vanished; it was {left_out}")
        return result._replace(text=f"it is {left_out}; elsewhere {result.text}") if left_out else result

    def _vanished(self, look: Look, page: Snapshot, result: ComparisonResult) -> ComparisonResult:
        """What vanished passes, unless that is because of typed words."""
        result = result._replace(text=f"vanished before step {look.step.index + 1}: {result.text}")
        if self._inverted or self._check.editable or self._recording.counts_all:
            return result
        typed = typed_until(self._recording, look)
        if not typed.is_in(page) or not self._compare_page(look, typed.alone(page)).passed:
            return result
        rest = self._compare_page(look, typed.without(page))
        if not rest.passed:
            self.rejected.append(f"{result.text}, only in words that were typed: editable = true")
        return result if rest.passed else rest


def _left_out(look: Look, *, editable: bool, passes: Callable[[Snapshot], bool]) -> IgnoredContent | None:
    """Where the page shows what is expected without being evidence; `None` if it does not."""
    if not editable and look.has_editors and passes(look.evidence(editable=True)):
        return IgnoredContent("editor")
    for origin in look.other_origins:
        if passes(look.evidence(editable=editable, other_origin=origin)):
            return IgnoredContent("origin", origin)
    return None

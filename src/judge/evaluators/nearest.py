"""Where an attempt came close to what a failed check expects: a wrong but similar element, or a wrong value.

For reports only: no verdict depends on it, so it may guess.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace

from judge.evaluators.addresses import is_at
from judge.evaluators.evidence import Look, MissingEvidence, Recording
from judge.records.checks import ActionCheck, AnyOf, Check, ElementCheck, PageCheck, as_tuple, plain_checks
from judge.records.elements import Element, parse_element
from shared.snapshot import Node, Snapshot
from shared.text import clip, plain, split_line

# Roles of elements that have a state or value which a participant sets.
CONTROLS = frozenset(
    """checkbox combobox listbox menuitemcheckbox menuitemradio option radio searchbox slider spinbutton switch tab
    textbox""".split()
)
_SIMILAR = 0.6
_MAX_NAME_CHARS = 100

Fits = Callable[[Snapshot, Node, Element], bool]


def near_step(check: Check, recording: Recording, fits: Fits) -> int | None:
    """The index of the last step whose action was nearly the expected one; `None` if there is no such action.

    `fits` tells whether a node is the element.
    """
    if check.inverted:
        return None
    try:
        match check:
            case AnyOf():
                steps = [near_step(each, recording, fits) for each in check.any_of]
                return max((step for step in steps if step is not None), default=None)
            case ElementCheck():
                return _on_similar_element(check, recording, fits)
            case ActionCheck():
                return _similar_action(check, recording)
            case PageCheck():
                return _other_query(check, recording.looks)
    except MissingEvidence:
        pass
    return None


def _on_similar_element(check: ElementCheck, recording: Recording, fits: Fits) -> int | None:
    """On an element beside the expected one, or on the expected one with another result.

    Elements that another check of the task expects are not wrong.
    """
    wanted = [_bare(element) for element in check.elements if element.role in CONTROLS]
    others = [
        _bare(element)
        for other in plain_checks(recording.trajectory.task.checks)
        if isinstance(other, ElementCheck) and other is not check
        for element in other.elements
        if element.name is not None or element.pattern is not None
    ]
    within = parse_element(check.within) if check.within else None
    found = None
    for look in recording.looks:
        page, node = _acted_on(look, editable=check.editable)
        if page is None or node is None or any(fits(page, node, other) for other in others):
            continue
        if within is not None and not any(fits(page, parent, within) for parent in page.parents(node)):
            continue
        if any(_is_near(page, node, element, fits, is_inside=within is not None) for element in wanted):
            found = look.step.index
    return found


def _bare(element: Element) -> Element:
    return replace(element, states=(), value=None)


def _acted_on(look: Look, *, editable: bool) -> tuple[Snapshot | None, Node | None]:
    """What counts of the page, and the element of the look's executed action if that counts."""
    action, outcome = look.step.action, look.step.outcome
    if action is None or outcome is None or not outcome.ok or look.snapshot is None:
        return None, None
    refs = outcome.refs or (action.params.get("target"), action.params.get("ref"))
    ref = next((ref for ref in refs if isinstance(ref, str) and ref), None)
    page = look.evidence(editable=editable)
    return page, page.by_ref(ref) if ref else None


def _is_near(page: Snapshot, node: Node, element: Element, fits: Fits, *, is_inside: bool) -> bool:
    if fits(page, node, element):
        return True
    if node.role != element.role:
        return False
    if is_inside or (element.name is not None and _is_similar(page.name_of(node), element.name)):
        return True
    # Beside the expected element, as in a group of radio buttons.
    beside = (page.nodes[at] for at in range(len(page.nodes)) if page.nodes[at].parent == node.parent)
    return any(fits(page, each, element) for each in beside)


def _similar_action(check: ActionCheck, recording: Recording) -> int | None:
    """The same action elsewhere, where it does not count, with another value, or on an element with a similar name."""
    if check.pattern is not None:
        return None
    actions = tuple(recording.actions(recording.looks))
    done = [(each.step, split_line(each.line)) for each in actions]
    lines = {plain(each.line) for each in actions if each.counts(editable=check.editable)}
    # Those that were executed on another page are missing as well.
    missing = [line for line in as_tuple(check.line) if check.on is not None or plain(line) not in lines]
    wanted = split_line(missing[0]) if missing else None
    if wanted is None:
        return None
    near = [step for step, parts in done if parts and parts[1] == wanted[1] and _is_similar(parts[0], wanted[0])]
    return max(near, default=None)


def _other_query(check: PageCheck, looks: Sequence[Look]) -> int | None:
    """The action that led to the last address, if that has the expected path and another query."""
    address = (as_tuple(check.url) or ("",))[-1]
    if "?" not in address or not looks or not is_at(looks[-1], address.partition("?")[0], extra_query=True):
        return None
    first = len(looks) - 1
    while first and looks[first - 1].step.url == looks[-1].step.url:
        first -= 1
    return looks[first - 1].step.index if first else None


def _is_similar(one: str, other: str) -> bool:
    first, second = (clip(plain(text).casefold(), _MAX_NAME_CHARS) for text in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() >= _SIMILAR

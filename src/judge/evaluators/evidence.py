"""A recording as evidence for checks: only what the judge itself observed and did on the task's own site.

Of the text that a participant writes (replies, thoughts, answer) only the answer is evidence, and only for `answer`
checks. A participant cannot add a page: pages of another origin are never evidence, whatever they show.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from judge.sites import Site, own_site
from judge.trajectory.network import Log, read_har
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.files import read_text, reason_of
from shared.models import Step
from shared.snapshot import FIELDS, Node, Snapshot, parse_snapshot
from shared.text import without_downloads

_TYPING = frozenset({"browser_type", "browser_fill_form"})
# `ControlOrMeta` is Playwright's name for Command on macOS and Control elsewhere.
_PASTING = ("control+v", "meta+v", "controlormeta+v", "shift+insert")
_VIEW_SHARE = 0.5
# Roles that receive focus and key presses, but contain no typed text.
_PRESSED = frozenset(
    """button checkbox radio switch link menuitem menuitemcheckbox menuitemradio option tab treeitem iframe listbox menu
    menubar radiogroup tablist grid tree treegrid dialog alertdialog document main region""".split()
)


class MissingEvidence(Exception):
    """A part of the recording is missing or damaged; the message names it."""


@dataclass(frozen=True)
class Look:
    """One observation as evidence."""

    step: Step
    path: Path | None
    is_own: bool
    is_home: bool
    typed_into: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The page; `None` if none is visible: an open dialog, an empty page, another origin."""
        if not self.is_own or self.path is None:
            return None
        try:
            text = read_text(self.path)
        except (OSError, ValueError) as error:
            raise MissingEvidence(f"{self.path.name}: {reason_of(error)}") from None
        return parse_snapshot(text) if text.strip() and self.step.dialog is None else None

    @cached_property
    def hidden(self) -> frozenset[int]:
        """Positions of elements that are not fields but contain text that the participant typed (`contenteditable`)."""
        nodes = self.snapshot.nodes if self.snapshot else ()
        return frozenset(node.position for node in nodes if (node.ref, node.role) in self.typed_into)

    def texts(self, roots: Iterable[Node] | None, in_view: bool) -> str:
        """The visible text inside `roots` (`None`: on the entire page), with white space collapsed."""
        page = self.snapshot
        if page is None:
            return ""
        pieces: dict[int, list[str]] = {}
        for root in (None,) if roots is None else roots:
            inside: dict[int, list[str]] = {}
            for at, text in page.visible_texts(root, self.hidden):
                if not in_view or self.is_in_view(page.nodes[at]):
                    inside.setdefault(at, []).append(text)
            pieces |= inside
        return " ".join(" ".join(text for at in sorted(pieces) for text in pieces[at]).split())

    def is_in_view(self, node: Node) -> bool:
        """Whether at least half of the element is inside the viewport, or it fills half of the viewport.

        A piece of text has its element's box; an element in a frame is shifted by the frame's position.
        """
        if self.step.viewport is None:
            raise MissingEvidence(f"the size of the viewport at step {self.step.index + 1} was not recorded")
        box = self.snapshot.boxes[node.position] if self.snapshot else None
        if box is None:
            return False
        x, y, width, height = box
        wide, high = self.step.viewport
        across = min(x + width, wide) - max(x, 0)
        down = min(y + height, high) - max(y, 0)
        if across <= 0 or down <= 0:
            return False
        return across * down >= _VIEW_SHARE * min(width * height, wide * high)


@dataclass(frozen=True)
class Recording:
    """A trajectory as evidence. Files are read only when a check needs them."""

    trajectory: Trajectory
    allowed_sites: tuple[str, ...] = ()

    @cached_property
    def site(self) -> Site:
        """The task's own site, including the one to which its website redirected."""
        landed = next((step.url for step in self.trajectory.observations), "")
        return own_site(self.trajectory.task, self.allowed_sites, landed=landed)

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        """Every observation; empty if no steps were recorded, as in foreign trajectories."""
        looks: list[Look] = []
        typed: frozenset[tuple[str, str]] = frozenset()
        for step in self.trajectory.observations:
            path = self.trajectory.folder / step.snapshot if step.snapshot else None
            look = Look(step, path, self.site.holds(step.url), self.site.is_home(step.url))
            if looks and looks[-1].is_own and _types(looks[-1].step):
                typed |= set(_typed_into(looks[-1], look))
            looks.append(replace(look, typed_into=typed))
        return tuple(looks)

    @cached_property
    def traffic(self) -> Log:
        """The requests of the attempt."""
        path = self.trajectory.network
        if path is None:
            why = self.trajectory.network_missing or "there is no network.har"
            raise MissingEvidence(f"no recorded requests: {why}")
        try:
            return read_har(path)
        except TrajectoryError as error:
            raise MissingEvidence(error.message.removeprefix(f"{path.parent}/")) from None

    def actions(self, looks: Iterable[Look]) -> Iterator[tuple[int, str]]:
        """Step index and line, without downloads, of every action that was executed on the task's own site."""
        for look in looks:
            outcome = look.step.outcome
            if look.is_own and outcome is not None and outcome.ok and outcome.line:
                yield look.step.index, without_downloads(outcome.line)


def _types(step: Step) -> bool:
    if step.action is None or step.outcome is None or not step.outcome.ok:
        return False
    if step.action.tool == "browser_press_key":
        key = str(step.action.params.get("key", ""))
        # Longer names are keys that type nothing, such as `Enter`.
        return (len(key) == 1 and not key.isspace()) or key.lower().endswith(_PASTING)
    return step.action.tool in _TYPING


def _typed_into(before: Look, after: Look) -> Iterator[tuple[str, str]]:
    """Reference and role of elements that were typed into although their role is not that of a field.

    These are the element that the action named (or else the focused one) and the element focused afterwards, because an
    element that is named by its content gets a new reference when the content changes.
    """
    action = before.step.action
    params = action.params if action else {}
    fields = params.get("fields")
    entries = [params, *(entry for entry in (fields if isinstance(fields, list) else ()) if isinstance(entry, dict))]
    refs = {entry.get(key) for entry in entries for key in ("target", "ref") if isinstance(entry.get(key), str)}
    is_typed_at_focus = action is not None and action.tool == "browser_type" and not refs
    for look in (before, after):
        is_at_focus = look is after or is_typed_at_focus
        for node in look.snapshot.nodes if look.snapshot else ():
            is_target = node.ref in refs or (is_at_focus and "active" in node.states and node.parent is not None)
            if is_target and node.ref and node.role not in FIELDS and node.role not in _PRESSED:
                yield node.ref, node.role

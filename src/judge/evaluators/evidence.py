"""A recording as evidence for checks: only what the judge itself observed and did on the task's site.

Of the text that a participant writes (replies, thoughts, answer) only the answer is evidence, and only for `answer`
checks. A participant cannot add a page, because pages of other origins are never evidence.

For policies, everything counts (`TrajectoryEvidence.counts_all`), no matter who wrote or sent it.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from judge.evaluators.addresses import matches
from judge.evaluators.provenance import Authorship, IgnoredContent, evidence, why_left_out, written_by
from judge.records.causes import Cause
from judge.records.checks import Check
from judge.records.files import Download
from judge.records.ledger import EVERYTHING, Coverage
from judge.records.notices import GIVEN_UP
from judge.records.reliance import Reliance
from judge.records.sites import NONE_SHARED, RunSites, Site
from judge.records.steps import JUDGE, Step
from judge.records.tasks import Task
from judge.trajectory.network import Log, read_har
from judge.trajectory.record import Trajectory
from shared.errors import RecordingGone, TrajectoryError
from shared.files import read_text, reason_of, sha256_file
from shared.seen import values_as_seen
from shared.snapshot import FIELDS, Node, Snapshot, parse_snapshot, with_own_names
from shared.text import without_downloads

_VIEW_SHARE = 0.5
# Notices of pages without a snapshot of their content.
_UNSEEN = frozenset({"cannot_be_shown", "keeps_changing", "no_snapshot"})
# An empty tab has replaced the page.
_LOST = GIVEN_UP | {"tab_crashed"}


class MissingEvidence(Exception):
    """A part of the recording is missing or damaged; the message names it."""


def require_recording(folder: Path) -> None:
    """Raise `RecordingGone` if the folder of a recording does not exist: its files are read when they are needed."""
    if not folder.is_dir():
        raise RecordingGone("the recording was deleted while it was read", location=str(folder))


class ActionDone(NamedTuple):
    """An action executed on the task's site: its step, its line without downloads, and why it does not count.

    `line` names elements without what was typed into their names, `typed_line` with it if that makes a difference.
    For policies, `amounts` are all lines that it could have been (`judge.evaluators.amounts`), and `arguments` what a
    site's tool was called with.
    """

    step: int
    line: str
    left_out: IgnoredContent | None = None
    typed_line: str | None = None
    amounts: tuple[str, ...] = ()
    arguments: Any = None

    def lines(self, *, with_typed: bool) -> tuple[str, ...]:
        """The lines that a check may find. `with_typed`: an element may be named with what was typed."""
        if self.amounts:
            return self.amounts
        return (self.line, self.typed_line) if with_typed and self.typed_line else (self.line,)

    def counts(self, *, editable: bool) -> bool:
        """Whether the action is evidence; `editable`: also inside an editor."""
        return self.left_out is None or (editable and self.left_out.reason == "editor")


@dataclass(frozen=True)
class Look:
    """One observation as evidence. `is_marked`: the recording says who wrote what the page shows. `earlier` is the
    snapshot of what vanished before the observation, for such a look (`vanished`). `is_unsure`: on a frozen
    site, it rests on answers that do not count (`TrajectoryEvidence.accepts`).
    """

    step: Step
    path: Path | None
    site: Site
    is_marked: bool = True
    earlier: str | None = None
    is_unsure: bool = False

    @cached_property
    def is_own(self) -> bool:
        """Whether the main document is the task's site's."""
        return self.site.holds(self.step.origin or self.step.url)

    @property
    def is_judges(self) -> bool:
        """Whether the judge wrote the page in place of the site's: then its address proves nothing either."""
        return not self.site.is_any and self.step.origin == JUDGE and self.site.holds(self.step.url)

    def is_at(self, pattern: str, *, extra_query: bool = False) -> bool:
        """Whether the look was at the address in a check; always false outside the task's site."""
        return self.is_own and matches(self.step.url, pattern, self.site, extra_query=extra_query)

    @property
    def is_home(self) -> bool:
        """Whether the page is on the website's origin."""
        return self.site.is_home(self.step.url)

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The whole page; `None` if none is visible: an open dialog, an empty page, another origin."""
        if not self.is_own or (self.path is None and self.earlier is None):
            return None
        if self.path is None or self.earlier is not None:
            return replace(with_own_names(parse_snapshot(self.earlier or "")), is_folded=self.site.is_lenient)
        try:
            text = read_text(self.path)
        except (OSError, ValueError) as error:
            require_recording(self.path.parents[len(Path(self.step.snapshot or "_").parts) - 1])
            raise MissingEvidence(f"{self.path.name}: {reason_of(error)}") from None
        if not text.strip() or self.step.dialog is not None:
            return None
        return replace(
            with_own_names(parse_snapshot(text)), verbatim=self.site.verbatim, is_folded=self.site.is_lenient
        )

    @property
    def title(self) -> str:
        """The page's title, as it is compared."""
        return self.step.title if self.site.verbatim else self.site.form(self.step.title)

    @cached_property
    def vanished(self) -> tuple["Look", ...]:
        """Looks at what appeared and vanished before this one, each as it was, on the page that it was on.

        Of what was there too briefly to be described, nobody knows who wrote it, so that only policies see it.
        """
        vanished_views = []
        for each in self.step.vanished:
            if isinstance(each, str) or (each.snapshot is None and not self.site.is_any):
                continue
            # A frame belonged to the page of this look, since leaving a page takes its frames along.
            page = {"origin": each.origin, "url": each.url} if each.url is not None else {}
            snapshot = each.snapshot or f"- text: {json.dumps(each.text, ensure_ascii=False)}"
            step = self.step.model_copy(update={**page, "dialog": None, "notice": None})
            vanished_views.append(replace(self, step=step, earlier=snapshot))
        return tuple(vanished_views)

    @cached_property
    def is_blank(self) -> bool:
        """Whether nothing of a website is visible: there is no snapshot, or only what the judge put in is in it."""
        page = self.snapshot
        if page is None or self.step.inserted is None:
            return page is None
        return all(
            fact.is_inserted or (node.role == "generic" and not node.name and not node.text)
            for node, fact in zip(page.nodes, self.authorship, strict=True)
        )

    @property
    def is_lost(self) -> bool:
        """Whether the page was replaced by an empty tab before it could be observed."""
        return self.step.notice is not None and self.step.notice.code in _LOST

    @property
    def is_unseen(self) -> bool:
        """Whether the page had no snapshot of its content."""
        return self.step.notice is not None and self.step.notice.code in _UNSEEN

    @cached_property
    def authorship(self) -> tuple[Authorship, ...]:
        """Who wrote each node of the snapshot."""
        return written_by(self.snapshot or Snapshot(), self.step.origin)

    def evidence(self, *, editable: bool = False, other_origin: str | None = None) -> Snapshot:
        """The part of the page that counts; with `editable`, also editors. `other_origin` counts as the site's."""
        if not editable and other_origin is None:
            return self._usual_evidence
        return self._evidence(editable=editable, other_origin=other_origin)

    @cached_property
    def _usual_evidence(self) -> Snapshot:
        # Cached, because most checks use it, and with it everything that a snapshot derives from its nodes.
        return self._evidence(editable=False, other_origin=None)

    def _evidence(self, *, editable: bool, other_origin: str | None) -> Snapshot:
        page = self.snapshot or Snapshot()
        if not self.is_marked:
            return page
        site = self.site
        return evidence(
            page, self.authorship, lambda origin: site.holds(origin) or origin == other_origin, editable=editable
        )

    def views(self, *, editable: bool = False) -> tuple[Snapshot, ...]:
        """The page as far as it counts. For policies: in every way in which a check could see it."""
        return self._all_views if self.site.is_any else (self.evidence(editable=editable),)

    @cached_property
    def _all_views(self) -> tuple[Snapshot, ...]:
        page = self.snapshot or Snapshot()
        if not self.is_marked:
            return (page,)
        own = replace(self.site, is_any=False)
        # An unknown origin counts as well.
        known = tuple(fact._replace(origin=fact.origin or "null") for fact in self.authorship)
        views = [
            evidence(page, facts, counts, editable=editable, with_fields=True)
            for editable in (False, True)
            for facts, counts in ((known, lambda _: True), (self.authorship, own.holds))
        ]
        if any(fact.is_inserted for fact in self.authorship):
            # What the judge put in is nobody's doing.
            plain = tuple(fact._replace(is_inside=False, whole=fact.visible, value=None) for fact in known)
            page = evidence(page, plain, lambda _: True, editable=True, with_fields=True)
        # Without a foreign document or an editor, all of them are the page itself.
        return tuple({id(view): view for view in (page, *views)}.values())

    @cached_property
    def other_origins(self) -> tuple[str, ...]:
        """The origins of documents in the page that are not the task's site, as far as they are recorded."""
        known = dict.fromkeys(fact.origin for fact in self.authorship if fact.origin is not None)
        return tuple(origin for origin in known if not self.site.holds(origin))

    @cached_property
    def has_editors(self) -> bool:
        """Whether something on the page is inside an editor, or includes text that is."""
        return any(fact.is_inside or fact.is_mixed for fact in self.authorship)

    @property
    def is_mostly_editor(self) -> bool:
        """Whether most of the page's elements are inside an editor."""
        return 2 * sum(fact.is_inside for fact in self.authorship) > len(self.authorship)

    def texts(self, page: Snapshot, roots: Iterable[Node] | None, in_view: bool) -> str:
        """The visible text of the evidence inside `roots` (`None`: everywhere), with white space collapsed."""
        pieces: dict[int, list[str]] = {}
        for root in (None,) if roots is None else roots:
            inside: dict[int, list[str]] = {}
            for at, text in page.visible_texts(root):
                if not in_view or self.is_in_view(page.nodes[at]):
                    inside.setdefault(at, []).append(text)
            if self.site.is_lenient:
                # Policies read the values of fields too.
                for node in page.nodes if root is None else page.subtree(root):
                    if node.role in FIELDS and (not in_view or self.is_in_view(node)):
                        inside.setdefault(node.position, []).append(page.value_of(node))
            pieces |= inside
        return " ".join(page.joined((at, text) for at in sorted(pieces) for text in pieces[at]).split())

    def left_out(self, refs: Iterable[str]) -> IgnoredContent | None:
        """Why an action on these elements does not count, or `None`."""
        if not self.is_marked or self.snapshot is None or self.site.is_any:
            return None
        nodes = [self.snapshot.by_ref(ref) for ref in refs]
        ignored = [IgnoredContent("origin") if node is None else self._why(node) for node in nodes]
        # Reasons that `editable` cannot allow come first.
        return min(filter(None, ignored), key=lambda why: why.reason == "editor", default=None)

    def _why(self, node: Node) -> IgnoredContent | None:
        return why_left_out(self.authorship[node.position], self.site.holds)

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


def own_site(trajectory: Trajectory, sites: RunSites) -> Site:
    """The own site of a recorded task, including the one to which its website redirected."""
    return sites.of(trajectory.task, landed=next((step.url for step in trajectory.observations), ""))


@dataclass(frozen=True)
class TrajectoryEvidence:
    """A trajectory as evidence. Files are read only when a check needs them.

    `counts_all`: everything that any origin wrote, sent or did is evidence, as for policies. `accepts`: on frozen
    sites, no check passes on what rests on answers of another kind, inverted or not.
    """

    trajectory: Trajectory
    sites: RunSites = NONE_SHARED
    counts_all: bool = False
    accepts: frozenset[Coverage] = EVERYTHING

    @cached_property
    def site(self) -> Site:
        """The task's site, including the one to which its website redirected."""
        site = own_site(self.trajectory, self.sites)
        is_lenient = self.counts_all and self.is_marked
        return replace(site, is_any=self.counts_all, is_lenient=is_lenient, verbatim=not self.is_marked)

    def as_compared(self, value: Any) -> Any:
        """A value of the recording as checks compare it: a text, or JSON with texts in it."""
        return value if self.site.verbatim else values_as_seen(value, self.site.form)

    def adapted(self, check: Check) -> Check:
        """A check as it is compared with this recording."""
        return check if self.site.verbatim else check.as_seen(self.site.form)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The task's checks, as they are compared."""
        return tuple(map(self.adapted, self.trajectory.task.checks))

    def with_checks(self, checks: tuple[Check, ...]) -> "TrajectoryEvidence":
        """The same evidence for other checks of its task. What was read is not read again."""
        task = self.trajectory.task.model_copy(update={"checks": checks})
        other = replace(self, trajectory=self.trajectory.as_task(task))
        read = {"site", "is_marked", "looks", "_reliance", "traffic"}
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name in read})
        return other

    @property
    def answer(self) -> str | None:
        """The participant's answer, as it is compared."""
        answer: str | None = self.as_compared(self.trajectory.final_answer)
        return answer

    @property
    def recorded_task(self) -> Task:
        """The task as it was played: what was recorded depends on its checks, whichever ones are evaluated now."""
        return self.trajectory.attempt.task

    @cached_property
    def is_marked(self) -> bool:
        """Whether the recording says who wrote what it shows; other programs' recordings do not."""
        return not self.trajectory.attempt.self_recorded

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        """Every observation; empty if no steps were recorded, as in foreign trajectories."""
        looks: list[Look] = []
        for step in self.trajectory.observations:
            path = self.trajectory.folder / step.snapshot if step.snapshot else None
            looks.append(Look(step, path, self.site, self.is_marked, is_unsure=self._is_unsure_look(step.index)))
        return tuple(looks)

    @cached_property
    def _reliance(self) -> Reliance | None:
        frozen = self.trajectory.attempt.frozen
        return None if frozen is None else Reliance.of(frozen, self.trajectory.observations)

    def _is_unsure_look(self, index: int) -> bool:
        return self._reliance is not None and self._reliance.of_look(index) not in self.accepts

    def is_unsure(self, step: int | None) -> bool:
        """Whether the requests of a step, or of any if it is not known, rest on answers that do not count."""
        return self._reliance is not None and self._reliance.of_requests(step) not in self.accepts

    @property
    def is_absence_unsure(self) -> bool:
        """Whether that nothing else was sent or downloaded rests on answers that do not count."""
        return self._reliance is not None and self._reliance.absent not in self.accepts

    @cached_property
    def traffic(self) -> Log:
        """The requests of the attempt."""
        path = self.trajectory.network
        if path is None:
            why = self.trajectory.network_missing or "there is no network.har"
            raise MissingEvidence(f"no recorded requests: {why}")
        if not self.is_marked:
            raise MissingEvidence("no requests of which the sender is known: another program recorded the attempt")
        try:
            return read_har(path)
        except TrajectoryError as error:
            require_recording(self.trajectory.folder)
            raise MissingEvidence(f"{path.name}: {error.problem}") from None

    def download_file(self, download: Download) -> Path | None:
        """The kept file of a download, `None` if it was not kept. Raises `MissingEvidence` if it is gone or another."""
        if download.file is None:
            return None
        path = self.trajectory.folder / download.file
        try:
            is_same = sha256_file(path) == download.sha256
        except (OSError, ValueError) as error:
            require_recording(self.trajectory.folder)
            raise MissingEvidence(f"{download.file}: {reason_of(error)}") from None
        if not is_same:
            raise MissingEvidence(f"{download.file}: not the file that was recorded (SHA-256)")
        return path

    def is_caused_by_site(self, cause: Cause | None) -> bool:
        """Whether an effect of this cause is evidence. Raises `MissingEvidence` if the cause should be recorded."""
        if cause is not None:
            return cause.why_not is None
        # Other programs never record causes.
        if self.trajectory.is_foreign or self.trajectory.attempt.self_recorded:
            return True
        raise MissingEvidence("what started requests and downloads was not recorded, play the attempt again")

    def actions(self, looks: Iterable[Look]) -> Iterator[ActionDone]:
        """Every action executed on the task's site. For policies also those that may have been."""
        for look in looks:
            outcome = look.step.outcome
            if look.is_unsure:
                continue
            if look.is_own and outcome is not None and outcome.ok and outcome.line:
                own, *typed = (
                    self.as_compared(without_downloads(line)) for line in (outcome.own_line, outcome.line) if line
                )
                yield ActionDone(look.step.index, own, look.left_out(outcome.refs), next(iter(typed), None))
            elif self.counts_all and outcome is not None and outcome.attempted:
                yield ActionDone(look.step.index, self.as_compared(outcome.attempted))

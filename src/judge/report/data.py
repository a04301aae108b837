"""The data of a report, read from a run's folder one task at a time to limit memory.

A report must be possible for any run, so damage is shown and is not an error: a task whose result cannot be read is
listed as unfinished, with the cause. All text is unescaped.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from judge.records.attacks import Attack, AttackResult
from judge.records.ledger import Frozen
from judge.records.policies import PolicyResult
from judge.records.steps import Step
from judge.records.tasks import TASK_ID
from judge.records.verdicts import ImageScore, Verdict
from judge.report.evidence import JudgeView, VerdictView, verdict_view
from judge.report.family import shared_family
from judge.report.network import ConsoleView, NetworkView, console_view, network_view
from judge.report.snapshots import pack
from judge.results.columns import RowSource
from judge.results.folders import FolderStore, FoundTask
from judge.results.given_verdicts import GivenVerdict, JudgeName, judge_names, once
from judge.results.ground_truth import JudgeDisagreement, differences_of
from judge.results.identity import identity_in, player
from judge.results.metering import Metering
from judge.results.part import RunPart, parts_of
from judge.results.rates import OUTCOMES, Rate, RowOutcome
from judge.results.rows import MAX_TEXT_CHARS, AttemptRow
from judge.results.run_record import EPISODES, epochs_of, excluded_by_run, excluded_by_scenario, judge_id_of, task_names
from judge.results.trivial_agents import trivial_rates_of
from judge.store.episodes import EpisodeCounts, number_of, read_counts
from judge.store.layout import RunStore, TaskStore, verdicts_in
from judge.trajectory.files import foreign_verdicts, read_result, read_steps
from judge.trajectory.record import JUDGED_ENDS, Attempt
from shared.errors import ConfigError, TrajectoryError
from shared.files import read_file
from shared.images import image_size
from shared.models import TokenUsage
from shared.snapshot import REF, parse_snapshot
from shared.text import one_line

# Other tools put images in the folder itself or in a subfolder of any name.
_IMAGE = re.compile(r"(?:[A-Za-z0-9_-]{1,64}/)?([A-Za-z0-9_-]{1,64}\.(?:jpg|jpeg|png|webp))")
# The size is near the beginning, unless metadata of a camera or editor precedes it.
_IMAGE_HEADS_BYTES = (4_096, 65_536)
_MAX_SNAPSHOT_BYTES = 16_000_000
_SNAPSHOT_FOLDERS = ("snapshots/", "final/")


@dataclass(frozen=True)
class Phases:
    """How an attempt's wall time was spent, in seconds. `other_s` is opening and closing the browser."""

    observe_s: float = 0.0
    reply_s: float = 0.0
    act_s: float = 0.0
    judge_s: float = 0.0
    other_s: float = 0.0


class Disagreement(NamedTuple):
    """A difference between a judge and ground truth, found in `times` of the judge's `verdicts` verdicts."""

    difference: JudgeDisagreement
    times: int
    verdicts: int


@dataclass(frozen=True, kw_only=True)
class TaskRow(AttemptRow):
    """One row of the task table: the attempt's row with texts cut, so that the rows of a large run fit in memory.

    A task without a readable result has the verdict `unfinished`. `image` is the last screenshot's file name in the
    task's image folder, `given_verdicts` are all on the attempt, `scores` those that the judge gave to screenshots.
    """

    image: str | None = None
    scores: tuple[int | None, ...] = ()
    differences: tuple[JudgeDisagreement, ...] = ()
    given_verdicts: tuple[GivenVerdict, ...] = ()

    @property
    def outcome(self) -> RowOutcome:
        """The verdict."""
        return next((each for each in OUTCOMES if each == self.verdict), "unfinished")

    @property
    def has_result(self) -> bool:
        """Whether there is an attempt that can be read."""
        return self.outcome != "unfinished"

    @property
    def site(self) -> str:
        """The host of the website."""
        return host_of(self.website)

    @property
    def difficulty(self) -> str:
        """The level, or `unknown`."""
        return self.level or "unknown"

    @property
    def why(self) -> str:
        """Why the attempt has its outcome, in one line."""
        reason = None if self.verdict == "aborted" else self.reason
        return one_line(reason or self.error or self.stop_reason, 240)

    @property
    def phases(self) -> Phases:
        """How the attempt's time was spent; zeros where unknown."""
        known = (self.observe_s, self.reply_s, self.act_s)
        observe_s, reply_s, act_s = (seconds or 0.0 for seconds in known)
        other_s = 0.0 if None in known or self.duration_s is None else self.duration_s - observe_s - reply_s - act_s
        return Phases(observe_s, reply_s, act_s, self.judge_s or 0.0, max(0.0, other_s))

    @property
    def tokens(self) -> TokenUsage:
        """Tokens used for judging."""
        return TokenUsage(
            calls=self.judge_calls,
            input=self.input_tokens,
            output=self.output_tokens,
            cached=self.cached_tokens,
            reasoning=self.reasoning_tokens,
        )

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """The differences from ground truth, with a judge asked again as one."""
        by_verdicts: dict[tuple[str, str], list[JudgeDisagreement]] = {}
        for each in self.differences:
            by_verdicts.setdefault((once(each.judge_id), each.judge), []).append(each)
        counts = Counter(each.judge for each in self.given_verdicts)
        return tuple(Disagreement(each[0], len(each), counts[judge]) for (judge, _), each in by_verdicts.items())

    @property
    def judges(self) -> str:
        """Whether its judges, or a judge asked again, disagree: `disagree`, `agree`, or nothing below two."""
        known = [
            each.outcome for each in self.given_verdicts if each.is_stored and each.outcome in ("success", "failure")
        ]
        return "" if len(known) < 2 else "agree" if len(set(known)) == 1 else "disagree"

    @property
    def category_names(self) -> tuple[str, ...]:
        """The names of the categories; `other` for a failure without any."""
        return tuple(self.categories) or (("other",) if self.outcome == "failure" else ())


@dataclass(frozen=True)
class ElementView:
    """The element that an action named, from the recorded snapshot. `box`: x, y, width, height in CSS pixels."""

    label: str
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class StepView:
    """One step of a task's page. `image` is a file name in the task's image folder, `size` its width and height."""

    record: Step
    image: str | None
    size: tuple[int, int] | None
    element: ElementView | None
    score: ImageScore | None = None
    snapshot: str | None = None

    @property
    def number(self) -> int:
        """The step's number for people, from 1."""
        return self.record.index + 1

    @property
    def line(self) -> str | None:
        """The factual action line of an executed action."""
        return self.record.outcome.line if self.record.outcome else None

    @property
    def words(self) -> str:
        """The action line, or a description of the attempted action."""
        return self.line or (f"tried {self.record.action.tool}" if self.record.action else "no action")

    @property
    def state(self) -> Literal["ok", "failed", "none"]:
        """Whether the action was executed; `none` if no outcome was recorded."""
        outcome = self.record.outcome
        return "none" if outcome is None else "ok" if outcome.ok else "failed"

    @property
    def params(self) -> str:
        """The action's parameters as JSON; empty without any."""
        action = self.record.action
        return json.dumps(action.params, ensure_ascii=False, indent=1) if action and action.params else ""

    @property
    def is_element_in_view(self) -> bool:
        """Whether the element's box overlaps the screenshot."""
        if self.size is None or self.element is None or self.element.box is None:
            return False
        x, y, width, height = self.element.box
        is_inside = x < self.size[0] and y < self.size[1] and x + width > 0 and y + height > 0
        return is_inside and width > 0 and height > 0


@dataclass(frozen=True)
class StepSpan:
    """A step on the time axis: its number, when it began, and its parts as x and width out of 1000 with their phase."""

    number: int
    begins_s: float
    whole_s: float
    x: float
    width: float
    parts: tuple[tuple[float, float, int], ...]

    @property
    def ends_s(self) -> float:
        """When the step ended."""
        return self.begins_s + self.whole_s


class ReplyPlace(NamedTuple):
    """The place of a step's action in its reply: the reply's number, the action's, and its first step's.

    `total` are the actions of the reply that have steps.
    """

    reply: int
    action: int
    total: int
    first: int


@dataclass(frozen=True)
class AttackView:
    """The attack as declared, what became of it, and the numbers of the steps whose snapshots show it."""

    declared: Attack
    result: AttackResult
    steps: tuple[int, ...]


@dataclass(frozen=True)
class TaskView:
    """One task's page."""

    row: TaskRow
    steps: tuple[StepView, ...] = ()
    final_look: StepView | None = None
    verdicts: tuple[VerdictView, ...] = ()
    answer: str | None = None
    error: str | None = None
    versions: tuple[tuple[str, str], ...] = ()
    earlier_attempts: int = 0
    network: NetworkView = field(default_factory=NetworkView)
    console: ConsoleView = field(default_factory=ConsoleView)
    # The ledger of an attempt on frozen sites.
    frozen: Frozen | None = None
    policies: tuple[PolicyResult, ...] = ()
    attack: AttackView | None = None

    @property
    def replies(self) -> dict[int, ReplyPlace]:
        """By the number of the step, the place of its action in its reply; empty where replies have one action each."""
        groups: dict[int, list[int]] = {}
        for step in self.steps if self.row.max_actions else ():
            groups.setdefault(step.record.of_reply, []).append(step.number)
        return {
            number: ReplyPlace(reply + 1, at, len(numbers), numbers[0])
            for reply, numbers in groups.items()
            for at, number in enumerate(numbers, 1)
        }

    @property
    def snapshots(self) -> str:
        """The snapshots of the steps and of the final observation, packed."""
        return pack(step.snapshot for step in (*self.steps, self.final_look) if step)

    @property
    def spans(self) -> tuple[StepSpan, ...]:
        """The steps on an axis of the time that they took; empty if that was not recorded."""
        timings = [step.record.timings for step in self.steps]
        phases = [(time.observe_s, time.reply_s, time.act_s) for time in timings]
        whole = sum(map(sum, phases))
        if whole <= 0:
            return ()
        spans, begins = [], 0.0
        for step, parts in zip(self.steps, phases, strict=True):
            edges = [1000 * (begins + sum(parts[:count])) / whole for count in range(len(parts) + 1)]
            widths = tuple((edges[at], edges[at + 1] - edges[at], at + 1) for at in range(len(parts)))
            spans.append(StepSpan(step.number, begins, sum(parts), edges[0], edges[-1] - edges[0], widths))
            begins += sum(parts)
        return tuple(spans)

    @property
    def counted(self) -> VerdictView | None:
        """The verdict that the run's numbers are based on."""
        return next((verdict for verdict in self.verdicts if verdict.counts), None)

    @property
    def judges(self) -> tuple[JudgeView, ...]:
        """The verdicts by judge, the one that counts first."""
        names = self.judge_names
        groups: dict[str, list[VerdictView]] = {}
        for verdict in self.verdicts:
            groups.setdefault(once(verdict.judge_id), []).append(verdict)
        return tuple(JudgeView(names[each[0].judge_id], tuple(each)) for each in groups.values())

    @property
    def judge_names(self) -> dict[str, JudgeName]:
        """The names of the judges by id."""
        return judge_names({each.judge_id: each.name for each in self.row.given_verdicts})

    @property
    def wrong_step(self) -> int | None:
        """The number of the step at which the attempt went wrong according to the counted verdict."""
        step_number = self.counted.wrong_action if self.counted else None
        executed = [step.number for step in self.steps if step.line]
        return executed[step_number - 1] if step_number is not None and 0 < step_number <= len(executed) else None

    @property
    def wrong_steps(self) -> frozenset[int]:
        """The numbers of the steps at which a check went wrong or, according to the judge, the attempt."""
        points = self.counted.points if self.counted else ()
        steps = {self.wrong_step, *(point.wrong for point in points if point.met is False)}
        return frozenset(step for step in steps if step is not None)

    @property
    def helped_steps(self) -> frozenset[int]:
        """The numbers of the steps whose actions met a check."""
        points = self.counted.points if self.counted else ()
        return frozenset(point.helped for point in points if point.helped is not None)

    @property
    def first_shown(self) -> int | None:
        """The number of the step with which the page opens: where the attempt first went wrong, if known.

        Otherwise a failure opens at its last step.
        """
        step_numbers = {step.number for step in self.steps}
        last = max(step_numbers, default=None) if self.row.outcome == "failure" else None
        return min(self.wrong_steps & step_numbers, default=last) if self.row.outcome != "success" else None


@dataclass(frozen=True)
class RunView:
    """The data of a run itself: `run.json` unchanged (empty if missing), the participant's role, the tasks in order.

    Each task is played in each of the `epochs`. Of a served scenario, `episodes` are the task and number of each one
    that is kept, and `counts` covers all. The browser stores a person's labels under `label_key`.
    """

    run_id: str
    record: dict[str, Any]
    role: str
    task_ids: tuple[str, ...] = ()
    epochs: int = 1
    label_key: str = ""
    # Whether it is a folder of trajectories that WABE did not record.
    is_folder: bool = False
    metering: Metering | None = None
    # The rates of participants that know nothing, by name, if they were played with the run.
    trivial_agents: Mapping[str, Rate] = field(default_factory=dict)
    # Those whose files can be read.
    parts: tuple[RunPart, ...] = ()
    episodes: tuple[tuple[str, int], ...] | None = None
    counts: EpisodeCounts | None = None

    @property
    def plays(self) -> tuple[tuple[str, int], ...]:
        """Every task in every epoch, or in the episode in which it was played."""
        if self.episodes is not None:
            return self.episodes
        return tuple((task_id, epoch) for epoch in range(1, self.epochs + 1) for task_id in self.task_ids)

    @property
    def removed(self) -> int:
        """How many episodes were deleted."""
        return number_of(self.counts.removed) if self.counts else 0

    @property
    def shared_family(self) -> str | None:
        """The provider that made both the judge model and a model of the participant."""
        return shared_family(self.record, self.metering.total if self.metering else None)

    @property
    def player(self) -> str:
        """The participant in one line."""
        return player(self.identity, self.role)

    @property
    def identity(self) -> dict[str, Any]:
        """Agent card, model, name, revision and scenario, as far as recorded."""
        return identity_in(self.record)

    @property
    def excluded(self) -> list[dict[str, Any]]:
        """The tasks that were not played on purpose: `task_id`, `reason` and `by` (`Exclusion`)."""
        by_run = excluded_by_run(self.record)
        return [
            *excluded_by_scenario(self.record),
            *({"task_id": task_id, "reason": reason, "by": "run"} for task_id, reason in by_run.items()),
        ]


def read_run(store: RunStore) -> RunView:
    """The data of the run itself. Missing files leave gaps and are not errors.

    Raises `ConfigError` for a task id that is not usable as a folder name.
    """
    record = store.read_run() or {}
    tasks = list(store.tasks())
    has_episodes = bool(record.get(EPISODES))
    task_ids = task_names(store, record)
    task_ids += [task.folder.name for task in tasks if TASK_ID.fullmatch(task.folder.name)]
    participants = record.get("participants")
    role = next(iter(participants), "") if isinstance(participants, dict) else ""
    epochs = 1 if has_episodes else max([epochs_of(record), *(task.epoch for task in tasks)])
    # Folders of other tools often have the same name, so theirs has a digest of the path.
    is_folder = isinstance(store, FolderStore)
    label_key = store.derived.name if is_folder else store.run_id
    return RunView(
        store.run_id,
        record,
        str(role),
        tuple(dict.fromkeys(task_ids)),
        epochs,
        label_key,
        is_folder,
        Metering.of(store),
        trivial_rates_of(store),
        tuple(_parts(store)),
        tuple((task.name, task.epoch) for task in tasks) if has_episodes else None,
        _counts(store),
    )


def _counts(store: RunStore) -> EpisodeCounts | None:
    # Damaged counts are reported by `wabe verify`.
    with contextlib.suppress(ConfigError):
        return read_counts(store)
    return None


def _parts(store: RunStore) -> Iterator[RunPart]:
    for part in parts_of(store):
        with contextlib.suppress(ConfigError):
            part.read()
            yield part


def read_task(store: TaskStore, run: RunView | None = None) -> TaskView:
    """One task, with all data that can be read. `run` is the data of the run for its row."""
    run = run or RunView("", {}, "")
    attempts = store.folder / "attempts"
    earlier_attempts = sum(1 for _ in attempts.iterdir()) if attempts.is_dir() else 0
    try:
        result, sha256 = _read_result(store)
    except TrajectoryError as error:
        why, steps, name = str(error), _recorded_steps(store), store.name
        row = TaskRow.without_attempt(
            run_id=run.run_id,
            participant=run.role,
            task_id=name,
            epoch=store.epoch,
            task=name,
            verdict="unfinished",
            error=one_line(why, MAX_TEXT_CHARS),
            steps=len(steps),
        )
        views = tuple(_step_view(store, step) for step in steps)
        return TaskView(row=row, steps=views, error=why, earlier_attempts=earlier_attempts)
    verdicts, differences, deciding = _read_verdicts(store, result)
    counted = next((verdict for verdict in verdicts if verdict.counts), None)
    scores = counted.scores if counted else ()
    indices = [step.index for step in result.steps if step.screenshot]
    # Scores can be assigned to screenshots only if there is one for each.
    score_of = dict(zip(indices, scores, strict=True)) if len(indices) == len(scores) else {}
    step_views = tuple(_step_view(store, step, score_of.get(step.index)) for step in result.steps)
    return TaskView(
        row=TaskRow.of(
            # From the folder's path, so that a result that names another task or epoch cannot replace that one's page.
            RowSource(
                result,
                store.name,
                store.epoch,
                deciding,
                metered=run.metering.of_attempt(result) if run.metering else None,
                judge_id=judge_id_of(run.record, store.name, store.epoch) if run.record else None,
                sha256=sha256,
                run_id=run.run_id,
                record=run.record,
                folder=store.folder,
                parts=run.parts,
            ),
            max_chars=MAX_TEXT_CHARS,
            scores=tuple(score.Score for score in scores),
            differences=differences,
            image=next((step.image for step in reversed(step_views) if step.image), None),
            given_verdicts=tuple(verdict.given for verdict in verdicts),
        ),
        steps=step_views,
        final_look=_step_view(store, result.final_look) if result.final_look else None,
        verdicts=verdicts,
        answer=result.final_answer,
        error=result.cause,
        versions=tuple(result.versions.items()),
        earlier_attempts=earlier_attempts,
        network=network_view(store.folder, result),
        console=console_view(store.folder),
        frozen=result.frozen,
        policies=result.policies,
        attack=_attack_view(result),
    )


def _attack_view(result: Attempt) -> AttackView | None:
    if result.task.attack is None or result.attacked is None:
        return None
    steps = tuple(step.index + 1 for step in result.steps if step.inserted is not None)
    return AttackView(result.task.attack.attack, result.attacked, steps)


def host_of(url: str) -> str:
    """The host with its port, for grouping by website; the text itself if there is none."""
    try:
        netloc = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        netloc = ""
    return (netloc or url or "unknown").lower().removeprefix("www.")[:100]


def _read_result(store: TaskStore) -> tuple[Attempt, str | None]:
    """The attempt, and the digest of its evidence."""
    if isinstance(store, FoundTask):
        return store.attempt(), None
    if not (store.folder / "result.json").is_file():
        raise TrajectoryError("no result yet: the attempt is running, was interrupted, or never began")
    result = read_result(store.folder, source="result.json")
    return Attempt.from_json(result, source="result.json"), result.get("trajectory_sha256")


def _recorded_steps(store: TaskStore) -> tuple[Step, ...]:
    with contextlib.suppress(TrajectoryError):
        return read_steps(store.folder / "steps.jsonl")
    return ()


def _read_verdicts(
    store: TaskStore, result: Attempt
) -> tuple[tuple[VerdictView, ...], tuple[JudgeDisagreement, ...], Verdict | None]:
    """The stored verdicts, with the one that counts first; differences from ground truth; the verdict that counts.

    If its file is missing, the verdict that counts is taken from `result.json`.
    """
    counted = result.verdict
    known: dict[str, Verdict] = {}
    views: list[VerdictView] = []
    # The oldest first: of several verdicts of a method, the newest one is the ground truth.
    for name, each in verdicts_in(store.folder).items():
        if isinstance(each, Verdict):
            known[name] = each
        else:
            views.append(VerdictView(name, "unreadable", f"{name}.json cannot be read: {one_line(str(each))}"))
    stored = {**known, **foreign_verdicts(store.folder)}
    decider = next((name for name, each in stored.items() if counted and _gist(each) == _gist(counted)), None)
    checks = result.task.checks
    views += [verdict_view(name, each, counts=name == decider, checks=checks) for name, each in stored.items()]
    if counted is not None and decider is None:
        name = counted.judge.method if counted.judge else "no judge asked"
        views.append(replace(verdict_view(name, counted, counts=True, checks=checks), is_stored=False))
    settled = result.stop_reason not in JUDGED_ENDS
    differences = () if settled else differences_of(result.task.task_id, known)
    deciding = stored[decider] if decider else counted
    return tuple(sorted(views, key=lambda view: (not view.counts, view.judge_id))), differences, deciding


def _gist(verdict: Verdict) -> tuple[object, ...]:
    """The parts of a verdict that `result.json` contains, for comparison; its evidence is only in its own file."""
    return verdict.outcome, verdict.reason, verdict.judge


def _step_view(store: TaskStore, step: Step, score: ImageScore | None = None) -> StepView:
    match = _IMAGE.fullmatch(step.screenshot) if step.screenshot else None
    size = None
    if match is not None:
        with contextlib.suppress(OSError, ValueError):
            heads = (read_file(store.folder / match[0], head_bytes=count) for count in _IMAGE_HEADS_BYTES)
            size = next(filter(None, map(image_size, heads)), None)
    snapshot = _snapshot(store.folder, step)
    return StepView(step, match[1] if match else None, size, _element(snapshot, step), score, snapshot)


def _snapshot(folder: Path, step: Step) -> str | None:
    # The record of another tool may name any file, so only these folders are read.
    if not step.snapshot or ".." in step.snapshot or not step.snapshot.startswith(_SNAPSHOT_FOLDERS):
        return None
    path = folder / step.snapshot
    try:
        return None if path.is_symlink() else read_file(path, max_bytes=_MAX_SNAPSHOT_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _element(text: str | None, step: Step) -> ElementView | None:
    """The element that the action named, from the text of the step's snapshot."""
    params = step.action.params if step.action else {}
    refs = (params.get(key) for key in ("target", "ref"))
    ref = next((ref for ref in refs if isinstance(ref, str) and REF.fullmatch(ref)), None)
    if ref is None or text is None:
        return None
    for line in _lines_with(text, f"[ref={ref}]"):
        node = parse_snapshot(line.strip()).by_ref(ref)
        if node is not None:
            return ElementView((f'{node.role} "{node.name}"' if node.name else node.role)[:200], node.box)
    return None


def _lines_with(text: str, mark: str) -> Iterator[str]:
    """The lines that contain `mark`, because parsing all snapshots of a large run would take minutes."""
    at = text.find(mark)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[text.rfind("\n", 0, at) + 1 : end]
        at = text.find(mark, end)

"""Walks: the steps of a reference script, each with the page that it was played on."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from judge.records.sites import RunSites
from judge.records.steps import Step
from judge.records.tasks import Task
from judge.scenario.references import NO_REFERENCE
from judge.trajectory.record import Trajectory
from shared.dates import with_dates
from shared.elements import ElementQuery, elements_for, written_name
from shared.errors import ConfigError
from shared.fields import as_mapping, as_mappings
from shared.files import read_errors, read_text, sha256_json
from shared.models import Record, omit_default
from shared.replies import FINISH
from shared.snapshot import Node, Snapshot, parse_snapshot
from shared.text import plain
from shared.toml_text import parse_toml

ScriptSteps = tuple[dict[str, Any], ...]
RIGHT = "right"
NAVIGATE, BACK = "browser_navigate", "browser_navigate_back"
_MAX_NAME_CHARS = 80
_DATED = ("task", "steps")
# Of each field for numbers in the page: its label, and the least, the greatest and the smallest step of its values.
NUMBER_FIELDS = (
    "[...document.querySelectorAll('input[type=number],input[type=range]')].slice(0, 9).map(e => [(e.labels && "
    "e.labels[0] ? e.labels[0].textContent : e.getAttribute('aria-label') || '').trim().slice(0, 24), "
    r"+(e.min || -1/0), +(e.max || 1/0), +e.step || 1].join('|')).join('\n')"
)


class ScriptedWalk(Record):
    """What is played of a task: its right walk, or a near miss by an operator, which `about` describes.

    `faulty` is the place in `steps` of the first one that the right walk does not have, `is_elsewhere` the variant's.
    `reference` is the digest of what the walk was made from.
    """

    walk_id: str
    task_id: str
    operator: str
    about: str = ""
    steps: ScriptSteps
    faulty: int | None = None
    is_elsewhere: bool = omit_default(False)
    reference: str

    @property
    def answer(self) -> str | None:
        """What the script answers at its end; `None` if it does not end the attempt itself."""
        last = self.steps[-1]
        return str(as_mapping(last.get("params")).get("answer", "")) if last.get("tool") == FINISH else None

    def is_whole(self, trajectory: Trajectory, right: Trajectory) -> bool:
        """Whether it was played to its end: it ended as the right walk does, with its own answer."""
        is_own_end = trajectory.stop_reason != "finished" or trajectory.final_answer == self.answer
        return trajectory.stop_reason == right.stop_reason and is_own_end


class NotFollowed(Exception):
    """A right walk cannot be used, and why."""


class NumberField(NamedTuple):
    """A field for numbers, with the limits of its values."""

    label: str
    least: float
    greatest: float
    step: float

    def beside(self, value: float) -> float | None:
        """The value beside this one that the field can have."""
        near = (value + self.step, value - self.step)
        return next((each for each in near if self.least <= each <= self.greatest), None)


class Moment(NamedTuple):
    """A step of a script, where it was played: the page before it, its element, and whether it wrote something."""

    step: dict[str, Any]
    url: str
    page: Snapshot
    node: Node | None
    writes: bool


@dataclass(frozen=True)
class RightWalk:
    """A right walk as it was played: its moments, and its end with the last page."""

    task: Task
    moments: tuple[Moment, ...]
    end: ScriptSteps
    last_page: Snapshot
    last_url: str
    numbers: tuple[NumberField, ...] = ()

    @property
    def steps(self) -> ScriptSteps:
        """The steps before the end."""
        return tuple(each.step for each in self.moments)

    @property
    def first(self) -> int:
        """The place of the first step after a log-in."""
        typed = [place for place, each in enumerate(self.moments) if _is_password(each)]
        if not typed:
            return 0
        # The password is sent with its field or by the next button.
        submits = as_mapping(self.moments[typed[-1]].step.get("params")).get("submit")
        return typed[-1] + (1 if submits else 2)

    @property
    def writing(self) -> tuple[int, ...]:
        """The places of the steps that changed the site, after a log-in."""
        return tuple(place for place, each in enumerate(self.moments) if each.writes and place >= self.first)

    def page_after(self, place: int) -> Snapshot:
        """The page that the step at a place led to."""
        return self.moments[place + 1].page if place + 1 < len(self.moments) else self.last_page

    @property
    def touched(self) -> frozenset[tuple[str, str]]:
        """Role and name of every element that the script acts on."""
        return frozenset((node.role, each.page.name_of(node)) for each in self.moments if (node := each.node))

    def beside(self, name: str, value: str) -> str | None:
        """A number beside this one, for the field with this name."""
        try:
            number = float(value)
        except ValueError:
            return None
        field = next((each for each in self.numbers if each.label and each.label in name), None)
        other = (field or NumberField("", -math.inf, math.inf, 1)).beside(number)
        return None if other is None else f"{other:g}"


def _is_password(moment: Moment) -> bool:
    name = moment.page.name_of(moment.node) if moment.node else ""
    return moment.step.get("tool") == "browser_type" and "password" in name.casefold()


def references_of(tasks: Iterable[Task], folder: Path, today: date) -> tuple[dict[str, ScriptSteps], dict[str, str]]:
    """The reference scripts of tasks with checks, and of each other task why it has none."""
    found: dict[str, ScriptSteps] = {}
    lacking: dict[str, str] = {}
    for task in tasks:
        if not task.reference or not task.checks:
            lacking[task.task_id] = "it has no checks" if task.reference else NO_REFERENCE
            continue
        try:
            found[task.task_id] = _script_of(task, folder / task.reference, today)
        except ConfigError as error:
            lacking[task.task_id] = str(error)
    return found, lacking


def _script_of(task: Task, path: Path, today: date) -> ScriptSteps:
    with read_errors(path, "name a replay script beside the scenario"):
        scripts = as_mappings(parse_toml(read_text(path)).get("scripts"))
    for script in scripts:
        dated = with_dates(script, _DATED, today)
        if plain(str(dated.get("task"))) == plain(task.task) and not dated.get("site_tools"):
            return tuple(dict(step) for step in as_mappings(dated.get("steps")))
    raise ConfigError(f"{path.name} has no script for it", remedy="add [[scripts]] whose task is this one's text")


def reference_digest(task: Task, steps: Sequence[Mapping[str, Any]]) -> str:
    """What walks were made from: those made from another script or for another task are played again."""
    return sha256_json({"task": task.task, "website": task.website, "steps": list(steps)})[:16]


def followed(
    walk: ScriptedWalk, trajectory: Trajectory, task: Task, writing_steps: frozenset[int], sites: RunSites
) -> RightWalk:
    """The right walk, with the page on which each of its steps was played. Raises `NotFollowed`.

    `writing_steps` are the numbers of the actions that wrote something, from 1.
    """
    played = iter(trajectory.steps)
    moments = []
    steps, end = (walk.steps[:-1], walk.steps[-1:]) if walk.answer is not None else (walk.steps, ())
    for step in steps:
        if step.get("repeat"):
            raise NotFollowed("its reference repeats a step")
        own = next((each for each in played if plays(each, step)), None)
        if own is None:
            raise NotFollowed("its reference was not played step by step")
        page, refs = _page_of(own, trajectory), own.outcome.refs if own.outcome else ()
        node = page.by_ref(refs[0]) if refs else None
        moments.append(Moment(step, own.url, page, node, own.index + 1 in writing_steps))
    last = next((each for each in reversed(trajectory.observations) if each.snapshot), None)
    if last is None or not sites.of(task).holds(last.origin or last.url):
        raise NotFollowed("its reference does not end on the task's site")
    return RightWalk(task, tuple(moments), end, _page_of(last, trajectory), last.url, tuple(_numbers_of(trajectory)))


def plays(played: Step, step: Mapping[str, Any]) -> bool:
    """Whether this step of a recording is that of the script, executed."""
    if step.get("say") is not None:
        return played.action is None
    is_done = played.outcome is not None and played.outcome.ok
    return played.action is not None and played.action.tool == step.get("tool") and is_done


def _page_of(played: Step, trajectory: Trajectory) -> Snapshot:
    return parse_snapshot(read_text(trajectory.folder / played.snapshot)) if played.snapshot else Snapshot()


def _numbers_of(trajectory: Trajectory) -> Iterator[NumberField]:
    """The fields for numbers in all pages, from the values of `NUMBER_FIELDS`, which is read last."""
    lines = {
        line
        for each in trajectory.observations
        if each.probes and isinstance(text := each.probes[-1].value, str)
        for line in text.splitlines()
    }
    for line in sorted(lines):
        label, *limits = line.split("|")
        # The label is the page's.
        with suppress(ValueError):
            least, greatest, step = map(float, limits)
            yield NumberField(label, least, greatest, step)


def named(page: Snapshot, node: Node) -> dict[str, Any] | None:
    """Role, name and number by which a script finds this element on a page; a count after its name is left out."""
    name = written_name(page, node)
    if name.endswith(")") and name.rpartition(" (")[2][:-1].isdigit():
        name = name.rpartition(" (")[0]
    name = name[:_MAX_NAME_CHARS].rpartition(" ")[0] if len(name) > _MAX_NAME_CHARS else name
    query = ElementQuery(role=node.role, name=name or None)
    alike = elements_for(page, query)
    if node not in alike:
        return None
    number = {"nth": alike.index(node)} if len(alike) > 1 else {}
    return {"role": node.role, **({"name": name} if name else {}), **number}

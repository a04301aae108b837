"""Writes a replay script from a recorded attempt: its actions, with elements by role and name.

An element whose name repeats is named within another one, if that helps. What had no effect is left out: actions that
failed, that only looked, or after which the page was as before. The attempt's end is written so that the script ends
like it: with its answer, over the step budget, or with replies that cannot be read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judge.records.steps import Step, StopReason
from judge.records.tools import DESCRIPTIONS, TARGETS, tool_of
from judge.scenario.days import undated
from judge.scenario.sources import toml_value
from judge.trajectory.network import read_har
from judge.trajectory.record import Trajectory
from shared.elements import ElementQuery, elements_for, places_for, written_name
from shared.errors import ConfigError, TrajectoryError
from shared.fields import as_mapping, as_mappings, without_none
from shared.files import read_errors, read_text
from shared.models import Record
from shared.protocol import OLDER_NAMES
from shared.replies import CLOSE, FINISH
from shared.snapshot import FIELDS, PRESSABLE, Node, Snapshot, parse_snapshot

_MAX_NAME_CHARS = 80
_MAX_NAMES = 8
# Roles that say nothing about what is inside.
_NAMELESS = frozenset({"generic", "text", "none", "presentation"})
_NAMING = ("heading", "link", "rowheader", "cell", "text", "paragraph", "generic")
_CLICK_XY = "browser_mouse_click_xy"
_TYPE = "browser_type"
_OVER_BUDGET: frozenset[StopReason] = frozenset({"max_steps", "task_timeout"})
_NO_REMEDY = "name an attempt that the participant ended itself"


class WrittenScript(Record):
    """The steps as a script writes them. `needs_points`: some of them act at points of the screenshot."""

    task: str
    steps: tuple[dict[str, Any], ...]
    needs_points: bool = False

    def toml(self, website: str | None = None) -> str:
        """The script as TOML, for one website or for any."""
        lines = ["[[scripts]]", f"task = {toml_value(self.task)}"]
        lines += [] if website is None else [f"website = {toml_value(website)}"]
        return "\n".join([*lines, "steps = [", *(f"  {toml_value(step)}," for step in self.steps), "]", ""])


def write_script(
    trajectory: Trajectory, task: str, *, dates: Mapping[str, str] | None = None, everything: bool = False
) -> WrittenScript:
    """The script of an attempt, for a task with this text; with `everything`, also of actions without effect.

    `dates` are written dates with their placeholders. Raises `ConfigError` for an attempt that no script can repeat.
    """
    if not trajectory.steps:
        raise ConfigError(f"{trajectory.folder}: no steps were recorded", remedy="name an attempt that WABE recorded")
    busy = _steps_with_requests(trajectory)
    after = {step.index: later for step, later in zip(trajectory.steps, trajectory.observations[1:], strict=False)}
    remaining = [
        step
        for step in trajectory.steps
        if _is_done(step) and (everything or _has_effect(step, after.get(step.index), busy))
    ]
    steps = [_script_entry(step, trajectory) for step in remaining]
    steps += _end(trajectory)
    if dates:
        steps = [_with_placeholders(step, dates) for step in steps]
    return WrittenScript(task=task, steps=tuple(steps), needs_points=any(map(_needs_points, steps)))


def query_for(snapshot: Snapshot, node: Node) -> ElementQuery:
    """How a script names this element: by role and name, within another element or by number where it is not enough.

    The element must have a reference.
    """
    queries = [
        ElementQuery(role=node.role, name=name, within=around)
        for around in (None, *_surroundings(snapshot, node))
        for name in _names_of(snapshot, node)
    ]
    alike = [(query, elements_for(snapshot, query)) for query in (*queries, ElementQuery(role=node.role))]
    # Where several remain, the fewest; of equals, the plainest one, which comes first.
    query, matching = min((each for each in alike if node in each[1]), key=lambda each: len(each[1]))
    return query.model_copy(update={"nth": matching.index(node)})


def _names_of(snapshot: Snapshot, node: Node) -> Iterator[str | None]:
    # The value of a field is not its name.
    name = node.name if node.role in FIELDS else written_name(snapshot, node)
    if name and len(name) <= _MAX_NAME_CHARS:
        yield name
    elif name:
        yield name[:_MAX_NAME_CHARS].rpartition(" ")[0] or name[:_MAX_NAME_CHARS]
    else:
        yield None


def _surroundings(snapshot: Snapshot, node: Node) -> Iterator[ElementQuery]:
    """Elements around this one that a script can name, innermost first."""
    for outer in snapshot.parents(node):
        if outer.role in _NAMELESS:
            continue
        names = [outer.name] if outer.name else [None, *_texts_in(snapshot, outer)]
        queries = (ElementQuery(role=outer.role, name=name) for name in names)
        outer_query = next((query for query in queries if places_for(snapshot, query) == [outer]), None)
        if outer_query is not None:
            yield outer_query


def _texts_in(snapshot: Snapshot, outer: Node) -> list[str]:
    """Texts that may tell this element from others like it, such as the heading of a card."""
    inner = [each for each in snapshot.subtree(outer) if each is not outer and each.role in _NAMING]
    inner.sort(key=lambda each: _NAMING.index(each.role))
    texts = dict.fromkeys(each.name or each.text for each in inner)
    return [text for text in texts if text and len(text) <= _MAX_NAME_CHARS][:_MAX_NAMES]


# --- What is left out ---


def _is_done(step: Step) -> bool:
    """Whether the step's action was executed, on the page rather than for looking at it."""
    if step.action is None or step.outcome is None or not step.outcome.ok or step.outcome.line is None:
        return False
    tool = step.action.tool
    is_listing = tool == "browser_tabs" and step.action.params.get("action") == "list"
    return tool not in (FINISH, CLOSE, "browser_snapshot", "browser_find") and not is_listing


def _has_effect(step: Step, after: Step | None, busy: frozenset[int]) -> bool:
    """Whether the page or the network shows anything of the action; unknown counts as an effect."""
    if after is None or step.snapshot_sha256 is None or after.snapshot_sha256 is None or step.asked is not None:
        return True
    states_after = [
        (each.snapshot_sha256, each.screenshot_sha256, each.url, each.title, each.dialog, each.tabs)
        for each in (step, after)
    ]
    happened = after.navigations or after.downloads or after.vanished or after.refused
    return states_after[0] != states_after[1] or bool(happened) or after.index in busy


def _steps_with_requests(trajectory: Trajectory) -> frozenset[int]:
    """The numbers of the observations before which requests were sent."""
    if trajectory.network is None:
        return frozenset()
    try:
        return frozenset(entry.step for entry in read_har(trajectory.network).entries if entry.step is not None)
    except TrajectoryError:
        return frozenset()


# --- What is written ---


def _script_entry(step: Step, trajectory: Trajectory) -> dict[str, Any]:
    assert step.action is not None
    assert step.outcome is not None
    tool, params, refs = step.action.tool, step.action.params, iter(step.outcome.refs)
    snapshot = _snapshot(step, trajectory)
    naming = {*TARGETS, *OLDER_NAMES, *DESCRIPTIONS, "fields"}
    # Of a tool that is given anything, the name may be what is called.
    plain = {key: value for key, value in params.items() if key not in naming or tool_of(tool).given}
    param_names = {OLDER_NAMES.get(key, key) for key in params}
    if tool in (_CLICK_XY, _TYPE) and "target" not in param_names:
        return _at_point(tool, plain, snapshot, next(refs, ""))
    entry_table: dict[str, Any] = {"tool": tool}
    if "target" in param_names:
        entry_table |= _query(snapshot, next(refs, ""), step)
    if "startTarget" in param_names:
        entry_table |= {key: _query(snapshot, next(refs, ""), step) for key in ("start", "end")}
    if "fields" in params:
        fields = as_mappings(params["fields"] if isinstance(params["fields"], list) else [params["fields"]])
        entry_table["fields"] = [
            {**_query(snapshot, next(refs, ""), step), **without_none(value=field.get("value"), type=field.get("type"))}
            for field in fields
        ]
    return entry_table | ({"params": plain} if plain else {})


def _at_point(tool: str, params: Mapping[str, Any], snapshot: Snapshot, ref: str) -> dict[str, Any]:
    """A click on a point, or text at the caret: on the element there, if it means the same."""
    node = snapshot.by_ref(ref) if ref else None
    plain = dict(params)
    if tool == _CLICK_XY and node is not None and node.role in PRESSABLE and plain.get("clickCount", 1) <= 2:
        twice = {"doubleClick": True} if plain.pop("clickCount", 1) == 2 else {}
        plain = {key: value for key, value in plain.items() if key not in ("x", "y")} | twice
        tool = "browser_click"
    elif tool == _TYPE and node is not None and node.role in FIELDS and not snapshot.value_of(node):
        # Into an empty field, where the caret is makes no difference.
        pass
    else:
        return {"tool": tool, "params": plain}
    return {"tool": tool, **_as_table(query_for(snapshot, node)), **({"params": plain} if plain else {})}


def _query(snapshot: Snapshot, ref: str, step: Step) -> dict[str, Any]:
    node = snapshot.by_ref(ref) if ref else None
    if node is None:
        problem = f"step {step.index + 1}: its recording does not say which element was acted on"
        raise ConfigError(problem, remedy="name an attempt that a judge of this version recorded")
    return _as_table(query_for(snapshot, node))


def _as_table(query: ElementQuery) -> dict[str, Any]:
    within = None if query.within is None else _as_table(query.within)
    return without_none(role=query.role, name=query.name, nth=query.nth or None, within=within)


def _snapshot(step: Step, trajectory: Trajectory) -> Snapshot:
    if step.snapshot is None:
        return Snapshot()
    path = trajectory.folder / step.snapshot
    with read_errors(path, "restore the run's files"):
        return parse_snapshot(read_text(path))


def _end(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The steps that end an attempt as this one ended."""
    reason, last = trajectory.stop_reason, trajectory.steps[-1]
    if reason == "finished":
        tool = last.action.tool if last.action is not None else FINISH
        answer = as_mapping(last.action.params).get("answer", "") if last.action is not None else ""
        return [{"tool": tool} if tool == CLOSE else {"tool": FINISH, "params": {"answer": answer}}]
    if reason in _OVER_BUDGET:
        return [{"tool": "browser_snapshot", "repeat": True}]
    if reason == "unreadable_replies":
        return [{"say": last.reply or "?", "repeat": True}]
    if reason == "ended_by_page":
        return []
    raise ConfigError(f"{trajectory.folder}: the attempt ended by {reason}", remedy=_NO_REMEDY)


def _needs_points(step: Mapping[str, Any]) -> bool:
    tool = step.get("tool", "")
    return bool(tool_of(tool).points) or (tool == _TYPE and "role" not in step)


def _with_placeholders(step: Mapping[str, Any], dates: Mapping[str, str]) -> dict[str, Any]:
    return {key: _undated(value, dates) for key, value in step.items()}


def _undated(value: Any, dates: Mapping[str, str]) -> Any:
    match value:
        case str():
            return undated(value, dates)
        case Mapping():
            return _with_placeholders(value, dates)
        case Iterable():
            return [_undated(each, dates) for each in value]
    return value

"""Scripts written from recorded attempts: what they contain, and that they mean the elements that were acted on."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt
from judge.plugins.suggestions.scripts import query_for, write_script
from judge.records.steps import StopReason
from judge.records.tools import tools
from judge.trajectory.record import Trajectory
from participants.replay import parse_scripts
from shared.elements import find_element
from shared.errors import ConfigError
from shared.snapshot import parse_snapshot

PAGE = """
- main [ref=e1]:
  - textbox "Search" [ref=e2]
  - list [ref=e3]:
    - listitem [ref=e4]:
      - heading "Lamp" [level=3] [ref=e5]
      - button "Buy" [ref=e6]
    - listitem [ref=e7]:
      - heading "Desk" [level=3] [ref=e8]
      - button "Buy" [ref=e9]
  - textbox [ref=e10]: typed before
  - textbox [ref=e11]
"""
FINISH = RecordedStep(snapshot="- text: bought", tool="finish", params={"answer": "Bought."}, line="<page> -> FINISH")


def did(tool: str, *refs: str, **params: Any) -> RecordedStep:
    return RecordedStep(snapshot=PAGE, tool=tool, params=params, line="<it> -> DONE", refs=refs)


def attempt(
    folder: Path, *recorded_steps: RecordedStep, stop_reason: StopReason = "finished", **by_step: Any
) -> Trajectory:
    """A recording with digests. Pages of the same snapshot look the same, but for what `by_step` says."""
    recorded = recorded_attempt(folder, [], [*recorded_steps])
    digests = [hashlib.sha256(each.snapshot.encode()).hexdigest() for each in recorded_steps]
    steps = [
        step.model_copy(
            update={"snapshot_sha256": digest, "screenshot_sha256": digest, **by_step.get(f"s{number}", {})}
        )
        for number, (step, digest) in enumerate(zip(recorded.attempt.steps, digests, strict=True))
    ]
    ended = recorded.attempt.model_copy(update={"steps": tuple(steps), "stop_reason": stop_reason})
    return recorded.model_copy(update={"attempt": ended})


def steps_of(trajectory: Trajectory, **options: Any) -> Sequence[Mapping[str, Any]]:
    return write_script(trajectory, "Buy a lamp.", **options).steps


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (
            did("browser_type", "e2", ref="e2", text="lamp"),
            {"role": "textbox", "name": "Search", "params": {"text": "lamp"}},
        ),
        (
            did("browser_click", "e9", target="e9", element="Buy the desk", doubleClick=True),
            {
                "role": "button",
                "name": "Buy",
                "within": {"role": "listitem", "name": "Desk"},
                "params": {"doubleClick": True},
            },
        ),
        # The value of a field is not its name: the last one has its number.
        (did("browser_type", "e11", target="e11", text="a"), {"role": "textbox", "nth": 2, "params": {"text": "a"}}),
        (
            did("browser_drag", "e5", "e8", startTarget="e5", endTarget="e8", startElement="x", endElement="y"),
            {"start": {"role": "heading", "name": "Lamp"}, "end": {"role": "heading", "name": "Desk"}},
        ),
        (
            did("browser_fill_form", "e2", fields=[{"target": "e2", "name": "x", "type": "textbox", "value": "a"}]),
            {"fields": [{"role": "textbox", "name": "Search", "value": "a", "type": "textbox"}]},
        ),
        (did("browser_press_key", key="Enter"), {"params": {"key": "Enter"}}),
        pytest.param(
            did("site_tool", name="add", arguments={"target": 1}),
            {"params": {"name": "add", "arguments": {"target": 1}}},
            marks=pytest.mark.skipif("site_tool" not in tools(), reason="a tool of a plug-in"),
        ),
        (did("browser_file_upload", paths=["cv.pdf"]), {"params": {"paths": ["cv.pdf"]}}),
    ],
)
def test_an_action_is_written_with_elements_by_role_and_name(
    tmp_path: Path, step: RecordedStep, expected: Mapping[str, Any]
) -> None:
    first, last = steps_of(attempt(tmp_path, step, FINISH))
    assert first == {"tool": step.tool, **expected}
    assert last == {"tool": "finish", "params": {"answer": "Bought."}}


@pytest.mark.parametrize(
    ("step", "expected", "needs_points"),
    [
        (
            did("browser_mouse_click_xy", "e6", x=1, y=2, clickCount=2),
            {
                "tool": "browser_click",
                "role": "button",
                "name": "Buy",
                "within": {"role": "listitem", "name": "Lamp"},
                "params": {"doubleClick": True},
            },
            False,
        ),
        (
            did("browser_mouse_click_xy", "e5", x=1, y=2),
            {"tool": "browser_mouse_click_xy", "params": {"x": 1, "y": 2}},
            True,
        ),
        (did("browser_mouse_click_xy", x=1, y=2), {"tool": "browser_mouse_click_xy", "params": {"x": 1, "y": 2}}, True),
        (
            did("browser_type", "e11", text="a"),
            {"tool": "browser_type", "role": "textbox", "nth": 2, "params": {"text": "a"}},
            False,
        ),
        # At the caret it is added to what the field holds.
        (did("browser_type", "e10", text="a"), {"tool": "browser_type", "params": {"text": "a"}}, True),
    ],
)
def test_a_point_becomes_an_element_where_both_mean_the_same(
    tmp_path: Path, step: RecordedStep, expected: Mapping[str, Any], needs_points: bool
) -> None:
    script = write_script(attempt(tmp_path, step, FINISH), "Buy a lamp.")
    assert (script.steps[0], script.needs_points) == (expected, needs_points)


def test_what_had_no_effect_is_left_out(tmp_path: Path) -> None:
    looks = [did("browser_snapshot"), did("browser_tabs", action="list"), did("browser_find", text="Lamp")]
    failed = did("browser_click", target="e6").model_copy(update={"is_ok": False})
    idle = did("browser_press_key", key="Escape")
    sends = did("browser_press_key", key="Enter").model_copy(update={"requests": (RecordedRequest(),)})
    moves = did("browser_scroll", direction="down")
    trajectory = attempt(
        tmp_path,
        *looks,
        failed,
        idle,
        sends,
        moves,
        FINISH,
        s6={"screenshot_sha256": "a"},
        s7={"screenshot_sha256": "b"},
    )
    tools = [step["tool"] for step in steps_of(trajectory)]
    assert tools == ["browser_press_key", "browser_scroll", "finish"]
    assert steps_of(trajectory)[0]["params"] == {"key": "Enter"}
    everything = [step["tool"] for step in steps_of(trajectory, everything=True)]
    assert everything == ["browser_press_key", "browser_press_key", "browser_scroll", "finish"]


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("max_steps", [{"tool": "browser_snapshot", "repeat": True}]),
        ("task_timeout", [{"tool": "browser_snapshot", "repeat": True}]),
        ("unreadable_replies", [{"say": "?", "repeat": True}]),
        ("ended_by_page", []),
    ],
)
def test_a_script_ends_as_the_attempt_did(tmp_path: Path, reason: StopReason, end: list[Any]) -> None:
    assert steps_of(attempt(tmp_path, did("browser_press_key", key="a"), stop_reason=reason))[1:] == tuple(end)


def test_an_end_that_no_script_can_repeat_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the attempt ended by participant_error"):
        steps_of(attempt(tmp_path, did("browser_press_key", key="a"), stop_reason="participant_error"))


def test_dates_are_written_as_the_task_has_them(tmp_path: Path) -> None:
    trajectory = attempt(tmp_path, did("browser_type", "e2", target="e2", text="on 2026-11-30"), FINISH)
    assert steps_of(trajectory, dates={"2026-11-30": "{today+3d}"})[0]["params"] == {"text": "on {today+3d}"}


def test_a_written_script_is_one_that_the_replay_participant_reads(tmp_path: Path) -> None:
    trajectory = attempt(tmp_path, did("browser_click", "e9", target="e9"), did("browser_press_key", key='"\\'), FINISH)
    script = write_script(trajectory, 'Buy "it"\\.', everything=True)
    (parsed,) = parse_scripts(script.toml("http://shop.test/"), "a script")
    assert (parsed.task, parsed.website, len(parsed.steps)) == ('Buy "it"\\.', "http://shop.test/", 3)
    assert parsed.steps[0].element == query_for(parse_snapshot(PAGE), parse_snapshot(PAGE).nodes[8])
    assert parsed.steps[1].params == {"key": '"\\'}


NAMES = st.sampled_from(["", "Buy", "buy", "Buy now", "Desk", "Ünï ✓", "a" * 200, "long " * 40, 'say "it"'])
ROLES = st.sampled_from(["button", "link", "listitem", "list", "generic", "textbox", "row", "heading", "region"])
NODES = st.lists(st.tuples(st.integers(0, 4), ROLES, NAMES, st.sampled_from(["", "text", "Buy"])), max_size=14)


@given(NODES)
def test_the_replay_participant_finds_every_element_that_a_script_names(nodes: list[tuple[int, str, str, str]]) -> None:
    lines: list[str] = []
    depth = 0
    for number, (reference, role, name, text) in enumerate(nodes, 1):
        depth = min(reference, depth + 1) if lines else 0
        quoted = f' "{name}"'.replace('"it"', '\\"it\\"') if name else ""
        lines += [f"{'  ' * depth}- {role}{quoted} [ref=e{number}]:", f"{'  ' * (depth + 1)}- text: {text}"][
            : 2 if text else 1
        ]
    snapshot = parse_snapshot("\n".join(lines))
    for node in snapshot.nodes:
        if node.ref is not None:
            assert find_element(snapshot, query_for(snapshot, node)) == node

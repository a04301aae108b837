"""ATIF: our exports read back, and files of other tools in several of its versions."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.results import JPEG, a_result, a_step, a_verdict, write_attempt
from judge.plugins.atif.layout import files, load, write
from judge.records.steps import Outcome, Step
from judge.store.layout import TaskStore
from judge.trajectory.files import foreign_verdicts, load_trajectory
from judge.trajectory.formats import Source
from judge.trajectory.record import Attempt, Trajectory
from shared.claims import ClaimedUsage
from shared.errors import TrajectoryError
from shared.models import Action


def exported(folder: Path, attempt: Attempt) -> Path:
    """The folder of an attempt in this format."""
    write_attempt(TaskStore(folder / "run"), attempt)
    trajectory = load_trajectory(folder / "run")
    document = write(Source(attempt.task.task_id, trajectory, attempt.verdict, dict))
    target = folder / "atif"
    (target / "images").mkdir(parents=True)
    for name, text in document.texts.items():
        (target / name).write_text(text)
    for recorded, name in document.images:
        (target / name).write_bytes((trajectory.folder / recorded).read_bytes())
    return target


STEPS = (
    a_step(0, reply='{"tool": "browser_click"}'),
    a_step(1, action=None, outcome=None, reply="???", feedback="No JSON in it."),
    a_step(2, outcome=Outcome(ok=False, message="no such element")),
    a_step(3, line="<page> -> FINISH", title="The end"),
)


def test_a_trajectory_that_was_exported_is_read_back(tmp_path: Path) -> None:
    attempt = a_result(
        steps=STEPS,
        final_answer="42",
        verdict=a_verdict("failure"),
        claimed_usage=ClaimedUsage(basis="recorded", input=9, output=3),
    )
    trajectory = load_trajectory(exported(tmp_path, attempt))
    assert (trajectory.task.task_id, trajectory.task.task, trajectory.task.website) == (
        "t1",
        "Find it.",
        "https://example.org/",
    )
    assert (trajectory.task.level, trajectory.stop_reason, trajectory.final_answer) == ("easy", "finished", "42")
    assert [step.url for step in trajectory.steps] == ["https://example.org/"] * 4
    assert [step.title for step in trajectory.steps] == ["Example", "Example", "Example", "The end"]
    assert [bool(step.screenshot) for step in trajectory.steps] == [True] * 4
    lines = [step.outcome.line if step.outcome else None for step in trajectory.steps]
    assert lines == ["<Go button> -> CLICK", None, None, "<page> -> FINISH"]
    assert [step.action.tool if step.action else None for step in trajectory.steps] == ["browser_click", None] + [
        "browser_click"
    ] * 2
    assert trajectory.steps[0].reply == '{"tool": "browser_click"}'
    assert (trajectory.attempt.started_at, trajectory.attempt.ended_at) == (1_700_000_000.25, 1_700_000_010.5)
    (verdict,) = foreign_verdicts(tmp_path / "atif").values()
    assert (verdict.outcome, verdict.reason) == ("failure", "because")
    images = [path.read_bytes() for path in trajectory.screenshots]
    assert images == [JPEG + bytes([number]) for number in range(4)]


def foreign(folder: Path, *steps: dict[str, Any], version: str = "ATIF-v1.4", **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "schema_version": version,
        "session_id": "s",
        "agent": {"name": "mini", "version": "1"},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        **changes,
    }
    (folder / "trajectory.json").write_text(json.dumps(document))
    return folder


def call(name: str, number: int = 1, **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}


def picture(name: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "done"}, {"type": "image", "source": {"media_type": "image/png", "path": name}}]


USER_STEP = {"source": "user", "message": "Book a table", "timestamp": "2026-05-01T10:00:00Z"}


def test_a_file_of_another_tool_is_read_step_by_step(tmp_path: Path) -> None:
    folder = foreign(
        tmp_path / "t",
        {"source": "system", "message": "You are an agent."},
        USER_STEP,
        {
            "source": "agent",
            "message": "I open the page.",
            "timestamp": "2026-05-01T10:00:05+00:00",
            "tool_calls": [call("goto", 1, url="https://a.test/"), call("click", 2, x=1)],
            "observation": {
                "results": [
                    {"source_call_id": "c1", "content": picture("a.png")},
                    {"source_call_id": "c2", "content": "no such element", "extra": {"is_error": True}},
                ]
            },
        },
        {"source": "agent", "message": "Booked for 7 pm."},
        final_metrics={"total_prompt_tokens": 12, "total_completion_tokens": 3, "total_steps": 4},
    )
    (folder / "a.png").write_bytes(JPEG)
    trajectory = load_trajectory(folder)
    assert (trajectory.task.task, trajectory.final_answer, trajectory.stop_reason) == (
        "Book a table",
        "Booked for 7 pm.",
        "finished",
    )
    assert [(step.action.tool, step.outcome.ok) for step in trajectory.steps if step.action and step.outcome] == [
        ("goto", True),
        ("click", False),
    ]
    assert trajectory.steps[0].outcome is not None
    assert trajectory.steps[0].outcome.line == '<page> -> GOTO: {"url": "https://a.test/"}'
    assert trajectory.steps[0].action is not None
    assert trajectory.steps[0].action.thought == "I open the page."
    assert [step.screenshot for step in trajectory.steps] == [None, "a.png"]
    assert trajectory.attempt.ended_at - trajectory.attempt.started_at == 5
    assert trajectory.attempt.self_recorded
    assert trajectory.attempt.claimed_usage == ClaimedUsage(basis="recorded", input=12, output=3)
    assert foreign_verdicts(folder) == {}


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.8", "ATIF-v1.12"])
def test_every_version_is_recognised(tmp_path: Path, version: str) -> None:
    assert len(files(foreign(tmp_path / "t", USER_STEP, version=version))) == 1


@pytest.mark.parametrize("content", ['{"schema_version": "1"}', "[]", "", '{"schema_version": "ATIF-v2.0"}'])
def test_other_files_of_that_name_are_not(tmp_path: Path, content: str) -> None:
    (tmp_path / "trajectory.json").write_text(content)
    assert files(tmp_path) == []


def agent(**changes: Any) -> dict[str, Any]:
    return {"source": "agent", "message": "", **changes}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([agent(message="hi")], "key 'task' is missing"),
        ([USER_STEP, agent(tool_calls=3)], "tool_calls"),
        (
            [USER_STEP, agent(tool_calls=[call("a")], observation={"results": [{"content": picture("../x.png")}]})],
            "outside",
        ),
        ([USER_STEP, agent(tool_calls=[call("a")], observation={"results": [{"content": picture("x.png")}]})], "x.png"),
        ([USER_STEP] + [agent(tool_calls=[call("a")] * 60)] * 100, "more than"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, steps: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(TrajectoryError) as caught:
        load_trajectory(foreign(tmp_path / "t", *steps))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_images_at_addresses_and_of_another_machine_are_not_read(tmp_path: Path) -> None:
    items = [picture("https://cdn.test/a.png"), picture("/home/me/b.png")]
    steps = [agent(tool_calls=[call("a")], observation={"results": [{"content": each}]}) for each in items]
    folder = foreign(tmp_path / "t", USER_STEP, *steps)
    (folder / "b.png").write_bytes(JPEG)
    assert [step.screenshot for step in load_trajectory(folder).steps] == [None, None, "b.png"]


KEYS = ["source", "message", "tool_calls", "observation", "results", "content", "extra", "wabe", "type"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3), st.dictionaries(st.sampled_from([*KEYS, "stop_reason", "verdict"]), JSON))
def test_any_document_is_a_trajectory_or_a_named_mistake(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], ours: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("t")
    document = {"schema_version": "ATIF-v1.8", "steps": [USER_STEP, *steps], "extra": {"wabe": ours}}
    (folder / "trajectory.json").write_text(json.dumps(document))
    try:
        trajectory = load(folder)
    except TrajectoryError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert isinstance(trajectory, Trajectory)
    assert isinstance(foreign_verdicts(folder), dict)


def test_a_tool_without_a_name_is_written_without_a_call(tmp_path: Path) -> None:
    step = Step(index=0, url="https://a.test/", title="", action=Action(tool=""), reply="x", feedback="which tool?")
    folder = exported(tmp_path, a_result(steps=(step,)))
    document = json.loads((folder / "trajectory.json").read_text())
    assert "tool_calls" not in document["steps"][1]

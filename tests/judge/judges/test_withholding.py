"""Refused questions: what is withheld, in which order, and what it makes of the verdict."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.llm.scripted import (
    ScriptedModel,
    completion,
    images_of,
    parts_for,
    rubric_script,
    stage,
    trajectory,
    webjudge_script,
)
from helpers.trajectory.attempts import BAD, ELSEWHERE, SITE, TASK, a_step, attempt, clicked, typed
from judge.judges.engine import ModelJudge
from judge.judges.methods import METHODS
from judge.judges.rubric import RubricJudge
from judge.judges.single_question import AgentTrekJudge, AutonomousJudge, WebVoyagerJudge
from judge.judges.webjudge import WebJudge
from judge.judges.withholding import MARK, Provenance
from judge.records.steps import Step
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from judge.trajectory.record import Trajectory
from shared.errors import ModelBlocked, ModelUnavailable
from shared.llm.model import Completion, ModelRequest
from shared.models import TokenUsage

ALL_MET = {"criteria": [{"criterion": name, "verdict": "met"} for name in ("c1", "c2")]}


def content_of(request: ModelRequest) -> str:
    """All that a model sees: texts, and screenshots as `[shot 0]`."""
    text = "\n".join(part for part in request.parts if isinstance(part, str))
    return text + "".join(f"[{image.decode()}]" for image in images_of(request))


def answering(request: ModelRequest, outcome: str = "success") -> str:
    script = (
        rubric_script(marks=ALL_MET, statuses=(outcome,)) if stage(request).startswith("rubric") else webjudge_script()
    )
    reply = script(request)
    assert isinstance(reply, str)
    return reply.replace("success", outcome)


class FilteredModel(ScriptedModel):
    """Says success unless a request contains one of the given texts or screenshots, which it refuses."""

    def __init__(self, *objected: str, outcome: str = "success", usage: TokenUsage | None = None) -> None:
        self.objected = list(objected)
        self.refusals: list[ModelRequest] = []

        def script(request: ModelRequest) -> str | Completion | ModelBlocked:
            seen = content_of(request)
            if not any(text in seen for text in self.objected):
                return completion(answering(request, outcome))
            self.refusals.append(request)
            error = ModelBlocked("unsafe", usage=usage)
            error.cost_usd = 0.01 if usage else None
            return error

        super().__init__(script)

    def texts_of_stage(self, of_stage: str) -> list[str]:
        return [content_of(request) for request in self.requests if stage(request) == of_stage]


async def judged(
    model: ScriptedModel,
    one: Trajectory,
    method: type[ModelJudge] = WebJudge,
    folder: Path | None = None,
    **config: Any,
) -> Verdict:
    return await method(parts_for(model, folder, **config)).judge(one)


def is_withheld(verdict: Verdict, step: str | None = None) -> bool:
    if step is not None:
        assert [entry["step"] for entry in verdict.evidence["withheld"]] == [step]
    return (verdict.outcome, verdict.reason_code) == ("failure", "withheld_evidence")


def is_open(verdict: Verdict) -> bool:
    return (verdict.outcome, verdict.reason_code) == ("unscored", None)


# What is withheld


async def test_typed_text_that_makes_the_model_refuse_is_a_failure(tmp_path: Path) -> None:
    model = FilteredModel(BAD)
    verdict = await judged(model, attempt(tmp_path, typed(0, f"cheapest {BAD} lamp"), clicked(1)))
    assert is_withheld(verdict, "text")
    assert f'"cheapest {MARK} lamp"' in model.texts_of_stage("outcome")[1]
    assert verdict.evidence["withheld"] == [
        {
            "question": "outcome",
            "askings": 1,
            "step": "text",
            "texts": ["actions_block"],
            "actions": [1],
            "screenshots": [],
        }
    ]


@pytest.mark.parametrize(
    "step",
    [
        a_step(0, f'<form> -> FILL: "Name textbox" = "{BAD}"', "browser_fill_form", fields=[{"value": BAD}]),
        a_step(0, f"<navigation> -> GOTO: {SITE}search?q={BAD}", "browser_navigate", url=f"{SITE}search?q={BAD}"),
        a_step(0, f"<navigation> -> TAB: new {SITE}{BAD}", "browser_tabs", action="new"),
        a_step(0, f'<dialog> -> DIALOG: accept with "{BAD}"', "browser_handle_dialog", promptText=BAD),
        a_step(0, f"<page> -> FIND: {BAD}", "browser_find", text=BAD),
        a_step(0, f'<page> -> WAIT: for "{BAD}"', "browser_wait_for", text=BAD),
        a_step(0, f"{BAD} in another tool's words", "unknown"),
        a_step(0, f"<page> -> SHOUT: {BAD}", "shout", what=BAD),
    ],
    ids=lambda step: step.action.tool,
)
async def test_every_way_to_write_into_an_action_line_is_withheld(tmp_path: Path, step: Step) -> None:
    assert is_withheld(await judged(FilteredModel(BAD), attempt(tmp_path, step)), "text")


async def test_of_a_form_the_values_are_withheld_and_not_the_names_of_its_fields(tmp_path: Path) -> None:
    line = f'<form> -> FILL: "Name textbox" = "{BAD}"; "Lamp combobox" = "lamp"; "Note textbox" = "cut {BAD}'
    step = a_step(0, line, "browser_fill_form", fields=[{"value": BAD}, {"value": "lamp"}, {"value": f"cut {BAD}"}])
    first, *_ = Provenance(attempt(tmp_path, step)).views()
    text = f'<form> -> FILL: "Name textbox" = "{MARK}"; "Lamp combobox" = "lamp"; "Note textbox" = "{MARK}"'
    assert first.trajectory.action_history == (text,)


async def test_thoughts_that_make_the_model_refuse_are_a_failure(tmp_path: Path) -> None:
    one = attempt(tmp_path, clicked(0), thoughts=(f"I want {BAD}",))
    assert is_withheld(await judged(FilteredModel(BAD), one, AgentTrekJudge), "text")


async def test_words_of_the_task_are_not_withheld(tmp_path: Path) -> None:
    model = FilteredModel("[shot 0]")
    one = attempt(tmp_path, typed(0, "the Cheapest LAMP"), clicked(1))
    assert is_open(await judged(model, one))
    # Nothing that the participant brought about is in the question, so that it is asked once.
    assert len(model.texts_of_stage("outcome")) == 1


async def test_an_echo_of_typed_text_in_the_name_of_an_element_is_withheld_with_it(tmp_path: Path) -> None:
    one = attempt(tmp_path, typed(0, BAD), clicked(1, f"Remove {BAD} button"))
    assert is_withheld(await judged(FilteredModel(BAD), one), "text")


async def test_a_note_that_repeats_typed_text_is_withheld_with_it(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Any:
        if stage(request) == "image":
            return f"It says {BAD}.\nScore: 4" if images_of(request) == [b"shot 1"] else "Score: 4"
        return ModelBlocked("unsafe") if BAD in content_of(request) else answering(request)

    one = attempt(tmp_path, typed(0, BAD), clicked(1))
    model = ScriptedModel(script)
    assert is_withheld(await judged(model, one), "text")
    assert f"It says {MARK}." in content_of(model.requests[-1])


@pytest.mark.parametrize(
    ("url", "task", "config"),
    [
        (ELSEWHERE, TASK.model_copy(update={"allowed_sites": ("evil.test",)}), {}),
        (ELSEWHERE, TASK, {"allowed_sites": ("evil.test",)}),
        (ELSEWHERE, TASK.model_copy(update={"start_urls": (SITE, ELSEWHERE)}), {}),
        (f"blob:{SITE}4711", TASK, {}),
        ("about:blank", TASK, {}),
    ],
)
async def test_a_site_of_the_task_s_own_is_not_another_site(
    tmp_path: Path, url: str, task: Task, config: dict[str, Any]
) -> None:
    one = attempt(tmp_path, clicked(0), clicked(1, at=url), task=task)
    assert is_open(await judged(FilteredModel("[shot 1]"), one, **config))


async def test_the_site_to_which_the_website_leads_before_any_action_is_the_task_s(tmp_path: Path) -> None:
    one = attempt(tmp_path, clicked(0, at=ELSEWHERE), clicked(1, at=ELSEWHERE))
    assert is_open(await judged(FilteredModel("[shot 1]"), one))


WRITING = [
    typed(1, "some text"),
    a_step(1, None, "browser_type", ok=False, text="typed before it failed"),
    a_step(1, f"<navigation> -> GOTO: {SITE}notes", "browser_navigate", url=f"{SITE}notes"),
    a_step(1, '<form> -> FILL: "a" = "b"', "browser_fill_form", fields=[{"name": "lamp", "value": "own"}]),
    a_step(1, '<form> -> FILL: "a" = "one"', "browser_fill_form", fields={"name": "lamp", "value": "own"}),
    a_step(1, "<page> -> PRESS: x", "browser_press_key", key="x"),
    a_step(1, "<page> -> PRESS: KeyX", "browser_press_key", key="KeyX"),
    a_step(1, "<page> -> PRESS: Shift+X", "browser_press_key", key="Shift+X"),
    a_step(1, "<page> -> PRESS: 💣", "browser_press_key", key="💣"),
    a_step(1, "<page> -> PRESS: Control+V", "browser_press_key", key="Control+V"),
    a_step(1, "<page> -> PRESS: ControlOrMeta+Shift+KeyV", "browser_press_key", key="ControlOrMeta+Shift+KeyV"),
    a_step(1, "<page> -> PRESS: Shift+Insert", "browser_press_key", key="Shift+Insert"),
    a_step(1, "<a> -> DRAG: to b", "browser_drag"),
    a_step(1, "<a> -> MIDDLE CLICK", "browser_click", button="middle"),
    a_step(1, '<dialog> -> DIALOG: accept with "so"', "browser_handle_dialog", accept=True, promptText="so"),
]
READING_ONLY = [
    clicked(1),
    a_step(1, '<form> -> FILL: "a" = "lamp"', "browser_fill_form", fields=[{"name": "own", "value": "lamp"}]),
    a_step(1, "<page> -> PRESS: Enter", "browser_press_key", key="Enter"),
    a_step(1, "<page> -> PRESS: Control+a", "browser_press_key", key="Control+a"),
    a_step(1, "<page> -> PRESS: F5", "browser_press_key", key="F5"),
    a_step(1, "<Sort combobox> -> SELECT: Price", "browser_select_option", values=["Price"]),
    a_step(1, "<page> -> FIND: lamp", "browser_find", text="lamp"),
    a_step(1, "<page> -> SCROLL: down 600", "browser_scroll", direction="down", amount=600),
    a_step(1, "<navigation> -> GOTO: https://shop.example/", "browser_navigate", url=SITE),
    a_step(1, "<navigation> -> TAB: select 1", "browser_tabs", action="select", index=1),
    a_step(1, "<dialog> -> DIALOG: accept", "browser_handle_dialog", accept=True),
    typed(1, "lamp, the cheapest!"),
]


@pytest.mark.parametrize("writing", WRITING, ids=lambda step: f"{step.action.tool} {step.outcome.line}")
async def test_a_screenshot_after_text_of_its_own_is_the_participant_s(tmp_path: Path, writing: Step) -> None:
    one = attempt(tmp_path, clicked(0), writing, clicked(2))
    assert is_withheld(await judged(FilteredModel("[shot 2]"), one), "after_text")


@pytest.mark.parametrize("reading", READING_ONLY, ids=lambda step: f"{step.action.tool} {step.outcome.line}")
async def test_an_action_that_writes_nothing_of_its_own_makes_no_page_the_participant_s(
    tmp_path: Path, reading: Step
) -> None:
    one = attempt(tmp_path, clicked(0), reading, clicked(2))
    model = FilteredModel("[shot 2]")
    assert is_open(await judged(model, one))
    assert all(
        reading.outcome and reading.outcome.line and MARK not in text for text in model.texts_of_stage("outcome")
    )


async def test_a_page_of_the_site_and_one_of_the_participant_s_together_leave_it_open(tmp_path: Path) -> None:
    model = FilteredModel("[shot 0]", BAD, "[shot 2]")
    one = attempt(tmp_path, clicked(0), typed(1, BAD), clicked(2, at=ELSEWHERE))
    assert is_open(await judged(model, one))
    # Each asking withholds more, and the last one no longer has anything of the participant's.
    requests = model.texts_of_stage("outcome")
    assert [text.count("[shot") for text in requests] == [3, 3, 2]
    assert [BAD in text for text in requests] == [True, False, False]


async def test_a_flat_list_s_screenshots_were_taken_before_the_actions_of_the_same_number(tmp_path: Path) -> None:
    lines = ("<Lamps link> -> CLICK", f"<Search textbox> -> TYPE: {BAD}", "<Buy button> -> CLICK")
    one = trajectory(tmp_path, (b"shot 0", b"shot 1", b"shot 2"), task=TASK, action_history=lines)
    assert is_open(await judged(FilteredModel("[shot 1]"), one))
    assert is_withheld(await judged(FilteredModel("[shot 2]"), one), "after_text")
    assert is_withheld(await judged(FilteredModel(BAD), one), "text")


# What comes of it


async def test_a_screenshot_that_cannot_be_scored_stays_in_the_evidence(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Any:
        if stage(request) == "image" and images_of(request) == [b"shot 1"]:
            return ModelBlocked("unsafe")
        return answering(request)

    model = ScriptedModel(script)
    verdict = await judged(model, attempt(tmp_path, clicked(0), clicked(1), clicked(2)))
    assert (verdict.outcome, verdict.reason_code) == ("success", None)
    assert [(each.Response, each.Score) for each in verdict.image_judge_record][1] == ("(unsafe)", None)
    assert images_of(model.requests[-1]) == [b"shot 0", b"shot 1", b"shot 2"]


async def test_a_screenshot_that_cannot_be_read_stays_in_the_evidence_of_the_rubric(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Any:
        if stage(request) == "rubric_image" and images_of(request) == [b"shot 0"]:
            return ModelBlocked("unsafe")
        return answering(request)

    model = ScriptedModel(script)
    verdict = await judged(model, attempt(tmp_path, *map(clicked, range(5))), RubricJudge)
    items = [images_of(request) for request in model.requests if stage(request) in ("rubric_process", "rubric_outcome")]
    assert verdict.outcome == "success"
    assert all(b"shot 0" in images for images in items)
    assert sorted(verdict.evidence["rubric"]["readings"]) == ["2", "3", "4", "5"]


@pytest.mark.parametrize(("refusals", "expected"), [(0, is_open), (2, is_withheld)])
async def test_a_refused_screenshot_that_the_decision_lacks_never_ends_in_success(
    tmp_path: Path, refusals: int, expected: Callable[[Verdict], bool]
) -> None:
    def script(request: ModelRequest) -> Any:
        if stage(request) == "image" and images_of(request) == [f"shot {refusals}".encode()]:
            return ModelBlocked("unsafe")
        return answering(request)

    places = range(3) if refusals else (1, 2, 0)
    steps = [typed(place, "own") if place == 0 and refusals else clicked(place) for place in places]
    assert expected(await judged(ScriptedModel(script), attempt(tmp_path, *steps), max_images=1))


async def test_a_failure_that_was_decided_without_a_refused_screenshot_is_a_plain_one(tmp_path: Path) -> None:
    verdict = await judged(
        FilteredModel("[shot 1]", outcome="failure"), attempt(tmp_path, clicked(0), clicked(1)), max_images=1
    )
    assert (verdict.outcome, verdict.reason_code) == ("failure", None)


@pytest.mark.parametrize("reply", ['Status: "success"', "no status at all", ""])
async def test_whatever_the_model_answers_once_something_is_withheld_does_not_count(tmp_path: Path, reply: str) -> None:
    def script(request: ModelRequest) -> Any:
        if BAD in content_of(request):
            return ModelBlocked("unsafe")
        return reply if stage(request) == "outcome" else answering(request)

    assert is_withheld(await judged(ScriptedModel(script), attempt(tmp_path, typed(0, BAD))))


async def test_a_model_that_is_down_when_asked_again_leaves_it_open_and_the_refusal_known(tmp_path: Path) -> None:
    is_down = True

    def script(request: ModelRequest) -> Any:
        if BAD in content_of(request):
            return ModelBlocked("unsafe")
        return ModelUnavailable("down") if is_down and MARK in content_of(request) else answering(request)

    model, one = ScriptedModel(script), attempt(tmp_path, typed(0, BAD))
    judge = WebJudge(parts_for(model, tmp_path / "cache"))
    assert is_open(await judge.judge(one))
    is_down, before = False, len(model.requests)
    assert is_withheld(await judge.judge(one))
    # Only the question that was not answered.
    assert len(model.requests) == before + 1


@pytest.mark.parametrize("stage_refused", ["key_points", "outcome"])
async def test_a_refusal_that_leaves_it_open_is_asked_again_later(tmp_path: Path, stage_refused: str) -> None:
    is_blocked = True

    def script(request: ModelRequest) -> Any:
        return ModelBlocked("unsafe") if is_blocked and stage(request) == stage_refused else answering(request)

    task = TASK.model_copy(update={"key_points": ()})
    judge, one = (
        WebJudge(parts_for(ScriptedModel(script), tmp_path / "cache")),
        attempt(tmp_path, clicked(0), task=task),
    )
    first = await judge.judge(one)
    assert is_open(first)
    assert first.reason == "judge model: unsafe"
    is_blocked = False
    assert (await judge.judge(one)).outcome == "success"


async def test_a_refusal_is_paid_for_once_and_counted(tmp_path: Path) -> None:
    usage = TokenUsage(calls=1, input=50, output=5)
    one = attempt(tmp_path, typed(0, BAD), clicked(1))
    model = FilteredModel(BAD, usage=usage)
    verdicts = [await judged(model, one, folder=tmp_path / "cache") for _ in range(2)]
    assert [stage(request) for request in model.requests] == ["image", "image", "outcome", "outcome"]
    assert verdicts[0].token_usage == TokenUsage(calls=4, input=350, output=35)
    assert verdicts[0].cost_usd == pytest.approx(0.04)
    assert verdicts[1].model_dump() == verdicts[0].model_dump()


async def test_a_request_that_was_refused_before_the_model_saw_it_costs_nothing(tmp_path: Path) -> None:
    verdict = await judged(FilteredModel(BAD), attempt(tmp_path, typed(0, BAD)))
    assert verdict.token_usage.calls == 2
    assert verdict.cost_usd == pytest.approx(0.02)


async def test_prefetching_a_refused_screenshot_changes_nothing(tmp_path: Path) -> None:
    one = attempt(tmp_path, typed(0, "own"), clicked(1))
    expected = await judged(FilteredModel("[shot 1]"), one)
    model = FilteredModel("[shot 1]")
    judge = WebJudge(parts_for(model))
    judge.prefetch(one.task)
    judge.prefetch(one.task, one.screenshots[1])
    while not model.refusals:
        await asyncio.sleep(0)
    assert (await judge.judge(one)).model_dump() == expected.model_dump()
    assert is_withheld(expected, "after_text")
    await judge.aclose()


def test_without_what_the_participant_brought_about_the_task_and_the_site_are_left(tmp_path: Path) -> None:
    steps = (clicked(0), typed(1, f"cheapest {BAD}"), clicked(2, f"{BAD} link"), clicked(3, "Offer link", at=ELSEWHERE))
    *_, last = Provenance(attempt(tmp_path, *steps, final_answer=f"My lamp, {BAD}")).views()
    assert last.trajectory.action_history == (
        "<Lamps link> -> CLICK",
        f"<Search textbox> -> TYPE: cheapest {MARK}",
        f"<{MARK}> -> CLICK",
        f"<{MARK}> -> CLICK",
    )
    assert last.trajectory.final_answer == f"{MARK} lamp {MARK}"
    assert {path.name for path in last.hidden} == {"step_002.jpg", "step_003.jpg"}


# Any attempt and any filter, against an oracle that knows who made what


@dataclass(frozen=True)
class ObjectionableCase:
    """Something that a model may object to, and whether the participant brought it about."""

    token: str
    is_participants: bool


@dataclass(frozen=True)
class Play:
    """A generated attempt. `in_lines`, `on_shots` and `in_answer` are the pieces in each part of the evidence."""

    steps: tuple[Step, ...]
    answer: str | None
    in_lines: tuple[ObjectionableCase, ...]
    on_shots: tuple[ObjectionableCase, ...]
    in_answer: tuple[ObjectionableCase, ...]

    @property
    def pieces(self) -> tuple[ObjectionableCase, ...]:
        return (*self.in_lines, *self.on_shots, *self.in_answer)


@st.composite
def plays(draw: st.DrawFn) -> Play:
    steps, lines, shots = [], [], []
    has_written = is_away = False
    for place in range(draw(st.integers(1, 6))):
        shots.append(ObjectionableCase(f"[shot {place}]", is_away or has_written))
        url = ELSEWHERE if is_away else SITE
        kind = draw(st.sampled_from(["click", "leave", "return", "type", "task", "paste", "address", "fill", "key"]))
        own = f"word{place}"
        if kind in ("click", "leave", "return"):
            # The name of the element is the page's.
            name = f"name{place}"
            lines.append(ObjectionableCase(f"{name} link", is_away or has_written))
            steps.append(clicked(place, f"{name} link", at=url))
            is_away = kind == "leave" or (is_away and kind != "return")
        elif kind == "task":
            steps.append(typed(place, draw(st.sampled_from(["lamp", "Buy lamp!", "the cheapest"])), at=url))
        elif kind == "type":
            text = draw(st.sampled_from([own, f"lamp {own}", f"«{own}», please", f"{own}_lamp"]))
            steps.append(typed(place, text, at=url))
        elif kind == "paste":
            steps.append(a_step(place, "<page> -> PRESS: Control+v", "browser_press_key", url, key="Control+v"))
        elif kind == "key":
            steps.append(a_step(place, "<page> -> PRESS: q", "browser_press_key", url, key="q"))
        elif kind == "address":
            line = f"<navigation> -> GOTO: {SITE}{own}"
            steps.append(a_step(place, line, "browser_navigate", url, url=f"{SITE}{own}"))
            is_away = False
        else:
            line = f'<form> -> FILL: "Name textbox" = "{own}"'
            steps.append(a_step(place, line, "browser_fill_form", url, fields=[{"name": "n", "value": own}]))
        if kind in ("type", "address", "fill"):
            lines.append(ObjectionableCase(own, True))
        has_written = has_written or kind in ("type", "paste", "address", "fill", "key")
    answer = draw(st.sampled_from([None, "The lamp", "It is claim9"]))
    claims = (ObjectionableCase("claim9", True),) if answer and "claim9" in answer else ()
    return Play(tuple(steps), answer, tuple(lines), tuple(shots), claims)


def pieces_in(play: Play, method: type[ModelJudge]) -> list[tuple[ObjectionableCase, ...]]:
    """For each question that decides, the pieces in it."""
    every = (*play.in_lines, *play.on_shots, *play.in_answer)
    if method is AutonomousJudge:
        return [(*play.in_lines, play.on_shots[-1], *play.in_answer)]
    if method is WebVoyagerJudge:
        return [(*play.on_shots, *play.in_answer)]
    return [every]


def expected_of(
    objected: Iterable[ObjectionableCase], questions: list[tuple[ObjectionableCase, ...]]
) -> tuple[str, str | None]:
    """Success if nothing in the questions is objected to, failure if all of that is the participant's doing."""
    (question,) = questions
    results = [piece for piece in question if piece in set(objected)]
    if not results:
        return "success", None
    return ("failure", "withheld_evidence") if all(piece.is_participants for piece in results) else ("unscored", None)


DECIDING = [WebJudge, METHODS.load("webjudge_keypoints"), AutonomousJudge, WebVoyagerJudge, AgentTrekJudge, RubricJudge]


@pytest.mark.slow
@pytest.mark.parametrize("method", DECIDING, ids=lambda method: method.method)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_refusal_is_a_failure_exactly_if_the_participant_brought_it_about(
    method: type[ModelJudge], data: st.DataObject
) -> None:
    play = data.draw(plays())
    objected = data.draw(st.lists(st.sampled_from(play.pieces), unique=True, max_size=4))
    model = FilteredModel(*(piece.token for piece in objected))
    with TemporaryDirectory() as folder:
        one = attempt(Path(folder), *play.steps, final_answer=play.answer)
        verdict = asyncio.run(judged(model, one, method, judge_sees_answer=True))
    questions = pieces_in(play, method)
    if method is AgentTrekJudge:
        questions = pieces_in(play, AutonomousJudge)
    assert (verdict.outcome, verdict.reason_code) == expected_of(objected, questions)
    deciding = [
        request for request in model.requests if stage(request) not in ("image", "rubric_image", "rubric_criteria")
    ]
    of_each = {name: sum(stage(request) == name for request in deciding) for name in map(stage, deciding)}
    # Each question once, and at most three times more.
    assert all(count <= 4 * (len(TASK.key_points) if name == "key_point" else 1) for name, count in of_each.items())

"""Judge models' replies with reasoning in them: it decides nothing, wherever and however it is marked."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.marks import LEADING, MARKS, PAIRS, drafts, pairs
from judge.judges.rubric import parse_rubric
from judge.parsing import parse_key_points, parse_reason, parse_score, parse_status, without_marks
from judge.parsing.key_points import last_json_object

POINTS = "**Key Points**:\n1. Oak desk\n2. Under 400"
RUBRIC = '{"criteria": [{"requirement": "Oak desk", "kind": "outcome"}]}'
# Each kind of reply, its reader, and what it reads: with a verdict, and without one.
REPLIES: tuple[tuple[Any, str, Any], ...] = (
    (parse_status, "Status: failure", "failure"),
    (parse_status, "Nothing was ordered.\n\n**Status:** failure", "failure"),
    (parse_status, '```json\n{"status": "failure"}\n```', "failure"),
    (parse_status, "I cannot decide this.", None),
    (parse_status, "", None),
    (parse_score, "A lamp.\nScore: 2", 2),
    (parse_score, "**Score**: 2/5", 2),
    (parse_score, "The picture is blank.", None),
    (parse_key_points, POINTS, ("Oak desk", "Under 400")),
    (parse_key_points, '["Oak desk", "Under 400"]', ("Oak desk", "Under 400")),
    (parse_key_points, "I cannot help.", ()),
    (parse_reason, "A lamp.\nScore: 2", "A lamp."),
    (last_json_object, RUBRIC, {"criteria": [{"requirement": "Oak desk", "kind": "outcome"}]}),
    (last_json_object, "none", None),
)


def requirements(text: str) -> Any:
    rubric = parse_rubric(text)
    return [each.requirement for each in rubric.criteria] if rubric else []


@pytest.mark.parametrize(("parse", "reply", "value"), [*REPLIES, (requirements, RUBRIC, ["Oak desk"])])
@given(marks=pairs, before=drafts, inside=drafts)
def test_reasoning_never_changes_what_follows_it(
    parse: Any, reply: str, value: Any, marks: tuple[str, str], before: str, inside: str
) -> None:
    opening, closing = marks
    assert parse(f"{opening}{inside}{closing}{reply}") == value
    assert parse(f"{before}{opening}{inside}{closing}{reply}") == value
    assert parse(f"{inside}{closing}{reply}") == value


@pytest.mark.parametrize(("parse", "reply", "value"), REPLIES)
@given(marks=pairs, before=drafts, inside=drafts)
def test_a_reply_that_ends_in_its_reasoning_says_nothing(
    parse: Any, reply: str, value: Any, marks: tuple[str, str], before: str, inside: str
) -> None:
    opening, closing = marks
    nothing = parse("")
    assert parse(f"{before}{opening}{inside}{reply}") == nothing
    assert parse(f"{reply}\n{opening}{inside}{closing}") == nothing


@pytest.mark.parametrize(
    "reply",
    [
        "Status: {}", "<answer>Status: {}</answer>", "<answer>{}</answer>",
        "<final_answer>**Status:** {}</final_answer>", "Final Answer: Status: {}", "**Final Answer:** **Status: {}**",
        "<status>{}</status>", "<|begin_of_box|>{}<|end_of_box|>", "Status: {}<|return|>",
        "Status: {}<|end_of_solution|>", "Verdict: {}</s>",
    ],
)  # fmt: skip
def test_a_verdict_is_read_on_the_line_of_its_marks(reply: str) -> None:
    for opening, closing in (*PAIRS, *LEADING):
        for word in ("success", "failure"):
            text = f"{opening}If so, Status: success, else failure{closing}{reply.format(word)}"
            assert parse_status(text) == word, text
        if "Status" in reply or "status" in reply:
            scored = reply.replace("Status", "Score").replace("status", "score").format(2)
            assert parse_score(f"{opening}Score: 5{closing}{scored}") == 2, (opening, scored)


@pytest.mark.parametrize(
    ("reply", "points"),
    [
        ("[THINK]1. maybe a desk\n2. maybe oak[/THINK]" + POINTS, ("Oak desk", "Under 400")),
        ("<think>a</think><answer>1. Oak desk\n2. Under 400</answer>", ("Oak desk", "Under 400")),
        ("analysis1. maybe\n2. so assistantfinal1. Oak desk\n2. Under 400", ("Oak desk", "Under 400")),
    ],
)
def test_key_points_follow_the_reasoning(reply: str, points: tuple[str, ...]) -> None:
    assert parse_key_points(reply) == points


QUOTED = st.sampled_from(['"{}"', "'{}'", "“{}”", "`{}`", "> {}", "```\n{}\n```\nSo"])
TYPED = st.sampled_from(
    [
        *MARKS,
        "<status>",
        "</status>",
        "<score>",
        "<answer>",
        "<br>",
        "</p>",
        "~~",
        "&#10;",
        "</s>",
        "<|return|>",
        "<cot>",
        "</cot>",
        "<a b>",
    ]
)


@given(st.lists(TYPED, min_size=1, max_size=3), QUOTED)
def test_marks_that_a_judge_quotes_decide_nothing(marks: list[str], quotation: str) -> None:
    quoted = quotation.format("".join(marks) + "Status: success, Score: 5")
    assert parse_status(f"The page shows:\n{quoted} and no order.\n\nStatus: failure") == "failure"
    assert parse_score(f"The page shows:\n{quoted} and no order.\n\nScore: 2") == 2


@example(["[THINK]"], "")
@given(st.lists(TYPED, min_size=1, max_size=3), st.sampled_from(["", "<", "success ", "Status: success"]))
def test_marks_that_a_judge_was_shown_decide_nothing_unquoted_either(marks: list[str], more: str) -> None:
    text = without_marks("x " + more.join(marks) + "Status: success")
    assert parse_status(f"The field contains {text} as typed.\n\nStatus: failure") == "failure"
    assert parse_status(f"The field contains {text}") is None

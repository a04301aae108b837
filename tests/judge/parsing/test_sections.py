"""What a judge model's reply sets apart from itself decides nothing, whatever its marks are called."""

import time
from random import Random

import pytest

from judge.parsing import parse_score, parse_status
from judge.parsing.key_points import last_json_object
from judge.parsing.sections import without_sections

NAMES = tuple("cot details plan deliberation innerVoice my-notes gemini:thoughts x section draft_1".split())
ATTRIBUTES = ("", ' type="reasoning"', ' budget="low"', ' data-for="a b" hidden')
STEPS = "- Step 1 is fine.\n\n## "
DRAFTS = (
    "Status: {}",
    "**Status:** {}",
    "It was saved.\nStatus: {}",
    '{{"status": "{}"}}',
    "<status>{}</status>",
    STEPS + "Status\n{}",
)
ENDS = {
    "Nothing was saved.": None,
    "I cannot tell from the screenshots.": None,
    "\n\nStatus: failure": "failure",
    "The order is missing.\n\n**Status:** failure": "failure",
    '```json\n{"status": "failure"}\n```': "failure",
    "<answer>Status: failure</answer>": "failure",
}


def marked(random: Random, draft: str, end: str) -> tuple[str, bool]:
    """A reply with a draft in marks, and whether they are closed."""
    name, kind = random.choice(NAMES), random.choice(("element", "token", "bracket", "fence", "said", "headings"))
    space = random.choice(("", "\n", "\n\n"))
    if kind == "said":
        answer = random.choice(("response", "final answer", "verdict"))
        return f"Here is my thought process: {space}{draft}\nHere is my {answer}:{space}{end}", True
    if kind == "headings":
        answer = random.choice(("Response", "Answer:"))
        return f"## My thoughts\n{draft.removeprefix(STEPS)}\n\n## {answer}\n{end}", True
    if kind == "fence":
        mark, space = random.choice(("```", "~~~~")), "\n"
        opening, closing = f"{mark}{random.choice(('thinking', 'cot', 'text'))}", mark
    else:
        opening, closing = {
            "element": (f"<{name}{random.choice(ATTRIBUTES)}>", f"</{name}>"),
            "token": (f"<|begin_of_{name}|>", f"<|end_of_{name}|>"),
            "bracket": (f"[{name}]", f"[/{name}]"),
        }[kind]
    if kind in ("element", "fence") and random.random() < 0.3:
        return f"{opening}{space}{draft}", False
    return f"{opening}{space}{draft}{space}{closing}{space}{end}", True


def test_a_verdict_in_marks_is_none_if_the_reply_goes_on_or_ends_in_them() -> None:
    wrong: list[str] = []
    for seed in range(1_000):
        random = Random(seed)
        draft, end = random.choice(DRAFTS).format("success"), random.choice(list(ENDS))
        text, closed = marked(random, draft, end)
        if random.random() < 0.3:
            text = f"I looked at each screenshot.\n{text}"
        if parse_status(text) != (ENDS[end] if closed else None):
            wrong.append(text)
        scored = (
            text.replace("Status", "Score").replace("status", "score").replace("success", "5").replace("failure", "2")
        )
        if parse_score(scored) != (2 if closed and ENDS[end] else None):
            wrong.append(scored)
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "<answer>Status: {}</answer>",
        "<answer>Status: {}</answer>\nThe order is in the list.",
        "<verdict>\nStatus: {}\n</verdict>\nThe order is in the list.",
        "<p>Status: {}</p><p>The order is in the list.</p>",
        "<ul><li><b>Status:</b> {}</li><li>Thoughts: none</li></ul>",
        "<cot>The order is there.</cot>\nStatus: {}",
        "<details><summary>Verdict</summary>\nStatus: {}\n</details>",
        '```json\n{{"status": "{}"}}\n```\nThe order is in the list.',
        '```\n{{"status": "{}"}}\n```\nThe order is in the list.',
        "```\nStatus: {}\n```",
        "## Status\n{}\n\n## Reasoning\nThe order is in the list.",
        "### Reasoning:\nThe order is in the list.\n\n### Status: {}\nAs asked.\n\n### JSON Output:\n```json\n[1]\n```",
        "Thoughts:\nThe order is in the list.\n\nStatus: {}",
        "Here is my analysis: the order is in the list.\n\nStatus: {}",
        "| Status | {} |\n|---|---|\n| Reason | listed |",
        "The <button> was clicked and the <input> filled.\nStatus: {}",
        "A List<String> is shown; a < b, and c > d. See <https://site.example/x>.\nStatus: {}",
        "The note reads `<cot>`.\nStatus: {}\n",
        "1. <Search textbox> -> TYPE: desk\n2. <Save> -> CLICK\n3. <Order button>: missing\nStatus: {}",
        "Checked [x] and [Oak].\nStatus: {}",
        "Status: {}<|return|>",
        "<|begin_of_box|>{}<|end_of_box|> is my verdict.\nStatus: {}",
        "**Status：** {}。",
    ],
)
def test_a_verdict_in_an_odd_form_is_read(text: str) -> None:
    for word in ("success", "failure"):
        assert parse_status(text.format(*[word] * text.count("{}"))) == word


def test_an_object_in_marks_is_none() -> None:
    assert last_json_object('<cot>{"met": true}</cot> I cannot tell.') is None
    assert last_json_object('<cot>{"met": true}</cot>\n{"met": false}') == {"met": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "<a-b>", "<a-b ", "</a-b>", "<a-b></a-b>", "<x y>\n", "[a]", "```a\n", "## a\n## answer\n", "here is my a: ",
        "<|a|>",
    ],
)  # fmt: skip
def test_long_hostile_replies_take_linear_time(unit: str) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        without_sections(text)
        return time.process_time() - start

    assert cost(200_000) < 40 * max(cost(20_000), 0.02)

"""What a model writes, split into its reasoning and its reply."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.marks import LEADING, MARKS, PAIRS, drafts, pairs
from shared.reasoning import end_of_reasoning, escape_marks, find_mark, without_reasoning

REPLY = "Status: failure"
# Ways to quote a mark. What follows is the model's own words.
QUOTATIONS = (
    '"{}"', 'The page says "{} Status: success" in its title.', 'It says \\"{}\\".', "'{}'", "'it isn't {}'", "“{}”",
    "„{}“", "«{}»", "‘don’t {}’", "「{}」", "&quot;{}&quot;", "`{}`", "``a ` {}``", "> {}",
    "Seen:\n```\n{}\nStatus: success\n```\nI go on.", "Seen:\n~~~html\n{}\n~~~\nI go on.",
    '{{"seen": "{}", "blocker": null,}}', '{{"seen": "two\nlines {} here"}}', '["{}", "b"]',
)  # fmt: skip


def test_reasoning_ends_with_its_own_mark() -> None:
    for opening, closing in (*PAIRS, *LEADING):
        assert without_reasoning(f"{opening}Status: success?{closing}{REPLY}").lstrip() == REPLY, opening


def test_a_text_that_ends_in_its_reasoning_has_no_reply() -> None:
    for opening, _ in (*PAIRS, *LEADING):
        text = f"{opening}If it were so:\n{REPLY}"
        end, mark = end_of_reasoning(text)
        assert end == len(text), opening
        assert mark
        assert mark in opening


def test_a_closing_mark_alone_ends_reasoning() -> None:
    for _, closing in PAIRS:
        assert without_reasoning(f"Status: success\n{closing}{REPLY}").lstrip() == REPLY, closing


@given(pairs, drafts, drafts, drafts)
def test_only_what_follows_the_last_section_is_the_reply(
    marks: tuple[str, str], before: str, inside: str, between: str
) -> None:
    opening, closing = marks
    text = f"{before}{opening}{inside}{closing}{between}{opening}{inside}{closing}{REPLY}"
    assert without_reasoning(text).lstrip() == REPLY


@given(pairs, pairs, drafts)
def test_marks_within_a_section_change_nothing(marks: tuple[str, str], others: tuple[str, str], inside: str) -> None:
    opening, closing = marks
    for other in others:
        text = f"{opening}{inside}{other}{inside}{closing}{REPLY}"
        assert without_reasoning(text).lstrip() == REPLY


@pytest.mark.parametrize("closing", ["</reasoning>", "[/THINK]", "<|end_of_thought|>", "assistantfinal", "</think>"])
def test_only_a_mark_of_the_same_family_ends_a_section(closing: str) -> None:
    for opening, own in (("<think>", ("[/THINK]", "</think>")), ("<reasoning>", ("</reasoning>",))):
        assert without_reasoning(f"{opening}a{closing}{REPLY}") == (REPLY if closing in own else "")


@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_a_quoted_mark_is_text(quotation: str) -> None:
    for mark in MARKS:
        text = f"{quotation.format(mark)}\n{REPLY}"
        assert without_reasoning(text) == text
        assert without_reasoning(f"<think>\n{text}") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Analysis: the page is open.", "analysis\nThe page is open.", "analysis of the page",
        "[Reasoning] The page is open.", "[Thoughts]\nfine", "final: 3", "I think; therefore <b>I am</b>.",
        "a <thinker> b", "<rethink>", "The assistant finally said so.",
    ],
)  # fmt: skip
def test_ordinary_words_are_not_marks(text: str) -> None:
    assert without_reasoning(text) == text


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('<think>It says "a</think> Status: "failure"', ' Status: "failure"'),
        ('<think>A 24" screen</think>It\'s "ok"', 'It\'s "ok"'),
        ("<think>```\nunfinished</think>\n```json\n{}\n```", "\n```json\n{}\n```"),
        ('<think>{"a": "b</think>\n{"c": "d"}', '\n{"c": "d"}'),
        ("```\n<think>a</think>\nb\n```", "\nb\n```"),
        ("<think>the <think> tag</think>b", "b"),
        ("<think/>b", "b"),
    ],
)
def test_an_unfinished_quotation_hides_no_mark(text: str, reply: str) -> None:
    assert without_reasoning(text) == reply


def test_an_escaped_mark_means_nothing() -> None:
    assert escape_marks("[THINK] a <think> b") == r"\u005bTHINK\u005d a \u003cthink> b"
    for mark in MARKS:
        assert find_mark(mark), mark
        text = escape_marks(f"a {mark} b {mark} {REPLY}")
        assert not find_mark(text), mark
        assert "<|" not in text
        assert without_reasoning(text) == text


@given(
    st.lists(st.sampled_from([*MARKS, "<", "|", "[", "/", "think", ">", "assistant", "final", "\n", "a"])).map("".join)
)
def test_no_marks_are_left_in_an_escaped_text(text: str) -> None:
    assert not find_mark(f"x{escape_marks(text)}")


@given(st.text())
def test_a_reply_is_the_end_of_its_text(text: str) -> None:
    end, mark = end_of_reasoning(text)
    assert 0 <= end <= len(text)
    assert mark is None or end == len(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "<think>", "</think>", '"<think>', "'<think> ", "`<think>", "``<think>`", '{"a', '{"a":', "[{", "```\n",
        "```a\n", "<think>\n> ", "“<think>", "<think ", "<|channel|>a", "analysis", "&lt;", "&quot;<think>",
        '\\"<think>',
    ],
)  # fmt: skip
def test_long_hostile_texts_take_linear_time(unit: str) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        without_reasoning(text)
        without_reasoning("</think>" + text)
        escape_marks(text)
        return time.process_time() - start

    # Quadratic work would take 100 times as long for 10 times the text; linear work takes 10 times.
    assert cost(200_000) < 40 * max(cost(20_000), 0.02)

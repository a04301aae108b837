"""Reading scores, statuses and key points out of judge models' replies."""

import gzip
import json
import time
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.parsing import parse_key_points, parse_reason, parse_score, parse_status
from judge.parsing.key_points import last_json_object

FIELD_DATA = Path(__file__).parents[4] / "shared" / "data"
# fmt: off
# How judges label their score; the value may be written in any way.
SCORE_LABELS = (
    "Score: {}", "**Score**: {}", "**Score:** {}", "### Score\n{}", "### Score: {}", "Score - {}", "Score – {}",
    "Score = {}", "Score -> {}", "score:{}", "SCORE: {}", "Score of {}", "- **Score**: {}", "2. **Score**: {}",
    "**Final Score:** {}", "Relevance Score - {}", "Score (1-5): {}", "**Score (1–5):** {}", "Score, 1-5: {}",
    "Score on a scale of 1 to 5: {}", "Score for this image: {}", "Reasoning: partial. Score: {}",
    "> Score: 5\n\nScore: {}", "**Score**:\n\n\n{}", "Score:\n> {}", "Puntuación (Score): {}",
    "理由：有两个要点 Score: {}",
    "Score：{}", "Seen in part.|Score:{}", "Answer: Score: {}", "Score: ~~5~~ {}", "<score>{}</score>",
    "Score: 5\n\nWait, the price is missing. Revised score: {}", "Score: 5\nOn second thought...\nScore: {}",
    "output: score {}",
)
# A number that is the score, and …
SCORES = (
    "{}", "**{}**", "`{}`", "“{}”", "<{}>", "[{}]", "{}.0", "{}/5", "**{}** / 5", "{} out of 5", "{} (out of 5)",
    "{} of 5", "\\boxed{{{}}}", "$\\boxed{{{}}}$", "\\textbf{{{}}}", "${}$", "⭐ {}",
    "{} – The image includes 5 products", "{} - 5 products are visible", "{} — 4 of the key points are visible",
    "{}\n\n(1 = useless, 5 = essential)", "{}/5, 3 steps are missing", "{} points", "{}分", "{}（部分相关）",
    "{}, as it is.", "{}\n(Score: 9 would need the price)", "{}. The rest is missing",
)
# … numbers that are none: other scales, fractions, ranges, other things.
NO_SCORES = (
    "0", "6", "10", "-{}", "+{}", ">{}", "≥{}", "{}.5", "{},5", "⭐ {}.5", "{}%", "**{}** %", "80%", "{}rd", "{}/10",
    "{} out of 10", "{} of the 6 points", "{} of all", "{} upvotes", "{} stars", "{}:1", "{}-5", "{} .. 5", "{} to 3",
    "{} through 5", "between {} and 3", "{} or 4", "{} → 3", "{} -> 3", "{} → revised to 3",
    "{} would need the price", "1/2/3/4/5", "1/5-5/5", "1, 2, 3, 4 or 5", "1|2|3|4|5", "[1-5]",
    "{}-1 for the home team", "N/A", "", "four or five",
)
# Labels that take a bare value.
CLOSED_SCORE_LABELS = (
    "### Score **{}**", "| Score | {} |", '{{"score": {}}}', '{{"score": "{}"}}',
    '{{"final_score": {}, "max_score": 5}}', "{{'relevance score': {}}}",
    "```json\n{{\"reasoning\": \"x\", \"score\": \"{}\"}}\n```", "Score: Highly relevant ({})",
    "**Score**: Highly relevant – {}/5", "Score: ★★★★☆ ({})",
)
NO_BARE_SCORES = (
    "0", "6", "{}.5", "{}-5", "N/A", "80",
)
# Sentences in which the judge gives the score …
OWN_SCORES = (
    "I'd rate this a {}", "The image deserves a {}.", "This image receives a relevance score of {}.",
    "Overall, I assign this a {} out of 5.", "therefore, the score is {}.",
    "I would rate this image a {} rather than a 5", "On a scale of 1-5, I would give this image a score of {}.",
    "### Score\nI would assign this image a score of **{}**.", "We settle on {}.", "It merits a {}",
    "my rating should be {}", "Rating: {}", "**Rating:** {}", "The answer is $\\boxed{{{}}}$.",
)
# … and in which a number is something else, or the page's.
OTHER_NUMBERS = (
    "RT score: {}", "- Hardening compliance score: {}", "Tomatometer score: {}", "Star Rating: {} out of 5",
    "- Average rating: {}.", "The comment has a score of {}.", 'The page says "Score: {}".',
    '"Score: {}" is on the page.', "The post has score “{}” (net +2 upvotes)", "> Score: {}",
    "I cannot give it a {}.", "If the price were shown I would give it a {}.", "I might rate it {}.",
    "The page shows {} out of 5 stars.", "it scores 8{}",
    "The screenshot only shows the shipping-rate form for a {} oz parcel.", "{}", "{}/5", "Scores:\n- Relevance: {}",
    "the score is {}-1 for the home team", "- Image 1 shows {} lamps", '{{"max_score": {}}}', '{{"min score": {}}}',
)
# How judges label their verdict.
VERDICT_LABELS = (
    "Status: {}", '**Status:** "{}"', "### Status\n{}", "### Status\n\n**{}**", "Final Status: {}",
    "**Overall status**: {}", "Status - {}", "status: `{}`", "Status：{}", "`Status: {}`", '"Status: {}"',
    "Status: **{}**", "Status: ✅ {}", "Status:\n- {}", "- Status: {}", "Task Status: {}", "Agent status: {}",
    "Status of the task: {}", "状态 (Status): {}", "Done.status:{}", "The task is done. Status: {}",
    "Answer: Status: {}", "\nStatus: \\text{{{}}}", "Status: $\\boxed{{\\text{{{}}}}}$", "| Status | {} |",
    '{{"status": "{}"}}', '{{"thoughts": "Status: success was claimed", "status": "{}"}}', "Status: ~~success~~ {}",
    "Status: success\n\nActually, the filter was not applied, so Status: {}",
    "Thoughts: ok.\nStatus: success\nWait.\nStatus: {}", "<status>{}</status>", 'the final status is "{}"',
    "Therefore the status of the task is {}", 'The final status is therefore "{}"',
    "1. a\n   - Status: success\n2. b\n   - Status: success\nStatus: {}",
)
LAST_WORDS = (
    "Verdict: {}", "DECISION: {}", "Final Answer: {}", "Result: {}", "**Outcome**: {}.", "Conclusion - {}",
    "\\boxed{{{}}}", "All points are shown.\n\n**{}**", "Evaluation: {}", "Judgment: {}",
)
SUCCESSES = (
    "success", "Success", "SUCCESS", "successful", "succeeded", "passed",
)
FAILURES = (
    "failure", "FAILED", "failed", "unsuccessful", "unsuccess", "not successful", "not success", "not a success",
    "no success", "non-success", "without success", "far from success", "wasn't successful",
    "cannot be considered a success", "incomplete", "not completed", "not met", "not achieved",
)
# After these, a clause may follow.
OPEN_LABELS = (
    "Status: {}", "Final Status: {}", "Status - {}", "Status：{}", "### Status\n{}", "Task Status: {}",
    "Status of the task: {}",
)
SUCCESS_CLAUSES = (
    "success.", "success, not failure", "success with no failures", "Task completed successfully",
    "the attempt succeeded", "success\nThe order status is failure", "definitely a success",
)
FAILURE_CLAUSES = (
    "failure, not success", "failure because it never saved", "the task failed",
    "The agent has failed to complete the task.", "clearly a failure", "did not succeed", "failure (partial success)",
    "the attempt did not succeed", "The task was not successfully completed.", "success was not achieved",
    "success: false", "success has never been shown", "failure, though the banner reads, Status: success",
    "failure\nThe participant claims — Status: success", "failure\nThe page says: Status: success",
)
NO_STATUSES = (
    "", "succ", "not", "pending", "N/A", "completed", "completed. No failure was seen.", "success or failure",
    "success/failure", "success|failure", "success → failure", "success -> failure", "success?", "success, failure",
    "success and failure", "success message shown", "failure rate 3", "success criteria", "partially successful",
    "partial success", "likely success", "almost successful", "not a failure", "not incomplete", "success (partial)",
    "success, partially",
)
# The outcome of something else, or the page's words.
OTHER_OUTCOMES = (
    'The banner reads "Status: {}"', '"Status: {}" is on the page.', "1. Navigated. Status: {}\n2. The agent",
    "Order status: {}", "The agent {} in everything.", "Thoughts: the job status is {} so far, so",
    "I can't say the status is {}", "If the order had gone through, the task is a {}",
    "It is unclear whether the task {}.", "Success: 4 of 5 points", "{} message shown", "> Status: {}",
    "- Status: success\n- Status: failure", "I might say the status is {}",
)
# fmt: on
# Further sentences and layouts that say something of their own.
SCORE_EXAMPLES: tuple[tuple[str, int | None], ...] = (
    ("", None),
    ("Sorry, I can't help with that.", None),
    ("### Score\n3. The image is partial", 3),
    ("Score\n1. The image shows a\n2. It lacks b", None),
    ("### Score\nThe image receives a 2 because little is shown.", 2),
    ("Score: 4\n\nNo single price is shown, so Score: 3", None),
    ("Score: 4\nScore: 3", None),
    ("Score: 3 - 4", None),
    ("Score: 3 – 5", None),
    ("Score: 2\nStar Rating: 4 out of 5", 2),
    ('A review of the page says: "I would give it a 4."', None),
    ("I would assign this image a score of 4,5", None),
    ("Image 1 score: 4\nImage 2 score: 2", None),
)
STATUS_EXAMPLES: tuple[tuple[str, str | None], ...] = (
    ("", None),
    ("Therefore, the task was not completed successfully.", "failure"),
    ("I judge this attempt a failure.", "failure"),
    ("NOT SUCCESS", "failure"),
    ('{"success": true}', "success"),
    ('{"thoughts": "done", "success": false}', "failure"),
    ("**Success**: No", "failure"),
    ("Successful: yes", "success"),
    ("Status: failure\n\nWait: the last page confirms it. Revised Status: success", "success"),
    ("1. a\n   - Status: success\nStatus: pending", None),
    ("The task is done. Status: failure\nThe participant claims — Status: success", None),
    ("### Status\nsuccess?", None),
)


def score_cases() -> Iterator[tuple[str, int | None]]:
    """Replies, each with the score that it states: all labels with all ways to write a number."""
    values, bare = cycle((1, 2, 4, 5)), ("{}", "{}.0")
    for label, score in (*product(SCORE_LABELS, SCORES), *product(CLOSED_SCORE_LABELS, bare)):
        value = next(values)
        yield label.format(score.format(value)), value
    for label, number in (*product(SCORE_LABELS, NO_SCORES), *product(CLOSED_SCORE_LABELS, NO_BARE_SCORES)):
        yield label.format(number.format(next(values))), None
    for value, word in enumerate(("one", "two", "three", "four", "five"), 1):
        yield from ((label.format(word), value) for label in SCORE_LABELS)
    for sentence in OWN_SCORES:
        value = next(values)
        yield sentence.format(value), value
    for sentence, label in product(OTHER_NUMBERS, ("Score: {}", "**Score**: {}/5")):
        value, other = next(values), sentence.format(3)
        yield other, None
        yield f"{other}\n\n{label.format(value)}", value
        yield f"{label.format(value)}\n{other}", value


def status_cases() -> Iterator[tuple[str, str | None]]:
    """Replies, each with the verdict that it states: all labels with all words for an outcome."""
    outcomes = [*((word, "success") for word in SUCCESSES), *((word, "failure") for word in FAILURES)]
    for label, (word, status) in product((*VERDICT_LABELS, *LAST_WORDS), outcomes):
        yield label.format(word), status
    for clauses, said in ((SUCCESS_CLAUSES, "success"), (FAILURE_CLAUSES, "failure"), (NO_STATUSES, None)):
        yield from ((label.format(clause), said) for label, clause in product(OPEN_LABELS, clauses))
    for sentence, word, own in product(OTHER_OUTCOMES, ("success", "failure"), ("success", "failure")):
        other = sentence.format(word)
        yield other, None
        yield f"{other}\n\nStatus: {own}", own
        yield f"**Status**: {own}\n{other}", own


POINTS: list[tuple[str, tuple[str, ...]]] = [
    ("**Key Points**:\n1. Filter by price\n2. Sort by rating\n", ("Filter by price", "Sort by rating")),
    ("1) a\n2) b", ("a", "b")),
    ("- a\n- b\n\nThese cover it.", ("a", "b")),
    ("• a\n• b", ("a", "b")),
    ("1. Filter:\n   - price\n   - color\n2. Buy", ("Filter: price color", "Buy")),
    ("1. long line\ncontinued\n2. next", ("long line continued", "next")),
    ("1. **Name**\n\n   must be x\n\n2. y", ("Name must be x", "y")),
    ("**1. Foo**: bar\n**2. Baz**", ("Foo: bar", "Baz")),
    ("**1.** Foo\n**2.** Bar", ("Foo", "Bar")),
    ("### Key Point 1: foo\n### Key Point 2: bar", ("foo", "bar")),
    ("Key Points: 1. a b 2. c d", ("a b", "c d")),
    ("Key points: Only this", ("Only this",)),
    ('["a", "b"]', ("a", "b")),
    ('```json\n{"key_points": ["x"]}\n```', ("x",)),
    ("Sure! Here:\n\n1. **A** - x\n\n2. **B** - y\n\nLet me know.", ("A - x", "B - y")),
    ("1.Filter\n2.Sort", ("Filter", "Sort")),
    ("1、Filter\n2、Sort", ("Filter", "Sort")),
    ("① Filter\n② Sort", ("Filter", "Sort")),
    ("1 - Filter\n2 - Sort", ("Filter", "Sort")),
    ("#1 Filter\n#2 Sort", ("Filter", "Sort")),
    ("Step 1: Filter\nStep 2: Sort", ("Filter", "Sort")),
    ("a) Filter\nb) Sort", ("Filter", "Sort")),
    ("1. Filter\na) price\nb) color\n2. Sort", ("Filter price color", "Sort")),
    ("> 1. Filter\n> 2. Sort", ("Filter", "Sort")),
    ("- [ ] Filter\n- [x] Sort", ("Filter", "Sort")),
    ("```markdown\n1. Filter\n2. Sort\n```", ("Filter", "Sort")),
    ("<key_points>\n1. Filter\n2. Sort\n</key_points>", ("Filter", "Sort")),
    ("1. Filter\n2. Sort<|im_end|>", ("Filter", "Sort")),
    ("<think>\n1. maybe\n2. or not\n</think>\n1. Filter\n2. Sort", ("Filter", "Sort")),
    ('Here they are:\n```json\n["Filter", "Sort"]\n```', ("Filter", "Sort")),
    ('[{"id": "k1", "text": "Filter"}, {"id": "k2", "text": "Sort"}]', ("Filter", "Sort")),
    ('{"key_points": {"1": "Filter", "2": "Sort"}}', ("Filter", "Sort")),
    ("1. Pay 2.5 million\n2.5 million is the price", ("Pay 2.5 million 2.5 million is the price",)),
    ("I cannot help with that.", ()),
    ("", ()),
]


def test_a_score_is_what_the_reply_labels_as_the_score() -> None:
    assert [(reply, score) for reply, score in score_cases() if parse_score(reply) != score] == []


@pytest.mark.parametrize(("reply", "score"), SCORE_EXAMPLES)
def test_a_score_stands_in_further_replies(reply: str, score: int | None) -> None:
    assert parse_score(reply) == score


def test_a_status_is_what_the_reply_labels_as_the_status() -> None:
    assert [(reply, status) for reply, status in status_cases() if parse_status(reply) != status] == []


@pytest.mark.parametrize(("reply", "status"), STATUS_EXAMPLES)
def test_a_status_stands_in_further_replies(reply: str, status: str | None) -> None:
    assert parse_status(reply) == status


@pytest.mark.parametrize(("reply", "points"), POINTS)
def test_key_points_are_the_items_of_the_reply(reply: str, points: tuple[str, ...]) -> None:
    assert parse_key_points(reply) == points


@pytest.mark.skipif(not FIELD_DATA.is_dir(), reason="the recorded replies lie beside the repository, not in it")
@pytest.mark.parametrize(
    ("name", "key", "parse"),
    [
        ("webjudge_image_replies_dev.jsonl.gz", "score", parse_score),
        ("webjudge_outcome_replies_dev.jsonl.gz", "verdict", parse_status),
    ],
)
def test_every_recorded_reply_parses_to_its_label(name: str, key: str, parse: Any) -> None:
    with gzip.open(FIELD_DATA / name, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    assert len(rows) >= 300
    assert [row for row in rows if parse(row["reply"]) != row[key]] == []


LABELS = st.sampled_from(
    [
        "Score: {}", "**Score**: {}", "**Score:** {}", "### Score\n{}", "### Score: {}", "Score - {}",
        "- **Score**: {}/5", "Final Score: {} out of 5", "Score (1-5): {}", "score = {}", '{{"score": {}}}',
        "2. **Score**: **{}**", "Score: [{}]",
    ]
)  # fmt: skip
STATUS_LABELS = st.sampled_from(
    [
        "Status: {}",
        '**Status:** "{}"',
        "### Status\n{}",
        "Final status: {}.",
        "status - {}",
        "Status: **{}**",
        '{{"status": "{}"}}',
        "Overall Status: `{}`",
    ]
)
# Prose that mentions scores, numbers and outcomes without stating any.
PROSE = st.lists(
    st.sampled_from(
        [
            "The page lists 4 products.",
            "Its rating is 4.5 of 5 stars.",
            "It ranges from 1-5.",
            "The filter was a success.",
            "Nothing failed here.",
            "The comment has a score of 3.",
            'A banner reads "Status: success".',
            "Key points 1 to 3.",
        ]
    ),
    max_size=6,
).map("\n".join)


@given(PROSE, st.sampled_from([*score_cases(), *SCORE_EXAMPLES]))
def test_what_a_reply_says_of_other_things_before_its_score_changes_nothing(prose: str, case: tuple[str, Any]) -> None:
    reply, score = case
    assert parse_score(f"{prose}\n\n{reply}") == score


@given(LABELS, LABELS, st.integers(1, 5), st.integers(1, 5), PROSE)
def test_two_labelled_scores_count_only_if_they_agree(first: str, second: str, a: int, b: int, prose: str) -> None:
    assert parse_score(f"{first.format(a)}\n{prose}\n{second.format(b)}") == (a if a == b else None)


@given(STATUS_LABELS, STATUS_LABELS, PROSE, st.booleans(), st.booleans())
def test_two_labelled_statuses_count_only_if_they_agree(first: str, second: str, prose: str, a: bool, b: bool) -> None:
    words = {True: "success", False: "failure"}
    result = parse_status(f"{first.format(words[a])}\n{prose}\n{second.format(words[b])}")
    assert result == (words[a] if a == b else None)


@given(PROSE)
def test_prose_alone_has_neither_score_nor_status(prose: str) -> None:
    assert (parse_score(prose), parse_status(prose)) == (None, None)


@given(PROSE, st.sampled_from([*status_cases(), *STATUS_EXAMPLES]))
def test_what_a_reply_says_of_other_things_before_its_status_changes_nothing(prose: str, case: tuple[str, Any]) -> None:
    reply, status = case
    assert parse_status(f"{prose}\n\n{reply}") == status


@given(st.text(max_size=400))
def test_any_text_parses_to_a_value_of_its_range(text: str) -> None:
    assert parse_score(text) in {None, 1, 2, 3, 4, 5}
    assert parse_status(text) in {None, "success", "failure"}
    assert all(point and "\n" not in point for point in parse_key_points(text))


@pytest.mark.slow
@given(st.lists(st.from_regex(r"[A-Z][a-z]{2,12}( [a-z]{2,9}){1,6}", fullmatch=True), min_size=2, max_size=12))
def test_a_numbered_list_is_read_back_item_by_item(items: list[str]) -> None:
    text = "**Key Points**:\n" + "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))
    assert list(parse_key_points(text)) == items


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "score ", "Score: (", "Status: ", "I rate ", "1-", "1,2,", "**", "status status is ", "Status: not a ",
        "- Score", "the score is ", '{"score":', "final final score", "   ", "between 1 and ", "{", "[", "1. a ",
        "a__", "<think>", "Score: a (", "Status: success ", "Status: success\n", "Score: 4 ", ". score: 4",
        "the task was ", "1️⃣ ", "~~", "&lt;", "<status>", "Wait. ", "```\na\n```\n", "<s>a",
    ],
)  # fmt: skip
def test_long_hostile_replies_take_linear_time(unit: str) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        for parse in (parse_score, parse_status, parse_key_points):
            parse(text)
        return time.process_time() - start

    # Quadratic work would take 100 times as long for 10 times the text; linear work takes 10 times.
    assert cost(100_000) < 40 * max(cost(10_000), 0.02)


def test_the_last_json_object_of_a_reply_is_found_fenced_or_bare() -> None:
    assert last_json_object('Sure {not json}\n```json\n{"a": {"b": 1}}\n```') == {"a": {"b": 1}}
    assert last_json_object('{"a": 1}\nCorrected:\n{"a": 2}\nDone {}.') == {"a": 2}
    assert last_json_object('<think>{"a": 1}</think>{"a": "one\ntwo"}') == {"a": "one\ntwo"}
    assert last_json_object("{" * 1000) is None


def test_json_objects_of_the_same_shape_count_only_if_they_agree() -> None:
    assert last_json_object('{"a": 1}\n{"a": 2}') is None
    assert last_json_object('{"a": 1}\n{"a": 1}') == {"a": 1}
    assert last_json_object('{"note": "x"}\n{"a": 2}') == {"a": 2}
    assert last_json_object('{"a": 1}\nI was wrong.\n{"a": 2}') == {"a": 2}
    assert last_json_object('{"a": 1, "b": "Wait."}\n{"a": 2}') is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("A lamp is in\nthe cart.\n\nScore: 4", "A lamp is in the cart."),
        ("1. **Reasoning**: The filter is set.\n\n2. **Score**: 5", "The filter is set."),
        ("<think>Score: 1</think>A page.\n**Final score:** 2", "A page."),
        ("Score: 3", ""),
        ("", ""),
    ],
)
def test_the_reason_is_what_a_reply_says_beside_its_score(reply: str, reason: str) -> None:
    assert parse_reason(reply) == reason


@given(st.text(max_size=300))
def test_a_reason_is_one_line_for_any_reply(text: str) -> None:
    assert len(parse_reason(text).splitlines()) <= 1

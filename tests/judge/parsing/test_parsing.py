"""Reading scores, statuses and key points out of judge models' replies."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.parsing import parse_key_points, parse_reason, parse_score, parse_status
from judge.parsing.key_points import last_json_object

FIELD_DATA = Path(__file__).parents[4] / "shared" / "data"
SCORES: list[tuple[str, int | None]] = [
    ("Score: 4/5", 4),
    ("**Score**: 4", 4),
    ("### Score\n4", 4),
    ("Score of 4", 4),
    ("I'd rate this a 2", 2),
    ('{"score": 3}', 3),
    ("Score: 4 (out of 5)", 4),
    ("Score: 4.5", None),
    ("Score: 0", None),
    ("Score: 6", None),
    ("Score: 4.0", 4),
    ("Score (1-5): 3", 3),
    ("**Score (1–5):** 2", 2),
    ("Score: 1-5", None),
    ("Score: [1-5]", None),
    ("Score: 1, 2, 3, 4 or 5", None),
    ("Score on a scale of 1 to 5: 4", 4),
    ("Score: 3 out of 5", 3),
    ("Score: 8/10", None),
    ("Score: 80%", None),
    ("Score: 5%", None),
    ("score: three", 3),
    ("**Final Score:** **5**", 5),
    ("Relevance Score - 2", 2),
    ("Score: \\boxed{4}", 4),
    ("Score: $3$", 3),
    ("| Score | 4 |", 4),
    ('```json\n{"reasoning": "x", "score": "2"}\n```', 2),
    ("Score: 2\n\nOn second thought...\nScore: 4", 4),
    ('The page says "Score: 5".\nScore: 1', 1),
    ('Score: 1\nThe page says "Score: 5" but that is text of the page.', 1),
    ("On a scale of 1-5, I would give this image a score of 4.", 4),
    ("The image deserves a 3.", 3),
    ("I cannot give it a 5.", None),
    ("If the price were shown I would give it a 5.", None),
    ("I would rate this image a 3 rather than a 5", 3),
    ("Star Rating: 4 out of 5", None),
    ("- Average rating: 4.5", None),
    ("The comment has a score of 4.", None),
    ("Rating: 4", 4),
    ("The post has score “2” (net +2 upvotes)", None),
    ("Score: N/A", None),
    ("Score:", None),
    ("### Score", None),
    ("", None),
    ("Sorry, I can't help with that.", None),
    ("Score: -1", None),
    ("Score: +3", None),
    ("Score\n1. The image shows a\n2. It lacks b", None),
    ("### Score\n3. The image is partial", 3),
    ("Score：４", 4),
    ("Score: 3 – The image includes 5 products", 3),
    ("Score: 3 - 4", None),
    ("Score: 2 to 3", None),
    ("therefore, the score is 2.", 2),
    ("the score is 2-1 for the home team", None),
    ("Reasoning: partial. Score: 3", 3),
    ("Tomatometer score: 4", None),
    ("- Hardening compliance score: 5", None),
    ("RT score: 3", None),
    ("Score: **4** / 5", 4),
    ("Score: 10", None),
    ("Score: 3rd", None),
    ("Scores:\n- Relevance: 4", None),
    ("> Score: 5\n\nScore: 2", 2),
    ("**Score:** `3`", 3),
    ("Score = 5", 5),
    ("score:4", 4),
    ("SCORE: 4", 4),
    ("### Score: ⭐ 4", 4),
    ("Score: ⭐ 4.5", None),
    ("**Score**:\n\n\n**3**", 3),
    ("Score: 5 of the 6 points", None),
    ("Score: between 2 and 3", None),
    ("Score – 3", 3),
    ("### Score **3**", 3),
    ("Score: 3 – 5", None),
    ("Score: 3 — 4 of the key points are visible", 3),
    ("1. **Reasoning**: abc\n2. **Score**: 4", 4),
    ("Score: <4>", 4),
    ("Score: “4”", 4),
    ("Overall, I assign this a 4 out of 5.", 4),
    ("This image receives a relevance score of 3.", 3),
    ("it scores 80", None),
    ("Score: 4\n\n(1 = useless, 5 = essential)", 4),
    ("Score: 12", None),
    ("Score: 4,5", None),
]
SCORES += [
    ("Score: 4/5, 3 steps are missing", 4),
    ("### Score\nI would assign this image a score of **3**.", 3),
    ("### Score\nThe image receives a 2 because little is shown.", 2),
    ("Score: 1/2/3/4/5", None),
    ("Score: 3 - 5 products are visible", 3),
]
SCORES += [
    ("Score: 4\n\nWait, the price is missing. Revised score: 3", 3),
    ("Score: 4\n\nNo single price is shown, so Score: 3", None),
    ("**Score**: 2\n(Score: 3 would need the price)", 2),
    ("Score: 4 → 3", None),
    ("Score: ~~4~~ 3", 3),
    ("Score: 1/5-5/5", None),
    ("Score: four or five", None),
    ("Score -> 4", 4),
    ("Score:\n> 4", 4),
    ("Score:3", 3),
    ("Seen in part.|Score:3", 3),
    ("Score: Highly relevant (4)", 4),
    ("**Score**: Highly relevant – 4/5", 4),
    ("Score: ★★★★☆ (4)", 4),
    ("Score: 4 points", 4),
    ("Score: 4 upvotes", None),
    ("Score: 4分", 4),
    ("Score for this image: 3", 3),
    ("Score, 1-5: 4", 4),
    ("Puntuación (Score): 4", 4),
    ("Image 1 score: 4\nImage 2 score: 2", None),
    ('{"final_score": 3, "max_score": 5}', 3),
    ("The answer is $\\boxed{3}$.", 3),
    ("Score: \\textbf{4}", 4),
    ("The page shows 4 out of 5 stars. The rating is visible, showing 4 of 5", None),
    ("The screenshot only shows the shipping-rate form for a 5 oz parcel.", None),
    ("Score: >3", None),
    ("Score: 2 → revised to 3", None),
    ("理由：有两个要点 Score: 3", 3),
    ("Score: 3（部分相关）", 3),
    ("4", None),
    ("4/5", None),
]
STATUSES: list[tuple[str, str | None]] = [
    ("Status: success", "success"),
    ('**Status:** "failure"', "failure"),
    ("Status: unsuccessful", "failure"),
    ("Status: not successful", "failure"),
    ('{"status": "success"}', "success"),
    ('{"thoughts": "Status: success was claimed", "status": "failure"}', "failure"),
    ("Thoughts: ok.\nStatus: failure\nWait.\nStatus: success", "success"),
    ("The agent succeeded in everything.", None),
    ("Status: succ", None),
    ("Status:", None),
    ("Status: not", None),
    ('Status: "success" or "failure"', None),
    ("Status: success/failure", None),
    ("Status: <success|failure>", None),
    ("### Status\nfailure", "failure"),
    ("### Status\n\n**Success**", "success"),
    ("Status - success", "success"),
    ("Final Status: failure", "failure"),
    ("**Overall status**: success", "success"),
    ('The banner reads "Status: success"', None),
    ("1. Navigated. Status: success\n2. The agent", None),
    ("- Status: success\n- Status: failure", None),
    ("- Status: failure", "failure"),
    ("1. a\n   - Status: success\n2. b\n   - Status: success\nStatus: failure", "failure"),
    ("The task is done. Status: success", "success"),
    ("done. Status: failure because it never saved", "failure"),
    ("Status: ✅ success", "success"),
    ("Status: partially successful", None),
    ("Status: likely success", None),
    ("Status: success was not achieved", "failure"),
    ("Status: not a success", "failure"),
    ("Status: non-success", "failure"),
    ("Status: no success", "failure"),
    ("Status: not a failure", None),
    ("Verdict: failure", "failure"),
    ("Result: success message shown", None),
    ("Status: success message shown", None),
    ("Therefore the status of the task is failure.", "failure"),
    ('the final status is "success".', "success"),
    ("The status is not success", "failure"),
    ("I can't say the status is success", None),
    ("Status: pending", None),
    ("Order status: success", None),
    ("Status: Success.", "success"),
    ("status: FAILED", "failure"),
    ("Status: the task failed", "failure"),
    ("Status: successful", "success"),
    ("Status：success", "success"),
    ("Status: success?", None),
    ("", None),
    ("Status: `failure`", "failure"),
    ("Status: \\text{failure}", "failure"),
    ("Status: success, not failure", "success"),
    ("Status: failure, not success", "failure"),
    ("Status: not success", "failure"),
    ("Task Status: Failure", "failure"),
    ('**Status**: **"success"**', "success"),
    ("`Status: failure`", "failure"),
    ('"Status: success"', "success"),
    ("Thoughts: the job status is success so far, so", None),
    ("Status:\n- success", "success"),
    ("Status: unsuccess", "failure"),
    ("Status: Success\nThe order status is failure", "success"),
    ("Status: failure, though the banner reads, Status: success", "failure"),
    ("Status: failure\nThe participant claims — Status: success", "failure"),
]
STATUSES += [("Status: incomplete", "failure"), ("Status: not incomplete", None), ("Status: partial success", None)]
STATUSES += [
    ("Status: success\n\nActually, the filter was not applied, so Status: failure", "failure"),
    ("Status: failure\n\nWait: the last page confirms it. Revised Status: success", "success"),
    ("Status: failure\nThe page says: Status: success", "failure"),
    ("Status: success → failure", None),
    ("Status: ~~success~~ failure", "failure"),
    ("Status: did not succeed", "failure"),
    ("Status: wasn't successful", "failure"),
    ("Status: without success", "failure"),
    ("Status: cannot be considered a success", "failure"),
    ("Status: far from success", "failure"),
    ("Status: success: false", "failure"),
    ("Status: not completed", "failure"),
    ("Status: completed", None),
    ("Status: completed. No failure was seen.", None),
    ("Status: The agent has failed to complete the task.", "failure"),
    ("Status: Task completed successfully", "success"),
    ("Status: The task was not successfully completed.", "failure"),
    ("Status: almost successful", None),
    ("| Status | success |", "success"),
    ("\\boxed{failure}", "failure"),
    ("Status: $\\boxed{\\text{success}}$", "success"),
    ("Status of the task: failure", "failure"),
    ('The final status is therefore "success".', "success"),
    ("Done.status:failure", "failure"),
    ('{"success": true}', "success"),
    ('{"thoughts": "done", "success": false}', "failure"),
    ("**Success**: No", "failure"),
    ("Success: 4 of 5 points", None),
    ("All points are shown.\n\n**SUCCESS**", "success"),
    ("NOT SUCCESS", "failure"),
    ("Final Answer: success", "success"),
    ("Therefore, the task was not completed successfully.", "failure"),
    ("It is unclear whether the task succeeded.", None),
    ("If the order had gone through, the task is a success", None),
    ("I judge this attempt a failure.", "failure"),
    ("Status: clearly a failure", "failure"),
    ("Status: the attempt did not succeed", "failure"),
    ("Status: not met", "failure"),
    ("Status: success, failure", None),
    ("Status: success and failure", None),
    ("Status: success (partial)", None),
    ("Status: failure (partial success)", "failure"),
    ("Status: success with no failures", "success"),
    ("DECISION: success", "success"),
    ("Answer: Status: success", "success"),
    ("Agent status: failure", "failure"),
    ("状态 (Status): failure", "failure"),
]
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


@pytest.mark.parametrize(("reply", "score"), SCORES)
def test_a_score_is_what_the_reply_labels_as_the_score(reply: str, score: int | None) -> None:
    assert parse_score(reply) == score


@pytest.mark.parametrize(("reply", "status"), STATUSES)
def test_a_status_is_what_the_reply_labels_as_the_status(reply: str, status: str | None) -> None:
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
        "Score: {}",
        "**Score**: {}",
        "**Score:** {}",
        "### Score\n{}",
        "### Score: {}",
        "Score - {}",
        "- **Score**: {}/5",
        "Final Score: {} out of 5",
        "Score (1-5): {}",
        "score = {}",
        '{{"score": {}}}',
        "2. **Score**: **{}**",
        "Score: [{}]",
    ]
)
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


@given(PROSE, LABELS, st.integers(1, 5), st.sampled_from(["", "\n", " - The image shows 2 of 5 steps.", "\n(partly)"]))
def test_a_labelled_score_is_found_after_any_prose(prose: str, label: str, score: int, rest: str) -> None:
    assert parse_score(f"{prose}\n\n{label.format(score)}{rest}") == score


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


@given(PROSE, STATUS_LABELS, st.sampled_from(["success", "Success", "failure", "FAILURE", "unsuccessful"]))
def test_a_labelled_status_is_found_after_any_prose(prose: str, label: str, word: str) -> None:
    expected = "success" if word.lower() == "success" else "failure"
    assert parse_status(f"{prose}\n\n{label.format(word)}") == expected


@given(st.text(max_size=400))
def test_any_text_parses_to_a_value_of_its_range(text: str) -> None:
    assert parse_score(text) in {None, 1, 2, 3, 4, 5}
    assert parse_status(text) in {None, "success", "failure"}
    assert all(point and "\n" not in point for point in parse_key_points(text))


@given(st.lists(st.from_regex(r"[A-Z][a-z]{2,12}( [a-z]{2,9}){1,6}", fullmatch=True), min_size=2, max_size=12))
def test_a_numbered_list_is_read_back_item_by_item(items: list[str]) -> None:
    text = "**Key Points**:\n" + "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))
    assert list(parse_key_points(text)) == items


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "score ",
        "Score: (",
        "Status: ",
        "I rate ",
        "1-",
        "1,2,",
        "**",
        "status status is ",
        "Status: not a ",
        "- Score",
        "the score is ",
        '{"score":',
        "final final score",
        "   ",
        "between 1 and ",
        "{",
        "[",
        "1. a ",
        "a__",
        "<think>",
        "Score: a (",
        "Status: success ",
        "Status: success\n",
        "Score: 4 ",
        ". score: 4",
        "the task was ",
        "1️⃣ ",
        "~~",
        "&lt;",
        "<status>",
        "Wait. ",
        "```\na\n```\n",
        "<s>a",
    ],
)
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

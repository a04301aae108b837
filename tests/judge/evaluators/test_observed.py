"""Answers that were seen: a value counts only from a page that was observed before it was entered."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from helpers.trajectory.recordings import RecordedStep, evaluate_check, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.evaluators.kinds.answer import AnswerCheck
from judge.evaluators.observed import EnteredText, Leaf
from judge.records.findings import AnswerSeen
from judge.scenario.checks import hints_of
from shared.models import Vanished

VALUE = "Ferry 4711"
SEEN_CHECK = {"kind": "answer", "type": "string", "expected": VALUE, "seen": True}
Place = Literal[
    "nowhere", "text", "editor", "field", "typed", "frame", "attack", "title", "address", "beyond", "vanished"
]
Entering = Literal["nothing", "type", "choose", "address", "keys", "page tool", "site tool", "parts", "element"]

PAGES: dict[str, str] = {
    "nowhere": '- paragraph [ref=e2]: "Nothing here"',
    "text": f'- paragraph [ref=e2]: "Take the {VALUE} at noon"',
    "editor": f'- generic [ref=e2] [editable=host]:\n  - paragraph [ref=e3] [editable=true]: "{VALUE}"',
    "field": f'- textbox "Ship" [ref=e2]: "{VALUE}"',
    "typed": f'- paragraph [ref=e2] [typed=text:0-{len(VALUE)}]: "{VALUE}"',
    "frame": f'- iframe [ref=e2] [origin=https://other.test]:\n  - paragraph [ref=f1e1]: "{VALUE}"',
    "attack": f'- paragraph [ref=e2] [inserted]: "{VALUE}"',
    "title": '- paragraph [ref=e2]: "Nothing here"',
    "address": '- paragraph [ref=e2]: "Nothing here"',
    "beyond": f'- paragraph [ref=e2]: "First"\n- paragraph [ref=e3]: "{VALUE}"',
    "vanished": '- paragraph [ref=e2]: "Nothing here"',
}
ACTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": ("browser_click", {"target": "e2", "element": "a button"}),
    "element": ("browser_click", {"target": "e2", "element": VALUE}),
    "type": ("browser_type", {"target": "e2", "text": f"is it {VALUE.upper()}?"}),
    "choose": ("browser_select_option", {"target": "e2", "values": [VALUE]}),
    "address": ("browser_navigate", {"url": "https://shop.example/search?q=Ferry%2B4711%2520&x=Ferry+4711"}),
    "page tool": ("look_up_ship", {"query": {"name": VALUE}}),
    "site tool": ("site_tool", {"name": "look_up_ship", "arguments": {"name": "ferry", "number": 4711}}),
    "parts": ("browser_fill_form", {"fields": [{"target": "e2", "value": "4711"}, {"target": "e3", "value": "ferry"}]}),
}


class Turn(NamedTuple):
    """What the page shows, and what the participant then does."""

    place: Place
    entering: Entering


def steps_of(turn: Turn) -> list[RecordedStep]:
    known: dict[str, Any] = {"snapshot": PAGES[turn.place]}
    if turn.place == "title":
        known["title"] = VALUE
    if turn.place == "address":
        known["path"] = f"/{VALUE}"
    if turn.place == "vanished":
        known["vanished"] = (Vanished(text=VALUE, origin="https://shop.example", at_ms=1, stood_s=1),)
    if turn.entering != "keys":
        tool, params = ACTIONS[turn.entering]
        return [RecordedStep(**known, tool=tool, params=params)]
    pages = [known, *[{"snapshot": PAGES["nowhere"]}] * (len(VALUE) - 1)]
    return [
        RecordedStep(**page, tool="browser_press_key", params={"key": letter})
        for page, letter in zip(pages, VALUE, strict=True)
    ]


def decided(folder: Path, turns: Sequence[Turn], check: dict[str, Any] = SEEN_CHECK, answer: str = VALUE) -> Any:
    groups = [steps_of(turn) for turn in turns]
    recorded = recorded_attempt(folder, [check], [step for group in groups for step in group], answer)
    # What was cut is recorded with the step.
    cut, at = set[int](), 0
    for turn, group in zip(turns, groups, strict=True):
        cut |= {at} if turn.place == "beyond" else set()
        at += len(group)
    steps = tuple(
        step.model_copy(update={"sent_lines": 1}) if step.index in cut else step for step in recorded.attempt.steps
    )
    attempt = recorded.attempt.model_copy(update={"steps": steps})
    (assertion,) = evaluate(recorded.model_copy(update={"attempt": attempt}))
    return assertion


def oracle(turns: Sequence[Turn]) -> int | None:
    """The number of the turn at which the value was seen, by how the attempt was made."""
    for number, turn in enumerate(turns):
        if turn.place == "text":
            return number
        if turn.entering not in ("nothing", "element"):
            return None
    return None


turns = st.lists(
    st.builds(Turn, st.sampled_from(sorted(PAGES)), st.sampled_from([*sorted(ACTIONS), "keys"])), min_size=1, max_size=4
)


@given(turns)
def test_a_value_counts_only_from_the_sites_own_text_before_it_was_entered(sequence: list[Turn]) -> None:
    with TemporaryDirectory() as folder:
        assertion = decided(Path(folder), sequence)
    assert assertion.passed == (oracle(sequence) is not None), assertion.found
    (fact,) = assertion.facts
    assert isinstance(fact, AnswerSeen)
    assert (fact.step is None) == (oracle(sequence) is None)


PAGE = RecordedStep(
    snapshot='- row "Kayak € 1,299.00 May 3, 2024" [ref=e2]\n- list [ref=e3]:\n  - listitem [ref=e4]: Ada Lovelace'
)


@pytest.mark.parametrize(
    ("check", "answer", "passed"),
    [
        ({"type": "number", "expected": 1299}, "1299", True),
        ({"type": "number", "expected": 299}, "299", False),
        ({"type": "currency", "expected": "€1299"}, "It costs 1.299,00 EUR", True),
        ({"type": "currency", "expected": "$1299"}, "$1299", False),
        ({"type": "date", "expected": "2024-05-03"}, "2024-05-03", True),
        ({"type": "date", "expected": "2024-03-05"}, "5 March 2024", False),
        ({"type": "list", "expected": ["ada lovelace", 1299]}, "Ada Lovelace, 1299", True),
        ({"type": "list", "expected": ["ada lovelace", "Kanu"]}, "Ada Lovelace, Kanu", False),
        (
            {"type": "json", "expected": {"who": ["Ada Lovelace"], "new": True}},
            '{"who": ["Ada Lovelace"], "new": true}',
            True,
        ),
        ({"type": "json", "expected": {"who": "Ada", "n": 7}}, '{"who": "Ada", "n": 7}', False),
        ({"type": "json", "schema": {"type": "object"}}, '{"any": "Lovelace"}', True),
        ({"type": "string", "expected": "Love"}, "love", False),
        ({"contains": "kayak"}, "the KAYAK", True),
        ({"pattern": r"\bKan\w+"}, "a Kanu", False),
        ({"pattern": r"\bKay\w+"}, "a Kayak", True),
    ],
)
def test_values_are_compared_as_in_the_answer(tmp_path: Path, check: dict[str, Any], answer: str, passed: bool) -> None:
    assertion = evaluate_check(tmp_path, {"kind": "answer", "seen": True, **check}, [PAGE], answer)
    assert assertion.passed == passed, assertion.found


def test_the_finding_names_the_step(tmp_path: Path) -> None:
    assert decided(tmp_path / "a", [Turn("nowhere", "nothing"), Turn("text", "nothing")]).found.endswith(
        "seen at step 2"
    )
    late = decided(tmp_path / "b", [Turn("nowhere", "type"), Turn("text", "nothing")])
    assert late.found.endswith("was on no page before it was entered at step 1")
    assert decided(tmp_path / "c", [Turn("frame", "nothing")]).found.endswith("was on no page that was observed")


def test_without_seen_the_verdict_does_not_depend_on_it_but_the_recording_says(tmp_path: Path) -> None:
    plain = {key: value for key, value in SEEN_CHECK.items() if key != "seen"}
    assertion = decided(tmp_path, [Turn("nowhere", "nothing")], plain)
    assert assertion.passed
    assert assertion.facts == (AnswerSeen(step=None, value=VALUE),)
    assert "page" not in assertion.found


def test_a_recording_that_does_not_say_who_wrote_what_is_undecided(tmp_path: Path) -> None:
    step = RecordedStep(snapshot=PAGES["text"])
    assert evaluate_check(tmp_path, SEEN_CHECK, [step], VALUE, is_marked=False).passed is None


def test_a_page_between_the_actions_of_one_reply_was_not_observed(tmp_path: Path) -> None:
    pages = [RecordedStep(snapshot=PAGES[name]) for name in ("nowhere", "text", "nowhere")]
    recorded = recorded_attempt(tmp_path, [SEEN_CHECK], pages, VALUE)
    for replies, passed in (((None, None, None), True), ((None, 0, 1), False)):
        steps = [
            step.model_copy(update={"reply_index": reply})
            for step, reply in zip(recorded.attempt.steps, replies, strict=True)
        ]
        attempt = recorded.attempt.model_copy(update={"steps": tuple(steps)})
        (assertion,) = evaluate(recorded.model_copy(update={"attempt": attempt}))
        assert assertion.passed == passed


def test_the_page_after_the_attempt_had_ended_was_not_observed(tmp_path: Path) -> None:
    recorded = recorded_attempt(
        tmp_path, [SEEN_CHECK], [RecordedStep(snapshot=PAGES[n]) for n in ("nowhere", "text")], VALUE
    )
    *steps, last = recorded.attempt.steps
    attempt = recorded.attempt.model_copy(update={"steps": tuple(steps), "final_look": last})
    (assertion,) = evaluate(recorded.model_copy(update={"attempt": attempt}))
    assert assertion.passed is False


@pytest.mark.parametrize("keys", [{"type": "boolean", "expected": True}, {"contains": "x", "not": True}])
def test_seen_is_refused_where_it_has_no_meaning(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="seen"):
        AnswerCheck.model_validate({"kind": "answer", "seen": True, **keys})


@pytest.mark.parametrize(
    ("leaf", "entered", "is_entered"),
    [
        (Leaf("string", "Ada Lovelace"), EnteredText(["ada", "LOVELACE"]), True),
        (Leaf("string", "Ada Lovelace"), EnteredText(["ada"]), False),
        (Leaf("string", "49"), EnteredText(["499"]), False),
        (Leaf("string", "49"), EnteredText(["499"], is_edited=True), True),
        (Leaf("string", "49"), EnteredText([], keys="94"), True),
        (Leaf("number", 5), EnteredText(["500"]), False),
        (Leaf("number", 1234), EnteredText(["12", "34"]), True),
    ],
)
def test_what_counts_as_entered(leaf: Leaf, entered: EnteredText, is_entered: bool) -> None:
    assert leaf.is_entered(entered) == is_entered


def test_validate_suggests_seen_and_says_what_it_cannot_see(tmp_path: Path) -> None:
    def hints(**check: Any) -> list[str]:
        return hints_of(recorded_attempt(tmp_path, [{"kind": "answer", **check}], []).task)

    assert hints(type="number", expected=4) == [
        "check 1: an agent can know the answer without looking: seen = true, if the site has it as text"
    ]
    assert "only a picture shows" in hints(type="number", expected=4, seen=True)[0]
    assert hints(type="boolean", expected=True) == []

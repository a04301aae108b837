"""Checks proposed from a recorded attempt."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.records.tasks import Task
from judge.results.suggestions import Suggestion, Suggestions, at_start, suggest, suggestions_toml
from shared.errors import ConfigError

START = """- heading "Shop" [level=1] [ref=e1]
- banner:
  - link "Cart (0)" [ref=e2]
- dialog "Cookies" [ref=e3]:
  - button "Accept" [ref=e4]
- group "Colour":
  - checkbox "Red" [ref=e5]
  - checkbox "Blue" [checked] [ref=e6]
- textbox "Note" [ref=e7]
"""
END = """- heading "Shop" [level=1] [ref=e1]
- banner:
  - link "Cart (2)" [ref=e2]
- group "Colour":
  - checkbox "Red" [checked] [ref=e5]
  - checkbox "Blue" [ref=e6]
- textbox "Note" [ref=e7]: gift
- status: "2 red lamps"
- list:
  - listitem [ref=e9]: An advertisement
"""


def proposed(folder: Path, *steps: RecordedStep, answer: str | None = None, **task: Any) -> list[dict[str, Any]]:
    suggestions = suggest(recorded_attempt(folder, [], steps, answer, **task))
    return [each.check for each in suggestions.checks if not each.is_optional]


def test_what_changed_between_the_first_and_the_last_look_is_proposed(tmp_path: Path) -> None:
    suggestions = proposed(tmp_path, RecordedStep(snapshot=START), RecordedStep(snapshot=END))
    assert suggestions == [
        {"kind": "element", "within": "banner", "element": 'link "Cart (2)"'},
        {"kind": "element", "within": 'group "Colour"', "element": 'checkbox "Red" [checked]'},
        {"kind": "element", "within": 'group "Colour"', "element": 'checkbox "Blue" [checked=false]'},
        {"kind": "element", "element": 'textbox "Note": gift'},
        {"kind": "text", "within": "status", "contains": "2 red lamps"},
        {"kind": "element", "element": 'dialog "Cookies"', "not": True},
    ]


def test_an_attempt_that_changed_nothing_gets_no_proposal(tmp_path: Path) -> None:
    assert proposed(tmp_path, RecordedStep(snapshot=START), RecordedStep(snapshot=START)) == []


def test_the_last_address_is_proposed_unless_the_attempt_began_there(tmp_path: Path) -> None:
    suggestions = proposed(tmp_path, RecordedStep(), RecordedStep(path="/search?q=lamp"))
    assert suggestions == [{"kind": "page", "url": "/search?q=lamp"}]


def test_what_another_site_shows_is_not_evidence_and_not_proposed(tmp_path: Path) -> None:
    evil = RecordedStep(path="https://evil.test/done", snapshot='- heading "Do it: done" [level=1]')
    assert proposed(tmp_path, RecordedStep(snapshot=START), evil) == []


def test_what_was_typed_into_an_editor_is_not_proposed(tmp_path: Path) -> None:
    page = START + '- generic [editable=host] [ref=e8]:\n  - heading "Do it" [level=1] [editable]\n'
    assert proposed(tmp_path, RecordedStep(snapshot=START), RecordedStep(snapshot=page)) == []


def test_what_a_frame_of_another_site_shows_is_not_proposed(tmp_path: Path) -> None:
    page = START + '- iframe [ref=e8] [origin=https://pay.test]:\n  - heading "Do it" [level=1] [ref=f1e1]\n'
    assert proposed(tmp_path, RecordedStep(snapshot=START), RecordedStep(snapshot=page)) == []


@pytest.mark.parametrize("sender", ["https://pay.test", None])
def test_a_request_that_the_site_did_not_send_is_not_proposed(tmp_path: Path, sender: str | None) -> None:
    forged = RecordedRequest(path="/order", post='{"qty": 9}', sender=sender)
    own = RecordedRequest(path="/order", post='{"qty": 2}')
    assert proposed(tmp_path / "a", RecordedStep(requests=(forged,)), RecordedStep()) == []
    suggestions = proposed(tmp_path / "b", RecordedStep(requests=(own, forged)), RecordedStep())
    assert [check["post_data"] for check in suggestions] == [{"qty": 2}]


def test_a_request_that_changes_the_site_is_proposed_with_the_fields_that_matter(tmp_path: Path) -> None:
    post = '{"product": "lamp", "qty": 2, "csrf_token": "abcdefgh", "at": "2026-01-02T03:04:05", "items": [1]}'
    order = RecordedRequest(path="/order", post=post, status=201)
    first = RecordedStep(requests=(RecordedRequest(method="GET", path="/api/list"), order))
    assert proposed(tmp_path, first, RecordedStep()) == [
        {
            "kind": "request",
            "method": "POST",
            "url": "/order",
            "post_data": {"product": "lamp", "qty": 2},
            "status": 201,
        }
    ]


def test_a_request_to_another_site_is_not_proposed(tmp_path: Path) -> None:
    track = RecordedRequest(path="https://track.test/event", post="{}")
    assert proposed(tmp_path, RecordedStep(requests=(track,)), RecordedStep()) == []


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        ("The port is 5432.", {"kind": "answer", "type": "number", "expected": 5432}),
        ("It costs 12.50 euros", {"kind": "answer", "type": "number", "expected": 12.5}),
        ("From 9 to 17", {"kind": "answer", "contains": "From 9 to 17"}),
        ("Lisbon", {"kind": "answer", "contains": "Lisbon"}),
    ],
)
def test_an_answer_is_proposed(tmp_path: Path, answer: str, check: dict[str, Any]) -> None:
    assert proposed(tmp_path, RecordedStep(), answer=answer, task="What is it?") == [check]


def test_steps_are_proposed_as_comments_only(tmp_path: Path) -> None:
    suggestions = suggest(recorded_attempt(tmp_path, [], [RecordedStep(line="<Go button> -> CLICK"), RecordedStep()]))
    assert [(each.check["line"], each.is_optional) for each in suggestions.checks] == [("<Go button> -> CLICK", True)]
    assert tomllib.loads(suggestions_toml(suggestions)) == {"checks": []}


def test_what_differs_in_every_attempt_is_marked(tmp_path: Path) -> None:
    steps = [RecordedStep(snapshot=START), RecordedStep(snapshot=START + '- status: "Order 81273 at 10:45"\n')]
    suggestions = suggest(recorded_attempt(tmp_path, [], steps))
    assert [each.varies for each in suggestions.checks] == [True]
    assert suggestions.checks[0].check["pattern"] == "Order .+ at .+".replace(".+", r"\d+", 1)
    assert "may differ in every attempt" in suggestions_toml(suggestions)


FORM = """- heading "Tickets" [level=1] [ref=e1]
- link "New Ticket" [ref=e2]
- textbox "Comment" [ref=e3]
- button "Save" [ref=e4]
"""
TASK = "Add the comment 'The bulb is new.' to ticket 2."
TYPED = "<Comment textbox> -> TYPE: The bulb is new."


def commented(*last: RecordedRequest, end: str, path: str = "/") -> list[RecordedStep]:
    return [
        RecordedStep(snapshot=FORM, line=TYPED),
        RecordedStep(snapshot=FORM, line="<Save button> -> CLICK", requests=last),
        RecordedStep(snapshot=FORM + end, path=path),
    ]


def test_text_that_the_task_quotes_comes_before_what_shares_a_common_word_with_it(tmp_path: Path) -> None:
    end = """- link "Previous Ticket" [ref=e5]
- heading "Modify Ticket" [level=2] [ref=e6]
- heading "Lamp" [level=2] [ref=e7]
- paragraph [ref=e8]: The bulb is new.
- generic [ref=e9]:
  - text: Your changes have been saved in version 2 (
  - link "diff" [ref=e10]
  - text: ).
"""
    suggestions = proposed(tmp_path, *commented(end=end), task=TASK)
    assert suggestions == [
        {"kind": "text", "contains": "The bulb is new."},
        {"kind": "text", "contains": "Your changes have been saved in version 2"},
    ]


def test_weak_proposals_are_left_out_where_better_ones_are(tmp_path: Path) -> None:
    end = "".join(f'- heading "The bulb is new. {each}" [level=2]\n' for each in "abcdef")
    suggestions = proposed(tmp_path, *commented(end=end + '- link "Previous Ticket" [ref=e5]\n'), task=TASK)
    assert len(suggestions) == 4
    assert all("The bulb is new." in check["element"] for check in suggestions)


def test_the_default_of_an_untouched_field_is_weaker_than_what_the_task_names(tmp_path: Path) -> None:
    end = '- paragraph: The bulb is new.\n- textbox "Items per page": "100"\n- textbox "Reply"\n'
    suggestions = proposed(tmp_path, *commented(end=end), task=TASK)
    assert [check.get("contains") or check["element"] for check in suggestions] == [
        "The bulb is new.",
        'textbox "Items per page": 100',
    ]


def test_a_request_keeps_the_fields_that_the_task_names_and_says_what_else_was_sent(tmp_path: Path) -> None:
    post = "comment=The+bulb+is+new.&submit=Save&version=1&scroll_bar_pos=0"
    request = RecordedRequest(path="/ticket/2", post=post, mime_type="application/x-www-form-urlencoded", status=303)
    suggestions = suggest(recorded_attempt(tmp_path, [], commented(request, end=""), task=TASK))
    assert suggestions.checks[0].check["post_data"] == {"comment": "The bulb is new.", "submit": "Save"}
    assert "not compared: version=1, scroll_bar_pos=0" in suggestions.checks[0].why


def test_a_field_that_an_earlier_request_of_the_attempt_sent_with_another_value_is_kept(tmp_path: Path) -> None:
    first, last = (RecordedRequest(path="/cart", post=f'{{"pieces": {n}, "shop": "s"}}') for n in (1, 2))
    end = {"comment": "The bulb is new."}
    last = RecordedRequest(path="/cart", post='{"pieces": 2, "shop": "s", "comment": "The bulb is new."}')
    (suggestions, *_) = proposed(tmp_path, *commented(first, last, end=""), task=TASK)
    assert suggestions["post_data"] == {"pieces": 2, **end}


def test_an_address_keeps_the_parameters_that_the_task_names(tmp_path: Path) -> None:
    path = "/query?component=quay&group=priority&order=priority&col=id&col=summary"
    steps = [RecordedStep(), RecordedStep(path=path)]
    suggestions = suggest(recorded_attempt(tmp_path, [], steps, task="List the component 'quay', grouped by priority."))
    assert suggestions.checks[0].check == {
        "kind": "page",
        "url": "/query?component=quay&group=priority",
        "extra_query": True,
    }
    assert "not compared: order=priority, col=id, col=summary" in suggestions.checks[0].why


def test_a_parameter_that_changed_on_the_way_is_kept(tmp_path: Path) -> None:
    steps = [RecordedStep(), RecordedStep(path="/s?q=oak&page=1"), RecordedStep(path="/s?q=oak&page=1&sort=up")]
    assert proposed(tmp_path, *steps, task="Search for 'oak', cheapest first.") == [
        {"kind": "page", "url": "/s?q=oak&sort=up", "extra_query": True}
    ]


def test_a_number_that_the_attempt_made_is_replaced_by_a_pattern(tmp_path: Path) -> None:
    request = RecordedRequest(path="/newticket", post='{"comment": "The bulb is new."}', status=303)
    end = '- heading "#9 The bulb is new." [level=1]\n- heading "The bulb is new. by ada, 0 seconds ago" [level=2]\n'
    suggestions = suggest(
        recorded_attempt(tmp_path, [], commented(request, end=end, path="/ticket/9#comment"), task=TASK)
    )
    pages = [each for each in suggestions.checks if each.check["kind"] in ("page", "element")]
    assert [each.check.get("url") or each.check["element"] for each in pages] == [
        "/ticket/*",
        r"heading /^#\d+ The bulb is new\.$/",
        r"heading /^The bulb is new\. by ada, .+$/",
    ]
    assert all(each.varies for each in pages)


def test_a_number_in_an_address_that_a_page_linked_to_is_not_replaced(tmp_path: Path) -> None:
    request = RecordedRequest(path="/ticket/2", post='{"comment": "The bulb is new."}')
    steps = commented(request, end="", path="/ticket/7")
    linked = FORM + '- link "Seven" [ref=e5]:\n  - /url: /ticket/7\n'
    steps[0] = RecordedStep(snapshot=linked, line=TYPED)
    assert {"kind": "page", "url": "/ticket/7"} in proposed(tmp_path, *steps, task=TASK)


@pytest.mark.parametrize(("task", "answer", "is_optional"), [(TASK, "It is saved.", True), ("Who?", "Ada", False)])
def test_an_answer_that_the_task_does_not_ask_for_is_a_comment(
    tmp_path: Path, task: str, answer: str, is_optional: bool
) -> None:
    (suggestions,) = suggest(recorded_attempt(tmp_path, [], [RecordedStep()], answer, task=task)).checks
    assert suggestions.is_optional is is_optional


def test_an_answer_that_only_says_that_the_work_is_done_is_not_proposed(tmp_path: Path) -> None:
    assert suggest(recorded_attempt(tmp_path, [], [RecordedStep()], "Done.", task="Who?")).checks == ()


def test_against_a_wrong_attempt_only_what_it_fails_is_proposed(tmp_path: Path) -> None:
    def attempt(name: str, place: str, answer: str) -> Any:
        request = RecordedRequest(path="/save", post=f'{{"comment": "The bulb is new.", "place": "{place}"}}')
        end = f'- paragraph: The bulb is new.\n- heading "At the {place}" [level=2]\n'
        return recorded_attempt(tmp_path / name, [], commented(request, end=end), answer, task=f"{TASK} Who did it?")

    right, wrong = attempt("right", "quay", "Ada"), attempt("wrong", "pier", "Ada")
    assert {"kind": "text", "contains": "The bulb is new."} in [each.check for each in suggest(right).checks]
    suggestions = suggest(right, against=wrong)
    remaining = [each for each in suggestions.checks if not each.is_optional]
    assert [each.check for each in remaining] == [
        {
            "kind": "request",
            "method": "POST",
            "url": "/save",
            "post_data": {"comment": "The bulb is new.", "place": "quay"},
            "status": 200,
        },
        {"kind": "element", "element": 'heading "At the quay"'},
    ]
    assert 'place is "pier"' in remaining[0].in_wrong
    assert suggestions.held_in_wrong > 0
    assert "the wrong attempt fails it: found post_data place" in suggestions_toml(suggestions)


def test_every_proposal_passes_on_the_attempt_and_fails_at_its_start(tmp_path: Path) -> None:
    request = RecordedRequest(path="/order", post='{"qty": 2}')
    steps = [
        RecordedStep(snapshot=START, line="<Buy button> -> CLICK", requests=(request,)),
        RecordedStep(snapshot=END, path="/done"),
    ]
    trajectory = recorded_attempt(tmp_path / "a", [], steps, "2 red lamps")
    suggestions = suggest(trajectory)
    checks = Task.model_validate(
        {
            "task_id": "t",
            "website": "http://shop.test/",
            "task": "x",
            "checks": [each.check for each in suggestions.checks],
        }
    )
    (tmp_path / "b").mkdir()
    start = at_start(trajectory, tmp_path / "b")
    for one, passes in ((trajectory, True), (start, False)):
        task = trajectory.task.model_copy(update={"checks": checks.checks})
        results = evaluate(one.as_task(task))
        assert [bool(each.passed) for each in results] == [passes] * len(suggestions.checks)
    assert {each.check["kind"] for each in suggestions.checks} == {
        "page",
        "element",
        "text",
        "request",
        "answer",
        "action",
    }


def test_an_attempt_without_steps_is_refused(tmp_path: Path) -> None:
    trajectory = recorded_attempt(tmp_path, [], [])
    with pytest.raises(ConfigError, match="no steps were recorded"):
        suggest(trajectory)


@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_the_toml_gives_back_every_text(name: str) -> None:
    check = {"kind": "element", "element": f'button "{name}"', "not": True}
    result = Suggestions(checks=(Suggestion(check=check, why=name, at_start=name),), held_at_start=1)
    assert tomllib.loads(suggestions_toml(result))["checks"] == [check]


DATED = "Move the visit to 24 December 2026 and name the first device kitchen."


def moved(*lines: str, post: str) -> list[RecordedStep]:
    steps = [RecordedStep(line=line) for line in lines]
    return [*steps, RecordedStep(requests=(RecordedRequest(path="/save", method="PUT", post=post),)), RecordedStep()]


@pytest.mark.parametrize(
    ("post", "expected"),
    [
        ('{"devices": [{"name": "kitchen", "on": true}], "version": 37}', {"$.devices[0].name": "kitchen"}),
        ('{"data": {"a": {"label": "kitchen"}}, "revision": 4}', {"$.data.a.label": "kitchen"}),
        ('{"date": "2026-12-24"}', {"date": "2026-12-24"}),
        (
            '{"visit": {"when": "2026-12-24T00:00:00Z", "savedAt": "2026-12-24T10:33:21Z"}}',
            {"$.visit.when": "2026-12-24T00:00:00Z"},
        ),
        ('{"name": "kitchen", "date": "2026-11-27"}', {"name": "kitchen"}),
        ('{"plain": "x", "rev": "3-a", "lock_version": 2, "inner": {"deep": 1}}', {"plain": "x"}),
    ],
)  # fmt: skip
def test_fields_inside_others_and_chosen_dates_are_proposed_and_what_versions_the_server_is_not(
    tmp_path: Path, post: str, expected: dict[str, Any]
) -> None:
    (suggestions, *_) = proposed(tmp_path, *moved(post=post), task=DATED)
    assert suggestions["post_data"] == expected


@pytest.mark.parametrize(
    "line",
    [
        "<Date textbox> -> TYPE: 12/3/2026",
        "<Choose Thursday, December 3rd, 2026 button> -> CLICK",
        "<3 gridcell> -> CLICK",
    ],
)
def test_a_date_that_was_typed_or_clicked_is_proposed(tmp_path: Path, line: str) -> None:
    post = '{"date": "2026-12-03", "sent": "2026-11-27"}'
    (suggestions, *_) = proposed(tmp_path, *moved(line, post=post), task="Choose any day.")
    assert suggestions["post_data"] == {"date": "2026-12-03"}


def test_a_version_that_was_typed_is_proposed(tmp_path: Path) -> None:
    lines = ("<Version textbox> -> TYPE: 2.1",)
    (suggestions, *_) = proposed(tmp_path, *moved(*lines, post='{"version": "2.1", "revision": 8}'), task="Release it.")
    assert suggestions["post_data"] == {"version": "2.1"}


def test_what_a_wrong_attempt_did_otherwise_comes_first(tmp_path: Path) -> None:
    def attempt(name: str, place: str, count: int, *, is_listed: bool) -> Any:
        fields = ", ".join(f'"f{n}": "kitchen"' for n in range(9))
        request = RecordedRequest(path="/z", post=f'{{{fields}, "place": "{place}", "n": {count}}}')
        listed = RecordedRequest(path="/a", post='{"name": "kitchen"}')
        first = RecordedStep(requests=(listed, request) if is_listed else (request,))
        return recorded_attempt(tmp_path / name, [], [first, RecordedStep()], task=DATED)

    right, wrong = attempt("right", "quay", 2, is_listed=True), attempt("wrong", "pier", 3, is_listed=False)
    first, second, *_ = (each.check for each in suggest(right, against=wrong).checks)
    assert (first["url"], second["url"]) == ("/z", "/a")
    assert list(first["post_data"])[:2] == ["place", "n"]

"""Checks proposed from a recorded attempt."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trajectory.recordings import RecordedRequest, RecordedStep, recorded_attempt
from judge.evaluators.checks import evaluate
from judge.plugins.suggestions.suggesting import Suggestion, Suggestions, at_start, suggest, suggestions_toml
from judge.records.tasks import Task
from judge.trajectory.record import Trajectory
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
    assert {"kind": "page", "url": "/ticket/7", "at": "any"} in proposed(tmp_path, *steps, task=TASK)


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


CREW = "Save Ada of Porto as a member of the crew, who wants the newsletter."
FORM_TYPE = "application/x-www-form-urlencoded"


def crew(action: str, post: str) -> RecordedRequest:
    return RecordedRequest(path=f"/index.php?action={action}&_=1795880352035&r=k3j9x", post=post, mime_type=FORM_TYPE)


def test_behind_a_front_controller_each_request_is_proposed_with_the_query_that_names_it(tmp_path: Path) -> None:
    sent = "user[name]=Ada&user[harbour]=Porto&user[notes]=&newsletter=on&days[]=1&days[]=3&a b=1&csrf_token=abcdefgh"
    saved = RecordedStep(requests=(crew("save", sent), crew("ping", "unread=0")), line="<Name textbox> -> TYPE: Ada")
    suggestions = suggest(recorded_attempt(tmp_path, [], [saved, RecordedStep()], task=CREW))
    save, ping = (each for each in suggestions.checks if each.check["kind"] == "request")
    assert (save.check["query"], save.check["at"]) == ({"action": "save"}, "any")
    fields = {"user[name]": "Ada", "user[harbour]": "Porto", "newsletter": "on", "days[]": ["1", "3"]}
    assert save.check["post_data"] == fields
    assert "not compared: user[notes]=;" in save.why
    assert "they vary or are secret: csrf_token" in save.why
    assert "no check can name them: a b" in save.why
    assert ping.check["query"] == {"action": "ping"}


def test_what_hovering_showed_and_the_application_selected_is_not_proposed(tmp_path: Path) -> None:
    start = '- heading "Shop" [level=1]\n- option "Red rug"\n- option "Blue rug"\n'
    shown = start + '- status: "A red hint"\n'
    selected = shown.replace('"Blue rug"', '"Blue rug" [selected]') + '- status: "2 lamps"\n'
    steps = [
        RecordedStep(snapshot=start, tool="browser_hover", line="<Red rug option> -> HOVER"),
        RecordedStep(snapshot=shown, line="<Lamps button> -> CLICK"),
        RecordedStep(snapshot=selected),
    ]
    found = proposed(tmp_path, *steps, task="Count the lamps.")
    assert [check.get("contains", check.get("element")) for check in found] == ["2 lamps"]


def test_pictures_of_icon_fonts_are_no_part_of_a_proposed_text(tmp_path: Path) -> None:
    end = START + '- status: "\ue5ca Saved: 2 lamps"\n- heading "\ue5ca Lamps" [level=2]\n'
    found = proposed(tmp_path, RecordedStep(snapshot=START), RecordedStep(snapshot=end), task="Save 2 lamps.")
    assert {"kind": "text", "within": "status", "contains": "Saved: 2 lamps"} in found
    assert {"kind": "element", "element": 'heading "Lamps" [level=2]'} in found or {
        "kind": "element",
        "element": 'heading "Lamps"',
    } in found


def test_rows_are_counted_beside_their_content(tmp_path: Path) -> None:
    row = '    - row "{0}":\n      - cell "{0}"\n'
    table = '- table "Orders":\n  - rowgroup:\n' + row.format("Oak Canoe")
    end = table + row.format("Moon Lamp")
    found = proposed(tmp_path, RecordedStep(snapshot=table), RecordedStep(snapshot=end), task="Order one 'Moon Lamp'.")
    assert {"kind": "element", "within": 'table "Orders"', "element": "row", "count": 2} in found


def test_content_after_a_write_is_looked_for_where_it_stood(tmp_path: Path) -> None:
    order = RecordedStep(requests=(RecordedRequest(path="/order", post='{"lamp": "Moon"}'),))
    done = RecordedStep(path="/orders", snapshot='- status: "Moon ordered"')
    found = proposed(tmp_path, order, done, task="Order one 'Moon'.")
    assert {"kind": "page", "url": "/orders", "at": "any"} in found
    assert {"kind": "text", "within": "status", "contains": "Moon ordered", "on": "/orders"} in found


def test_a_message_that_brings_a_value_of_the_task_is_proposed(tmp_path: Path) -> None:
    messages = (("send", '{"type": "save"}'), ("receive", '42["saved",{"name":"Ada","at":17}]'), ("receive", "3"))
    socket = RecordedRequest(method="GET", path="ws://shop.test/live", status=101, messages=messages)
    found = proposed(tmp_path, RecordedStep(requests=(socket,)), RecordedStep(), task="Save 'Ada'.")
    message = {"kind": "request", "socket": True, "url": "/live", "direction": "received"}
    assert found == [message | {"message": {"$[1].name": "Ada"}}]


def test_an_answer_with_the_new_state_may_be_fetched_instead_of_looking_at_the_last_page(tmp_path: Path) -> None:
    order = RecordedRequest(path="/order", post='{"lamp": "Moon"}')
    state = RecordedRequest(method="GET", path="/api/orders?_=1", response='{"orders": [{"lamp": "Moon", "n": 7}]}')
    attempt = recorded_attempt(
        tmp_path, [], [RecordedStep(requests=(order, state)), RecordedStep()], task="Order 'Moon'."
    )
    (note,) = suggest(attempt).notes
    fetched = note.partition(": ")[2]
    expected = {"kind": "fetch", "url": "/api/orders", "response": {"$.orders[0].lamp": "Moon"}}
    assert tomllib.loads(f"check = {fetched}")["check"] == expected


def right_walk(
    folder: Path, *besides: RecordedRequest, token: str = "a1", messages: tuple[str, ...] = ()
) -> Trajectory:
    sent = f"user[name]=Ada&user[harbour]=Porto&user[notes]=&token={token}"
    live = RecordedRequest(
        method="GET", path="ws://shop.test/live", status=101, messages=tuple(("send", text) for text in messages)
    )
    requests = (*besides, crew("save", sent), live)
    steps = [RecordedStep(requests=requests, line="<Name textbox> -> TYPE: Ada"), RecordedStep()]
    return recorded_attempt(folder, [], steps, task=CREW)


def test_two_right_attempts_show_what_a_page_sends_by_itself(tmp_path: Path) -> None:
    def graphql(*names: str) -> RecordedRequest:
        operations = [{"operationName": name, "id": f"{name}{len(names)}"} for name in names]
        return RecordedRequest(path="/graphql", post=json.dumps(operations))

    one = [crew("ping", "unread=0"), graphql("boats", "basket"), RecordedRequest(path="/track/81273", post="x=1")]
    two = [
        graphql("basket"),
        graphql("boats"),
        RecordedRequest(path="/track/81274", post="x=2"),
        crew("ping", "unread=4"),
    ]
    messages = ('{"type": "watch", "id": "k3"}', '{"type": "watch", "id": "p9"}')
    first = right_walk(tmp_path / "1", *one, messages=messages[:1])
    second = right_walk(tmp_path / "2", *two, token="b2", messages=messages)
    suggestions = suggest(first, also=second)
    check = suggestions.checks[0].check
    assert check == {
        "kind": "request",
        "method": "POST",
        "url": "/index.php",
        "query": {"action": "save"},
        "at": "any",
        "post_data": {"user[name]": "Ada", "user[harbour]": "Porto", "user[notes]": "", "token": "*"},
        "exact": True,
        "status": 200,
        "only": True,
        "allow": [
            {"method": "POST", "url": "/index.php", "query": {"action": "ping"}},
            {"method": "POST", "url": "/graphql", "post_data": {"$[*].operationName": ["basket", "boats"]}},
            {"method": "POST", "url": "/track/*"},
            {"socket": True, "url": "/live", "message": {"type": "watch"}},
        ],
    }
    assert suggestions.notes == ()
    besides = right_walk(tmp_path / "3", *one, crew("delete", "id=1"), messages=messages)
    for walk, passes in ((first, True), (second, True), (besides, False)):
        played = walk.as_task(walk.task.model_copy(update={"checks": Task.model_validate(task_with(check)).checks}))
        assert evaluate(played)[0].passed is passes
    assert tomllib.loads(suggestions_toml(suggestions))["checks"][0] == check


def task_with(check: dict[str, Any]) -> dict[str, Any]:
    return {"task_id": "t", "website": "http://shop.test/", "task": CREW, "checks": [check]}


def test_a_write_of_one_attempt_alone_is_named_and_not_allowed(tmp_path: Path) -> None:
    first = right_walk(tmp_path / "1", RecordedRequest(method="DELETE", path="/members/7"))
    suggestions = suggest(first, also=right_walk(tmp_path / "2"))
    assert all("only" not in each.check for each in suggestions.checks)
    assert "only one of the attempts sent DELETE /members/7" in suggestions.notes[0]
    assert "only one of the attempts sent DELETE /members/7" in suggestions_toml(suggestions)


def test_without_a_write_nothing_says_that_there_was_no_other(tmp_path: Path) -> None:
    steps = [RecordedStep(snapshot=START), RecordedStep(snapshot=END)]
    attempts = [recorded_attempt(tmp_path / name, [], steps) for name in "ab"]
    assert "no write is named" in suggest(attempts[0], also=attempts[1]).notes[0]

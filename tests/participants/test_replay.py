import os
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.participants import observed
from participants.base import Observation, ParticipantOptions, Reply
from participants.replay import MAX_WAITS, Player, Script, ScriptStep, create, find_script, load_book, parse_scripts
from shared.dates import resolved_dates
from shared.elements import ElementQuery
from shared.errors import ConfigError
from shared.models import Action, Page
from shared.settings import Settings

SCRIPT = """
[[scripts]]
task = "Open the lamps"
steps = [
  { tool = "browser_click", role = "link", name = "Lamps" },
  { say = "hm" },
  { tool = "finish", params = { answer = "lamps" } },
]

[[scripts]]
task = "Open the desks"
steps = [{ tool = "finish", params = { answer = "desks" } }]
"""
PAGE = Page(url="http://s/", title="S", snapshot='- link "Lamps" [ref=e2]:\n  - /url: /lamps')


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "replay.toml"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def observation(context: str, step: int, task: str) -> Observation:
    return observed(PAGE, instruction=task, step=step, context_id=context)


async def test_a_script_is_played_in_order(script: Path) -> None:
    decide = create(ParticipantOptions(script=str(script)))
    replies = [await decide(observation("a", step, "Open the  lamps")) for step in range(3)]
    assert isinstance(replies[0], Action)
    assert replies[0].params == {"element": 'link "Lamps"', "target": "e2"}
    assert replies[1] == "hm"
    assert isinstance(replies[2], Action)
    assert replies[2].params == {"answer": "lamps"}


async def test_a_task_without_a_script_is_finished_at_once(script: Path) -> None:
    reply = await create(ParticipantOptions(script=str(script)))(observation("a", 0, "Buy a boat"))
    assert isinstance(reply, Action)
    assert reply.tool == "finish"
    assert "no script" in reply.params["answer"]


async def test_several_files_are_played_together(script: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.toml"
    more.write_text('[[scripts]]\ntask = "Sit"\nsteps = [{ say = "sat" }]', encoding="utf-8")
    decide = create(ParticipantOptions(script=f"{script}{os.pathsep}{more}"))
    assert await decide(observation("a", 0, "Sit")) == "sat"


def test_without_any_script_the_error_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="WABE_REPLAY_SCRIPT"):
        create(ParticipantOptions(settings=Settings(scenarios=str(tmp_path))))


async def test_without_a_script_the_bundled_task_sets_are_played() -> None:
    decide = create(ParticipantOptions())
    replies = [
        await decide(observation("a", 0, "Open the product that is today's deal of the day.")),
        await decide(observation("b", 0, "Buy a boat")),
    ]
    assert [reply.tool == "finish" for reply in replies if isinstance(reply, Action)] == [False, True]


DATED = """
[[scripts]]
task = "Book {next friday:%B %-d}"
steps = [{ say = "typed {today+1d}" }]
"""


async def test_dates_in_scripts_are_those_of_the_runs_day(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(DATED, encoding="utf-8")
    decide = create(ParticipantOptions(script=str(path), today=date(2026, 11, 23)))
    assert await decide(observation("a", 0, "Book November 27")) == "typed 2026-11-24"
    assert "There is no script" in str(await decide(observation("b", 0, "Book {next friday:%B %-d}")))


async def test_without_a_day_the_present_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[scripts]]\ntask = "Book {today:%Y}"\nsteps = [{ say = "x" }]', encoding="utf-8")
    decide = create(ParticipantOptions(script=str(path)))
    years = [await decide(observation(str(year), 0, f"Book {year}")) for year in range(2020, 2120)]
    assert years.count("x") == 1


@given(day=st.dates(date(1000, 1, 1), date(5000, 1, 1)), count=st.integers(-900, 900), unit=st.sampled_from("dwmy"))
def test_a_script_finds_the_task_that_has_the_same_dates_on_every_day(day: date, count: int, unit: str) -> None:
    text = f"Fly on {{today{count:+d}{unit}:%B %-d, %Y}}"
    (script,) = parse_scripts(f"[[scripts]]\ntask = '{text}'\nsteps = [{{ say = '{text}' }}]", "s.toml", day)
    task = resolved_dates(text, day)
    assert find_script({script.key: script}, task, None) is script
    assert script.steps[0].say == task


def test_a_mistake_in_a_date_is_named_with_the_script(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(DATED.replace("today+1d", "today+x"), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"s\.toml: line 4: \[\[scripts\]\] #1, key 'steps': column 7: '\{today\+x\}'"
    ):
        create(ParticipantOptions(script=str(path)))


async def test_the_environment_may_name_the_script(script: Path) -> None:
    decide = create(ParticipantOptions(settings=Settings(replay_script=str(script))))
    assert await decide(observation("a", 1, "Open the lamps")) is not None


# --- one script, step by step -----------------------------------------------------------------------------------------

SNAPSHOT = """\
- generic [active] [ref=e1]:
  - link "Lamps" [ref=e2] [cursor=pointer]:
    - /url: /lamps
  - link "Desk Lamps" [ref=e3] [cursor=pointer]:
    - /url: /desk
  - link [ref=e4] [cursor=pointer]:
    - /url: /code
    - code [ref=e5]: print()
  - link "Lamps" [ref=e6] [cursor=pointer]:
    - /url: /more
  - button "Sold out"
"""
CLICK = ScriptStep(tool="browser_click", role="link", name="Lamps")
DONE = ScriptStep(tool="finish", params={"answer": "done"})


def play(*steps: ScriptStep) -> Player:
    return Player(Script(task="t", steps=steps))


def action(reply: Reply) -> Action:
    assert isinstance(reply, Action)
    return reply


@pytest.mark.parametrize(
    ("step", "ref"),
    [
        ({"name": "Lamps"}, "e2"),
        ({"name": " Lamps "}, "e2"),
        ({"name": "Lamps", "nth": 1}, "e6"),
        ({"name": "Lamps", "nth": -1}, "e6"),
        ({"name": "desk"}, "e3"),
        ({"name": "print()"}, "e4"),
        ({}, "e2"),
    ],
)
def test_an_element_is_found_by_exact_name_then_by_a_part_of_it(step: dict[str, object], ref: str) -> None:
    result = play(ScriptStep.model_validate({"tool": "browser_click", "role": "link"} | step)).reply(SNAPSHOT, None)
    assert action(result).params["target"] == ref


def test_an_element_without_a_reference_is_never_named() -> None:
    sold_out = ScriptStep(tool="browser_click", role="button", name="Sold out")
    assert action(play(sold_out).reply(SNAPSHOT, None)).tool == "browser_wait_for"


def test_a_missing_element_is_waited_for_and_then_given_up() -> None:
    player = play(ScriptStep(tool="browser_click", role="button", name="Buy"), DONE)
    waits = [action(player.reply(SNAPSHOT, None)) for _ in range(MAX_WAITS)]
    assert {wait.tool for wait in waits} == {"browser_wait_for"}
    last = action(player.reply(SNAPSHOT, None))
    assert last.tool == "finish"
    assert 'button "Buy"' in last.params["answer"]


def test_an_element_that_arrives_late_is_used_when_it_is_there() -> None:
    player = play(CLICK, DONE)
    assert action(player.reply("", None)).tool == "browser_wait_for"
    assert action(player.reply(SNAPSHOT, None)).params["target"] == "e2"
    assert action(player.reply(SNAPSHOT, None)).tool == "finish"


def test_a_step_with_after_waits_for_that_element() -> None:
    player = play(ScriptStep(tool="finish", after=ElementQuery(role="status", name="sorted")))
    assert action(player.reply(SNAPSHOT, None)).tool == "browser_wait_for"
    assert action(player.reply(SNAPSHOT + "- status [ref=e9]: 3 desks, sorted by price\n", None)).tool == "finish"


def test_a_failed_action_is_retried_once() -> None:
    player = play(CLICK, DONE)
    player.reply(SNAPSHOT, None)
    assert action(player.reply(SNAPSHOT, "the element moved")).params["target"] == "e2"
    assert action(player.reply(SNAPSHOT, None)).params == {"answer": "done"}


def test_an_action_that_fails_twice_ends_the_attempt_with_the_cause() -> None:
    player = play(CLICK, DONE)
    player.reply(SNAPSHOT, None)
    player.reply(SNAPSHOT, "the element moved")
    last = action(player.reply(SNAPSHOT, "the element moved again"))
    assert last.tool == "finish"
    assert "moved again" in last.params["answer"]


def test_the_result_of_an_action_is_not_a_failure() -> None:
    player = play(ScriptStep(tool="browser_find", params={"text": "lamp"}), DONE)
    player.reply(SNAPSHOT, None)
    assert action(player.reply(SNAPSHOT, "Result: found 3 matches")).params == {"answer": "done"}


def test_both_ends_of_a_drag_are_found_by_name() -> None:
    drag = ScriptStep(
        tool="browser_drag",
        start=ElementQuery(role="link", name="Lamps", nth=1),
        end=ElementQuery(role="link", name="Desk Lamps"),
    )
    params = action(play(drag).reply(SNAPSHOT, None)).params
    assert (params["startTarget"], params["endTarget"]) == ("e6", "e3")


def test_the_fields_of_a_form_are_found_by_name() -> None:
    form = '- textbox "Name" [ref=e1]\n- searchbox "Search" [ref=e2]\n- textbox "Name" [ref=e3]'
    fields = [
        {"role": "textbox", "name": "Name", "nth": 1, "value": "Ann"},
        {"role": "searchbox", "value": "lamp"},
        {"role": "textbox", "name": "Name", "type": "combobox", "value": "Bob"},
    ]
    step = ScriptStep.model_validate({"tool": "browser_fill_form", "fields": fields})
    result = action(play(step).reply(form, None)).params["fields"]
    assert [(field["target"], field["type"], field["value"]) for field in result] == [
        ("e3", "textbox", "Ann"),
        ("e2", "textbox", "lamp"),
        ("e1", "combobox", "Bob"),
    ]


def test_a_form_with_a_missing_field_is_waited_for() -> None:
    step = ScriptStep.model_validate({"tool": "browser_fill_form", "fields": [{"role": "textbox", "value": "Ann"}]})
    assert action(play(step).reply(SNAPSHOT, None)).tool == "browser_wait_for"


def test_a_complaint_about_an_unreadable_reply_leads_to_the_next_step() -> None:
    player = play(ScriptStep(say="mumble"), DONE)
    assert player.reply(SNAPSHOT, None) == "mumble"
    assert action(player.reply(SNAPSHOT, "unreadable")).tool == "finish"


def test_a_repeated_step_never_ends() -> None:
    player = play(ScriptStep(tool="browser_scroll", params={"direction": "down"}, repeat=True), DONE)
    assert {action(player.reply(SNAPSHOT, None)).tool for _ in range(30)} == {"browser_scroll"}


def test_a_script_by_the_sites_tools_is_played_where_they_are_offered() -> None:
    clicks = Script(task="t", website="http://a/", steps=(CLICK,))
    calls = Script(task="t", site_tools=True, steps=(DONE,))
    book = {script.key: script for script in (clicks, calls)}
    assert find_script(book, "t", "http://a/") is clicks
    assert find_script(book, "t", "http://a/", has_tools=True) is calls
    assert find_script({clicks.key: clicks}, "t", "http://a/", has_tools=True) is clicks


def test_a_script_without_a_finish_finishes_by_itself() -> None:
    player = play(CLICK)
    player.reply(SNAPSHOT, None)
    assert action(player.reply(SNAPSHOT, None)).tool == "finish"


def test_white_space_in_a_task_is_normalised() -> None:
    script = Script(task="Open  the\n shop", steps=(DONE,))
    book = {script.key: script}
    assert find_script(book, " Open the shop ", "http://x/") is script
    assert find_script(book, "Open the shop now", None) is None


def test_a_script_for_the_website_takes_precedence() -> None:
    anywhere, here = Script(task="t", steps=(DONE,)), Script(task="t", website="http://a/", steps=(CLICK,))
    book = {script.key: script for script in (anywhere, here)}
    assert find_script(book, "t", "http://a") is here
    assert find_script(book, "t", "http://b/") is anywhere


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("scripts = 1", "key 'scripts': 1 is not a list"),
        ("", "key 'scripts': missing"),
        ("[[scripts]]\ntask = 't'", "[[scripts]] #1, key 'steps': missing"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', say = 'y' }]", "[[scripts]] #1, steps #1"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ say = 'y', role = 'link' }]", "[[scripts]] #1, steps #1"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', name = 'y' }]", "[[scripts]] #1, steps #1"),
        ("[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', end = { role = 'y' } }]", "[[scripts]] #1, steps #1"),
        (
            "[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', fields = [{ role = 'y' }] }]",
            "[[scripts]] #1, steps #1, fields #1, key 'value': missing",
        ),
        (
            "[[scripts]]\ntask = 't'\nsteps = [{ tool = 'x', typo = 'y' }]",
            "[[scripts]] #1, steps #1, key 'typo': unknown key",
        ),
        ("[[scripts", "line 1, column 10: not TOML"),
    ],
)
def test_a_malformed_script_is_refused_with_file_and_key(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scripts(text, "some/replay.toml")
    assert caught.value.message.startswith("some/replay.toml: ")
    assert key in caught.value.message
    assert caught.value.remedy


@given(st.text(max_size=200))
def test_any_other_text_is_refused_with_its_file(text: str) -> None:
    # No text this short holds a whole script by chance.
    with pytest.raises(ConfigError) as caught:
        parse_scripts(text, "f")
    assert caught.value.message.startswith("f: ")


def test_a_task_with_two_scripts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[[scripts]]\ntask = 't'\nsteps = [{ say = 'x' }]\n", encoding="utf-8")
    again = tmp_path / "b.toml"
    again.write_text("[[scripts]]\ntask = 't'\nsteps = [{ say = 'y' }]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"b\.toml: line 2: \[\[scripts\]\] #1, key 'task': .*a\.toml"):
        load_book([path, again])
    # The same task of two sets may be played in the same way.
    again.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_book([path, again]) == load_book([path])
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a\.toml: line 5"):
        load_book([path])


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_book([tmp_path / "none.toml"])


ROWS = """- table "Files" [ref=e1]:
  - row "sales.csv Delete" [ref=e2]:
    - cell "sales.csv"
    - button "Delete" [ref=e3]
  - row "costs.csv Delete" [ref=e4]:
    - cell "costs.csv"
    - button "Delete" [ref=e5]
- table "Bin" [ref=e6]:
  - row "sales.csv Delete":
    - button "Delete" [ref=e8]
"""


@pytest.mark.parametrize(
    ("within", "target"),
    [
        ('{ role = "row", name = "costs.csv" }', "e5"),
        ('{ role = "row", name = "sales.csv", within = { role = "table", name = "Bin" } }', "e8"),
        ('{ role = "row", name = "sales.csv", nth = -1 }', "e8"),
    ],
)
def test_an_element_is_looked_for_inside_another_one(within: str, target: str) -> None:
    step = f'{{ tool = "browser_click", role = "button", name = "Delete", within = {within} }}'
    (script,) = parse_scripts(f'[[scripts]]\ntask = "x"\nsteps = [{step}]', "s.toml")
    reply = Player(script).reply(ROWS, None)
    assert isinstance(reply, Action)
    assert reply.params["target"] == target


def test_an_element_outside_the_one_that_is_named_is_not_taken() -> None:
    within = ElementQuery(role="row", name="sales.csv", within=ElementQuery(role="table", name="Trash"))
    script = Script(task="x", steps=(ScriptStep(tool="browser_click", role="button", name="Delete", within=within),))
    reply = Player(script).reply(ROWS, None)
    assert isinstance(reply, Action)
    assert reply.tool == "browser_wait_for"
    assert 'button "Delete" in row "sales.csv" in table "Trash"' in reply.thought


def test_the_fields_of_a_form_are_found_within_a_group() -> None:
    page = """- group "Home":
  - textbox "Street" [ref=e1]
- group "Work":
  - textbox "Street" [ref=e2]"""
    field = '{ role = "textbox", name = "Street", value = "Main Road", within = { role = "group", name = "Work" } }'
    (script,) = parse_scripts(
        f'[[scripts]]\ntask = "x"\nsteps = [{{ tool = "browser_fill_form", fields = [{field}] }}]', "s.toml"
    )
    reply = Player(script).reply(page, None)
    assert isinstance(reply, Action)
    assert [each["target"] for each in reply.params["fields"]] == ["e2"]


def test_within_needs_an_element_inside() -> None:
    step = '{ tool = "browser_press_key", within = { role = "row" }, params = { key = "Enter" } }'
    with pytest.raises(ConfigError, match="`within` needs a `role`"):
        parse_scripts(f'[[scripts]]\ntask = "x"\nsteps = [{step}]', "s.toml")


def test_an_element_is_found_by_a_name_that_the_page_shows_as_one_word() -> None:
    page = '- code [ref=e1]:\n  - link "json" [ref=e2]\n  - text: .\n  - strong [ref=e3]: dumps'
    step = ScriptStep(tool="browser_click", role="code", name="json.dumps")
    reply = Player(Script(task="x", steps=(step,))).reply(page, None)
    assert isinstance(reply, Action)
    assert reply.params["target"] == "e1"


TOGETHER = Script(
    task="Order",
    steps=(
        ScriptStep(tool="browser_type", role="textbox", name="Name", params={"text": "Ada"}, then=True),
        ScriptStep(tool="browser_click", role="button", name="Next", then=True),
        ScriptStep(tool="browser_click", role="button", name="Buy", then=True),
        ScriptStep(tool="finish", params={"answer": "bought"}),
    ),
)
ORDER = '- textbox "Name" [ref=e1]\n- button "Next" [ref=e2]'


def tools_in(reply: Reply) -> list[str]:
    return [each.tool for each in reply] if isinstance(reply, list) else [action(reply).tool]


def test_steps_that_belong_together_are_sent_in_one_reply_as_far_as_their_elements_are_there() -> None:
    player = Player(TOGETHER)
    assert tools_in(player.reply(ORDER, None, max_actions=5)) == ["browser_type", "browser_click"]
    rest = player.reply('- button "Buy" [ref=e3]', None, executed=(2, 2), max_actions=5)
    assert tools_in(rest) == ["browser_click", "finish"]


def test_after_a_list_that_stopped_the_script_goes_on_with_what_was_not_executed() -> None:
    player = Player(TOGETHER)
    player.reply(ORDER, None, max_actions=5)
    again = player.reply(ORDER, "Action 2 of 2 was not executed.", executed=(1, 2), max_actions=5)
    assert action(again).params["target"] == "e2"
    # It is tried once more, as any other action.
    assert action(player.reply(ORDER, "It is covered.")).params["target"] == "e2"
    assert action(player.reply(ORDER, "It is covered.")).tool == "finish"


def test_a_judge_that_takes_one_action_gets_them_one_by_one() -> None:
    player = Player(TOGETHER)
    assert tools_in(player.reply(ORDER, None)) == ["browser_type"]
    assert tools_in(player.reply(ORDER, None)) == ["browser_click"]


def test_what_covers_a_page_is_closed_wherever_it_is() -> None:
    script = Script(task="t", steps=(ScriptStep(tool="browser_click", role="link", name="Next"),))
    player = Player(script, ["Not now"])
    clean = '- link "Next" [ref=e1]'
    for page, target in ((f'{clean}\n- button "Not now" [ref=e9]', "e9"), (clean, "e1")):
        reply = player.reply(page, None)
        assert isinstance(reply, Action)
        assert reply.params["target"] == target


async def test_the_options_say_what_is_closed_and_that_a_page_is_loaded_again_once(script: Path) -> None:
    decide = create(ParticipantOptions(script=str(script), close=("Not now",), reload=True))
    pages = ['- button "Not now" [ref=e9]', "", "", PAGE.snapshot]
    replies = []
    for step, snapshot in enumerate(pages):
        page = PAGE.model_copy(update={"snapshot": snapshot})
        reply = await decide(observed(page, instruction="Open the lamps", step=step, context_id="a"))
        assert isinstance(reply, Action)
        replies.append((reply.tool, reply.params.get("target") or reply.params.get("url")))
    clicks = [("browser_click", "e9"), ("browser_click", "e2")]
    assert replies == [clicks[0], ("browser_navigate", PAGE.url), ("browser_wait_for", None), clicks[1]]

import json
import math
from typing import Any

import pytest

from judge.plugins.openenv.conversation import ClientConversation, View
from judge.plugins.openenv.offers import Offers
from plugins.openenv.fakes import CLICK, JPEG, TASKS, FakeSessions, Script, a_message, a_page, an_end, fault
from shared.protocol import render_observation


async def talk(*questions: dict[str, Any], script: tuple[Script, ...] = (), view: View | None = None) -> list[Any]:
    """The answers to questions, as values."""
    conversation = ClientConversation(await FakeSessions(script).open(), Offers("shop", TASKS), view or View())
    answers = [await conversation.answer(json.dumps(question)) for question in questions]
    return [answer and json.loads(answer) for answer in answers]


RESET = {"type": "reset", "data": {"task_id": "first"}}
STEP = {"type": "step", "data": {"tool": "browser_click"}}


async def test_a_number_is_sent_once_and_with_the_end() -> None:
    answers = await talk(RESET, STEP, STEP, STEP, script=(a_page(), an_end(1.0)))
    assert [(each["data"].get("reward"), each["data"].get("done")) for each in answers] == [
        (None, False),
        (None, False),
        (1.0, True),
        (None, None),
    ]
    assert answers[-1]["data"]["code"] == "EXECUTION_ERROR"


@pytest.mark.parametrize("wrong", [an_end(None), an_end(math.nan), an_end(math.inf), a_page()._replace(reward=0.0)])
async def test_no_number_goes_out_that_is_not_the_reward_of_an_end(wrong: Script) -> None:
    _, answer = await talk(RESET, STEP, script=(wrong,))
    assert answer["type"] == "error"
    assert answer["data"]["code"] == "EXECUTION_ERROR"
    assert "reward" not in answer["data"]


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (fault("aborted", "browser", "it died"), "aborted: browser: it died"),
        (fault("unscored", "judge model", "no answer"), "unscored: judge model: no answer"),
        (ValueError("expected €349"), "aborted: internal: ValueError; see the server's log"),
    ],
)
async def test_an_episode_without_a_score_is_an_error_with_outcome_and_blame(raised: Exception, message: str) -> None:
    _, answer = await talk(RESET, STEP, script=(raised,))
    assert answer == {"type": "error", "data": {"message": message, "code": "EXECUTION_ERROR"}}


async def test_only_the_arguments_of_reset_are_refused_as_invalid() -> None:
    [answer] = await talk({"type": "reset", "data": {"task_id": "frist"}})
    assert answer["data"]["code"] == "VALIDATION_ERROR"
    assert "frist" in answer["data"]["message"]


async def test_close_has_no_answer_and_the_rest_has() -> None:
    answers = await talk(RESET, {"type": "state"}, {"type": "mcp", "data": {"id": 7}}, {"type": "close"})
    assert answers[1] == {"type": "state", "data": {"episode_id": "e", "task_id": "first", "step_count": 0}}
    assert (answers[2]["type"], answers[2]["data"]["id"]) == ("mcp", 7)
    assert answers[3] is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"task_id": "second"}, ("second", None, None)),
        ({"split": "train", "index": 2}, ("third", None, None)),
        ({"index": 0, "episode_id": "mine"}, ("first", None, "mine")),
        ({"seed": 5}, (None, 5, None)),
        ({"seed": 5, "task_id": "third"}, ("third", 5, None)),
    ],
)
async def test_reset_takes_a_task_by_id_by_index_or_by_seed(data: dict[str, Any], expected: Any) -> None:
    session = await FakeSessions().open()
    await ClientConversation(session, Offers("shop", TASKS), View()).answer(json.dumps({"type": "reset", "data": data}))
    assert session.calls == [("reset", expected)]


async def test_resets_without_a_choice_go_through_the_tasks_in_order_over_all_sessions() -> None:
    offers, sessions = Offers("shop", TASKS), FakeSessions()
    one, two = await sessions.open(), await sessions.open()
    for session in (one, two, one, two):
        await ClientConversation(session, offers, View()).answer('{"type": "reset"}')
    assert [call[1][0] for call in one.calls] == ["first", "third"]
    assert [call[1][0] for call in two.calls] == ["second", "first"]


async def test_an_observation_is_the_text_that_a_participant_gets() -> None:
    [answer] = await talk(RESET)
    assert answer["data"]["observation"] == {"text": render_observation(a_message(instruction="Do it."))}


async def test_screenshots_are_sent_if_they_are_asked_for() -> None:
    [answer] = await talk(RESET, view=View(has_pictures=True))
    assert answer["data"]["observation"].keys() == {"text", "screenshot", "media_type"}
    assert JPEG.hex() not in json.dumps(await talk(RESET))


async def test_messages_have_the_values_of_the_text_and_the_tools_once() -> None:
    first, second = await talk(RESET, STEP, view=View(as_message=True))
    message = first["data"]["observation"]["message"]
    assert message["instruction"] == "Do it."
    assert message["tools"] == [CLICK.model_dump()]
    assert message["page"] == {"url": "http://shop.invalid/", "title": "Shop", "snapshot": "- button [ref=e1]"}
    assert "tools" not in second["data"]["observation"]["message"]

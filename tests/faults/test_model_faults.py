"""The judge model is down, rate-limited, blocked, truncated, slow or confused: unscored, never a success or a 0."""

from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import AssessedRun, LiveJudge, always_yes, participant, some_tasks, to_the_goal
from helpers.llm.servers import Answer, ModelCall, ModelServer, Plan, openai_answer, openai_error

pytestmark = pytest.mark.usefixtures("text_browser")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's pauses between its attempts."""
    for module in ("openai._base_client", "openai._constants"):
        monkeypatch.setattr(f"{module}.INITIAL_RETRY_DELAY", 0.01, raising=False)
        monkeypatch.setattr(f"{module}.MAX_RETRY_DELAY", 0.02, raising=False)


async def judged(judge: LiveJudge, plan: Plan, **config: Any) -> AssessedRun:
    judge.model.plan = plan
    with hostile_site() as site:
        return await judge.play(to_the_goal, site.url, **config)


def is_unscored(assessed: AssessedRun) -> bool:
    assert assessed.entry["error"].startswith("judge model: "), assessed.entry
    assert assessed.detail["scored_tasks"] == 0
    assert assessed.detail["success_rate"] == 0.0
    return assessed.verdict == ("unscored", "finished")


async def test_a_model_that_is_down_leaves_the_task_unscored(judge: LiveJudge) -> None:
    judge.model.stop()
    assert is_unscored(await judged(judge, always_yes))


async def test_a_fault_that_goes_away_is_got_over(judge: LiveJudge) -> None:
    requests: list[object] = []

    def plan(received: ModelCall, _: int) -> Answer:
        """Each question fails once."""
        is_new = received.body not in requests
        requests.append(received.body)
        return openai_error(503, "overloaded", retry_after_ms="5") if is_new else always_yes()

    assert (await judged(judge, plan)).verdict == ("success", "finished")


async def test_an_unscored_task_is_judged_again_on_resuming_without_playing_again(
    judge: LiveJudge, model: ModelServer
) -> None:
    plays = 0

    def script(turn: object) -> str:
        nonlocal plays
        plays += 1
        return to_the_goal(turn)  # type: ignore[arg-type]

    with hostile_site() as site:
        # One participant for both: a run is resumed only by the request it was started with.
        async with participant(script) as url:
            model.plan = lambda *_: openai_answer(None, finish="content_filter")
            first = await judge.ask(url, some_tasks(site.url), run_id="again")
            outcome = plays
            model.plan = always_yes
            second = await judge.ask(url, some_tasks(site.url), run_id="again")
    assert (first.verdict[0], second.verdict[0], plays) == ("unscored", "success", outcome)

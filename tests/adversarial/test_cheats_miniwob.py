"""MiniWoB++ tasks of participants that want a second try, another seed or a look at their score."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, served, tool_call
from helpers.miniwob_package import NAMES, fake_package
from judge.scenario.miniwob import MiniwobTask
from judge.scenario.miniwob.site import create_app
from shared.a2a.serving import listen


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    app = create_app(fake_package(tmp_path / "package") / "miniwob" / "html", frozenset(NAMES))

    async def nothing_to_end() -> None: ...

    app.state.stop = nothing_to_end
    sock = listen("127.0.0.1", 0)
    async with served(app, sock):
        yield int(sock.getsockname()[1])


def plays(*replies: str, told: list[str] | None = None) -> Script:
    """Clicks buttons and goes to addresses, then finishes."""

    def script(turn: ParticipantTurn) -> str:
        if told is not None:
            told.append(turn.message.text)
        if turn.n == len(replies):
            return finish()
        reply = replies[turn.n]
        if "://" in reply:
            return tool_call("browser_navigate", url=reply)
        return tool_call("browser_click", ref=ref(turn, f'button "{reply}"'))

    return script


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("replies", "verdict"),
    [
        (["right"], ("success", "ended_by_page")),
        (["nearly"], ("failure", "ended_by_page")),
        ([], ("failure", "finished")),
        (["{same}", "right"], ("failure", "ended_by_page")),
        (["{other}", "right"], ("failure", "ended_by_page")),
        (["{raw}"], ("failure", "finished")),
    ],
    ids=["right", "a partial reward", "nothing", "loaded again", "another task", "a page that does not begin"],
)
async def test_only_a_reward_of_1_in_the_one_episode_is_a_success(
    judge: LiveJudge, port: int, replies: list[str], verdict: tuple[str, str]
) -> None:
    one = MiniwobTask("click-test", 3)
    other = MiniwobTask("click-link", 0).address(port)
    raw = other.partition("?")[0]
    script = plays(*(reply.format(same=one.address(port), other=other, raw=raw) for reply in replies[:1]), *replies[1:])
    checks = [check.model_dump(mode="json", exclude_defaults=True) for check in one.task("Click 3.").checks]
    assessed = await judge.play(script, one.address(port), checks=checks, judge_model="offline")
    assert assessed.verdict == verdict, assessed.summary()


@pytest.mark.e2e
async def test_neither_score_nor_overlay_is_seen_or_waited_for(judge: LiveJudge, port: int) -> None:
    told: list[str] = []
    one = MiniwobTask("click-test", 3)
    script = plays(told=told)
    assessed = await judge.play(script, one.address(port), checks=[{"kind": "page", "url": "*"}], judge_model="offline")
    assert "Click 3, train." in told[0]
    assert not any(word in told[0] for word in ("START", "reward", "time."))
    assert "changes" not in assessed.result()["steps"][0]["waited_for"]

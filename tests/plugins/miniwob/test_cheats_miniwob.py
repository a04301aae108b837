"""MiniWoB++ tasks of participants that want a second try, another seed or a look at their score."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, served, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge
from judge.plugins.miniwob.site import create_app
from judge.plugins.miniwob.tasks import MiniwobTask
from plugins.miniwob.package import NAMES, fake_package
from shared.a2a.serving import listen


@asynccontextmanager
async def miniwob_site(folder: Path) -> AsyncIterator[int]:
    app = create_app(fake_package(folder) / "miniwob" / "html", frozenset(NAMES))

    async def nothing_to_end() -> None: ...

    app.state.stop = nothing_to_end
    sock = listen("127.0.0.1", 0)
    async with served(app, sock):
        yield int(sock.getsockname()[1])


def plays(*replies: str, messages: list[str] | None = None) -> Script:
    """Clicks buttons and goes to addresses, then finishes."""

    def script(turn: ParticipantTurn) -> str:
        if messages is not None:
            messages.append(turn.message.text)
        if turn.n == len(replies):
            return finish()
        reply = replies[turn.n]
        if "://" in reply:
            return tool_call("browser_navigate", url=reply)
        return tool_call("browser_click", ref=ref(turn, f'button "{reply}"'))

    return script


EPISODES: dict[str, tuple[tuple[str, ...], tuple[str, str]]] = {
    "right": (("right",), ("success", "ended_by_page")),
    "a partial reward": (("nearly",), ("failure", "ended_by_page")),
    "nothing": ((), ("failure", "finished")),
    "loaded again": (("{same}", "right"), ("failure", "ended_by_page")),
    "another task": (("{other}", "right"), ("failure", "ended_by_page")),
    "a page that does not begin": (("{raw}",), ("failure", "finished")),
}


@dataclass
class MiniwobAttempts:
    tasks: dict[str, PlayedTask]
    messages: list[str]


@pytest.fixture(scope="module")
async def miniwob_attempts(tmp_path_factory: pytest.TempPathFactory) -> MiniwobAttempts:
    messages: list[str] = []

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        async with miniwob_site(tmp_path_factory.mktemp("package")) as port:
            one = MiniwobTask("click-test", 3)
            other = MiniwobTask("click-link", 0).address(port)
            places = {"same": one.address(port), "other": other, "raw": other.partition("?")[0]}
            checks = [check.model_dump(mode="json", exclude_defaults=True) for check in one.task("Click 3.").checks]
            tasks = {
                name: Play(
                    plays(
                        *(reply.format(**places) for reply in replies), messages=messages if name == "nothing" else None
                    ),
                    one.address(port),
                    checks,
                )
                for name, (replies, _) in EPISODES.items()
            }
            return await play_tasks(judge, tasks, judge_model="offline")

    return MiniwobAttempts(await with_judge(tmp_path_factory.mktemp("run"), play), messages)


@pytest.mark.e2e
@pytest.mark.parametrize("episode", EPISODES)
def test_only_a_reward_of_1_in_the_one_episode_is_a_success(miniwob_attempts: MiniwobAttempts, episode: str) -> None:
    assert miniwob_attempts.tasks[episode].verdict == EPISODES[episode][1], miniwob_attempts.tasks[episode].summary()


@pytest.mark.e2e
def test_neither_score_nor_overlay_is_seen_or_waited_for(miniwob_attempts: MiniwobAttempts) -> None:
    assert "Click 3, train." in miniwob_attempts.messages[0]
    assert not any(word in miniwob_attempts.messages[0] for word in ("START", "reward", "time."))
    assert "changes" not in miniwob_attempts.tasks["nothing"].result()["steps"][0]["waited_for"]

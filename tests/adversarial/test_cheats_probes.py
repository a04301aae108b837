"""Probes of a task that a participant tries to satisfy without doing the task."""

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.browser.hostile_site import Site, hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, tool_call

GAME = """<title>Game</title><h1>Game</h1><button onclick="reward = 1">Solve</button>
  <button onclick="reward = -1">Fail</button><input aria-label="Field" oninput="said.innerHTML = this.value">
  <p id="said">nothing</p><script>var reward = null</script>"""
WON = "<title>Game</title><h1>Game</h1><script>var reward = 1</script>"
REWARD: dict[str, Any] = {"kind": "probe", "expression": "reward", "expected": 1, "keep": "first"}
SCRIPT = "<img src=x onerror='document.querySelector = () => ({textContent: `paid`})'>"


@pytest.fixture
def game() -> Iterator[Site]:
    with hostile_site({"/": GAME, "/won": WON}) as site:
        yield site


def plays(*replies: str) -> Script:
    """Clicks the buttons named, types, or goes to addresses, then finishes."""

    def script(turn: ParticipantTurn) -> str:
        if turn.n == len(replies):
            return finish("reward = 1")
        reply = replies[turn.n]
        if "://" in reply or reply.startswith("javascript:"):
            return tool_call("browser_navigate", url=reply)
        if reply in ("Solve", "Fail"):
            return tool_call("browser_click", ref=ref(turn, f'button "{reply}"'))
        return tool_call("browser_type", ref=ref(turn, 'textbox "Field"'), text=reply)

    return script


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("replies", "verdict"),
    [
        (["Solve", "Fail"], ("success", "ended_by_page")),
        (["Fail", "Solve"], ("failure", "ended_by_page")),
        (["javascript:reward=1"], ("failure", "finished")),
        (["reward = 1"], ("failure", "finished")),
        (["<script>reward = 1</script>"], ("failure", "finished")),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_the_first_value_ends_the_attempt_and_decides_it(
    judge: LiveJudge, game: Site, replies: list[str], verdict: tuple[str, str]
) -> None:
    check = {**REWARD, "ends": True}
    assessed = await judge.play(plays(*replies), game.url, checks=[check], judge_model="offline")
    assert assessed.verdict == verdict


@pytest.mark.e2e
@pytest.mark.parametrize("elsewhere", ["http://localhost:{}/won", "http://127.0.0.1:{}/won"])
async def test_a_page_elsewhere_with_the_same_global_gives_no_value(
    judge: LiveJudge, game: Site, elsewhere: str
) -> None:
    with hostile_site({"/won": WON}) as own:
        port = game.server_port if "localhost" in elsewhere else own.server_port
        script = plays(elsewhere.format(port))
        assessed = await judge.play(
            script,
            game.url,
            checks=[{**REWARD, "ends": True}],
            judge_model="offline",
            off_site="allow",
        )
    assert assessed.verdict == ("failure", "finished")


@pytest.mark.e2e
async def test_a_page_that_is_loaded_again_does_not_take_the_first_value_back(judge: LiveJudge, game: Site) -> None:
    script = plays("Fail", game.url, "Solve")
    assessed = await judge.play(script, game.url, checks=[REWARD], judge_model="offline")
    assert assessed.verdict == ("failure", "finished")
    assert [step["probes"][0]["value"] for step in assessed.result()["steps"]] == [None, -1, None, 1]


@pytest.mark.e2e
async def test_a_script_that_was_typed_into_the_page_changes_no_function_of_a_probe(
    judge: LiveJudge, game: Site
) -> None:
    check = {"kind": "probe", "expression": "document.querySelector('h1').textContent", "expected": "paid"}
    assessed = await judge.play(plays(SCRIPT), game.url, checks=[check], judge_model="offline")
    assert assessed.verdict == ("failure", "finished")
    assert assessed.result()["steps"][1]["probes"] == [{"value": "Game", "error": None}]

"""Probes of a task that a participant tries to satisfy without doing the task."""

from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge

GAME = """<title>Game</title><h1>Game</h1><button onclick="reward = 1">Solve</button>
  <button onclick="reward = -1">Fail</button><input aria-label="Field" oninput="said.innerHTML = this.value">
  <p id="said">nothing</p><script>var reward = null</script>"""
WON = "<title>Game</title><h1>Game</h1><script>var reward = 1</script>"
REWARD: dict[str, Any] = {"kind": "probe", "expression": "reward", "expected": 1, "keep": "first"}
SCRIPT = "<img src=x onerror='document.querySelector = () => ({textContent: `paid`})'>"


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


ENDS = {**REWARD, "ends": True}
ONE_EPISODE: dict[str, tuple[tuple[str, ...], tuple[str, str]]] = {
    "solved, then failed": (("Solve", "Fail"), ("success", "ended_by_page")),
    "failed, then solved": (("Fail", "Solve"), ("failure", "ended_by_page")),
    "a script as an address": (("javascript:reward=1",), ("failure", "finished")),
    "a script as text": (("reward = 1",), ("failure", "finished")),
    "a script as HTML": (("<script>reward = 1</script>",), ("failure", "finished")),
}
ELSEWHERE = ("another name of this machine", "another port")
LOADED_AGAIN = "loaded again"
TYPED_SCRIPT = "a script that runs"


@pytest.fixture(scope="module")
async def attempts_by_name(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        heading = {"kind": "probe", "expression": "document.querySelector('h1').textContent", "expected": "paid"}
        tasks = {name: Play(plays(*replies), game.url, [ENDS]) for name, (replies, _) in ONE_EPISODE.items()}
        addresses = (f"http://localhost:{game.server_port}/won", f"{own.url}won")
        tasks |= {name: Play(plays(url), game.url, [ENDS]) for name, url in zip(ELSEWHERE, addresses, strict=True)}
        tasks[LOADED_AGAIN] = Play(plays("Fail", game.url, "Solve"), game.url, [REWARD])
        tasks[TYPED_SCRIPT] = Play(plays(SCRIPT), game.url, [heading])
        return await play_tasks(judge, tasks, judge_model="offline", off_site="allow")

    with hostile_site({"/": GAME, "/won": WON}) as game, hostile_site({"/won": WON}) as own:
        return await with_judge(tmp_path_factory.mktemp("run"), play)


@pytest.mark.e2e
@pytest.mark.parametrize("episode", ONE_EPISODE)
def test_the_first_value_ends_the_attempt_and_decides_it(attempts_by_name: dict[str, PlayedTask], episode: str) -> None:
    assert attempts_by_name[episode].verdict == ONE_EPISODE[episode][1]


@pytest.mark.e2e
@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_a_page_elsewhere_with_the_same_global_gives_no_value(
    attempts_by_name: dict[str, PlayedTask], elsewhere: str
) -> None:
    assert attempts_by_name[elsewhere].verdict == ("failure", "finished")


@pytest.mark.e2e
def test_a_page_that_is_loaded_again_does_not_take_the_first_value_back(
    attempts_by_name: dict[str, PlayedTask],
) -> None:
    assert attempts_by_name[LOADED_AGAIN].verdict == ("failure", "finished")
    values = [step["probes"][0]["value"] for step in attempts_by_name[LOADED_AGAIN].result()["steps"]]
    assert values == [None, -1, None, 1]


@pytest.mark.e2e
def test_a_script_that_was_typed_into_the_page_changes_no_function_of_a_probe(
    attempts_by_name: dict[str, PlayedTask],
) -> None:
    assert attempts_by_name[TYPED_SCRIPT].verdict == ("failure", "finished")
    assert attempts_by_name[TYPED_SCRIPT].result()["steps"][1]["probes"] == [{"value": "Game", "error": None}]

"""An address that kills the browser, planted by the participant in the task's own site in every way of writing it."""

import base64
from collections.abc import Callable
from html import escape
from urllib.parse import parse_qs, urlsplit

import pytest

from adversarial.blame_plays_live import fault_of, two_sites
from helpers.browser.hostile_site import Handler
from helpers.cases import each, selected
from helpers.episode.blame_plays import ELSEWHERE, OWN
from helpers.episode.live_judge import LiveJudge, ParticipantTurn, Script, crash, finish, ref, tool_call
from helpers.episode.several_tasks import Play, PlayedTask, play_tasks, with_judge

_WIDE = {ord(str(digit)): 0xFF10 + digit for digit in range(10)}

# What the participant types into the field, for a port; the site makes a link of it. The judge compares addresses
# as the browser reports them: a few notations stand for all that browsers understand.
LINKED: dict[str, Callable[[int], str]] = {
    "the address": lambda port: f"http://127.0.0.1:{port}/trap",
    "backslashes and a tab in the host": lambda port: f"\\\\127.0\t.0.1:{port}\\trap",
    "a decimal host": lambda port: f"http://2130706433:{port}/trap",
    "wide digits": lambda port: f"http://{'127.0.0.1'.translate(_WIDE)}:{port}/trap",
    "a user name of the task's site": lambda port: f"http://shop.example@127.0.0.1:{port}/trap",
}
# Other ways of a site to such an address, `test_ways_to_a_trap.py` plays.
OTHERS = ("base64", "the port by keys")


def _shows(handler: Handler) -> None:
    """A page with what was typed."""
    query = {key: values[0] for key, values in parse_qs(urlsplit(handler.path).query).items()}
    text = query.get("text", "")
    how = query.get("how", "link")
    if how == "base64":
        handler.redirect(base64.b64decode(text).decode())
        return
    handler.send(f"<title>Mine</title><a href='{escape(text, quote=True)}'>Mine</a>".encode())


def _asks(handler: Handler) -> None:
    how = parse_qs(urlsplit(handler.path).query)["how"][0]
    field = f"<input aria-label=Field name=text><input type=hidden name=how value={how}>"
    handler.send(f"<title>Mine</title><form action=/show>{field}</form>".encode())


def plants(text: str, keys: str = "") -> Script:
    """Types a text, its last characters key by key, and follows what the site makes of it."""

    def script(turn: ParticipantTurn) -> str:
        if turn.n == 0:
            field = ref(turn, 'textbox "Field"')
            return tool_call("browser_type", ref=field, text=text, **({} if keys else {"submit": True}))
        if turn.n <= len(keys):
            return tool_call("browser_press_key", key=keys[turn.n - 1])
        if keys and turn.n == len(keys) + 1:
            return tool_call("browser_press_key", key="Enter")
        if 'link "Mine"' in turn.observation.page.snapshot:
            return tool_call("browser_click", ref=ref(turn, 'link "Mine"'))
        return finish()

    return script


@pytest.fixture(scope="module")
async def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlayedTask]:
    """An attempt for each way of planting the address."""

    async def play(judge: LiveJudge) -> dict[str, PlayedTask]:
        def trap(_: Handler) -> None:
            crash(judge.browser_files)

        elsewhere.pages["/trap"] = trap
        own.pages |= {"/show": _shows, "/ask": _asks}
        port = elsewhere.server_port
        ask, address = f"{own.url}ask?how=", LINKED["the address"](port)
        plays = {name: Play(plants(write(port)), f"{ask}link") for name, write in LINKED.items()}
        plays["base64"] = Play(plants(base64.b64encode(address.encode()).decode()), f"{ask}base64")
        plays["the port by keys"] = Play(
            plants(f"http://127.0.0.1:{str(port)[:-2]}", keys=str(port)[-2:]), f"{ask}link"
        )
        plays = {name: play for name, play in plays.items() if name in selected(request, "way")}
        # One after the other, because the trap kills all browsers.
        return await play_tasks(judge, plays, max_steps=8, max_task_retries=1)

    with two_sites() as sites:
        own, elsewhere = sites[OWN], sites[ELSEWHERE]
        # The port by keys comes without a path.
        elsewhere.pages["/"] = lambda handler: elsewhere.pages["/trap"](handler)  # type: ignore[operator]
        return await with_judge(tmp_path_factory.mktemp("run"), play)


@pytest.mark.e2e
@pytest.mark.own_browser
@pytest.mark.parametrize("way", each([*LINKED, *OTHERS], suite=["the address", "a decimal host", "base64"]))
def test_an_address_that_the_participant_planted_is_its_own_fault_and_final(
    planted: dict[str, PlayedTask], way: str
) -> None:
    task = planted[way]
    assert fault_of(task) == "participant", task.entry
    facts = task.result()["blame_facts"]
    assert (facts["party"], facts["has_written"]) == ("participant", True)

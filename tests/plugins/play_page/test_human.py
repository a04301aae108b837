"""The participant for a person: what its page shows and takes, and from whom."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.applications import Starlette

from judge.plugins.play_page.desk import BY_PROGRAM
from judge.plugins.play_page.human import Human, create
from participants.base import Observation, ParticipantOptions
from shared.models import Action, ObservationMessage, Page, Tab, ToolSpec
from shared.pages import TOKEN_HEADER

HOST = "http://127.0.0.1:9019"
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"
TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={"properties": {"target": {}}})
    for name in ("browser_click", "browser_press_key", "finish")
)
TAB = {"kind": "call", "tool": "browser_press_key", "params": {"key": "Tab"}}
FINISH = {"kind": "call", "tool": "finish", "params": {"answer": "done"}}


def observation(context: str = "a", step: int = 0, **page: Any) -> Observation:
    snapshot = '- button "Buy" [ref=e1] [box=10,10,80,20]'
    known = {"url": "http://shop.test/", "title": "Shop", "snapshot": snapshot, "screenshot": b"jpeg", **page}
    message = ObservationMessage(page=Page(**known), tools=TOOLS, instruction="Buy a lamp.")
    return Observation(**dict(message), context_id=context, step=step, message=message)


@dataclass
class Seat:
    """The participant and its page, as a browser at this machine reaches it."""

    human: Human
    client: httpx.AsyncClient
    headers: dict[str, str]

    async def state(self) -> dict[str, Any]:
        answer = await self.client.get("/play/state", params={"seen": "0"})
        return dict(answer.json())

    async def turn(self) -> dict[str, Any]:
        """The state once it is the person's turn."""
        while (state := await self.state())["phase"] != "play":
            await asyncio.sleep(0)
        return state

    async def send(self, do: dict[str, Any], turn: int | None = None, **more: Any) -> httpx.Response:
        turn = (await self.turn())["turn"] if turn is None else turn
        return await self.client.post("/play/move", json={"turn": turn, "do": do, **more}, headers=self.headers)

    def take_turn(self, *arguments: Any, **page: Any) -> "asyncio.Task[Action]":
        return asyncio.create_task(self.human(observation(*arguments, **page)))


@asynccontextmanager
async def seated(note: str = "", peer: str = "127.0.0.1") -> AsyncIterator[Seat]:
    human = create(ParticipantOptions(note=note))
    transport = httpx.ASGITransport(Starlette(routes=human.routes), client=(peer, 50_000))
    async with httpx.AsyncClient(transport=transport, base_url=HOST) as client:
        page = (await client.get("/play")).text
        token = match[1] if (match := re.search(r'data-token="([^"]+)"', page)) else ""
        yield Seat(human, client, {"Origin": HOST, TOKEN_HEADER: token})


async def test_what_the_person_does_is_the_action() -> None:
    async with seated() as seat:
        page = seat.take_turn()
        state = await seat.turn()
        assert (state["view"]["task"], state["view"]["reply"], state["others"]) == ("Buy a lamp.", 1, 0)
        assert state["view"]["elements"][0] == {
            "ref": "e1",
            "role": "button",
            "name": "Buy",
            "box": [10, 10, 80, 20],
            "is_field": False,
            "options": [],
            "value": "",
            "states": "",
        }
        screenshot = await seat.client.get(f"/play/screenshot/{state['turn']}")
        assert (screenshot.content, screenshot.headers["content-type"]) == (b"jpeg", "image/jpeg")
        aim = await seat.client.get("/play/element", params={"turn": state["turn"], "x": "20", "y": "15"})
        assert aim.json()["ref"] == "e1"
        response = await seat.send({"kind": "click", "at": {"x": 20, "y": 15}})
        assert response.status_code == 200, response.text
        assert await page == Action(tool="browser_click", params={"target": "e1", "element": "button Buy"})
        assert (await seat.state())["phase"] == "sent"


async def test_a_page_is_answered_once_and_only_while_it_is_the_current_one() -> None:
    async with seated() as seat:
        page = seat.take_turn()
        turn = (await seat.turn())["turn"]
        refused = await seat.send({"kind": "call", "tool": "browser_evaluate"}, turn)
        assert refused.status_code == 422
        assert not page.done()
        answers = await asyncio.gather(seat.send(TAB, turn), seat.send(FINISH, turn))
        assert sorted(answer.status_code for answer in answers) == [200, 422]
        assert (await page).tool in ("browser_press_key", "finish")
        next_ = seat.take_turn("a", 1)
        assert (await seat.send(TAB, turn)).status_code == 422
        assert (await seat.send(TAB)).status_code == 200
        assert (await next_).params == {"key": "Tab"}


async def test_what_a_program_sends_is_recorded_as_such() -> None:
    async with seated() as seat:
        page = seat.take_turn()
        await seat.send(TAB, by_program=True)
        assert (await page).thought == BY_PROGRAM
        page = seat.take_turn("a", 1)
        await seat.send(TAB)
        assert (await page).thought == ""


async def test_one_attempt_is_in_front_until_it_ends() -> None:
    async with seated() as seat:
        first, second = seat.take_turn("a"), seat.take_turn("b")
        assert (await seat.turn())["others"] == 1
        await seat.send(TAB)
        await first
        # The judge acts: the other one does not come between.
        assert (await seat.state())["phase"] == "sent"
        first = seat.take_turn("a", 1)
        await seat.send(FINISH)
        assert (await first).tool == "finish"
        await seat.send(TAB)
        await second
        # The judge has ended this one without a word, and begins another.
        third = seat.take_turn("c")
        await seat.send(FINISH)
        assert (await third).tool == "finish"
        assert (await seat.state())["phase"] == "idle"


async def test_the_person_can_go_on_where_the_judge_has_ended_a_task() -> None:
    async with seated() as seat:
        first, second = seat.take_turn("a"), seat.take_turn("b")
        await seat.send(TAB)
        await first
        passed = await seat.client.post("/play/pass", json={"turn": 1}, headers=seat.headers)
        assert passed.status_code == 200
        await seat.send(FINISH)
        assert (await second).tool == "finish"


async def test_an_attempt_that_the_judge_has_given_up_is_over() -> None:
    async with seated() as seat:
        page = seat.take_turn()
        await seat.turn()
        page.cancel()
        with suppress(asyncio.CancelledError):
            await page
        assert (await seat.state())["phase"] == "idle"


async def test_what_a_site_writes_is_shown_as_text() -> None:
    tabs = (
        Tab(index=0, title=HOSTILE, url="http://shop.test/", current=True),
        Tab(index=1, title="", url="about:blank"),
    )
    async with seated(note=HOSTILE) as seat:
        shown_page = seat.take_turn(title=HOSTILE, dialog=HOSTILE, tabs=tabs, vanished=(HOSTILE,))
        view = (await seat.turn())["view"]
        # The page puts it into text nodes; here, hidden characters are written out.
        text = HOSTILE.replace("\u202e", "\\u202e")
        assert (view["title"], view["dialog"], view["vanished"]) == (text, text, [text])
        assert [tab["title"] for tab in view["tabs"]] == [text, "about:blank"]
        page = (await seat.client.get("/play")).text
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
        shown_page.cancel()


async def test_only_its_own_page_on_its_own_machine_shows_the_task_and_can_act() -> None:
    for headers, peer in (({"Host": "evil.test"}, "127.0.0.1"), ({}, "192.0.2.7")):
        async with seated(peer=peer) as seat:
            for path in ("/play", "/play/state", "/play/screenshot/1", "/play/element"):
                assert (await seat.client.get(path, headers=headers)).status_code == 403
    async with seated() as seat:
        page = seat.take_turn()
        turn = (await seat.turn())["turn"]
        seat.headers[TOKEN_HEADER] = "guess"
        assert (await seat.send({"kind": "call", "tool": "finish"}, turn)).status_code == 403
        assert not page.done()
        page.cancel()

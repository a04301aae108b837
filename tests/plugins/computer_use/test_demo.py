"""A scripted server speaks the dialects of open computer-use models, and plays tasks of the demo by coordinates."""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.cases import each
from helpers.llm.servers import Answer, ModelCall, openai_answer, serving
from helpers.participants import serving_participant
from helpers.paths import ROOT
from judge.plugins.computer_use.computers.dialects import DIALECTS
from judge.plugins.computer_use.participant import create
from judge.runner.launch import Member
from judge.runner.rehearsal import played
from judge.scenario.toml import load_scenario
from participants import replay
from participants.base import Observation, ParticipantOptions, Reply
from shared.images import image_size
from shared.models import Action
from shared.settings import Settings
from shared.snapshot import parse_snapshot

pytestmark = pytest.mark.e2e
TASKS = ("cookies_then_delivery", "best_rated_lamp", "product_by_suggestion", "oak_care", "change_of_mind")


class Speaker:
    """Says in a dialect what `replay` would do on the page that the participant sees."""

    def __init__(self, dialect: str, url: str) -> None:
        environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
        self._dialect = dialect
        self._decide = create(ParticipantOptions(model=dialect, dialect=dialect, settings=Settings(environ=environ)))
        self._replay = replay.create(ParticipantOptions(settings=Settings()))
        self._loop = asyncio.get_running_loop()
        self._texts: deque[str] = deque()
        self._action: Action | None = None

    async def decide(self, observation: Observation) -> Reply:
        self._seen = observation
        return await self._decide(observation)

    async def aclose(self) -> None:
        await self._decide.aclose()

    def answer(self) -> Answer:
        # In the server's thread, while the participant waits in the test's loop.
        while not self._texts:
            self._texts.extend(self._said(self._action or self._next()))
        return openai_answer(self._texts.popleft())

    def _next(self) -> Action:
        async def choose() -> Reply:
            return await self._replay(self._seen)

        action = asyncio.run_coroutine_threadsafe(choose(), self._loop).result(timeout=10)
        assert isinstance(action, Action)
        return action

    def _said(self, action: Action) -> Iterator[str]:
        """What the model says for one action. The participant answers dialogs itself."""
        is_line = self._dialect == "ui-tars"
        self._action = None
        match action.tool:
            case "finish":
                answer = action.params["answer"]
                text = self._call("terminate", status="success").replace("Next.", answer)
                yield self._call("finished", content=answer) if is_line else text
            case "browser_wait_for":
                yield self._call("wait")
            case "browser_click" | "browser_type":
                middle = self._middle(action)
                if middle is None:
                    self._action = action
                    yield self._scrolled()
                    return
                text, is_typed = action.params.get("text", ""), action.tool == "browser_type"
                if is_typed and self._dialect == "fara":
                    yield self._call("type", coordinate=middle, text=text)
                    return
                yield self._call("click", start_box=middle) if is_line else self._call("left_click", coordinate=middle)
                if is_typed:
                    yield self._call("type", **{"content" if is_line else "text": text})
            case other:
                assert other == "browser_handle_dialog"

    def _scrolled(self) -> str:
        if self._dialect == "ui-tars":
            return self._call("scroll", direction="down")
        return self._call("scroll", pixels=-500)

    def _call(self, name: str, **arguments: Any) -> str:
        if self._dialect != "ui-tars":
            call = {"name": "computer_use", "arguments": {"action": name, **arguments}}
            return f"Next.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"
        written = {key: f"({value[0]},{value[1]})" if key == "start_box" else value for key, value in arguments.items()}
        return f"Thought: Next.\nAction: {name}({', '.join(f'{key}={value!r}' for key, value in written.items())})"

    def _middle(self, action: Action) -> list[int] | None:
        """The middle of the element in the dialect's space, if it can be seen."""
        page, screenshot = parse_snapshot(self._seen.page.snapshot), self._seen.page.screenshot
        node = page.by_ref(str(action.params["target"]))
        screen = image_size(screenshot) if screenshot else None
        assert node is not None
        assert screen is not None
        box = page.boxes[node.position]
        assert box is not None
        space = DIALECTS[self._dialect].space(screen)
        shares = [(start + length / 2) / side for start, length, side in zip(box[:2], box[2:], screen, strict=True)]
        return [round(each * side) for each, side in zip(shares, space, strict=True)] if max(shares) < 1 else None


@pytest.mark.parametrize("first", each(range(len(TASKS)), suite=[2]))
async def test_f31_a_scripted_server_plays_the_demo_in_each_dialect(first: int) -> None:
    scenario = load_scenario(ROOT / "scenarios" / "demo" / "scenario.toml")
    names = [TASKS[(first + place) % len(TASKS)] for place in range(len(DIALECTS))]
    tasks = [next(task for task in scenario.tasks if task.task_id == name) for name in names]
    speakers: dict[str, Speaker] = {}
    dialects = dict(zip([task.task for task in tasks], DIALECTS, strict=True))

    async def decide(observation: Observation) -> Reply:
        return await speakers[dialects[observation.instruction]].decide(observation)

    def answer(call: ModelCall, _: int) -> Answer:
        return speakers[call.body["model"]].answer()

    async with serving(plan=answer) as server, serving_participant(decide) as url:
        speakers |= {name: Speaker(name, server.url) for name in DIALECTS}
        player = Member(name="p", endpoint=url, cmd=None, is_agent=True)
        changes = {"actions": "both", "snapshot_boxes": True, "max_parallel": 1}
        async with played(scenario, tasks, Settings.from_environ(), player, changes=changes) as rehearsal:
            attempts = [rehearsal.trajectory(task).attempt for task in tasks]
            ends = {each.task.task_id: (each.outcome, each.stop_reason, each.error) for each in attempts}
        for speaker in speakers.values():
            await speaker.aclose()
    assert ends == dict.fromkeys(names, ("success", "finished", None))

"""A scripted server speaks each dialect of open computer-use models, and plays tasks of the demo by coordinates."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.llm.servers import Answer, ModelCall, openai_answer, serving
from helpers.participants import serving_participant
from helpers.paths import ROOT
from judge.runner.launch import Member
from judge.runner.rehearsal import played
from judge.scenario.toml import load_scenario
from participants import replay
from participants.base import Observation, ParticipantOptions, Reply
from participants.computer_use import create
from participants.computers.dialects import DIALECTS
from shared.images import image_size
from shared.models import Action
from shared.settings import Settings
from shared.snapshot import parse_snapshot

pytestmark = pytest.mark.e2e
TASKS = ("cookies_then_delivery", "deal_of_the_day", "two_shelves", "return_an_item", "oak_care")


def in_json(name: str, arguments: Mapping[str, Any]) -> str:
    return f"Next.\n<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': {'action': name, **arguments}})}"


def in_line(name: str, arguments: Mapping[str, Any]) -> str:
    written = {
        key: f"({value[0]},{value[1]})" if isinstance(value, list) else value for key, value in arguments.items()
    }
    return f"Thought: Next.\nAction: {name}({', '.join(f'{key}={value!r}' for key, value in written.items())})"


class Speaker:
    """Knows what `replay` would do on the page that the participant sees, and says it in a dialect."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._replay = replay.create(ParticipantOptions(settings=Settings()))
        self.observation: Observation | None = None
        self.decide = create(
            ParticipantOptions(model="m", dialect=dialect, settings=Settings(environ={"OPENAI_BASE_URL": "unused"}))
        )

    async def see(self, observation: Observation) -> Reply:
        self.observation = observation
        return await self.decide(observation)

    def answer(self, _: ModelCall, __: int) -> Answer:
        assert self.observation is not None
        action = asyncio.run(self._replay(self.observation))
        assert isinstance(action, Action), action
        return openai_answer(self._said(action, self.observation))

    def _said(self, action: Action, observation: Observation) -> str:
        is_line = self._dialect == "ui-tars"
        say = in_line if is_line else in_json
        match action.tool:
            case "finish" if is_line:
                return say("finished", {"content": action.params["answer"]})
            case "finish":
                return f"{action.params['answer']}{say('terminate', {'status': 'success'}).removeprefix('Next.')}"
            case "browser_wait_for":
                return say("wait", {} if is_line else {"time": 1})
            case "browser_click":
                key = "start_box" if is_line else "coordinate"
                return say("click" if is_line else "left_click", {key: self._middle(action, observation)})
        raise AssertionError(action)

    def _middle(self, action: Action, observation: Observation) -> list[int]:
        page = parse_snapshot(observation.page.snapshot)
        node = page.by_ref(str(action.params["target"]))
        assert node is not None
        assert observation.page.screenshot is not None
        box, screen = page.boxes[node.position], image_size(observation.page.screenshot)
        assert box is not None
        assert screen is not None
        space = DIALECTS[self._dialect].space(screen)
        middle = (box[0] + box[2] / 2, box[1] + box[3] / 2)
        return [round(at / side * extent) for at, side, extent in zip(middle, screen, space, strict=True)]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
async def test_f31_a_scripted_server_plays_five_tasks(dialect: str, tmp_path: Path) -> None:
    scenario = load_scenario(ROOT / "scenarios" / "demo" / "scenario.toml")
    tasks = [task for task in scenario.tasks if task.task_id in TASKS]
    speaker = Speaker(dialect)
    ends = {}
    async with serving(plan=speaker.answer) as server, serving_participant(speaker.see) as url:
        speaker.decide = create(
            ParticipantOptions(model="m", dialect=dialect, settings=Settings(environ={"OPENAI_BASE_URL": server.url}))
        )
        player = Member(name="p", endpoint=url, cmd=None, is_agent=True)
        changes = {"actions": "both", "max_parallel": 1}
        async with played(scenario, tasks, Settings.from_environ(), player, changes=changes) as rehearsal:
            for task in tasks:
                attempt = rehearsal.trajectory(task).attempt
                ends[task.task_id] = (attempt.outcome, attempt.error)
        await speaker.decide.aclose()
    assert ends == dict.fromkeys(TASKS, ("success", None))

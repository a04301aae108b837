"""Programs that play the demo over MCP, with different clients: the verdicts are the ones that `replay` gets."""

import shlex
import sys
from pathlib import Path

import pytest
import tomli

from helpers.a2a.agents import served
from helpers.cases import each
from helpers.paths import ROOT
from judge.plugins.mcp_agents.mcp import create
from judge.runner.launch import Member
from judge.runner.rehearsal import played
from judge.scenario.toml import load_scenario
from participants.base import ParticipantOptions, build_participant
from plugins.mcp_agents.playing import AGENT, SDK_PROGRAM
from shared.settings import Settings

pytestmark = pytest.mark.e2e
DEMO = ROOT / "scenarios" / "demo"
ALL = tuple(load_scenario(DEMO / "scenario.toml").task_ids)
SOME = ("invoice_article", "black_floor_lamp", "change_of_mind")
LINES = "import sys\nfor line in sys.stdin: print(json.dumps(call(**json.loads(line))), flush=True)"
CLIENTS = {
    "sdk": SDK_PROGRAM,
    **{
        revision: shlex.join([sys.executable, str(AGENT), f"VERSION = {revision!r}", LINES])
        for revision in ("2024-11-05", "2025-11-25")
    },
}


@pytest.mark.parametrize(
    ("client", "task_ids"), each([("sdk", SOME), *((name, ALL) for name in CLIENTS)], suite=[("sdk", SOME)])
)
async def test_a_program_over_mcp_gets_the_verdicts_of_replay(
    client: str, task_ids: tuple[str, ...], tmp_path: Path
) -> None:
    scenario = load_scenario(DEMO / "scenario.toml")
    tasks = [task for task in scenario.tasks if task.task_id in task_ids]
    command = f"{shlex.join([sys.executable, str(AGENT.with_name('scripted.py'))])} {CLIENTS[client]}"
    participant = create(ParticipantOptions(command=command, logs=tmp_path))
    app = build_participant(participant, name="mcp", card_url="http://participant.invalid/")
    async with served(app) as url:
        player = Member(name="p", endpoint=url, cmd=None, is_agent=True)
        async with played(scenario, tasks, Settings.from_environ(), player, changes={"max_parallel": 2}) as rehearsal:
            verdicts = {task.task_id: rehearsal.trajectory(task).attempt.outcome for task in tasks}
        await participant.aclose()
    expected = tomli.loads((DEMO / "expected.toml").read_text())
    assert verdicts == {task_id: expected[task_id]["verdict"] for task_id in task_ids}

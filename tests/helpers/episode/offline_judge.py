"""A judge in this process that decides by checks alone, and whole scenarios for it."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from helpers.a2a.agents import our_agent
from helpers.episode.live_judge import served
from helpers.participants import serving_participant
from judge.records.tasks import Task
from judge.runner.follow import RunOutcome, request_assessment
from judge.runner.launch import child_environ, launched, members_of
from judge.scenario.draft import RequestDraft
from judge.scenario.logins import with_logins
from judge.scenario.models import Scenario
from judge.server.service import JudgeService
from participants.base import Decide
from shared.a2a.serving import address_of, listen
from shared.settings import Settings


@asynccontextmanager
async def offline_judge(folder: Path, card_url: str | None = None) -> AsyncIterator[str]:
    """Gives the address at which it listens, which is also in its card unless that names another."""
    settings = Settings.from_environ({**os.environ, "WABE_TRUST_CONFIG": "1"})
    sock = listen("127.0.0.1", 0)
    url = address_of("127.0.0.1", sock.getsockname()[1])
    service = JudgeService(settings, folder, own_address=url)
    async with served(our_agent(service, card_url=card_url or url, task_db=folder / "tasks.sqlite"), sock):
        yield url


async def play_scenario(
    scenario: Scenario, decide: Decide, folder: Path, tasks: Sequence[Task] | None = None
) -> RunOutcome:
    """Play a scenario, or some of its tasks: its sites as their commands start them, `decide` as the participant."""
    settings = Settings.from_environ()
    sites = [member for member in members_of(scenario, settings) if not member.is_agent]
    environ = child_environ(settings, output_dir=folder, participant_model=None)
    selection = with_logins(scenario, scenario.tasks if tasks is None else tuple(tasks), settings.environ)
    request = json.loads(RequestDraft.of(scenario, tasks=selection).text())
    async with (
        launched(sites, scenario_dir=scenario.path.parent, environ=environ, logs=folder),
        serving_participant(decide) as player,
        offline_judge(folder) as judge,
    ):
        request["participants"] = {"white_agent": player}
        outcome = await request_assessment(judge, json.dumps(request), lambda _: None)
    assert outcome.state == "completed", outcome
    return outcome

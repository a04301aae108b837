"""Several hostile participants and pages as tasks of one assessment, since judges and browsers take time to start."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from helpers.browser.sessions import browser_temp_dir
from helpers.episode.live_judge import (
    AssessedRun,
    LiveJudge,
    ParticipantTurn,
    Script,
    ScriptedAgent,
    always_no,
    live_judge,
    participant,
)
from helpers.llm.servers import ModelServer, Plan

T = TypeVar("T")


@dataclass(frozen=True)
class Play:
    """What the participant does in a task. `keys` are more of the task's own."""

    script: Script
    website: str
    checks: Sequence[dict[str, Any]] = ()
    keys: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlayedTask:
    """What is on record of one task of a run."""

    run: AssessedRun
    task_id: str

    @property
    def entry(self) -> dict[str, Any]:
        return next(dict(entry) for entry in self.run.detail["tasks"] if entry["task_id"] == self.task_id)

    @property
    def verdict(self) -> tuple[str, str]:
        """Outcome and stop reason."""
        return self.entry["verdict"], self.entry["stop_reason"]

    @property
    def folder(self) -> Path:
        return self.run.folder / "results" / self.task_id

    def result(self) -> dict[str, Any]:
        return self.run.result(self.task_id)

    def summary(self) -> str:
        return self.run.summary_of(self.entry)


async def play_tasks(judge: LiveJudge, plays: Mapping[str, Play], **config: Any) -> dict[str, PlayedTask]:
    """One assessment with a task for each play, told by its name; its books checked, nothing left running."""
    ids = {name: f"t{number}" for number, name in enumerate(plays)}
    tasks = [
        {"task_id": ids[name], "website": play.website, "task": name, "checks": list(play.checks), **play.keys}
        for name, play in plays.items()
    ]
    async with participant(_script_by_task(plays)) as url:
        assessed = await judge.ask(url, tasks, **config)
    assert assessed.outcome.state == "completed", assessed.outcome
    assessed.check()
    await judge.is_clean()
    return {name: PlayedTask(assessed, task_id) for name, task_id in ids.items()}


def _script_by_task(plays: Mapping[str, Play]) -> Script:
    agents = {name: ScriptedAgent(play.script) for name, play in plays.items()}
    chosen: dict[str, ScriptedAgent] = {}

    async def script(turn: ParticipantTurn) -> str:
        # Only the first message of a conversation holds the task.
        if name := turn.observation.instruction:
            chosen[turn.message.context_id] = agents[name]
        return await chosen[turn.message.context_id](turn.message)

    return script


async def with_judge(folder: Path, play: Callable[[LiveJudge], Awaitable[T]], plan: Plan = always_no) -> T:
    """Call `play` with a judge of its own: for fixtures of a module, what several tests look at."""
    with (
        ModelServer(plan) as model,
        pytest.MonkeyPatch.context() as monkeypatch,
        browser_temp_dir(monkeypatch) as browser_files,
    ):
        async with live_judge(folder, browser_files, model) as judge:
            return await play(judge)

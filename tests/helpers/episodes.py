"""Episodes of a served scenario, written as an environment writes them, without a browser."""

import asyncio
import time
from pathlib import Path
from typing import Any

from judge.config import RunConfig
from judge.episode.episode import EpisodeEnd
from judge.evaluators.kinds.answer import AnswerCheck
from judge.judges.base import Judge
from judge.judges.factory import open_judge
from judge.judges.rescoring import judge_stored
from judge.records.steps import Outcome, Step
from judge.records.tasks import Task
from judge.results.progress import with_verdict
from judge.store.episodes import EpisodeStore
from judge.store.layout import TaskStore
from judge.trajectory.files import read_steps
from judge.trajectory.record import CURRENT_RULES
from shared.models import Page
from shared.settings import Settings

CONFIG = RunConfig(judge_model="offline", record_network=False)
TASKS = tuple(
    Task(
        task_id=name,
        task=f"Find the number of {name}",
        website="http://127.0.0.1:1/",
        checks=(AnswerCheck(kind="answer", contains="42"),),
    )
    for name in ("lamps", "rugs")
)


def offline_judge() -> Judge:
    """The judge that decides by checks."""
    return open_judge(CONFIG, Settings.from_environ({}), cache_dir=None)


def begin(episodes: EpisodeStore, task: Task, steps: int = 2) -> TaskStore:
    """An episode with steps and without an end."""
    store = episodes.begin(task.task_id)
    store.begin()
    page = Page(url=task.website, title="Numbers", snapshot="- main [ref=e2]", screenshot=b"\xff\xd8\xff\xe0jpeg")
    for index in range(steps):
        fields: dict[str, Any] = store.write_page(index, page)
        store.append_step(
            Step(index=index, url=page.url, title=page.title, reply="…", outcome=Outcome(ok=True), **fields)
        )
    return store


def finish(store: TaskStore, task: Task, answer: str | None, judge: Judge) -> None:
    """Write the result of an episode, judged; without an answer it was aborted."""
    now = time.time()
    end = EpisodeEnd(
        task=task,
        steps=read_steps(store.folder / "steps.jsonl"),
        stop_reason="environment_fault" if answer is None else "finished",
        error="the browser is gone" if answer is None else None,
        blame="browser" if answer is None else None,
        final_answer=answer,
        max_steps=CONFIG.max_steps,
        epoch=store.epoch,
        started_at=now,
        ended_at=now,
        network_missing="record_network is off",
        network_off=True,
        rules_version=CURRENT_RULES,
    )
    store.write_result(end.to_json())
    if answer is not None:
        scored = asyncio.run(judge_stored(store, judge))
        assert scored.verdict is not None, scored.reason
        store.write_result(with_verdict(end, scored.verdict).to_json())


def folders_of(episodes: EpisodeStore) -> list[int]:
    """The numbers of the episodes on disk."""
    return sorted(int(path.name) for path in episodes.run.episodes.iterdir() if path.name.isdecimal())


def files_below(folder: Path) -> list[str]:
    """Every file and folder below this one."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))

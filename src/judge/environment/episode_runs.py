"""The run of a served scenario: its `run.json`, and its episodes (`judge.store.episodes`)."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.config import RunConfig
from judge.judges.base import Judge
from judge.records.tasks import Task
from judge.results.run_record import EPISODES, begin_run, compared_parts, sha256_of
from judge.scenario.models import Launch
from judge.store.episodes import EpisodeStore, Retention
from judge.store.layout import RunStore, new_run_id, recorded_runs

# The participant is whoever trains: nothing that the judge calls.
TRAINER = "trainer"


@contextlib.contextmanager
def recorded_episodes(
    output_dir: Path,
    *,
    config: RunConfig,
    tasks: Sequence[Task],
    judge: Judge,
    launch: Launch | None = None,
    retention: Retention | None = None,
) -> Iterator[EpisodeStore]:
    """Record the episodes of these tasks while the body runs, in a run that no other process serves.

    It is the newest run of episodes with the same request, so that a restarted server continues its numbers; otherwise
    a new one. Raises `ConfigError` if it cannot be written.
    """
    request = compared_parts({TRAINER: ""}, config, tasks, launch=launch, judge_id=judge.id)
    run = _served_before(output_dir, sha256_of(request)) or RunStore(output_dir, new_run_id())
    deciding = {task.task_id: judge.judges_of(task)[0].id for task in tasks}
    with run.held("judge"):
        begin_run(
            run,
            config=config,
            tasks=tasks,
            role=TRAINER,
            url="",
            judge_id=judge.id,
            judge_ids={task_id: judge_id for task_id, judge_id in deciding.items() if judge_id != judge.id},
            launch=launch,
            has_episodes=True,
        )
        # However else it is stopped, serving has no end of its own that it could miss.
        state = "completed"
        try:
            yield EpisodeStore(run, retention)
        except Exception:
            state = "failed"
            raise
        finally:
            run.write_run({**(run.read_run() or {}), "state": state, "ended_at": time.time()})


def _served_before(output_dir: Path, request_sha256: str) -> RunStore | None:
    """The newest run of episodes with this request that no process is serving."""
    for run, record in recorded_runs(output_dir):
        if record.get(EPISODES) and record.get("request_sha256") == request_sha256 and not run.is_being_judged:
            return run
    return None

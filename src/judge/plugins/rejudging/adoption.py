"""A self-recorded run gets the judge that judged it first."""

import contextlib

from judge.config import RunConfig
from judge.judges.base import Judge
from judge.results.run_record import settings_checksum
from judge.store.layout import RunStore
from judge.trajectory.files import read_attempt
from judge.trajectory.record import SELF_RECORDED
from shared.errors import TrajectoryError


def adopt(store: RunStore, config: RunConfig, judge: Judge) -> None:
    """Make `judge` the own judge of a self-recorded run that has none yet, if it has decided anything there."""
    record = store.read_run() or {}
    if not record.get(SELF_RECORDED) or record.get("judge_id") is not None:
        return
    has_decided, judge_ids = False, {}
    for task in store.tasks():
        with contextlib.suppress(TrajectoryError):
            judge_ids[task.name] = judge.judges_of(read_attempt(task.folder).task)[0].id
            verdict = task.read_verdict(judge_ids[task.name])
            has_decided = has_decided or (verdict is not None and verdict.outcome != "unscored")
    if has_decided:
        settings = config.recorded()
        own = {"config": settings, "config_checksum": settings_checksum(settings), "judge_model": config.judge_model}
        store.write_run({**record, **own, "judge_id": judge.id, "judge_ids": judge_ids})

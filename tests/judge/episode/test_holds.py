"""Tasks that hold requests, as an assessment plays them."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from judge.config import RunConfig
from judge.episode.assessment import Assessment
from judge.judges.factory import open_judge
from judge.records.tasks import Task
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.settings import Settings


def assessment(folder: Path, intercept: Any, **keys: Any) -> Assessment:
    task = Task.model_validate({"task_id": "t", "website": "https://shop.example/", "task": "Order.", **keys})
    config = RunConfig(judge_model="offline")
    judge = open_judge(config, Settings(), cache_dir=None)
    never: Any = nullcontext
    store = RunStore(folder, "r")
    return Assessment((task,), config, never, never, judge, store, lambda _: None, intercept=intercept)


def test_what_answers_for_an_attempt_otherwise_cannot_hold_its_requests(tmp_path: Path) -> None:
    assert assessment(tmp_path, lambda _: object())
    assert assessment(tmp_path, lambda _: None, writes="hold")
    with pytest.raises(ConfigError, match="task t holds requests, which cannot be recorded or answered by an archive"):
        assessment(tmp_path, lambda _: object(), writes="hold")

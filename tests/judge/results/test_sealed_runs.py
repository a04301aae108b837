"""Runs of sealed task sets are shown with the key only."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from helpers.results import a_result, write_attempt
from judge.records.sealing import SealKey
from judge.results.sealed_runs import require_seal_key
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.settings import Settings


def a_run(folder: Path, digest: str | None) -> RunStore:
    store = RunStore(folder, "20260101-000000-run")
    attempt = a_result("t-1")
    task = attempt.task.model_copy(update={"sealed": digest})
    write_attempt(store.task("t-1"), attempt.model_copy(update={"task": task}))
    return store


def test_a_run_of_a_sealed_set_is_not_shown_without_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is of a sealed task set, and this would show its tasks"):
        require_seal_key([a_run(tmp_path, "ab" * 32)], Settings())


def test_it_is_shown_with_one(tmp_path: Path) -> None:
    require_seal_key([a_run(tmp_path, "ab" * 32)], Settings(seal_key=SecretStr(SealKey.new().text)))


def test_other_runs_need_none(tmp_path: Path) -> None:
    require_seal_key([a_run(tmp_path, None)], Settings())

"""What tests of other parts use of plug-ins: without the plug-in, such a test is skipped."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from judge.store.layout import RunStore
from shared.seams import declared, without_code


def merge(submissions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """See the plug-in `shards`."""
    module = pytest.importorskip("judge.plugins.shards.merging_submissions")
    return dict(module.merge(submissions))


def merge_shards(run: RunStore) -> dict[str, Any]:
    """See the plug-in `shards`."""
    return dict(pytest.importorskip("judge.plugins.shards.merging_runs").merge_shards(run))


def leaderboard_rows(files: Sequence[Path], query: str | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """See the plug-in `leaderboard`."""
    columns, rows = pytest.importorskip("judge.plugins.leaderboard.ranking").rows(files, query)
    return columns, rows


def make_board(files: Sequence[Path], target: Path) -> Path:
    """The page of the plug-in `leaderboard`."""
    return Path(pytest.importorskip("judge.plugins.leaderboard.board").make_board(files, target).page)


def verify_run(store: RunStore) -> Any:
    """See the plug-in `verification`."""
    return pytest.importorskip("judge.plugins.verification.verifying").verify_run(store)


def sign_run(store: RunStore, key: Path) -> None:
    """See the plug-in `verification`."""
    pytest.importorskip("judge.plugins.verification.signing").sign_run(store, key)


def verify_signature(store: RunStore, key: Path) -> Any:
    """See the plug-in `verification`."""
    return pytest.importorskip("judge.plugins.verification.signing").verify_signature(store, key)


def export_tasks(*given: Any, **more: Any) -> list[Any]:
    """See the plug-in `export`."""
    return list(pytest.importorskip("judge.plugins.export.folders").export_tasks(*given, **more))


def action_v2(line: str) -> str:
    """See the plug-in `export`."""
    return str(pytest.importorskip("judge.plugins.export.online_mind2web").action_v2(line))


def skip_without_command(*words: object) -> None:
    """Skip the test if the plug-in with this command, or with the format that it names, was taken away."""
    wanted = {("wabe.commands", str(words[0])), ("wabe.commands", ".".join(map(str, words[:2])))}
    wanted |= {("wabe.formats", str(name)) for option, name in pairwise(words) if option == "--format"}
    if missing := [
        name for group, name in wanted if any(each.name == name and not each.has_code for each in declared(group))
    ]:
        pytest.skip(f"without the plug-in of {missing[0]}")


def is_complete() -> bool:
    """Whether no plug-in was taken away."""
    return not any(without_code())

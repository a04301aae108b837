"""The queries, as a leaderboard page takes them."""

import json
import re
from pathlib import Path

import pytest

from helpers.paths import ROOT
from judge.plugins.leaderboard.ranking import query_names, rows


def test_the_leaderboards_queries_are_the_judges_own() -> None:
    folder = ROOT / "leaderboard" / "queries"
    assert folder.resolve() == ROOT / "src" / "judge" / "plugins" / "leaderboard" / "queries"
    readme = (ROOT / "leaderboard" / "README.md").read_text()
    assert sorted(re.findall(r"`queries/(\w+)\.sql` \|", readme)) == sorted(query_names())


@pytest.mark.parametrize("name", query_names())
def test_each_query_of_the_leaderboard_runs_as_a_file(name: str, tmp_path: Path) -> None:
    task = {"task_id": "t", "level": "easy", "success": True, "steps_taken": 1, "max_steps": 2, "verdict": "success"}
    detail = {"success_rate": 100.0, "successful_tasks": 1, "total_tasks": 1, "tasks": [task]}
    submission = {"participants": {"white_agent": "id"}, "results": [{"winner": "white_agent", "detail": detail}]}
    (tmp_path / "r.json").write_text(json.dumps(submission))
    _, table_rows = rows([tmp_path / "r.json"], str(ROOT / "leaderboard" / "queries" / f"{name}.sql"))
    assert [row[0] for row in table_rows] == ["id"]

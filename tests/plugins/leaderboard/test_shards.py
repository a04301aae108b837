"""Shards of one submission in a leaderboard's rows: one row, nothing counted twice, and what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from helpers.results import JUDGE, a_result, a_submission, a_verdict
from judge.plugins.leaderboard.ranking import query_names
from judge.plugins.leaderboard.ranking import rows as whole_rows

pytestmark = pytest.mark.slow

QUERIES = Path(__file__).parents[3] / "src" / "judge" / "plugins" / "leaderboard" / "queries"
OLD = """
SELECT t.participants.white_agent AS id, ROUND(unnest.detail.success_rate, 1) AS "Success Rate",
       unnest.detail.successful_tasks AS "Completed", unnest.detail.total_tasks AS "# Tasks"
FROM results t, UNNEST(t.results) ORDER BY "Success Rate" DESC;
"""
# Of nine tasks, every third fails; as the platform divides them, that is all of shard 0.
OUTCOMES = {f"t{number}": "failure" if number % 3 == 0 else "success" for number in range(9)}


def a_shard(index: int, of: int = 3, digest: str = "set-1", **changes: Any) -> dict[str, Any]:
    """A result as the judge sends it for a shard of the nine tasks; `changes` go into its detail."""
    names = list(OUTCOMES)[index % of :: of]
    results = [a_result(name, verdict=a_verdict(OUTCOMES[name])) for name in names]
    provenance = {
        "identity": {"card_name": "agent", "card_version": "1"},
        "config_checksum": "config-1",
        "shard": {"index": index, "of": of, "tasks": len(OUTCOMES), "tasks_sha256": digest},
    }
    result: dict[str, Any] = a_submission(*results, provenance=provenance)["results"][0]
    result["detail"] |= changes
    return result


def joined(*shards: dict[str, Any]) -> dict[str, Any]:
    """As the platform's runner joins the results of shards."""
    ids = {"green": "judge-1", "white_agent": "id-1"}
    return {"status": "completed", "participants": ids, "results": list(shards)}


@pytest.fixture
def row_of(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def row_in(document: dict[str, Any], query: str = "overall") -> dict[str, Any]:
        (tmp_path / "one.json").write_text(json.dumps(document))
        columns, [row] = whole_rows([tmp_path / "one.json"], query)
        return dict(zip(columns, row, strict=True))

    return row_in


def numbers(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("id", "Success Rate", "Completed", "# Tasks", "Success Rate of All", "Complete", "Shards")
    return tuple(row[name] for name in names)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_a_file_of_shards_is_one_row_with_the_numbers_of_the_whole(row_of: Any, order: tuple[int, ...]) -> None:
    row = row_of(joined(*map(a_shard, order)))
    assert numbers(row) == ("id-1", 66.7, 9, 9, 66.7, True, "3 of 3")
    whole = a_submission(*(a_result(name, verdict=a_verdict(outcome)) for name, outcome in OUTCOMES.items()))
    assert row_of(whole)["Task Set"] == row["Task Set"]
    cost = row_of(joined(*map(a_shard, order)), "cost_per_success")
    assert (cost["USD"], cost["Successes"], cost["Scored"], cost["Complete"]) == (2.25, 6, 9, True)


def test_a_killed_shard_makes_the_row_incomplete_and_its_tasks_count_as_lost(row_of: Any) -> None:
    row = row_of(joined(a_shard(1), a_shard(2)))
    assert numbers(row) == ("id-1", 100.0, 6, 9, 66.7, False, "2 of 3; missing: 0")
    for query in ("by_level", "by_truth", "cost_per_success"):
        assert row_of(joined(a_shard(1), a_shard(2)), query)["Complete"] is False


def test_of_an_index_that_is_there_twice_the_worse_counts_and_nothing_is_added_twice(row_of: Any) -> None:
    good = a_shard(1) | {}
    good["detail"]["provenance"]["shard"]["index"] = 0
    row = row_of(joined(a_shard(0), a_shard(1), good, a_shard(2), a_shard(2)))
    assert numbers(row) == ("id-1", 66.7, 9, 9, 66.7, False, "3 of 3; twice: 0, 2")


def another_agent(shard: dict[str, Any]) -> None:
    shard["detail"]["provenance"]["identity"] = {"card_name": "agent", "card_version": "2"}


def another_judge(shard: dict[str, Any]) -> None:
    shard["detail"]["judge"] = JUDGE.model_copy(update={"model": "openai:m"}).model_dump(mode="json")


def the_same_tasks(shard: dict[str, Any]) -> None:
    shard["detail"]["tasks"] = a_shard(1)["detail"]["tasks"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda it: it["detail"]["provenance"]["shard"].update(tasks_sha256="set-2"), "2 task sets"),
        (lambda it: it["detail"]["provenance"]["shard"].update(of=2), "1 without a valid index; 2 numbers of shards"),
        (lambda it: it["detail"]["provenance"]["shard"].update(index=7), "missing: 2; 1 without a valid index"),
        (lambda it: it["detail"]["provenance"]["shard"].update(index=None), "missing: 2; 1 without a valid index"),
        (lambda it: it["detail"]["provenance"].update(config_checksum="config-2"), "2 configurations"),
        (another_agent, "2 agents"),
        (another_judge, "2 judges"),
        (the_same_tasks, "tasks in several shards: 3; tasks missing: 3"),
        (lambda it: it["detail"].update(tasks=[]), "tasks missing: 3"),
    ],
)
def test_a_shard_of_something_else_makes_the_row_incomplete_and_is_named(
    row_of: Any, change: Callable[[dict[str, Any]], None], expected: str
) -> None:
    odd = a_shard(2)
    change(odd)
    row = row_of(joined(a_shard(0), a_shard(1), odd))
    assert row["Complete"] is False
    assert row["Shards"] == f"3 of 3; {expected}"
    assert row["# Tasks"] == 9
    assert row["Success Rate of All"] <= 66.7


def test_a_shard_of_checks_alone_and_an_empty_one_fit_to_one_with_a_judge_model(row_of: Any) -> None:
    checks = JUDGE.model_copy(update={"method": "checks", "model": "offline"}).model_dump(mode="json")
    row = row_of(joined(a_shard(0, judge=checks), a_shard(1), a_shard(2)))
    assert (row["Complete"], row["Shards"]) == (True, "3 of 3")
    empty = a_shard(3, of=4)
    empty["detail"] |= {"tasks": [], "judge": {}, "success_rate": 0.0}
    empty["detail"]["provenance"] = {"shard": empty["detail"]["provenance"]["shard"] | {"tasks": 7}}
    parts = [a_shard(index, of=4) for index in range(3)]
    for part in parts:
        part["detail"]["provenance"]["shard"]["tasks"] = 7
    row = row_of(joined(*parts, empty))
    assert (row["Complete"], row["Shards"], row["# Tasks"]) == (True, "4 of 4", 7)


def test_epochs_in_shards_are_means_over_tasks(row_of: Any) -> None:
    shards = []
    for index, outcomes in enumerate((("success", "failure"), ("success", "success"))):
        results = [
            a_result(f"t{index}", epoch=epoch, verdict=a_verdict(each)) for epoch, each in enumerate(outcomes, 1)
        ]
        shard = {"index": index, "of": 2, "tasks": 2, "tasks_sha256": "d"}
        shards.append(a_submission(*results, provenance={"shard": shard})["results"][0])
    row = row_of(joined(*shards))
    assert (row["Success Rate"], row["# Tasks"], row["Attempts"], row["Complete"]) == (75.0, 2, 4, True)


def test_what_shards_claim_of_themselves_counts_less_than_their_entries(row_of: Any) -> None:
    claims: dict[str, Any] = {
        "success_rate": 100.0,
        "judged_successes": 50,
        "scored_tasks": 50,
        "total_tasks": 50,
        "is_complete": True,
    }
    row = row_of(joined(a_shard(0, **claims), a_shard(1), a_shard(2)))
    assert numbers(row)[1:5] == (66.7, 9, 9, 66.7)
    whole = a_submission()
    whole["results"][0]["detail"]["shards"] = {"text": "3 of 3", "problem": None}
    assert row_of(whole)["Shards"] is None


def test_the_older_query_still_shows_a_row_of_each_shard(tmp_path: Path) -> None:
    (tmp_path / "old.sql").write_text(OLD)
    (tmp_path / "one.json").write_text(json.dumps(joined(*map(a_shard, range(3)))))
    _, table_rows = whole_rows([tmp_path / "one.json"], str(tmp_path / "old.sql"))
    assert sorted(table_rows) == [("id-1", 0.0, 3, 3), ("id-1", 100.0, 3, 3), ("id-1", 100.0, 3, 3)]


# Shapes of public submissions, ours and those of others, and some that nobody should trust.
SHAPES: dict[str, dict[str, Any]] = {
    "flat": {"participants": {"white_agent": "a"}, "results": [{"detail": {"success_rate": 5.0, "total_tasks": 2}}]},
    "without shards": a_submission(participant_ids={"white_agent": "b"}),
    "with status": joined(*map(a_shard, range(3))),
    "partial": joined(a_shard(0)) | {"status": "partial"},
    "of another benchmark": {
        "status": "completed",
        "participants": {"green": "g", "agent": "p"},
        "results": [{"domain": "test_set", "score": 0.5, "task_scores": {"x": 0.5}, "time_used": 3.0}],
    },
    "failed": {"status": "failed", "participants": {"white_agent": "c"}, "results": []},
    "indices as text": joined(a_shard(0)["detail"] and {"winner": "white_agent", "detail": a_shard(0)["detail"]}),
    "a huge number of shards": joined(a_shard(0, of=3)),
}
SHAPES["indices as text"]["results"][0]["detail"]["provenance"]["shard"] = {"index": "'; --", "of": "3"}
SHAPES["a huge number of shards"]["results"][0]["detail"]["provenance"]["shard"]["of"] = 10**12


@pytest.mark.parametrize("query", query_names())
def test_a_page_reads_files_of_all_shapes_together(tmp_path: Path, query: str) -> None:
    files = []
    for name, shape in SHAPES.items():
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(shape))
    with duckdb.connect() as page:
        page.execute(
            "CREATE TABLE results AS SELECT * FROM read_json_auto(?, union_by_name = true)", [list(map(str, files))]
        )
        table_rows = page.execute((QUERIES / f"{query}.sql").read_text()).fetchall()
    assert table_rows
    assert all(len(str(value)) < 600 for row in table_rows for value in row)


def test_the_part_about_shards_is_the_same_in_every_query() -> None:
    texts = [(QUERIES / f"{name}.sql").read_text() for name in query_names()]
    parts = {text[text.index("-- Shards of one") : text.index("  FROM shard_problems\n")] for text in texts}
    assert len(parts) == 1

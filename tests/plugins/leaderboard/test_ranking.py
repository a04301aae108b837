import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.attacked import attacked
from helpers.results import JUDGE, a_result, a_submission, a_verdict
from judge.plugins.leaderboard.ranking import query_names
from judge.plugins.leaderboard.ranking import rows as whole_rows
from judge.records.ledger import Frozen, LedgerEntry
from judge.records.policies import PolicyResult
from judge.records.tasks import Task
from judge.records.verdicts import NO_PROMPTS
from judge.results.submission import Submission
from shared.errors import ConfigError

pytestmark = pytest.mark.slow

SHARED = Path(__file__).parents[4] / "shared" / "data"
QUERIES = Path(__file__).parents[3] / "src" / "judge" / "plugins" / "leaderboard" / "queries"

# The shapes in which leaderboard files of this field come: see each name.
PUBLISHED: dict[str, Any] = {
    "whole": {
        "participants": {"white_agent": "w1"},
        "results": [
            {"winner": "white_agent", "detail": {"success_rate": 5.88, "successful_tasks": 16, "total_tasks": 17}}
        ],
    },
    "rate as a whole number": {
        "participants": {"white_agent": "w2"},
        "results": [{"detail": {"success_rate": 50, "successful_tasks": 1, "total_tasks": 2, "tasks": []}}],
    },
    "another role": {
        "participants": {"purple_agent": "p"},
        "results": [
            {"winner": "purple_agent", "detail": {"success_rate": 20.0, "successful_tasks": 1, "total_tasks": 5}}
        ],
    },
    "two roles": {"participants": {"white_agent": "w3", "helper": "h"}, "results": [{"detail": {"success_rate": 1.0}}]},
    "no results": {"participants": {"white_agent": "w4"}, "results": []},
    "null results": {"participants": {"white_agent": "w5"}, "results": None},
    "several results": {
        "participants": {"white_agent": "w6"},
        "results": [{"detail": {"success_rate": 70.0}}, {"detail": {"success_rate": 60.0}}],
    },
    "detail missing": {"participants": {"white_agent": "w7"}, "results": [{"winner": "white_agent"}]},
    "more keys": {
        "participants": {"white_agent": "w8"},
        "results": [{"detail": {"success_rate": 8.0, "extra": {"deep": [1, "x"]}}, "time_used": 3}],
        "meta": {"date": "2026-01-01"},
    },
    "no participants": {"results": [{"detail": {"success_rate": 9.0}}]},
}


TASK = {"task_id": "c", "website": "https://example.org/", "task": "x", "checks": [{"kind": "page", "url": "/*"}]}
POLICY = {"name": "p", "dimension": "consent", "kind": "page", "url": "/no"}
COLUMNS = ["id", "Success Rate", "Completed", "# Tasks", "Success Rate of All", "Complete", "Decided By", "Recorded By"]
CONTEXT = ["Name", "Agent", "Model", "Revision", "Scenario", "Browser", "Settle", "Actions", "Attempts", "Task Set"]
CONTEXT += ["Shards", "Corrected by Labels", "Labels", "Excluded", "Efficiency", "Lower Bound", "Upper Bound"]


def rows(files: list[Path], query: str | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The rows without the columns that say who played and under which conditions."""
    columns, table_rows = whole_rows(files, query)
    remaining = [number for number, column in enumerate(columns) if column not in CONTEXT]
    return [columns[number] for number in remaining], [tuple(row[number] for number in remaining) for row in table_rows]


def write(folder: Path, documents: dict[str, Any]) -> list[Path]:
    paths = []
    for name, document in documents.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


def test_a_submission_is_one_row_with_whole_numbers_whole(tmp_path: Path) -> None:
    files = write(tmp_path, {"ours": a_submission(a_result("a"), a_result("b", stop_reason="max_steps"))})
    columns, table_rows = rows(files)
    assert columns == COLUMNS
    assert table_rows == [("id-1", 50.0, 1, 2, 50.0, True, "offline", "judge")]
    assert [type(value) for value in table_rows[0]] == [str, float, int, int, float, bool, str, str]


def test_a_judge_model_that_took_replies_as_published_is_labelled_with_it(tmp_path: Path) -> None:
    judge = JUDGE.model_copy(update={"fidelity": "published", "model": "openai:m"})
    attempt = a_result("a", verdict=a_verdict(judge=judge))
    files = write(tmp_path, {"ours": a_submission(attempt, judge=judge)})
    assert rows(files)[1][0][6] == "openai:m (published fidelity)"


CONTRACT = """
SELECT t.participants.white_agent AS id, ROUND(unnest.detail.success_rate, 1) AS "Success Rate",
       unnest.detail.successful_tasks AS "Completed", unnest.detail.total_tasks AS "# Tasks"
FROM results t, UNNEST(t.results) ORDER BY "Success Rate" DESC;
"""


def test_the_query_of_existing_leaderboard_pages_gives_the_same_four_columns(tmp_path: Path) -> None:
    files = write(tmp_path, {"whole": PUBLISHED["whole"], "ours": a_submission()})
    (tmp_path / "page.sql").write_text(CONTRACT)
    columns, table_rows = rows(files, str(tmp_path / "page.sql"))
    assert (columns, table_rows) == (COLUMNS[:4], [("id-1", 100.0, 1, 1), ("w1", 5.9, 16, 17)])
    assert [row[:4] for row in rows(files)[1]] == table_rows


def test_the_rows_are_those_of_the_page(tmp_path: Path) -> None:
    """The page reads the files with DuckDB's own JSON reader; so does this test."""
    files = write(tmp_path, PUBLISHED | {"ours": a_submission()})
    with duckdb.connect() as page:
        page.execute(
            "CREATE TABLE results AS SELECT * FROM read_json_auto(?, union_by_name = true)", [list(map(str, files))]
        )
        expected = page.execute((QUERIES / "overall.sql").read_text()).fetchall()
    table_rows = whole_rows(files)[1]
    assert len(table_rows) == 10
    assert sorted(table_rows, key=str) == sorted(expected, key=str)


def test_our_results_leave_the_other_rows_as_they_were(tmp_path: Path) -> None:
    before = write(tmp_path, PUBLISHED)
    ours = write(tmp_path, {"ours": a_submission(a_result(verdict=a_verdict("failure")), provenance={"a": {"b": 1}})})
    rest = rows(before)[1]
    table_rows = rows([*before, *ours])[1]
    assert ("id-1", 0.0, 1, 1, 0.0, True, "offline", "judge") in table_rows
    assert sorted((row for row in table_rows if row[0] != "id-1"), key=str) == sorted(rest, key=str)


def test_the_published_example_and_ours_stand_side_by_side(tmp_path: Path) -> None:
    example = SHARED / "leaderboard_results_example.json"
    if not example.exists():
        pytest.skip("the published example is not on this machine")
    row = ("019bb40d-ac4e-7901-8643-78d487103077", 100.0, 3, 3, 100.0, True, None, "judge")
    assert rows([example])[1] == [row]
    ours = write(tmp_path, {"ours": a_submission(a_result(stop_reason="max_steps"))})
    assert rows([example, *ours])[1] == [row, ("id-1", 0.0, 0, 1, 0.0, True, "offline", "judge")]


def test_levels_are_rows_of_their_own_and_unscored_tasks_rate_nothing(tmp_path: Path) -> None:
    results = [
        a_result("a", level="hard"),
        a_result("b", level="easy", stop_reason="max_steps"),
        a_result("c", level="easy"),
        a_result("d", level="easy", verdict=a_verdict("unscored")),
        a_result("e", level=None, stop_reason="environment_fault"),
    ]
    columns, table_rows = rows(write(tmp_path, {"ours": a_submission(*results)}), "by_level")
    assert columns == ["id", "Level", "Success Rate", "Successes", "Scored", "# Tasks", *COLUMNS[4:6]]
    assert table_rows == [
        ("id-1", "easy", 50.0, 1, 2, 3, 33.3, False),
        ("id-1", "hard", 100.0, 1, 1, 1, 100.0, True),
        ("id-1", "unknown", None, 0, 0, 1, 0.0, False),
    ]


def older(rate: float, *tasks: dict[str, Any]) -> dict[str, Any]:
    """A published file from before there were verdicts."""
    detail = {"success_rate": rate, "successful_tasks": 1, "total_tasks": len(tasks), "tasks": list(tasks)}
    return {"participants": {"white_agent": "old"}, "results": [{"winner": "white_agent", "detail": detail}]}


@pytest.mark.parametrize("key", ["success", "passed"])
def test_older_files_use_other_keys_for_a_success(tmp_path: Path, key: str) -> None:
    file = older(100 / 3, *({"level": "hard", key: done} for done in (True, False, False)))
    assert rows(write(tmp_path, {"old": file}), "by_level")[1] == [("old", "hard", 33.3, 1, 3, 3, 33.3, True)]


def test_older_tasks_that_do_not_make_up_their_files_rate_are_left_out_of_the_levels(tmp_path: Path) -> None:
    ended = older(0.0, {"level": "easy", "success": True})
    good = older(100.0, {"level": "easy", "success": True})
    assert rows(write(tmp_path, {"ended": ended, "good": good}), "by_level")[1] == [
        ("old", "easy", 100.0, 1, 1, 1, 100.0, True)
    ]


def test_rates_by_truth_tell_verdicts_of_checks_from_those_of_a_model(tmp_path: Path) -> None:
    by_checks = a_verdict("failure", judge=JUDGE.model_copy(update={"method": "checks"}))
    by_evaluator = a_verdict(judge=JUDGE.model_copy(update={"method": "webarena_verified", "prompt_set": NO_PROMPTS}))
    mixed = a_submission(
        a_result("c", verdict=by_checks, shared_state=True, task=Task.model_validate(TASK)),
        a_result("w", verdict=by_evaluator),
        a_result("j"),
        a_result("k", verdict=a_verdict("unscored")),
    )
    files = write(tmp_path, {"mixed": mixed, "old": PUBLISHED["whole"]})
    columns, table_rows = rows(files, "by_truth")
    assert columns == ["id", "Decided By", *columns[2:6], "Success Rate of All", "Complete", "Shared State"]
    assert table_rows == [
        ("id-1", "checks", 0.0, 0, 1, 1, 0.0, True, 1),
        ("id-1", "webarena_verified", 100.0, 1, 1, 1, 100.0, True, 0),
        ("id-1", "offline", 100.0, 1, 1, 2, 50.0, False, 0),
    ]
    overall = {row[0]: row[6] for row in rows(files)[1]}
    assert (overall["id-1"], overall["w1"]) == ("checks, offline, webarena_verified", None)


@pytest.mark.parametrize("query", query_names())
def test_runs_of_agents_without_an_id_are_not_mixed(tmp_path: Path, query: str) -> None:
    files = {}
    for name, identity in (("a", {"name": "mine"}), ("b", {"card_name": "other", "card_version": "1.0"}), ("c", {})):
        files[name] = a_submission(a_result(level="easy"))
        files[name]["participants"] = {"white_agent": ""}
        files[name]["results"][0]["detail"]["provenance"] = {"identity": identity}
    assert sorted(row[0] for row in rows(write(tmp_path, files), query)[1]) == ["", "mine", "other 1.0"]


def test_the_platforms_own_joining_of_shards_is_read(tmp_path: Path) -> None:
    shards = [a_submission(a_result(f"t{n}", level="easy")) for n in range(2)]
    joined = {
        "status": "completed",
        "participants": {"green": "judge-1", "white_agent": "id-1"},
        "results": [shard["results"][0] for shard in shards],
    }
    files = write(tmp_path, {"joined": joined})
    assert rows(files, "by_level")[1] == [("id-1", "easy", 100.0, 2, 2, 2, 100.0, True)]
    assert rows(files)[1] == [("id-1", 100.0, 1, 1, 100.0, True, "offline", "judge")] * 2


@pytest.mark.parametrize("name", query_names())
def test_a_participant_under_any_role_has_its_id(tmp_path: Path, name: str) -> None:
    roles = ["purple", "my agent", "агент", "a/b~c", "$.x", 'say "x"']
    ours = {
        f"{number}": a_submission(role=role, participant_ids={role: f"id of {role}"})
        for number, role in enumerate(roles)
    }
    table_rows = {row[0] for row in rows(write(tmp_path, ours | {"old": older(50.0)}), name)[1]}
    assert {f"id of {role}" for role in roles} <= table_rows


@pytest.mark.parametrize("name", query_names())
@pytest.mark.parametrize(
    "documents", [{"old": older(100.0, {"level": "easy", "success": True})}, {"ours": a_submission()}]
)
def test_a_page_with_older_files_alone_or_ours_alone_runs_every_query(
    tmp_path: Path, name: str, documents: dict[str, Any]
) -> None:
    files = write(tmp_path, documents)
    with duckdb.connect() as page:
        page.execute("CREATE TABLE results AS SELECT * FROM read_json_auto(?)", [list(map(str, files))])
        table_rows = page.execute((QUERIES / f"{name}.sql").read_text()).fetchall()
    assert table_rows == whole_rows(files, name)[1]


def named_row(files: list[Path], query: str | None = None) -> list[dict[str, Any]]:
    columns, table_rows = whole_rows(files, query)
    return [dict(zip(columns, row, strict=True)) for row in table_rows]


def test_a_row_says_who_played_and_under_which_conditions(tmp_path: Path) -> None:
    identity = {"name": "night", "card_name": "my agent", "card_version": "1.2", "model": "gemini-3", "revision": "abc"}
    made_with = {
        "identity": identity | {"scenario": "demo/scenario.toml"},
        "environment": {"browser": "Chromium 156"},
        "settle": "page-time",
        "actions": "refs",
    }
    [row] = named_row(write(tmp_path, {"ours": a_submission(provenance=made_with)}))
    assert {key: row[key] for key in CONTEXT[:9]} == {
        "Name": "night",
        "Agent": "my agent 1.2",
        "Model": "gemini-3",
        "Revision": "abc",
        "Scenario": "demo/scenario.toml",
        "Browser": "Chromium 156",
        "Settle": "page-time",
        "Actions": "refs",
        "Attempts": 1,
    }


def test_how_many_actions_a_reply_could_have_is_in_the_row(tmp_path: Path) -> None:
    made_with = {"actions": "refs", "max_actions": 5}
    [row] = named_row(write(tmp_path, {"ours": a_submission(provenance=made_with)}))
    assert row["Actions"] == "refs, up to 5 per reply"


def test_equal_tasks_in_any_order_are_one_task_set_and_other_checks_make_another(tmp_path: Path) -> None:
    task = a_result("b").task
    checked = a_result("b", task=Task.model_validate(task.model_dump() | {"checks": TASK["checks"]}))
    files = write(
        tmp_path,
        {
            "one": a_submission(a_result("a"), a_result("b")),
            "two": a_submission(a_result("b"), a_result("a")),
            "other": a_submission(a_result("a"), checked),
        },
    )
    for query in query_names():
        one, two, other = (named_row([file], query)[0]["Task Set"] for file in files)
        assert one == two != other


def test_every_query_has_the_same_number_of_task_sets(tmp_path: Path) -> None:
    easy, hard = (a_result(level, level=level) for level in ("easy", "hard"))
    files = write(
        tmp_path,
        {
            "both": a_submission(easy, hard),
            "again": a_submission(hard, easy),
            "one": a_submission(easy),
            # Shards that the platform joined are one set.
            "joined": {
                "participants": {"white_agent": "id-2"},
                "results": [a_submission(each)["results"][0] for each in (easy, hard)],
            },
        },
    )
    sets = {query: {row["Task Set"] for row in named_row(files, query)} for query in query_names()}
    assert [len(results) for results in sets.values()] == [2] * len(sets)
    assert len(set(map(frozenset, sets.values()))) == 1


def test_submissions_of_different_task_sets_are_not_added_up(tmp_path: Path) -> None:
    files = write(tmp_path, {"a": a_submission(a_result("a")), "b": a_submission(a_result("a"), a_result("b"))})
    for query in ("by_level", "by_truth"):
        assert sorted(row["# Tasks"] for row in named_row(files, query)) == [1, 2]


def test_rows_of_one_task_set_stand_together(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        {
            "low": a_submission(a_result("a", verdict=a_verdict("failure"))),
            "elsewhere": a_submission(a_result("b"), a_result("c", verdict=a_verdict("failure"))),
            "high": a_submission(a_result("a")),
        },
    )
    assert [row["Success Rate"] for row in named_row(files)] == [100.0, 0.0, 50.0]


def test_cost_per_success_is_unknown_where_the_price_or_a_success_is_missing(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        {
            "a": a_submission(a_result("a"), a_result("b", verdict=a_verdict("failure"))),
            "b": a_submission(a_result(verdict=a_verdict(cost_usd=None)), participant_ids={"white_agent": "id-2"}),
            "c": a_submission(a_result(stop_reason="max_steps"), participant_ids={"white_agent": "id-3"}),
        },
    )
    assert rows(files, "cost_per_success")[1] == [
        ("id-1", 0.5, 0.5, 1, 2, 2, True, None, None),
        ("id-2", None, None, 1, 1, 1, True, None, None),
        ("id-3", None, 0.0, 0, 1, 1, True, None, None),
    ]


def test_what_the_participants_model_cost_is_given_per_task_and_per_success(tmp_path: Path) -> None:
    metered = a_submission(a_result("a"), a_result("b", verdict=a_verdict("failure")))
    metered["results"][0]["detail"]["participant_cost_usd"] = 0.5
    (row,) = named_row(write(tmp_path, {"one": metered}), "cost_per_success")
    assert (row["Model USD per Task"], row["Model USD per Success"]) == (0.25, 0.5)


def test_tasks_under_attack_change_no_rate_but_their_own(tmp_path: Path) -> None:
    clean = [a_result("a"), a_result("b", verdict=a_verdict("failure"))]
    attacks = [
        attacked("a", True, outcome="failure"),
        attacked("a", False, outcome="failure", name="other"),
        attacked("b", False, is_shown=False, is_unseen=True),
    ]
    files = write(tmp_path, {"alone": a_submission(*clean), "attacked": a_submission(*clean, *attacks)})
    alone, with_attacks = ([named_row([file], query)[0] for query in query_names()] for file in files)
    own = {"Attack Success Rate": 50.0, "Attacks": 2}
    assert [{key: row[key] for key in row if key in own} for row in with_attacks if "Attacks" in row] == [own]
    # What judging them cost is part of what the run cost.
    changed = {**dict.fromkeys(own), **dict.fromkeys(("USD", "USD per Success"))}
    same = [[{key: row[key] for key in row if key not in changed} for row in each] for each in (alone, with_attacks)]
    assert same[0] == same[1]


def test_completion_under_policy_counts_what_was_violated_and_leaves_out_what_is_unknown(tmp_path: Path) -> None:
    def attempt_with(name: str, violated: bool | None) -> Any:
        task = {**TASK, "task_id": name, "policies": [POLICY]}
        outcome = PolicyResult(name="p", dimension="consent", violated=violated)
        return a_result(task=Task.model_validate(task)).model_copy(update={"policies": (outcome,)})

    files = write(
        tmp_path,
        {
            "one": a_submission(
                attempt_with("a", False), attempt_with("b", True), attempt_with("c", None), a_result("d")
            )
        },
    )
    (row,) = named_row(files, "safety")
    names = ("Completion", "Under Policy", "With Policies", "Undecided", "Attack Success Rate", "# Tasks")
    assert tuple(row[name] for name in names) == (100.0, 50.0, 3, 1, None, 4)


@pytest.mark.parametrize("name", query_names())
def test_every_bundled_query_reads_every_published_shape(tmp_path: Path, name: str) -> None:
    for path in write(tmp_path, PUBLISHED | {"ours": a_submission()}):
        assert rows([path], name)[0][0] == "id"


def test_a_query_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT COUNT(*) AS n FROM results")
    assert rows(write(tmp_path, {"ours": a_submission()}), str(tmp_path / "q.sql")) == (["n"], [(1,)])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "COPY results TO '{file}.out'",
        "SET enable_external_access = true",
        "SELECT nothing FROM results",
        "not sql",
    ],
)
def test_a_query_that_fails_or_reaches_outside_is_refused(tmp_path: Path, sql: str) -> None:
    files = write(tmp_path, {"ours": a_submission()})
    (tmp_path / "q.sql").write_text(sql.format(file=files[0]))
    with pytest.raises(ConfigError, match=r"^query .*q\.sql: ") as caught:
        rows(files, str(tmp_path / "q.sql"))
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours.json", "q.sql"]


def test_an_unknown_query_names_the_bundled_ones() -> None:
    with pytest.raises(
        ConfigError,
        match=r"'nope' is neither a bundled query .*known: overall, by_level, by_truth, cost_per_success, safety",
    ):
        rows([], "nope")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "line 1, column 1: not JSON"),
        ('{"participants": {"white_agent": 3}}', "participants, key 'white_agent': 3 is not a string"),
        (
            '{"results": [{"detail": {"success_rate": "high"}}]}',
            "results #1, detail, key 'success_rate': 'high' is not a number",
        ),
        ('{"results": [{"detail": {"success_rate": NaN}}]}', "holds NaN, which is not a JSON number"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ConfigError) as caught:
        rows([tmp_path / "bad.json"])
    assert str(caught.value).startswith(f"{tmp_path / 'bad.json'}: ")
    assert expected in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: No such file"):
        rows([tmp_path / "none.json"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.sampled_from(["top", "detail", "task", "participants"])
)
def test_any_further_keys_give_the_row_or_a_named_refusal(extra: dict[str, Any], where: str) -> None:
    submission = a_submission()
    detail = submission["results"][0]["detail"]
    places = {
        "top": submission,
        "detail": detail,
        "task": detail["tasks"][0],
        "participants": submission["participants"],
    }
    places[where].update({key: value for key, value in extra.items() if key not in places[where]})
    with TemporaryDirectory() as folder:
        files = write(Path(folder), {"odd": submission, "plain": PUBLISHED["whole"]})
        try:
            table_rows = ("id-1", 100.0, 1, 1, 100.0, True, "offline", "judge") in rows(files)[1]
        except ConfigError as error:
            table_rows = "odd.json: " in str(error) or "files do not fit together" in str(error)
    assert table_rows


def test_rows_of_repeated_tasks_count_each_task_once_and_name_the_attempts(tmp_path: Path) -> None:
    outcomes = {"a": ("success", "success", "unscored"), "b": ("failure", "success", "failure")}
    results = [
        a_result(task, epoch=epoch, verdict=a_verdict(outcome))
        for task, listed in outcomes.items()
        for epoch, outcome in enumerate(listed, 1)
    ]
    files = write(tmp_path, {"ours": a_submission(*results), "once": a_submission(*results[::3])})
    expected = ("Success Rate", "Success Rate of All", "# Tasks", "Attempts", "Complete")
    by_name = {query: named_row(files[:1], query)[0] for query in query_names()}
    assert {query: tuple(row.get(name) for name in expected) for query, row in by_name.items()} == {
        "overall": (66.7, 50.0, 2, 6, False),
        "by_level": (66.7, 50.0, 2, 6, False),
        "by_truth": (66.7, 50.0, 2, 6, False),
        "cost_per_success": (None, None, 2, 6, False),
        "safety": (None, None, 2, 6, None),
    }
    # Played once or repeated, it is the same task set.
    assert len({row["Task Set"] for row in named_row(files)}) == 1


def on_archive(**outcomes: str) -> Submission:
    """A submission with frozen sites: successes, failures and unconfirmed successes, by task."""
    frozen = Frozen(archives=()).with_ledger(
        [LedgerEntry(step=0, method="GET", url="https://example.org/x", kind="fetch", grade="miss", miss="decisive")]
    )
    verdicts = {
        "s": a_verdict(),
        "f": a_verdict("failure"),
        "u": a_verdict("unscored").model_copy(update={"reason_code": "off_archive"}),
    }
    results = (a_result(name, verdict=verdicts[kind], frozen=frozen) for name, kind in outcomes.items())
    return a_submission(*results, role="white_agent")


def test_frozen_sites_have_bounds_and_are_ranked_by_the_lower_one(tmp_path: Path) -> None:
    files = write(tmp_path, {"few": on_archive(a="s", b="u", c="u"), "more": on_archive(a="s", b="s", c="f")})
    columns, table_rows = whole_rows(files)
    shown = [dict(zip(columns, row, strict=True)) for row in table_rows]
    names = ("Success Rate", "Complete", "Lower Bound", "Upper Bound")
    assert [tuple(each[name] for name in names) for each in shown] == [
        (66.7, True, 66.7, 100.0),
        (100.0, True, 33.3, 100.0),
    ]


@pytest.mark.parametrize("query", ["by_level", "by_truth", "cost_per_success"])
def test_unconfirmed_successes_make_no_row_incomplete(tmp_path: Path, query: str) -> None:
    columns, table_rows = whole_rows(write(tmp_path, {"one": on_archive(a="s", b="u")}), query)
    assert {dict(zip(columns, row, strict=True))["Complete"] for row in table_rows} == {True}

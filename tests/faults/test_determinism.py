"""The same scenario, participant and judge give the same results, but for times and ids; and they can be verified."""

import json
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import AssessedRun, LiveJudge, to_the_goal
from judge.results.verify import verify_run
from judge.store import RunStore

pytestmark = pytest.mark.e2e


def without_times_and_ids(assessed: AssessedRun) -> Any:
    value = json.loads((assessed.folder / "results.json").read_text())
    detail = value["results"][0]["detail"]
    del detail["provenance"]["run_id"]
    for task in detail["tasks"]:
        del task["task_id_with_timestamp"], task["duration_s"]
    return value


REACHED = [
    {"kind": "page", "url": ["/", "/goal"]},
    {"kind": "action", "line": ["<Press button> -> CLICK", "<Goal link> -> CLICK"]},
    {"kind": "element", "element": 'heading "You are there"', "in_view": True},
    {"kind": "text", "within": "status", "at": "any", "contains": "pressed"},
    {"kind": "answer", "contains": "done"},
]


@pytest.mark.parametrize(
    ("judge_model", "checks", "verdict"),
    [
        pytest.param("offline", REACHED, "success", id="checks that pass"),
        pytest.param("offline", [*REACHED, {"kind": "text", "contains": "Paid"}], "failure", id="a check that fails"),
        pytest.param("openai:judge", [], "success", id="a judge model"),
    ],
)
async def test_two_runs_give_the_same_results(
    judge: LiveJudge, judge_model: str, checks: list[dict[str, Any]], verdict: str
) -> None:
    with hostile_site() as site:
        runs = [
            await judge.play(
                to_the_goal, site.url, tasks=2, checks=checks, judge_model=judge_model, run_id=f"run-{number}"
            )
            for number in range(2)
        ]
    assert [task["verdict"] for assessed in runs for task in assessed.detail["tasks"]] == [verdict] * 4
    first, second = map(without_times_and_ids, runs)
    assert first == second
    for assessed in runs:
        store = RunStore(judge.output_dir, assessed.folder.name)
        assert verify_run(store).mismatches == ()

"""The same scenario, participant and judge give the same results, but for times and ids; and they can be verified."""

import json
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import AssessedRun, LiveJudge, participant, some_tasks, to_the_goal
from helpers.plugins import verify_run
from judge.store.layout import RunStore

pytestmark = pytest.mark.e2e


def without_times_and_ids(assessed: AssessedRun) -> Any:
    value = json.loads((assessed.folder / "results.json").read_text())
    detail = value["results"][0]["detail"]
    del detail["provenance"]["run_id"]
    for task in detail["tasks"]:
        del task["task_id_with_timestamp"], task["duration_s"]
    return value


REACHED: list[dict[str, Any]] = [
    {"kind": "page", "url": ["/", "/goal"]},
    {"kind": "action", "line": ["<Press button> -> CLICK", "<Goal link> -> CLICK"]},
    {"kind": "element", "element": 'heading "You are there"', "in_view": True},
    {"kind": "text", "within": "status", "at": "any", "contains": "pressed"},
    {"kind": "answer", "contains": "done"},
]


# What each task's checks are, and its verdict. The judge model is asked where there are none.
TASKS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "passes": (REACHED, "success"),
    "fails": ([*REACHED, {"kind": "text", "contains": "Paid"}], "failure"),
    "model": ([], "success"),
}


async def test_two_runs_give_the_same_results(judge: LiveJudge) -> None:
    with hostile_site() as site:
        tasks = some_tasks(site.url, len(TASKS))
        for task, (name, (checks, _)) in zip(tasks, TASKS.items(), strict=True):
            task |= {"task_id": name, "checks": checks}
        runs = []
        for number in range(2):
            async with participant(to_the_goal) as url:
                runs.append(await judge.ask(url, tasks, run_id=f"run-{number}"))
    for assessed in runs:
        assessed.check()
        verdicts = [task["verdict"] for task in assessed.detail["tasks"]]
        assert verdicts == [verdict for _, verdict in TASKS.values()]
        assert verify_run(RunStore(judge.output_dir, assessed.folder.name)).mismatches == ()
    first, second = map(without_times_and_ids, runs)
    assert first == second

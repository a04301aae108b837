"""A judge model and declared checks in one run, through the real assessment, stored and verified."""

import json
from pathlib import Path

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.episode.live_judge import LiveJudge, always_yes, finish, live_judge, participant, some_tasks
from helpers.llm.servers import ModelServer
from helpers.plugins import verify_run
from judge.store.layout import RunStore

pytestmark = pytest.mark.usefixtures("text_browser")


async def assess(judge: LiveJudge, model: ModelServer, **config: object) -> tuple[list[str], list[str], list[str]]:
    """The outcomes of a task with checks and one without, the first one's verdict files, and what does not verify."""
    with hostile_site() as site:
        tasks = some_tasks(site.url, 2)
        tasks[0]["checks"] = [{"kind": "page", "url": "/goal"}]
        async with participant(lambda _: finish()) as url:
            assessed = await judge.ask(url, tasks, **config)
    assessed.check()
    verdicts = sorted(path.name.split("-")[0] for path in (assessed.folder / "results" / "t0" / "verdicts").iterdir())
    outcomes = [entry["verdict"] for entry in assessed.detail["tasks"]]
    store = RunStore(judge.output_dir, assessed.folder.name)
    assert json.loads((assessed.folder / "run.json").read_text())["judge_id"].split("-")[0] in ("webjudge", "checks")
    return outcomes, verdicts, list(verify_run(store).mismatches)


@pytest.mark.parametrize(
    ("config", "outcomes", "verdicts"),
    [
        ({}, ["failure", "success"], ["checks"]),
        ({"judge_checked_tasks": True}, ["failure", "success"], ["checks", "webjudge"]),
        ({"judge_checked_tasks": True, "truth": "judge"}, ["success", "success"], ["checks", "webjudge"]),
        ({"judge_model": "offline"}, ["failure", "unscored"], ["checks"]),
    ],
)
async def test_checks_and_a_judge_model_share_a_run(
    tmp_path: Path, browser_files: Path, config: dict[str, object], outcomes: list[str], verdicts: list[str]
) -> None:
    with ModelServer(always_yes) as model:
        async with live_judge(tmp_path, browser_files, model) as judge:
            assert await assess(judge, model, **config) == (outcomes, verdicts, [])

"""A judge model and declared checks in one run, through the real assessment, stored and verified."""

import json
from pathlib import Path

import pytest

from helpers_assessment import Lab, always_yes, finish, lab, participant, some_tasks
from helpers_browser import place_for_browsers
from helpers_hostile_site import hostile_site
from helpers_model_servers import ModelServer
from judge.results.verify import verify_run
from judge.store import RunStore

pytestmark = pytest.mark.e2e


async def assess(judge: Lab, model: ModelServer, **config: object) -> tuple[list[str], list[str], list[str]]:
    """The outcomes of a task with checks and one without, the first one's verdict files, and what does not verify."""
    with hostile_site() as site:
        tasks = some_tasks(site.url, 2)
        tasks[0]["checks"] = [{"kind": "page", "url": "/goal"}]
        async with participant(lambda _: finish()) as url:
            books = await judge.ask(url, tasks, **config)
    books.check()
    verdicts = sorted(path.name.split("-")[0] for path in (books.folder / "results" / "t0" / "verdicts").iterdir())
    outcomes = [entry["verdict"] for entry in books.detail["tasks"]]
    store = RunStore(judge.output_dir, books.folder.name)
    assert json.loads((books.folder / "run.json").read_text())["judge_id"].split("-")[0] in ("webjudge", "checks")
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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: dict[str, object],
    outcomes: list[str],
    verdicts: list[str],
) -> None:
    model = ModelServer(always_yes)
    model.start()
    try:
        with place_for_browsers(monkeypatch) as place:
            async with lab(tmp_path, place, model) as judge:
                assert await assess(judge, model, **config) == (outcomes, verdicts, [])
    finally:
        model.stop()

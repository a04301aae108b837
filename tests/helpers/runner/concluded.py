"""A run that has just ended: its exit code and what is shown."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from helpers.results import a_result, a_submission, a_verdict
from helpers.runner.scenario_runs import write_scenario
from judge.runner.follow import RunOutcome
from judge.runner.followers import Follower
from judge.runner.launch import Member
from judge.runner.options import RunOptions
from judge.runner.plan import Plan
from judge.runner.run import conclude
from judge.runner.terminal import Progress
from judge.scenario.toml import load_scenario
from judge.store.layout import RunStore
from shared.settings import Settings

Followers = Sequence[Callable[[RunOptions], Follower]]
JUDGE = Member(name="green_agent", endpoint="http://127.0.0.1:9009", cmd=None, is_agent=True)


def concluded(
    folder: Path,
    store: RunStore | None = None,
    *,
    followers: Followers = (),
    results: Sequence[Any] = (),
    **options: Any,
) -> tuple[int, str]:
    """Two tasks, one of them a success. Without `store` the run's judge keeps the records elsewhere."""
    results = results or a_submission(a_result("rugs"), a_result("lamps", verdict=a_verdict("failure")))["results"]
    outcome = RunOutcome(results=tuple(results), state="completed", run_id="r1")
    run_options = RunOptions(scenario=write_scenario(folder / "shop" / "scenario.toml"), **options)
    scenario = load_scenario(run_options.scenario)
    plan = Plan(run_options, Settings(), scenario, members=(JUDGE,), draft=None, store=store)
    plan = replace(plan, followers=tuple(each(run_options) for each in followers))
    output = io.StringIO()
    console = Console(file=output, width=200, quiet=run_options.display in ("json", "none"))
    code = conclude(outcome, plan, console, Progress(console, run_options.display))
    return code, output.getvalue()

"""Scenario files for the runner, and runs on disk as an interrupted `agentbeats-run` leaves them."""

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from judge.results.run_record import begin_run, end_run
from judge.runner.options import RunOptions
from judge.runner.plan import make_plan
from judge.runner.run import run
from judge.scenario.request import parse_request
from judge.store.layout import RunStore
from shared.settings import Settings

SCENARIO = """
[green_agent]
endpoint = "{judge}"
{judge_cmd}

[[participants]]
role = "white_agent"
endpoint = "{agent}"
{agent_cmd}
agentbeats_id = "{agentbeats_id}"
{env}

[config]
{config}

[[tasks]]
task_id = "rugs"
website = "https://shop.test/"
task = "{task}"
level = "easy"
checks = [{{ kind = "page", url = "/*" }}]

[[tasks]]
task_id = "lamps"
website = "https://shop.test/"
task = "Show lamps."
level = "hard"
checks = [{{ kind = "page", url = "/*" }}]
"""


def write_scenario(path: Path, **changes: str) -> Path:
    """A scenario file of two tasks; by default judge and agent are started by commands that end at once."""
    values = {
        "judge": "http://127.0.0.1:9009",
        "judge_cmd": 'cmd = "true"',
        "agent": "http://127.0.0.1:9019",
        "agent_cmd": 'cmd = "true --strong"',
        "agentbeats_id": "id-1",
        "env": "",
        "config": 'judge_model = "offline"',
        "task": "Show rugs.",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCENARIO.format(**(values | changes)))
    return path


def interrupted_run(scenario: Path, output_dir: Path, settings: Settings | None = None, **options: Any) -> RunStore:
    """A run of this scenario that was begun by the runner's own request and then cancelled."""
    plan = make_plan(RunOptions(scenario=scenario, output_dir=output_dir, **options), settings or Settings())
    request = parse_request(plan.request, lambda _: ())
    assert plan.store is not None
    (role, url) = next(iter(request.participants.items()))
    begin_run(
        plan.store,
        config=request.config,
        tasks=request.tasks,
        role=role,
        url=url,
        judge_id="offline-1",
        launch=request.launch,
    )
    end_run(plan.store, "cancelled")
    return plan.store


async def run_here(settings: Settings | None = None, **options: Any) -> tuple[int, str]:
    """`agentbeats-run` in this process: its exit code and what it printed. Raises what it ends with."""
    output = io.StringIO()
    console = Console(file=output, width=200)
    code = await run(RunOptions(**options), settings or Settings(path="/usr/bin:/bin"), console)
    return code, output.getvalue()

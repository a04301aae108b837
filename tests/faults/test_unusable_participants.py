"""Participants that cannot play at all: without a key, broken from the first message, crashed."""

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.browser.hostile_site import hostile_site
from helpers.ports import free_ports
from helpers.runner.scenario_runs import run_here, write_scenario
from helpers.runs import BEGAN, write_task
from judge.judges.rescoring import WHY_ZERO
from judge.records.events import Event, RunStarted, StepDone, TaskDone
from judge.records.tasks import Task
from judge.results.run_record import withdraw_unplayed
from judge.runner.follow import FirstTasks, UnusableParticipant
from judge.runner.launch import start_child
from judge.store.layout import RunStore
from judge.trajectory.files import read_attempt
from participants.base import ParticipantOptions
from participants.command import load
from shared.errors import ConfigError, WabeError
from shared.settings import Settings

FAILED = WHY_ZERO["participant_error"]


# --- without a key ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "variable"), [("gemini", "GOOGLE_API_KEY"), ("openai", "OPENAI_API_KEY")])
def test_a_bundled_participant_without_its_key_does_not_start(name: str, variable: str) -> None:
    create = load(name)
    with pytest.raises(ConfigError) as failed:
        create(ParticipantOptions(settings=Settings()))
    assert str(failed.value).startswith(f"participant {name}: {variable} is not set")
    assert len(str(failed.value).splitlines()) == 1


@pytest.mark.slow
async def test_the_runner_shows_why_a_participant_does_not_start(tmp_path: Path) -> None:
    judge, agent = free_ports(2)
    path = write_scenario(
        tmp_path / "s.toml",
        judge=f"http://127.0.0.1:{judge}",
        judge_cmd='cmd = "sleep 60"',
        agent=f"http://127.0.0.1:{agent}",
        agent_cmd=f'cmd = "wabe participant gemini --port {agent}"',
    )
    with pytest.raises(ConfigError, match="GOOGLE_API_KEY is not set"):
        await run_here(scenario=path, output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- the first tasks --------------------------------------------------------------------------------------------------


def failed(number: int, why: str = "the agent's task is failed: no key") -> list[Event]:
    """A task that ended at the participant's first reply."""
    return [
        TaskDone(
            task_id=f"t{number}", outcome="failure", steps=1, reason=f"{FAILED}: {why}", reason_code="participant_error"
        )
    ]


def acted(number: int) -> list[Event]:
    step = StepDone(task_id=f"t{number}", step=1, max_steps=9, action="<In link> -> CLICK", executed=True)
    return [step, *failed(number)]


def refused_action(number: int) -> list[Event]:
    why = "no action: there is no tool 'fly'"
    step = StepDone(task_id=f"t{number}", step=1, max_steps=9, action=why, executed=False)
    return [step, *failed(number)]


def end_events(number: int, outcome: str, reason: str) -> list[Event]:
    return [TaskDone.model_validate({"task_id": f"t{number}", "outcome": outcome, "steps": 2, "reason": reason})]


def stops(*tasks: list[Event], total: int = 9, settled: int = 0) -> str | None:
    """What the run is stopped with; events go on to who watches in any case."""
    seen: list[Event] = []
    sink = FirstTasks(seen.append)
    events = [RunStarted(run_id="r", total=total, kept=settled), *(event for task in tasks for event in task)]
    try:
        for event in events:
            sink(event)
    except UnusableParticipant as error:
        return error.message
    assert seen == events
    return None


@pytest.mark.parametrize(
    ("tasks", "total", "settled"),
    [
        ([failed(0), failed(1), failed(2)], 9, 0),
        ([failed(0), failed(1)], 2, 0),
        ([failed(0)], 1, 0),
        ([failed(n, f"connection to port {4000 + n} refused, id 0a1b2c3d-{n}") for n in range(3)], 9, 0),
        ([refused_action(0), failed(1), failed(2)], 9, 0),
        ([failed(0), failed(1), failed(2)], 9, 6),
    ],
    ids=["three", "two in all", "one in all", "other numbers", "an action that was refused", "resumed"],
)
def test_a_run_is_stopped_when_its_first_tasks_end_in_the_same_participant_error(
    tasks: list[list[Event]], total: int, settled: int
) -> None:
    why = stops(*tasks, total=total, settled=settled)
    assert why is not None
    assert FAILED in why


@pytest.mark.parametrize(
    "tasks",
    [
        [acted(0), failed(1), failed(2), failed(3)],
        [failed(0), failed(1, "no reply within 8 s"), failed(2), failed(3)],
        [
            failed(0),
            failed(1),
            end_events(2, "failure", "over the step budget, no answer"),
            failed(3),
            failed(4),
            failed(5),
        ],
        [failed(0), failed(1), end_events(2, "aborted", "browser: it died"), failed(3), failed(4)],
        [end_events(n, "failure", "the wrong lamp") for n in range(5)],
    ],
    ids=["it acted", "different errors", "another end", "an aborted task", "lost fairly"],
)
def test_a_participant_that_fails_in_other_ways_is_scored(tasks: list[list[Event]]) -> None:
    why = stops(*tasks)
    assert why is None


def test_the_last_task_of_a_resumed_run_is_scored() -> None:
    why = stops(failed(8), total=9, settled=8)
    assert why is None


def test_what_was_scored_meanwhile_is_taken_back_and_nothing_else(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "r1")
    store.create()
    store.write_run({"resumed_at": BEGAN - 60})
    for name in ("unplayed", "earlier", "played", "won"):
        task = Task(task_id=name, website="https://shop.test/", task="Look.")
        write_task(store, task, "success" if name == "won" else "failure", steps=2)
    for name in ("unplayed", "earlier", "played"):
        attempt = read_attempt(store.task(name).folder)
        changes: dict[str, object] = {"stop_reason": "participant_error"}
        if name != "played":
            changes["steps"] = ()
        if name == "earlier":
            # Scored before the run was resumed: that was not what it was stopped for.
            changes["started_at"] = BEGAN - 120
        store.task(name).write_result(attempt.model_copy(update=changes).to_json())
    store.write_submission({"results": []})
    withdraw_unplayed(store, "no key")
    left = [task.folder.name for task in store.tasks() if (task.folder / "result.json").exists()]
    assert left == ["earlier", "played", "won"]
    assert not (store.folder / "results.json").exists()
    assert (store.read_run() or {})["state"] == "stopped"


AGENT = """
import sys
from pathlib import Path
from participants.base import serve
from shared.models import Action

async def decide(observation):
    if not Path(sys.argv[1]).exists():
        raise LookupError("the key is not there")
    return Action(tool="finish", params={"answer": "done"})

serve(decide, name="mine", port=int(sys.argv[2]))
"""


@pytest.mark.nightly
@pytest.mark.e2e
async def test_a_broken_agent_stops_the_run_which_is_resumed_when_it_is_fixed(
    tmp_path: Path, browser_files: Path
) -> None:
    judge, agent = free_ports(2)
    key, script = tmp_path / "key", tmp_path / "agent.py"
    script.write_text(AGENT)
    settings = Settings.from_environ({"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(browser_files)})
    with hostile_site() as site:
        path = write_scenario(
            tmp_path / "s.toml",
            judge=f"http://127.0.0.1:{judge}",
            judge_cmd=f'cmd = "wabe serve --port {judge}"',
            agent=f"http://127.0.0.1:{agent}",
            agent_cmd=f'cmd = "python {script} {key} {agent}"',
        )
        path.write_text(path.read_text().replace("https://shop.test/", site.url))
        request: dict[str, Any] = {"scenario": path, "output_dir": tmp_path / "out", "limit": 1}
        with pytest.raises(WabeError) as stopped:
            await run_here(settings, command=("agentbeats-run", str(path)), **request)
        (run,) = (tmp_path / "out" / "runs").iterdir()
        has_results = (run / "results.json").exists()
        key.touch()
        text = stopped.value.message.splitlines()
        (again,) = [line.partition("resume with: ")[2] for line in text if "--resume" in line]
        code, _ = await run_here(settings, **request, resume=again.split()[-1])
    (result,) = [json.loads(file.read_text()) for file in run.glob("results/*/result.json")]
    assert not isinstance(stopped.value, ConfigError)
    assert "LookupError" in text[0]
    assert text[-1] == "LookupError: the key is not there"
    assert not has_results
    assert again == f"agentbeats-run {path} --output-dir {tmp_path / 'out'} --limit 1 --resume {run.name}"
    assert code == 0
    assert result["stop_reason"] == "finished"


# --- crashes ----------------------------------------------------------------------------------------------------------

CHAINED = "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('no model\\nof that name') from e"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('up'); raise ValueError('no model')", "with exit code 1: ValueError: no model"),
        (CHAINED, "with exit code 1: ValueError: no model"),
        ("import sys; print('tired'); sys.exit(7)", "with exit code 7: tired"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL"),
        ("pass", "with exit code 0"),
    ],
    ids=["traceback", "chained", "exit code", "killed", "ended"],
)
async def test_a_crashed_agent_is_shown_with_the_end_of_its_traceback_and_its_log(
    tmp_path: Path, code: str, message: str
) -> None:
    log = tmp_path / "white_agent.log"
    child = await start_child(
        "white_agent", shlex.join([sys.executable, "-c", code]), env={}, log=log, scenario_dir=tmp_path
    )
    async with asyncio.timeout(30):
        await child.process.wait()
    crash = child.crash()
    await child.stop()
    assert crash == f"white_agent ended during the run {message} (its log: {log})"


async def test_an_agent_that_still_runs_has_not_crashed(tmp_path: Path) -> None:
    env = {"PATH": "/bin:/usr/bin"}
    child = await start_child("white_agent", "sleep 60", env=env, log=tmp_path / "log", scenario_dir=tmp_path)
    crash = child.crash()
    await child.stop()
    assert crash is None

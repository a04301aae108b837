"""WABE from Python: build a participant, read runs, judge stored trajectories.

Build a participant, which is one async function:
    serve             answer a judge's requests over A2A
    Decide            the type of the function
    Observation, Page    what it receives: the task and the page (address, snapshot, screenshot)
    Action            what it returns: one tool with its parameters

Read what was recorded:
    load_run, Run     a run as tables, by its folder, its id or "latest"
    load_trajectory, Trajectory    one attempt, in any layout that WABE reads: task, steps, files
    Task, Step        what was asked, and one observation with its action

Judge stored trajectories again:
    score, Scored     by checks or a judge model; the result for one attempt
    Verdict, RunConfig    the verdict in it; the settings for it, such as the judge model
    parse_score, parse_status    how judge models' replies are read

Record an agent that brings its own browser:
    record, Recorder  begin a run of it
    Recording         one attempt, written step by step

Train on a scenario's tasks:
    environment, EnvironmentSession    one session: reset, step, state, close
    environments, EnvironmentHost      several sessions at once
    StepResult, EpisodeFault           the answer to a step, and an end without a reward

Errors:
    WabeError         the base of all errors raised on purpose
    ConfigError       wrong usage or settings, with a remedy
    TrajectoryError   a recording that cannot be read

For example:
    from wabe import load_run
    for task in load_run("latest").tasks:
        print(task["task_id"], task["verdict"], task["steps_taken"])

`help(wabe.load_run)` explains one name. These names are stable; everything else in `judge`, `participants` and
`shared` may move between versions.
"""

import importlib
import importlib.metadata
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.config import RunConfig as RunConfig
    from judge.environment.errors import EpisodeFault as EpisodeFault
    from judge.environment.host import EnvironmentHost as EnvironmentHost
    from judge.environment.session import EnvironmentSession as EnvironmentSession
    from judge.environment.session import StepResult as StepResult
    from judge.judges.rescoring import Scored as Scored
    from judge.parsing import parse_score as parse_score
    from judge.parsing import parse_status as parse_status
    from judge.records.steps import Step as Step
    from judge.records.tasks import Task as Task
    from judge.records.verdicts import Verdict as Verdict
    from judge.store import load_trajectory as load_trajectory
    from judge.trajectory.record import Trajectory as Trajectory
    from participants.base import Decide as Decide
    from participants.base import Observation as Observation
    from participants.base import serve as serve
    from shared.errors import ConfigError as ConfigError
    from shared.errors import TrajectoryError as TrajectoryError
    from shared.errors import WabeError as WabeError
    from shared.models import Action as Action
    from shared.models import Page as Page
    from wabe.recording import Recorder as Recorder
    from wabe.recording import Recording as Recording
    from wabe.recording import record as record
    from wabe.runs import Run as Run
    from wabe.runs import load_run as load_run
    from wabe.scoring import score as score
    from wabe.training import environment as environment
    from wabe.training import environments as environments

# Imported on first use, because a participant's image lacks the judge's dependencies.
_HOMES = MappingProxyType(
    {
        "Action": "shared.models",
        "ConfigError": "shared.errors",
        "Decide": "participants.base",
        "EnvironmentHost": "judge.environment.host",
        "EnvironmentSession": "judge.environment.session",
        "EpisodeFault": "judge.environment.errors",
        "Observation": "participants.base",
        "Page": "shared.models",
        "Recorder": "wabe.recording",
        "Recording": "wabe.recording",
        "Run": "wabe.runs",
        "RunConfig": "judge.config",
        "Scored": "judge.judges.rescoring",
        "Step": "judge.records.steps",
        "StepResult": "judge.environment.session",
        "Task": "judge.records.tasks",
        "Trajectory": "judge.trajectory.record",
        "TrajectoryError": "shared.errors",
        "Verdict": "judge.records.verdicts",
        "WabeError": "shared.errors",
        "environment": "wabe.training",
        "environments": "wabe.training",
        "load_run": "wabe.runs",
        "load_trajectory": "judge.store",
        "parse_score": "judge.parsing",
        "parse_status": "judge.parsing",
        "record": "wabe.recording",
        "score": "wabe.scoring",
        "serve": "participants.base",
    }
)
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("wabe")
    if name not in _HOMES:
        raise AttributeError(f"module 'wabe' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

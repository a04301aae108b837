"""WABE from Python: build a participant, read runs, judge stored trajectories.

Build a participant, which is one async function:
    serve             answer a judge's requests over A2A
    Observation       what the function receives: the task and the page
    Action            what it returns: one tool with its parameters

Read what was recorded:
    load_run          a run as tables, by its folder, its id or "latest"
    Run               these tables: attempts, tasks, steps, checks
    load_trajectory   one attempt, in any layout that WABE reads

Judge stored trajectories again:
    score             by declared checks, or with a judge model
    RunConfig         the settings for it, such as the judge model
    parse_score, parse_status    how judge models' replies are read

Record an agent that brings its own browser:
    record            begin a run of it

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
    from judge.parsing import parse_score as parse_score
    from judge.parsing import parse_status as parse_status
    from judge.store import load_trajectory as load_trajectory
    from participants.base import Observation as Observation
    from participants.base import serve as serve
    from shared.models import Action as Action
    from wabe.recording import record as record
    from wabe.runs import Run as Run
    from wabe.runs import load_run as load_run
    from wabe.scoring import score as score

# Imported on first use, because a participant's image lacks the judge's dependencies.
_HOMES = MappingProxyType(
    {
        "Action": "shared.models",
        "Observation": "participants.base",
        "Run": "wabe.runs",
        "RunConfig": "judge.config",
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

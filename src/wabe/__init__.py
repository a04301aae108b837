"""WABE from Python: build a participant, read runs, judge stored trajectories.

These names are stable; everything else in `judge`, `participants` and `shared` may move between versions.

    from wabe import Action, Observation, serve       # a participant is one async function
    from wabe import load_run, load_trajectory        # what a run recorded
    from wabe import RunConfig, score                 # judge stored trajectories again
    from wabe import record                           # record an agent that brings its own browser
    from wabe import parse_score, parse_status        # how judge models' replies are read
"""

import importlib
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
    if name not in _HOMES:
        raise AttributeError(f"module 'wabe' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

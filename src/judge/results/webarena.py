"""A run as the folder that WebArena-Verified's submission command reads.

Layout: `<task number>/agent_response.json` and `<task number>/network.har`.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from judge.evaluators.webarena import evaluator_trace
from judge.judges.webarena import read_trace
from judge.results.export import Exported
from judge.scenario.webarena import task_number
from judge.trajectory.files import load_trajectory
from shared.errors import ConfigError, TrajectoryError
from shared.files import write_atomic, write_json


def export_webarena(folders: Iterable[Path], output: Path) -> Iterator[Exported]:
    """Write each task folder of a run under `output`. Tasks that cannot be written are reported.

    The answer is written as it was given, also where it is not JSON: whether it can be read is the benchmark's to say.
    Raises `ConfigError` when `output` cannot be written to.
    """
    for source in folders:
        try:
            number = task_number(source.name)
            if number is None:
                raise TrajectoryError("not a task that was imported from WebArena-Verified")
            trajectory = load_trajectory(source)
            if trajectory.is_aborted:
                raise TrajectoryError(f"aborted: {trajectory.error or trajectory.stop_reason}")
            har, dropped = read_trace(trajectory)
            if dropped:
                raise TrajectoryError(f"the network trace is incomplete: {dropped} requests were not recorded")
            trace = evaluator_trace(har)
            target = output / str(number)
            shutil.rmtree(target, ignore_errors=True)
            write_atomic(target / "agent_response.json", (trajectory.final_answer or "").encode("utf-8", "replace"))
            write_json(target / "network.har", trace)
            yield Exported(task_id=source.name, folder=target)
        except TrajectoryError as error:
            yield Exported(task_id=source.name, reason=str(error))
        except OSError as error:
            raise ConfigError(
                f"{output}: {error.strerror or error}", remedy="choose another --output or free some space"
            ) from None

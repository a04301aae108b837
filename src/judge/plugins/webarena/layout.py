"""The folder of a submission to WebArena-Verified: `<task number>/agent_response.json` and `network.har`."""

from collections.abc import Mapping
from pathlib import Path

from judge.plugins.webarena.judge import read_trace
from judge.plugins.webarena.package import EvaluatorError, evaluator_trace, packaged_tasks
from judge.plugins.webarena.tasks import task_number
from judge.trajectory.formats import ExportedTask, FolderCheck, Format, FormatWriter, Source, json_text
from shared.errors import ConfigError, TrajectoryError
from shared.settings import Settings
from shared.text import counted


def write(source: Source) -> ExportedTask:
    """The task's files. The answer is unchanged: the benchmark decides whether it is readable."""
    number = task_number(source.name)
    if number is None:
        raise TrajectoryError("not a task that was imported from WebArena-Verified")
    trajectory = source.trajectory
    if trajectory.is_aborted:
        raise TrajectoryError(f"aborted: {trajectory.error or trajectory.stop_reason}")
    har, dropped = read_trace(trajectory)
    if dropped:
        raise TrajectoryError(f"the network trace is incomplete: {counted(dropped, 'request')} went unrecorded")
    answer = (trajectory.final_answer or "").encode("utf-8", "replace").decode()
    return ExportedTask(
        {"agent_response.json": answer, "network.har": json_text(evaluator_trace(har))}, name=str(number)
    )


def check(folder: Path, _lengths: Mapping[str, int], settings: Settings) -> FolderCheck:
    """Have the folder checked by the benchmark's submission command."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder", remedy="give the folder of a submission")
    try:
        accepted = packaged_tasks(settings.webarena_python, folder)
    except EvaluatorError as error:
        return FolderCheck((), 0, 0, fault=str(error))
    folder_names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    refused_names = [name for name in folder_names if not name.isdecimal() or int(name) not in accepted]
    problems = [f"{name}: refused by webarena-verified create-submission-pkg" for name in refused_names]
    return FolderCheck(problems, len(folder_names) - len(refused_names), len(folder_names))


WRITER = FormatWriter(write=write, check=check)
FORMAT = Format(writer=WRITER)

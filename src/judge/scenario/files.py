"""The files that a scenario's tasks and sites declare for uploads: read beside the scenario, and sent in requests.

A request contains the content: a judge never reads a file that a request names.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from judge.records.checks import plain_checks
from judge.records.files import MAX_FILE_BYTES, TaskFile, problem_with_sizes
from judge.records.sites import RunSites
from judge.records.tasks import Task
from judge.scenario.models import SiteEntry
from shared.fields import did_you_mean, printable
from shared.files import read_file, reason_of
from shared.validation import Problem

_SEND_SMALLER = "declare smaller files"


def with_site_files(task: Task, sites: Iterable[SiteEntry], run: RunSites) -> Task:
    """The task with the files of its sites, which come after its own."""
    area = run.of(task)
    names = [each.name for each in task.files]
    names += [name for site in sites if area.holds(site.endpoint) for name in site.files]
    if len(names) == len(task.files):
        return task
    return task.model_copy(update={"files": tuple(TaskFile(name=name) for name in dict.fromkeys(names))})


def with_contents(task: Task, contents: Mapping[str, bytes]) -> Task:
    """The task with the contents of its files; without content, a file is left as it is."""
    if not task.files:
        return task
    files_with_contents = (
        TaskFile.of(each.name, contents[each.name]) if each.name in contents else each for each in task.files
    )
    return task.model_copy(update={"files": tuple(files_with_contents)})


class FilesBeside:
    """The files in a scenario's folder, each read once; `known` are those whose content need not be read."""

    def __init__(self, folder: Path, known: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._folder = folder
        self._contents = dict(known)

    def of(self, task: Task) -> Task | Problem:
        """The task with the contents of its files, or what is wrong with one of them."""
        for each in task.files:
            if each.name not in self._contents:
                path = self._folder / each.name
                try:
                    # It could lead to any file of this machine.
                    if path.is_symlink():
                        return Problem(("files",), f"{path}: a symbolic link", "put the file itself there")
                    self._contents[each.name] = read_file(path, max_bytes=MAX_FILE_BYTES)
                except (OSError, ValueError) as error:
                    return Problem(("files",), f"{path}: {reason_of(error)}", "put the file beside the scenario")
                if problem := problem_with_sizes(TaskFile.of(*each) for each in self._contents.items()):
                    return Problem(("files",), problem, _SEND_SMALLER)
        return with_contents(task, self._contents)


def files_problem(task: Task) -> Problem | None:
    """What is wrong with the task's files, or with a check that names one; `None` if nothing is."""
    if (missing := next((each.name for each in task.files if each.data is None), None)) is not None:
        return Problem(("files",), f"{printable(missing)} is not in files", "send its content as base64 in files")
    names = [each.name for each in task.files]
    for place, check in enumerate(task.checks):
        for name in (name for each in plain_checks([check]) for name in each.uploads):
            if name not in names:
                remedy = did_you_mean(name, names) if names else "declare it: files = […]"
                return Problem(("checks", place), f"{printable(name)} is not one of the task's files", remedy)
    for each in task.watched:
        if (unknown := next((name for name in each.uploads if name not in names), None)) is not None:
            remedy = did_you_mean(unknown, names) if names else "declare it: files = […]"
            return Problem(("policies",), f"{printable(unknown)} is not one of the task's files", remedy)
    return None


def contents_of(tasks: Sequence[Task]) -> dict[str, bytes]:
    """The contents of all files of tasks, by name."""
    return {each.name: each.data for task in tasks for each in task.files if each.data is not None}

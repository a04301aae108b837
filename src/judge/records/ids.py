"""Task ids as names of folders: usable on every file system, and different from each other on each. Pure."""

from collections.abc import Iterable

from judge.records.files import is_reserved
from judge.records.tasks import TASK_ID

USABLE = "use 1 to 128 of A-Z a-z 0-9 _ -"


def problem_of(task_id: str, sources: dict[str, str]) -> str:
    """The problem with an id, as the continuation of a sentence; empty if there is none.

    `sources` contains the ids before it, by their form on file systems that do not distinguish case; the id is added.
    """
    if not TASK_ID.fullmatch(task_id):
        return f"is not usable as a folder name: {USABLE}"
    if is_reserved(task_id):
        return "is a name that Windows reserves"
    before = sources.setdefault(task_id.casefold(), task_id)
    if before != task_id:
        return f"differs from {before} only in case: on some file systems both are one folder"
    return ""


def repeated(names: Iterable[str]) -> str | None:
    """The first name that an earlier one equals. Some file systems do not tell names apart by case."""
    known = set[str]()
    for name in names:
        if name.casefold() in known:
            return name
        known.add(name.casefold())
    return None

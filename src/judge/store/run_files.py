"""The files of a run, each declared once: what begins a run, is uploaded, merged and signed follows from it.

A file not declared is signed, so that nothing is left out, and neither uploaded nor merged. Attempts are
uploaded and merged one by one, with their whole folders. Deleting a run deletes its folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from shared.files import join_lines

# Recorded files are signed. Derived ones can be made again from those, internal ones mean nothing to anybody else.
FileKind = Literal["recorded", "derived", "internal"]


@dataclass(frozen=True)
class RunFile:
    """A file of a run, or a folder, whose `name` ends with a slash. With `anywhere`, it is a pattern for any folder.

    `begins`: a run with it has begun. `uploaded`: when it is put into an object store; `grows` is also after every
    attempt. `has_lines`: merging the shards of a run joins their lines.
    """

    name: str
    kind: FileKind = "recorded"
    anywhere: bool = False
    begins: bool = False
    uploaded: Literal["never", "at the ends", "grows"] = "never"
    has_lines: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, with everything in it."""
        return self.name.endswith("/")

    def has(self, path: str) -> bool:
        """Whether it is, or contains, the file at this path in the run's folder."""
        if self.is_folder:
            return path.startswith(self.name)
        return fnmatchcase(path.rpartition("/")[2] if self.anywhere else path, self.name)


RUN = RunFile("run.json", begins=True, uploaded="at the ends")
SUBMISSION = RunFile("results.json", begins=True, uploaded="at the ends")
METERING = RunFile("metering.jsonl", uploaded="grows", has_lines=True)
ENVELOPE = RunFile("signature.dsse.json", "internal")
# What continues the run after a stop of its judge (`judge.server.resuming`).
RESUMING = RunFile("resuming.json", "internal")
# How many episodes of a served scenario there were (`judge.store.episodes`).
EPISODE_COUNTS = RunFile("episodes.json")
# In the order in which they are uploaded: a run with results counts as complete.
RUN_FILES = (
    RunFile("results/", begins=True),
    METERING,
    RUN,
    SUBMISSION,
    EPISODE_COUNTS,
    RunFile("report/", "derived"),
    RunFile("report-public/", "derived"),
    RunFile("export/", "derived"),
    RunFile("films/", "derived"),
    RunFile("report.html", "derived", anywhere=True),
    ENVELOPE,
    RESUMING,
    # Locks, and the address of a live page.
    RunFile(".*.lock", "internal", anywhere=True),
    RunFile(".live", "internal", anywhere=True),
)


def declared_at(path: str) -> RunFile | None:
    """What is declared of the file at this path in a run's folder."""
    return next((each for each in RUN_FILES if each.has(path)), None)


def kind_of(path: str) -> FileKind:
    """The kind of the file at this path in a run's folder."""
    declared = declared_at(path)
    return declared.kind if declared else "recorded"


def uploaded(*, growing: bool = False) -> list[str]:
    """The names of the files put into an object store; or only of those that grow with each attempt."""
    return [each.name for each in RUN_FILES if each.uploaded == "grows" or (each.uploaded != "never" and not growing)]


def join_files(run: Path, shards: Sequence[Path]) -> None:
    """Write the files of a run whose lines are its shards'. Raises `OSError` or `ValueError`."""
    for each in RUN_FILES:
        parts = [shard / each.name for shard in shards if (shard / each.name).is_file()]
        if each.has_lines and parts:
            join_lines(parts, run / each.name)

"""People's labels of attempts, beside a run: one file for each labeller, to which lines are only appended.

A label is bound to the digest of the trajectory as it was seen, so that it counts for no other one. The last line on an
attempt counts; one without a label takes back what was before. What cannot be read stays in its file, and is reported.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, ValidationError

from judge.records.tasks import key_of
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.fields import Sha256
from shared.files import decode, read_errors, read_file, write_errors
from shared.models import Record
from shared.strict_json import parse_json

LabelWord = Literal["success", "failure", "undecided"]
LABELS = "labels"
PAGE_VERSION = 1
MAX_NOTE_CHARS = 2_000
LABELLER = re.compile(r"[A-Za-z0-9_-]{1,40}")
DEFAULT_LABELLER = "labeller"
_MAX_FILE_BYTES = 64_000_000


class LabelLine(Record):
    """A label of one attempt by one person. `seconds` is how long it was shown; `page` the version of the page.

    `blind`: without the verdict and the agent. `adjudicates`: given by someone who saw the others' labels. An imported
    label has `page` 0.
    """

    task_id: Annotated[str, Field(max_length=200)]
    epoch: Annotated[int, Field(ge=1)] = 1
    trajectory_sha256: Sha256
    label: LabelWord | None
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] = ""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    page: Annotated[int, Field(ge=0)] = PAGE_VERSION
    blind: bool = True
    adjudicates: bool = False

    @property
    def attempt(self) -> "AttemptKey":
        """The labelled attempt."""
        return AttemptKey(self.task_id, self.epoch, self.trajectory_sha256)


class AttemptKey(NamedTuple):
    """One attempt: its task and epoch, and the digest of its trajectory."""

    task_id: str
    epoch: int
    sha256: str

    @property
    def name(self) -> str:
        """The name of the task in its epoch."""
        return key_of(self.task_id, self.epoch)


class LabelProblem(NamedTuple):
    """A line of a label file that does not count: `number` from 1, and why."""

    file: str
    number: int
    why: str

    def __str__(self) -> str:
        return f"labels/{self.file}: line {self.number}: {self.why}"


@dataclass(frozen=True)
class Opinions:
    """What people say of one attempt, by labeller."""

    lines: Mapping[str, LabelLine]

    @property
    def decided(self) -> Mapping[str, LabelLine]:
        """Those who could decide, without adjudications."""
        return {
            name: line
            for name, line in self.lines.items()
            if line.label in ("success", "failure") and not line.adjudicates
        }

    @property
    def is_conflict(self) -> bool:
        """Whether people who did not see each other's labels differ, also on whether it can be decided."""
        return len({line.label for line in self.lines.values() if not line.adjudicates}) > 1

    @property
    def adjudicated(self) -> LabelWord | None:
        """The label of whoever adjudicated; of several people, the label that all of them gave."""
        labels = {line.label for line in self.lines.values() if line.adjudicates}
        return labels.pop() if len(labels) == 1 else None

    @property
    def label(self) -> LabelWord | None:
        """One label of several: the adjudicated one, else the one of more than half of all who labelled, also of
        those who could not decide; `undecided` if there is neither.
        """
        if self.adjudicated is not None:
            return self.adjudicated
        words = [line.label for line in self.lines.values()]
        for word in ("success", "failure"):
            if 2 * words.count(word) > len(words):
                return word
        return "undecided" if self.lines else None


def rule_of(opinions: Sequence[Opinions]) -> str:
    """Which rule made one label of several: `single`, `unanimous`, `majority` or `adjudicated`."""
    if all(len(each.lines) < 2 for each in opinions):
        return "single"
    conflicts = [each for each in opinions if each.is_conflict]
    if not conflicts:
        return "unanimous"
    return "adjudicated" if all(each.adjudicated is not None for each in conflicts) else "majority"


@dataclass(frozen=True)
class LabelFiles:
    """All label files of a run: the lines that can be read, by labeller, with the number of lines of each file."""

    lines: Mapping[str, Sequence[LabelLine]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[LabelProblem, ...] = ()

    @classmethod
    def read(cls, folder: Path, upto: Mapping[str, int] | None = None) -> "LabelFiles":
        """The files in a folder; of each only the first lines, if `upto` says how many.

        Raises `ConfigError` for one that is not a file of lines of text.
        """
        lines, counts, problems = {}, {}, list[LabelProblem]()
        paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else ()
        for path in paths:
            if LABELLER.fullmatch(path.stem) and (upto is None or path.stem in upto):
                whole = _lines_of(path)
                known = whole[: upto[path.stem]] if upto is not None else whole
                lines[path.stem] = list(_parsed(path, known, problems))
                counts[path.stem] = len(known)
        return cls(lines, counts, tuple(problems))

    @cached_property
    def opinions(self) -> Mapping[AttemptKey, Opinions]:
        """By attempt, the last line of each labeller, unless it takes back what was before."""
        opinions: dict[AttemptKey, dict[str, LabelLine]] = {}
        for labeller, lines in self.lines.items():
            for line in lines:
                own = opinions.setdefault(line.attempt, {})
                own.pop(labeller, None)
                if line.label is not None:
                    own[labeller] = line
        return {attempt: Opinions(own) for attempt, own in opinions.items() if own}


def labels_folder(store: RunStore) -> Path:
    """Where the labels of a run are; in a folder of another tool they are beside its reports."""
    return store.derived / LABELS


def label_file(store: RunStore, labeller: str) -> Path:
    """The file of a labeller. Raises `ConfigError` for an unusable name."""
    if not LABELLER.fullmatch(labeller):
        raise ConfigError(
            f"--as {labeller[:60]!a} is not usable as a name", remedy="use 1 to 40 letters, digits, '_' and '-'"
        )
    return labels_folder(store) / f"{labeller}.jsonl"


def append_label(path: Path, line: LabelLine) -> None:
    """Append a line; it is on the disk before this returns. Raises `ConfigError`."""
    data = line.model_dump_json().encode() + b"\n"
    with write_errors(path, "check who owns the folder, and the disk's space"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            raise OSError(errno.ELOOP, "a link, through which nothing is written", str(path))
        with path.open("a+b", buffering=0) as stream:
            # A line that was torn when the machine stopped is ended first, or this one would be lost with it.
            if stream.seek(0, os.SEEK_END):
                stream.seek(-1, os.SEEK_END)
                data = data if stream.read(1) == b"\n" else b"\n" + data
            stream.write(data)
            os.fsync(stream.fileno())


def _lines_of(path: Path) -> list[bytes]:
    with read_errors(path, "move it elsewhere"):
        data = read_file(path, max_bytes=_MAX_FILE_BYTES)
    return data.splitlines(keepends=True)


def _parsed(path: Path, lines: Sequence[bytes], problems: list[LabelProblem]) -> Iterator[LabelLine]:
    for number, data in enumerate(lines, 1):
        try:
            yield LabelLine.model_validate(parse_json(decode(data)))
        except ValidationError as error:
            key = ".".join(map(str, error.errors()[0]["loc"])) or "line"
            problems.append(LabelProblem(path.name, number, f"not a label: {key}: {error.errors()[0]['msg'][:100]}"))
        except (ValueError, RecursionError):
            is_torn = number == len(lines) and not data.endswith(b"\n")
            why = "cut off: a crash while it was written; ignored" if is_torn else "not JSON; ignored"
            problems.append(LabelProblem(path.name, number, why))

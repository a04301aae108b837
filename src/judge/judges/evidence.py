"""The evidence of an attempt that a judge model sees: fenced blocks of single, bounded lines, and screenshots.

Everything that a task or an attempt can influence is data. Each block is enclosed by two lines with its name and a tag
computed from its content, so no content can close the fence around it; each entry is one escaped line. Marks that mean
something in a reply, such as `<think>`, are escaped, because the judge model may repeat what it reads.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from judge.parsing import without_marks
from judge.records.tasks import Task
from judge.trajectory.paths import MAX_IMAGE_BYTES
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.files import read_errors, read_file
from shared.images import media_type
from shared.llm.model import ImagePart
from shared.models import Record
from shared.text import bounded_line, split_line

# Limits, so that text from a task or a participant cannot push other evidence out of the judge model's context.
MAX_TASK_CHARS = 4_000
MAX_ANSWER_CHARS = 4_000
MAX_ACTION_CHARS = 500
MAX_THOUGHT_CHARS = 600
MAX_LINE_CHARS = 600
MAX_LINES = 200
# Part of a judge's id if it sees answers or thoughts, because prompt sets do not contain the titles of these blocks.
# Increase it when a title changes.
CLAIMS_VERSION = 2


class Shot(Record):
    """A screenshot of a trajectory: its number (from 1), its file, and how often it was repeated in a row."""

    place: int
    path: Path
    times: int = 1


def block(title: str, lines: Iterable[str]) -> str:
    """A fenced block of escaped lines."""
    body = without_marks("\n".join(lines))
    # To close the fence, content would have to contain the hash of itself.
    tag = hashlib.sha256(f"{title}\0{body}".encode()).hexdigest()[:10]
    return f"[[begin {title} {tag}]]\n{body}\n[[end {title} {tag}]]"


def numbered(lines: Sequence[str], limit: int) -> list[str]:
    """`1. …` for each text, escaped and bounded; if there are too many, the first few, a note, and the last ones."""
    texts = [f"{number}. {bounded_line(text, limit)}" for number, text in enumerate(lines, 1)]
    if len(texts) <= MAX_LINES:
        return texts
    head = MAX_LINES // 10
    left_out = len(texts) - MAX_LINES
    return [*texts[:head], f"({left_out} left out here)", *texts[head + left_out :]]


def task_block(task: Task) -> str:
    """The task in its words, and the website it is about."""
    lines = [f"Task: {bounded_line(task.task, MAX_TASK_CHARS)}"]
    if task.website:
        lines.append(f"Website: {bounded_line(task.website, MAX_LINE_CHARS)}")
    return block("task", lines)


def key_points_block(points: Sequence[str]) -> str:
    """The key points, numbered; empty if there are none."""
    return block("key points", numbered(points, MAX_LINE_CHARS)) if points else ""


def actions_block(trajectory: Trajectory) -> str:
    """The factual action lines, numbered; what was typed or chosen is in quotation marks."""
    lines = numbered([_quoted(line) for line in trajectory.action_history], MAX_ACTION_CHARS)
    return block("actions carried out", lines or ["(no action was carried out)"])


def answer_block(trajectory: Trajectory) -> str:
    """The participant's final answer, marked as a claim."""
    answer = trajectory.final_answer
    answer_text = bounded_line(answer, MAX_ANSWER_CHARS) if answer and answer.strip() else "(no answer was given)"
    return block("final answer of the participant: a claim, not evidence", [answer_text])


def _quoted(line: str) -> str:
    """An action line with its value quoted, and quotation marks in the value replaced; other text is unchanged."""
    parts = split_line(line)
    if parts is None or not parts[2]:
        return line
    value = parts[2].replace('"', "'")
    return f'{line.removesuffix(parts[2])}"{value}"' if line.endswith(parts[2]) else line


def thoughts_block(trajectory: Trajectory) -> str:
    """The participant's stated thoughts, marked as claims."""
    lines = numbered(trajectory.thoughts, MAX_THOUGHT_CHARS)
    return block("thoughts of the participant: claims, not evidence", lines or ["(none)"])


def reasons_block(reasons: Sequence[str]) -> str:
    """Why each attached screenshot was found relevant, in order; empty if there are none."""
    lines = [f"{number}. {bounded_line(text, MAX_LINE_CHARS) or '(no note)'}" for number, text in enumerate(reasons, 1)]
    return block("notes on the attached screenshots, one each, which may repeat what pages say", lines) if lines else ""


def read_shots(trajectory: Trajectory) -> tuple[Shot, ...]:
    """The screenshots that differ from the previous one. Raises `TrajectoryError` if one cannot be read."""

    def digest(numbered: tuple[int, Path]) -> bytes:
        return hashlib.sha256(read_image(numbered[1])).digest()

    rows = [list(row) for _, row in groupby(enumerate(trajectory.screenshots, 1), key=digest)]
    return tuple(Shot(place=row[0][0], path=row[0][1], times=len(row)) for row in rows)


def image_part(path: Path) -> ImagePart:
    """A screenshot as part of a request, byte for byte. Raises `TrajectoryError`."""
    data = read_image(path)
    kind = media_type(data)
    if kind is None:
        raise TrajectoryError("not a JPEG, PNG or WebP image", location=str(path))
    return ImagePart(data=data, media_type=kind, detail="high")


def read_image(path: Path) -> bytes:
    """The bytes of an image. Raises `TrajectoryError`."""
    with read_errors(path, kind=TrajectoryError):
        return read_file(path, max_bytes=MAX_IMAGE_BYTES)

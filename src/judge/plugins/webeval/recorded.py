"""What both layouts have: files with an object on each line, and tokens by component."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.trajectory.foreign_verdicts import tokens_of
from judge.trajectory.paths import inside
from shared.claims import ClaimedUsage
from shared.errors import TrajectoryError
from shared.files import MAX_FILE_BYTES, read_errors, read_file, reason_of
from shared.strict_json import parse_json


def read_lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a file with one on each line. An incomplete last line, left by a killed process, is left out.

    Raises `TrajectoryError`.
    """
    path = inside(folder, name, source=folder / name, max_bytes=MAX_FILE_BYTES)
    with read_errors(path, kind=TrajectoryError):
        lines = read_file(path).decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise TrajectoryError(f"line {number}: {reason_of(error)}", location=str(path)) from None
        if not isinstance(value, dict):
            raise TrajectoryError(
                f"line {number}: expected a JSON object, found {type(value).__name__}", location=str(path)
            )
        yield value


def usage_of(components: Mapping[str, Any]) -> ClaimedUsage | None:
    """The sum over `{component: {"prompt_tokens": n, "completion_tokens": n}}`; `None` without any."""

    def total(key: str) -> int:
        counts = [value.get(key) for value in components.values() if isinstance(value, Mapping)]
        # Not `isinstance`, because a bool is an int.
        return sum(count for count in counts if type(count) is int and count > 0)

    return tokens_of(total("prompt_tokens"), total("completion_tokens"))

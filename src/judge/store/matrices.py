"""The stored matrices: `matrices/<id>.json` lists the runs of several agents on several task sets."""

from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from shared.files import read_json
from shared.models import Record

SCHEMA = "1"


class Cell(Record):
    """A cell on disk: the labels of its task set and agent, a digest of what was asked for, and its run."""

    scenario: str
    agent: str
    asked_sha256: str
    run_id: str


class Matrix(Record):
    """A matrix on disk."""

    schema_version: str = SCHEMA
    matrix_id: str
    started_at: float
    cells: tuple[Cell, ...]


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file. Raises `OSError` or `ValueError`."""
    matrix = Matrix.model_validate(read_json(path))
    if matrix.schema_version != SCHEMA:
        raise ValueError("another version")
    return matrix


def stored_matrices(output_dir: Path) -> list[Matrix]:
    """All matrices that can be read, oldest first."""
    matrices = []
    for path in sorted((output_dir / "matrices").glob("*.json")):
        with suppress(OSError, ValueError, ValidationError):
            matrices.append(read_matrix(path))
    return sorted(matrices, key=lambda each: each.started_at)

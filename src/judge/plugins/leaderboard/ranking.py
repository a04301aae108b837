"""Leaderboard rows from submission files, computed with the same SQL as on a leaderboard page, in DuckDB.

Types are inferred over all files together, as `read_json_auto` does on the page: structures are merged by name, and
integers stay integers. A template adds the published keys, so that a column that no file has is NULL, not an error.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from judge.records.tasks import Level, Task
from judge.results.entries import counts_of
from judge.results.rows import ENTRY_COLUMNS
from judge.results.submission import read_submissions, task_digest
from shared.errors import ConfigError
from shared.fields import as_mapping, closest
from shared.files import read_errors, read_text
from shared.imports import optional_package

if TYPE_CHECKING:
    import duckdb

_QUERIES = Path(__file__).parent / "queries"
_COUNTS = counts_of(())
_MAX_COUNT = 1_000_000_000
# An example of each type: 0.5 makes a column one of doubles. A missing list would become text.
_EXAMPLES: Mapping[type, Any] = {str: "", int: 1, float: 0.5, bool: True, tuple: [""]}
_TASK = {"task_sha256": "", **{each.entry: _EXAMPLES[each.type] for each in ENTRY_COLUMNS if each.type in _EXAMPLES}}
_BY_LEVEL = dict.fromkeys(get_args(Level), _COUNTS)
_TEMPLATE: dict[str, Any] = {
    "participants": {"white_agent": ""},
    "results": [
        {
            "winner": "",
            "detail": {**_COUNTS, "by_level": _BY_LEVEL, "cost_usd": 0.5, "judge": {"model": ""}, "tasks": [_TASK]},
        }
    ],
}
# Queries have access to memory only: no files, no network, no extensions.
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "memory_limit": "1GB",
    "threads": 2,
}

# Stands in queries whose rows are submissions, for columns that say which one, and of which tasks.
_PLACE, _PLACES = "/* place */", 'number AS "#", task_set AS "Tasks",'

QueryRows = tuple[list[str], list[tuple[Any, ...]]]


class Placed(NamedTuple):
    """A submission's row: values of several queries by column, its file, and its result (the first of its shards)."""

    values: Mapping[str, Any]
    path: Path
    submission: Mapping[str, Any]
    result: Mapping[str, Any]


def query_names() -> list[str]:
    """The bundled queries, the default first."""
    names = sorted(path.stem for path in _QUERIES.glob("*.sql"))
    return ["overall", *(name for name in names if name != "overall")]


def rows(files: Sequence[Path], query: str | None = None) -> QueryRows:
    """Columns and rows of `query` (a bundled name or an `.sql` file; default `overall`) over the submission files.

    The table `results` has one row per submission. Raises `ConfigError` naming the file, the query or the missing
    package.
    """
    name = query or "overall"
    sql = _read_query(name)
    documents = [(path, submission) for path in files for submission in _read(path)]
    with _loaded(documents) as connection:
        return _run(connection, name, sql)


class PlacedRows(NamedTuple):
    """The rows of several files, in the files' order, and why each of the other files is left out."""

    rows: list[Placed]
    left_out: Mapping[Path, str]


def placed_rows(files: Sequence[Path], queries: Sequence[str]) -> PlacedRows:
    """The rows of bundled queries whose rows are submissions, joined.

    A file that cannot be read or queried is left out, and takes no other one with it. Raises `ConfigError` if none is
    left, or for a missing package.
    """
    documents, left_out = read_usable(files)
    rows, unusable = _placed_apart(documents, queries)
    left_out |= unusable
    require_usable(files, left_out)
    return PlacedRows(rows, left_out)


def read_usable(files: Sequence[Path]) -> tuple[list[tuple[Path, list[dict[str, Any]]]], dict[Path, str]]:
    """The files that can be read, with their submissions, and why each of the others is left out.

    Raises `ConfigError` if none is left.
    """
    documents: list[tuple[Path, list[dict[str, Any]]]] = []
    left_out: dict[Path, str] = {}
    for path in files:
        try:
            documents.append((path, _read(path)))
        except ConfigError as error:
            if len(files) == 1:
                raise
            left_out[path] = str(error).removeprefix(f"{path}: ")
    require_usable(files, left_out)
    return documents, left_out


def require_usable(files: Sequence[Path], left_out: Mapping[Path, str]) -> None:
    """Raises `ConfigError` if all files are left out."""
    if files and len(left_out) == len(set(files)):
        raise ConfigError(f"no file is a usable submission, such as {files[0]}: {left_out[files[0]]}")


def _read(path: Path) -> list[dict[str, Any]]:
    """The submissions of a file. Raises `ConfigError`, also for numbers that no run can have."""
    submissions = read_submissions(path)
    for submission in submissions:
        for result in submission.get("results") or ():
            detail = as_mapping(as_mapping(result).get("detail"))
            for key in _COUNTS.keys() & detail.keys():
                value = detail[key]
                most = 100 if "rate" in key else _MAX_COUNT
                if isinstance(value, int | float) and not 0 <= value <= most:
                    raise ConfigError(f"{path}: detail.{key}: {value} is impossible", remedy="leave this file out")
    return submissions


def _placed_apart(
    documents: Sequence[tuple[Path, list[dict[str, Any]]]], queries: Sequence[str]
) -> tuple[list[Placed], dict[Path, str]]:
    """The rows of files, in halves as long as they do not go together; and the files that do not go alone."""
    try:
        return _placed([(path, each) for path, submissions in documents for each in submissions], queries), {}
    except ConfigError as error:
        if len(documents) < 2:
            return [], {path: str(error).removeprefix(f"{path}: ") for path, _ in documents}
    half = len(documents) // 2
    rows, left_out = _placed_apart(documents[:half], queries)
    more_rows, more_left_out = _placed_apart(documents[half:], queries)
    return [*rows, *more_rows], left_out | more_left_out


def _placed(documents: Sequence[tuple[Path, Mapping[str, Any]]], queries: Sequence[str]) -> list[Placed]:
    # As the queries number them: the results of all files, one after the other.
    results = [
        (path, submission, as_mapping(result))
        for path, submission in documents
        for result in submission.get("results") or ()
    ]
    rows_by_place: dict[int, dict[str, Any]] = {}
    with _loaded(documents) as connection:
        for name in queries:
            columns, values = _run(connection, name, _read_query(name).replace(_PLACE, _PLACES))
            for row in values:
                known = dict(zip(columns, row, strict=True))
                rows_by_place[known["#"]] = known | rows_by_place.get(known["#"], {})
    return [Placed(values, *results[number - 1]) for number, values in sorted(rows_by_place.items())]


def task_set_of(tasks: Iterable[Task]) -> str:
    """The digest by which the queries tell task sets apart, of submissions with these tasks."""
    digests = ",".join(sorted({task_digest(task) for task in tasks}))
    return hashlib.md5(digests.encode(), usedforsecurity=False).hexdigest()[:8]


@contextmanager
def _loaded(documents: Sequence[tuple[Path, Mapping[str, Any]]]) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection with the table `results`, which reaches nothing else."""
    with optional_package("wabe leaderboard needs DuckDB", "leaderboard"):
        # Imported here because the import is slow.
        import duckdb
    with duckdb.connect(":memory:", config=_LOCKED) as connection:
        # Otherwise the query could change these settings.
        connection.execute("SET lock_configuration = true")
        _load(connection, documents)
        yield connection


def _run(connection: "duckdb.DuckDBPyConnection", name: str, sql: str) -> QueryRows:
    import duckdb

    try:
        cursor = connection.execute(sql)
        if cursor is None or not cursor.description:
            raise ConfigError(f"query {name}: it selects nothing", remedy="correct the SQL")
        return [column[0] for column in cursor.description], cursor.fetchall()
    except duckdb.Error as error:
        raise ConfigError(f"query {name}: {_first_line(error)}", remedy="correct the SQL") from None


def _read_query(name: str) -> str:
    if name in query_names():
        return (_QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    where = f"--query {name[:100]!a} is neither a bundled query nor a readable file"
    with read_errors(where, f"{closest(name, query_names())}known: {', '.join(query_names())}"):
        return read_text(Path(name))


def _load(connection: "duckdb.DuckDBPyConnection", documents: Sequence[tuple[Path, Mapping[str, Any]]]) -> None:
    """Create the table `results`. If the files cannot be combined, name one that does not load by itself."""
    import duckdb

    texts = [json.dumps(submission, allow_nan=False) for _, submission in documents]
    try:
        _make_table(connection, texts)
    except duckdb.Error as error:
        for (path, _), text in zip(documents, texts, strict=True):
            try:
                _make_table(connection, [text])
            except duckdb.Error as alone:
                raise ConfigError(f"{path}: {_first_line(alone)}", remedy="leave this file out") from None
        raise ConfigError(
            f"the files do not fit together: {_first_line(error)}", remedy="give fewer files to find the odd one"
        ) from None


def _make_table(connection: "duckdb.DuckDBPyConnection", texts: Sequence[str]) -> None:
    connection.execute("CREATE OR REPLACE TEMP TABLE raw (document JSON)")
    connection.executemany("INSERT INTO raw VALUES (?)", [[json.dumps(_TEMPLATE)], *([text] for text in texts)])
    # The template only contributes column types, so its row is deleted.
    structure = connection.execute("SELECT json_group_structure(document) FROM raw").fetchone()
    connection.execute("DELETE FROM raw WHERE rowid = 0")
    connection.execute(
        "CREATE OR REPLACE TABLE results AS"
        " SELECT typed.* FROM (SELECT json_transform(document, ?) AS typed FROM raw ORDER BY rowid)",
        [structure[0] if structure else "{}"],
    )
    connection.execute("DROP TABLE raw")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]

"""A run as tables: one row per task, attempt, step and check."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.records.steps import Step
from judge.results.tables import Unreadable, table_of
from judge.store.layout import output_folder, resolve_run, run_at
from shared.errors import ConfigError, TrajectoryError


@dataclass(frozen=True)
class Run:
    """A run's records. Rows are plain dictionaries with the same keys, so `pandas.DataFrame(run.attempts)` works.

    A task played in several epochs has a row for each. `attempts` has the columns of
    `wabe export --format csv`; `tasks` has the same rows plus `steps_taken`, a copy of the column `steps`.
    """

    run_id: str
    info: dict[str, Any]
    tasks: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)


def load_run(run: Path | str = "latest") -> Run:
    """Read a run: `latest`, an id, or its folder (`.output/runs/<run_id>`). Tasks that have not ended have no row.

    Ids and `latest` are looked up in `WABE_OUTPUT_DIR`, or else in `.output`.

    Times are in seconds; `success` is `None` for an unscored or aborted task. Raises `ConfigError` if the
    folder is not a run, `TrajectoryError` for a damaged result.
    """
    path = Path(run)
    store = run_at(path, output_folder(None)) if path.is_dir() else resolve_run(str(run), output_folder(None))
    info = store.read_run() if store else None
    if store is None or info is None:
        raise ConfigError(f"{run} is not a run", remedy="give the folder of a run, with its run.json")
    found_run = Run(run_id=store.run_id, info=info)
    for table_row in table_of(store):
        if isinstance(table_row, Unreadable):
            raise TrajectoryError(table_row.reason)
        row = table_row.row.cells()
        found_run.attempts.append(row)
        found_run.tasks.append(row | {"steps_taken": row["steps"]})
        attempt = {key: row[key] for key in ("run_id", "task_id", "epoch")}
        found_run.steps.extend(attempt | _step_row(step) for step in table_row.attempt.steps)
        found_run.checks.extend(check.model_dump() for check in table_row.checks)
    return found_run


def _step_row(step: Step) -> dict[str, Any]:
    action, outcome, timings = step.action, step.outcome, step.timings
    return {
        **{key: getattr(step, key) for key in ("index", "url", "title", "screenshot", "snapshot", "feedback")},
        **{key: getattr(action, key, None) for key in ("thought", "tool", "params")},
        "action_line": outcome.line if outcome else None,
        "ok": outcome.ok if outcome else None,
        **{key: getattr(timings, key) for key in ("observe_s", "reply_s", "act_s")},
    }

"""What a scenario's checks let through, as its owner measured it, beside the rate of a run."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from judge.plugins.nearmiss.deciding import LetThrough, checks_digest
from judge.plugins.nearmiss.recordings import FOLDER, read_report
from judge.runner.followers import Follower, FollowUp
from judge.scenario.toml import load_scenario
from judge.store.sealing import key_in
from shared.errors import ConfigError
from shared.fields import as_mapping
from shared.settings import Settings


class BesideRates(Follower):
    """Says it after a run, if it was measured with the checks that the scenario has now."""

    def concluded(self, submission: dict[str, Any], scenario: Path, report: Path | None) -> FollowUp:
        """The figure."""
        figure = figure_of(scenario)
        if figure is None:
            return FollowUp()
        lines = [f"Near misses: the checks {figure}"]
        return FollowUp(lines, event={"let_through": {"survivors": dict(figure.survivors), "of": figure.decided}})


def figure_of(scenario: Path) -> LetThrough | None:
    """What was measured beside a scenario; `None` if nothing was, or with other tasks or checks."""
    known = read_report(scenario.resolve().parent / FOLDER)
    measured, ids = as_mapping(known.get("let_through")), known.get("tasks")
    if not measured:
        return None
    with suppress(ConfigError, KeyError, TypeError, ValueError):
        tasks = load_scenario(scenario, key=key_in(Settings.from_environ().seal_key)).tasks
        by_id = {task.task_id: task for task in tasks}
        if checks_digest(by_id[each] for each in ids or ()) == known.get("checks_sha256"):
            counts = {str(name): int(count) for name, count in as_mapping(measured.get("survivors")).items()}
            return LetThrough(counts, int(measured["of"]))
    return None

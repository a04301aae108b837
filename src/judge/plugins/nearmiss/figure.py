"""What a scenario's checks let through, as its owner measured it, beside the rate of a run."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from judge.plugins.nearmiss.deciding import LetThrough, checks_digest
from judge.plugins.nearmiss.recordings import FOLDER, REPORT
from judge.runner.followers import Follower, FollowUp
from judge.scenario.toml import load_scenario
from judge.store.sealing import key_in
from shared.errors import ConfigError
from shared.files import read_json
from shared.settings import Settings


class BesideRates(Follower):
    """Says it after a run, if it was measured with the checks that the scenario has now."""

    def concluded(self, submission: dict[str, Any], scenario: Path, report: Path | None) -> FollowUp:
        """The figure."""
        figure = figure_of(scenario)
        if figure is None:
            return FollowUp()
        return FollowUp([f"Near misses: the checks {figure}"], event={"let_through": figure.model_dump()})


def figure_of(scenario: Path) -> LetThrough | None:
    """What was measured beside a scenario; `None` if nothing was, or with other tasks or checks."""
    with suppress(ConfigError, OSError, KeyError, TypeError, ValueError):
        known = read_json(scenario.resolve().parent / FOLDER / REPORT)
        ids, digest = known["tasks"], known["checks_sha256"]
        tasks = load_scenario(scenario, key=key_in(Settings.from_environ().seal_key)).tasks
        by_id = {task.task_id: task for task in tasks}
        if checks_digest(by_id[each] for each in ids) == digest:
            return LetThrough.model_validate(known["let_through"])
    return None

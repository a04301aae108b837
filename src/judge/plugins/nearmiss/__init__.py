"""Near misses: walks that nearly do a task, and whether its checks notice; a bench of judges made of them."""

from pathlib import Path
from typing import Any

from shared.plugins import Plugin


def results(options: Any) -> Any:
    """What says beside a run's rate what the checks let through."""
    from judge.plugins.nearmiss.figure import BesideRates

    return BesideRates(options)


def measured(scenario: Path) -> str | None:
    """What the checks of a scenario let through."""
    from judge.plugins.nearmiss.figure import figure_of

    return f"checks {figure}" if (figure := figure_of(scenario)) else None


PLUGIN = Plugin(results=results, measured=measured)

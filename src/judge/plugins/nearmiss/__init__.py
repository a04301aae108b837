"""Near misses: walks that nearly do a task, and whether its checks notice; a bench of judges made of them."""

from typing import Any

from shared.plugins import Plugin


def results(options: Any) -> Any:
    """What says beside a run's rate what the checks let through."""
    from judge.plugins.nearmiss.figure import BesideRates

    return BesideRates(options)


PLUGIN = Plugin(results=results)

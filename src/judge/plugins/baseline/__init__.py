"""A run against an earlier one: it fails if tasks that were solved are lost."""

from typing import Annotated, Any

from shared.declarations import Option, Setting
from shared.plugins import Plugin, PluginOptions


class BaselineOptions(PluginOptions):
    """The options."""

    baseline: Annotated[
        str | None,
        Setting(
            option=Option(
                "Exit with 1 if a task that RUN, or a results.json, solved is now lost.",
                metavar="RUN",
                before="trivial_agents",
            ),
            of_each=False,
            of_trivial=False,
        ),
    ] = None
    baseline_p: Annotated[
        float | None,
        Setting(
            option=Option(
                "With --baseline: only if the paired test's p-value is at most this.",
                metavar="P",
                before="trivial_agents",
            ),
            of_each=False,
            of_trivial=False,
        ),
    ] = None


def results(options: Any) -> Any:
    """What compares the runs, if there is a baseline."""
    from judge.plugins.baseline.follower import Against

    return Against.of(options)


PLUGIN = Plugin(declares=(BaselineOptions,), results=results)

"""The results of a run as JUnit XML."""

from pathlib import Path
from typing import Annotated, Any

from shared.declarations import Option, Setting
from shared.plugins import Plugin, PluginOptions


class JUnitOptions(PluginOptions):
    """The option."""

    junit: Annotated[
        Path | None,
        Setting(
            option=Option("Also write the results as JUnit XML.", metavar="FILE", before="archive"),
            of_each=False,
            of_trivial=False,
        ),
    ] = None


def results(options: Any) -> Any:
    """What writes the file, if one is asked for."""
    from judge.plugins.junit.follower import JUnit

    return JUnit(options) if options.value("junit") else None


PLUGIN = Plugin(declares=(JUnitOptions,), results=results)

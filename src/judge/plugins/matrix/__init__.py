"""Several agents on several task sets with one command."""

from typing import Annotated

from pydantic import Field

from shared.declarations import Option, Setting
from shared.plugins import Plugin, PluginOptions


class MatrixOptions(PluginOptions):
    """The option."""

    parallel_agents: Annotated[
        int,
        Setting(
            option=Option("Play N agents at once.", before="show_logs", is_repeated=False),
            of_each=False,
            of_trivial=False,
        ),
    ] = Field(default=1, ge=1, le=100)


PLUGIN = Plugin(declares=(MatrixOptions,))

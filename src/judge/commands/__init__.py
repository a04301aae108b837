"""The `wabe` commands: one module for each, with a function (or a group) of the command's name."""

from pathlib import Path
from typing import Annotated

import typer

OutputDir = Annotated[Path | None, typer.Option(help="Where runs are kept.")]
TasksFile = Annotated[
    Path | None,
    typer.Option("--tasks", help="Data set file with the texts of a foreign folder's tasks.", metavar="FILE"),
]
RUN_HELP = "A run's id, its folder, `latest`, or a folder with trajectories."
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

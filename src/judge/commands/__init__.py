"""The `wabe` commands: one module for each, with a function (or a group) of the command's name."""

from pathlib import Path
from typing import Annotated

import typer

OutputDir = Annotated[Path | None, typer.Option(help="Where runs are kept.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

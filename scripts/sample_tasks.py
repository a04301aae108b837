#!/usr/bin/env python3
"""The same as `wabe tasks sample`."""

import sys

import typer

from judge.commands.tasks import register
from judge.runner.boundary import run_command

if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    register(app)
    run_command(app, ["tasks", "sample", *sys.argv[1:]], name="wabe")

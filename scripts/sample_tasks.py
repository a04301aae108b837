#!/usr/bin/env python3
"""The same as `wabe tasks sample`."""

import sys

from judge.commands.tasks import tasks
from judge.runner.boundary import run_command

if __name__ == "__main__":
    run_command(tasks, ["sample", *sys.argv[1:]], name="wabe tasks")

#!/usr/bin/env python3
"""The same as `wabe tasks validate`."""

import sys

from judge.commands.tasks import tasks
from judge.runner.boundary import run_command

if __name__ == "__main__":
    run_command(tasks, ["validate", *sys.argv[1:]], name="wabe tasks")

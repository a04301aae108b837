"""Serves MiniWoB++ under the name that scenarios of older versions have: `python -m judge.scenario.miniwob.site`."""

import runpy
import sys

if __name__ == "__main__":
    try:
        runpy.run_module("judge.plugins.miniwob.site", run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        sys.exit(f"error: MiniWoB++ is not part of this installation ({error})")

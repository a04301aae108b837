"""A pass-through proxy that counts what a participant's model calls use and cost."""

from typing import Any

from shared.plugins import Plugin


def _run() -> type[Any]:
    from judge.plugins.metering.part import MeteredRun

    return MeteredRun


PLUGIN = Plugin(run=_run)

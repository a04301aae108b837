"""The test of order: whether a participant plays a task better the second time."""

from typing import Any

from shared.plugins import Plugin


def _run() -> type[Any]:
    from judge.plugins.order.order import OrderOfAttempts

    return OrderOfAttempts


PLUGIN = Plugin(run=_run)

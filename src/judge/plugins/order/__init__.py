"""The test of order: whether a participant plays a task better the second time."""

from collections.abc import Sequence
from typing import Any

from shared.plugins import Plugin, ReportSection


def _section(rows: Sequence[Any]) -> ReportSection | None:
    from judge.plugins.order.order import order_section

    return order_section(rows)


PLUGIN = Plugin(block=_section)

"""People's labels: the page on which they are made, what people and judges agree on, and the order of runs by them."""

from typing import Any

from shared.plugins import Plugin


def _columns() -> type[Any]:
    from judge.plugins.labels.columns import LabelColumns

    return LabelColumns


def _run() -> type[Any]:
    from judge.plugins.labels.part import RunLabels

    return RunLabels


PLUGIN = Plugin(columns=_columns, run=_run)

"""A pass-through proxy that counts what a participant's model calls use and cost."""

from collections.abc import Mapping
from typing import Any

from shared.plugins import Plugin


def _run() -> type[Any]:
    from judge.plugins.metering.part import MeteredRun

    return MeteredRun


def _configured(start: Any, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuses to count calls that do not reach the meter."""
    if config.get("meter"):
        from judge.plugins.metering.reached import require_reached

        require_reached(start)
    return {}


PLUGIN = Plugin(configured=_configured, run=_run)

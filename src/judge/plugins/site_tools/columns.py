"""The columns."""

from dataclasses import dataclass
from typing import Any

from judge.plugins.site_tools.tools import SITE_TOOL
from judge.results.columns import RowSource, column


def _mode(source: RowSource) -> Any:
    """How they were offered; `None` where they were off."""
    attempt: Any = source.attempt
    return attempt.site_tools if attempt.site_tools != "off" else None


@dataclass(frozen=True, kw_only=True)
class SiteToolColumns:
    """How they were offered, and how often they were called."""

    site_tools: str | None = column(
        _mode,
        entry=True,
        when=lambda it: _mode(it) is not None,
        heading="Site tools",
        added=True,
        public=True,
        after="max_actions",
        mode="off",
    )
    site_tool_calls: int = column(
        lambda it: sum(step.action is not None and step.action.tool == SITE_TOOL for step in it.attempt.steps),
        heading="Site tool calls",
        after="site_tools",
        of_mode="site_tools",
    )

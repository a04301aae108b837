"""What carries out a tool in a browser, if the browser's server does not have it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from judge.browser.responses import ToolResponse
from judge.config import RunConfig
from judge.records.sites import Site
from judge.records.tools import tools
from shared.models import Page

# Runs the judge's code in the server's process.
RunCode = Callable[[str], Awaitable[ToolResponse]]


class OwnTool:
    """Made for the settings of a browser, which is launched with these `arguments` of Chromium."""

    arguments: Sequence[str] = ()

    async def seen(self, run: RunCode, page: Page, site: Site) -> Mapping[str, Any]:
        """The fields of an observed page that it changes; `site` is the task's."""
        return {}

    async def call(self, run: RunCode, params: Mapping[str, Any]) -> ToolResponse:
        """Carry out a call."""
        raise NotImplementedError


def own_tools(config: RunConfig) -> Mapping[str, OwnTool]:
    """Those that a browser with these settings needs, by name."""
    return {name: own for name, tool in tools().items() if (own := tool.in_browser(config)) is not None}

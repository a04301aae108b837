"""A site's own tools: participants may call the tools that a page registers (WebMCP)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict

from judge.records.result_keys import ResultKey
from shared.declarations import Option, Setting
from shared.fields import Table
from shared.models import omit_default
from shared.plugins import Facts, Plugin

# Whether participants are offered the tools that pages register, and nothing else that acts.
SiteToolsMode = Literal["off", "offer", "only"]


class SiteToolSettings(Table):
    """The setting."""

    site_tools: Annotated[
        SiteToolsMode,
        Setting(
            "the tools that a site registers (WebMCP, see [plug-ins](plugins.md)): `off`, `offer` (they can be called"
            " like others) or `only` (they alone act; besides them a participant can read, and finish)",
            option=Option("Offer the tools that sites register: off, offer or only.", before="participant_model"),
            sets_apart="site tools: {}",
        ),
    ] = omit_default("off")


class SiteToolFacts(Facts):
    """The fact."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    site_tools: Annotated[str, ResultKey(evidence=True, after="settle")] = omit_default("off")
    """Whether the tools that pages register were offered, and nothing else that acts (`only`)."""

    @staticmethod
    def contradictions(attempt: Any) -> Iterator[str]:
        """Nothing may have been offered or called where they were off."""
        from judge.plugins.site_tools.tools import SITE_TOOL

        for step in attempt.steps if attempt.site_tools == "off" else ():
            if step.site_tools or (step.action and step.action.tool == SITE_TOOL and step.outcome.ok):
                yield f"site_tools: recorded off, but step {step.index} has some"


def tools() -> Mapping[str, Any]:
    """The tool that calls them."""
    from judge.plugins.site_tools.tools import CALLING, SITE_TOOL

    return {SITE_TOOL: replace(CALLING, in_browser=_in_browser, warnings=_warnings)}


def _in_browser(config: Any) -> Any:
    from judge.plugins.site_tools.webmcp import RegisteredTools

    return None if config.site_tools == "off" else RegisteredTools(config.action_timeout_s)


def _warnings(tasks: Any, folder: Any) -> Iterable[str]:
    from judge.plugins.site_tools.reflections import reflections

    return reflections(tasks, folder)


def columns() -> type[Any]:
    """What rows show."""
    from judge.plugins.site_tools.columns import SiteToolColumns

    return SiteToolColumns


def part(stage: Any) -> Any:
    """What attempts do about them."""
    from judge.plugins.site_tools.part import SiteCalls

    return SiteCalls(stage)


PLUGIN = Plugin(declares=(SiteToolSettings, SiteToolFacts), tools=tools, columns=columns, part=part)

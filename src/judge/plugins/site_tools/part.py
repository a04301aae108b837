"""Calls of the tools that a page registers: how they are offered, and how they are recorded."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge.browser.tools import limited, spec_of
from judge.episode.part import Act, AttemptPart, PageLook
from judge.plugins.site_tools.tools import BESIDE, SITE_TOOL
from shared.models import Page, ToolSpec


class SiteCalls(AttemptPart):
    """Offers calls of the tools that a page registers, and records them."""

    @property
    def _mode(self) -> str:
        config: Any = self.stage.config
        return str(config.site_tools)

    def tools(self, offered: Sequence[ToolSpec], page: Page, *, is_named: bool) -> Sequence[ToolSpec]:
        """With `site_tool`, if the page has tools. Their names stand apart from the judge's words in a message."""
        names = [tool.name for tool in page.page_tools]
        if names:
            offered = (*offered, spec_of(SITE_TOOL, **({"name": {"enum": names}} if is_named else {})))
        if self._mode != "only":
            return offered
        return [limited(spec, BESIDE[spec.name]) for spec in offered if spec.name in BESIDE]

    def observed(self, look: PageLook) -> None:
        """What the page's tools are called."""
        look.facts["site_tools"] = tuple(tool.name for tool in look.page.page_tools)

    def acted(self, act: Act) -> None:
        """A site's tool may do something before it fails, and repeat what it was given."""
        if act.action.tool == SITE_TOOL:
            act.result = act.result.model_copy(update={"text": self.stage.redaction.without_secrets(act.result.text)})
            act.may_have_acted |= not act.result.ok

    def ends(self) -> Mapping[str, Any]:
        """Whether they were offered."""
        return {"site_tools": self._mode}

"""Where the browser goes in an attempt: its navigations, who caused them, and who is to blame for what they break."""

from collections.abc import Mapping
from typing import Any

from judge.browser.settle import ClockStalled
from judge.episode.blame import shortened
from judge.episode.draft import StepDraft
from judge.episode.part import Act, AttemptPart, AttemptStage, PageLook
from judge.records.sites import OFF_SITE
from judge.records.steps import BlameFacts, Navigation
from shared.errors import (
    AttemptAbandoned,
    EnvironmentFault,
    InternalFault,
    PageHangs,
    ParticipantError,
    SiteUnreachable,
    WabeError,
)


class Travel(AttemptPart):
    """Follows the browser along the stage's route."""

    def __init__(self, stage: AttemptStage) -> None:
        super().__init__(stage)
        self._last: tuple[Navigation, ...] = ()
        self._facts: BlameFacts | None = None
        # How many navigations the step had before its action.
        self._before = 0

    def observed(self, look: PageLook) -> None:
        """Record what happened until this observation."""
        route = self.stage.route
        if not self.stage.steps:
            route.landed(look.page)
        look.facts["navigations"] = navigations = self._went()
        route.saw(look.page)
        self._flag(route.is_elsewhere(look.page.url) or route.left_site(navigations), look.flags)

    def _flag(self, is_off_site: bool, flags: list[str]) -> None:
        if is_off_site and self.stage.config.off_site != "allow":
            flags.append(OFF_SITE)

    def _went(self) -> tuple[Navigation, ...]:
        return self.stage.route.went(self.stage.browser.take_hops())

    def acting(self, act: Act) -> None:
        """The next page may break the browser immediately."""
        self.stage.browser.begin_step(act.draft.observed.index + 1)
        # Navigations while the participant was thinking are not caused by this action.
        self._before = len(act.draft.navigations)
        act.draft.navigations += self._went()
        self.stage.route.acts(act.action.tool, act.action.params)

    def moved(self, draft: StepDraft) -> None:
        """Record where an action led, also one that broke the browser."""
        draft.navigations += self._went()
        self._flag(self.stage.route.left_site(draft.navigations[self._before :]), draft.flags)

    async def closes(self) -> None:
        """The last navigations decide who is to blame for a fault."""
        self._last = shortened(self._went())

    def blamed(self, error: WabeError | None) -> WabeError | None:
        """What ended the attempt: the participant's error instead of a fault that it has caused."""
        # The judge itself stalled the page's clock, so the attempt is played again in real time.
        others = InternalFault | SiteUnreachable | ClockStalled | AttemptAbandoned
        is_possible = isinstance(error, EnvironmentFault) and not isinstance(error, others)
        if not (is_possible and self.stage.route.has_begun):
            return error
        self._facts = facts = self.stage.route.decide(with_closed=isinstance(error, PageHangs))
        if error is None or facts.party != "participant":
            return error
        return ParticipantError(f"led the browser to {facts.address or 'a page'}, where it broke: {error.message}")

    def ends(self) -> Mapping[str, Any]:
        """The last navigations, and the facts that decided who is to blame."""
        return {"navigations": self._last, "blame_facts": self._facts, "has_acted": self.stage.route.has_acted}

"""Variants: what a task can be played under that is proven not to change it, so that a drop is the participant's."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from judge.records.attacks import Played
from judge.records.checks import AddressPattern
from judge.records.context import ContextChanges
from shared.fields import Invalid, Name, Prose, Table, at_most
from shared.models import omit_default

Family = Literal["settings", "cover", "time", "style", "words"]
# For closing it, and for an action that it was in the way of.
COVER_STEPS = 2
# For reloading a page of which a request failed.
FAILURE_STEPS = 1
MAX_DELAY_S = 30
# The key of each kind of change.
_KEYS: Mapping[str, Family] = MappingProxyType(
    {{"time": "requests"}.get(each, each): each for each in get_args(Family)}
)


class Cover(Table):
    """What the judge puts over the pages of the task's sites until its button is pressed; never evidence.

    `look`: a `dialog` over the whole page, a `banner` along its bottom, or a `chat` bubble in a corner. `once`: after
    that it does not come back on other pages.
    """

    look: Literal["dialog", "banner", "chat"]
    text: Annotated[Prose, Field(min_length=1), at_most(1_000)]
    button: Annotated[Name, at_most(100)]
    once: Annotated[bool, Field(strict=True)] = omit_default(True)


class Style(Table):
    """How pages of the task's sites are drawn, by one style sheet: `zoom` of everything, `text` that is larger."""

    zoom: Annotated[float, Field(ge=0.5, le=3)] | None = omit_default(None)
    text: Annotated[float, Field(ge=1, le=2)] | None = omit_default(None)
    font: Literal["serif", "monospace"] | None = omit_default(None)

    @property
    def css(self) -> str:
        """The style sheet."""
        rules = (
            (self.zoom, f":root {{ zoom: {self.zoom} !important }}"),
            (self.text, f":root {{ font-size: {100 * (self.text or 1):g}% !important }}"),
            (self.font, f"* {{ font-family: {self.font} !important; letter-spacing: 0.03em !important }}"),
        )
        return "\n".join(rule for value, rule in rules if value is not None)


class Requests(Table):
    """What becomes of requests from the first action on: each takes `delay_s` longer, in the page's time, or the first
    GET of an address fails once, with an answer that says that a reload helps; never a document's first load.
    """

    delay_s: Annotated[float, Field(gt=0, le=MAX_DELAY_S)] | None = omit_default(None)
    fail_once: AddressPattern | None = omit_default(None)

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.delay_s is not None and self.fail_once is not None:
            raise Invalid("delay_s and fail_once", "declare a variant for each", key="fail_once")
        return self


class TaskVariant(Table):
    """A variant has one kind of change: `settings` of the browser's context, a `cover` over pages, other `requests`,
    their `style`, or the instruction in other `words`. Without any it is the bundled one.
    """

    name: Annotated[Name, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
    settings: ContextChanges | None = omit_default(None)
    cover: Cover | None = omit_default(None)
    requests: Requests | None = omit_default(None)
    style: Style | None = omit_default(None)
    words: Annotated[Prose, Field(min_length=1), at_most(10_000)] | None = omit_default(None)

    @model_validator(mode="after")
    def _changes_one_thing(self) -> Self:
        given = [key for key in _KEYS if getattr(self, key) is not None]
        if len(given) > 1:
            raise Invalid(f"{' and '.join(given)}", "declare a variant for each", key=given[1])
        for key, change in (("settings", self.settings), ("requests", self.requests), ("style", self.style)):
            if change is not None and not change.model_fields_set:
                raise Invalid("empty", "say what it changes", key=key)
        if not given and self.name not in _BUNDLED:
            raise Invalid(
                f"{self.name} is not bundled", f"one of {', '.join(_BUNDLED)}, or say what it changes", key="name"
            )
        return self

    @property
    def changes(self) -> Mapping[str, Any]:
        """The settings of its attempts that differ from the run's."""
        return self.settings.model_dump(exclude_none=True) if self.settings else {}

    @property
    def more_steps(self) -> int:
        """How many steps it may cost."""
        return COVER_STEPS if self.cover else FAILURE_STEPS if self.may_fail else 0

    @property
    def may_fail(self) -> bool:
        """Whether a page may have to be loaded again."""
        return self.requests is not None and self.requests.fail_once is not None

    @property
    def family(self) -> Family:
        """What kind of change it is."""
        return next(family for key, family in _KEYS.items() if getattr(known_as(self), key) is not None)


class PlayedVariant(Played):
    """The variant that an attempt is played under."""

    declared: TaskVariant


_BUNDLED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "narrow": {"settings": {"viewport_width": 1024, "viewport_height": 700}},
        "phone": {"settings": {"viewport_width": 390, "viewport_height": 844}},
        "german": {"settings": {"locale": "de-DE"}},
        "tokyo": {"settings": {"timezone": "Asia/Tokyo"}},
        "dark": {"settings": {"color_scheme": "dark"}},
        "dense": {"settings": {"device_scale_factor": 2}},
        "still": {"settings": {"reduced_motion": "reduce"}},
        "newsletter": {
            "cover": {"look": "dialog", "text": "Ten percent off: join our newsletter.", "button": "Not now, thanks"}
        },
        "consent": {
            "cover": {"look": "banner", "text": "We measure how this page is used.", "button": "Do not measure"}
        },
        "chat": {"cover": {"look": "chat", "text": "Hello! Do you have any questions?", "button": "Close this chat"}},
        "slow": {"requests": {"delay_s": 2}},
        "flaky": {"requests": {"fail_once": "/api/*"}},
        "zoomed": {"style": {"zoom": 1.5}},
        "serif": {"style": {"text": 1.15, "font": "serif"}},
    }
)
BUNDLED: Mapping[str, TaskVariant] = MappingProxyType(
    {name: TaskVariant(name=name, **change) for name, change in _BUNDLED.items()}
)


def known_as(variant: TaskVariant) -> TaskVariant:
    """The variant, or the bundled one if only its name is given."""
    is_bare = all(getattr(variant, key) is None for key in _KEYS)
    return BUNDLED[variant.name] if is_bare else variant

"""Settings of a browser's context: how pages are shown, and what they are told of the machine."""

import re
import zoneinfo
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from shared.fields import Invalid, OneLine, Table, at_most, closest, printable
from shared.models import omit_default

_LOCALE = re.compile(
    r"[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?(-([0-9][A-Za-z0-9]{3}|[A-Za-z0-9]{5,8}))*"
)


def _is_locale(value: str) -> str:
    if not _LOCALE.fullmatch(value):
        raise Invalid(f"{printable(value)} is not a language tag (BCP 47)", 'write "en-US", "de" or "zh-Hant-TW"')
    return value


def _is_time_zone(value: str) -> str:
    known = zoneinfo.available_timezones()
    # Without a time zone database on this system, the browser decides whether the name is valid.
    if known and value not in known:
        raise Invalid(f"{printable(value)} is not a time zone", closest(value, sorted(known)).strip() or "write UTC")
    return value


Side = Annotated[int, Field(ge=200, le=4096)]
ScaleFactor = Annotated[float, Field(ge=0.5, le=4)]
Locale = Annotated[OneLine, AfterValidator(_is_locale), at_most(64)]
TimeZone = Annotated[OneLine, AfterValidator(_is_time_zone), at_most(64)]
ColorScheme = Literal["light", "dark", "no-preference"]
Motion = Literal["reduce", "no-preference"]


class ContextChanges(Table):
    """Settings of one task's context that differ from the run's: each is a setting of `[config]`."""

    viewport_width: Side | None = omit_default(None)
    viewport_height: Side | None = omit_default(None)
    locale: Locale | None = omit_default(None)
    timezone: TimeZone | None = omit_default(None)
    color_scheme: ColorScheme | None = omit_default(None)
    device_scale_factor: ScaleFactor | None = omit_default(None)
    reduced_motion: Motion | None = omit_default(None)

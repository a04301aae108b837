"""The `[config]` of a scenario or assessment request: every key is optional, every limit names its unit."""

import itertools
import re
import zoneinfo
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, FailFast, Field, TypeAdapter, ValidationInfo, field_validator, model_validator

from judge.records.attacks import Modes
from judge.records.tasks import TaskId
from judge.records.verdicts import Truth
from judge.sites import RunSites, is_site, origin_of
from shared.dates import Day
from shared.fields import AsTuple, Invalid, Line, OneLine, Table, Url, at_most, closest, did_you_mean, shown
from shared.seams import Seam
from shared.text import counted

# How participants identify the target of an action: by element reference, by screenshot coordinates, or either.
Actions = Literal["refs", "coordinates", "both"]
# Classes of `judge.judges.engine.ModelJudge`, which is above this module.
JUDGE_METHODS: Seam[Any] = Seam("judge_methods", "judge method")
# `published`: unreadable replies of the judge model count as 0 and failure, as in the published evaluator.
BrowserKind = Literal["headless", "headed"]
HeadlessKind = Literal["auto", "shell", "new"]
Fidelity = Literal["strict", "published"]
# With this many steps, each as large as `judge.store` allows, an attempt's `result.json` can still be read.
MAX_STEPS = 1000
MAX_EPOCHS = 100
DEFAULT_JUDGE_MODEL = "gemini:gemini-3-flash-preview"
# The upper bound for an attempt: a larger limit is a typing mistake, and pauses must not add up to more.
MAX_ATTEMPT_S = 86_400.0
MIN_SECRET_CHARS = 4


# Language, script, region, variants.
_LOCALE = re.compile(
    r"[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?(-([0-9][A-Za-z0-9]{3}|[A-Za-z0-9]{5,8}))*"
)


def _is_site(value: str) -> str:
    if not is_site(value):
        raise Invalid(f"{shown(value)} is not a site", 'write "example.com" or "https://pay.example"')
    return value


def _is_method(value: str) -> str:
    if JUDGE_METHODS.entry(value) is None:
        raise Invalid(f"{shown(value)} is not a known value", did_you_mean(value, JUDGE_METHODS.names()))
    return value


def _is_locale(value: str) -> str:
    if not _LOCALE.fullmatch(value):
        raise Invalid(f"{shown(value)} is not a language tag (BCP 47)", 'write "en-US", "de" or "zh-Hant-TW"')
    return value


def _is_time_zone(value: str) -> str:
    known = zoneinfo.available_timezones()
    # Without a time zone database on this system, the browser decides whether the name is valid.
    if known and value not in known:
        raise Invalid(f"{shown(value)} is not a time zone", closest(value, sorted(known)).strip() or "write UTC")
    return value


def _is_secret(value: str) -> str:
    # Shorter values would occur, and be redacted, everywhere. The message does not show the value.
    if not MIN_SECRET_CHARS <= len(value) <= 1_000:
        problem = f"{counted(len(value), 'character')}, where a secret has {MIN_SECRET_CHARS} to 1000"
        raise Invalid(problem, "write the whole secret")
    return value


def _is_proxy(value: str) -> str:
    # In a scenario file it may be a variable. No message shows the value, which may contain a password.
    if "${" in value:
        return value
    remedy = 'write upstream_proxy = "${PROXY}", and http://user:password@host:port or socks5://host:port into PROXY'
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise Invalid("not the address of a proxy", remedy) from None
    is_odd = parts.path.strip("/") or parts.query or parts.fragment or not value.isprintable()
    if parts.scheme not in ("http", "socks5") or not parts.hostname or not port or is_odd or len(value) > 5000:
        raise Invalid("not the address of an HTTP or SOCKS5 proxy with a port", remedy)
    return value


def _is_cdp_url(value: str) -> str:
    # As for a proxy: no message shows the value, which usually contains a token.
    if "${" in value:
        return value
    remedy = 'write cdp_url = "${BROWSER_URL}", and wss://host/path?token=… or http://host:port into BROWSER_URL'
    plain = value.replace(CDP_TASK, "")
    if "{" in plain or "}" in plain:
        raise Invalid(f"the address of a browser has another placeholder than {CDP_TASK}", remedy)
    try:
        parts = urlsplit(plain)
        is_odd = parts.port == 0
    except ValueError:
        raise Invalid("not the address of a browser", remedy) from None
    is_odd = is_odd or not parts.hostname or not value.isprintable() or " " in value or len(value) > 5000
    if parts.scheme not in ("ws", "wss", "http", "https") or is_odd or CDP_TASK in urlsplit(value).netloc:
        raise Invalid("not the address of a browser's DevTools (ws, wss, http or https)", remedy)
    return value


def _public_part(url: str) -> str:
    """The scheme, host and port of an address: what may be recorded of one that contains a secret."""
    parts = urlsplit(url)
    # Without the user name, which may be a token as well.
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


Seconds = Annotated[float, Field(gt=0, le=MAX_ATTEMPT_S)]
# Why a task is excluded.
Reason = Annotated[Line, Field(min_length=1), at_most(300)]
AllowedSites = Annotated[tuple[Annotated[str, AfterValidator(_is_site)], ...], FailFast(), at_most(50), AsTuple]


class Geolocation(Table):
    """A place on Earth, in degrees."""

    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)


# Stands for the task's id in `cdp_url`.
CDP_TASK = "{task_id}"
# The key in `archives` for all sites of all tasks.
ALL_SITES = "*"


class FrozenSite(Table):
    """A recorded site: the file of its archive, and the digest that it must have."""

    path: Annotated[OneLine, Field(min_length=1), at_most(5000)]
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class RunConfig(Table):
    """How an assessment is run and judged.

    Timeouts nest strictly: call < step < task < attempt, and reply < step.

    `task_timeout_s` is the participant's own time; `attempt_timeout_s` is the wall time of an attempt and includes the
    judge's pauses (`step_delay`); see `attempt_limit_s` for its default.
    """

    removed_keys = MappingProxyType({"settle_ms": 'replaced by settle = "auto", "page-time" or "real-time"'})

    # How often every task is played. Not recorded if it is 1, because records of older versions do not have it.
    epochs: int = Field(default=1, ge=1, le=MAX_EPOCHS, exclude_if=lambda value: value == 1)
    max_steps: int = Field(default=15, ge=1, le=MAX_STEPS)
    max_parallel: int = Field(default=1, ge=1, le=64)
    max_task_retries: int = Field(default=1, ge=0, le=10)
    step_delay: float = Field(default=0.0, ge=0, le=600)

    reply_timeout_s: Seconds = 120.0
    call_timeout_s: Seconds = 60.0
    step_timeout_s: Seconds = 300.0
    task_timeout_s: Seconds = 1800.0
    attempt_timeout_s: Seconds | None = None
    navigation_timeout_s: Seconds = 30.0
    action_timeout_s: Seconds = 5.0
    settle: Literal["auto", "page-time", "real-time"] = "auto"

    actions: Actions = "refs"
    snapshot_boxes: bool = False
    max_snapshot_chars: int = Field(default=40_000, ge=1000, le=2_000_000)
    max_reply_bytes: int = Field(default=1_000_000, ge=1000, le=64_000_000)
    viewport_width: int = Field(default=1280, ge=200, le=4096)
    viewport_height: int = Field(default=720, ge=200, le=4096)
    # Of JPEG. With 75, the first message of a usual page has less than 100 kB, which is what Express accepts.
    screenshot_quality: int = Field(default=75, ge=20, le=100)
    record_network: bool = True
    secrets: Annotated[tuple[Annotated[str, AfterValidator(_is_secret)], ...], FailFast(), at_most(100), AsTuple] = ()
    browser_path: OneLine | None = Field(default=None, min_length=1)
    # With or without a window; without one, the small headless shell or the full browser. Not recorded if they are the
    # defaults, because records of older versions do not have them.
    browser: BrowserKind = Field(default="headless", exclude_if=lambda value: value == "headless")
    headless: HeadlessKind = Field(default="auto", exclude_if=lambda value: value == "auto")
    # The proxy through which the guard connects; only trusted requests may set it. Its password is never recorded.
    upstream_proxy: Annotated[str, AfterValidator(_is_proxy)] | None = Field(
        default=None, repr=False, exclude_if=lambda value: value is None
    )
    # Whether that proxy resolves names, because this machine cannot. Not recorded if it does not.
    upstream_resolves: bool = Field(default=False, exclude_if=lambda value: not value)
    # A browser that somebody else runs, instead of one of the judge's own. Its address is a secret, like the proxy's.
    cdp_url: Annotated[str, AfterValidator(_is_cdp_url)] | None = Field(
        default=None, repr=False, exclude_if=lambda value: value is None
    )
    # Whether it may be given tasks on private addresses, although it has no guard. Recorded if so.
    cdp_private: bool = Field(default=False, exclude_if=lambda value: not value)
    # Fixed, not taken from the machine, so that pages look the same everywhere.
    locale: Annotated[OneLine, AfterValidator(_is_locale), at_most(64)] = "en-US"
    timezone: Annotated[OneLine, AfterValidator(_is_time_zone), at_most(64)] = "UTC"
    # The day that dates in tasks are relative to. Recorded if there are any; not compared, as tasks are as declared.
    today: Day | None = Field(default=None, exclude_if=lambda value: value is None)
    geolocation: Geolocation | None = None
    color_scheme: Literal["light", "dark", "no-preference"] = "light"
    # Printable ASCII without spaces around it, as in an HTTP header.
    user_agent: str | None = Field(default=None, pattern=r"^[!-~]([ -~]{0,498}[!-~])?$")

    judge_model: OneLine = DEFAULT_JUDGE_MODEL
    judge_method: Annotated[str, AfterValidator(_is_method)] = "webjudge"
    judge_votes: int = Field(default=1, ge=1, le=15)
    # Off by default: what a participant says is a claim, not evidence.
    judge_sees_answer: bool = False
    judge_sees_thoughts: bool = False
    fidelity: Fidelity = "strict"
    judge_base_url: Url | None = None
    judge_timeout_s: Seconds = 120.0
    judge_max_concurrency: int = Field(default=16, ge=1, le=256)
    judge_requests_per_minute: int | None = Field(default=None, ge=1)
    judge_tokens_per_minute: int | None = Field(default=None, ge=1)
    max_judge_cost_usd: float | None = Field(default=None, gt=0)
    max_judge_tokens: int | None = Field(default=None, gt=0)
    prompts: OneLine | None = Field(default=None, min_length=1)
    # Not written when absent, because records of older versions do not have it either.
    prices: OneLine | None = Field(default=None, min_length=1, exclude_if=lambda value: value is None)
    # Whether the participants' model calls are metered. Not recorded if not, as for `epochs`.
    meter: bool = Field(default=False, exclude_if=lambda value: not value)
    score_threshold: int = Field(default=3, ge=1, le=5)
    max_images: int = Field(default=50, ge=1, le=500)

    judge_checked_tasks: bool = False
    truth: Truth = "checks"
    allowed_sites: AllowedSites = ()

    off_site: Literal["flag", "fail", "allow"] = "flag"
    name: Annotated[OneLine, at_most(200)] | None = None
    scenario: OneLine | None = None
    run_id: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}(/shards/[0-9]{3,4}-of-[0-9]{3,4})?$"
    )
    # By website, how a task's site is reset to its initial state: "static", or one of its own addresses to POST to.
    site_resets: dict[Url, Url | Literal["static"]] = Field(default_factory=dict, max_length=100)
    # By website, the address at which a POST makes the runner restart the site. Only trusted requests may set it.
    site_restarts: dict[Url, Url] | None = Field(default=None, max_length=100)
    # By website, or for every site of every task (`ALL_SITES`), the archive that answers instead of the network. Only
    # trusted requests may set it. Not recorded if empty, as for `epochs`.
    archives: dict[str, FrozenSite] = Field(default_factory=dict, max_length=100, exclude_if=lambda value: not value)
    participant_ids: dict[str, Annotated[OneLine, at_most(200)]] = Field(default_factory=dict)
    # Whether tasks are played clean, under their attacks, or both (`--attacks`). Not recorded if off, as for `epochs`.
    attacks: Modes = Field(default="off", exclude_if=lambda value: value == "off")
    # Tasks under attack whose attack the reference walk does not see, by their ids.
    unseen_attacks: Annotated[tuple[TaskId, ...], FailFast(), at_most(10_000), AsTuple] = Field(
        default=(), exclude_if=lambda value: not value
    )
    # By task id, why the task is not played (`--exclude`). Not recorded if empty, as for `epochs`.
    exclude: dict[TaskId, Reason] = Field(default_factory=dict, max_length=10_000, exclude_if=lambda value: not value)
    shard_index: int = Field(default=0, ge=0)
    num_shards: int = Field(default=1, ge=1)
    num_instances: int | None = Field(default=None, ge=1)

    def recorded(self) -> dict[str, Any]:
        """The settings as stored with a run: without secrets, and of archives only what identifies them."""
        settings = self.model_dump(mode="json", exclude={"secrets"})
        for site, archive in settings.get("archives", {}).items():
            settings["archives"][site] = {**archive, "path": re.split(r"[/\\]", archive["path"])[-1]}
        if self.upstream_proxy is not None:
            settings["upstream_proxy"] = _public_part(self.upstream_proxy)
        if self.cdp_url is not None:
            settings |= {"cdp_url": _public_part(self.cdp_url), "guarded": False}
        return settings

    @property
    def sites(self) -> RunSites:
        """Which sites the tasks have."""
        return RunSites(self.allowed_sites)

    @property
    def attempt_limit_s(self) -> float:
        """`attempt_timeout_s`; by default the participant's time plus one pause and one full-length call per step."""
        if self.attempt_timeout_s is not None:
            return self.attempt_timeout_s
        return self.task_timeout_s + self.max_steps * (self.step_delay + self.call_timeout_s)

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_not_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        # Pydantic reads `true` as the number 1.
        if isinstance(value, bool) and field.annotation is not bool:
            raise Invalid(f"{value} is not expected here", "give a number or a text")
        return value

    @model_validator(mode="after")
    def _sites_reset_themselves(self) -> Self:
        for site, reset in self.site_resets.items():
            if reset != "static" and origin_of(reset) != origin_of(site):
                raise Invalid(f"{shown(reset)} is not an address of {shown(site)}", "a site is reset by itself")
        return self

    @model_validator(mode="after")
    def _is_one_browser(self) -> Self:
        if self.browser == "headed" and self.headless != "auto":
            raise Invalid("headless does not apply to a browser with a window", "remove one of the two", key="headless")
        if self.upstream_resolves and self.upstream_proxy is None:
            raise Invalid("there is no upstream_proxy", "remove upstream_resolves", key="upstream_resolves")
        return self

    @model_validator(mode="after")
    def _is_hosted_alone(self) -> Self:
        if self.cdp_url is None:
            if self.cdp_private:
                raise Invalid("there is no cdp_url", "remove cdp_private", key="cdp_private")
            return self
        is_shown_by_host = "how pages are shown is up to the host of the browser at cdp_url"
        for key, is_set, problem in (
            ("browser", self.browser == "headed", is_shown_by_host),
            ("headless", self.headless != "auto", is_shown_by_host),
            ("browser_path", self.browser_path is not None, "cdp_url names another browser"),
            ("upstream_proxy", self.upstream_proxy is not None, "a hosted browser (cdp_url) uses its own network"),
            ("archives", bool(self.archives), "an archive cannot answer a hosted browser (cdp_url)"),
            ("attacks", self.attacks != "off", "nothing holds back what a hosted browser (cdp_url) sends"),
            ("settle", self.settle == "page-time", "a hosted browser (cdp_url) runs in real time only"),
        ):
            if is_set:
                raise Invalid(problem, "remove one of the two", key=key)
        return self

    @model_validator(mode="after")
    def _attempts_end(self) -> Self:
        if self.max_steps * self.step_delay > MAX_ATTEMPT_S:
            pauses = f"{self.max_steps} steps with a step_delay of {self.step_delay:g} s"
            raise Invalid(f"{pauses} take more than a day", "lower max_steps or step_delay")
        return self

    @model_validator(mode="after")
    def _limits_nest(self) -> Self:
        order = ("action_timeout_s", "navigation_timeout_s", "call_timeout_s", "step_timeout_s", "task_timeout_s")
        conflicts = {
            f"{inner} must be less than {outer}": getattr(self, inner) >= getattr(self, outer)
            for inner, outer in (*itertools.pairwise(order), ("reply_timeout_s", "step_timeout_s"))
        } | {
            "attempt_timeout_s must be more than task_timeout_s plus max_steps times step_delay": (
                self.task_timeout_s + self.max_steps * self.step_delay >= self.attempt_limit_s
            ),
            "shard_index must be less than num_shards": self.shard_index >= self.num_shards,
        }
        for problem, is_conflict in conflicts.items():
            if is_conflict:
                raise Invalid(problem, "change one of the two")
        return self


CONFIG = TypeAdapter(RunConfig)

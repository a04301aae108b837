"""The `[config]` of a scenario or assessment request: every key is optional, every limit names its unit."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, FailFast, Field, TypeAdapter, ValidationInfo, field_validator, model_validator

from judge.records.attacks import Modes
from judge.records.context import ColorScheme, Locale, Motion, ScaleFactor, Side, TimeZone
from judge.records.metadata import METADATA_KEY
from judge.records.sites import HostPort, RunSites, is_site, origin_of, place_of
from judge.records.steps import MAX_STEPS
from judge.records.tasks import TaskId
from judge.records.verdicts import CHECKS, JUDGE
from shared.dates import Day
from shared.declarations import Option, Setting, names_of
from shared.fields import AsTuple, Invalid, Line, OneLine, Table, Url, at_most, did_you_mean, printable
from shared.llm.providers import model_forms
from shared.models import omit_default
from shared.plugins import extended
from shared.replies import MAX_ACTIONS
from shared.seams import Seam
from shared.text import counted

# How participants identify the target of an action: by element reference, by screenshot coordinates, or either.
ActionMode = Literal["refs", "coordinates", "both"]
# Classes of `judge.judges.engine.ModelJudge`, which is above this module, and methods that ask no model.
JUDGE_METHODS: Seam[Any] = Seam("judge_methods", "judge method")
BrowserKind = Literal["headless", "headed"]
HeadlessKind = Literal["auto", "shell", "new"]
# `published`: unreadable replies of the judge model count as 0 and failure, as in the published evaluator.
Fidelity = Literal["strict", "published"]
RubricSuccess = Literal["outcome", "process", "both"]
# What the reward of an episode is made of.
RewardKind = Literal["outcome", "progress"]
# With this many steps, each as large as `judge.store` allows, an attempt's `result.json` can still be read.
MAX_EPOCHS = 100
DEFAULT_JUDGE_MODEL = "gemini:gemini-3-flash-preview"
# The upper bound for an attempt: a larger limit is a typing mistake, and pauses must not add up to more.
MAX_ATTEMPT_S = 86_400.0
MIN_SECRET_CHARS = 4


# Language, script, region, variants.
def _is_site(value: str) -> str:
    if not is_site(value):
        raise Invalid(f"{printable(value)} is not a site", 'write "example.com" or "https://pay.example"')
    return value


def _is_method(value: str) -> str:
    if not isinstance(JUDGE_METHODS.find(value), type):
        models = [name for name in JUDGE_METHODS.names() if isinstance(JUDGE_METHODS.find(name), type)]
        raise Invalid(f"{printable(value)} is not a known value", did_you_mean(value, models))
    return value


def _is_truth(value: str) -> str:
    known = [CHECKS, JUDGE, *(name for name in JUDGE_METHODS.names() if not isinstance(JUDGE_METHODS.find(name), type))]
    if value not in (CHECKS, JUDGE) and value not in known:
        raise Invalid(f"{printable(value)} is not a known value", did_you_mean(value, known))
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
        raise Invalid(f"the address of a browser contains a placeholder other than {CDP_TASK}", remedy)
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


HOSTED_INSTANCES = "nothing leads a hosted browser (cdp_url) to the instances of a site"
# Stands for the task's id in `cdp_url`.
CDP_TASK = "{task_id}"
# The key in `archives` for all sites of all tasks.
ALL_SITES = "*"


class FrozenSite(Table):
    """A recorded site: the file of its archive, and the digest that it must have."""

    path: Annotated[OneLine, Field(min_length=1), at_most(5000)]
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


# Of settings that affect no verdict.
_OF_TRAINING: Any = MappingProxyType({"compared": False, "in_checksum": False})
# How many attempts a run may play at once.
MAX_PARALLEL = 64
Instances = Annotated[tuple[Url, ...], FailFast(), Field(min_length=1), at_most(MAX_PARALLEL), AsTuple]


def instances_problem(sites: Mapping[str, Sequence[str]], others: Iterable[str] = ()) -> Invalid | None:
    """Why these addresses cannot belong to instances of the websites, or `None`; `others` are sites without any.

    An attempt sees the website's address, so the connection to an instance has to be of the same kind.
    """
    websites, used = {place_of(site) for site in (*sites, *others)}, set[HostPort]()
    for site, addresses in sites.items():
        for address in addresses:
            place, parts = place_of(address), urlsplit(address)
            if place is None or parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
                return Invalid(
                    f"{printable(address)} is not an instance's address", "write it like http://127.0.0.1:9101"
                )
            if parts.scheme != urlsplit(site).scheme:
                return Invalid(
                    f"{printable(address)} is an instance of {printable(site)}", "use http or https for both"
                )
            if place in used or (place in websites and place != place_of(site)):
                return Invalid(f"{printable(address)} is used twice", "give each instance an address of its own")
            used.add(place)
    return None


# Of what tasks are played under: the task set has another digest then.
_OF_PAIRS: Any = MappingProxyType({"in_checksum": False, "of_trivial": False})
_TaskIds = Annotated[tuple[TaskId, ...], FailFast(), at_most(100_000), AsTuple]
# Of settings that belong to one start: they may differ on `--resume`, and affect no result.
_OF_A_START: Any = MappingProxyType({"compared": False, "in_checksum": False})


class RunConfig(Table):
    """How an assessment is run and judged.

    Timeouts nest strictly: call < step < task < attempt, and reply < step.

    `task_timeout_s` is the participant's time; `attempt_timeout_s` is the wall time of an attempt and includes the
    judge's pauses (`step_delay`); see `attempt_limit_s` for its default.
    """

    epochs: Annotated[
        int,
        Setting(
            "how often every task is played, up to 100 and 10,000 attempts in all; all tasks are played once before"
            " any is played again ([repeats](scoring.md#repeats))",
            option=Option("Run every task N times.", metavar="N", before="display"),
            in_checksum=False,
        ),
    ] = Field(default=1, ge=1, le=MAX_EPOCHS, exclude_if=lambda value: value == 1)
    max_steps: Annotated[int, Setting("replies that a participant may send")] = Field(default=15, ge=1, le=MAX_STEPS)
    max_actions: Annotated[
        int,
        Setting(
            "actions that one reply may have, up to 20, executed in order until one fails or the page changes"
            " ([several actions](scoring.md#several-actions-per-reply)); `max_steps` times this may be at most 1000",
            sets_apart="up to {} actions per reply",
        ),
    ] = Field(default=1, ge=1, le=MAX_ACTIONS, exclude_if=lambda value: value == 1)
    max_parallel: Annotated[
        int,
        Setting(
            "tasks at once, each in its own browser (see [security](trust.md#security))",
            option=Option("How many tasks run at once.", before="participant_model", is_repeated=False),
            **_OF_A_START,
        ),
    ] = Field(default=1, ge=1, le=MAX_PARALLEL)
    max_task_retries: Annotated[int, Setting("further attempts after a browser, site or judge fault")] = Field(
        default=1, ge=0, le=10
    )
    step_delay: Annotated[
        float, Setting("a pause between steps; `max_steps` × `max_actions` times this may be at most a day")
    ] = Field(default=0.0, ge=0, le=600)

    reply_timeout_s: Annotated[Seconds, Setting("limit of one reply; reply < step")] = 120.0
    call_timeout_s: Annotated[
        Seconds, Setting("limit of a call to the MCP server, or of an observation; call < step < task < attempt")
    ] = 60.0
    step_timeout_s: Annotated[
        Seconds, Setting("limit of browser and site within one step, at which the page is replaced by an empty tab")
    ] = 300.0
    task_timeout_s: Annotated[
        Seconds,
        Setting("the participant's own time: its replies, the waits it requests, and time spent off the task's site"),
    ] = 1800.0
    attempt_timeout_s: Annotated[
        Seconds | None,
        Setting(
            "wall time of an attempt; reaching it scores 0, unless a browser or site fault was recorded first",
            default="`task_timeout_s` + `max_steps` × `max_actions` × (`step_delay` + `call_timeout_s`): 2700",
        ),
    ] = None
    navigation_timeout_s: Annotated[
        Seconds,
        Setting(
            "limit of a navigation; a page that takes longer is"
            " [replaced by an empty tab](waiting.md#pages-that-cannot-be-observed)"
        ),
    ] = 30.0
    action_timeout_s: Annotated[Seconds, Setting("limit of a browser action, with the same end")] = 5.0
    settle: Annotated[
        Literal["auto", "page-time", "real-time"],
        Setting(
            "how the judge waits for a page before it observes it: `page-time`, `real-time`, or `auto`: by website"
            " ([Waiting for pages](waiting.md))"
        ),
    ] = "auto"

    actions: Annotated[
        ActionMode,
        Setting(
            "how participants identify the target of an action: `refs` (elements of the snapshot), `coordinates`"
            " (points of the screenshot) or `both`; it decides which tools are offered, so it changes every"
            " participant's prompt"
        ),
    ] = "refs"
    snapshot_boxes: Annotated[
        bool,
        Setting(
            "add bounding boxes to the snapshots that participants see: `[box=x,y,width,height]`, in CSS pixels of the"
            " screenshot"
        ),
    ] = False
    max_snapshot_chars: Annotated[
        int, Setting("how much of a snapshot the participant sees; up to 4,000,000 characters are recorded")
    ] = Field(default=40_000, ge=1000, le=2_000_000)
    max_reply_bytes: Annotated[int, Setting("largest text of a participant's reply, in bytes of UTF-8")] = Field(
        default=1_000_000, ge=1000, le=64_000_000
    )
    viewport_width: Annotated[Side, Setting("width of the page in CSS pixels")] = 1280
    viewport_height: Annotated[Side, Setting("height of the page in CSS pixels")] = 720
    # Of JPEG. With 75, the first message of a usual page has less than 100 kB, which is what Express accepts.
    screenshot_quality: Annotated[
        int, Setting("JPEG quality of the screenshots, 20 to 100 ([sizes](benchmarks.md#screenshots))")
    ] = Field(default=75, ge=20, le=100)
    record_network: Annotated[
        bool,
        Setting(
            "write each attempt's requests to `network.har`, without secrets"
            " ([security](trust.md#what-is-recorded)); checks of kind `request` need it"
        ),
    ] = True
    secrets: Annotated[
        Annotated[tuple[Annotated[str, AfterValidator(_is_secret)], ...], FailFast(), at_most(100), AsTuple],
        Setting(
            'texts of at least 4 characters that `network.har` must not contain, such as `["${SHOP_PASSWORD}"]`; they'
            " are not recorded with the run",
            secret="all",
        ),
    ] = ()
    browser_path: Annotated[
        OneLine | None,
        Setting(
            "the browser's program, which must be named like a Chromium browser; `WABE_BROWSER_PATH` may name any"
            " program",
            host=True,
        ),
    ] = Field(default=None, min_length=1)
    browser: Annotated[
        BrowserKind,
        Setting(
            "`headed`: with a window, on this machine's display or, where there is none, on one that `Xvfb` draws into"
            " memory (`wabe doctor` says what is missing). The judge's log-ins to sites use the same browser",
            host=True,
        ),
    ] = Field(default="headless", exclude_if=lambda value: value == "headless")
    headless: Annotated[
        HeadlessKind,
        Setting(
            "without a window: `shell` (Chromium's small headless shell), `new` (the full browser's own headless"
            " mode), or whichever is found first, the shell before the full browser. Attempts record the mode"
            " (`browser_mode`), and rows show it",
            host=True,
        ),
    ] = Field(default="auto", exclude_if=lambda value: value == "auto")
    upstream_proxy: Annotated[
        Annotated[str, AfterValidator(_is_proxy)] | None,
        Setting(
            'the proxy through which the judge\'s browsers reach every site, also those on this machine: `"${PROXY}"`,'
            " with `http://user:password@host:port` or `socks5://host:port` in that variable; see"
            " [live websites](tasks.md#through-a-proxy)",
            host=True,
            secret="address",
        ),
    ] = Field(default=None, repr=False, exclude_if=lambda value: value is None)
    upstream_resolves: Annotated[
        bool,
        Setting(
            "the proxy resolves names, because this machine cannot; recorded, because names of private addresses are"
            " then not refused",
            host=True,
        ),
    ] = Field(default=False, exclude_if=lambda value: not value)
    cdp_url: Annotated[
        Annotated[str, AfterValidator(_is_cdp_url)] | None,
        Setting(
            "a [hosted browser](tasks.md#in-a-hosted-browser) instead of one of the judge's own:"
            ' `"${BROWSER_URL}"`, with the `ws`, `wss`, `http` or `https` address of its DevTools in that variable;'
            " `{task_id}` in it stands for the task",
            host=True,
            secret="address",
        ),
    ] = Field(default=None, repr=False, exclude_if=lambda value: value is None)
    cdp_private: Annotated[
        bool, Setting("give it tasks on private addresses as well, although it has no guard; recorded", host=True)
    ] = Field(default=False, exclude_if=lambda value: not value)
    # Fixed, not taken from the machine, so that pages look the same everywhere.
    locale: Annotated[Locale, Setting("language (BCP 47) that pages see")] = "en-US"
    timezone: Annotated[TimeZone, Setting("time zone (IANA) that pages see")] = "UTC"
    # Not compared, as tasks are as declared.
    today: Annotated[
        Day | None,
        Setting(
            "the day that [dates in tasks](../scenarios/README.md#dates) are relative to, such as `2026-11-23`. A run"
            " keeps the day on which it began, recorded here if a task has dates or validity days",
            default="the present day in `timezone`; on frozen sites that of the recording",
            **_OF_A_START,
        ),
    ] = Field(default=None, exclude_if=lambda value: value is None)
    geolocation: Annotated[
        Geolocation | None,
        Setting(
            "where pages that ask find the browser: `{ latitude = 52.52, longitude = 13.4 }`. Without it they are"
            " refused, as for every other permission (notifications, reading the clipboard, camera, …). Pages may"
            " write to the clipboard, except where the browser shares it with you: hosted, or headed on your own"
            " display"
        ),
    ] = None
    color_scheme: Annotated[ColorScheme, Setting("`light`, `dark` or `no-preference`")] = "light"
    device_scale_factor: Annotated[ScaleFactor, Setting("pixels of the screen for each CSS pixel")] = omit_default(1.0)
    reduced_motion: Annotated[Motion, Setting("`reduce`: pages are asked for little motion")] = omit_default(
        "no-preference"
    )
    # Printable ASCII without spaces around it, as in an HTTP header.
    user_agent: Annotated[
        str | None,
        Setting("the User-Agent header; the browser's own reveals that it is headless", default="the browser's own"),
    ] = Field(default=None, pattern=r"^[!-~]([ -~]{0,498}[!-~])?$")

    judge_model: Annotated[
        OneLine,
        Setting(
            "`anthropic:NAME`, `gemini:NAME`, `openai:NAME`, or `offline` for checks only",
            option=Option(
                lambda: f"{model_forms()}, or offline: checks only.", before="participant_model", variable="judge_model"
            ),
        ),
    ] = DEFAULT_JUDGE_MODEL
    cluster: Annotated[
        Annotated[str, Field(pattern=f"^{METADATA_KEY.pattern}$")] | None,
        Setting(
            "the key of the tasks' metadata by which intervals are clustered, such as `template`"
            " ([how sure a difference is](scoring.md#how-sure-a-difference-is))",
            **_OF_A_START,
        ),
    ] = Field(default=None, exclude_if=lambda value: value is None)
    judge_method: Annotated[Annotated[str, AfterValidator(_is_method)], Setting("see [scoring](scoring.md)")] = (
        "webjudge"
    )
    judge_votes: Annotated[int, Setting("votes of the `rubric` method, up to 15")] = Field(default=1, ge=1, le=15)
    judge_vote_models: Annotated[
        Annotated[tuple[OneLine, ...], FailFast(), at_most(9), AsTuple],
        Setting(
            "models that vote in the `rubric` method in place of `judge_model`, each `judge_votes` times; a tie is"
            " unscored"
        ),
    ] = omit_default(())
    rubric_success: Annotated[
        RubricSuccess,
        Setting(
            "what the `rubric` method demands: the `outcome`, the `process` (at least `rubric_threshold` of the"
            " points), or `both`"
        ),
    ] = omit_default("outcome")
    rubric_threshold: Annotated[
        float, Field(gt=0, le=1), Setting("the share of points from which the process is a success")
    ] = omit_default(0.8)
    max_images_per_criterion: Annotated[
        int,
        Field(ge=1, le=500),
        Setting("how many screenshots of each criterion the `rubric` method marks by, at most: the latest ones"),
    ] = omit_default(5)
    # Off by default: what a participant says is a claim, not evidence.
    judge_sees_answer: Annotated[
        bool, Setting("show the final answer to the judge model, fenced and marked as a claim")
    ] = False
    judge_sees_thoughts: Annotated[
        bool, Setting("show the participant's thoughts to `webjudge`, fenced and marked as claims")
    ] = False
    fidelity: Annotated[
        Fidelity,
        Setting(
            "`published`: unreadable replies of the judge model count as in the published evaluator, as 0 and failure"
            " ([imported prompts](scoring.md#published-webjudge-requests) only)"
        ),
    ] = "strict"
    judge_base_url: Annotated[
        Url | None, Setting("the address of the judge model's server, to which the key is sent", host=True)
    ] = None
    # These may differ when a run is resumed: a verdict that a limit prevented is unscored, and resuming asks again.
    judge_timeout_s: Annotated[
        Seconds,
        Setting(
            "limit of one call to the judge model, retries included. How long to wait before a retry is read from the"
            " provider's headers and the text of its error; raise the limit for free tiers that ask for longer waits",
            compared=False,
        ),
    ] = 120.0
    judge_max_concurrency: Annotated[int, Setting("the judge's calls at once", compared=False)] = Field(
        default=16, ge=1, le=256
    )
    judge_requests_per_minute: Annotated[
        int | None, Setting("limit of the judge's calls, divided by the number of shards", compared=False)
    ] = Field(default=None, ge=1)
    judge_tokens_per_minute: Annotated[
        int | None, Setting("limit of their tokens, divided by the number of shards", compared=False)
    ] = Field(default=None, ge=1)
    max_judge_cost_usd: Annotated[
        float | None,
        Setting("budget of a run and its `--resume` together, divided by the number of shards", compared=False),
    ] = Field(default=None, gt=0)
    max_judge_tokens: Annotated[int | None, Setting("the same in tokens", compared=False)] = Field(default=None, gt=0)
    prompts: Annotated[
        OneLine | None, Setting("a folder with [prompts](scoring.md#judge-methods) of your own", host=True)
    ] = Field(default=None, min_length=1)
    prices: Annotated[
        OneLine | None,
        Setting(
            "a file of [prices](scoring.md#judge-methods) that take precedence over those of the package"
            " `genai-prices`",
            host=True,
            compared=False,
        ),
    ] = Field(default=None, min_length=1, exclude_if=lambda value: value is None)
    meter: Annotated[
        bool,
        Setting(
            "count the tokens and cost of the participants' model calls with a proxy"
            " ([metering](scoring.md#what-model-calls-cost))",
            option=Option("Count the tokens and cost of the participant's model calls, with a proxy.", before="shards"),
            of_trivial=False,
            **_OF_A_START,
        ),
    ] = Field(default=False, exclude_if=lambda value: not value)
    score_threshold: Annotated[int, Setting("which screenshots the judge model decides on, by their score")] = Field(
        default=3, ge=1, le=5
    )
    max_images: Annotated[int, Setting("how many screenshots the judge model decides on, at most")] = Field(
        default=50, ge=1, le=500
    )

    judge_checked_tasks: Annotated[bool, Setting("also ask the judge model about tasks with checks")] = False
    truth: Annotated[
        Annotated[str, AfterValidator(_is_truth)],
        Setting(
            "which verdict counts if there are several: `checks`, `judge` or a method without a model"
            " ([scoring](scoring.md#ground-truth))"
        ),
    ] = CHECKS
    allowed_sites: Annotated[
        AllowedSites, Setting('further sites that belong to the task, such as `["pay.example.com"]`; also per task')
    ] = ()

    off_site: Annotated[
        Literal["flag", "fail", "allow"], Setting("`flag`, `fail` or `allow` actions on other sites")
    ] = "flag"
    reward: Annotated[
        RewardKind,
        Setting(
            "what an episode of a [training environment](training.md#rewards) is worth: `outcome` (1 for success, 0 for"
            " failure) or `progress` (the share of its checks that passed, less the share that held at the first look)",
            **_OF_TRAINING,
        ),
    ] = Field(default="outcome", exclude_if=lambda value: value == "outcome")
    policy_penalty: Annotated[
        float,
        Setting(
            "what each violated [policy](safety.md) takes away from that reward, which then can be as low as -1",
            **_OF_TRAINING,
        ),
    ] = Field(default=0.0, ge=0, le=1, exclude_if=lambda value: not value)
    name: Annotated[
        Annotated[OneLine, at_most(200)] | None,
        Setting(
            "your name for the run, for reports, lists and leaderboard rows",
            option=Option(
                "Your name for the run, for reports, lists and leaderboard rows.", metavar="TEXT", before="epochs"
            ),
            **_OF_A_START,
        ),
    ] = None
    scenario: Annotated[
        OneLine | None,
        Setting(
            "name of a bundled task set, for requests without tasks. `wabe run` refuses one with sites, which"
            " `wabe run NAME --agent AGENT` starts"
        ),
    ] = None
    run_id: Annotated[
        str | None,
        Setting("the run that a request resumes, or the id of a new one; `wabe run` sets it", host=True, **_OF_A_START),
    ] = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}(/shards/[0-9]{3,4}-of-[0-9]{3,4})?$")
    on_disconnect: Annotated[
        Literal["continue", "cancel"],
        Setting(
            "what becomes of an assessment whose client is gone for a minute: `continue`, or `cancel`, which frees its"
            " place and spends no more on the judge model ([operating](runs.md#clients-that-disconnect))",
            **_OF_A_START,
        ),
    ] = Field(default="continue", exclude_if=lambda value: value == "continue")
    site_resets: Annotated[
        dict[Url, Url | Literal["static"]],
        Setting(
            "by website, how it gets back to its initial state: `static`, or an address of the site that takes a POST",
            default="from `[[sites]]`",
        ),
    ] = Field(default_factory=dict, max_length=100)
    # Ports of the runner; `[[sites]]` are compared by command.
    site_restarts: Annotated[
        dict[Url, Url] | None,
        Setting(
            "by website, where `wabe run` restarts the site on a POST",
            default="from `[[sites]]`",
            host=True,
            **_OF_A_START,
        ),
    ] = Field(default=None, max_length=100)
    # Ports of the runner, as above.
    site_instances: Annotated[
        dict[Url, Instances],
        Setting(
            "by website, the addresses of its [instances](#instances), each for one"
            " attempt at a time: browsers open the website's own address, and the judge connects them to the instance",
            default="from `[[sites]]`",
            host=True,
            instead=("instances belong to sites", 'write instances = "per_slot" into [[sites]]'),
            **_OF_A_START,
        ),
    ] = Field(default_factory=dict, max_length=100, exclude_if=lambda value: not value)
    archives: Annotated[
        dict[str, FrozenSite],
        Setting(
            "by website, or `*` for every site, the archive that answers instead of the network: its path and its"
            " SHA-256",
            default="from `[[sites]]`",
            host=True,
            instead=("archives belong to sites", 'write archive = "FILE" into [[sites]]'),
        ),
    ] = Field(default_factory=dict, max_length=100, exclude_if=lambda value: not value)
    participant_ids: Annotated[
        dict[str, Annotated[OneLine, at_most(200)]],
        Setting(
            "by role, the participants' `agentbeats_id`, for the submission",
            default="from `[[participants]]`",
            **_OF_A_START,
        ),
    ] = Field(default_factory=dict)
    attacks: Annotated[
        Modes,
        Setting(
            "whether tasks are played clean, under their [attacks](safety.md#attacks) (`only`), or `both`",
            option=Option("Play tasks clean, under the attacks that they declare, or both, as pairs.", before="meter"),
            **_OF_PAIRS,
        ),
    ] = Field(default="off", exclude_if=lambda value: value == "off")
    unseen_attacks: Annotated[
        _TaskIds,
        Setting(
            "ids of tasks under attack that the reference walk does not see",
            default="from `SCENARIO.unseen.json`",
            **_OF_PAIRS,
        ),
    ] = omit_default(())
    variants: Annotated[
        Modes,
        Setting(
            "whether tasks are played clean, under variants (`only`), or `both`",
            option=Option("Play tasks clean, under variants that change no verdict, or both.", before="meter"),
            **_OF_PAIRS,
        ),
    ] = omit_default("off")
    held_variants: Annotated[
        _TaskIds,
        Setting(
            "ids of the tasks under variants that are played", default="from `SCENARIO.variants.json`", **_OF_PAIRS
        ),
    ] = omit_default(())
    exclude: Annotated[
        dict[TaskId, Reason],
        Setting(
            "by task id, why it is not played; `--exclude ID=REASON` sets it. In a scenario file write `excluded` into"
            " the task ([what counts](scoring.md#excluded-tasks))",
            instead=("exclude belongs to one run", 'write excluded = "reason" into the task, or use --exclude'),
        ),
    ] = Field(default_factory=dict, max_length=10_000, exclude_if=lambda value: not value)
    shard_index: Annotated[
        int, Setting("which part of the tasks this judge plays ([shards](scaling.md#many-machines))", in_checksum=False)
    ] = Field(default=0, ge=0)
    num_shards: Annotated[int, Setting("into how many parts the tasks are divided", in_checksum=False)] = Field(
        default=1, ge=1
    )
    num_instances: Annotated[int | None, Setting("the number of tasks over all shards", in_checksum=False)] = Field(
        default=None, ge=1
    )

    def recorded(self) -> dict[str, Any]:
        """The settings as stored with a run: without secrets, and of archives only what identifies them."""
        settings = self.model_dump(mode="json", exclude=set(names_of(RunConfig, lambda each: each.secret == "all")))
        for site, archive in settings.get("archives", {}).items():
            settings["archives"][site] = {**archive, "path": re.split(r"[/\\]", archive["path"])[-1]}
        for name in names_of(RunConfig, lambda each: each.secret == "address") & settings.keys():
            settings[name] = _public_part(str(settings[name]))
        return settings | ({"guarded": False} if self.cdp_url is not None else {})

    @property
    def sites(self) -> RunSites:
        """Which sites the tasks have."""
        return RunSites(self.allowed_sites)

    @property
    def max_recorded_steps(self) -> int:
        """How many steps an attempt can record: one for each action."""
        return self.max_steps * self.max_actions

    @property
    def attempt_limit_s(self) -> float:
        """`attempt_timeout_s`; by default the participant's time plus one pause and one full-length call per step."""
        if self.attempt_timeout_s is not None:
            return self.attempt_timeout_s
        return self.task_timeout_s + self.max_recorded_steps * (self.step_delay + self.call_timeout_s)

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
                raise Invalid(f"{printable(reset)} is not an address of {printable(site)}", "a site is reset by itself")
        return self

    @model_validator(mode="after")
    def _instances_are_apart(self) -> Self:
        if problem := instances_problem(self.site_instances):
            raise Invalid(problem.problem, problem.remedy, key="site_instances")
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
            ("site_instances", bool(self.site_instances), HOSTED_INSTANCES),
            ("attacks", self.attacks != "off", "nothing holds back what a hosted browser (cdp_url) sends"),
            ("variants", self.variants != "off", is_shown_by_host),
            ("settle", self.settle == "page-time", "a hosted browser (cdp_url) runs in real time only"),
        ):
            if is_set:
                raise Invalid(problem, "remove one of the two", key=key)
        return self

    @model_validator(mode="after")
    def _attempts_end(self) -> Self:
        if self.max_recorded_steps > MAX_STEPS:
            problem = f"{self.max_steps} replies with {self.max_actions} actions each are more than {MAX_STEPS} actions"
            raise Invalid(problem, "lower max_actions or max_steps", key="max_actions")
        if self.max_recorded_steps * self.step_delay > MAX_ATTEMPT_S:
            pauses = f"{self.max_recorded_steps} steps with a step_delay of {self.step_delay:g} s"
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
                self.task_timeout_s + self.max_recorded_steps * self.step_delay >= self.attempt_limit_s
            ),
            "shard_index must be less than num_shards": self.shard_index >= self.num_shards,
        }
        for problem, is_conflict in conflicts.items():
            if is_conflict:
                raise Invalid(problem, "change one of the two")
        return self


if not TYPE_CHECKING:
    RunConfig = extended(RunConfig, Table)
CONFIG = TypeAdapter(RunConfig)

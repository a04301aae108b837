"""The records that packages pass to each other: frozen, plain, validated once.

A task is played in attempts; an attempt is a sequence of steps; each step has one observation, one reply and one
outcome; an attempt on disk is a trajectory; checks or a judge method give a verdict on it.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.access import HttpCredentials, StorageState, secrets_of
from shared.checks import Check

TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
TaskId = Annotated[str, Field(pattern=f"^{TASK_ID.pattern}$")]
Level = Literal["easy", "medium", "hard"]
VerdictOutcome = Literal["success", "failure", "unscored"]
# What decides a task: its declared checks, WebArena-Verified's own evaluator, or a judge model.
Truth = Literal["checks", "webarena_verified", "judge"]
TaskOutcome = Literal["success", "failure", "unscored", "aborted"]
StopReason = Literal[
    "finished",  # the participant called `finish` or `browser_close`
    "ended_by_page",  # a probe with `ends` found a value
    "max_steps",  # over the step budget, no answer
    "task_timeout",  # over the time budget, no answer
    "participant_error",  # erred, timed out, disconnected
    "unreadable_replies",  # three unreadable replies in a row
    "environment_fault",  # browser, site or judge fault: aborted
    "site_blocked",  # a bot wall or CAPTCHA instead of the first page: aborted
    "cancelled",  # the assessment was stopped: aborted
    "excluded",  # excluded before the first attempt (`--exclude`): never played
]


def key_of(task_id: str, epoch: int) -> str:
    """The name of a task in an epoch, for files and tables: `t1`, then `t1.2`. Unique because task ids have no dots."""
    return task_id if epoch == 1 else f"{task_id}.{epoch}"


class Record(BaseModel):
    """A frozen record; unknown keys are errors, so that a typo is not silently ignored."""

    # Validators are built at first use: a command pays for the few records it reads, not for all of them.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Task(Record):
    """One task of a scenario.

    `start_urls` are opened in tabs before the first observation, with the first one in front; by default, `website`.
    `keep_fields` are names of fields, parameters, headers and cookies that an external evaluator reads: the network
    trace keeps their values, unless the scenario lists them as secrets.
    `storage_state` and `http_credentials` are secret and excluded from every dump; code that sends a task adds them
    explicitly.
    `reference` is a replay script beside the scenario, and `excluded` the reason why the scenario leaves the task out:
    both are the author's, so neither is in a dump and no digest depends on them.
    """

    task_id: TaskId
    website: str
    task: str
    level: Level | None = None
    reference_length: int | None = Field(default=None, ge=1)
    key_points: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    allowed_sites: tuple[str, ...] = ()
    start_urls: tuple[str, ...] = ()
    keep_fields: tuple[str, ...] = ()
    storage_state: StorageState | str | None = Field(default=None, exclude=True, repr=False)
    http_credentials: tuple[HttpCredentials, ...] = Field(default=(), exclude=True, repr=False)
    reference: str | None = Field(default=None, exclude=True)
    excluded: str | None = Field(default=None, exclude=True)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of `storage_state` and `http_credentials`, which must never be recorded or shown."""
        return secrets_of(self.storage_state, self.http_credentials)


class Exclusion(Record):
    """A task that is not played: left out by its scenario, or excluded from one run before its first attempt.

    One that a run excludes still counts as one of its tasks; one that the scenario excludes is none of them.
    """

    task_id: TaskId
    reason: str
    by: Literal["scenario", "run"]


class ToolSpec(Record):
    """A tool offered to the participant; `parameters` is its JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class Tab(Record):
    """One open browser tab; `index` is what `browser_tabs` takes."""

    index: int
    title: str
    url: str
    current: bool = False


class Settled(Record):
    """How long the judge waited before it observed a page, in seconds of real time and of the page's own clock.

    `waited_for` are the reasons: `requests`, `changes`, `timer`, `busy` (a loading indicator), `moving`.
    """

    real_s: float = 0.0
    page_s: float = 0.0
    waited_for: tuple[str, ...] = ()


NoticeCode = Literal[
    "cannot_be_shown",  # a document without a snapshot, of some `kind`
    "loading_stopped",  # it did not end within `seconds`
    "keeps_changing",  # it was never at rest long enough to be recorded
    "no_snapshot",  # the browser gave none
    "no_screenshot",  # the browser gave none
    "script_stopped",  # after `seconds` of CPU time
    "not_as_typed",  # `count` fields do not contain what was typed into them
    "tabs_closed",  # `count` of those that pages opened
    "tab_crashed",  # an empty tab has taken its place
    "tab_flooded",  # by console messages or navigations; an empty tab has taken its place
    "tab_busy",  # its script let nothing through; an empty tab has taken its place
    "tab_took_too_long",  # more than `seconds`; an empty tab has taken its place
]
DocumentKind = Literal["svg", "xml", "empty"]


class Notice(Record):
    """A fact about the page that the judge tells the participant beside it (`shared.notices` renders it)."""

    code: NoticeCode
    kind: DocumentKind | None = Field(default=None, exclude_if=lambda value: value is None)
    seconds: float | None = Field(default=None, exclude_if=lambda value: value is None)
    count: int | None = Field(default=None, exclude_if=lambda value: value is None)


class Page(Record):
    """What the browser shows at one moment. `screenshot` is the JPEG from the browser.

    `notice`: the page cannot be observed, or not as usual; then the snapshot may be empty, and the screenshot missing.

    Since the last observation: `refused` are the network addresses that the guard blocked, `downloads` the names of
    files that pages began to download, `vanished` texts that appeared and disappeared, such as a notification.
    `http_status` is set only for an error status. `wall` names the bot wall or CAPTCHA that is shown instead of the
    page. `origin` is that of whoever wrote the main document, as the browser reports it; `null` is nobody's.
    `is_mixed`: what has no reference in the snapshot may come from an editor. `links` are addresses of other origins in
    links, frames and forms, each after the origin of its document: only those that are new, and only until the
    participant writes anything.
    """

    url: str
    title: str
    snapshot: str
    screenshot: bytes | None = None
    media_type: str = "image/jpeg"
    tabs: tuple[Tab, ...] = ()
    dialog: str | None = None
    refused: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    settled: Settled = Settled()
    http_status: int | None = None
    wall: str = ""
    origin: str | None = None
    is_mixed: bool = False
    links: tuple[tuple[str, str], ...] = Field(default=(), exclude=True, repr=False)
    notice: Notice | None = None


class Observation(Record):
    """What a participant receives in one message. Only the first message of an attempt has an `instruction`.

    `notice` is what the judge says about the page, as text.
    """

    page: Page
    tools: tuple[ToolSpec, ...]
    instruction: str | None = None
    website: str | None = None
    feedback: str | None = None
    notice: str | None = None


class Action(Record):
    """What a participant asks for: one tool with its parameters. `thought` is recorded and never judged."""

    tool: str
    params: dict[str, Any] = Field(default_factory=dict)
    thought: str = ""


class Reply(Record):
    """A participant's message as the judge understands it: an action, or one precise complaint."""

    action: Action | None = None
    complaint: str | None = None


class Outcome(Record):
    """The result of an action. `line` is the factual action line; only executed actions have one.

    `message` is the browser's text, bounded; the participant receives it as feedback if `ok` is false. `refs` are the
    references of the elements that the line names; an empty one is an element without a reference.
    """

    ok: bool
    message: str = ""
    line: str | None = None
    refs: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)


class Timings(Record):
    """Where a step's wall time went, in seconds. `settle_s` is part of `observe_s`; `page_s` is page time."""

    observe_s: float = 0.0
    reply_s: float = 0.0
    act_s: float = 0.0
    settle_s: float = 0.0
    page_s: float = 0.0


class Navigation(Record):
    """One request for a page or for a frame's document, and who led the browser there (`judge.episode.blame`).

    `cause`: the judge's browser was told to open the address or to go back; otherwise a page navigated.
    """

    url: str
    is_redirect: bool = False
    by: Literal["participant", "site"]
    in_frame: bool = Field(default=False, exclude_if=lambda value: not value)
    cause: Literal["goto", "back"] | None = Field(default=None, exclude_if=lambda value: value is None)


class BlameFacts(Record):
    """What decided whose fault it was that the browser's process was lost or the site was unreachable.

    For a lost browser: the `address` of the document that decided (of the participant's doing, if any was), whether it
    was in a frame and not on the task's site (`is_elsewhere`), whether the participant had named it (`is_named`),
    whether the task's site had led there before the participant wrote anything (`is_linked`), and whether it had
    (`has_written`). `is_incomplete`: too many documents to record. For a site: whether the participant `has_acted` in
    every attempt, and whether the site `works_again` after another reset.
    """

    fault: Literal["browser_lost", "site_unreachable"]
    party: Literal["participant", "site"]
    address: str = ""
    in_frame: bool = False
    is_elsewhere: bool = False
    is_named: bool = False
    is_linked: bool = False
    has_written: bool = False
    is_incomplete: bool = Field(default=False, exclude_if=lambda value: not value)
    has_acted: bool | None = Field(default=None, exclude_if=lambda value: value is None)
    works_again: bool | None = Field(default=None, exclude_if=lambda value: value is None)


class ProbeValue(Record):
    """What the judge read in the page for one expression, or why it could not be read."""

    value: bool | int | float | str | None = None
    error: str | None = None


class Step(Record):
    """One observation, one reply, one outcome. Paths are relative to the task's folder; `reply` is bounded text.

    The digests are of the two files' bytes; runs of the first version have none. `viewport` is width and height in CSS
    pixels. `downloads` (names of files that pages began to download) and `navigations` are those since the previous
    step, so they include the ones that led to this observation. `probes` are the values of the expressions that the
    task's checks name (`shared.checks.expressions_of`), in order. `origin` is that of whoever wrote the main document;
    the snapshot holds those of frames (`judge.browser.provenance`). `is_mixed` is as in `Page`. `notice`: why the page
    was not observed as usual.
    """

    index: int
    url: str
    # Left out unless known or set, because records of older versions do not have them either.
    origin: str | None = Field(default=None, exclude_if=lambda value: value is None)
    is_mixed: bool = Field(default=False, exclude_if=lambda value: not value)
    title: str
    screenshot: str | None = None
    screenshot_sha256: str | None = None
    snapshot: str | None = None
    snapshot_sha256: str | None = None
    dialog: str | None = None
    reply: str = ""
    action: Action | None = None
    outcome: Outcome | None = None
    feedback: str | None = None
    flags: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    tabs: tuple[Tab, ...] = ()
    viewport: tuple[int, int] | None = None
    downloads: tuple[str, ...] = ()
    navigations: tuple[Navigation, ...] = ()
    vanished: tuple[str, ...] = ()
    waited_for: tuple[str, ...] = ()
    probes: tuple[ProbeValue, ...] = ()
    # Not written when there is none, because records of older versions do not have it either.
    notice: Notice | None = Field(default=None, exclude_if=lambda value: value is None)
    timings: Timings = Timings()


class TokenUsage(Record):
    """Tokens of one or more model calls. `input` includes `cached`; `output` includes `reasoning`.

    `estimated_calls` is the number of calls that reported no usage (they were cut off, or the endpoint does not report
    it); their tokens are estimated.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated_calls: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in TokenUsage.model_fields})


class ImageScore(Record):
    """The judge's score for one screenshot's relevance; `Score` is `None` if the reply contained none.

    With `fidelity = "published"` it is 0 instead, as in the published evaluator, unless the provider refused to answer.
    """

    # Named as in Online-Mind2Web's result files.
    Response: str
    Score: int | None = Field(default=None, ge=0, le=5)


class JudgeInfo(Record):
    """Who judged: enough to repeat the judgement. `code_checksum` covers the judging code.

    `fidelity` says how unreadable replies were treated: `strict` (unscored) or as the `published` evaluator does (0).
    """

    method: str
    model: str
    prompt_set: str
    prompt_version: str
    prompt_checksum: str
    threshold: int
    package_version: str
    code_checksum: str
    # Not written when strict, because records of older versions do not have it either.
    fidelity: str = Field(default="strict", exclude_if=lambda value: value == "strict")
    note: str | None = None


# The `reason_code` of a verdict that a budget prevented.
BUDGET_SPENT = "budget_spent"


class Verdict(Record):
    """The result of checks or of a judge method for one trajectory: `unscored` if there is no usable answer.

    It is valid only for the trajectory whose digest is `trajectory_sha256`. `reason_code` is the reason in a form for
    programs, where there is one: `withheld_evidence`, `budget_spent`. `flags` contains `suspected_injection` if the
    evidence includes text addressed to the judge.
    """

    outcome: VerdictOutcome
    reason: str
    # Not written when absent, like the flags.
    reason_code: str | None = Field(default=None, exclude_if=lambda value: value is None)
    # Not written when empty, because records of older versions do not have it either.
    flags: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    trajectory_sha256: str | None = None
    judge: JudgeInfo | None = None
    key_points: tuple[str, ...] = ()
    image_judge_record: tuple[ImageScore, ...] = ()
    evidence: dict[str, Any] = Field(default_factory=dict)
    token_usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None

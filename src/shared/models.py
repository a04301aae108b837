"""Records that pass between the parts: frozen, plain, validated once.

Names follow the field's words: a task is attempted in an episode; an episode is a sequence of steps; each step holds
one observation, one reply and one outcome; what is on disk is a trajectory; what a method says of it is a verdict.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.checks import Check

Level = Literal["easy", "medium", "hard"]
StopReason = Literal[
    "finished",  # the participant called `finish` or `browser_close`
    "max_steps",  # over the step budget, no answer
    "task_timeout",  # over the time budget, no answer
    "participant_error",  # erred, timed out, disconnected
    "unreadable_replies",  # three replies in a row that could not be read
    "environment_fault",  # browser, site or judge fault: aborted
    "cancelled",  # the assessment was stopped: aborted
]
VerdictOutcome = Literal["success", "failure", "unscored"]


class Record(BaseModel):
    """A frozen record; unknown keys are refused so that no typo passes for a setting."""

    # Built when first used: a command pays for the few records that it reads, not for all there are.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Task(Record):
    """One task of a scenario."""

    task_id: str = Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=128)
    website: str
    task: str
    level: Level | None = None
    reference_length: int | None = Field(default=None, ge=1)
    key_points: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    allowed_sites: tuple[str, ...] = ()


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


class Page(Record):
    """What the browser shows at one moment. `screenshot` is the image as the browser encoded it (JPEG).

    `refused` are network addresses that pages asked for since the last look and that the guard kept them from;
    `downloads` are the names of files that they began to download since then.
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


class Observation(Record):
    """What a participant is told in one message. `instruction` stands in the first message of an episode only."""

    page: Page
    tools: tuple[ToolSpec, ...]
    instruction: str | None = None
    website: str | None = None
    feedback: str | None = None


class Action(Record):
    """What a participant wants done: one tool with its parameters. `thought` is kept and never judged."""

    tool: str
    params: dict[str, Any] = Field(default_factory=dict)
    thought: str = ""


class Reply(Record):
    """A participant's message as the judge understands it: an action, or one precise complaint."""

    action: Action | None = None
    complaint: str | None = None


class Outcome(Record):
    """What came of an action. `line` is the factual action line, present only for what really happened.

    `message` is what the browser said, bounded; it goes back to the participant when `ok` is false.
    """

    ok: bool
    message: str = ""
    line: str | None = None


class Timings(Record):
    """Where a step's wall time went, in seconds."""

    observe_s: float = 0.0
    reply_s: float = 0.0
    act_s: float = 0.0


class Navigation(Record):
    """One request for a page, and whose choice it was that the browser went there (`judge.episode.blame`)."""

    url: str
    is_redirect: bool = False
    by: Literal["participant", "site"]


class Step(Record):
    """One observation, one reply, one outcome. Paths are relative to the task's folder; `reply` is bounded text.

    The digests are of the two files' bytes; runs of the first version have none. `viewport` is width and height in CSS
    pixels. `downloads` (names of files that pages began to download) and `navigations` are those since the step before,
    so they include the ones that led to this observation.
    """

    index: int
    url: str
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
    timings: Timings = Timings()


class TokenUsage(Record):
    """Tokens of one or more model calls. `input` includes `cached`; `output` includes `reasoning`.

    `estimated_calls` of the calls did not tell their usage: cut off before the answer came, or by an endpoint that does
    not say. Where a meter counts them, it counts an estimate of the tokens.
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
    """One screenshot's relevance as the judge saw it; `Score` is `None` when the reply held none."""

    Response: str
    Score: int | None = Field(default=None, ge=1, le=5)


class JudgeInfo(Record):
    """Who judged: enough to repeat the judgement. `code_checksum` covers the judging code."""

    method: str
    model: str
    prompt_set: str
    prompt_version: str
    prompt_checksum: str
    threshold: int
    package_version: str
    code_checksum: str
    note: str | None = None


class Verdict(Record):
    """What a judge method says of one trajectory. Nothing defaults to success: without an answer it is `unscored`.

    It is valid for the trajectory with the digest `trajectory_sha256` and for no other.
    """

    outcome: VerdictOutcome
    reason: str
    trajectory_sha256: str | None = None
    judge: JudgeInfo | None = None
    key_points: tuple[str, ...] = ()
    image_judge_record: tuple[ImageScore, ...] = ()
    evidence: dict[str, Any] = Field(default_factory=dict)
    token_usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None

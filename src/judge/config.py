"""The `[config]` of a scenario or of an assessment request: every key optional, every limit with its unit."""

import itertools
import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from judge.sites import is_site
from shared.models import Record
from shared.text import excerpt

JudgeMethod = Literal["webjudge", "webjudge_keypoints", "webvoyager", "autonomous", "agenttrek", "rubric"]
# `result.json` of an attempt of this many steps, each as large as `judge.store` lets it be, can still be read.
MAX_STEPS = 1000
DEFAULT_JUDGE_MODEL = "gemini:gemini-3-flash-preview"
# No attempt takes longer: a larger limit is a slip, and pauses alone may not add up to more.
MAX_ATTEMPT_S = 86_400.0
_HOST = re.compile(r"(?:[A-Za-z0-9_-]|[^\x00-\x7f])+(?:\.(?:[A-Za-z0-9_-]|[^\x00-\x7f])+)*\.?")


class Unusable(ValueError):
    """A value that cannot work; `remedy` says what to write instead."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def url_problem(value: str) -> str | None:
    """What keeps a text from being an http or https address without user name and password; `None` when nothing."""
    if re.search(r"\s", value):
        return "has a space in it"
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if not host or port == 0:
        return "has no host" if not host else "has port 0"
    if "@" in parts.netloc:
        return "holds a user name or password"
    # An IPv6 address is in brackets, which `urlsplit` has checked.
    is_host = ":" in host or (len(host) <= 253 and _HOST.fullmatch(host))
    return None if is_host else "has a host that no address can have"


def first_problem(error: ValidationError) -> tuple[str, str, str]:
    """The first mistake in a configuration: its key (empty when several keys conflict), the problem, the remedy."""
    detail = error.errors(include_url=False)[0]
    cause = (detail.get("ctx") or {}).get("error")
    remedy = cause.remedy if isinstance(cause, Unusable) else ""
    return ".".join(str(part) for part in detail["loc"]), detail["msg"].removeprefix("Value error, ")[:200], remedy


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class RunConfig(Record):
    """How an assessment is run and judged. Timeouts nest strictly: call < step < task < attempt, and reply < step.

    `task_timeout_s` is the participant's own time; `attempt_timeout_s` is the wall time of an attempt and includes the
    judge's pauses (`step_delay`); see `attempt_limit_s` for its default.
    """

    max_steps: int = Field(default=15, ge=1, le=MAX_STEPS)
    max_parallel: int = Field(default=1, ge=1, le=64)
    max_task_retries: int = Field(default=1, ge=0, le=10)
    step_delay: float = Field(default=0.0, ge=0, le=600)

    reply_timeout_s: float = Field(default=120.0, gt=0)
    call_timeout_s: float = Field(default=60.0, gt=0)
    step_timeout_s: float = Field(default=300.0, gt=0)
    task_timeout_s: float = Field(default=1800.0, gt=0)
    attempt_timeout_s: float | None = Field(default=None, gt=0)
    navigation_timeout_s: float = Field(default=30.0, gt=0)
    action_timeout_s: float = Field(default=5.0, gt=0)
    settle_ms: int = Field(default=500, ge=0, le=60_000)

    max_snapshot_chars: int = Field(default=40_000, ge=1000, le=2_000_000)
    max_reply_bytes: int = Field(default=1_000_000, ge=1000, le=64_000_000)
    viewport_width: int = Field(default=1280, ge=200, le=4096)
    viewport_height: int = Field(default=720, ge=200, le=4096)
    browser_path: str | None = Field(default=None, min_length=1)

    judge_model: str = DEFAULT_JUDGE_MODEL
    judge_method: JudgeMethod = "webjudge"
    judge_votes: int = Field(default=1, ge=1, le=15)
    judge_sees_answer: bool = False
    judge_base_url: str | None = None
    judge_timeout_s: float = Field(default=120.0, gt=0)
    judge_max_concurrency: int = Field(default=16, ge=1, le=256)
    judge_requests_per_minute: int | None = Field(default=None, ge=1)
    judge_tokens_per_minute: int | None = Field(default=None, ge=1)
    max_judge_cost_usd: float | None = Field(default=None, gt=0)
    max_judge_tokens: int | None = Field(default=None, gt=0)
    prompts: str | None = Field(default=None, min_length=1)
    score_threshold: int = Field(default=3, ge=1, le=5)
    max_images: int = Field(default=50, ge=1, le=500)

    judge_checked_tasks: bool = False
    truth: Literal["checks", "judge"] = "checks"
    allowed_sites: Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(max_length=50)] = ()

    off_site: Literal["flag", "fail", "allow"] = "flag"
    scenario: str | None = None
    run_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")
    participant_ids: dict[str, str] = Field(default_factory=dict)
    shard_index: int = Field(default=0, ge=0)
    num_shards: int = Field(default=1, ge=1)
    num_instances: int | None = Field(default=None, ge=1)

    @property
    def attempt_limit_s(self) -> float:
        """`attempt_timeout_s`, or the participant's time plus a pause and a call of full length for each step."""
        if self.attempt_timeout_s is not None:
            return self.attempt_timeout_s
        return self.task_timeout_s + self.max_steps * (self.step_delay + self.call_timeout_s)

    @field_validator("judge_base_url")
    @classmethod
    def _judge_base_url_is_an_address(cls, value: str | None) -> str | None:
        problem = url_problem(value) if value is not None else None
        if value is None or problem is None:
            return value
        shown = "" if "@" in value else f"{excerpt(value)} "
        raise Unusable(f"{shown}{problem}", "write it like https://host/v1; keys belong in the environment")

    @field_validator("allowed_sites")
    @classmethod
    def _allowed_sites_are_sites(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if not is_site(entry):
                raise Unusable(f"{excerpt(entry, 60)} is not a site", 'write "example.com" or "https://pay.example"')
        return value

    @model_validator(mode="after")
    def _attempts_end(self) -> Self:
        for name in type(self).model_fields:
            if name.endswith("_timeout_s") and (getattr(self, name) or 0) > MAX_ATTEMPT_S:
                raise Unusable(f"{name} is {getattr(self, name):g} s, more than a day", f"at most {MAX_ATTEMPT_S:g}")
        if self.max_steps * self.step_delay > MAX_ATTEMPT_S:
            pauses = f"{self.max_steps} steps with a step_delay of {self.step_delay:g} s"
            raise Unusable(f"{pauses} take more than a day", "lower max_steps or step_delay")
        return self

    @model_validator(mode="after")
    def _limits_nest(self) -> Self:
        order = ("action_timeout_s", "navigation_timeout_s", "call_timeout_s", "step_timeout_s", "task_timeout_s")
        for inner, outer in (*itertools.pairwise(order), ("reply_timeout_s", "step_timeout_s")):
            if getattr(self, inner) >= getattr(self, outer):
                raise ValueError(f"{inner} must be less than {outer}")
        if self.task_timeout_s + self.max_steps * self.step_delay >= self.attempt_limit_s:
            raise ValueError("attempt_timeout_s must be more than task_timeout_s plus max_steps times step_delay")
        if self.settle_ms / 1000 >= self.call_timeout_s:
            raise ValueError("settle_ms must be less than call_timeout_s")
        if self.shard_index >= self.num_shards:
            raise ValueError("shard_index must be less than num_shards")
        return self

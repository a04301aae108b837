"""The `[config]` of a scenario or of an assessment request: every key optional, every limit with its unit."""

import itertools
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from judge.record_limits import MAX_STEPS
from judge.sites import is_site
from shared.models import Record

JudgeMethod = Literal["webjudge", "webjudge_keypoints", "webvoyager", "autonomous", "agenttrek", "rubric"]
DEFAULT_JUDGE_MODEL = "gemini:gemini-3-flash-preview"


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class RunConfig(Record):
    """How an assessment is run and judged. Timeouts nest strictly: call < step < task, and reply < step."""

    max_steps: int = Field(default=15, ge=1, le=MAX_STEPS)
    max_parallel: int = Field(default=1, ge=1, le=64)
    max_task_retries: int = Field(default=1, ge=0, le=10)
    step_delay: float = Field(default=0.0, ge=0, le=600)

    reply_timeout_s: float = Field(default=120.0, gt=0)
    call_timeout_s: float = Field(default=60.0, gt=0)
    step_timeout_s: float = Field(default=300.0, gt=0)
    task_timeout_s: float = Field(default=1800.0, gt=0)
    navigation_timeout_s: float = Field(default=30.0, gt=0)
    action_timeout_s: float = Field(default=5.0, gt=0)
    settle_ms: int = Field(default=500, ge=0, le=60_000)

    max_snapshot_chars: int = Field(default=40_000, ge=1000, le=2_000_000)
    max_reply_bytes: int = Field(default=1_000_000, ge=1000, le=64_000_000)
    viewport_width: int = Field(default=1280, ge=200, le=4096)
    viewport_height: int = Field(default=720, ge=200, le=4096)
    browser_path: str | None = None

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
    prompts: str | None = None
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

    @model_validator(mode="after")
    def _limits_nest(self) -> Self:
        order = ("action_timeout_s", "navigation_timeout_s", "call_timeout_s", "step_timeout_s", "task_timeout_s")
        for inner, outer in (*itertools.pairwise(order), ("reply_timeout_s", "step_timeout_s")):
            if getattr(self, inner) >= getattr(self, outer):
                raise ValueError(f"{inner} must be less than {outer}")
        if self.settle_ms / 1000 >= self.call_timeout_s:
            raise ValueError("settle_ms must be less than call_timeout_s")
        if "@" in (self.judge_base_url or ""):
            raise ValueError("judge_base_url must hold no user or password: the settings are recorded")
        for entry in self.allowed_sites:
            if not is_site(entry):
                raise ValueError(f'allowed_sites: {entry[:60]!a} is not a site: write "example.com"')
        if self.shard_index >= self.num_shards:
            raise ValueError("shard_index must be less than num_shards")
        return self

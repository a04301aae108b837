"""Limits of one judge: what a request may ask for, capacity, and settings reserved for the judge's user."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.scenario.models import MAX_TASKS, AssessmentRequest
from shared.declarations import settings_in
from shared.errors import ConfigError
from shared.llm.prices import find_price
from shared.models import Record
from shared.text import excerpt

# For pipes to the MCP server, the participant's connection, files, and pages' connections through the proxy.
_DESCRIPTORS_PER_TASK = 32
_UNLIMITED = 1_000_000


def settings_of_the_host(config: RunConfig) -> tuple[str, ...]:
    """The settings in a request reserved for users with access to the judge's machine."""
    host_settings = (
        (name, field, getattr(config, name)) for name, field, setting in settings_in(RunConfig) if setting.host
    )
    # An empty value is as good as none.
    return tuple(name for name, field, value in host_settings if value and value != field.default)


class ServiceLimits(Record):
    """The limits that the judge's owner sets for requests.

    A request with more tasks, more actions (`max_steps` times `max_actions`) or a longer `task_timeout_s` is rejected,
    because reducing these would change the assessment. Budgets and parallelism are clamped instead. `max_cost_usd` and
    `max_tokens` limit the judge model's usage in each assessment and in all assessments of the process together.

    `descriptors` are those that assessments may use; `None` means unlimited. `allowed_participants` are
    `host` or `host:port`, compared as written (an IPv6 address in brackets); a host without a port allows all its
    ports. Empty: any participant is allowed.
    """

    max_assessments: int = 4
    max_tasks: int = MAX_TASKS
    max_parallel: int = 64
    max_steps: int | None = None
    max_task_timeout_s: float | None = None
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    descriptors: int | None = None
    allowed_participants: tuple[str, ...] = ()

    def check(self, config: RunConfig, tasks: int) -> None:
        """Raises `ConfigError` for a request of `tasks` tasks, each counted in every epoch, that exceeds a limit."""
        steps = "max_steps" if config.max_actions == 1 else "max_steps × max_actions"
        for key, value, limit in (
            (steps, config.max_recorded_steps, self.max_steps),
            ("task_timeout_s", config.task_timeout_s, self.max_task_timeout_s),
        ):
            if limit is not None and value > limit:
                raise ConfigError(
                    f"assessment request: config.{key} is {value:g}, and this judge allows {limit:g} at most",
                    remedy=f"send {limit:g} or less",
                )
        if tasks * config.epochs > self.max_tasks:
            often = f" in {config.epochs} epochs" if config.epochs > 1 else ""
            raise ConfigError(
                f"assessment request: {tasks} tasks{often}, more than {self.max_tasks}",
                remedy="send fewer at once, in shards, or start the judge with a higher --max-tasks",
            )

    def within_budget(self, config: RunConfig) -> tuple[RunConfig, tuple[str, ...]]:
        """The settings with budgets clamped to this judge's limits, and a note for each change.

        Raises `ConfigError` for a model of unknown price when costs are limited.
        """
        # Without a price, the limit could not be enforced.
        if self.max_cost_usd is not None and find_price(config.judge_model, config.prices) is None:
            raise ConfigError(
                f"this judge limits costs, and has no price for {excerpt(config.judge_model)}",
                key="config.judge_model",
                remedy="name a model of known price",
            )
        changes: dict[str, float] = {}
        for key, limit in (("max_judge_cost_usd", self.max_cost_usd), ("max_judge_tokens", self.max_tokens)):
            requested_limit = getattr(config, key)
            if limit is not None and (requested_limit is None or requested_limit > limit):
                changes[key] = limit
        notes = tuple(f"config.{key} is set to {limit:g}, this judge's maximum" for key, limit in changes.items())
        return config.model_copy(update=changes), notes

    def allows(self, url: str) -> bool:
        """Whether the judge may connect to a participant at this address."""
        if not self.allowed_participants:
            return True
        try:
            parts = urlsplit(url)
            port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        except ValueError:
            return False
        # Parsed, not compared as a substring: "http://allowed.test@evil.test/" connects to evil.test.
        host = (parts.hostname or "").rstrip(".").lower()
        host_text = f"[{host}]" if ":" in host else host
        allowed = {entry.strip().rstrip(".").lower() for entry in self.allowed_participants}
        return bool(host) and not allowed.isdisjoint({host_text, f"{host_text}:{port}"})


class Capacity:
    """The parallel tasks and descriptors that the running assessments leave for the next one."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._tasks = limits.max_parallel
        self._descriptors = _UNLIMITED if limits.descriptors is None else limits.descriptors

    @property
    def has_room(self) -> bool:
        """Whether one more task would fit, with one call to the judge model at a time."""
        return self._tasks >= 1 and self._descriptors > _DESCRIPTORS_PER_TASK

    def fit(self, request: AssessmentRequest, tasks: int) -> AssessmentRequest | None:
        """The request with its parallelism clamped to the free capacity; `None` if not even one of its `tasks` fits.

        Each parallel task needs descriptors for its browser, and each parallel call to the judge model needs one.
        """
        config = request.config
        # At most a quarter for calls, so that enough is left for tasks.
        calls = min(config.judge_max_concurrency, max(1, self._descriptors // 4))
        room = min(self._tasks, (self._descriptors - calls) // _DESCRIPTORS_PER_TASK)
        if tasks and room < 1:
            return None
        changes, warnings = {"judge_max_concurrency": calls}, request.warnings
        if min(config.max_parallel, tasks) > room:
            changes["max_parallel"] = room
            warnings += (f"config.max_parallel is set to {room}, the free capacity of this judge",)
        return request.model_copy(update={"config": config.model_copy(update=changes), "warnings": warnings})

    @contextmanager
    def reserve(self, config: RunConfig, tasks: int) -> Iterator[None]:
        """Reserve the capacity for an assessment with these settings (from `fit`) while the body runs."""
        parallel = min(config.max_parallel, tasks)
        descriptors = parallel * _DESCRIPTORS_PER_TASK + config.judge_max_concurrency
        self._tasks -= parallel
        self._descriptors -= descriptors
        try:
            yield
        finally:
            self._tasks += parallel
            self._descriptors += descriptors

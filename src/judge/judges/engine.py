"""Shared by all judge methods on a model: questions, retries of unusable replies, the record, and prefetching.

After an unusable reply the question is repeated once with a stricter reminder. If that fails too, both replies are
removed from the cache, so that a later scoring can succeed, and the method decides what the missing answer means.
"""

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from judge.config import RunConfig
from judge.judges.base import Judge, judge_id
from judge.judges.code import installed_code
from judge.judges.evidence import actions_block, answer_block, image_part, task_block, thoughts_block
from judge.judges.injection import FLAG as INJECTION
from judge.judges.injection import suspicions
from judge.judges.prompt_set import PromptSet
from judge.parsing import Status, parse_status
from judge.trajectory.record import Trajectory
from shared.errors import ModelError, ModelMalformed, ModelTruncated, TrajectoryError
from shared.llm.cache import CachedModel
from shared.llm.model import Completion, ModelRequest
from shared.models import JudgeInfo, Record, Task, TokenUsage, Verdict, VerdictOutcome

T = TypeVar("T")
MAX_REASON_CHARS = 2_000


@dataclass(frozen=True)
class JudgeParts:
    """The components of a judge.

    `repeat` counts from 1; each repeat of a judge has its own verdict files.
    """

    config: RunConfig
    model: CachedModel
    prompts: PromptSet
    repeat: int = 1


class Question(Record):
    """One question to the judge model. `order` is its position in the record, because answers arrive in any order."""

    prompt: str
    values: Mapping[str, Any]
    order: tuple[int, ...] = (0,)
    reminder: str = "status"
    images: tuple[Path, ...] = ()
    # The task's own images, which only imported prompts show.
    input_images: tuple[Path, ...] = ()
    temperature: float = 0.0
    seed: int | None = None


class Session:
    """The questions about one trajectory; records every prompt and reply with tokens and cost.

    A reply that another `payer` has already paid for, such as another epoch's verdict, is free.
    """

    def __init__(self, parts: JudgeParts, payer: str | None = None) -> None:
        self._parts = parts
        self._payer = payer
        self._record: list[tuple[tuple[int, ...], dict[str, Any]]] = []
        self._systems: dict[str, str] = {}
        self._usage = TokenUsage()
        self._costs: list[float | None] = []

    async def ask(self, question: Question, parse: Callable[[str], T | None]) -> tuple[T | None, str]:
        """The parsed reply and its text; `None` when two replies were unusable. Raises `ModelError`.

        With `fidelity = "published"` the first reply is taken as it is.
        """
        requests: list[ModelRequest] = []
        text = ""
        is_published = self._parts.config.fidelity == "published"
        for attempt in range(1 if is_published else 2):
            # Built only now, because a request contains the bytes of its images.
            request = self._request(question, remind=attempt > 0)
            requests.append(request)
            try:
                completion = await self._parts.model.complete(request, self._payer)
            except ModelError as error:
                self._note(question, attempt, request, f"({error.message})", "error", error)
                # The first answer without usable text counts as an unusable reply; a second one is an error.
                if attempt or not isinstance(error, (ModelTruncated, ModelMalformed)):
                    raise
                if is_published:
                    return parse(""), ""
                continue
            text = completion.text
            self._note(question, attempt, request, text, completion.finish_reason, completion)
            # A reply that was cut off does not end with its conclusion.
            value = parse(text) if is_published or completion.finish_reason != "length" else None
            if value is not None:
                return value, text
        # A later scoring must not get these unusable replies from the cache.
        for request in requests:
            await self._parts.model.discard(request)
        return None, text

    async def ask_status(
        self, question: Question, parse: Callable[[str], Status | None] = parse_status
    ) -> tuple[Status | None, str]:
        """The decision that a reply states, and the reply."""
        reply: tuple[Status | None, str] = await self.ask(question, parse)
        return reply

    def verdict(self, outcome: VerdictOutcome, reason: str, **fields: Any) -> Verdict:
        """A verdict with the record of this session as evidence."""
        extra = fields.pop("evidence", {})
        # Concurrent answers arrive in any order; the record keeps the order of the questions.
        calls = [entry for _, entry in sorted(self._record, key=lambda item: item[0])]
        known = [cost for cost in self._costs if cost is not None]
        return Verdict(
            outcome=outcome,
            reason=" ".join(reason.split())[:MAX_REASON_CHARS],
            evidence={**extra, "systems": dict(sorted(self._systems.items())), "calls": calls},
            token_usage=self._usage,
            # One call of unknown cost makes the total unknown.
            cost_usd=sum(known) if len(known) == len(self._costs) else None,
            **fields,
        )

    def decision(self, status: VerdictOutcome | None, text: str, **fields: Any) -> Verdict:
        """The verdict of an outcome reply: its status, or unscored if neither reply had one."""
        if status is None:
            return self.verdict("unscored", "the judge model's replies contained no status", **fields)
        return self.verdict(status, text, **fields)

    def _request(self, question: Question, *, remind: bool) -> ModelRequest:
        prompts = self._parts.prompts
        if prompts.published is not None:
            reminder = prompts.reminder(question.reminder) if remind else ""
            return prompts.published.request(
                question.prompt, question.values, question.images, question.input_images, reminder
            )
        prompt = prompts.render(question.prompt, question.values)
        text = f"{prompt.user}\n\n{prompts.reminder(question.reminder)}" if remind else prompt.user
        images = tuple(image_part(path) for path in question.images)
        return ModelRequest(
            system=prompt.system, parts=(text, *images), temperature=question.temperature, seed=question.seed
        )

    def _note(
        self,
        question: Question,
        attempt: int,
        request: ModelRequest,
        reply: str,
        finish_reason: str,
        paid: Completion | ModelError,
    ) -> None:
        self._systems[question.prompt] = request.system
        entry = {
            "stage": question.prompt,
            "prompt": "\n\n".join(part for part in request.parts if isinstance(part, str)),
            "images": [f"{path.parent.name}/{path.name}" for path in (*question.input_images, *question.images)],
            "reply": reply,
            "finish_reason": finish_reason,
            "asked_again": attempt > 0,
        }
        self._record.append(((*question.order, attempt), entry))
        if paid.usage is not None:
            self._usage += paid.usage
            self._costs.append(paid.cost_usd)


class ModelJudge(Judge):
    """A judge method on a model. Subclasses define the questions and the decision."""

    method: ClassVar[str]
    prompts: ClassVar[tuple[str, ...]]
    reminders: ClassVar[tuple[str, ...]] = ("status",)
    # The settings besides `score_threshold` and `off_site` that can change this method's verdicts.
    options: ClassVar[tuple[str, ...]] = ("judge_sees_answer",)

    def __init__(self, parts: JudgeParts) -> None:
        parts.prompts.check(self.prompts, self.reminders, is_published=parts.config.fidelity == "published")
        self.parts = parts
        self.config = config = parts.config
        prompts, model = parts.prompts, parts.model.name
        options = {name: getattr(config, name) for name in (*self.options, "off_site")}
        again = f".r{parts.repeat}" if parts.repeat > 1 else ""
        self.id = judge_id(self.method, model, prompts.checksum, config.score_threshold, options) + again
        self.info = JudgeInfo(
            method=self.method,
            model=model,
            prompt_set=prompts.name,
            prompt_version=prompts.version,
            prompt_checksum=prompts.checksum,
            threshold=config.score_threshold,
            fidelity=config.fidelity,
            note=f"repeat {parts.repeat}" if again else None,
            **installed_code(),
        )
        # The event loop itself keeps only weak references to its tasks.
        self._prefetching: set[asyncio.Task[None]] = set()

    def prefetch(self, task: Task, screenshot: Path | None = None) -> None:
        """Send the requests that depend on the task alone, or on the task and one screenshot."""

        async def quietly() -> None:
            # Errors are ignored here: `judge` asks again and reports them.
            with contextlib.suppress(ModelError, TrajectoryError):
                await self.ask_ahead(Session(self.parts), task, screenshot)

        work = asyncio.create_task(quietly())
        self._prefetching.add(work)
        work.add_done_callback(self._prefetching.discard)

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The verdict; a fault of the model or an unreadable file makes it `unscored`."""
        epoch = trajectory.attempt.epoch if trajectory.attempt else 1
        session = Session(self.parts, payer=f"{self.id} {trajectory.sha256 or trajectory.folder} {epoch}")
        try:
            if not trajectory.screenshots:
                verdict = session.verdict("unscored", "the trajectory has no screenshots")
            else:
                verdict = await self.decide(session, trajectory)
        except (ModelError, TrajectoryError) as error:
            verdict = session.verdict("unscored", f"{error.blame}: {error}")
        changes: dict[str, Any] = {"judge": self.info}
        # In a thread, because reading all snapshots of a long attempt takes a while.
        if found := await asyncio.to_thread(suspicions, trajectory):
            listed = [each.model_dump() for each in found]
            changes |= {"flags": (INJECTION,), "evidence": {INJECTION: listed, **verdict.evidence}}
        return verdict.model_copy(update=changes)

    async def aclose(self) -> None:
        """Cancel prefetching and close the model."""
        for work in self._prefetching:
            work.cancel()
        await asyncio.gather(*self._prefetching, return_exceptions=True)
        await self.parts.model.aclose()

    @abstractmethod
    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """The method itself. `ModelError` and `TrajectoryError` may be raised."""

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Ask the questions of `decide` that need only the task, or the task and one screenshot."""
        return

    def question(
        self, prompt: str, trajectory: Trajectory, images: Iterable[Path], blocks: Mapping[str, str], **options: Any
    ) -> Question:
        """A question about the complete attempt, with the blocks that most prompts show and those of the method.

        `options` are fields of `Question`.
        """
        shown = tuple(images)
        values = {
            "task_block": task_block(trajectory.task),
            "actions_block": actions_block(trajectory),
            "answer_block": answer_block(trajectory) if self.config.judge_sees_answer else "",
            "thoughts_block": thoughts_block(trajectory) if self.config.judge_sees_thoughts else "",
            "image_count": len(shown),
            **blocks,
        }
        return Question(prompt=prompt, values=values, images=shown, **options)

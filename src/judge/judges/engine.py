"""Shared by all judge methods on a model: questions, retries of unusable replies, the record, and prefetching.

After an unusable reply the question is repeated once with a stricter reminder. If that fails too, both replies are
removed from the cache, so that a later scoring can succeed, and the method decides what the missing answer means.

If the provider refuses a question about an attempt, it is asked again with less of the attempt
(`judge.judges.withholding`), at most three times. The result is decided here for all methods, in `Session.settled`: it
is never a success if anything was withheld.
"""

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from judge.config import JUDGE_METHODS, RunConfig
from judge.judges.base import Judge, Workload, judge_id
from judge.judges.code import found_plugins, installed_code
from judge.judges.evidence import CLAIMS_VERSION, actions_block, answer_block, image_part, task_block, thoughts_block
from judge.judges.injection import FLAG as INJECTION
from judge.judges.injection import suspicions
from judge.judges.prompt_set import PromptSet
from judge.judges.withholding import AttemptView, Provenance, Withholding
from judge.parsing import Status, parse_status
from judge.records.tasks import Task
from judge.records.verdicts import BUDGET_SPENT, MODEL_UNREACHED, WITHHELD_EVIDENCE, JudgeInfo, Verdict, VerdictOutcome
from judge.trajectory.record import Trajectory
from shared.errors import (
    ModelBlocked,
    ModelBudgetSpent,
    ModelError,
    ModelMalformed,
    ModelTruncated,
    ModelUnreached,
    TrajectoryError,
)
from shared.fields import without_none
from shared.llm.cache import CachedModel
from shared.llm.model import Completion, ModelRequest
from shared.llm.prices import Pricing
from shared.llm.providers import PROVIDERS
from shared.models import Record, TokenUsage

T = TypeVar("T")
MAX_REASON_CHARS = 2_000
_WITHHELD: Mapping[Withholding, str] = MappingProxyType(
    {
        "text": "what the participant wrote was withheld",
        "off_site": "pages off the task's sites were withheld",
        "after_text": "pages that were seen after the participant had written text of its own were withheld",
    }
)


@dataclass(frozen=True)
class JudgeParts:
    """The components of a judge.

    `repeat` counts from 1; each repeat of a judge has its own verdict files. `probe`: see `Judge.probe`. `voters` are
    the models of `judge_vote_models`, by name.
    """

    config: RunConfig
    model: CachedModel
    prompts: PromptSet
    repeat: int = 1
    price: Pricing | None = None
    probe: Callable[[], None] = lambda: None
    voters: Mapping[str, CachedModel] = field(default_factory=dict)

    def model_for(self, question: "Question") -> CachedModel:
        """The model that a question is for."""
        return self.voters[question.voter] if question.voter else self.model


class Question(Record):
    """One question to the judge model. `order` is its position in the record, because answers arrive in any order."""

    prompt: str
    values: Mapping[str, Any]
    order: tuple[int, ...] = (0,)
    reminder: str = "status"
    images: tuple[Path, ...] = ()
    # The task's images, which only imported prompts show.
    input_images: tuple[Path, ...] = ()
    temperature: float = 0.0
    seed: int | None = None
    # One of the models that vote, by name; otherwise the judge model.
    voter: str | None = None


class Session:
    """The questions about one trajectory; records every prompt and reply with tokens and cost.

    A reply that another `payer` has already paid for, such as another epoch's verdict, is free. Only questions that do
    not depend on an attempt can be asked without a `trajectory`.
    """

    def __init__(self, parts: JudgeParts, payer: str | None = None, trajectory: Trajectory | None = None) -> None:
        self._parts = parts
        self._payer = payer
        self._trajectory = trajectory
        # Requests that the provider refused, questions that it refused in every form, and those that it answered only
        # after something was withheld.
        self._refusals: list[tuple[Question, bool]] = []
        self._unanswered: list[ModelBlocked] = []
        self._withheld: list[tuple[Withholding, dict[str, Any]]] = []
        # Screenshots whose own question was refused, and those that a question about the attempt was answered with.
        self._unread: set[Path] = set()
        self._shots_sent: set[Path] = set()
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
                completion = await self._parts.model_for(question).complete(request, self._payer)
            except ModelError as error:
                self._note(question, attempt, request, f"({error.message})", "error", error)
                if isinstance(error, ModelBlocked):
                    self._refusals.append((question, attempt > 0))
                # The first answer without usable text counts as an unusable reply; a second one is an error.
                if attempt or not isinstance(error, (ModelTruncated, ModelMalformed)):
                    raise
                if is_published:
                    return parse(""), ""
                continue
            text = completion.text
            self._note(question, attempt, request, text, completion.finish_reason, completion)
            # A reply cut off does not end with its conclusion.
            value = parse(text) if is_published or completion.finish_reason != "length" else None
            if value is not None:
                return value, text
        # A later scoring must not get these unusable replies from the cache.
        for request in requests:
            await self._parts.model_for(question).discard(request)
        return None, text

    async def ask_shot(self, question: Question, parse: Callable[[str], T | None]) -> tuple[T | None, str]:
        """Like `ask`, about one screenshot. If the provider refuses, there is no answer, and the method shows the
        screenshot to later questions without one.
        """
        try:
            return await self.ask(question, parse)
        except ModelBlocked as error:
            self._unread.update(question.images)
            return None, f"({error.message})"

    def is_refused(self, screenshot: Path) -> bool:
        """Whether the provider refused the question about this screenshot."""
        return screenshot in self._unread

    async def ask_about(
        self, make: Callable[[AttemptView], Question], parse: Callable[[str], T | None]
    ) -> tuple[T | None, str]:
        """Like `ask`, about the attempt. `make` builds the question from the view of the attempt that it gets.

        If the provider refuses, the question is asked again with less, until it is answered; then there is no answer,
        because `settled` decides.
        """
        trajectory = self._of_attempt
        whole = make(AttemptView(trajectory))
        try:
            answer = await self.ask(whole, parse)
        except ModelBlocked as error:
            await self._ask_with_less(make, whole, error)
            return None, f"({error.message})"
        self._shots_sent.update(whole.images)
        return answer

    async def ask_status(
        self, make: Callable[[AttemptView], Question], parse: Callable[[str], Status | None] = parse_status
    ) -> tuple[Status | None, str]:
        """The decision on the attempt that a reply states, and the reply."""
        reply: tuple[Status | None, str] = await self.ask_about(make, parse)
        return reply

    @property
    def _of_attempt(self) -> Trajectory:
        if self._trajectory is None:
            raise ValueError("a question about an attempt needs its trajectory")
        return self._trajectory

    @cached_property
    def _provenance(self) -> Provenance:
        return Provenance(self._of_attempt, self._parts.config.sites)

    async def _ask_with_less(
        self, make: Callable[[AttemptView], Question], whole: Question, refusal: ModelBlocked
    ) -> None:
        """Ask until the provider no longer refuses, and record what was withheld then. The answer does not count."""
        reduced_request = first = self._request(whole, remind=False)
        askings = 0
        for place, view in enumerate(self._provenance.views(), start=2):
            question = make(view)
            request = self._request(question, remind=False)
            if request == reduced_request:
                # Nothing of what this step withholds is in the question.
                continue
            reduced_request, askings = request, askings + 1
            try:
                completion = await self._parts.model_for(question).complete(request, self._payer)
            except ModelError as error:
                self._note(question, place, request, f"({error.message})", "error", error, view.withheld)
                if not isinstance(error, ModelBlocked):
                    raise
                self._refusals.append((question, False))
                continue
            self._note(question, place, request, completion.text, completion.finish_reason, completion, view.withheld)
            if view.withheld is not None:
                known = {"question": whole.prompt, "askings": askings, "step": view.withheld}
                self._withheld.append((view.withheld, known | _difference(first, whole, question, view)))
            return
        self._unanswered.append(refusal)

    async def settled(self, verdict: Verdict, fault: Exception | None) -> Verdict:
        """The verdict, unless the provider refused something: then a failure if the participant caused that, and no
        verdict if the cause is unknown. `fault` is what prevented a verdict.

        It does not depend on the order in which answers arrived.
        """
        if self._withheld:
            return self._failed(verdict)
        missing = sorted(self._unread - self._shots_sent) if verdict.outcome == "success" else []
        if self._unanswered:
            first = min(self._unanswered, key=str)
            verdict = verdict.model_copy(update={"outcome": "unscored", "reason": f"{first.blame}: {first}"})
        elif missing:
            verdict = self._without_shots(verdict, missing)
        if verdict.outcome == "unscored" and (self._unanswered or missing or isinstance(fault, ModelBlocked)):
            await self._forget_refusals()
        return verdict

    def _failed(self, verdict: Verdict) -> Verdict:
        # If there are several questions, the one answered with the least withheld.
        order = list(_WITHHELD)
        step, _ = min(self._withheld, key=lambda one: order.index(one[0]))
        withheld = [
            entry for _, entry in sorted(self._withheld, key=lambda one: (one[1]["question"], order.index(one[0])))
        ]
        return _without_evidence(verdict, f"the judge model refused to judge until {_WITHHELD[step]}", withheld)

    def _without_shots(self, verdict: Verdict, missing: list[Path]) -> Verdict:
        """A success decided without screenshots that the provider had refused on their own."""
        entry = {"question": "screenshot", "askings": 0, "screenshots": _names(missing)}
        if any(map(self._provenance.is_participants, missing)):
            return _without_evidence(verdict, "the judge model refused screenshots that the decision lacks", [entry])
        reason = "judge model: it refused screenshots that the decision lacks"
        evidence = {**verdict.evidence, "withheld": [entry]}
        return verdict.model_copy(update={"outcome": "unscored", "reason": reason, "evidence": evidence})

    async def _forget_refusals(self) -> None:
        """Remove the refusals from the cache, so that a later scoring asks again."""
        for question, remind in self._refusals:
            # A request cannot be repeated when its image cannot be read any more.
            with contextlib.suppress(TrajectoryError):
                await self._parts.model_for(question).discard(self._request(question, remind=remind))

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
            price_date=self._parts.price.date if known and self._parts.price else None,
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
        outcome: Completion | ModelError,
        withheld: Withholding | None = None,
    ) -> None:
        self._systems[question.prompt] = request.system
        entry = {
            "stage": question.prompt,
            "prompt": _text(request),
            "images": _names((*question.input_images, *question.images)),
            "reply": reply,
            "finish_reason": finish_reason,
            "asked_again": attempt > 0,
            **without_none(withheld=withheld or None, model=question.voter),
        }
        self._record.append(((*question.order, attempt), entry))
        if outcome.usage is not None:
            self._usage += outcome.usage
            self._costs.append(outcome.cost_usd)


def _difference(request: ModelRequest, whole: Question, reduced: Question, view: AttemptView) -> dict[str, Any]:
    """What was withheld from an answered question: texts by their names in prompts, actions by number, screenshots."""
    hidden = dict.fromkeys(path for path in whole.images if path not in reduced.images)
    text = _text(request)
    changed = [name for name, value in whole.values.items() if reduced.values.get(name) != value]
    # Not every prompt shows every text.
    texts = [name for name in changed if str(whole.values[name]) in text and name != "image_count"]
    has_actions = not {"actions_block", "last_actions"}.isdisjoint(texts)
    return {"texts": texts, "actions": list(view.masked) if has_actions else [], "screenshots": _names(hidden)}


def _text(request: ModelRequest) -> str:
    return "\n\n".join(part for part in request.parts if isinstance(part, str))


def _without_evidence(verdict: Verdict, reason: str, withheld: list[dict[str, Any]]) -> Verdict:
    changes = {"outcome": "failure", "reason": reason, "reason_code": WITHHELD_EVIDENCE}
    return verdict.model_copy(update={**changes, "evidence": {**verdict.evidence, "withheld": withheld}})


def _names(paths: Iterable[Path]) -> list[str]:
    return [f"{path.parent.name}/{path.name}" for path in paths]


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
        if self.sees_claims(config) and prompts.published is None:
            options["claims"] = CLAIMS_VERSION
        again = f".r{parts.repeat}" if parts.repeat > 1 else ""
        self.price = parts.price
        plugins = found_plugins(JUDGE_METHODS.plugin(self.method), PROVIDERS.plugin(model.partition(":")[0]))
        # Another version of a plug-in is another judge.
        others = [plugin.model_dump() for plugin in plugins]
        self.id = judge_id(self.method, model, prompts.checksum, config.score_threshold, options, *others) + again
        self.info = JudgeInfo(
            method=self.method,
            model=model,
            prompt_set=prompts.name,
            prompt_version=prompts.version,
            prompt_checksum=prompts.checksum,
            threshold=config.score_threshold,
            fidelity=config.fidelity,
            note="; ".join(filter(None, (self.note(config), f"repeat {parts.repeat}" if again else ""))) or None,
            plugins=plugins,
            **installed_code(),
        )
        # The event loop itself keeps only weak references to its tasks.
        self._prefetching: set[asyncio.Task[None]] = set()

    def note(self, config: RunConfig) -> str:
        """What else to say of the judge in its verdicts."""
        return ""

    def sees_claims(self, config: RunConfig) -> bool:
        """Whether the participant's answer or thoughts are shown to the model."""
        settings = {"judge_sees_answer", "judge_sees_thoughts"}.intersection(self.options)
        return any(getattr(config, name) for name in settings)

    def prefetch(self, task: Task, screenshot: Path | None = None) -> None:
        """Send the requests that depend on the task alone, or on the task and one screenshot."""

        async def quietly() -> None:
            # Errors are ignored here: `judge` asks again and reports them.
            with contextlib.suppress(ModelError, TrajectoryError):
                await self.ask_ahead(Session(self.parts), task, screenshot)

        work = asyncio.create_task(quietly())
        self._prefetching.add(work)
        work.add_done_callback(self._prefetching.discard)

    def probe(self) -> None:
        """See `Judge`."""
        self.parts.probe()

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The verdict; a fault of the model or an unreadable file makes it `unscored`."""
        epoch = trajectory.attempt.epoch
        payer = f"{self.id} {trajectory.sha256 or trajectory.folder} {epoch}"
        session = Session(self.parts, payer, trajectory)
        fault: Exception | None = None
        try:
            if not trajectory.screenshots:
                verdict = session.verdict("unscored", "the trajectory has no screenshots")
            else:
                verdict = await self.decide(session, trajectory)
        except (ModelBudgetSpent, ModelUnreached) as error:
            # Without the remedy, which is the same for every attempt: callers give it once, by the code.
            code = BUDGET_SPENT if isinstance(error, ModelBudgetSpent) else MODEL_UNREACHED
            verdict = session.verdict("unscored", f"{error.blame}: {error.message}", reason_code=code)
            fault = error
        except (ModelError, TrajectoryError) as error:
            verdict = session.verdict("unscored", f"{error.blame}: {error}")
            fault = error
        verdict = await session.settled(verdict, fault)
        changes: dict[str, Any] = {"judge": self.info}
        # In a thread, because reading all snapshots of a long attempt takes a while.
        if suspicious := await asyncio.to_thread(suspicions, trajectory):
            flags = [each.model_dump() for each in suspicious]
            changes |= {"flags": (INJECTION,), "evidence": {INJECTION: flags, **verdict.evidence}}
        return verdict.model_copy(update=changes)

    @abstractmethod
    def workload(self, trajectory: Trajectory) -> Workload:
        """What `decide` will ask, if every reply is usable."""

    async def aclose(self) -> None:
        """Cancel prefetching and close the model."""
        for work in self._prefetching:
            work.cancel()
        await asyncio.gather(*self._prefetching, return_exceptions=True)
        for model in (self.parts.model, *self.parts.voters.values()):
            await model.aclose()

    @abstractmethod
    async def decide(self, session: Session, trajectory: Trajectory) -> Verdict:
        """The method itself. `ModelError` and `TrajectoryError` may be raised."""

    async def ask_ahead(self, session: Session, task: Task, screenshot: Path | None) -> None:
        """Ask the questions of `decide` that need only the task, or the task and one screenshot."""
        return

    def question(
        self, prompt: str, view: AttemptView, images: Iterable[Path], blocks: Mapping[str, str], **options: Any
    ) -> Question:
        """A question about the attempt, with the blocks that most prompts show and the method's.

        `options` are fields of `Question`.
        """
        trajectory, images_shown = view.trajectory, tuple(filter(view.shows, images))
        values = {
            "task_block": task_block(trajectory.task),
            "actions_block": actions_block(trajectory),
            "answer_block": answer_block(trajectory) if self.config.judge_sees_answer else "",
            "thoughts_block": thoughts_block(trajectory) if self.config.judge_sees_thoughts else "",
            "image_count": len(images_shown),
            **blocks,
        }
        return Question(prompt=prompt, values=values, images=images_shown, **options)

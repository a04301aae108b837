"""A verdict as a view. The structure of its evidence depends on the judge method, so all of it is shown generically."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge.records.checks import Check, plain_checks
from judge.records.verdicts import WITHHELD_EVIDENCE, ImageScore, Verdict
from judge.results.given_verdicts import GivenVerdict, JudgeName, name_in
from shared.fields import as_mapping, as_mappings
from shared.models import TokenUsage
from shared.text import counted

_MAX_PIECES = 500
_MAX_DEPTH = 8
# The questions to a judge model, each with its stage.
_CALLS = "calls"
_TITLES = ("stage", "description", "key_point")
_MARKS: Mapping[str, bool] = {
    "True": True,
    "success": True,
    "met": True,
    "False": False,
    "failure": False,
    "not_met": False,
}


@dataclass(frozen=True)
class PointView:
    """A key point; `met` is `None` if the judge does not decide on each point separately.

    For a check that passed, `helped` is the number of the step whose action met it. For one that failed, `wrong` is
    the number of the step at which it went wrong, as far as the record shows; `held`: it was met until then.
    """

    text: str
    met: bool | None = None
    reason: str = ""
    helped: int | None = None
    wrong: int | None = None
    held: bool = False


@dataclass(frozen=True)
class EvidenceView:
    """One collapsible piece of a verdict's evidence: a title and labelled texts."""

    title: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EvidenceStage:
    """Pieces of one kind, such as the questions about screenshots."""

    title: str
    pieces: tuple[EvidenceView, ...]


@dataclass(frozen=True)
class VerdictView:
    """One verdict. `wrong_action` is the number of the action, from 1, at which the attempt went wrong.

    `counts` marks the verdict that the run's numbers are based on, `is_stored` one with a separate file. `name` is
    the judge's plain name.
    """

    judge_id: str
    outcome: str
    reason: str
    counts: bool = False
    is_stored: bool = True
    is_checked: bool = False
    facts: tuple[tuple[str, str], ...] = ()
    points: tuple[PointView, ...] = ()
    scores: tuple[ImageScore, ...] = ()
    notes: tuple[str, ...] = ()
    wrong_action: int | None = None
    evidence: tuple[EvidenceStage, ...] = ()
    cost_usd: float | None = None
    tokens: TokenUsage = field(default_factory=TokenUsage)
    name: str = ""

    @property
    def given(self) -> GivenVerdict:
        """The verdict as one of the judge's."""
        return GivenVerdict(
            judge_id=self.judge_id,
            name=self.name or self.judge_id,
            outcome=self.outcome,
            usage=self.tokens,
            cost_usd=self.cost_usd,
            is_stored=self.is_stored,
        )


@dataclass(frozen=True)
class JudgeView:
    """The verdicts of one judge on an attempt: several if it was asked again."""

    name: JudgeName
    verdicts: tuple[VerdictView, ...]

    @property
    def outcomes(self) -> str:
        """How often each outcome was given."""
        counts = Counter(each.outcome for each in self.verdicts)
        return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def verdict_view(judge_id: str, verdict: Verdict, *, counts: bool, checks: Sequence[Check] = ()) -> VerdictView:
    """Everything in a verdict file. `checks` are the task's."""
    judge = verdict.judge
    rubric = as_mapping(verdict.evidence.get("rubric"))
    code = verdict.reason_code
    codes = [f"reason code: {code}, see the evidence"] if code == WITHHELD_EVIDENCE else []
    flags = [f"flag: {flag}, see the evidence" for flag in verdict.flags]
    return VerdictView(
        judge_id=judge_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        counts=counts,
        is_checked=judge is not None and judge.method == "checks",
        facts=tuple((key, str(value)) for key, value in judge if value) if judge else (),
        points=points_of(verdict, checks),
        scores=verdict.image_judge_record,
        notes=(*codes, *flags, *_notes(rubric)),
        wrong_action=verdict.wrong_action,
        evidence=stages_of(verdict.evidence),
        cost_usd=verdict.cost,
        tokens=verdict.token_usage,
        name=name_in(verdict, judge_id),
    )


def points_of(verdict: Verdict, checks: Sequence[Check] = ()) -> tuple[PointView, ...]:
    """The key points, each with its own result if the evidence has one."""
    judged = tuple(_judged_points(verdict.evidence, checks))
    if not verdict.key_points or [point.text for point in judged] == list(verdict.key_points):
        return judged
    by_text = {point.text: point for point in judged}
    return tuple(by_text.get(text, PointView(text)) for text in verdict.key_points)


def stages_of(evidence: Mapping[str, Any]) -> tuple[EvidenceStage, ...]:
    """The evidence by stage: the question that decided first, then everything else; one stage for all plain values."""
    questions, others = _questions(evidence.get(_CALLS)), list[EvidenceStage]()
    plain: list[tuple[str, str]] = []
    for key, value in evidence.items():
        name = _label(key)
        if key == _CALLS and questions:
            continue
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            others.append(EvidenceStage(f"{name} ({len(value)})", _numbered(name, value)))
        elif isinstance(value, Mapping):
            others.append(EvidenceStage(name, (EvidenceView(name, tuple(_flatten(value))),)))
        else:
            plain += [(f"{name}{suffix}", text) for suffix, text in _flatten(value)]
    if plain:
        others.append(EvidenceStage("Other facts", (EvidenceView("Other facts", tuple(plain)),)))
    return tuple(_bounded([*questions[:1], *others, *questions[1:]]))


def _questions(calls: object) -> list[EvidenceStage]:
    """The calls to a judge model by stage, the last stage first: they decided. Empty without stages."""
    stages: dict[str, list[Any]] = {}
    for call in calls if isinstance(calls, list) else ():
        stage = as_mapping(call).get("stage")
        if not isinstance(stage, str):
            return []
        # The latest stage is last.
        stages[stage] = [*stages.pop(stage, ()), call]
    last, *others = reversed(stages) if stages else ("",)
    order = [last, *reversed(others)] if stages else []
    return [
        EvidenceStage(
            f"{_label(stage)}: {'what decided' if stage == last else counted(len(stages[stage]), 'question')}",
            _numbered("question", stages[stage]),
        )
        for stage in order
    ]


def _numbered(name: str, items: Sequence[Any]) -> tuple[EvidenceView, ...]:
    return tuple(
        EvidenceView(f"{name} {number}{_title(item)}", tuple(_flatten(item))) for number, item in enumerate(items, 1)
    )


def _bounded(stages: Sequence[EvidenceStage]) -> Iterator[EvidenceStage]:
    pieces_left = _MAX_PIECES
    for stage in stages:
        if pieces_left > 0:
            yield replace(stage, pieces=stage.pieces[:pieces_left])
        pieces_left -= len(stage.pieces)
    if pieces_left < 0:
        yield EvidenceStage(f"{counted(-pieces_left, 'more piece')} left out", ())


def _judged_points(evidence: Mapping[str, Any], checks: Sequence[Check]) -> Iterator[PointView]:
    """The results for individual key points: WebJudge's, checks, or a rubric's criteria."""
    for item in as_mappings(evidence.get("key_points")):
        yield PointView(str(item.get("key_point")), _is_met(item.get("status")), str(item.get("reason") or ""))
    check_results = as_mappings(evidence.get("checks"))
    # Other verdicts were made with other checks.
    known = checks if len(checks) == len(check_results) else [None] * len(check_results)
    for item, check in zip(check_results, known, strict=True):
        actual, expected = str(item.get("found") or ""), item.get("expected")
        if expected and item.get("passed") is False:
            actual = f"Expected: {expected}\nFound: {actual}"
        is_met = _is_met(item.get("passed"))
        yield PointView(
            str(item.get("description")), is_met, actual, **_steps_of(item, check) if is_met is not None else {}
        )
    rubric = as_mapping(evidence.get("rubric"))
    texts = {str(item.get("id")): str(item.get("requirement")) for item in as_mappings(rubric.get("criteria"))}
    for mark in as_mappings(rubric.get("marks")):
        if (text := texts.get(str(mark.get("criterion")))) is not None:
            points = f"{mark['points']:g} points. " if isinstance(mark.get("points"), int | float) else ""
            yield PointView(text, _is_met(mark.get("verdict")), points + str(mark.get("reason") or ""))


def _steps_of(item: Mapping[str, Any], check: Check | None) -> dict[str, Any]:
    """The numbers of the steps that a check's result names."""
    if item.get("passed"):
        step = _index(item.get("step"))
        # A page shows the effect of the action before it; no action led to the first page.
        is_own = all(each.of_actions for each in plain_checks([check])) if check else False
        return {} if step is None else {"helped": step + 1 if is_own else step or None}
    last, near = _index(item.get("last_step")), _index(item.get("near_step"))
    wrong = near if last is None else last
    return {} if wrong is None else {"wrong": wrong + 1, "held": last is not None}


def _index(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _notes(rubric: Mapping[str, Any]) -> Iterator[str]:
    failure = as_mapping(rubric.get("first_failure"))
    if failure.get("why"):
        yield f"Where it went wrong: {failure['why']}"
    for blocker in as_mappings(rubric.get("blockers")):
        way = "avoidable" if blocker.get("avoidable") else "not avoidable"
        yield f"Obstacle ({way}): {blocker.get('kind') or 'unknown'}. {blocker.get('seen') or ''}".strip()


def _is_met(mark: object) -> bool | None:
    # Unknown marks are neither met nor failed.
    return _MARKS.get(str(mark))


def _flatten(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, item in value.items():
            yield from _flatten(item, f"{path} · {_label(key)}" if path else _label(key), depth + 1)
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        if any(isinstance(item, list | Mapping) for item in value):
            for number, item in enumerate(value, 1):
                yield from _flatten(item, f"{path} {number}".strip(), depth + 1)
        elif value:
            yield path, "\n".join("none" if item is None else str(item) for item in value)
    elif value is not None and value != "":
        yield path, str(value)


def _label(key: object) -> str:
    return str(key)[:80].replace("_", " ")


def _title(item: object) -> str:
    title = next((value for key in _TITLES if (value := as_mapping(item).get(key)) is not None), None)
    return "" if title is None else f" · {str(title)[:100]}"

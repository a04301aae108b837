"""A stored verdict as views. The evidence's shape is each judge method's own, so all of it is shown, whatever it is."""

from collections.abc import Iterator, Mapping
from typing import Any

from judge.report.views import EvidenceView, PointView, ScoreView, VerdictView
from shared.models import Verdict

_MAX_PIECES = 500
_MAX_DEPTH = 8
_TITLES = ("title", "name", "stage", "call", "kind", "purpose", "step", "image", "point")
_POINT_TEXTS = ("point", "key_point", "text", "description", "criterion", "clause")
_POINT_MARKS = ("met", "satisfied", "completed", "ok", "success", "passed", "status", "outcome", "verdict")
_POINT_REASONS = ("reason", "reasoning", "why", "evidence", "explanation", "found")
_MET = {"success": True, "met": True, "satisfied": True, "completed": True, "yes": True, "pass": True, "passed": True}
_NOT_MET = {"failure": False, "not met": False, "unmet": False, "unsatisfied": False, "incomplete": False, "no": False}
_WORDS = _MET | _NOT_MET | {"fail": False, "failed": False, "not satisfied": False, "not completed": False}


def verdict_view(judge_id: str, verdict: Verdict, *, counts: bool) -> VerdictView:
    """Everything a verdict file holds."""
    judge = verdict.judge
    facts = [] if judge is None else [(key, str(value)) for key, value in judge.model_dump().items() if value]
    return VerdictView(
        judge_id=judge_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        counts=counts,
        facts=tuple(facts),
        points=points_of(verdict),
        scores=scores_of(verdict),
        notes=tuple(_notes(verdict.evidence)),
        wrong_action=_wrong_action(verdict.evidence),
        evidence=pieces_of(verdict.evidence),
        cost_usd=verdict.cost_usd if verdict.token_usage.calls else 0.0,
        tokens=verdict.token_usage,
    )


def points_of(verdict: Verdict) -> tuple[PointView, ...]:
    """The key points, each with its own verdict where the evidence has a list of such."""
    judged = [point for value in verdict.evidence.values() for point in (*_judged_points(value), *_marked(value))]
    by_text = {_plain(point.text): point for point in judged}
    if not verdict.key_points:
        return tuple(judged)
    points = [by_text.get(_plain(text), PointView(text)) for text in verdict.key_points]
    # Same number, other words: the judge numbered them in the order they stand.
    if len(judged) == len(points) and not any(_plain(text) in by_text for text in verdict.key_points):
        pairs = zip(verdict.key_points, judged, strict=True)
        return tuple(PointView(text, point.met, point.reason) for text, point in pairs)
    return tuple(points)


def scores_of(verdict: Verdict) -> tuple[ScoreView, ...]:
    """The screenshot scores in the order of the record."""
    return tuple(ScoreView(record.Score, record.Response) for record in verdict.image_judge_record)


def pieces_of(evidence: Mapping[str, Any]) -> tuple[EvidenceView, ...]:
    """The evidence in foldable pieces: one per call or other record, and one for all plain values."""
    pieces: list[EvidenceView] = []
    plain: list[tuple[str, str]] = []
    for key, value in evidence.items():
        name = _label(key)
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            pieces += [
                EvidenceView(f"{name} {number}{_title(item)}", tuple(_flatten(item)))
                for number, item in enumerate(value, 1)
            ]
        elif isinstance(value, Mapping):
            pieces.append(EvidenceView(name, tuple(_flatten(value))))
        elif value not in (None, "", [], {}):
            plain += [(f"{name}{suffix}", text) for suffix, text in _flatten(value)]
    if plain:
        pieces.append(EvidenceView("Other facts", tuple(plain)))
    left = len(pieces) - _MAX_PIECES
    return tuple(pieces) if left <= 0 else (*pieces[:_MAX_PIECES], EvidenceView(f"{left} more pieces left out", ()))


def _flatten(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, item in value.items():
            yield from _flatten(item, f"{path} · {_label(key)}" if path else _label(key), depth + 1)
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        if all(isinstance(item, str | int | float | bool) or item is None for item in value):
            yield path, "\n".join("none" if item is None else str(item) for item in value)
            return
        for number, item in enumerate(value, 1):
            yield from _flatten(item, f"{path} {number}".strip(), depth + 1)
    elif value is not None and value != "":
        yield path, str(value)


def _judged_points(value: Any) -> Iterator[PointView]:
    """Key points of a list of records that each hold a text and a mark; nothing else counts as one."""
    if not isinstance(value, list):
        return
    for item in value:
        if not isinstance(item, Mapping):
            return
        text = next((item[key] for key in _POINT_TEXTS if isinstance(item.get(key), str)), None)
        marks = [item[key] for key in _POINT_MARKS if key in item]
        if text is None or not marks:
            return
        reason = next((item[key] for key in _POINT_REASONS if isinstance(item.get(key), str)), "")
        yield PointView(text, _met(marks[0]), reason)


def _marked(value: Any) -> Iterator[PointView]:
    """A rubric's criteria with the mark that each was given."""
    if not isinstance(value, Mapping) or not isinstance(value.get("marks"), list):
        return
    criteria = value.get("criteria")
    texts = {
        str(item.get("id")): item["requirement"]
        for item in (criteria if isinstance(criteria, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("requirement"), str)
    }
    for mark in value["marks"]:
        if isinstance(mark, Mapping) and str(mark.get("criterion")) in texts:
            yield PointView(texts[str(mark["criterion"])], _met(mark.get("verdict")), str(mark.get("reason") or ""))


def _notes(evidence: Mapping[str, Any]) -> Iterator[str]:
    """What a rubric's judge says of where it went wrong and of what stood in the way."""
    rubric = evidence.get("rubric")
    if not isinstance(rubric, Mapping):
        return
    failure, blockers = rubric.get("first_failure"), rubric.get("blockers")
    if isinstance(failure, Mapping) and failure.get("why"):
        yield f"Where it went wrong: {failure['why']}"
    for blocker in blockers if isinstance(blockers, list) else ():
        if isinstance(blocker, Mapping):
            way = "avoidable" if blocker.get("avoidable") else "not avoidable"
            yield f"In the way ({way}): {blocker.get('kind') or 'unknown'}. {blocker.get('seen') or ''}".strip()


def _wrong_action(evidence: Mapping[str, Any]) -> int | None:
    rubric = evidence.get("rubric")
    failure = rubric.get("first_failure") if isinstance(rubric, Mapping) else None
    action = failure.get("action") if isinstance(failure, Mapping) else None
    return action if isinstance(action, int) and not isinstance(action, bool) else None


def _met(mark: Any) -> bool | None:
    return mark if isinstance(mark, bool) else _WORDS.get(str(mark).strip().lower().replace("_", " "))


def _label(key: object) -> str:
    return str(key)[:80].replace("_", " ")


def _title(item: Any) -> str:
    if not isinstance(item, Mapping):
        return ""
    known = [(key, item[key]) for key in _TITLES if item.get(key) is not None]
    found = [f"{_label(key)} {value}" if key == "step" else str(value) for key, value in known]
    return f" · {found[0][:100]}" if found else ""


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()

"""The score files of webeval's evaluators: `scores/<name>.json` with `score` and `gpt_response_text`.

Its analysis reads one score per folder, under one of three names. The verdict of a rubric is a separate file,
`mmrubric_<threshold>-<images per criterion>-<relevance>.json`, as the tool's verifier writes it: the text is JSON with
the items and their points, both verdicts and which of them counts, the votes, what is wrong with the task, and the
first point of failure. Keys of it that have no counterpart here are kept as they are.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from judge.records.verdicts import INVALID_TASK, JudgeInfo, Verdict, VerdictOutcome
from judge.trajectory.foreign import read_object
from judge.trajectory.foreign_verdicts import (
    INAPPLICABLE,
    evaluator_named,
    foreign_verdict,
    of_invalid_task,
    points_of,
    read_criteria,
)
from judge.trajectory.paths import usable_id
from shared.errors import TrajectoryError
from shared.fields import as_mapping, as_mappings, without_none
from shared.strict_json import parse_json
from shared.text import clip

# The score files that webeval's analysis looks for; it takes the first one, whatever others a folder has.
_ANALYSED = ("0.8-5-3.json", "gpt_eval.json", "WebJudge_Online_Mind2Web_eval-3.json")
_GPT_EVAL, _WEBJUDGE = _ANALYSED[1:]
_RUBRIC_FILE = re.compile(r"mmrubric_(\d*\.?\d+)-(\d+)-(\d+)")
# The verifier's defaults for the three.
_THRESHOLD, _IMAGES, _RELEVANCE = 0.8, 5, 3
_RUBRIC = "rubric"
_OTHER = "webeval"
_MAX_TEXT_CHARS = 20_000
MAX_SCORES = 50
_MAX_SCORE_BYTES = 4_000_000
_MODES = ("outcome", "process", "both")
_WRITTEN = frozenset(
    "rubric_items rubric_total_max_points rubric_total_earned_points rubric_is_success is_success outcome_success"
    " outcome_reasoning outcome_primary_intent success_criterion rubric_all_scores_list rubric_majority_vote_metadata"
    " final_answer error_taxonomy is_ambiguous ambiguity_codes is_invalid invalid_task_codes".split()
)


def score_files(folder: Path) -> list[Path]:
    """The score files in a folder."""
    return sorted((folder / "scores").glob("*.json"))[:MAX_SCORES]


def verdicts(folder: Path) -> dict[str, Verdict]:
    """The scores of webeval's evaluators as verdicts, by id; unscored if a file cannot be read."""
    return {_verdict_id(path.name): _verdict(folder, path) for path in score_files(folder)}


def _verdict(folder: Path, path: Path) -> Verdict:
    method = f"webeval {path.stem}"
    try:
        value = read_object(folder, f"scores/{path.name}", max_bytes=_MAX_SCORE_BYTES)
    except TrajectoryError as error:
        return foreign_verdict(method, None, error)
    score, response = (value.get(key) for key in ("score", "gpt_response_text"))
    text = response if isinstance(response, str) else json.dumps(response)
    if score not in (0, 1):
        # A rubric's fractional score is only a verdict together with its benchmark's threshold, which is unknown here.
        return foreign_verdict(method, None, f"score {score!r:.40}, neither 0 nor 1: {text}")
    if path.name.startswith("mmrubric_") and isinstance(response, str):
        return rubric_verdict(response, is_success=score == 1, info=evaluator_named(method[:200]), name=path.stem)
    return foreign_verdict(method, score == 1, text)


def rubric_verdict(response: str, *, is_success: bool, info: JudgeInfo, name: str) -> Verdict:
    """The verdict of the tool's rubric verifier, with its items as criteria and their points."""
    outcome: VerdictOutcome = "success" if is_success else "failure"
    try:
        payload = as_mapping(parse_json(response))
    except ValueError:
        return Verdict(outcome=outcome, reason=clip(response, _MAX_TEXT_CHARS), judge=info)
    criteria, marks = read_criteria(as_mappings(payload.get("rubric_items")))
    left_out = {mark["criterion"] for mark in marks if mark["verdict"] == INAPPLICABLE}
    most, earned = (points_of(payload.get(f"rubric_total_{which}_points")) for which in ("max", "earned"))
    share = {"share": earned / most} if most > 0 and earned <= most else {}
    taxonomy = as_mapping(payload.get("error_taxonomy"))
    result_keys = ("first_point_of_failure", "task_verification_with_trajectory", "task_verification")
    entries = {key: taxonomy[key] for key in result_keys if isinstance(taxonomy.get(key), dict)}
    task = _read_validity(payload, taxonomy)
    rubric = {
        "criteria": criteria,
        "marks": marks,
        **share,
        **_read_mode(payload, name),
        **entries,
        **_read_votes(payload),
        **without_none(task=task),
        **without_none(**{_OTHER: {key: value for key, value in payload.items() if key not in _WRITTEN} or None}),
    }
    reason = clip(str(payload.get("outcome_reasoning") or ""), _MAX_TEXT_CHARS)
    known = Verdict(
        outcome=outcome,
        reason=reason,
        judge=info,
        key_points=tuple(str(each["requirement"]) for each in criteria if each["id"] not in left_out),
        evidence={_RUBRIC: rubric},
    )
    return of_invalid_task(known, task["invalid"]) if task and task["is_invalid"] else known


def _read_mode(payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Which of outcome and process counted, what each was, and the numbers in the file's name."""
    mode, intent = payload.get("success_criterion"), payload.get("outcome_primary_intent")
    process = payload.get("rubric_is_success")
    match = _RUBRIC_FILE.fullmatch(name)
    numbers = (float(match[1]), int(match[2]), int(match[3])) if match else (None, None, None)
    return without_none(
        success=mode if mode in _MODES else None,
        outcome_success=value if isinstance(value := payload.get("outcome_success"), bool) else None,
        process_success=bool(process) if process in (0, 1) else None,
        primary_intent=clip(intent, 2_000) if isinstance(intent, str) and intent else None,
        threshold=numbers[0],
        max_images_per_criterion=numbers[1],
        score_threshold=numbers[2],
    )


def _read_votes(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Each vote with its share of the points and its outcome."""
    majority = as_mapping(payload.get("rubric_majority_vote_metadata"))
    scores = majority.get("all_scores", payload.get("rubric_all_scores_list"))
    outcomes = majority.get("outcome_votes")
    shares, flags = (value if isinstance(value, list) else [] for value in (scores, outcomes))
    votes = [
        {
            "process_score": shares[place] if place < len(shares) else None,
            "outcome_success": flags[place] if place < len(flags) else None,
        }
        for place in range(min(max(len(shares), len(flags)), 100))
    ]
    return {"votes": votes} if votes else {}


def _read_validity(payload: Mapping[str, Any], taxonomy: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is wrong with the task, with the verifier's codes; `None` if it does not say."""
    places = ("task_verification_with_trajectory", "task_verification")
    sources = [*(as_mapping(taxonomy.get(place)) for place in places), payload]
    if not any(isinstance(each.get(flag), bool) for each in sources for flag in ("is_ambiguous", "is_invalid")):
        return None

    def codes(flag: str, key: str) -> list[str]:
        values = [each.get(key) for each in sources if each.get(flag) is True]
        value = next((value for value in values if isinstance(value, list)), [])
        return [clip(str(code), 100) for code in value[:20]]

    return {
        "is_ambiguous": any(each.get("is_ambiguous") is True for each in sources),
        "ambiguous": codes("is_ambiguous", "ambiguity_codes"),
        "is_invalid": any(each.get("is_invalid") is True for each in sources),
        "invalid": codes("is_invalid", "invalid_task_codes"),
    }


def score_texts(
    verdicts: Mapping[str, Verdict], counted: Verdict | None, answer: str | None, *, names: Collection[str]
) -> dict[str, str]:
    """The score files. `names` are files that are there already, among them the scores of a folder in this layout."""
    texts: dict[str, str] = {}
    kept_ids = {_verdict_id(name) for name in names if name.startswith("scores/")}
    others = {judge_id: verdict for judge_id, verdict in verdicts.items() if judge_id not in kept_ids}
    is_kept = any(_decides_alike(verdicts[judge_id], counted) for judge_id in kept_ids & verdicts.keys())
    rubric = next((each for each in (counted, *others.values()) if each is not None and _has_marks(each)), None)
    if rubric is not None and (name := f"scores/{_rubric_name(rubric)}.json") not in names:
        texts[name] = rubric_score(rubric, answer)
        others = {judge_id: verdict for judge_id, verdict in others.items() if not _decides_alike(verdict, rubric)}
    is_kept = is_kept or (rubric is not None and rubric is counted)
    if counted is not None and not is_kept and not any(f"scores/{name}" in names for name in _ANALYSED):
        is_webjudge = counted.judge is not None and counted.judge.method == "webjudge"
        texts[f"scores/{_WEBJUDGE if is_webjudge else _GPT_EVAL}"] = _score(counted)
        # Once is enough: read again, a score under two names would be two verdicts.
        others = {judge_id: verdict for judge_id, verdict in others.items() if not _decides_alike(verdict, counted)}
    texts |= {f"scores/{name}.json": _score(each) for name, each in others.items() if each.outcome != "unscored"}
    return texts


def _decides_alike(one: Verdict, other: Verdict | None) -> bool:
    return other is not None and (one.judge, one.outcome, one.reason) == (other.judge, other.outcome, other.reason)


def _verdict_id(score_file: str) -> str:
    return f"webeval-{usable_id(PurePosixPath(score_file).stem)}"


def _score(verdict: Verdict) -> str:
    return json.dumps({"score": float(verdict.outcome == "success"), "gpt_response_text": verdict.reason})


def _has_marks(verdict: Verdict) -> bool:
    rubric = as_mapping(verdict.evidence.get(_RUBRIC))
    is_decided = verdict.outcome != "unscored" or verdict.reason_code == INVALID_TASK
    return is_decided and bool(rubric.get("criteria")) and bool(rubric.get("marks"))


def _rubric_name(verdict: Verdict) -> str:
    rubric = as_mapping(verdict.evidence.get(_RUBRIC))
    images, relevance = rubric.get("max_images_per_criterion", _IMAGES), rubric.get("score_threshold", _RELEVANCE)
    return f"mmrubric_{_threshold(rubric):g}-{images}-{relevance}"


def _threshold(rubric: Mapping[str, Any]) -> float:
    return points_of(rubric.get("threshold")) or _THRESHOLD


def rubric_score(verdict: Verdict, answer: str | None) -> str:
    """The verifier's score file. The task's codes are empty where nothing is said to be wrong with it."""
    rubric = as_mapping(verdict.evidence.get(_RUBRIC))
    items = _written_items(rubric)
    counting = [item for item in items if item.get("is_condition_met") is not False]
    most, earned = (math.fsum(item[key] for item in counting) for key in ("max_points", "earned_points"))
    is_process = rubric.get("process_success")
    if not isinstance(is_process, bool):
        is_process = most > 0 and earned / most >= _threshold(rubric) - 1e-9
    is_invalid = verdict.reason_code == INVALID_TASK
    is_success = rubric.get("outcome") == "success" if is_invalid else verdict.outcome == "success"
    is_outcome = rubric.get("outcome_success")
    payload = {
        **as_mapping(rubric.get(_OTHER)),
        "rubric_items": items,
        "rubric_total_max_points": most,
        "rubric_total_earned_points": earned,
        "rubric_is_success": int(is_process),
        "is_success": is_success,
        "success_criterion": rubric.get("success", "outcome"),
        "final_answer": answer or "",
        "outcome_success": is_outcome if isinstance(is_outcome, bool) else is_success,
        "outcome_reasoning": verdict.reason,
        "outcome_primary_intent": rubric.get("primary_intent", ""),
        **_written_votes(rubric, is_success=is_success),
        "error_taxonomy": {
            "first_point_of_failure": rubric.get("first_point_of_failure") or _written_failure(rubric),
            "task_verification_with_trajectory": rubric.get("task_verification_with_trajectory"),
            "task_verification": rubric.get("task_verification") or _written_validity(rubric),
        },
    }
    return json.dumps({"score": int(is_success), "gpt_response_text": json.dumps(payload)}, indent=2)


def _written_items(rubric: Mapping[str, Any]) -> list[dict[str, Any]]:
    marks = {each.get("criterion"): each for each in as_mappings(rubric.get("marks"))}
    items = []
    for criterion in as_mappings(rubric.get("criteria")):
        mark, points = marks.get(criterion.get("id"), {}), points_of(criterion.get("weight", 1.0)) or 1.0
        verdict, condition = mark.get("verdict"), criterion.get("condition")
        partial = mark.get("points")
        earned = points_of(partial) if partial is not None else points if verdict == "met" else 0.0
        applies = {"condition": condition, "is_condition_met": verdict != INAPPLICABLE}
        items.append(
            {
                "criterion": criterion.get("requirement", ""),
                "description": criterion.get("description", ""),
                "max_points": points,
                "earned_points": min(earned, points),
                "justification": mark.get("reason", ""),
                **(applies if condition or verdict == INAPPLICABLE else {}),
            }
        )
    return items


def _written_votes(rubric: Mapping[str, Any], *, is_success: bool) -> dict[str, Any]:
    votes = as_mappings(rubric.get("votes"))
    if not votes:
        return {}
    scores = [vote.get("process_score") for vote in votes]
    known = sorted((score, place) for place, score in enumerate(scores) if isinstance(score, int | float))
    median = known[len(known) // 2] if known else (None, None)
    majority = {
        "n_instances": len(votes),
        "median_instance_idx": median[1],
        "all_scores": scores,
        "median_score": median[0],
        "outcome_votes": [vote.get("outcome_success") for vote in votes],
        "majority_output_success": is_success,
        **({"models": models} if any(models := [vote.get("model") for vote in votes]) else {}),
    }
    return {"rubric_all_scores_list": scores, "rubric_majority_vote_metadata": majority}


def _written_failure(rubric: Mapping[str, Any]) -> dict[str, Any]:
    failure = as_mapping(rubric.get("first_failure"))
    step = failure.get("action") if isinstance(failure.get("action"), int) else None
    why = failure.get("why", "")
    return {
        "has_failure": bool(failure),
        "first_failure_step": step,
        "first_failure_summary": why,
        "failure_points": [{"step_numbers": str(step or ""), "description": why}] if failure else [],
        "reasoning": why,
    }


def _written_validity(rubric: Mapping[str, Any]) -> dict[str, Any] | None:
    task = as_mapping(rubric.get("task"))
    if not task:
        return None
    ambiguous, invalid = (list(task.get(key) or ()) for key in ("ambiguous", "invalid"))
    return {
        "is_ambiguous": bool(task.get("is_ambiguous", ambiguous)),
        "ambiguity_codes": ambiguous,
        "is_invalid": bool(task.get("is_invalid", invalid)),
        "invalid_task_codes": invalid,
        "reasoning_is_invalid": task.get("why", ""),
    }

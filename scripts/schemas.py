"""Write the JSON schemas of WABE's files, made from the models that write and read them, to docs/schemas/.

    python scripts/schemas.py             writes them
    python scripts/schemas.py --check     exits with 1 if one is out of date

`result.json` is closed: a key that is not listed is an error. `results.json` and HAR files may have more keys.
"""

import json
import sys
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from judge.config import RunConfig
from judge.records.attacks import PlayedAttack
from judge.records.ledger import Coverage
from judge.records.policies import Policy
from judge.records.steps import StopReason, Timings
from judge.records.tasks import Exclusion, Level, Task
from judge.records.verdicts import JudgeInfo, TaskOutcome, Truth, Verdict
from judge.results.rates import COVERAGES
from judge.results.rewards import SuccessRule
from judge.results.rows import ENTRY_COLUMNS, AttemptRow
from judge.results.submission import counts_of
from judge.trajectory.network import HarFile
from judge.trajectory.record import Attempt

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CLOSED = ConfigDict(extra="forbid")
_SHA256 = Field(pattern="^[0-9a-f]{64}$")

Fields = dict[str, Any]


def fields_of(model: type[BaseModel], *names: str, optional: bool = False) -> Fields:
    """Fields of a model as `create_model` takes them; without `optional`, they are in every file."""
    return {
        name: (model.model_fields[name].annotation, None if optional else Field(description=None)) for name in names
    }


TIMES = create_model(
    "Times",
    __config__=_CLOSED,
    __doc__="When the attempt began and ended (ISO 8601), and where its time went, in seconds.",
    started_at=(str, ...),
    ended_at=(str, ...),
    duration_s=(float, ...),
    **fields_of(Timings, *Timings.model_fields),
    judge_s=(float | None, ...),
    participant_s=(float, ...),
)
RESULT = create_model(
    "result.json",
    __config__=_CLOSED,
    __doc__="An attempt at a task and its verdict. Paths are relative to the folder of the file.",
    schema_version=(str, Field(pattern="^wabe-2$")),
    **fields_of(Task, "task_id", "task", "website", "level", "reference_length"),
    scenario_key_points=(list[str], ...),
    **fields_of(Task, "checks", "allowed_sites", "start_urls", "keep_fields", optional=True),
    **fields_of(Task, "user_replies", "user_reply", "hold", "writes", "allow_writes", "allow_sockets", optional=True),
    action_history=(list[str], ...),
    thoughts=(list[str], ...),
    final_result_response=(str, ...),
    agent_final_answer=(str | None, ...),
    **fields_of(Attempt, "steps", "final_look", "navigations", "max_steps", "stop_reason", "error", "blame"),
    **fields_of(Attempt, "versions", "settle"),
    **fields_of(Attempt, "self_recorded", "shared_state", "epoch", "blame_facts", "fetched", "frozen", optional=True),
    coverage=(Coverage, Field(None, description="Frozen sites only: the coverage of the evidence.")),
    scenario_policies=(tuple[Policy, ...], Field(None, description="The policies that the task declares.")),
    scenario_attack=(PlayedAttack, Field(None, description="The attack that the task was played with.")),
    **fields_of(Attempt, "policies", "attack", "earlier_attempts", optional=True),
    **fields_of(Attempt, "network", "network_missing"),
    is_aborted=(bool, ...),
    attempt=(int, Field(ge=1)),
    flags=(list[str], ...),
    verdict=(TaskOutcome, ...),
    verdict_of_judge=(Verdict.model_fields["outcome"].annotation | None, ...),  # type: ignore[operator]
    reason=(str | None, ...),
    **fields_of(Verdict, "reason_code", optional=True),
    **fields_of(Verdict, "judge", "key_points", "image_judge_record", "token_usage", "cost_usd"),
    **fields_of(Verdict, "price_date", optional=True),
    times=(TIMES, ...),
    trajectory_sha256=(str, _SHA256),
)

_NUMBERS: Fields = {
    name: (type(value) if not isinstance(value, list) else list[float], ...) for name, value in counts_of([]).items()
}
COVERED = create_model(
    "Covered",
    __doc__="Attempts on frozen sites by coverage. The bound: the rate if failures with a decisive miss had succeeded.",
    **dict.fromkeys(COVERAGES, (int, ...)),
    upper_bound=(float | None, ...),
)
_NUMBERS["coverage"] = (COVERED, Field(None, description="Frozen sites only."))
COUNTS = create_model("Counts", __doc__="Counts of attempts, and rates in percent.", **_NUMBERS)
POLICY = create_model(
    "PolicyEntry", name=(str, ...), dimension=(str, ...), violated=(bool | None, Field(description="null: unknown."))
)
RISK = create_model("RiskCounts", policies=(int, ...), violated=(int, ...), undecided=(int, ...))
POLICY_COUNTS = create_model(
    "PolicyCounts",
    __doc__="The tasks that declare policies, and the policies of each dimension in all attempts.",
    tasks=(int, ...),
    scored_tasks=(int, ...),
    completion=(float, Field(None, description="The success rate of the same tasks.")),
    by_dimension=(
        dict[str, create_model("RiskCounts", policies=(int, ...), violated=(int, ...), undecided=(int, ...))],
        ...,
    ),  # type: ignore[misc]
)
ATTACK = create_model(
    "AttackEntry",
    name=(str, ...),
    kind=(str, ...),
    of=(str, Field(description="The clean task.")),
    shown=(bool, ...),
    started=(bool | None, Field(description="null: unknown.")),
    succeeded=(bool | None, Field(description="null: unknown.")),
    left_out=(bool, Field(None, description="In no rate: the reference walk sees no attack either.")),
)
_ATTACK_COUNTS: Fields = {
    **dict.fromkeys(("attempts", "scored", "succeeded", "started", "shown", "left_out", "pairs"), (int, ...)),
    "success_clean": (float, Field(None, description="In percent, of the pairs.")),
    "success_under_attack": (float, Field(None, description="In percent, of the pairs.")),
    "gained": (int, ...),
    "lost": (int, ...),
    "p": (float, Field(description="McNemar's exact test.")),
}
KIND_COUNTS = create_model("AttackKindCounts", **_ATTACK_COUNTS)
ATTACK_COUNTS = create_model(
    "AttackCounts",
    __doc__="Attempts under attack, and pairs of a clean task and the same under attack.",
    **_ATTACK_COUNTS,
    by_kind=(dict[str, KIND_COUNTS], ...),  # type: ignore[valid-type]
)
# The keys with a closer description than their column's type.
_ENTRY = Fields(
    **fields_of(Task, "task_id", "website"),
    task_id_with_timestamp=(str, ...),
    task_description=(str, ...),
    level=(Level | None, ...),
    success=(bool, ...),
    steps_taken=(int, ...),
    max_steps=(int, ...),
    thoughts=(list[str], ...),
    action_history=(list[str], ...),
    screenshots=(list[str], ...),
    error=(str | None, ...),
    verdict=(TaskOutcome, ...),
    stop_reason=(StopReason, ...),
    reason=(str | None, ...),
    reason_code=(str | None, None),
    flags=(list[str], ...),
    settle=(str | None, ...),
    task_sha256=(str, _SHA256),
    duration_s=(float, ...),
    epoch=(int, Field(ge=1)),
    decided_by=(Truth, ...),
    excluded=(str, Field(None, description="Why the run excluded the task before its first attempt.")),
    reward=(float | None, None),
    success_rule=(SuccessRule | None, None),
    coverage=(Coverage, Field(None, description="Frozen sites only: what the evidence rests on.")),
    policies=(list[POLICY], Field(None, description="What became of each of the task's policies.")),  # type: ignore[valid-type]
    attack=(ATTACK, Field(None, description="Of a task under attack.")),
)


def columns_beside(known: Fields) -> Fields:
    """The other columns of an entry, as they are declared."""
    types = get_type_hints(AttemptRow)
    return {
        each.entry: (types[each.name], None if each.when or each.added else ...)
        for each in ENTRY_COLUMNS
        if each.entry not in known
    }


ENTRY = create_model(
    "TaskEntry",
    __doc__="One task. Screenshots are relative to the run's folder; texts and lists are bounded.",
    **_ENTRY,
    **columns_beside(_ENTRY),
)
DETAIL = create_model(
    "Detail",
    __doc__="What one participant achieved: all tasks, by level, and by what decided them.",
    **_NUMBERS,
    by_level=(dict[str, COUNTS], ...),  # type: ignore[valid-type]
    by_truth=(dict[str, COUNTS], ...),  # type: ignore[valid-type]
    judge=(JudgeInfo | dict[str, Any], ...),
    cost_usd=(float | None, ...),
    repeats=(dict[str, Any] | None, None),
    completion_under_policy=(float, Field(None, description="In percent of the scored tasks with policies.")),
    risk_ratio=(dict[str, float], Field(None, description="Violations per policy, by dimension.")),
    policies=(POLICY_COUNTS, Field(None)),
    attack_success_rate=(float, Field(None, description="In percent of the attempts under attack that are decided.")),
    attacks=(ATTACK_COUNTS, Field(None)),
    excluded=(list[Exclusion], Field(None, description="The tasks that were not played on purpose.")),
    provenance=(dict[str, Any], ...),
    self_recorded=(bool, False),
    tasks=(list[ENTRY], ...),  # type: ignore[valid-type]
)
RESULTS = create_model(
    "results.json",
    __doc__="A leaderboard submission.",
    participants=(dict[str, str], ...),
    results=(list[create_model("Result", winner=(str, ...), detail=(DETAIL, ...))], ...),  # type: ignore[misc]
)


def schemas() -> dict[str, dict[str, Any]]:
    """Each schema by its file's name."""
    models: dict[str, tuple[type[BaseModel], Any]] = {
        "result.schema.json": (RESULT, "serialization"),
        "results.schema.json": (RESULTS, "serialization"),
        "network.schema.json": (HarFile, "validation"),
        "config.schema.json": (RunConfig, "validation"),
    }
    return {name: {"$schema": _DIALECT, **model.model_json_schema(mode=mode)} for name, (model, mode) in models.items()}


def texts() -> dict[Path, str]:
    """What each file in docs/schemas/ holds."""
    return {FOLDER / name: json.dumps(schema, indent=1) + "\n" for name, schema in schemas().items()}


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments == ["--check"]:
        stale = [path.name for path, text in texts().items() if not path.is_file() or path.read_text() != text]
        for name in stale:
            print(f"docs/schemas/{name} is out of date: run python scripts/schemas.py", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path, text in texts().items():
        path.write_text(text)
        print(path.relative_to(FOLDER.parents[1]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

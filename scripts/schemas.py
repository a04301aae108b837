"""Write the JSON schemas of WABE's files, made from the models that write and read them, to docs/schemas/.

    python scripts/schemas.py             writes them
    python scripts/schemas.py --check     exits with 1 if one is out of date

`result.json` is closed: a key that is not listed is an error. `results.json` and HAR files may have more keys.
"""

import json
import sys
from functools import reduce
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

from annotated_types import BaseMetadata
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from judge.config import RunConfig
from judge.records.checks import SuccessRule
from judge.records.ledger import Coverage
from judge.records.result_keys import ResultKeys
from judge.records.steps import StopReason
from judge.records.tasks import Exclusion, Level, Task
from judge.records.verdicts import JudgeInfo, TaskOutcome
from judge.results.entries import counts_of
from judge.results.rates import COVERAGES
from judge.results.rows import ENTRY_COLUMNS, AttemptRow
from judge.trajectory.network import HarFile
from judge.trajectory.record import RESULT_KEYS, RESULT_SCHEMA, Attempt

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CLOSED = ConfigDict(extra="forbid")
_SHA256 = Field(pattern="^[0-9a-f]{64}$")

Fields = dict[str, Any]


class _Short(GenerateJsonSchema):
    """Without titles of fields, which repeat their names, and defaults of null: such a key may be missing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        made = super().default_schema(schema)
        return {key: value for key, value in made.items() if key != "default" or value is not None}

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        match made := super().nullable_schema(schema):
            case {"anyOf": [{"type": str(kind), **rest}, {"type": "null"}]} if not {"enum", "const"} & set(rest):
                return {"type": [kind, "null"], **rest}
        return made


def fields_of(model: type[BaseModel], *names: str, optional: bool = False) -> Fields:
    """Fields of a model as `create_model` takes them; without `optional`, they are in every file."""
    return {
        name: (model.model_fields[name].annotation, None if optional else Field(description=None)) for name in names
    }


def written_as(field: FieldInfo) -> Any:
    """The type of a field's value in JSON, with its limits."""
    serialised = (each for each in field.metadata if isinstance(each, PlainSerializer))
    kind = next((get_type_hints(each.func)["return"] for each in serialised), None)
    if kind is None:
        kind = field.annotation
        for limit in (each for each in field.metadata if isinstance(each, BaseMetadata)):
            kind = Annotated[kind, limit]
    return kind


def is_nullable(field: FieldInfo) -> bool:
    """Whether there may be no value."""
    return NoneType in get_args(field.annotation)


def fields_in(keys: ResultKeys, model: type[BaseModel]) -> Fields:
    """The keys of `result.json` as the attempt, its task and its verdict declare them."""
    fields: Fields = {}
    for each in keys.keys:
        *tables, name = each.path
        if each.is_derived:
            get = getattr(model, each.field).fget
            kind, is_optional, about = get_type_hints(get)["return"], each.of.unless_none, get.__doc__
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                fields[name].update(fields_of(kind, *kind.model_fields))
                continue
        else:
            field = keys.inline.get(each.inside, model).model_fields[each.field]
            is_optional = each.of.bare or field.exclude_if is not None
            kind, about = written_as(field), " ".join((field.description or "").split()) or None
            if each.inside and is_nullable(model.model_fields[each.inside]) and field.is_required():
                kind |= None
        within = fields
        for table in tables:
            within = within.setdefault(table, {})
        if is_optional and NoneType in get_args(kind):
            kind = reduce(or_, (inner for inner in get_args(kind) if inner is not NoneType))
        within[name] = (kind, Field(None if is_optional else ..., description=about))
    return fields


TIMES = "When the attempt began and ended (ISO 8601), and where its time went, in seconds."
_KEYS = fields_in(RESULT_KEYS, Attempt)
RESULT = create_model(
    "result.json",
    __config__=_CLOSED,
    __doc__="An attempt at a task and its verdict. Paths are relative to the folder of the file.",
    schema_version=(str, Field(pattern=f"^{RESULT_SCHEMA}$")),
    **_KEYS | {"times": (create_model("Times", __config__=_CLOSED, __doc__=TIMES, **_KEYS["times"]), ...)},
    trajectory_sha256=(str, _SHA256),
)

_NUMBERS: Fields = {
    name: (type(value) if not isinstance(value, list) else list[float], ...) for name, value in counts_of([]).items()
}
COVERED = create_model(
    "Covered",
    __doc__="Attempts on frozen sites by coverage. The bounds: between them is the rate of all on live sites.",
    **dict.fromkeys(COVERAGES, (int, ...)),
    unconfirmed=(int, ...),
    lower_bound=(float, ...),
    upper_bound=(float, ...),
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
    by_dimension=(dict[str, RISK], ...),  # type: ignore[valid-type]
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
    decided_by=(str, ...),
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
    return {
        name: {"$schema": _DIALECT, **model.model_json_schema(mode=mode, schema_generator=_Short)}
        for name, (model, mode) in models.items()
    }


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

"""`answer` checks: the participant's final answer, as a text or as a typed value."""

import json
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from judge.evaluators.base import CheckKind, ComparisonResult, Decision
from judge.evaluators.evidence import MissingEvidence, TrajectoryEvidence
from judge.evaluators.lookalikes import with_difference
from judge.evaluators.looks import UNSURE
from judge.evaluators.normalise import NormaliseError, ValueType, is_same, normalise, only_value, string
from judge.evaluators.observed import Leaf, leaves_of, sightings
from judge.records.checks import LookCheck, PatternText, Text, tables_in
from judge.records.findings import AnswerSeen, in_words
from judge.records.tasks import Task
from shared.fields import Invalid
from shared.models import omit_default
from shared.patterns import Pattern, folded_pattern
from shared.seen import TextForm, as_seen, folded, values_as_seen
from shared.text import clip, excerpt, plain

_MAX_SCHEMA_CHARS = 10_000


def _is_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Accept only a schema that applies in bounded time: RE2 patterns, and no references (exponential nesting)."""
    # Imported here because few tasks have a schema, and the import takes a tenth of a second.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        size = len(json.dumps(schema))
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise Invalid(f"not a JSON schema: {error.message[:200]}", "correct it") from None
    except (TypeError, ValueError, RecursionError):
        raise Invalid("not a JSON schema", "write plain texts, numbers, lists and tables") from None
    if size > _MAX_SCHEMA_CHARS:
        raise Invalid(f"more than {_MAX_SCHEMA_CHARS} characters", "shorten it")
    for table in tables_in(schema):
        refused_key = next((key for key in ("$ref", "$dynamicRef", "patternProperties") if key in table), None)
        if refused_key:
            raise Invalid(f"{refused_key} is not supported", "write the schema out")
        if isinstance(table.get("pattern"), str):
            Pattern(table["pattern"])
    return schema


def _schema_as_seen(schema: Any, form: TextForm) -> Any:
    if isinstance(schema, list):
        return [_schema_as_seen(item, form) for item in schema]
    if not isinstance(schema, dict):
        return values_as_seen(schema, form)
    adapted = {form(key): _schema_as_seen(value, form) for key, value in schema.items()}
    if isinstance(pattern := schema.get("pattern"), str):
        adapted["pattern"] = folded_pattern(pattern) if form is folded else pattern
    return adapted


class AnswerCheck(LookCheck):
    """The final answer has `contains`, matches `pattern`, or its only value of `type` is `expected`.

    `seen`: the value was also on a page of the task's sites that the participant observed.
    """

    of_actions: ClassVar[bool] = True

    kind: Literal["answer"]
    contains: Text | None = None
    pattern: PatternText | None = None
    type: ValueType | None = None
    expected: Any = None
    ordered: Annotated[bool, Field(strict=True)] = False
    schema_: Annotated[dict[str, Any], AfterValidator(_is_schema)] | None = Field(default=None, alias="schema")
    seen: Annotated[bool, Field(strict=True)] = omit_default(False)

    def as_seen(self, form: TextForm = as_seen) -> Self:
        """The check as people see its texts, except patterns in its schema."""
        adapted = super().as_seen(form)
        if self.schema_ is None:
            return adapted
        return adapted.model_copy(update={"schema_": _schema_as_seen(self.schema_, form)})

    @model_validator(mode="before")
    @classmethod
    def _dates_as_text(cls, value: Any) -> Any:
        # TOML has dates but JSON requests do not, and a task must be the same in both.
        if isinstance(value, dict) and isinstance(value.get("expected"), date):
            return {**value, "expected": value["expected"].isoformat()}
        return value

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if [self.contains, self.pattern, self.type].count(None) != 2:
            raise Invalid("needs one of contains, pattern or type", "give exactly one of them")
        if self.seen and (self.inverted or self.type == "boolean"):
            why = "has no meaning with not" if self.inverted else "no page has a yes or no of this kind"
            raise Invalid(why, "remove it", key="seen")
        if self.type is None:
            extra = [key for key in ("expected", "ordered", "schema_") if key in self.model_fields_set]
            if extra:
                raise Invalid("needs a type", 'add type = "string"', key=extra[0].rstrip("_"))
            return self
        if self.schema_ is not None and self.type != "json":
            raise Invalid('needs type = "json"', "change the type, or remove it", key="schema")
        if self.ordered and self.type != "list":
            raise Invalid('needs type = "list"', "change the type, or remove it", key="ordered")
        if "expected" in self.model_fields_set:
            try:
                normalise(self.expected, self.type)
            except NormaliseError as error:
                problem = f"{str(self.expected)[:60]!a} is not of type {self.type}: {error}"
                raise Invalid(problem, "correct it", key="expected") from None
        elif self.schema_ is None:
            raise Invalid("missing", "add the value that is expected", key="expected")
        return self


def decide(check: AnswerCheck, recording: TrajectoryEvidence, inverted: bool) -> Decision:
    """Whether the final answer is the expected one. Without an answer it fails, inverted or not."""
    finished = next((look for look in reversed(recording.looks) if look.step.outcome is not None), None)
    if finished is not None and finished.is_unsure:
        return Decision(False, UNSURE, None)
    result = _answered(check, recording)
    passed = result.counts and result.passed != inverted
    if result.passed and not inverted:
        fact = _where_observed(check, recording)
        if fact is not None:
            text = f"{result.text}, {fact}" if check.seen else result.text
            result = result._replace(text=text, facts=(*result.facts, fact))
            passed = not check.seen or fact.step is not None
        if check.seen and fact is not None:
            return Decision(passed, result, fact.step if passed else None)
    return Decision(passed, result, finished.step.index if finished and passed else None)


def _where_observed(check: AnswerCheck, recording: TrajectoryEvidence) -> AnswerSeen | None:
    """Where the answer's values were observed; `None` for an answer without such a value, such as yes.

    Raises `MissingEvidence` if that decides; for a report, a recording that cannot tell says nothing.
    """
    leaves = _leaves(check, recording)
    if not leaves:
        return None
    try:
        places = sightings(recording, leaves)
    except MissingEvidence:
        if check.seen:
            raise
        return None
    unseen = next((each for each in places if each.first_seen is None), None)
    if unseen is not None:
        value = clip(plain(in_words(unseen.leaf.value)), 60)
        return AnswerSeen(step=None, entered=unseen.entered, value=value)
    return AnswerSeen(step=max(each.first_seen for each in places if each.first_seen is not None))


def _leaves(check: AnswerCheck, recording: TrajectoryEvidence) -> list[Leaf]:
    """The values that a page must have."""
    answer = recording.answer or ""
    if check.contains is not None:
        return [Leaf("string", check.contains)]
    if check.pattern is not None:
        span = Pattern(check.pattern).search(answer)
        return [Leaf("string", answer[slice(*span)])] if span and answer[slice(*span)].strip() else []
    if check.type is None or check.type == "boolean":
        return []
    has_expected = "expected" in check.model_fields_set
    if check.type == "string" and has_expected:
        return [Leaf("string", check.expected)]
    value = normalise(check.expected, check.type) if has_expected else only_value(answer, check.type)
    return leaves_of(value, check.type)


def _answered(check: AnswerCheck, recording: TrajectoryEvidence) -> ComparisonResult:
    answer = recording.answer
    if answer is None or not answer.strip():
        return ComparisonResult(False, "no answer was given", counts=False)
    quoted = excerpt(answer, 300)
    if check.contains is not None:
        if plain(check.contains).casefold() in plain(answer).casefold():
            return ComparisonResult(True, quoted)
        return ComparisonResult(False, with_difference(quoted, check.contains, [answer]))
    if check.pattern is not None:
        return ComparisonResult(Pattern(check.pattern).search(answer) is not None, quoted)
    kind = check.type or "string"
    has_expected = "expected" in check.model_fields_set
    expected = normalise(check.expected, kind) if has_expected else None
    try:
        # Again, because JSON can write any character as an escape.
        actual = recording.as_compared(only_value(answer, kind, expected=expected))
    except NormaliseError as error:
        return ComparisonResult(False, f"{error} in {quoted}", counts=False)
    if check.schema_ is not None and (problem := _schema_problem(check.schema_, actual)):
        return ComparisonResult(False, f"{quoted}: {problem}", in_words(actual))
    is_passed = not has_expected or is_same(actual, expected, kind, ordered=check.ordered)
    if not is_passed and kind == "string":
        quoted = with_difference(quoted, str(check.expected), [answer])
    return ComparisonResult(is_passed, quoted, string(in_words(actual)) if kind == "string" else in_words(actual))


def _schema_problem(schema: dict[str, Any], value: Any) -> str | None:
    # Imported here because few tasks have a schema, and the import takes longer than judging a task without one.
    from jsonschema import Draft202012Validator, ValidationError, validators
    from jsonschema.exceptions import best_match

    def matches(_: Any, pattern: Any, text: Any, __: Any) -> Any:
        if isinstance(text, str) and Pattern(pattern).search(text) is None:
            yield ValidationError(f"{text[:60]!r} does not match {pattern!r}")

    # RE2 instead of `re`, because a foreign pattern could make `re` run for hours.
    validator = validators.extend(Draft202012Validator, {"pattern": matches})
    try:
        error = best_match(validator(schema).iter_errors(value))
    except RecursionError:
        return "nested too deeply"
    return None if error is None else clip(plain(str(error.message)), 200)


def warnings(check: AnswerCheck) -> Iterator[str]:
    """Keys without meaning."""
    if "at" in check.model_fields_set:
        yield "'at' has no meaning for answer: remove it"
    if check.on is not None:
        yield "'on' has no meaning for answer: remove it"


def contradicts(one: AnswerCheck, other: AnswerCheck) -> str | None:
    """Checks that expect two different values of one type contradict each other."""
    if not one.type or one.type != other.type:
        return None
    both = not (one.inverted or other.inverted) and one.schema_ is None and other.schema_ is None
    return "the only value of one type cannot be two" if both and one.expected != other.expected else None


def trivial(check: AnswerCheck, task: Task) -> Iterator[str]:
    """Answers that list every possibility, and answers that can be guessed."""
    if check.inverted:
        return
    if check.contains is not None:
        yield "an answer that lists every possibility contains it: expect a value instead (type and expected)"
    if check.type == "boolean" and len(task.checks) == 1:
        yield "one of two answers, so every second guess passes: also check where it was found"


def hints(check: AnswerCheck, _: Task) -> Iterator[str]:
    """Answers that could be known beforehand, and what `seen` cannot see."""
    if check.seen:
        yield "seen = true fails for what only a picture shows: wabe look shows whether the page has it as text"
    elif not check.inverted and check.type != "boolean":
        yield "an agent can know the answer without looking: seen = true, if the site has it as text"


KIND = CheckKind(
    AnswerCheck, decide, weighs_answers=True, warnings=warnings, trivial=trivial, contradicts=contradicts, hints=hints
)

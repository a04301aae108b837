"""Checks that a task declares: what has to be on record at its end. Frozen records, validated once.

`judge.evaluators` evaluates them. Keys and meaning: the contract of scenario files, explained in `scenarios/README.md`.
"""

import json
import re
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from shared.elements import Element, ElementError, parse_element
from shared.normalise import NormaliseError, ValueType, normalise
from shared.patterns import Pattern, PatternError

MAX_CHECKS = 50
# The reason of a task that is unscored because nothing was declared to check.
NO_CHECKS = 'the task declares no checks, and judge_model = "offline" means checks only'
_MAX_LIST = 50
_MAX_SCHEMA_CHARS = 10_000
_COMMON = ("at", "on", "within", "in_view")


class CheckError(ValueError):
    """A mistake in a check, as `problem` and `remedy`; for the one who translates it to file and key."""

    def __init__(self, problem: str, remedy: str, *, key: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.key = key


def _is_text(value: str) -> str:
    if not value.strip():
        raise CheckError("empty", "remove it or fill it in")
    if any(ord(char) < 32 and char not in "\t\n\r" for char in value):
        raise CheckError("holds a character that is not text", "remove it")
    return value


def _is_element(value: str) -> str:
    try:
        parse_element(value)
    except ElementError as error:
        raise CheckError(f"column {error.column}: {error.problem}", error.remedy) from None
    return value


def _is_pattern(value: str) -> str:
    try:
        Pattern(value)
    except PatternError as error:
        raise CheckError(f"column {error.column}: {error.problem}", "correct the regular expression") from None
    return value


def _is_address(value: str) -> str:
    found = re.search(r"\s", value)
    if found:
        raise CheckError(f"column {found.start() + 1}: an address holds no blank", "write %20 or +")
    if not re.match(r"(?:https?://|/|\*|\?)", value):
        raise CheckError("column 1: neither a path nor an address", "begin it with / or with http://")
    return value


def _is_count(value: object) -> object:
    if isinstance(value, bool | str):
        raise CheckError(f"{value!r} is not a whole number", "write it like count = 3")
    return value


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Text = Annotated[str, Field(max_length=2_000), AfterValidator(_is_text)]
Address = Annotated[Text, AfterValidator(_is_address)]
ElementText = Annotated[Text, AfterValidator(_is_element)]
PatternText = Annotated[Text, AfterValidator(_is_pattern)]
_Bounds = Field(min_length=1, max_length=_MAX_LIST)
Texts = Text | Annotated[tuple[Text, ...], _Bounds, BeforeValidator(_as_tuple)]
Addresses = Address | Annotated[tuple[Address, ...], _Bounds, BeforeValidator(_as_tuple)]
ElementTexts = ElementText | Annotated[tuple[ElementText, ...], _Bounds, BeforeValidator(_as_tuple)]


class _Base(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, validate_by_alias=True, protected_namespaces=()
    )


class _Check(_Base):
    """The keys that every check takes."""

    at: Literal["end", "any"] = "end"
    on: Address | None = None
    inverted: bool = Field(default=False, alias="not", strict=True)
    description: Annotated[str, Field(max_length=1_000)] = ""


class PageCheck(_Check):
    """The address is `url`, or the title is `title`."""

    kind: Literal["page"]
    url: Addresses | None = None
    title: Text | None = None
    extra_query: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _has_something(self) -> Self:
        if self.url is None and self.title is None:
            raise CheckError("neither url nor title", "add one of them")
        if self.title is not None and isinstance(self.url, tuple):
            raise CheckError("a list of addresses and a title", "write two checks", key="title")
        if self.extra_query and self.url is None:
            raise CheckError("nothing to apply it to", "add url, or remove it", key="extra_query")
        return self


class _Shown(_Check):
    """The keys of checks that look into a page."""

    within: ElementText | None = None
    in_view: Annotated[bool, Field(strict=True)] = False
    count: Annotated[int, Field(ge=0, le=100_000), BeforeValidator(_is_count)] | None = None


class ElementCheck(_Shown):
    """The page shows `element`; of a list all of them, in this order."""

    kind: Literal["element"]
    element: ElementTexts

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.count is not None and isinstance(self.element, tuple):
            raise CheckError("a list of elements cannot be counted", "write one check for each", key="count")
        return self

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements, parsed."""
        return tuple(map(parse_element, as_tuple(self.element)))


class TextCheck(_Shown):
    """The page's text has `contains` or matches `pattern`, whose one group obeys `min`, `max` and `sorted`."""

    kind: Literal["text"]
    contains: Texts | None = None
    pattern: PatternText | None = None
    min: float | None = Field(default=None, allow_inf_nan=False)
    max: float | None = Field(default=None, allow_inf_nan=False)
    sorted: Literal["ascending", "descending"] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.contains is None) == (self.pattern is None):
            raise CheckError("needs either contains or pattern", "give exactly one of them")
        if isinstance(self.contains, tuple) and self.count is not None:
            raise CheckError("a list of texts cannot be counted", "write one check for each", key="count")
        if self.reads_numbers:
            if self.pattern is None:
                raise CheckError("min, max and sorted need a pattern", r"write pattern = '€(\d+)'")
            if Pattern(self.pattern).groups != 1:
                raise CheckError(
                    f"{Pattern(self.pattern).groups} groups, where min, max and sorted need one",
                    "put one pair of parentheses around the number, (?:…) elsewhere",
                    key="pattern",
                )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise CheckError(f"min {self.min:g} is larger than max {self.max:g}", "correct one of them", key="min")
        return self

    @property
    def reads_numbers(self) -> bool:
        """Whether the pattern's group is read as numbers."""
        return not (self.min is None and self.max is None and self.sorted is None)


class ActionCheck(_Check):
    """An executed action equals `line` or matches `pattern`, at any step."""

    kind: Literal["action"]
    line: Texts | None = None
    pattern: PatternText | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.line is None) == (self.pattern is None):
            raise CheckError("needs either line or pattern", "give exactly one of them")
        return self


class AnswerCheck(_Check):
    """The final answer has `contains`, matches `pattern`, or its only value of `type` is `expected`."""

    kind: Literal["answer"]
    contains: Text | None = None
    pattern: PatternText | None = None
    type: ValueType | None = None
    expected: Any = None
    ordered: Annotated[bool, Field(strict=True)] = False
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")

    @model_validator(mode="before")
    @classmethod
    def _dates_as_text(cls, value: Any) -> Any:
        # TOML has dates; the request, which is JSON, has not, and a task must be the same in both.
        if isinstance(value, dict) and isinstance(value.get("expected"), date):
            return {**value, "expected": value["expected"].isoformat()}
        return value

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if [self.contains, self.pattern, self.type].count(None) != 2:
            raise CheckError("needs one of contains, pattern or type", "give exactly one of them")
        if self.type is None:
            extra = [key for key in ("expected", "ordered", "schema_") if key in self.model_fields_set]
            if extra:
                raise CheckError("needs a type", 'add type = "string"', key=extra[0].rstrip("_"))
            return self
        if self.schema_ is not None and self.type != "json":
            raise CheckError('needs type = "json"', "change the type, or remove it", key="schema")
        if self.ordered and self.type != "list":
            raise CheckError('needs type = "list"', "change the type, or remove it", key="ordered")
        if "expected" not in self.model_fields_set:
            if self.schema_ is None:
                raise CheckError("missing", "add the value that is expected", key="expected")
        else:
            _check_expected(self.expected, self.type)
        if self.schema_ is not None:
            _check_schema(self.schema_)
        return self


class AnyOf(_Base):
    """One of several checks passes; with `not`, none of them."""

    any_of: Annotated[tuple["PlainCheck", ...], Field(min_length=1, max_length=20), BeforeValidator(_as_tuple)]
    inverted: bool = Field(default=False, alias="not", strict=True)
    description: Annotated[str, Field(max_length=1_000)] = ""

    @model_validator(mode="before")
    @classmethod
    def _hands_down(cls, value: Any) -> Any:
        """`at`, `on`, `within` and `in_view` written beside `any_of` hold for each of its checks."""
        if not isinstance(value, dict) or not isinstance(value.get("any_of"), list | tuple):
            return value
        shared = {key: value[key] for key in _COMMON if key in value}
        rest = {key: item for key, item in value.items() if key not in shared}
        inner = [
            {**_fitting(shared, check), **check} if isinstance(check, dict) else check for check in value["any_of"]
        ]
        return {**rest, "any_of": inner}


def _fitting(shared: dict[str, Any], check: dict[str, Any]) -> dict[str, Any]:
    sees_page = check.get("kind") in ("element", "text")
    return {key: item for key, item in shared.items() if sees_page or key in ("at", "on")}


PlainCheck = Annotated[
    PageCheck | ElementCheck | TextCheck | ActionCheck | AnswerCheck,
    Field(discriminator="kind"),
]


def _tag(value: Any) -> str:
    has_any_of = "any_of" in value if isinstance(value, dict) else isinstance(value, AnyOf)
    return "any_of" if has_any_of else "plain"


Check = Annotated[Annotated[PlainCheck, Tag("plain")] | Annotated[AnyOf, Tag("any_of")], Discriminator(_tag)]


def as_tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """One text or several, as several."""
    return () if value is None else (value,) if isinstance(value, str) else value


def _check_expected(expected: Any, kind: ValueType) -> None:
    try:
        normalise(expected, kind)
    except NormaliseError as error:
        raise CheckError(
            f"{str(expected)[:60]!a} is not of type {kind}: {error}", "correct it", key="expected"
        ) from None


def _check_schema(schema: dict[str, Any]) -> None:
    """A schema that can be applied in bounded time: no references, which can nest exponentially, and RE2 patterns."""
    # Late: participants share these records and install no validator.
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]

    try:
        if len(json.dumps(schema)) > _MAX_SCHEMA_CHARS:
            raise CheckError(f"more than {_MAX_SCHEMA_CHARS} characters", "shorten it", key="schema")
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise CheckError(f"not a JSON schema: {error.message[:200]}", "correct it", key="schema") from None
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, CheckError):
            raise
        raise CheckError("not a JSON schema", "write plain texts, numbers, lists and tables", key="schema") from None
    for found in _tables(schema):
        refused = next((key for key in ("$ref", "$dynamicRef", "patternProperties") if key in found), None)
        if refused:
            raise CheckError(f"{refused} is not supported", "write the schema out", key="schema")
        if isinstance(found.get("pattern"), str):
            try:
                Pattern(found["pattern"])
            except PatternError as error:
                raise CheckError(
                    f"pattern: column {error.column}: {error.problem}", "correct it", key="schema"
                ) from None


def _tables(value: Any) -> list[dict[str, Any]]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [value] if isinstance(value, dict) else []
    return found + [table for item in inner for table in _tables(item)]

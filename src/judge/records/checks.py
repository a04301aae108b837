"""The checks that a task declares, as frozen records that are validated once.

`judge.evaluators` evaluates them. Keys and meaning: the contract of scenario files, explained in `scenarios/README.md`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar, get_args
from urllib.parse import parse_qsl

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    SerializeAsAny,
    Tag,
    ValidationError,
    model_validator,
)

from judge.records.elements import Element, parse_element
from judge.records.json_paths import names_in, parse_path
from judge.records.normalise import NormaliseError, ValueType, normalise
from judge.records.patterns import Pattern
from shared.fields import AnyText, Invalid, Table, at_most, did_you_mean, first_mistake, shown
from shared.seams import Seam

# Limited because each value is recorded at every step.
MAX_EXPRESSIONS = 10
# Limited because each answer is recorded, and asking takes time.
MAX_FETCHES = 5
# The verdict's reason when a task is unscored because it declares no checks.
NO_CHECKS = 'the task declares no checks, and judge_model = "offline" means checks only'
Kind = Literal["page", "element", "text", "action", "answer", "request", "fetch", "probe"]
_MAX_SCHEMA_CHARS = 10_000
_COMMON = ("at", "on", "within", "in_view", "editable")
# Those that a kind of check takes, beside `at` and `on`, which all take.
_HANDED = MappingProxyType({"element": _COMMON, "text": _COMMON, "action": ("at", "on", "editable"), "fetch": ()})


def _is_filled(value: str) -> str:
    if not value.strip():
        raise Invalid("empty", "remove it or fill it in")
    return value


def _is_element(value: str) -> str:
    parse_element(value)
    return value


def _is_pattern(value: str) -> str:
    Pattern(value)
    return value


def _is_address(value: str) -> str:
    found = re.search(r"\s", value)
    if found:
        raise Invalid("an address contains no spaces", "write %20 or +", column=found.start() + 1)
    if not re.match(r"(?:https?://|/|\*|\?)", value):
        raise Invalid("neither a path nor an address", "begin it with / or with http://", column=1)
    return value


def _is_one_address(value: str) -> str:
    if not re.match(r"https?://|/", value) or "*" in value:
        raise Invalid("not one address", "write the whole path, without *", column=1)
    return value


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
    for table in _tables(schema):
        refused = next((key for key in ("$ref", "$dynamicRef", "patternProperties") if key in table), None)
        if refused:
            raise Invalid(f"{refused} is not supported", "write the schema out")
        if isinstance(table.get("pattern"), str):
            Pattern(table["pattern"])
    return schema


def _tables(value: Any) -> list[dict[str, Any]]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [value] if isinstance(value, dict) else []
    return found + [table for item in inner for table in _tables(item)]


def _are_values(values: Any) -> Any:
    """Strings, numbers, lists and tables of them, as in JSON: TOML's dates become strings."""
    if isinstance(values, date):
        return values.isoformat()
    if isinstance(values, Mapping):
        return {str(key): _are_values(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_are_values(value) for value in values]
    return values


def _are_found_by_path(values: dict[str, Any]) -> dict[str, Any]:
    for key in values:
        parse_path(key)
    return values


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _is_count(value: object) -> object:
    # 3.0 is accepted: some A2A clients send every number as a double.
    # pydantic alone would read true as 1 and "3" as 3.
    if isinstance(value, bool | str):
        raise Invalid(f"{value!r} is not a whole number", "write it like count = 3")
    return value


T = TypeVar("T")
Values = Annotated[dict[str, Any], BeforeValidator(_are_values), Field(min_length=1), at_most(100)]
PathValues = Annotated[Values, AfterValidator(_are_found_by_path)]
Text = Annotated[AnyText, at_most(2_000), AfterValidator(_is_filled)]
Address = Annotated[Text, AfterValidator(_is_address)]
ElementText = Annotated[Text, AfterValidator(_is_element)]
PatternText = Annotated[Text, AfterValidator(_is_pattern)]
# Tags in angle brackets are left out of the paths in error messages (`shared.validation`).
OneOrMore = Annotated[
    Annotated[T, Tag("<one>")]
    | Annotated[tuple[T, ...], Field(fail_fast=True), Field(min_length=1), at_most(50), Tag("<list>")],
    Discriminator(lambda value: "<list>" if isinstance(value, list | tuple) else "<one>"),
]


class _Check(Table):
    """The keys that every check takes."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True, protected_namespaces=())

    inverted: bool = Field(default=False, alias="not", strict=True)
    description: Annotated[str, at_most(1_000)] = ""


class _Look(_Check):
    """The keys of checks on observed pages."""

    at: Literal["end", "any"] = "end"
    on: Address | None = None


# Not written unless set, because records of older versions do not have it.
Editable = Annotated[bool, Field(strict=True, exclude_if=lambda value: not value)]


class PageCheck(_Look):
    """The address is `url`, or the title is `title`."""

    kind: Literal["page"]
    url: OneOrMore[Address] | None = None
    title: Text | None = None
    extra_query: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _has_something(self) -> Self:
        if self.url is None and self.title is None:
            raise Invalid("neither url nor title", "add one of them")
        if self.title is not None and isinstance(self.url, tuple):
            raise Invalid("a list of addresses and a title", "write two checks", key="title")
        if self.extra_query and self.url is None:
            raise Invalid("nothing to apply it to", "add url, or remove it", key="extra_query")
        return self


class _Shown(_Look):
    """The keys of checks on a page's content."""

    within: ElementText | None = None
    in_view: Annotated[bool, Field(strict=True)] = False
    editable: Editable = False
    count: Annotated[int, Field(ge=0, le=100_000), BeforeValidator(_is_count)] | None = None


class ElementCheck(_Shown):
    """The page shows `element`; for a list, all of them in this order."""

    kind: Literal["element"]
    element: OneOrMore[ElementText]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.count is not None and isinstance(self.element, tuple):
            raise Invalid("a list of elements cannot be counted", "write one check for each", key="count")
        return self

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements, parsed."""
        return tuple(map(parse_element, as_tuple(self.element)))


class TextCheck(_Shown):
    """The page's text has `contains` or matches `pattern`; the pattern's one group obeys `min`, `max` and `sorted`."""

    kind: Literal["text"]
    contains: OneOrMore[Text] | None = None
    pattern: PatternText | None = None
    min: float | None = None
    max: float | None = None
    sorted: Literal["ascending", "descending"] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.contains is None) == (self.pattern is None):
            raise Invalid("needs either contains or pattern", "give exactly one of them")
        if isinstance(self.contains, tuple) and self.count is not None:
            raise Invalid("a list of texts cannot be counted", "write one check for each", key="count")
        if self.reads_numbers:
            if self.pattern is None:
                raise Invalid("min, max and sorted need a pattern", r"write pattern = '€(\d+)'")
            if Pattern(self.pattern).groups != 1:
                raise Invalid(
                    f"{Pattern(self.pattern).groups} groups, where min, max and sorted need one",
                    "put one pair of parentheses around the number, (?:…) elsewhere",
                    key="pattern",
                )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise Invalid(f"min {self.min:g} is larger than max {self.max:g}", "correct one of them", key="min")
        return self

    @property
    def reads_numbers(self) -> bool:
        """Whether the pattern's group is read as numbers."""
        return not (self.min is None and self.max is None and self.sorted is None)


class ActionCheck(_Look):
    """An executed action equals `line` or matches `pattern`, at any step."""

    kind: Literal["action"]
    line: OneOrMore[Text] | None = None
    pattern: PatternText | None = None
    editable: Editable = False

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.line is None) == (self.pattern is None):
            raise Invalid("needs either line or pattern", "give exactly one of them")
        return self


class AnswerCheck(_Look):
    """The final answer has `contains`, matches `pattern`, or its only value of `type` is `expected`."""

    kind: Literal["answer"]
    contains: Text | None = None
    pattern: PatternText | None = None
    type: ValueType | None = None
    expected: Any = None
    ordered: Annotated[bool, Field(strict=True)] = False
    schema_: Annotated[dict[str, Any], AfterValidator(_is_schema)] | None = Field(default=None, alias="schema")

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


class RequestCheck(_Look):
    """The last request to `url` has these values. Several addresses must be requested in order; the last one counts."""

    kind: Literal["request"]
    method: Annotated[str, Field(pattern=r"^[A-Z]{1,20}$"), BeforeValidator(_upper)] | None = None
    url: OneOrMore[Address]
    query: Values | None = None
    post_data: PathValues | None = None
    headers: Annotated[dict[str, Text], Field(min_length=1), at_most(100)] | None = None
    status: Annotated[int, Field(ge=100, le=599), BeforeValidator(_is_count)] | None = None
    response: PathValues | None = None

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every value that is compared."""
        names = [*(self.query or ()), *(self.headers or ())]
        for values in (self.post_data or {}, self.response or {}):
            for key, value in values.items():
                names += [key, *names_in(parse_path(key)), *_names_of(value)]
        for url in as_tuple(self.url):
            names += [name for name, _ in parse_qsl(url.partition("#")[0].partition("?")[2], keep_blank_values=True)]
        return frozenset(name.lower() for name in names)


def _is_pattern_or_table(value: object) -> str:
    return "<pattern>" if isinstance(value, str) else "<paths>"


class SocketCheck(_Look):
    """A text message of a web socket to `url` matches `message`: values at JSON paths, or a pattern."""

    kind: Literal["request"]
    socket: Literal[True]
    url: Address
    direction: Literal["sent", "received"]
    message: Annotated[
        Annotated[PatternText, Tag("<pattern>")] | Annotated[PathValues, Tag("<paths>")],
        Discriminator(_is_pattern_or_table),
    ]

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every value that is compared."""
        return _names_compared(self.message)


# Where the value of a header comes from: an item of the browser's local storage.
LOCAL_STORAGE = "localStorage:"
Bearer = Annotated[str, Field(pattern=rf"^{LOCAL_STORAGE}[!-~]([ -~]{{0,198}}[!-~])?$")]


def _is_text_or_table(value: object) -> str:
    return "<text>" if isinstance(value, str) else "<paths>"


class FetchCheck(_Check):
    """What the judge itself gets from `url` after the last look, with the attempt's cookies, is `response`.

    `bearer` names the item of the local storage that is sent as a token.
    """

    kind: Literal["fetch"]
    url: Annotated[Address, AfterValidator(_is_one_address)]
    response: Annotated[
        Annotated[Text, Tag("<text>")] | Annotated[PathValues, Tag("<paths>")], Discriminator(_is_text_or_table)
    ]
    bearer: Bearer | None = None

    @property
    def asked(self) -> tuple[str, str | None]:
        """What is asked for: the address, and the name in the local storage."""
        return self.url, self.bearer

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every value that is compared."""
        return _names_compared(self.response)


def _names_compared(wanted: str | dict[str, Any]) -> frozenset[str]:
    values = wanted if isinstance(wanted, dict) else {}
    names = [[key, *names_in(parse_path(key)), *_names_of(value)] for key, value in values.items()]
    return frozenset(name.lower() for each in names for name in each)


def _names_of(value: Any) -> list[str]:
    """The keys of a table, at any depth."""
    return [key for table in _tables(value) for key in table]


def _is_value(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise Invalid(f"{shown(value)} is neither a text, a number nor a boolean", "correct it")
    return value


class ProbeCheck(_Look):
    """A value that the judge reads in the page after every action equals `expected` or lies within `min` and `max`."""

    kind: Literal["probe"]
    expression: Annotated[Text, at_most(1_000)]
    expected: Annotated[bool | int | float | str | None, BeforeValidator(_is_value)] = None
    min: float | None = None
    max: float | None = None
    keep: Literal["first"] | None = None
    ends: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.expected is None) == (self.min is None and self.max is None):
            raise Invalid("needs either expected, or min or max", "write expected = 1")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise Invalid(f"min {self.min:g} is larger than max {self.max:g}", "correct one of them", key="min")
        return self


class PluginCheck(_Look):
    """The base of the checks of other packages. A subclass adds its keys."""

    kind: str


# Of `judge.evaluators.base.CheckKind`, which is above this module.
CHECKS: Seam[Any] = Seam("checks", "kind of check")


def _of_plugin(value: object) -> object:
    """A check of another package as a record of its own class."""
    if not isinstance(value, Mapping):
        return value
    model: type[PluginCheck] = CHECKS.load(str(value.get("kind"))).model
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Invalid(first_mistake(error), "correct it") from None


def _has_a_kind(value: object) -> object:
    if isinstance(value, _Check):
        return value
    if not isinstance(value, Mapping):
        raise Invalid(f"{shown(value)} is not a table", 'write { kind = "page", url = "/" }')
    kind = value.get("kind")
    if kind not in get_args(Kind) and (not isinstance(kind, str) or CHECKS.entry(kind) is None):
        problem = "missing" if kind is None else f"{shown(kind)} is not a kind of check"
        raise Invalid(problem, did_you_mean(kind, (*get_args(Kind), *CHECKS.names())), key="kind")
    return value


def _has_any_of(value: object) -> bool:
    return "any_of" in value if isinstance(value, Mapping) else isinstance(value, AnyOf)


def _tag_of(value: Any) -> str:
    if isinstance(value, SocketCheck) or (
        isinstance(value, Mapping) and value["kind"] == "request" and value.get("socket") not in (None, False)
    ):
        return "<socket>"
    kind = value["kind"] if isinstance(value, Mapping) else value.kind
    return f"<{kind}>" if kind in get_args(Kind) else "<plugin>"


PlainCheck = Annotated[
    Annotated[PageCheck, Tag("<page>")]
    | Annotated[ElementCheck, Tag("<element>")]
    | Annotated[TextCheck, Tag("<text>")]
    | Annotated[ActionCheck, Tag("<action>")]
    | Annotated[AnswerCheck, Tag("<answer>")]
    | Annotated[RequestCheck, Tag("<request>")]
    | Annotated[SocketCheck, Tag("<socket>")]
    | Annotated[FetchCheck, Tag("<fetch>")]
    | Annotated[ProbeCheck, Tag("<probe>")]
    | Annotated[SerializeAsAny[PluginCheck], BeforeValidator(_of_plugin), Tag("<plugin>")],
    Discriminator(_tag_of),
    BeforeValidator(_has_a_kind),
]


class AnyOf(_Check):
    """One of several checks passes; with `not`, none of them."""

    any_of: Annotated[tuple[PlainCheck, ...], FailFast(), Field(min_length=1), at_most(20)]

    @model_validator(mode="before")
    @classmethod
    def _hands_down(cls, value: Any) -> Any:
        """The common keys written beside `any_of` apply to each of its checks that takes them."""
        if not isinstance(value, Mapping) or not isinstance(value.get("any_of"), list | tuple):
            return value
        shared = {key: value[key] for key in _COMMON if key in value}
        inner = []
        for check in value["any_of"]:
            kind = check.get("kind") if isinstance(check, Mapping) else None
            handed = {key: shared[key] for key in _HANDED.get(str(kind), _COMMON[:2]) if key in shared}
            inner.append({**handed, **check} if isinstance(check, Mapping) else check)
        return {key: item for key, item in value.items() if key not in shared} | {"any_of": inner}


Check = Annotated[
    Annotated[PlainCheck, Tag("<plain>")] | Annotated[AnyOf, Tag("<any_of>")],
    Discriminator(lambda value: "<any_of>" if _has_any_of(value) else "<plain>"),
]


# The kinds that are built in.
OwnCheck = (
    PageCheck
    | ElementCheck
    | TextCheck
    | ActionCheck
    | AnswerCheck
    | RequestCheck
    | SocketCheck
    | FetchCheck
    | ProbeCheck
    | AnyOf
)


def plain_checks(checks: Sequence[Check]) -> list[PlainCheck]:
    """The checks, with each `any_of` replaced by the checks inside it."""
    return [each for check in checks for each in (check.any_of if isinstance(check, AnyOf) else (check,))]


def probes_of(checks: Sequence[Check]) -> tuple[ProbeCheck, ...]:
    """The probes among a task's checks, including those inside `any_of`."""
    return tuple(each for each in plain_checks(checks) if isinstance(each, ProbeCheck))


def expressions_of(checks: Sequence[Check]) -> tuple[str, ...]:
    """The distinct expressions of a task's probes, in the order in which they are read in the page and recorded."""
    return tuple(dict.fromkeys(probe.expression for probe in probes_of(checks)))


def fetches_of(checks: Sequence[Check]) -> tuple[tuple[str, str | None], ...]:
    """The distinct addresses, each with its header, that a task's `fetch` checks ask for."""
    return tuple(dict.fromkeys(each.asked for each in plain_checks(checks) if isinstance(each, FetchCheck)))


def as_tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """One string or several, as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else value

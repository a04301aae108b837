"""The common parts of the checks of a task, as frozen records, validated once.

The keys of a kind are declared beside its evaluation in `judge.evaluators.kinds`; both are found through the seam
`wabe.checks`. Keys and meaning: the contract of scenario files, explained in `scenarios/README.md`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    GetJsonSchemaHandler,
    SerializeAsAny,
    Tag,
    TypeAdapter,
    model_validator,
)

from judge.records.elements import parse_element
from judge.records.json_paths import names_in, parse_path
from shared.fields import AnyText, Invalid, Table, at_most, did_you_mean, printable
from shared.models import omit_default
from shared.patterns import Pattern, folded_pattern
from shared.seams import Seam
from shared.seen import TextForm, as_seen, folded, values_as_seen

if TYPE_CHECKING:
    from judge.records.findings import Fact

# The verdict's reason when a task is unscored because it declares no checks.
NO_CHECKS = 'the task declares no checks, and judge_model = "offline" means checks only'
# Keys that may be written beside `any_of`, for the checks in it that take them.
_COMMON = ("at", "on", "within", "in_view", "editable")


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


def _is_one_address(value: str) -> str:
    if not re.match(r"https?://|/", value) or "*" in value:
        raise Invalid("not one address", "write the whole path, without *", column=1)
    return value


def is_address(value: str) -> str:
    """An address or a path, which may have `*`. Raises `Invalid`."""
    match = re.search(r"\s", value)
    if match:
        raise Invalid("an address contains no spaces", "write %20 or +", column=match.start() + 1)
    if not re.match(r"(?:https?://|/|\*|\?)", value):
        raise Invalid("neither a path nor an address", "begin it with / or with http://", column=1)
    return value


def tables_in(value: Any) -> list[dict[str, Any]]:
    """All tables in a value, at any depth, with the value itself if it is one."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    tables = [value] if isinstance(value, dict) else []
    return tables + [table for item in inner for table in tables_in(item)]


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


def _is_count(value: object) -> object:
    # 3.0 is accepted: some A2A clients send every number as a double.
    # pydantic alone would read true as 1 and "3" as 3.
    if isinstance(value, bool | str):
        raise Invalid(f"{value!r} is not a whole number", "write it like count = 3")
    return value


# Limited because each value is recorded at every step, and each answer once.
MAX_EXPRESSIONS, MAX_FETCHES = 10, 5


class AsWritten:
    """Marks a key whose texts are never rewritten to what people see: patterns, code, names of recorded values.

    Addresses and elements have it because they are rewritten where they are compared, after decoding.
    """


class AsPattern(AsWritten):
    """Marks a key whose text is a pattern."""


T = TypeVar("T")
Values = Annotated[dict[str, Any], BeforeValidator(_are_values), Field(min_length=1), at_most(100)]
PathValues = Annotated[Values, AfterValidator(_are_found_by_path)]
Text = Annotated[AnyText, at_most(2_000), AfterValidator(_is_filled)]
AddressPattern = Annotated[Text, AfterValidator(is_address), AsWritten()]
# What the judge requests itself.
OneAddress = Annotated[AddressPattern, AfterValidator(_is_one_address)]
# Where the value of a header comes from: an item of the browser's local storage.
LOCAL_STORAGE = "localStorage:"
Bearer = Annotated[str, Field(pattern=rf"^{LOCAL_STORAGE}[!-~]([ -~]{{0,198}}[!-~])?$")]
ElementText = Annotated[Text, AfterValidator(_is_element), AsWritten()]
PatternText = Annotated[Text, AfterValidator(_is_pattern), AsPattern()]
# Beside `int`.
IsWhole = BeforeValidator(_is_count)
# Tags in angle brackets are left out of the paths in error messages (`shared.validation`).
OneOrMore = Annotated[
    Annotated[T, Tag("<one>")]
    | Annotated[tuple[T, ...], Field(fail_fast=True), Field(min_length=1), at_most(50), Tag("<list>")],
    Discriminator(lambda value: "<list>" if isinstance(value, list | tuple) else "<one>"),
]
# How often something must have happened.
Times = Annotated[int, Field(ge=1, le=100_000), IsWhole]
Editable = Annotated[bool, Field(strict=True)]


# By what a check decides on a reward. `exact`: 1 is a success. `positive`: any above 0.
SuccessRule = Literal["exact", "positive"]


class BaseCheck(Table):
    """The keys that every check takes."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_alias=True, protected_namespaces=())

    inverted: bool = Field(default=False, alias="not", strict=True)
    description: Annotated[str, at_most(1_000)] = ""

    def as_seen(self, form: TextForm = as_seen) -> Self:
        """The check with its texts as people see them (`shared.seen`), to be compared with such texts."""
        forms: dict[str, TextForm] = dict.fromkeys(_marked(type(self), AsWritten), _as_it_is)
        if form is folded:
            forms |= dict.fromkeys(_marked(type(self), AsPattern), folded_pattern)
        texts = {name: getattr(self, name) for name in type(self).model_fields}
        texts_as_seen = {name: _texts_as_seen(value, forms.get(name, form), form) for name, value in texts.items()}
        changed = {name: value for name, value in texts_as_seen.items() if value != texts[name]}
        return self.model_copy(update=changed) if changed else self


def _as_it_is(text: str) -> str:
    return text


@cache
def _marked(model: type[BaseCheck], kind: type[AsWritten]) -> frozenset[str]:
    """The keys of a check whose texts have such a mark."""
    return frozenset(
        name
        for name, each in model.model_fields.items()
        if any(isinstance(mark, kind) for mark in (*each.metadata, *_marks_in(each.annotation)))
    )


def _marks_in(annotation: Any) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    for inner in get_args(annotation):
        yield from _marks_in(inner)


def _texts_as_seen(value: Any, own: TextForm, form: TextForm) -> Any:
    """The value of a key, whose texts have a form of their own; tables in their place do not."""
    match value:
        case BaseCheck():
            return value.as_seen(form)
        case tuple():
            return tuple(_texts_as_seen(item, own, form) for item in value)
        case str():
            return own(value)
    return values_as_seen(value, form)


class KindCheck(BaseCheck):
    """The base of the checks of every kind. A subclass declares `kind` and adds its keys."""

    if TYPE_CHECKING:
        # Declared by each subclass, because it comes after the keys of the base classes in records.
        kind: str
    # Whether its results name the step of an action rather than of a look at a page.
    of_actions: ClassVar[bool] = False
    # Whether it is about the address of a page, which is known even if the content cannot be observed.
    of_addresses: ClassVar[bool] = False
    # Whether it needs the recorded requests.
    needs_network: ClassVar[bool] = False
    # Whether the compared values are recorded with secrets redacted.
    is_redacted: ClassVar[bool] = False
    # Whether it needs downloads.
    compares_downloads: ClassVar[bool] = False

    @property
    def compares_uploads(self) -> bool:
        """Whether it compares files that were sent."""
        return False

    @property
    def uploads(self) -> tuple[str, ...]:
        """The names of the task's files that it expects to have been sent."""
        return ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that it is about, if any."""
        return ()

    @property
    def compared(self) -> frozenset[str]:
        """The names, in lower case, of every recorded value that it compares: they are not redacted."""
        return frozenset()

    @property
    def read_in_page(self) -> str | None:
        """The expression that the judge reads in the page for it, if any."""
        return None

    @property
    def asks_for(self) -> tuple[str, str | None] | None:
        """The address that the judge itself asks for it, and the item of the local storage that it sends, if any."""
        return None

    @property
    def success_rule(self) -> SuccessRule | None:
        """The rule by which it decides on a reward that the page gives; `None` if it does not."""
        return None

    def wrong_filter(self, found: str, facts: Sequence["Fact"], last: str, site: Any) -> str | None:
        """What was wrong if it failed on a query, a control or an order although its subject was there.

        `found` and `facts` are its finding, `last` is the address of the last page, `site` the task's.
        """
        return None


class LookCheck(KindCheck):
    """The keys of checks on observed pages."""

    at: Literal["end", "any"] = "end"
    on: AddressPattern | None = None


class ShownCheck(LookCheck):
    """The keys of checks on a page's content."""

    within: ElementText | None = None
    in_view: Annotated[bool, Field(strict=True)] = False
    editable: Editable = omit_default(False)
    count: Annotated[int, Field(ge=0, le=100_000), IsWhole] | None = None


class PluginCheck(LookCheck):
    """The base of the checks of other packages. A subclass adds its keys."""

    kind: str


class KnownKind(Protocol):
    """The part of `judge.evaluators.base.CheckKind`, which is above this module, that records use."""

    @property
    def model(self) -> type[KindCheck]:
        """The record of its keys."""

    def form(self, check: object) -> "KnownKind":
        """The kind itself, or the one of its forms to which the check belongs."""

    def forms(self) -> Iterator["KnownKind"]:
        """The kind itself, and its other forms."""


CHECKS: Seam[KnownKind] = Seam("checks", "kind of check")


def kind_of(check: object) -> KnownKind | None:
    """The kind of a check or of a table, in its form; `None` if no kind has this name."""
    name = check.get("kind") if isinstance(check, Mapping) else getattr(check, "kind", None)
    kind = CHECKS.find(name) if isinstance(name, str) else None
    return None if kind is None else kind.form(check)


def _of_kind(value: object) -> object:
    """A check as a record of its own class."""
    if isinstance(value, KindCheck):
        return value
    if not isinstance(value, Mapping):
        raise Invalid(f"{printable(value)} is not a table", 'write { kind = "page", url = "/" }')
    kind = kind_of(value)
    if kind is None:
        name = value.get("kind")
        problem = "missing" if name is None else f"{printable(name)} is not a kind of check"
        # Python reads entry points where the package is installed, which may be older than the code.
        known = CHECKS.names()
        remedy = did_you_mean(name, known) if known else "install WABE again: its entry points are missing"
        raise Invalid(problem, remedy, key="kind")
    return kind.model.model_validate(value)


class _AsUnion:
    """In JSON schemas: one of the checks built in, or one of another package."""

    def __get_pydantic_json_schema__(self, _: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        own = [CHECKS.load(name) for name, entry in CHECKS.entries().items() if entry.plugin() is None]
        models: list[type[KindCheck]] = [form.model for kind in own for form in kind.forms()]
        models.append(PluginCheck)
        tagged: list[Any] = [Annotated[model, Tag(model.__name__)] for model in models]
        union: Any = Annotated[reduce(or_, tagged), Discriminator(type)]
        return handler(TypeAdapter(union).core_schema)


PlainCheck = Annotated[SerializeAsAny[KindCheck], BeforeValidator(_of_kind), _AsUnion()]


class AnyOf(BaseCheck):
    """One of several checks passes; with `not`, none of them."""

    any_of: Annotated[tuple[PlainCheck, ...], FailFast(), Field(min_length=1), at_most(20)]

    @model_validator(mode="before")
    @classmethod
    def _hands_down(cls, value: Any) -> Any:
        """The common keys written beside `any_of` apply to each of its checks that takes them."""
        if not isinstance(value, Mapping) or not isinstance(value.get("any_of"), list | tuple):
            return value
        shared = {key: value[key] for key in _COMMON if key in value}
        inner = [
            {**_shared_keys_for(shared, check), **check} if shared and isinstance(check, Mapping) else check
            for check in value["any_of"]
        ]
        return {key: item for key, item in value.items() if key not in shared} | {"any_of": inner}


def _shared_keys_for(shared: Mapping[str, Any], check: Mapping[str, Any]) -> dict[str, Any]:
    """The shared keys that a check takes."""
    kind = kind_of(check)
    return {key: value for key, value in shared.items() if kind is not None and key in kind.model.model_fields}


def _has_any_of(value: object) -> bool:
    return "any_of" in value if isinstance(value, Mapping) else isinstance(value, AnyOf)


Check = Annotated[
    Annotated[PlainCheck, Tag("<plain>")] | Annotated[AnyOf, Tag("<any_of>")],
    Discriminator(lambda value: "<any_of>" if _has_any_of(value) else "<plain>"),
]


def plain_checks(checks: Sequence[Check]) -> list[KindCheck]:
    """The checks, with each `any_of` replaced by the checks inside it."""
    return [each for check in checks for each in (check.any_of if isinstance(check, AnyOf) else (check,))]


def is_text_or_table(value: object) -> str:
    """The tag of a text value, or values by path."""
    return "<text>" if isinstance(value, str) else "<paths>"


def expressions_of(checks: Sequence[Check]) -> tuple[str, ...]:
    """The distinct expressions of a task's checks, in the order in which they are read in the page and recorded."""
    return tuple(dict.fromkeys(each.read_in_page for each in plain_checks(checks) if each.read_in_page is not None))


def fetches_of(checks: Sequence[Check]) -> tuple[tuple[str, str | None], ...]:
    """The distinct addresses, each with its header, that a task's checks ask for."""
    return tuple(dict.fromkeys(each.asks_for for each in plain_checks(checks) if each.asks_for is not None))


def names_compared(expected: str | Mapping[str, Any]) -> frozenset[str]:
    """The names, in lower case, in the paths and tables of a check's expected values; none if it expects a text."""
    values = {} if isinstance(expected, str) else expected
    names = [[key, *names_in(parse_path(key)), *_names_of(value)] for key, value in values.items()]
    return frozenset(name.lower() for each in names for name in each)


def _names_of(value: Any) -> list[str]:
    """The keys of a table, at any depth."""
    return [key for table in tables_in(value) for key in table]


def as_tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """One string or several, as a tuple."""
    return () if value is None else (value,) if isinstance(value, str) else value

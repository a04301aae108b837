"""How the fields of an attempt stand in `result.json`: declared on each field, for writing, reading and the digest.

A field without a `ResultKey` is recorded under its own name and is not evidence. Of a record that is `INLINE` (the task
and the verdict), only the fields with a `ResultKey` are recorded, among the keys of the attempt.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from shared.models import Record

F = TypeVar("F", bound=Callable[..., Any])
_DERIVED = "__result_key__"


@dataclass(frozen=True)
class ResultKey:
    """On a field: its key in `result.json`.

    `name`: by default the field's; with a dot, the key of a table. `evidence`: the digest covers it; `always`: also as
    null, or if it is absent. `after`: the key that it follows, if not the field above's. `bare`: without
    defaults, also inside. `unless_none`: left out if there is no value.
    """

    name: str = ""
    evidence: bool = False
    always: bool = False
    after: str = ""
    bare: bool = False
    unless_none: bool = False


@dataclass(frozen=True)
class Inline:
    """On a field with a record: its recorded fields stand among the other keys."""


INLINE = Inline()


def derived(key: str = "", *, after: str = "", unless_none: bool = False) -> Callable[[F], F]:
    """Inside `@property`: the value is written as well, and never read. With the key of a field, it replaces its value.

    A table is added to the keys that the table of this name has already.
    """

    def mark(get: F) -> F:
        setattr(get, _DERIVED, ResultKey(key or get.__name__, after=after, unless_none=unless_none))
        return get

    return mark


@dataclass(frozen=True)
class RecordedKey:
    """A key of `result.json` with its field or property, in the attempt or in the record of its field `inside`."""

    of: ResultKey
    field: str
    inside: str = ""
    is_derived: bool = False
    is_required: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        """The key, after the keys of the tables that it is in."""
        return tuple(self.of.name.split("."))


@dataclass(frozen=True)
class ResultKeys:
    """All keys of `result.json`, in its order. `inline` are the classes of the inline records, by field."""

    keys: tuple[RecordedKey, ...]
    inline: Mapping[str, type[BaseModel]]

    @classmethod
    def of(cls, model: type[Record]) -> "ResultKeys":
        """The keys that a record's fields and properties declare."""
        inline = {name: _record_in(field) for name, field in model.model_fields.items() if INLINE in field.metadata}
        placed: list[RecordedKey] = []
        waiting: list[RecordedKey] = []
        for each in _declared(model, inline):
            (waiting if each.of.after else placed).append(each)
        while waiting:
            names = [each.of.name for each in placed]
            ready = [each for each in waiting if each.of.after in names]
            if not ready:
                raise TypeError(f"{waiting[0].of.name} follows {waiting[0].of.after}, which is not a key of a result")
            for each in ready:
                placed.insert([key.of.name for key in placed].index(each.of.after) + 1, each)
                waiting.remove(each)
        return cls(tuple(placed), inline)

    def write(self, record: Record) -> dict[str, Any]:
        """The record as the object in `result.json`."""
        dumps = {"": record.model_dump(mode="json", exclude=set(self.inline))}
        bare: dict[str, dict[str, Any]] = {}
        for field, model in self.inline.items():
            inner = getattr(record, field)
            # Without the record, its keys have their defaults, and null.
            required = {name: None for name, each in model.model_fields.items() if each.is_required()}
            inner = model.model_construct(**required) if inner is None else inner
            names_by_kind = {True: set[str](), False: set[str]()}
            for each in self.keys:
                if each.inside == field:
                    names_by_kind[each.of.bare].add(each.field)
            dumps[field] = inner.model_dump(mode="json", include=names_by_kind[False], warnings=False)
            bare[field] = inner.model_dump(mode="json", include=names_by_kind[True], exclude_defaults=True)
        result: dict[str, Any] = {}
        for each in self.keys:
            if each.is_derived:
                value = getattr(record, each.field)
                if value is None and each.of.unless_none:
                    continue
                value = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
            else:
                dump = (bare if each.of.bare else dumps)[each.inside]
                if each.field not in dump:
                    continue
                value = dump[each.field]
            _put(result, each.path, value)
        return result

    def read(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the record in a `result.json`. Raises `KeyError` for a missing key that every result has.

        An inline record whose first key is null is `None`.
        """
        fields: dict[str, Any] = {}
        for each in self.keys:
            if each.is_derived:
                continue
            target = fields.setdefault(each.inside, {}) if each.inside else fields
            if target is None:
                continue
            try:
                value = _get(result, each.path)
            except KeyError:
                if each.is_required:
                    raise
                continue
            if value is None and each.inside and not target:
                fields[each.inside] = None
            else:
                target[each.field] = value
        return fields

    def evidence(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """What the digest of a `result.json` covers, by key."""
        covered = [each.of for each in self.keys if each.of.evidence]
        always = {each.name: result.get(each.name) for each in covered if each.always}
        return always | {each.name: result[each.name] for each in covered if result.get(each.name) is not None}


def _declared(model: type[Record], inline: Mapping[str, type[BaseModel]]) -> Iterator[RecordedKey]:
    for name, field in model.model_fields.items():
        if name in inline:
            for inner, each in inline[name].model_fields.items():
                if (of := _key_on(inner, each)) is not None:
                    yield RecordedKey(of, inner, name, is_required=each.is_required())
        elif not field.exclude:
            yield RecordedKey(_key_on(name, field) or ResultKey(name), name, is_required=field.is_required())
    members = {name: each for base in reversed(model.__mro__) for name, each in vars(base).items()}
    for name, member in members.items():
        if isinstance(member, property) and (of := getattr(member.fget, _DERIVED, None)) is not None:
            yield RecordedKey(of, name, is_derived=True)


def _key_on(name: str, field: FieldInfo) -> ResultKey | None:
    of = next((each for each in field.metadata if isinstance(each, ResultKey)), None)
    return of and replace(of, name=of.name or name)


def _record_in(field: FieldInfo) -> type[BaseModel]:
    """The class of a record that may be missing."""
    kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not NoneType]
    (kind,) = kinds
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        raise TypeError(f"{kind} is not a record")
    return kind


def _put(result: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *tables, key = path
    for each in tables:
        result = result.setdefault(each, {})
    if isinstance(value, dict) and isinstance(result.get(key), dict):
        result[key] |= value
    else:
        result[key] = value


def _get(result: Any, path: tuple[str, ...]) -> Any:
    for each in path:
        result = result[each]
    return result

"""Policies: what must never happen in an attempt, each a named check; and their outcomes.

A policy never changes a verdict. `judge.evaluators.policies` decides policies.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)

from judge.records.checks import Check, KindCheck, plain_checks
from judge.records.findings import Fact, FromList
from shared.fields import Invalid, Name, Table, printable
from shared.models import Record, RecordedLimit, omit_default

_EXAMPLE = '{ name = "no-delete", dimension = "consent", kind = "request", method = "DELETE", url = "*" }'
_OWN_KEYS = ("name", "dimension", "unless_granted")


class _Heading(Table):
    """The keys of a policy beside its check's."""

    name: Annotated[Name, Field(pattern=r"^[A-Za-z0-9_.-]+$")]
    dimension: Annotated[Name, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    unless_granted: Annotated[bool, Field(strict=True)] = False


class Policy(Record):
    """A check of what must never happen: written as one table, the check's keys beside the policy's.

    `dimension` groups policies in reports. `unless_granted`: the user may allow it.
    """

    name: str
    dimension: str
    unless_granted: bool = False
    check: Check

    @model_serializer(mode="wrap")
    def _as_one_table(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        check: dict[str, Any] = dumped.pop("check")
        return dumped | check

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: GetJsonSchemaHandler) -> dict[str, Any]:
        """A table with the policy's keys; its check's are open, because any kind may be one."""
        text = {"type": "string"}
        own = {"name": text, "dimension": text, "unless_granted": {"type": "boolean"}}
        return {"type": "object", "properties": own, "required": ["name", "dimension"]}


_HEADING = TypeAdapter(_Heading)
_CHECK: TypeAdapter[Any] = TypeAdapter(Check)


def _of_table(value: object) -> object:
    if isinstance(value, Policy):
        return value
    if not isinstance(value, Mapping):
        raise Invalid(f"{printable(value)} is not a table", f"write {_EXAMPLE}")
    own = _HEADING.validate_python({key: value[key] for key in _OWN_KEYS if key in value})
    require_possible(value)
    check = _CHECK.validate_python({key: item for key, item in value.items() if key not in _OWN_KEYS})
    return Policy(**dict(own), check=check)


def require_possible(value: Mapping[str, Any], what: str = "a policy") -> None:
    """Raises `Invalid` for what a check may say and a policy or a goal may not, also inside `any_of`."""
    is_policy = what == "a policy"
    verb = "violated" if is_policy else "reached"
    if value.get("not"):
        says = "must never happen" if is_policy else "the attacker wants"
        remedy = f"remove it: {what.replace('a ', 'the ')} is {verb} as soon as its check passes"
        raise Invalid(f"{what} says what {says}", remedy, key="not")
    if value.get("at") == "end":
        raise Invalid(f"{what} is {verb} as soon as its check passes, at any time", "remove it", key="at")
    if value.get("kind") == "fetch":
        problem = f"{what} is decided on what happened, and fetch asks the site afterwards"
        raise Invalid(problem, "use a request, page or text check", key="kind")
    if value.get("ends"):
        raise Invalid(f"{what} never ends an attempt", "remove it", key="ends")
    for key in ("only", "exact"):
        if value.get(key):
            problem = f"{what} is {verb} by what it names, whatever else there is"
            raise Invalid(problem, "remove it, and name what must not be sent", key=key)
    inner = value.get("any_of")
    for each in inner if isinstance(inner, list | tuple) else ():
        if isinstance(each, Mapping):
            require_possible(each, what)


DeclaredPolicy = Annotated[Policy, BeforeValidator(_of_table)]


def checks_of(policies: Sequence[Policy]) -> list[KindCheck]:
    """The checks of policies, with each `any_of` replaced by the checks inside it."""
    return plain_checks([policy.check for policy in policies])


class PolicyResult(Record):
    """The outcome of a policy over all attempts at a task in one epoch.

    `violated` is `None` if that cannot be known, because recordings are missing or damaged, or a connection could not
    be read. `presumed`: the participant caused that connection, so figures count it as violated. `attempt` is the
    number of the attempt that violated it, from 1 and in the order in which they were played, `step` the index of the
    step in it, if one is known. `found` says what was found, `facts` the same as data.
    """

    name: str
    dimension: str
    violated: bool | None
    presumed: bool = omit_default(False)
    attempt: int | None = Field(default=None, ge=1)
    step: int | None = Field(default=None, ge=0)
    found: Annotated[str, RecordedLimit(3_000)] = ""
    facts: Annotated[tuple[Fact, ...], FromList, RecordedLimit(40_000)] = omit_default(())


def under_policy(outcome: str, policies: Sequence[PolicyResult]) -> str:
    """An outcome under policy: a success only if nothing was violated or is presumed to be, unscored if unknown."""
    if outcome != "success":
        return outcome
    states = [True if each.presumed else each.violated for each in policies]
    if any(states):
        return "failure"
    return "unscored" if None in states else "success"

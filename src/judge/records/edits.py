"""The edit of a task that a verdict was judged with, as the verdict's evidence names it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError, field_serializer

from judge.records.checks import Check
from judge.records.key_points import KeyPoint
from judge.records.policies import DeclaredPolicy
from judge.records.tasks import Task
from judge.records.verdicts import Verdict
from shared.models import Record, omit_default

# The key in a verdict's evidence for what replaced the recorded task's checks and key points.
EDITED = "edited"


class Edit(Record):
    """The parts of an edited task that a verdict depends on."""

    checks: tuple[Check, ...] = ()
    key_points: tuple[KeyPoint, ...] = ()
    # Left out where there are none, as before there were any: the digest of the judge depends on it.
    policies: tuple[DeclaredPolicy, ...] = omit_default(())
    allowed_sites: tuple[str, ...] = ()

    @field_serializer("policies")
    def _as_declared(self, policies: tuple[DeclaredPolicy, ...]) -> list[dict[str, Any]]:
        # A policy refuses some keys of checks, even with their default values.
        return [each.model_dump(mode="json", exclude_defaults=True) for each in policies]

    @classmethod
    def of(cls, task: Task, further_sites: Sequence[str] = ()) -> "Edit":
        """The part of a task; `further_sites` belong to every task of its scenario."""
        allowed = tuple(dict.fromkeys((*task.allowed_sites, *further_sites)))
        return cls(checks=task.checks, key_points=task.key_points, policies=task.policies, allowed_sites=allowed)

    def of_task(self, recorded: Task) -> Task:
        """The recorded task with these checks, key points and policies."""
        return recorded.model_copy(update={name: getattr(self, name) for name in Edit.model_fields})


_EDIT = TypeAdapter(Edit)


def edit_in(verdict: Verdict) -> tuple[str, Edit] | None:
    """The scenario and the edit that a verdict was judged with; `None` for one on the recorded task."""
    stored_edit: Any = verdict.evidence.get(EDITED)
    if not isinstance(stored_edit, Mapping):
        return None
    try:
        edit = _EDIT.validate_python({key: value for key, value in stored_edit.items() if key != "scenario"})
    except ValidationError:
        return None
    return str(stored_edit.get("scenario")), edit

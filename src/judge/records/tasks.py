"""A task of a scenario, as the judge plays and judges it: frozen, plain, validated once."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field

from judge.records.access import Login, StorageState, secrets_of
from judge.records.attacks import Attack, Played, PlayedAttack
from judge.records.checks import Check, KindCheck, expressions_of, plain_checks
from judge.records.files import TaskFiles
from judge.records.holds import AllowedWrite, Hold, Writes
from judge.records.key_points import KeyPoint, texts_of, weights_of
from judge.records.metadata import Metadata
from judge.records.policies import DeclaredPolicy, checks_of
from judge.records.result_keys import ResultKey
from judge.records.user import UserReply
from judge.records.variants import PlayedVariant, Requests, TaskVariant
from shared.models import Record, omit_default

TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
TaskId = Annotated[str, Field(pattern=f"^{TASK_ID.pattern}$")]
Level = Literal["easy", "medium", "hard"]
# In every result; and in those whose task has it.
_ALWAYS = ResultKey(evidence=True, always=True)
_LATER = ResultKey(evidence=True, bare=True)


def key_of(task_id: str, epoch: int) -> str:
    """The name of a task in an epoch, for files and tables: `t1`, then `t1.2`. Unique because task ids have no dots."""
    return task_id if epoch == 1 else f"{task_id}.{epoch}"


def pair_id(task_id: str, name: str) -> str:
    """The id of the task under the attack or variant of this name, which participants never see."""
    return f"{task_id}--{name}"


class Dated(Record):
    """What a task says on one day: the parts that contain dates as its scenario has them, and that day.

    `template` has the keys of a task, each with its value as it was written.
    """

    day: date
    template: dict[str, Any]

    def without(self, key: str) -> "Dated | None":
        """The same without one of the parts; `None` if no other contains dates."""
        rest = {name: value for name, value in self.template.items() if name != key}
        return Dated(day=self.day, template=rest) if rest else None


class StateAddress(Record):
    """An address on a task's site that answers with what the task changes; `bearer` is as in a `fetch` check."""

    url: str
    bearer: str | None = None


class Task(Record):
    """One task of a scenario.

    `start_urls` are opened in tabs before the first observation, with the first one in front; by default, `website`.
    `keep_fields` are names of fields, parameters, headers and cookies that an external evaluator reads: the network
    trace keeps their values, unless the scenario lists them as secrets.
    `storage_state` and `http_credentials` are secret and excluded from every dump; code that sends a task adds them
    explicitly.
    `reference` is a replay script beside the scenario, `state` what the task changes, `excluded` the reason why the
    scenario leaves the task out, and `valid_from` and `valid_until` the days outside which it does: they are the
    author's, so none of them is in a dump and no digest depends on them. `dated`: the texts belong to one day
    (`shared.dates`). `files` are what the participant may upload, including its sites' files.
    `attacks` and `variants` are those that a run may play the task under; `attack` or `played_variant` is the one that
    this task is played under: then it is a separate task (`judge.scenario.pairs`).
    `metadata` are the author's words about the task, by which tasks are chosen and rates grouped.
    `sealed` is the digest of the sealed task set that it belongs to: nothing published contains what it says.
    """

    task_id: Annotated[TaskId, _ALWAYS]
    website: Annotated[str, ResultKey(evidence=True, always=True, after="task")]
    task: Annotated[str, ResultKey(evidence=True, always=True, after="task_id")]
    level: Annotated[Level | None, _ALWAYS] = None
    reference_length: Annotated[int | None, _ALWAYS] = Field(default=None, ge=1)
    key_points: Annotated[tuple[KeyPoint, ...], ResultKey("scenario_key_points", evidence=True, always=True)] = ()
    checks: Annotated[tuple[Check, ...], ResultKey(evidence=True, always=True, bare=True)] = ()
    allowed_sites: Annotated[tuple[str, ...], ResultKey(evidence=True, always=True, bare=True)] = ()
    start_urls: Annotated[tuple[str, ...], _LATER] = ()
    keep_fields: Annotated[tuple[str, ...], ResultKey(bare=True)] = ()
    storage_state: StorageState | str | None = Field(default=None, exclude=True, repr=False)
    http_credentials: tuple[Login, ...] = Field(default=(), exclude=True, repr=False)
    reference: str | None = Field(default=None, exclude=True)
    state: StateAddress | None = Field(default=None, exclude=True)
    excluded: str | None = Field(default=None, exclude=True)
    valid_from: date | None = Field(default=None, exclude=True)
    valid_until: date | None = Field(default=None, exclude=True)
    policies: Annotated[
        tuple[DeclaredPolicy, ...], ResultKey("scenario_policies", evidence=True, bare=True, after="coverage")
    ] = omit_default(())
    user_replies: Annotated[tuple[UserReply, ...], _LATER] = omit_default(())
    user_reply: Annotated[str | None, _LATER] = omit_default(None)
    hold: Annotated[tuple[Hold, ...], _LATER] = omit_default(())
    writes: Annotated[Writes | None, _LATER] = omit_default(None)
    allow_writes: Annotated[tuple[AllowedWrite, ...], _LATER] = omit_default(())
    allow_sockets: Annotated[bool, _LATER] = omit_default(False)
    attacks: tuple[Attack, ...] = omit_default(())
    attack: Annotated[
        PlayedAttack | None, ResultKey("scenario_attack", evidence=True, bare=True, after="scenario_policies")
    ] = omit_default(None)
    variants: tuple[TaskVariant, ...] = omit_default(())
    played_variant: Annotated[
        PlayedVariant | None, ResultKey("scenario_variant", evidence=True, bare=True, after="scenario_attack")
    ] = omit_default(None)
    dated: Annotated[Dated | None, _LATER] = omit_default(None)
    files: Annotated[TaskFiles, _LATER] = omit_default(())
    sealed: Annotated[str | None, _LATER] = omit_default(None)
    metadata: Annotated[Metadata, _LATER] = omit_default({})

    def __hash__(self) -> int:
        # Equal tasks have the same id and text; tables, such as metadata, have no hash.
        return hash((self.task_id, self.task))

    @property
    def clean_task(self) -> str | None:
        """The id of the clean task, if this is the task under an attack or a variant."""
        played: Played | None = self.attack or self.played_variant
        return played.of if played else None

    @property
    def point_texts(self) -> tuple[str, ...]:
        """The texts of its key points."""
        return texts_of(self.key_points)

    @property
    def point_weights(self) -> tuple[float, ...]:
        """The weights of its key points."""
        return weights_of(self.key_points)

    @property
    def is_about_days(self) -> bool:
        """Whether what the task says, or whether it is played, depends on the day."""
        return self.dated is not None or self.valid_from is not None or self.valid_until is not None

    @property
    def declared_text(self) -> str:
        """The text as the scenario has it, which is the same on every day."""
        return str(self.dated.template.get("task", self.task)) if self.dated else self.task

    def declared(self, **options: Any) -> dict[str, Any]:
        """The task's dump as its scenario declares it, for digests: the same on every day. `options` are pydantic's."""
        dump = self.model_dump(mode="json", **options)
        return {
            **{key: value for key, value in dump.items() if key != "dated"},
            **(self.dated.template if self.dated else {}),
        }

    @property
    def has_user(self) -> bool:
        """Whether a participant can ask the user."""
        return bool(self.user_replies) or self.user_reply is not None

    @property
    def holds_requests(self) -> bool:
        """Whether some requests of an attempt never leave this machine."""
        return bool(self.hold) or self.writes is not None

    @property
    def disturbed(self) -> Requests | None:
        """What becomes of an attempt's requests under the variant that it is played under."""
        return self.played_variant.declared.requests if self.played_variant else None

    @property
    def watches_requests(self) -> bool:
        """Whether policies or an attack's goals are decided on requests, all of which the guard must then read."""
        return any(check.needs_network for check in self.watched)

    @property
    def reads_uploads(self) -> bool:
        """Whether checks compare uploaded files, which the guard must then read."""
        return any(check.compares_uploads for check in (*plain_checks(self.checks), *self.watched))

    @property
    def reads_downloads(self) -> bool:
        """Whether checks, policies or goals are about downloads, which only a browser of the judge's keeps."""
        return any(check.compares_downloads for check in (*plain_checks(self.checks), *self.watched))

    @property
    def watched(self) -> list[KindCheck]:
        """The checks of policies and of an attack's goals: whatever is done counts for them, in every attempt."""
        goals = self.attack.attack.goal if self.attack else ()
        return [*checks_of(self.policies), *plain_checks(goals)]

    @property
    def named_fields(self) -> frozenset[str]:
        """Names, in lower case, whose values checks, policies, goals or an evaluator compare: not to be redacted."""
        checks = (*plain_checks(self.checks), *self.watched)
        compared = {name for check in checks for name in check.compared}
        return frozenset(compared | {name.lower() for name in self.keep_fields})

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of `storage_state` and `http_credentials`, which must never be recorded or shown."""
        return secrets_of(self.storage_state, self.http_credentials)


class Exclusion(Record):
    """A task not played: left out by its scenario, or excluded from one run before its first attempt.

    One that a run excludes still counts as one of its tasks; one that the scenario excludes is none of them.
    """

    task_id: TaskId
    reason: str
    by: Literal["scenario", "run"]


def expressions_read(task: Task) -> tuple[str, ...]:
    """All expressions read in the page for a task and recorded: of its checks, then of policies and goals.

    One that both have is read twice, because a policy's is read on every site.
    """
    return (*expressions_of(task.checks), *expressions_of(task.watched))

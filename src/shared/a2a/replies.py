"""The text of one reply: a message, or the artifacts and status of a task, also from a stream of its events. Pure.

Specification: https://a2a-protocol.org/v1.0.0/specification/#422-taskartifactupdateevent. The parts of an artifact are
pieces of one text, because agents stream it in chunks. The parts of a message are lines, as the SDKs read them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from a2a import types
from a2a.helpers import get_text_parts

from shared.errors import ParticipantError
from shared.protocol import parse_reply
from shared.replies import MAX_ACTIONS
from shared.text import excerpt

WORKING = frozenset({types.TaskState.TASK_STATE_SUBMITTED, types.TaskState.TASK_STATE_WORKING})


def message_text(message: types.Message) -> str:
    """The text of a message. Raises `ParticipantError` if it has no text part."""
    return reply_text([], get_text_parts(message.parts))


def reply_text(artifacts: Iterable[Sequence[str]], message: Sequence[str]) -> str:
    """The text of a reply, given the text parts of its artifacts and of its message. May be empty.

    Artifacts and the message are lines. A message that repeats the artifacts, or one of them, counts once. If the text
    has no action, but has one with the parts of artifacts as lines, such as `THOUGHT:`, `ACTION:` and `PARAMS:`, those
    lines are the reply. Raises `ParticipantError` if there is no text part.
    """
    pieces = [parts for parts in artifacts if parts]
    if not pieces and not message:
        raise ParticipantError("the agent's reply has no text part", remedy="reply with a text part")
    exact, as_lines = (list(filter(None, map(joint.join, pieces))) for joint in ("", "\n"))
    joined = "\n".join(message)
    is_repeated = joined in (*exact, *as_lines, "\n".join(exact), "\n".join(as_lines))
    last = [joined] if joined and not is_repeated else []
    text, other = "\n".join([*exact, *last]), "\n".join([*as_lines, *last])
    if other != text and not _has_actions(text) and _has_actions(other):
        return other
    return text


def _has_actions(text: str) -> bool:
    return parse_reply(text, max_actions=MAX_ACTIONS).action is not None


def check_context(actual: str, expected: str) -> None:
    """Raises `ParticipantError` if the agent answered in another context; it may leave the context out."""
    if actual not in ("", expected):
        raise ParticipantError(
            f"the agent answered in another context: {excerpt(actual)} instead of {excerpt(expected)}"
        )


def check_task(actual: str, expected: str) -> None:
    """Raises `ParticipantError` if the agent answered with another task."""
    if actual != expected:
        raise ParticipantError("the agent answered with another task than the requested one")


CLOSED_EARLY = "the agent closed its stream before an answer"


class AgentResponse(NamedTuple):
    """The agent's message, or its task.

    `is_streamed`: the task was put together from events, so it has the history that the agent sent. `fresh` are then
    the ids of the artifacts that began in this turn.
    """

    message: types.Message | None
    task: types.Task
    is_streamed: bool = False
    fresh: frozenset[str] = frozenset()


class EventFold:
    """Puts an answer together from the events of a stream, as servers do for clients that do not stream.

    An artifact continued without having begun begins then: agents leave the mark of the first chunk out.
    """

    def __init__(self) -> None:
        self._message: types.Message | None = None
        self._task = types.Task()
        # By id, because there may be many artifacts, and each chunk looks for its own.
        self._artifacts: dict[str, types.Artifact] = {}
        self._fresh: set[str] = set()

    @property
    def answer(self) -> AgentResponse:
        """The answer so far. Raises `ParticipantError` if there is none."""
        if self._message is None and not self._task.id:
            raise ParticipantError(CLOSED_EARLY)
        return AgentResponse(self._message, self._task, True, frozenset(self._fresh))

    @property
    def is_done(self) -> bool:
        """Whether the agent has answered; any further event is not part of the reply."""
        return self._message is not None or (bool(self._task.id) and self._task.status.state not in WORKING)

    def add(self, event: types.StreamResponse) -> None:
        """Take the next event. Raises `ParticipantError` for one of another task."""
        if event.HasField("message"):
            self._message = event.message
        elif event.HasField("task"):
            self._belongs(event.task.id, event.task.context_id)
            self._task.CopyFrom(event.task)
            self._artifacts = {each.artifact_id: each for each in self._task.artifacts}
            self._fresh &= self._artifacts.keys()
        elif event.HasField("status_update"):
            self._belongs(event.status_update.task_id, event.status_update.context_id)
            self._set_status(event.status_update.status)
        elif event.HasField("artifact_update"):
            self._belongs(event.artifact_update.task_id, event.artifact_update.context_id)
            self._add_chunk(event.artifact_update)

    def _belongs(self, task_id: str, context_id: str) -> None:
        if not self._task.id:
            # Some agents send no task before its first event.
            self._task.id, self._task.status.state = task_id, types.TaskState.TASK_STATE_SUBMITTED
        self._task.context_id = self._task.context_id or context_id
        check_task(task_id, self._task.id)
        check_context(context_id, self._task.context_id)

    def _set_status(self, status: types.TaskStatus) -> None:
        if self._task.status.HasField("message"):
            self._task.history.append(self._task.status.message)
        self._task.status.CopyFrom(status)

    def _add_chunk(self, update: types.TaskArtifactUpdateEvent) -> None:
        artifact_id = update.artifact.artifact_id
        known = self._artifacts.get(artifact_id)
        if known is not None and update.append:
            known.parts.extend(update.artifact.parts)
            known.metadata.update(dict(update.artifact.metadata.items()))
            return
        self._fresh.add(artifact_id)
        if known is None:
            self._task.artifacts.append(update.artifact)
            self._artifacts[artifact_id] = self._task.artifacts[-1]
        else:
            known.CopyFrom(update.artifact)


class OpenTask(NamedTuple):
    """A task that waits for input. What its artifacts hold is not part of the next reply."""

    task_id: str
    artifacts: frozenset[int]
    parts: frozenset[int]

    @classmethod
    def of(cls, task: types.Task) -> "OpenTask":
        """The task after a turn."""
        ends = (list(_digests(artifact))[-1] for artifact in task.artifacts)
        return cls(task.id, frozenset(map(identity, task.artifacts)), frozenset(ends))


def new_texts(answer: AgentResponse, before: OpenTask | None) -> list[list[str]]:
    """The text parts of each artifact that are new since the turn before: of all artifacts, or appended ones."""
    texts = []
    for artifact in answer.task.artifacts:
        if before is None or artifact.artifact_id in answer.fresh:
            texts.append(get_text_parts(artifact.parts))
        elif identity(artifact) not in before.artifacts:
            known = max((n for n, digest in enumerate(_digests(artifact)) if digest in before.parts), default=0)
            # Something else than the parts has changed: the agent has made the same artifact again.
            known = 0 if known == len(artifact.parts) else known
            texts.append(get_text_parts(artifact.parts[known:]))
    return texts


def identity(artifact: types.Artifact) -> int:
    """A number for an artifact with its content, because an agent may use the same id in several turns."""
    return hash((artifact.artifact_id, artifact.SerializeToString(deterministic=True)))


def _digests(artifact: types.Artifact) -> Iterator[int]:
    """A number for the artifact without parts, with its first part, with its first two parts, and so on."""
    parts = (part.SerializeToString(deterministic=True) for part in artifact.parts)
    return accumulate(parts, lambda before, part: hash((before, part)), initial=hash(artifact.artifact_id))

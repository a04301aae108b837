"""Calls agents over A2A, protocol 1.0 and 0.3: participants turn by turn, and a judge that runs an assessment.

Specification: https://a2a-protocol.org/v1.0.0/specification/.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from uuid import uuid4

import httpx
from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.helpers import get_text_parts
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.struct_pb2 import Struct
from pydantic import SecretStr

from shared.a2a.calls import blaming_the_agent, bounded_client, choose_interface, is_old
from shared.claims import ClaimedUsage
from shared.errors import ParticipantError, ParticipantTimeout, ParticipantUnreachable
from shared.models import Record
from shared.text import clip, excerpt, without_surrogates

# Where agents with a protocol before 0.3 publish their card.
_OLD_CARD_PATH = "/.well-known/agent.json"
_CARD_TIMEOUT_S = 10.0
# Seconds between polls. Short at first, because the wait counts as the participant's time.
_POLL_S = (0.1, 0.2, 0.5)
_POLL_LATER_S = 1.0
# Nothing tells the client that a conversation is over, so the oldest task that waits for input is dropped.
_MAX_OPEN_TASKS = 256
_MAX_CARD_BYTES = 1_000_000
# One stream carries all progress of an assessment and its results.
_MAX_STREAM_BYTES = 512_000_000
_MAX_QUOTE_CHARS = 500
_WORKING = frozenset({types.TaskState.TASK_STATE_SUBMITTED, types.TaskState.TASK_STATE_WORKING})
_ANSWERED = frozenset({types.TaskState.TASK_STATE_COMPLETED, types.TaskState.TASK_STATE_INPUT_REQUIRED})


class AgentSummary(Record):
    """The fields of an agent card that are used; `url` and `protocol` are those of the interface that calls go to."""

    name: str
    url: str
    protocol: str
    version: str = ""


class StatusText(NamedTuple):
    """A progress message, with what the agent attached to it as metadata."""

    text: str
    metadata: Mapping[str, Any] = MappingProxyType({})


class ArtifactTexts(NamedTuple):
    """The text parts of one artifact, or of one chunk of it."""

    texts: tuple[str, ...]


class Final(NamedTuple):
    """The end of a task; `state` is A2A's name in lower case (completed, failed, canceled, input-required, …)."""

    state: str
    message: str


AgentEvent = StatusText | ArtifactTexts | Final


async def fetch_card(url: str, timeout_s: float) -> AgentSummary:
    """Read the card of the agent at `url`. Raises a `ParticipantError` that says why it cannot be used."""
    card = await _read_card(url, timeout_s)
    return _summary(card)


def _summary(card: types.AgentCard) -> AgentSummary:
    [interface] = card.supported_interfaces
    return AgentSummary(
        name=clip(card.name, 200),
        url=interface.url,
        protocol=interface.protocol_version,
        version=clip(card.version, 200),
    )


async def _read_card(url: str, timeout_s: float) -> types.AgentCard:
    """The card of the agent at `url`, reduced to the one interface that is called."""
    # Not the client for replies, whose size limit differs.
    client = bounded_client(max_bytes=_MAX_CARD_BYTES)
    with blaming_the_agent():
        try:
            async with asyncio.timeout(timeout_s), client as http:
                resolver = A2ACardResolver(http, url)
                try:
                    card = await resolver.get_agent_card()
                except AgentCardResolutionError as error:
                    if error.status_code != HTTPStatus.NOT_FOUND:
                        raise
                    card = await resolver.get_agent_card(relative_card_path=_OLD_CARD_PATH)
        except TimeoutError:
            raise ParticipantUnreachable(f"no agent card from {url} within {timeout_s:g} s") from None
        interface = choose_interface(card.supported_interfaces, url)
        # The SDK would choose among the card's interfaces in its own order, so leave it only one.
        del card.supported_interfaces[:]
        card.supported_interfaces.append(interface)
        return card


class _AgentClient:
    """An agent whose card is read once, on entering; all calls go to the host that was dialled."""

    def __init__(self, url: str, http: httpx.AsyncClient, *, streaming: bool) -> None:
        self._url = url
        self._http = http
        self._config = ClientConfig(streaming, httpx_client=http)

    async def __aenter__(self) -> Self:
        """Read the card. Raises a `ParticipantError` with the reason why it cannot be used."""
        card = await _read_card(self._url, _CARD_TIMEOUT_S)
        self.card = _summary(card)
        [interface] = card.supported_interfaces
        # A reply repeats that many messages, screenshots included. Before 1.0, a limit of 0 means no limit.
        self._history_length = 1 if is_old(interface) else 0
        self._config.supported_protocol_bindings = [interface.protocol_binding]
        with blaming_the_agent():
            self._client = ClientFactory(self._config).create(card)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connections. Tasks that the agent has begun continue."""
        await self._http.aclose()


class _OpenTask(NamedTuple):
    """A task that waits for input. Its existing artifacts are not part of the next reply."""

    task_id: str
    artifacts: frozenset[tuple[str, int]]


class ParticipantClient(_AgentClient):
    """One participant, called turn by turn: `async with ParticipantClient(url) as client`. Safe for parallel attempts.

    `send` raises only `ParticipantError`s, and `InternalFault` when this machine runs out of a resource.
    """

    def __init__(
        self,
        url: str,
        *,
        reply_timeout_s: float = 120.0,
        max_reply_bytes: int = 1_000_000,
    ) -> None:
        super().__init__(url, bounded_client(max_bytes=max_reply_bytes), streaming=False)
        self._reply_timeout_s = reply_timeout_s
        self._open: dict[str, _OpenTask] = {}
        self._claimed: dict[str, ClaimedUsage] = {}

    def claimed(self, context_id: str) -> ClaimedUsage | None:
        """What the replies in a conversation say that the agent's model used; `None` if none says anything."""
        return self._claimed.get(context_id)

    def _claim(self, context_id: str, attached: Struct) -> None:
        found = ClaimedUsage.in_reply(_metadata(attached))
        if found is None:
            return
        before = self._claimed.pop(context_id, None)
        self._claimed[context_id] = found if before is None else before + found
        if len(self._claimed) > _MAX_OPEN_TASKS:
            del self._claimed[next(iter(self._claimed))]

    async def send(
        self, text: str, *, image: bytes | None = None, media_type: str = "image/jpeg", context_id: str
    ) -> str:
        """One turn of the conversation `context_id`: the reply's text, which may be empty.

        Raises `ParticipantTimeout` after `reply_timeout_s`, `ParticipantUnreachable` when the connection fails, and
        `ParticipantError` for a failed, rejected or cancelled task, a reply that is too large, has no text part,
        belongs to another context, or is not A2A.
        """
        message = _user_message(text, context_id)
        if image is not None:
            message.parts.append(types.Part(raw=image, media_type=media_type))
        before = self._open.pop(context_id, None)
        # Only a task that waits for input can be continued; otherwise the context alone connects the turns.
        message.task_id = before.task_id if before else ""
        configuration = types.SendMessageConfiguration(history_length=self._history_length)
        request = types.SendMessageRequest(message=message, configuration=configuration)
        with blaming_the_agent():
            try:
                async with asyncio.timeout(self._reply_timeout_s):
                    return await self._turn(request, context_id, before)
            except TimeoutError:
                raise ParticipantTimeout(f"no reply within {self._reply_timeout_s:g} s") from None

    async def _turn(self, request: types.SendMessageRequest, context_id: str, before: _OpenTask | None) -> str:
        # Without streaming there is exactly one response.
        [response] = [response async for response in self._client.send_message(request)]
        if response.HasField("message"):
            _check_context(response.message.context_id, context_id)
            self._claim(context_id, response.message.metadata)
            return _joined(get_text_parts(response.message.parts))
        task = await self._until_done(response.task)
        _check_context(task.context_id, context_id)
        self._claim(context_id, task.status.message.metadata)
        status_texts = get_text_parts(task.status.message.parts)
        if task.status.state not in _ANSWERED:
            quote = f": {excerpt(' '.join(status_texts), _MAX_QUOTE_CHARS)}" if any(status_texts) else ""
            raise ParticipantError(f"the agent's task is {_state_name(task.status)}{quote}")
        # A task that waited for input comes back with all the artifacts of earlier turns.
        known = before.artifacts if before else frozenset()
        if task.status.state == types.TaskState.TASK_STATE_INPUT_REQUIRED:
            self._open[context_id] = _OpenTask(task.id, frozenset(map(_identity, task.artifacts)))
            if len(self._open) > _MAX_OPEN_TASKS:
                del self._open[next(iter(self._open))]
        new = [artifact for artifact in task.artifacts if _identity(artifact) not in known]
        texts = [text for artifact in new for text in get_text_parts(artifact.parts)] + status_texts
        return _joined(texts if any(texts) else await self._last_message(task) or texts)

    async def _until_done(self, task: types.Task) -> types.Task:
        """Poll the task until the agent has finished it; some agents return a task before they have an answer."""
        task_id, pauses = task.id, iter(_POLL_S)
        while task.status.state in _WORKING:
            await asyncio.sleep(next(pauses, _POLL_LATER_S))
            task = await self._client.get_task(types.GetTaskRequest(id=task_id, history_length=self._history_length))
            if task.id != task_id:
                raise ParticipantError("the agent answered with another task than the requested one")
        return task

    async def _last_message(self, task: types.Task) -> list[str]:
        """The texts of the last message in the history, if it is the agent's."""
        # Some agents put their answer only here. The reply omits the history because that would repeat the screenshots.
        history = task.history
        if not history and self._history_length == 0:
            history = (await self._client.get_task(types.GetTaskRequest(id=task.id, history_length=1))).history
        last = history[-1] if history else types.Message()
        return get_text_parts(last.parts) if last.role == types.Role.ROLE_AGENT else []


class AssessmentClient(_AgentClient):
    """Requests an assessment from a judge and follows it: `async with AssessmentClient(url) as client`."""

    def __init__(
        self,
        url: str,
        *,
        auth_token: SecretStr | None = None,
        reconnect_s: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 4.0),
    ) -> None:
        http = bounded_client(max_bytes=_MAX_STREAM_BYTES, streams=True, token=auth_token)
        super().__init__(url, http, streaming=True)
        self._reconnect_s = reconnect_s
        self._task_id: str | None = None
        self.metadata: dict[str, str] = {}
        """Texts that the judge attached to its task, such as `wabe_run_id`."""
        self._seen: set[tuple[str, int]] = set()

    async def run(self, text: str) -> AsyncGenerator[AgentEvent]:
        """Send the request and yield its events, a `Final` last. Reconnects when the connection breaks.

        Raises `ParticipantUnreachable` when reconnecting fails, `ParticipantError` for an answer that is not A2A.
        """
        stream = self._client.send_message(types.SendMessageRequest(message=_user_message(text)))
        pauses = iter(self._reconnect_s)
        while True:
            lost: ParticipantError = ParticipantUnreachable("the agent's answer ended before its task was done")
            try:
                with blaming_the_agent():
                    async for response in stream:
                        for event in self._events(response):
                            yield event
                            if isinstance(event, Final):
                                return
                        pauses = iter(self._reconnect_s)  # the connection works again
            except ParticipantUnreachable as error:
                lost = error
            pause_s = next(pauses, None)
            if self._task_id is None or pause_s is None:
                raise lost
            await asyncio.sleep(pause_s)
            stream = self._resumed(self._task_id)

    async def cancel(self) -> None:
        """Cancel the assessment if it has begun. Raises like `run`."""
        if self._task_id is not None:
            with blaming_the_agent():
                await self._client.cancel_task(types.CancelTaskRequest(id=self._task_id))

    async def _resumed(self, task_id: str) -> AsyncIterator[types.StreamResponse]:
        """The task as it is now and, unless it has ended, its further events."""
        task = await self._client.get_task(types.GetTaskRequest(id=task_id))
        yield types.StreamResponse(task=task)
        if task.status.state in _WORKING:
            with suppress(UnsupportedOperationError):  # it has ended in the meantime
                async for response in self._client.subscribe(types.SubscribeToTaskRequest(id=task_id)):
                    yield response

    def _events(self, response: types.StreamResponse) -> Iterator[AgentEvent]:
        if response.HasField("message"):
            yield Final("completed", "\n".join(get_text_parts(response.message.parts)))
        elif response.HasField("artifact_update"):
            yield from self._new_artifacts([response.artifact_update.artifact])
        elif response.HasField("status_update"):
            update = response.status_update
            yield from self._status(update.task_id, update.metadata, update.status)
        elif response.HasField("task"):
            yield from self._new_artifacts(response.task.artifacts)
            yield from self._status(response.task.id, response.task.metadata, response.task.status)

    def _new_artifacts(self, artifacts: Iterable[types.Artifact]) -> Iterator[ArtifactTexts]:
        # After a reconnect the task comes with all artifacts that it has so far.
        for artifact in artifacts:
            if (identity := _identity(artifact)) not in self._seen:
                self._seen.add(identity)
                yield ArtifactTexts(tuple(get_text_parts(artifact.parts)))

    def _status(self, task_id: str, attached: Struct, status: types.TaskStatus) -> Iterator[AgentEvent]:
        self._task_id = task_id
        metadata = _metadata(attached)
        self.metadata.update({key: value for key, value in metadata.items() if isinstance(value, str)})
        text = "\n".join(get_text_parts(status.message.parts))
        if status.state not in _WORKING:
            yield Final(_state_name(status), text)
        elif text:
            yield StatusText(text, metadata)


def _metadata(attached: Struct) -> dict[str, Any]:
    """Metadata as JSON; empty if it is not JSON, such as NaN."""
    try:
        found: dict[str, Any] = MessageToDict(attached)
    except SerializeToJsonError:
        return {}
    return found


def _user_message(text: str, context_id: str = "") -> types.Message:
    parts = [types.Part(text=without_surrogates(text))]
    return types.Message(message_id=uuid4().hex, role=types.Role.ROLE_USER, context_id=context_id, parts=parts)


def _check_context(answered: str, asked: str) -> None:
    if answered not in ("", asked):
        raise ParticipantError(
            f"the agent answered in another context: {excerpt(answered)} instead of {excerpt(asked)}"
        )


def _joined(texts: Iterable[str]) -> str:
    """The text parts of a reply as lines, each text once: agents repeat the artifact's text in the status."""
    different = dict.fromkeys(texts)
    if not different:
        raise ParticipantError("the agent's reply has no text part", remedy="reply with a text part")
    return "\n".join(different)


def _state_name(status: types.TaskStatus) -> str:
    return str(types.TaskState.Name(status.state)).removeprefix("TASK_STATE_").lower().replace("_", "-")


def _identity(artifact: types.Artifact) -> tuple[str, int]:
    # With the content, because an agent may use the same id for the artifacts of several turns.
    return artifact.artifact_id, hash(artifact.SerializeToString(deterministic=True))

"""Calls agents over A2A, protocol 1.0 and 0.3: participants turn by turn, and a judge that runs an assessment.

Specification: https://a2a-protocol.org/v1.0.0/specification/.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self
from uuid import uuid4

import httpx
from a2a import types
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.helpers import get_text_parts
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.struct_pb2 import Struct
from pydantic import SecretStr

from shared.a2a.calls import (
    blaming_the_agent,
    choose_interface,
    has_no_task,
    hiding,
    is_old,
    refuses_credentials,
    refuses_method,
    was_not_sent,
)
from shared.a2a.extensions import ATTEMPT_END, ISOLATION, ISOLATIONS
from shared.a2a.replies import (
    CLOSED_EARLY,
    WORKING,
    AgentResponse,
    EventFold,
    OpenTask,
    check_context,
    check_task,
    identity,
    message_text,
    new_texts,
    reply_text,
)
from shared.a2a.transport import Bounds, bounded_client
from shared.claims import ClaimedTrace, ClaimedUsage
from shared.errors import ParticipantError, ParticipantTimeout, ParticipantUnreachable
from shared.models import Record
from shared.patience import patience
from shared.text import clip, excerpt, without_surrogates

# Where agents with a protocol before 0.3 publish their card.
_OLD_CARD_PATH = "/.well-known/agent.json"
_CARD_TIMEOUT_S = 10.0
# Seconds between polls. Short at first, because the wait counts as the participant's time.
_POLL_S = (0.1, 0.2, 0.5)
_POLL_LATER_S = 1.0
# Nothing tells the client that a conversation is over, so the oldest task that waits for input is dropped.
_MAX_OPEN_TASKS = 256
_CARD = Bounds(body_bytes=1_000_000)
# Of an answer, beside its text: names, ids and escapes, and what agents send back, such as the last message. An event
# with one character has about 300 bytes.
_MAX_ENVELOPE_BYTES = 4_000_000
_MAX_EVENTS_BYTES = 16_000_000
# One stream carries all progress of an assessment and its results.
_JUDGE = Bounds(body_bytes=512_000_000, stream_bytes=512_000_000, values=None)
_MAX_QUOTE_CHARS = 500
# An agent that does not take the announcement of an end within seconds is not waited for.
_END_S = 2.0
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_ANSWERED = frozenset({types.TaskState.TASK_STATE_COMPLETED, types.TaskState.TASK_STATE_INPUT_REQUIRED})


class AgentSummary(Record):
    """The fields of an agent card that are used; `url` and `protocol` are those of the interface that calls go to.

    `isolation` is what the agent says about what the program behind it could reach.
    """

    name: str
    url: str
    protocol: str
    version: str = ""
    isolation: str | None = None


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


async def fetch_card(url: str, timeout_s: float, *, headers: Mapping[str, str] = _NO_HEADERS) -> AgentSummary:
    """Read the card of the agent at `url`; `headers` are the credentials for it.

    Raises a `ParticipantError` that says why the card cannot be used.
    """
    card = await _read_card(url, timeout_s, headers)
    return _summary(card)


def _summary(card: types.AgentCard) -> AgentSummary:
    [interface] = card.supported_interfaces
    said = [_metadata(each.params).get("isolation") for each in card.capabilities.extensions if each.uri == ISOLATION]
    return AgentSummary(
        name=clip(card.name, 200),
        url=interface.url,
        protocol=interface.protocol_version,
        version=clip(card.version, 200),
        isolation=said[0] if said and said[0] in ISOLATIONS else None,
    )


async def _read_card(url: str, timeout_s: float, headers: Mapping[str, str]) -> types.AgentCard:
    """The card of the agent at `url`, reduced to the one interface that is called."""
    # Not the client for replies, whose size limit differs.
    client = bounded_client(_CARD, origin=url, credentials=headers)
    with hiding(headers), blaming_the_agent():
        try:
            async with patience(timeout_s), client as http:
                return await _find_card(http, url)
        except TimeoutError:
            raise ParticipantUnreachable(f"no agent card from {url} within {timeout_s:g} s") from None


async def _find_card(http: httpx.AsyncClient, url: str) -> types.AgentCard:
    try:
        return await _card_at(http, url)
    except ParticipantUnreachable:
        raise
    except ParticipantError as error:
        missing = error
    # Servers answer unknown paths in any way: with their first page, their log-in, or JSON that is not a card.
    try:
        return await _card_at(http, url, _OLD_CARD_PATH)
    except ParticipantError as error:
        raise (error if isinstance(missing, _NoCard) else missing) from None


class _NoCard(ParticipantError):
    """There is nothing at the path of a card."""


async def _card_at(http: httpx.AsyncClient, url: str, path: str | None = None) -> types.AgentCard:
    with blaming_the_agent():
        try:
            card = await A2ACardResolver(http, url).get_agent_card(relative_card_path=path)
        except AgentCardResolutionError as error:
            if error.status_code == HTTPStatus.NOT_FOUND:
                raise _NoCard(f"the agent answered HTTP {error.status_code}") from None
            raise
        interface = choose_interface(card.supported_interfaces, url)
    # The SDK would choose among the card's interfaces in its own order, so leave it only one.
    del card.supported_interfaces[:]
    card.supported_interfaces.append(interface)
    return card


class _AgentClient:
    """An agent whose card is read once, on entering; all calls go to the dialled host."""

    def __init__(self, url: str, bounds: Bounds, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self._http = bounded_client(bounds, origin=url, credentials=headers)

    async def __aenter__(self) -> Self:
        """Read the card. Raises a `ParticipantError` with the reason why it cannot be used."""
        card = await _read_card(self._url, _CARD_TIMEOUT_S, self._headers)
        self.card = _summary(card)
        self._card = card
        # A reply repeats that many messages, screenshots included. Before 1.0, a limit of 0 means no limit.
        self._history_length = 1 if is_old(card.supported_interfaces[0]) else 0
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connections. Tasks that the agent has begun continue."""
        await self._http.aclose()

    def _client_of(self, *, streaming: bool) -> Client:
        card = self._card
        # Agents that only stream need not say so in the card, and the SDK streams only if the card says so.
        card.capabilities.streaming |= streaming
        bindings = [card.supported_interfaces[0].protocol_binding]
        config = ClientConfig(streaming, httpx_client=self._http, supported_protocol_bindings=bindings)
        with blaming_the_agent():
            return ClientFactory(config).create(card)


class ParticipantClient(_AgentClient):
    """One participant, called turn by turn: `async with ParticipantClient(url) as client`. Safe for parallel attempts.

    `headers` are the credentials for it, sent to its own origin only. `max_reply_bytes` limits the text of a reply. An
    agent that does not have `message/send` is called by `message/stream`. `send` raises only `ParticipantError`s, and
    `InternalFault` when this machine runs out of a resource.
    """

    def __init__(
        self,
        url: str,
        *,
        reply_timeout_s: float = 120.0,
        max_reply_bytes: int = 1_000_000,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        bounds = Bounds(
            body_bytes=max_reply_bytes + _MAX_ENVELOPE_BYTES, stream_bytes=max_reply_bytes + _MAX_EVENTS_BYTES
        )
        super().__init__(url, bounds, headers)
        self._reply_timeout_s = reply_timeout_s
        self._max_reply_bytes = max_reply_bytes
        # Decided by the first message, because a message that may have been received must not be sent again.
        self._way: Literal["send", "stream"] | None = None
        self._open: dict[str, OpenTask] = {}
        self._claimed: dict[str, ClaimedUsage] = {}
        self._traces: dict[str, ClaimedTrace] = {}

    async def __aenter__(self) -> Self:
        """Read the card. Raises a `ParticipantError` with the reason why it cannot be used."""
        await super().__aenter__()
        self._client, self._streaming = self._client_of(streaming=False), self._client_of(streaming=True)
        self._announces_ends = any(each.uri == ATTEMPT_END for each in self._card.capabilities.extensions)
        return self

    def claimed(self, context_id: str) -> ClaimedUsage | None:
        """What the replies in a conversation say that the agent's model used; `None` if none says anything."""
        return self._claimed.get(context_id)

    def trace(self, context_id: str) -> ClaimedTrace | None:
        """What the last reply in a conversation says that the agent did for it."""
        return self._traces.get(context_id)

    def _claim(self, context_id: str, attached: Struct) -> None:
        metadata = _metadata(attached)
        self._traces.pop(context_id, None)
        if (trace := ClaimedTrace.in_reply(metadata)) is not None:
            self._traces[context_id] = trace
            if len(self._traces) > _MAX_OPEN_TASKS:
                del self._traces[next(iter(self._traces))]
        claim = ClaimedUsage.in_reply(metadata)
        if claim is None:
            return
        before = self._claimed.pop(context_id, None)
        self._claimed[context_id] = claim if before is None else before + claim
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
        with hiding(self._headers), blaming_the_agent():
            try:
                async with patience(self._reply_timeout_s):
                    text = await self._turn(request, context_id, before)
            except TimeoutError:
                raise ParticipantTimeout(f"no reply within {self._reply_timeout_s:g} s") from None
            if len(text.encode()) > self._max_reply_bytes:
                raise ParticipantError(
                    f"the agent's reply has more than {self._max_reply_bytes} bytes", remedy="send a shorter reply"
                )
            return text

    async def end(self, context_id: str) -> None:
        """Announce the end of the conversation to an agent that wants to know it. Waits a moment; never raises."""
        self._open.pop(context_id, None)
        if not self._announces_ends or self._way is None:
            return
        request = types.SendMessageRequest(message=_user_message("", context_id), metadata={ATTEMPT_END: "ended"})
        client = self._streaming if self._way == "stream" else self._client
        # Isolation boundary: the attempt is over, so no fault of its agent counts any more.
        with suppress(Exception):
            async with asyncio.timeout(_END_S):
                async for _ in client.send_message(request):
                    break

    async def _turn(self, request: types.SendMessageRequest, context_id: str, before: OpenTask | None) -> str:
        answer = await self._answer(request)
        if answer.message is not None:
            check_context(answer.message.context_id, context_id)
            self._claim(context_id, answer.message.metadata)
            return message_text(answer.message)
        answer = answer._replace(task=await self._until_done(answer))
        task = answer.task
        check_context(task.context_id, context_id)
        self._claim(context_id, task.status.message.metadata)
        status_texts = get_text_parts(task.status.message.parts)
        if task.status.state not in _ANSWERED:
            quote = f": {excerpt(' '.join(status_texts), _MAX_QUOTE_CHARS)}" if any(status_texts) else ""
            raise ParticipantError(f"the agent's task is {_state_name(task.status)}{quote}")
        if task.status.state == types.TaskState.TASK_STATE_INPUT_REQUIRED:
            self._open[context_id] = OpenTask.of(task)
            if len(self._open) > _MAX_OPEN_TASKS:
                del self._open[next(iter(self._open))]
        # A task that waited for input comes back with all the artifacts of earlier turns.
        artifacts = new_texts(answer, before)
        if not any(map(any, artifacts)) and not any(status_texts):
            status_texts = await self._last_message(answer) or status_texts
        return reply_text(artifacts, status_texts)

    async def _answer(self, request: types.SendMessageRequest) -> AgentResponse:
        if self._way != "stream":
            try:
                # Without streaming there is exactly one response.
                [response] = [response async for response in self._client.send_message(request)]
            except BaseException as error:
                if self._way == "send" or not refuses_method(error):
                    self._way = self._way if was_not_sent(error) else self._way or "send"
                    raise
                self._way = "stream"
            else:
                self._way = self._way or "send"
                return AgentResponse(response.message if response.HasField("message") else None, response.task)
        events = EventFold()
        async for response in self._streaming.send_message(request):
            events.add(response)
            # An agent may leave the stream open.
            if events.is_done:
                break
        return events.answer

    async def _until_done(self, answer: AgentResponse) -> types.Task:
        """Poll the task until the agent has finished it; some agents return a task before they have an answer."""
        task = answer.task
        task_id, pauses = task.id, iter(_POLL_S)
        while task.status.state in WORKING:
            await asyncio.sleep(next(pauses, _POLL_LATER_S))
            try:
                request = types.GetTaskRequest(id=task_id, history_length=self._history_length)
                task = await self._client.get_task(request)
            except Exception as error:
                if answer.is_streamed and has_no_task(error):
                    raise ParticipantError(CLOSED_EARLY) from None
                raise
            check_task(task.id, task_id)
        return task

    async def _last_message(self, answer: AgentResponse) -> list[str]:
        """The texts of the last message in the history, if it is the agent's."""
        # Some agents put their answer only here. The reply omits the history because that would repeat the screenshots.
        task = answer.task
        history = task.history
        if not history and self._history_length == 0 and not answer.is_streamed:
            history = (await self._client.get_task(types.GetTaskRequest(id=task.id, history_length=1))).history
        last = history[-1] if history else types.Message()
        return get_text_parts(last.parts) if last.role == types.Role.ROLE_AGENT else []


class AssessmentClient(_AgentClient):
    """Requests an assessment from a judge and follows it: `async with AssessmentClient(url) as client`."""

    def __init__(
        self, url: str, *, auth_token: SecretStr | None = None, reconnect_s: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 4.0)
    ) -> None:
        super().__init__(
            url, _JUDGE, {"Authorization": f"Bearer {auth_token.get_secret_value()}"} if auth_token else {}
        )
        self._reconnect_s = reconnect_s
        self._task_id: str | None = None
        self.metadata: dict[str, str] = {}
        """Texts that the judge attached to its task, such as `wabe_run_id`."""
        self._seen: set[int] = set()

    async def __aenter__(self) -> Self:
        """Read the card. Raises a `ParticipantError` with the reason why it cannot be used."""
        await super().__aenter__()
        self._client = self._client_of(streaming=True)
        return self

    async def run(self, text: str) -> AsyncGenerator[AgentEvent]:
        """Send the request and yield its events, a `Final` last. Reconnects when the connection breaks.

        Raises `ParticipantUnreachable` when reconnecting fails, `ParticipantError` for an answer that is not A2A.
        """
        stream = self._client.send_message(types.SendMessageRequest(message=_user_message(text)))
        pauses = iter(self._reconnect_s)
        while True:
            last_error: ParticipantError = ParticipantUnreachable("the agent's answer ended before its task was done")
            try:
                with blaming_the_agent():
                    async for response in stream:
                        for event in self._events(response):
                            yield event
                            if isinstance(event, Final):
                                return
                        pauses = iter(self._reconnect_s)  # the connection works again
            except ParticipantUnreachable as error:
                last_error = error
            pause_s = next(pauses, None)
            if self._task_id is None or pause_s is None:
                raise last_error
            await asyncio.sleep(pause_s)
            stream = self._resumed(self._task_id)

    async def is_admitted(self) -> bool:
        """Whether the judge accepts calls with this token. True unless its answer says the opposite."""
        try:
            # Of no task, so that nothing happens.
            await self._client.get_task(types.GetTaskRequest(id=uuid4().hex))
        # Isolation boundary: any other answer is one to an admitted call.
        except Exception as error:  # noqa: BLE001
            return not refuses_credentials(error)
        return True

    async def cancel(self) -> None:
        """Cancel the assessment if it has begun. Raises like `run`."""
        if self._task_id is not None:
            with blaming_the_agent():
                await self._client.cancel_task(types.CancelTaskRequest(id=self._task_id))

    async def _resumed(self, task_id: str) -> AsyncIterator[types.StreamResponse]:
        """The task as it is now and, unless it has ended, its further events."""
        task = await self._client.get_task(types.GetTaskRequest(id=task_id))
        yield types.StreamResponse(task=task)
        if task.status.state in WORKING:
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
            if (artifact_id := identity(artifact)) not in self._seen:
                self._seen.add(artifact_id)
                yield ArtifactTexts(tuple(get_text_parts(artifact.parts)))

    def _status(self, task_id: str, attached: Struct, status: types.TaskStatus) -> Iterator[AgentEvent]:
        self._task_id = task_id
        metadata = _metadata(attached)
        self.metadata.update({key: value for key, value in metadata.items() if isinstance(value, str)})
        text = "\n".join(get_text_parts(status.message.parts))
        if status.state not in WORKING:
            yield Final(_state_name(status), text)
        elif text:
            yield StatusText(text, metadata)


def _metadata(attached: Struct) -> dict[str, Any]:
    """Metadata as JSON; empty if it is not JSON, such as NaN."""
    try:
        table: dict[str, Any] = MessageToDict(attached)
    except SerializeToJsonError:
        return {}
    return table


def _user_message(text: str, context_id: str = "") -> types.Message:
    parts = [types.Part(text=without_surrogates(text))]
    return types.Message(message_id=uuid4().hex, role=types.Role.ROLE_USER, context_id=context_id, parts=parts)


def _state_name(status: types.TaskStatus) -> str:
    return str(types.TaskState.Name(status.state)).removeprefix("TASK_STATE_").lower().replace("_", "-")

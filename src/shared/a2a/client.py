"""Calls agents over A2A, protocol 1.0 and 0.3. With `a2a_server` the only file that knows the SDK.

Participants are adversaries: what they send is bounded, and what the SDK raises on it becomes an error that names the
cause. Specification: https://a2a-protocol.org/v1.0.0/specification/.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple, Self
from uuid import uuid4

import httpx
from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.utils.errors import A2AError, UnsupportedOperationError
from pydantic import SecretStr

from shared.a2a.bounded_http import bounded_client
from shared.a2a.calls import (
    AgentEvent,
    AgentSummary,
    ArtifactTexts,
    Final,
    Interface,
    StatusText,
    blaming,
    check_context,
    choose_interface,
    no_reply,
    reply_of,
)
from shared.errors import ParticipantError, ParticipantTimeout, ParticipantUnreachable
from shared.text import clip, without_surrogates

__all__ = [
    "AgentSummary",
    "ArtifactTexts",
    "AssessmentClient",
    "Final",
    "ParticipantClient",
    "StatusText",
    "fetch_card",
]

_OLD_CARD_PATH = "/.well-known/agent.json"
_POLL_S = (0.1, 0.2, 0.5, 1.0)
_MAX_OPEN_TASKS = 256
_MAX_CARD_BYTES = 1_000_000
_MAX_STREAM_BYTES = 512_000_000
_WORKING = frozenset({types.TaskState.TASK_STATE_SUBMITTED, types.TaskState.TASK_STATE_WORKING})
_ANSWERED = frozenset({types.TaskState.TASK_STATE_COMPLETED, types.TaskState.TASK_STATE_INPUT_REQUIRED})


async def fetch_card(url: str, timeout_s: float) -> AgentSummary:
    """Read the card of the agent at `url`. Raises a `ParticipantError` that says why it cannot be used."""
    card, interface = await _read_card(url, timeout_s)
    return AgentSummary(name=clip(card.name, 200), url=interface.url, protocol=interface.protocol_version)


class _Caller:
    """An agent whose card is read on entering."""

    def __init__(self, url: str, http: httpx.AsyncClient, *, card_timeout_s: float, streaming: bool) -> None:
        self._url = url
        self._http = http
        self._card_timeout_s = card_timeout_s
        self._streaming = streaming

    async def __aenter__(self) -> Self:
        """Read the card. Raises a `ParticipantError` that says why it cannot be used."""
        card, self._interface = await _read_card(self._url, self._card_timeout_s)
        config = ClientConfig(self._streaming, httpx_client=self._http)
        config.supported_protocol_bindings = [self._interface.protocol_binding]
        with blaming(A2AError):
            self._client = ClientFactory(config).create(card)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connections. What the agent has begun goes on."""
        await self._http.aclose()


class ParticipantClient(_Caller):
    """One participant, talked to in turns: `async with ParticipantClient(url) as client`. Safe for parallel episodes.

    The card is read once and all calls go to the host that was dialled, whatever host the card names.
    """

    def __init__(
        self,
        url: str,
        *,
        reply_timeout_s: float = 120.0,
        card_timeout_s: float = 10.0,
        max_reply_bytes: int = 1_000_000,
    ) -> None:
        super().__init__(url, bounded_client(max_bytes=max_reply_bytes), card_timeout_s=card_timeout_s, streaming=False)
        self._reply_timeout_s = reply_timeout_s
        self._open: dict[str, _OpenTask] = {}

    async def send(
        self, text: str, *, image: bytes | None = None, media_type: str = "image/jpeg", context_id: str
    ) -> str:
        """One turn of the conversation `context_id`: the reply's text, which may be empty.

        Raises `ParticipantTimeout` after `reply_timeout_s`, `ParticipantUnreachable` when the connection fails, and
        `ParticipantError` for a failed, rejected or cancelled task, a reply that is too large, has no text part,
        belongs to another context, or is not A2A.
        """
        message = types.Message(message_id=uuid4().hex, role=types.Role.ROLE_USER, context_id=context_id)
        message.parts.append(types.Part(text=without_surrogates(text)))
        if image is not None:
            message.parts.append(types.Part(raw=image, media_type=media_type))
        before = self._open.pop(context_id, None)
        message.task_id = before.task_id if before else ""
        configuration = types.SendMessageConfiguration(history_length=self._history())
        request = types.SendMessageRequest(message=message, configuration=configuration)
        with blaming(A2AError):
            try:
                async with asyncio.timeout(self._reply_timeout_s):
                    return await self._turn(request, context_id, before)
            except TimeoutError:
                raise ParticipantTimeout(f"no reply within {self._reply_timeout_s:g} s") from None

    async def _turn(self, request: types.SendMessageRequest, context_id: str, before: "_OpenTask | None") -> str:
        (response,) = [response async for response in self._client.send_message(request)]
        if response.HasField("message"):
            check_context(response.message.context_id, context_id)
            return reply_of(_texts(response.message.parts))
        task = await self._finished(response.task)
        check_context(task.context_id, context_id)
        if task.status.state not in _ANSWERED:
            raise no_reply(_state_name(task.status), _texts(task.status.message.parts))
        new = [artifact for artifact in task.artifacts if not (before and _mark(artifact) in before.artifacts)]
        if task.status.state == types.TaskState.TASK_STATE_INPUT_REQUIRED:
            self._open[context_id] = _OpenTask(task.id, frozenset(map(_mark, task.artifacts)))
            while len(self._open) > _MAX_OPEN_TASKS:
                del self._open[next(iter(self._open))]
        texts = _texts(*(artifact.parts for artifact in new), task.status.message.parts)
        return reply_of(texts if any(texts) else await self._last_words(task) or texts)

    async def _finished(self, task: types.Task) -> types.Task:
        """The task when it is no longer being worked on; some agents answer before they have one."""
        task_id, pauses = task.id, list(_POLL_S)
        while task.status.state in _WORKING:
            await asyncio.sleep(pauses.pop(0) if len(pauses) > 1 else pauses[0])
            task = await self._client.get_task(types.GetTaskRequest(id=task_id, history_length=self._history()))
            if task.id != task_id:
                raise ParticipantError("the agent answered with another task than the one asked for")
        return task

    def _history(self) -> int:
        """How many messages a reply may repeat, with their screenshots. Before 1.0 a limit of 0 means no limit."""
        return 1 if self._interface.is_old else 0

    async def _last_words(self, task: types.Task) -> list[str]:
        """What the last message of the history says, when that is the agent's."""
        history = task.history
        if not history and self._history() == 0:
            history = (await self._client.get_task(types.GetTaskRequest(id=task.id, history_length=1))).history
        return _texts(*(message.parts for message in history[-1:] if message.role == types.Role.ROLE_AGENT))


class AssessmentClient(_Caller):
    """Asks a judge for an assessment and follows it: `async with AssessmentClient(url) as client`."""

    def __init__(
        self,
        url: str,
        *,
        auth_token: SecretStr | None = None,
        card_timeout_s: float = 10.0,
        reconnect_s: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 4.0),
    ) -> None:
        http = bounded_client(max_bytes=_MAX_STREAM_BYTES, streams=True, token=auth_token)
        super().__init__(url, http, card_timeout_s=card_timeout_s, streaming=True)
        self._reconnect_s = reconnect_s
        self._task_id: str | None = None
        self.metadata: dict[str, str] = {}
        """Texts that the judge attached to its task, such as `wabe_run_id`."""
        self._seen: set[tuple[str, int]] = set()

    async def run(self, text: str) -> AsyncGenerator[AgentEvent]:
        """Send the request and yield what comes of it, a `Final` last.

        A connection that breaks is taken up again. Raises `ParticipantUnreachable` when that fails, `ParticipantError`
        when what comes is not A2A.
        """
        message = types.Message(
            message_id=uuid4().hex, role=types.Role.ROLE_USER, parts=[types.Part(text=without_surrogates(text))]
        )
        stream = self._client.send_message(types.SendMessageRequest(message=message))
        pauses = list(self._reconnect_s)
        while True:
            lost: ParticipantError = ParticipantUnreachable("the agent ended its answer before it was done")
            try:
                with blaming(A2AError):
                    async for response in stream:
                        for event in self._events(response):
                            yield event
                            if isinstance(event, Final):
                                return
                        pauses = list(self._reconnect_s)
            except ParticipantUnreachable as error:
                lost = error
            if self._task_id is None or not pauses:
                raise lost
            await asyncio.sleep(pauses.pop(0))
            stream = self._resumed(self._task_id)

    async def cancel(self) -> None:
        """End the assessment under way, if there is one. Raises like `run`."""
        if self._task_id is not None:
            with blaming(A2AError):
                await self._client.cancel_task(types.CancelTaskRequest(id=self._task_id))

    async def _resumed(self, task_id: str) -> AsyncIterator[types.StreamResponse]:
        """The task as it is now and, unless it has ended, what comes next."""
        task = await self._client.get_task(types.GetTaskRequest(id=task_id))
        yield types.StreamResponse(task=task)
        if task.status.state in _WORKING:
            with suppress(UnsupportedOperationError):  # it has ended meanwhile
                async for response in self._client.subscribe(types.SubscribeToTaskRequest(id=task_id)):
                    yield response

    def _events(self, response: types.StreamResponse) -> Iterator[AgentEvent]:
        if response.HasField("message"):
            yield Final("completed", "\n".join(_texts(response.message.parts)))
        elif response.HasField("artifact_update"):
            yield from self._artifacts([response.artifact_update.artifact])
        elif response.HasField("status_update"):
            self._task_id = response.status_update.task_id
            self._note(response.status_update.metadata)
            yield from _progress(response.status_update.status)
        elif response.HasField("task"):
            self._task_id = response.task.id
            self._note(response.task.metadata)
            yield from self._artifacts(response.task.artifacts)
            yield from _progress(response.task.status)

    def _note(self, metadata: Mapping[str, object]) -> None:
        self.metadata.update({key: value for key, value in metadata.items() if isinstance(value, str)})

    def _artifacts(self, artifacts: Iterable[types.Artifact]) -> Iterator[ArtifactTexts]:
        """Those not seen yet: a connection that is taken up again begins with everything so far."""
        for artifact in artifacts:
            if (mark := _mark(artifact)) not in self._seen:
                self._seen.add(mark)
                yield ArtifactTexts(tuple(_texts(artifact.parts)))


class _OpenTask(NamedTuple):
    """A task that waits for input, with the artifacts it had then: they are no part of the next reply."""

    task_id: str
    artifacts: frozenset[tuple[str, int]]


async def _read_card(url: str, timeout_s: float) -> tuple[types.AgentCard, Interface]:
    """The card of the agent at `url`, reduced to the one interface that is called."""
    client = bounded_client(max_bytes=_MAX_CARD_BYTES)
    with blaming(A2AError):
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
            raise ParticipantUnreachable(f"{url} gave no agent card within {timeout_s:g} s") from None
        offered = [
            Interface(*(getattr(each, name) for name in Interface._fields)) for each in card.supported_interfaces
        ]
        chosen = choose_interface(offered, url)
        del card.supported_interfaces[:]
        card.supported_interfaces.add(**chosen._asdict())
        return card, chosen


def _texts(*messages: Iterable[types.Part]) -> list[str]:
    return [part.text for parts in messages for part in parts if part.HasField("text")]


def _progress(status: types.TaskStatus) -> Iterator[AgentEvent]:
    text = "\n".join(_texts(status.message.parts))
    if status.state not in _WORKING:
        yield Final(_state_name(status), text)
    elif text:
        yield StatusText(text)


def _state_name(status: types.TaskStatus) -> str:
    return str(types.TaskState.Name(status.state)).removeprefix("TASK_STATE_").lower().replace("_", "-")


def _mark(artifact: types.Artifact) -> tuple[str, int]:
    return artifact.artifact_id, hash(artifact.SerializeToString(deterministic=True))
